"""What is wrong with the world ends every command over a history with 3, and one line that says where and what."""

import os
import resource
import signal
import sqlite3
import subprocess
from contextlib import closing, contextmanager

import psycopg
import pytest
from tests.history.writer import HERE, life_of

from tenure.history import connect, open_history

READING = (
    ("report",),
    ("report", "--by", "user", "--format", "csv"),
    ("story", "team/job-1"),
    ("history", "export", "{folder}/again.jsonl"),
)
WRITING = (
    ("history", "prune", "--keep", "1d"),
    ("history", "forget", "--user", "ada"),
    ("history", "import", "{folder}/export.jsonl"),
    ("history", "migrate"),
)
OUTSIDE = 3


@pytest.fixture
def ended(run_command, tmp_path, monkeypatch):
    """Give a function that runs commands on a history; all have to end with 3 and one line with such words."""
    monkeypatch.delenv("TENURE_HISTORY", raising=False)

    def check(address, commands, words, place):
        for command in commands:
            named = [word.format(folder=tmp_path) for word in command]
            code, out, err = run_command(*named, "--history", address)
            assert (code, out) == (OUTSIDE, ""), (command, code, err)
            (line,) = err.splitlines()
            assert line.startswith(place), (command, line)
            assert words in line, (command, line)

    return check


@pytest.fixture
def store(tmp_path, run_command):
    """Give a file with a history, beside which is an export of it."""
    path = tmp_path / "history.db"
    with open_history(str(path), write=True) as made:
        made.append(HERE, [draft for number in range(100) for draft in life_of(number)])
    assert run_command("history", "export", tmp_path / "export.jsonl", "--history", path)[0] == 0
    return path


def replays(run_command, address, words, place):
    """Hold the same of replay, which names its history with another option."""
    code, out, err = run_command("replay", "--from", address)
    assert (code, out) == (OUTSIDE, "")
    (line,) = err.splitlines()
    assert line.startswith(place)
    assert words in line


def test_a_locked_file(store, ended, monkeypatch):
    """Who only reads is not kept from it."""
    monkeypatch.setattr(connect, "LOCKED_SECONDS", 0.05)
    with closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        ended(str(store), WRITING, "is locked by another process", str(store))
        with open_history(str(store)) as read:
            assert read.info().records
        other.execute("ROLLBACK")


@contextmanager
def unwritable(path):
    """Let nobody write a file; root may write any that is not immutable."""
    if os.geteuid():
        path.chmod(0o400)
    elif subprocess.run(["chattr", "+i", path], capture_output=True, check=False).returncode:
        pytest.skip("root may write everything here, and no file can be made immutable")
    yield
    if not os.geteuid():
        subprocess.run(["chattr", "-i", path], check=True)


def test_a_read_only_file(store, ended):
    with unwritable(store):
        ended(str(store), WRITING, "may only be read here", str(store))


def test_a_file_that_is_damaged_or_of_a_later_schema(store, ended, run_command):
    with closing(sqlite3.connect(store)) as other, other:
        other.execute("UPDATE tenure_history SET value = '99'")
    ended(str(store), (*READING, *WRITING), "later Tenure", str(store))
    replays(run_command, str(store), "later Tenure", str(store))
    store.write_bytes(os.urandom(20_000))
    ended(str(store), (*READING, *WRITING), "no SQLite file", str(store))
    replays(run_command, str(store), "no SQLite file", str(store))


def test_a_file_damaged_in_the_middle(store, ended):
    """Its head can be read, and what stands behind it cannot."""
    size = store.stat().st_size
    with store.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    ended(str(store), (*READING, *WRITING), str(store), str(store))


def test_a_full_disk(store, ended, run_command, tmp_path):
    """The disk is full for this process: it may write no larger file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
        ended(str(store), (("history", "forget", "--user", "ada"),), "disk", str(store))
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, before[1]))  # SQLite needs 32 KiB to read
        code, out, err = run_command("history", "export", tmp_path / "full.jsonl", "--history", store)
        assert (code, out) == (OUTSIDE, ""), err
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert "full.jsonl" in err
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.glob("full.jsonl*")), "something is left of it"


def test_a_server_that_is_away_or_may_only_be_read(store, server, ended, run_command):  # noqa: ARG001  has the export
    address = server.database()
    with open_history(address, write=True) as made:
        made.append(HERE, [draft for number in range(20) for draft in life_of(number)])
    name = address.rpartition("/")[2]
    with closing(psycopg.connect(address, autocommit=True)) as other:
        other.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert run_command("report", "--history", address)[0] == 0
    ended(address, WRITING[:3], "only lets it be read", address)
    server.stop()
    try:
        ended(address, (*READING, *WRITING), "cannot be reached", address)
        replays(run_command, address, "cannot be reached", address)
    finally:
        server.start()
