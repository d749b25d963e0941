"""A history that a simulation makes at once is what the store would have written, and is there whole or not at all."""

import json
import random
import resource
import signal
import sqlite3
import subprocess
import time

import pytest
from hypothesis import given, settings
from tests import preloaded
from tests.effort import tries
from tests.history.test_store import HERE, NOVEMBER, life
from tests.history.whole_writer import LIVES
from tests.history.worlds import MINUTE, simulated, worlds

from tenure.history import open_history
from tenure.history.errors import HistoryError
from tenure.history.writing.simulation import write_simulation, write_simulation_file
from tenure.history.writing.whole import may_be_made, write_whole

TURNS = tries(4, 40)


def content(path):
    """Give all that is in a file: what its tables look like, and their rows."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
        shape = [(kind, name, " ".join((sql or "").split()).replace("( ", "(").replace(" )", ")"))
                 for kind, name, sql in rows]  # fmt: skip
        tables = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for kind, name, _ in rows
                  if kind == "table" and name != "tenure_usage"}  # fmt: skip
        usage = {
            row[:4]: {name: sums for name, sums in json.loads(row[4]).items() if sums}
            for row in connection.execute("SELECT source, since, queue, until, payload FROM tenure_usage")
        }
        mode = connection.execute("PRAGMA journal_mode").fetchone()
        whole = connection.execute("PRAGMA integrity_check").fetchone()
    connection.close()
    return shape, tables, usage, mode, whole


@settings(max_examples=tries(12, 125), deadline=None)
@given(world=worlds())
def test_it_is_what_the_store_would_have_written(tmp_path_factory, world):
    folder = tmp_path_factory.mktemp("whole")
    log, outcomes, listener = simulated(*world)
    with open_history(str(folder / "a.db"), write=True) as store:
        count = write_simulation(store, "trace.csv", world[0], log, outcomes, listener)
    found = write_simulation_file(str(folder / "b.db"), "trace.csv", world[0], log, outcomes, listener)
    assert found == count
    assert content(folder / "a.db") == content(folder / "b.db")
    with open_history(str(folder / "b.db"), write=True) as store:
        assert write_simulation(store, "trace.csv", world[0], log, outcomes, listener) == 0


@settings(max_examples=1, deadline=None)
@given(world=worlds())
def test_what_appeared_meanwhile_is_not_written_over(tmp_path_factory, world):
    path = tmp_path_factory.mktemp("meanwhile") / "h.db"
    may_be_made(str(path))
    with open_history(str(path), write=True) as store:
        store.append(HERE, life(1, NOVEMBER))
    with pytest.raises(HistoryError, match="another history"):
        write_simulation_file(str(path), "trace.csv", world[0], *simulated(*world))
    assert [file.name for file in path.parent.iterdir()] == ["h.db"]


def test_it_may_be_made_or_not_is_told_before(tmp_path):
    may_be_made(str(tmp_path / "h.db"))
    assert not list(tmp_path.iterdir())
    with pytest.raises(HistoryError, match="cannot be written"):
        may_be_made("/proc/h.db")


def test_a_full_disk_leaves_nothing(tmp_path):
    drafts = [draft for number in range(3000) for draft in life(number, NOVEMBER + number * MINUTE)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        with pytest.raises(HistoryError, match="disk"):
            write_whole(str(tmp_path / "h.db"), HERE, drafts)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert not list(tmp_path.iterdir())
    assert write_whole(str(tmp_path / "h.db"), HERE, drafts)


def test_a_writer_that_is_killed_leaves_all_or_nothing(tmp_path):
    chance = random.Random(5)
    path = tmp_path / "h.db"
    took = 1.0
    for turn in range(TURNS):
        path.unlink(missing_ok=True)
        process = preloaded.start([path], module="tests.history.whole_writer", stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout.readline() == "ready\n"
            began = time.monotonic()
            if turn:
                time.sleep(chance.random() * took)
                process.kill()
            process.wait(60)
            took = took if turn else time.monotonic() - began
        finally:
            process.stdout.close()
        if path.exists():
            with open_history(str(path)) as store:
                assert store.info().records == 5 * LIVES
            with sqlite3.connect(path) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            connection.close()
        else:
            assert turn
