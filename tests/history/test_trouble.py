"""What goes wrong with a store is said in words, and the live path goes on: nothing lost, nothing twice."""

import os
import resource
import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from tests import preloaded
from tests.effort import tries
from tests.history.test_store import HERE, NOVEMBER, life
from tests.history.worlds import MINUTE
from tests.history.writer import written

from tenure.history import open_history
from tenure.history.connect import name_of
from tenure.history.drained_store import DrainedStore
from tenure.history.errors import HistoryError
from tenure.history.query import Query
from tenure.history.record import Draft, Origin
from tenure.live.records.drain import HistoryDrain
from tenure.model.values.problems import InvalidInputError

PAUSES = (0.05,)
TURNS = tries(3, 100)


def until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def drafts_of(numbers):
    return [draft for number in numbers for draft in life(number, NOVEMBER + number * MINUTE)]


def held(address):
    with open_history(address) as store:
        return sorted(record.key for record in store.records(limit=100_000).records)


def test_a_file_that_is_no_history_is_named(tmp_path):
    for name, content, words in (
        ("text.db", b"hello, world" * 100, "no SQLite file"),
        ("empty.db", b"", "is empty"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises((HistoryError, InvalidInputError), match=words):
            open_history(str(path))
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as made:
        made.execute("CREATE TABLE t (a)")
    with pytest.raises(HistoryError, match="holds no history"):
        open_history(str(other))
    with pytest.raises(InvalidInputError, match="is no address of a store"):
        open_history("mysql://somewhere/x")


def test_a_damaged_file_is_told_and_not_written(tmp_path):
    path = str(tmp_path / "h.db")
    with open_history(path, write=True) as store:
        store.append(HERE, drafts_of(range(500)))
    with Path(path).open("r+b") as file:
        file.seek(8192)
        file.write(os.urandom(60_000))

    def use():
        with open_history(path, write=True) as store:
            store.append(HERE, drafts_of(range(500, 2000)))
            store.records(limit=10_000)

    with pytest.raises(HistoryError, match=r"damaged|SQLite says"):
        use()


def test_a_locked_store_holds_nobody_up_and_loses_nothing(tmp_path):
    path = str(tmp_path / "h.db")
    open_history(path, write=True).close()
    told = []
    drain = HistoryDrain(path, HERE, told=told.append, pauses=PAUSES)
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        drain.start()
        drain.add(drafts_of(range(100)))
        assert drain.backlog, "who adds waits until it is written"
        until(lambda: told, "nothing is told of a locked store")
        assert "locked" in told[0]
        other.execute("ROLLBACK")
    until(lambda: not drain.backlog, "what waited is not written")
    drain.stop()
    assert held(path) == sorted(d.key for d in drafts_of(range(100)))
    assert "written again" in told[-1]


@contextmanager
def unwritable(path):
    """Let nobody write a file: root may write any that is not immutable, and where none can be, it is skipped."""
    if os.geteuid():
        path.chmod(0o400)
        yield
        return
    if subprocess.run(["chattr", "+i", path], capture_output=True, check=False).returncode:
        pytest.skip("root may write everything here, and no file can be made immutable")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", path], check=True)


def test_a_read_only_file_is_told_and_read(tmp_path):
    path = tmp_path / "h.db"
    with open_history(str(path), write=True) as store:
        store.append(HERE, drafts_of(range(3)))
    with unwritable(path):
        with pytest.raises(HistoryError, match="only be read"):
            open_history(str(path), write=True)
        assert held(str(path)) == sorted(d.key for d in drafts_of(range(3)))


def test_a_full_disk_is_told_and_what_waits_is_written_later(tmp_path):
    """The disk is full for this process: it may write no larger file."""
    path = str(tmp_path / "h.db")
    open_history(path, write=True).close()
    told = []
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    drain = HistoryDrain(path, HERE, told=told.append, pauses=PAUSES)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, before[1]))
        drain.start()
        drain.add(drafts_of(range(2000)))
        until(lambda: told, "nothing is told of a full disk")
        assert "disk" in told[0]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    until(lambda: not drain.backlog, "what waited is not written")
    drain.stop()
    assert held(path) == sorted(d.key for d in drafts_of(range(2000)))


def test_what_waits_is_bounded_and_a_gap_is_a_record(tmp_path):
    path = str(tmp_path / "none" / "h.db")
    lost = threading.Event()
    drain = HistoryDrain(path, HERE, lost=lost.set, most=60, pauses=PAUSES)
    drain.start()
    for number in range(100):
        drain.add(life(number, NOVEMBER + number * MINUTE))
    assert drain.backlog == 60
    assert drain.dropped == 240
    assert not lost.is_set(), "nothing can be handed over again while the store is away"
    (tmp_path / "none").mkdir()
    until(lambda: not drain.backlog, "what waited is not written")
    until(lost.is_set, "nobody hears that some were dropped")
    drain.stop()
    with open_history(path) as store:
        assert store.records(Query(workload="team/job-99"), limit=10).records
        gap = store.records(Query(kinds=("gap",)), limit=10).records
        assert [(g.value, g.payload["since"], g.payload["until"]) for g in gap] == [
            (240, NOVEMBER, NOVEMBER + 80 * MINUTE)
        ]


def test_a_server_that_goes_and_comes_back(server):
    address = server.database()
    told = []
    drain = HistoryDrain(address, HERE, told=told.append, pauses=PAUSES)
    drain.start()
    drain.add(drafts_of(range(50)))
    until(lambda: not drain.backlog, "nothing is written")
    server.stop()
    drain.add(drafts_of(range(50, 100)))
    until(lambda: told, "nothing is told of a server that is away")
    assert "cannot be reached" in told[0]
    server.start()
    until(lambda: not drain.backlog, "what waited is not written")
    drain.stop()
    assert held(address) == sorted(d.key for d in drafts_of(range(100)))
    assert "127.0.0.1" in told[0]


@contextmanager
def frozen(server):
    """Let a server's processes stand still: connections stay, and nobody answers."""
    pid = server.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    everybody = [pid, *map(int, children)]
    for process in everybody:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in everybody:
            os.kill(process, signal.SIGCONT)


def test_a_server_that_does_not_answer_is_away(server):
    """A connection that nobody answers breaks no write off; it is told all the same, and that it is over."""
    address = server.database()
    told = []
    drain = HistoryDrain(address, HERE, told=told.append, pauses=PAUSES, patience=0.2)
    drain.start()
    drain.add(drafts_of(range(50)))
    until(lambda: not drain.backlog, "nothing is written")
    with frozen(server):
        drain.add(drafts_of(range(50, 100)))
        until(lambda: drain.trouble, "a server that does not answer is no trouble")
        drain.add(())
        assert "does not answer" in told[0]
        drain.add(())
        assert len(told) == 1, "it is told again and again"
    until(lambda: not drain.backlog and not drain.trouble, "what waited is not written")
    until(lambda: len(told) == 2, "that it is back is not told")
    drain.stop()
    assert held(address) == sorted(d.key for d in drafts_of(range(100)))


def test_a_server_that_may_only_be_read_is_told(server):
    address = server.database()
    name = address.rpartition("/")[2]
    open_history(address, write=True).close()
    told = []
    drain = HistoryDrain(address, HERE, told=told.append, pauses=PAUSES)
    with closing(psycopg.connect(address, autocommit=True)) as other:
        other.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        drain.start()
        drain.add(drafts_of(range(50)))
        until(lambda: told, "nothing is told of a server that may only be read")
        assert "only lets it be read" in told[0]
        other.execute("SET default_transaction_read_only = off")
        other.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    until(lambda: not drain.backlog, "what waited is not written")
    drain.stop()
    assert held(address) == sorted(d.key for d in drafts_of(range(50)))


@pytest.mark.parametrize("way", ["move", "delete"])
def test_a_file_that_is_taken_away_takes_nothing_with_it(tmp_path, way):
    """Whoever moves the file away has all of it, and what comes then is in a new one; so is what can be told again."""
    path, moved = tmp_path / "h.db", tmp_path / "moved.db"
    told, lost = [], threading.Event()
    drain = HistoryDrain(str(path), HERE, told=told.append, lost=lost.set, pauses=PAUSES)
    drain.start()
    drain.add(drafts_of(range(50)))
    until(lambda: not drain.backlog, "nothing is written")
    assert not lost.is_set()
    if way == "move":
        path.rename(moved)
    else:
        path.unlink()
    drain.add(drafts_of(range(50, 100)))
    until(lambda: not drain.backlog, "nothing is written any more")
    assert lost.is_set(), "nobody hears that another file is written"
    assert "another history" in told[0]
    drain.stop()
    assert held(str(path)) == sorted(d.key for d in drafts_of(range(50, 100)))
    if way == "move":
        assert held(str(moved)) == sorted(d.key for d in drafts_of(range(50)))


def test_a_schema_that_another_tenure_changes_is_written_no_more(address):
    """Whoever still runs while a later one brings the store to its schema stops writing, and says why."""
    told = []
    drain = HistoryDrain(address, HERE, told=told.append, pauses=PAUSES)
    drain.start()
    drain.add(drafts_of(range(50)))
    until(lambda: not drain.backlog, "nothing is written")

    def become(version):
        with open_history(address, write=True) as store, store.writing() as connection:
            connection.exec_driver_sql(f"UPDATE tenure_history SET value = '{version}'")

    become(99)
    drain.add(drafts_of(range(50, 100)))
    until(lambda: any("later Tenure" in text for text in told), "nothing is told of a later schema")
    assert drain.backlog
    assert drain.trouble
    drain.stop()
    assert "never written" in told[-1]


WRONG = Draft(NOVEMBER + 5, "evicted", "team/job-5", value=1 << 70, key=b"\1" * 16)


def test_a_record_that_no_store_can_take_costs_no_other(address):
    """It is left out, a gap says so, and the thread goes on."""
    told = []
    drain = HistoryDrain(address, HERE, told=told.append, pauses=PAUSES)
    drain.start()
    nul = Draft(NOVEMBER + 6, "evicted", "team/\0", key=b"\2" * 16)
    drain.add([*drafts_of(range(50)), WRONG, nul, *drafts_of(range(50, 100))])
    until(lambda: not drain.backlog, "one record keeps all others from being written")
    drain.stop()
    assert not drain.trouble
    with open_history(address) as store:
        gaps = store.records(Query(kinds=("gap",)), limit=10).records
        found = {record.key for record in store.records(limit=10_000).records}
    assert {d.key for d in drafts_of(range(100))} <= found
    assert drain.dropped == len(gaps) == (2 if address.startswith("postgresql") else 1)  # a file takes any text
    assert (gaps[0].payload["since"], gaps[0].value) == (WRONG.at, 1)
    assert "evicted" in gaps[0].payload["why"]
    assert len(told) == len(gaps)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada:secret@127.0.0.1:1/x", "postgresql://ada@127.0.0.1:1/x?password=secret&sslpassword=secret",
        "postgresql://ada:se/secret@127.0.0.1:1/x", "postgresql://ada:se@secret@127.0.0.1:1/x",
        "postgresql://ada:secret@127.0.0.1:port/x", "postgresq://ada:secret@127.0.0.1/x",
        "postgresql+psycopg2://ada:secret@127.0.0.1/x", "POSTGRESQL://ada:secret@127.0.0.1/x",
        "postgresql:/ada:secret@127.0.0.1/x",
    ],
)  # fmt: skip
def test_no_password_is_told(address):
    """Not even where the address is mistyped, or the password has a character that has to be spelt out."""
    for write in (False, True):
        with pytest.raises((HistoryError, InvalidInputError)) as caught:
            open_history(address, write=write)
        assert "secret" not in str(caught.value)
        assert "127.0.0.1" in str(caught.value)
    assert "secret" not in DrainedStore(address, Origin("x")).place


WRITER = "tests.history.writer"
"""A process of which this is the module."""


def test_a_writer_killed_again_and_again_writes_each_record_once(address):
    """Killed between any two writes and started again, it leaves every record, none twice, and the sums of them."""
    for turn in range(TURNS):
        process = preloaded.start([address], module=WRITER, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout.readline() == "ready\n"
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02 + 0.05 * (turn % 5))
        finally:
            process.kill()
            process.wait(20)
            process.stdout.close()
    preloaded.run([address], module=WRITER, check=True, timeout=120, stdout=subprocess.DEVNULL)
    assert held(address) == sorted(d.key for d in written())
    from tenure.history.reading.statement import statement_of  # noqa: PLC0415

    with open_history(address) as store:
        found = statement_of(store, by="queue")
    counted = sum(d.kind == "usage" for d in written())
    assert found.used["cpu"] + found.lost["cpu"] == counted * 1000 * MINUTE


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("runs/run.db", "runs/run.db"), ("sqlite:///run.db", "run.db"), ("postgresql://history/runs", "runs"),
        ("postgresql://me:secret@history/runs", "runs"), ("postgresql://history/runs?user=me&password=secret", "runs"),
        ("postgresql://history/runs?password=secret@x/y", "runs"), ("postgresql://me:secret@history", "a database"),
    ],
)  # fmt: skip
def test_a_history_is_called_by_a_name_without_who_logs_in_there(address, name):
    """The console shows it on every page."""
    assert name_of(address) == name
