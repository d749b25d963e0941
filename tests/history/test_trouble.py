"""What goes wrong with a store is said in words, and the live path goes on: nothing lost, nothing twice."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.effort import tries
from tests.history.test_store import HERE, NOVEMBER, life
from tests.history.worlds import MINUTE
from tests.history.writer import written

from tenure.history import open_history
from tenure.history.errors import HistoryError
from tenure.history.query import Query
from tenure.live.drain import HistoryDrain
from tenure.model.problems import InvalidInputError

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
    with pytest.raises(InvalidInputError, match="no kind of store"):
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


def test_no_password_is_told():
    with pytest.raises(HistoryError) as caught:
        open_history("postgresql://ada:secret@127.0.0.1:1/x")
    assert "secret" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


WRITER = [sys.executable, "-m", "tests.history.writer"]


def test_a_writer_killed_again_and_again_writes_each_record_once(address):
    """Killed between any two writes and started again, it leaves every record, none twice, and the sums of them."""
    for turn in range(TURNS):
        process = subprocess.Popen([*WRITER, address], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout.readline() == "ready\n"
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02 + 0.05 * (turn % 5))
        finally:
            process.kill()
            process.wait(20)
            process.stdout.close()
    subprocess.run([*WRITER, address], check=True, timeout=120, stdout=subprocess.DEVNULL)
    assert held(address) == sorted(d.key for d in written())
    from tenure.history.statement import statement_of  # noqa: PLC0415

    with open_history(address) as store:
        found = statement_of(store, by="queue")
    counted = sum(d.kind == "usage" for d in written())
    assert found.used["cpu"] + found.lost["cpu"] == counted * 1000 * MINUTE
