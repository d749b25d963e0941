"""The store of the history fails under a scheduler on a real control plane: scheduling goes on, and nothing is lost.

While the store is in trouble pods are placed and evicted, and the log, a metric and the node pool's status say so.
After it, the records are what the cluster's objects say, each once.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from tests.history import postgres
from tests.kubernetes import running as commands
from tests.kubernetes.running import JOBS, SETS, TENURE, bound, clear, gang, job, pods_of, queue, running
from tests.kubernetes.stage import wait_until
from tests.kubernetes.test_history import evicted, records, said_by_pods, same, told_apart
from tests.kubernetes.witness import Witness

from tenure.history import open_history
from tenure.history.reading.statement import statement_of
from tenure.history.record import Draft, Origin, key_of, payload_of
from tenure.model.values.duration import DAY

GPU = "nvidia.com/gpu"
POOL = f"{TENURE}/nodepools/default"
SECOND = 1_000_000
WATCHED = {"pods": "/api/v1/namespaces/default/pods"}


class Scene:
    """A lender and a borrower on one node: in each round the lender takes its GPUs back, and then lets them go."""

    def __init__(self, plane, scheduler, witness, address):
        self.client, self.scheduler, self.witness, self.address = plane.client(), scheduler, witness, address
        self.rounds = self.heard = 0
        self.jobs = {}

    def begin(self):
        """Let the borrower run."""
        self.client.create(SETS, gang("borrower", "borrowers", 4))
        wait_until(lambda: bound(self.client, "borrower") == 4, "the borrower does not run", 100)

    def round(self):
        """Let the lender's job evict the borrower and end; then the borrower runs again."""
        self.rounds += 1
        name = f"owed-{self.rounds}"
        self.client.create(JOBS, job(name, "lender", 4))
        wait_until(lambda: bound(self.client, name) == 4, f"{name} does not run", 100)
        self.jobs[f"default/{name}"] = {p["metadata"]["uid"] for p in pods_of(self.client, name)}
        self.client.delete(f"{JOBS}/{name}", {"propagationPolicy": "Background"})
        wait_until(lambda: bound(self.client, "borrower") == 4, "the borrower does not come back", 100)

    # -- what is said of it -------------------------------------------------------------------------------------------

    def metric(self, name):
        """Give the value of a metric of the history."""
        text = self.scheduler.page("/metrics")[1]
        return float(re.search(rf"^tenure_history_{name} (\S+)$", text, re.MULTILINE)[1])

    def status(self):
        """Give what the node pool's status says of the history."""
        return self.client.get(POOL).get("status", {}).get("history", "")

    def said(self):
        """Give what the log says of the history."""
        found = [line["trouble"] for line in self.scheduler.lines() if line.get("message") == "history"]
        return found[self.heard :]

    @contextmanager
    def trouble(self, words, *, from_the_start=False):
        """Expect that all channels say such words of what is done inside, and that scheduling goes on.

        What is amiss ``from_the_start`` may have been told already; it is told once.
        """
        self.heard += 0 if from_the_start else len(self.said())
        yield
        self.round()
        wait_until(lambda: any(words in text for text in self.said()), lambda: f"{words}: {self.said()}", 30)
        assert self.metric("away") == 1
        assert self.metric("backlog") > 0
        wait_until(lambda: words in self.status(), lambda: f"{words}: {self.status()}", 30)

    def back(self):
        """Wait until everything is written, and hold it to the objects."""
        wait_until(lambda: not self.metric("away") and not self.metric("backlog"), lambda: str(self.said()), 100)
        assert "written again" in self.said()[-1]
        self.same()
        wait_until(lambda: self.status() == "Written", self.status, 60)

    def same(self):
        """Wait until evictions on record are those that pods tell of, each once."""

        def both():
            return evicted(self.address), said_by_pods(self.witness)

        wait_until(lambda: same(*both()), lambda: told_apart(self.witness, *both()), 60)

    def lives(self):
        """Hold what is on record of each of the lender's jobs to what it did: came, started, ended, each once."""
        wait_until(lambda: len(records(self.address, "ended")) >= self.rounds, "not all ends are told", 60)
        found = records(self.address, "submitted", "started", "ended")
        for name in self.jobs:
            kinds = sorted(record.kind for record in found if record.workload == name)
            assert kinds == ["ended", "started", "submitted"], (name, kinds)


@pytest.fixture
def stage(plane):
    client = plane.client()
    plane.add_node("node-0", {"cpu": "16", "memory": "64Gi", GPU: "4"})
    client.create(f"{TENURE}/nodepools", {
        "apiVersion": "tenure.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": {},
    })  # fmt: skip
    client.create(f"{TENURE}/queues", queue("lender", guaranteed={GPU: 4}))
    client.create(f"{TENURE}/queues", queue("borrowers"))
    yield plane
    clear(plane.client())


@contextmanager
def scene(plane, token, folder, address, *options):
    """Run a scheduler that writes a history, with a witness of what happens to pods."""
    kubeconfig = plane.kubeconfig_for(token, "tenure")
    with (
        Witness(plane, WATCHED) as witness,
        running(kubeconfig, folder, "one", "--history", address, *options) as scheduler,
    ):
        made = Scene(plane, scheduler, witness, address)
        made.begin()
        yield made
        assert scheduler.process.poll() is None


@contextmanager
def locked(path):
    """Keep a file locked, as a process that hangs in the middle of a write would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        other.execute("BEGIN EXCLUSIVE")
        yield other
        other.execute("ROLLBACK")


@contextmanager
def unwritable(path):
    """Let nobody write a file; root may write any that is not immutable."""
    if os.geteuid():
        path.chmod(0o400)
    elif subprocess.run(["chattr", "+i", path], capture_output=True, check=False).returncode:
        pytest.skip("root may write everything here, and no file can be made immutable")
    try:
        yield
    finally:
        if os.geteuid():
            path.chmod(0o600)
        else:
            subprocess.run(["chattr", "-i", path], check=True)


def spoil(path):
    """Overwrite the begin of a file, and its end."""
    with path.open("r+b") as file:
        file.write(os.urandom(8192))
        file.truncate(path.stat().st_size * 2 // 3)


def set_aside(path):
    """Do what one does with a damaged file: move it away, and what belongs to it."""
    for end in ("", "-wal", "-shm"):
        if (found := Path(f"{path}{end}")).exists():
            found.rename(f"{path}.damaged{end}")


def write_version(path, version):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE tenure_history SET value = ? WHERE key = 'schema'", (str(version),))


def test_a_file_in_every_trouble_costs_no_placement_and_no_record(stage, token, tmp_path):
    """Damaged before the start, locked, read-only, of a later schema, damaged again: all one life of a scheduler."""
    path = tmp_path / "history.db"
    path.write_bytes(os.urandom(8192))
    with scene(stage, token, tmp_path, str(path)) as made:
        with made.trouble("no SQLite file", from_the_start=True):
            pass
        set_aside(path)
        made.back()
        with locked(path):
            with made.trouble("locked by another process"):
                pass
            with unwritable(path), made.trouble("only be read"):
                pass
        made.back()
        write_version(path, 99)
        with made.trouble("later Tenure"):
            pass
        write_version(path, 2)
        made.back()
        made.lives()
        with made.trouble("no SQLite file"), locked(path):
            made.round()
            spoil(path)
        set_aside(path)
        made.back()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_costs_no_placement_and_no_record(stage, token, tmp_path):
    """While the disk is full records wait, and when there is room they are written."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        with scene(stage, token, tmp_path, str(folder / "history.db")) as made:
            made.round()
            with made.trouble("disk is full"):
                fill(folder / "ballast")
            (folder / "ballast").unlink()
            made.back()
            made.lives()
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(path):
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(512))


STEPPING = """
import time
def stepping(read, unit):
    return lambda: read() + int(open({offset!r}).read()) * unit
time.time, time.time_ns = stepping(time.time, 1), stepping(time.time_ns, 10**9)
from tenure.cli.main import main
main()
"""
"""A scheduler on a machine whose clock is off by as many seconds as a file says."""


def test_a_clock_that_steps_back_loses_nothing_and_tells_nothing_twice(stage, token, tmp_path, monkeypatch):
    """It steps back and forth by minutes under a running scheduler, and stands back when another one begins."""
    offset, address = tmp_path / "offset", str(tmp_path / "history.db")
    offset.write_text("0")
    stepping = [sys.executable, "-c", STEPPING.format(offset=str(offset))]
    monkeypatch.setattr(commands, "launched", lambda words, **how: subprocess.Popen([*stepping, *words], **how))
    with scene(stage, token, tmp_path, address) as made:
        for seconds in (0, -600, 600, -900):
            (tmp_path / "new").write_text(str(seconds))
            (tmp_path / "new").replace(offset)  # never empty: the scheduler reads it all the time
            made.round()
        made.scheduler.stop()
        made.scheduler.start()
        made.round()
        made.same()
        made.lives()
    minutes = Counter((record.queue, record.at) for record in records(address, "usage"))
    assert set(minutes.values()) <= {1}
    with open_history(address) as store:
        assert sum(row.evictions for row in statement_of(store).rows) == made.rounds


def test_a_live_history_loses_what_is_older_than_it_is_to_be_kept(stage, token, tmp_path):
    """And nothing of what happens; the log says how much went."""
    address = str(tmp_path / "history.db")
    now = time.time_ns() // 1000
    old = [(number, now - (40 + number) * DAY) for number in range(3)]
    young = Draft(now - 10 * DAY, "leader", payload=payload_of(identity="before"), key=key_of("young"))
    with open_history(address, write=True) as store:
        drafts = [Draft(at, "leader", payload=payload_of(identity="old"), key=key_of(number)) for number, at in old]
        store.append(Origin("kubernetes", "default"), [*drafts, young])
    with scene(stage, token, tmp_path, address, "--history-keep", "400d", "--history-keep-kind", "leader=30d") as made:

        def told():
            return [line["records"] for line in made.scheduler.lines() if "was pruned" in line.get("message", "")]

        wait_until(told, "nothing is told of what went", 60)
        assert told() == [3]
        made.round()
        made.same()
    assert records(address, "leader")[0].key == young.key


@pytest.fixture
def server():
    made = postgres.started()
    yield made
    made.close()


def test_a_server_that_is_away_for_longer_than_records_can_wait_leaves_a_gap_that_says_so(
    stage, token, tmp_path, server
):
    """Away at the start, read-only, away beyond all bounds: what the cluster still says is written, the rest named."""
    address = server.database()
    server.stop()
    with scene(stage, token, tmp_path, address, "--history-backlog", "60") as made:
        with made.trouble("cannot be reached", from_the_start=True):
            pass
        server.start()
        made.back()
        assert not made.metric("dropped_records_total")
        began = time.time_ns() // 1000  # on a busy machine more than can wait may come from here on
        name = address.rpartition("/")[2]
        with closing(psycopg.connect(address, autocommit=True)) as other, made.trouble("only lets it be read"):
            other.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                          "AND datname = current_database()")  # fmt: skip
        with closing(psycopg.connect(address, autocommit=True)) as other:
            other.execute("SET default_transaction_read_only = off")
            other.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        made.back()
        made.lives()
        server.stop()
        with made.trouble("cannot be reached"):
            while not made.metric("dropped_records_total"):
                made.round()
        ended = time.time_ns() // 1000
        server.start()
        made.back()
        dropped = made.metric("dropped_records_total")
    gaps = records(address, "gap")
    assert sum(gap.value for gap in gaps) == dropped
    spans = [(gap.payload["since"] - began, gap.payload["until"] - ended) for gap in gaps]
    assert all(since >= -SECOND and until <= 0 for since, until in spans), spans  # objects say whole seconds
    found = records(address, "submitted", "started", "ended")
    for name in made.jobs:
        kinds = [record.kind for record in found if record.workload == name]
        assert len(set(kinds)) == len(kinds), "something is there twice"
    with open_history(address) as store:
        assert sum(row.evictions for row in statement_of(store).rows) == made.rounds
