"""A PostgreSQL server of the test's own on loopback, in a folder of its own, run by an unprivileged user."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
USERS = ("postgres", "nobody")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Postgres:
    """A server that can be stopped and started again; its data stays."""

    def __init__(self, programs):
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="tenure-postgres-"))
        self.data = self.folder / "data"
        self.port = free_port()
        self.user = None
        self.process = None
        self.databases = 0
        if os.geteuid() == 0:  # the server refuses to run as root
            self.user = next(name for name in USERS if _there(name))
            shutil.chown(self.folder, self.user)
        self._run("initdb", "-D", self.data, "-U", "tenure", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")

    def _run(self, program, *words):
        done = subprocess.run(
            [self.programs / program, *map(str, words)], user=self.user, cwd=self.folder, capture_output=True,
            text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self):
        log = (self.folder / "log").open("ab")
        words = [
            "-D",
            self.data,
            "-h",
            "127.0.0.1",
            "-p",
            self.port,
            "-k",
            self.folder,
            "-F",
            "-c",
            "max_connections=40",
        ]
        self.process = subprocess.Popen(
            [self.programs / "postgres", *map(str, words)], user=self.user, cwd=self.folder, stdout=log, stderr=log
        )
        until = time.monotonic() + 60
        while subprocess.run(
            [self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False
        ).returncode:
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.05)
        return self

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        self.process.wait(60)

    def database(self):
        """Make a database; gives its address."""
        self.databases += 1
        name = f"history{self.databases}"
        self._run("createdb", "-h", "127.0.0.1", "-p", self.port, "-U", "tenure", name)
        return f"postgresql://tenure@127.0.0.1:{self.port}/{name}"

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def _there(name):
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def started():
    """Start a server; without its programs the test is skipped, but never where it is required."""
    if not PROGRAMS and os.environ.get("TENURE_POSTGRESQL") != "required":
        pytest.skip("no PostgreSQL server here: run 'make postgresql' (Debian's package) to have these tests run")
    assert PROGRAMS, "TENURE_POSTGRESQL=required, and there is no /usr/lib/postgresql"
    return Postgres(PROGRAMS[-1]).start()
