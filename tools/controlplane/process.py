"""One program of the control plane, as a process that can be stopped, killed, paused and started again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

HOST = "127.0.0.1"
_STOP_SECONDS = 15.0
_LOOK_EVERY = 0.05
SPARING = {"GOGC": "1600", "GOMEMLIMIT": "1GiB"}
"""Go collects garbage rarely, as long as there is memory: with 400 in place of 1600 an API server took a tenth more."""

ON_ONE = {"GOMAXPROCS": "1"}
"""Go uses one processor, and wakes no other to look for work: a fifth of what such a program takes while it idles.

The API server uses all there are, for many ask it at a time.
"""


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Wait until a condition holds.

    Raises
    ------
    TimeoutError
        If it does not within the time; the message says what was waited for.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(_LOOK_EVERY)


class StartError(RuntimeError):
    """A program ended, or did not become ready in time. The message holds the end of its log."""


class Process:
    """A program with its log file. It dies with the process that started it, however that ends."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path) -> None:
        self.name = name
        self.command = [str(word) for word in command]
        self.log = log
        self.sparing = SPARING if name == "kube-apiserver" else SPARING | ON_ONE
        self._process: subprocess.Popen[bytes] | None = None
        self._told = False

    @property
    def pid(self) -> int:
        """The process id while it runs."""
        assert self._process is not None, f"{self.name} does not run"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def has_ended(self) -> bool:
        """Whether it was started, and has ended though it was not told to."""
        return self._process is not None and not self._told and self._process.poll() is not None

    def start(self) -> None:
        """Start it; what it writes is appended to its log."""
        assert not self.is_running, f"{self.name} runs already"
        self._told = False
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*_dies_with_parent(), *self.command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env={**self.sparing, **os.environ},
            )  # fmt: skip

    def wait_until(self, ready: Callable[[], bool], seconds: float = 300.0) -> None:
        """Wait until it says that it is ready.

        Raises
        ------
        StartError
            If it ends before, or takes longer.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.is_running:
                raise StartError(f"{self.name} has ended:\n{self.last_words()}")
            if time.monotonic() > deadline:
                raise StartError(f"{self.name} was not ready within {seconds:g} s:\n{self.last_words()}")
            time.sleep(_LOOK_EVERY)

    def signal(self, number: int) -> None:
        """Send a signal, such as SIGSTOP and SIGCONT."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def stop(self) -> None:
        """End it as an administrator would; by force if it does not end."""
        self._told = True
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._told = True
        self.signal(signal.SIGKILL)
        self.wait()

    def wait(self, seconds: float | None = None) -> int | None:
        """Wait for its end and give the exit code."""
        return self._process.wait(seconds) if self._process is not None else None

    def last_words(self, lines: int = 20) -> str:
        """Give the end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def _dies_with_parent() -> list[str]:
    """Have the kernel end the program when its parent ends, where there is a command for that."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
