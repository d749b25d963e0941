"""The console's side of the process that plays cycles: one question at a time, each within its time."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from dataclasses import replace
from typing import Any, Final

from tenure.model.cluster import Cluster
from tenure.web.playing.ordered_lock import OrderedLock
from tenure.web.playing.played import read, write

LIMIT: Final = 60.0
"""Seconds that a question may take; then the process is ended, and another one begins with the next question."""

PIECE: Final = 500
"""Workloads that are handed over at a time."""

BREATH: Final = 0.002
"""Seconds between two pieces."""

MOST_WAITING: Final = 8
"""What-ifs that may wait for their turn, and as many other questions."""

WHAT_IF: Final = "plan"
"""The question of a user's own; all others are those of pages, which all users share."""


class BusyError(Exception):
    """Too many ask at once."""


class FailedError(Exception):
    """Playing failed: unexpectedly, or it took too long. ``last`` is what was played before that, if anything was."""

    last: Any | None = None

    @property
    def kind(self) -> str:
        """What happened, without what it happened to: names may stand in the rest of the text."""
        return str(self).partition(":")[0]


class WrongError(Exception):
    """What was asked for cannot be; ``lines`` say why, one for each problem."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


class Player:
    """Plays cycles of one cluster at a time in a process of its own. Safe to use from several threads.

    What-ifs wait for each other before they wait for their turn: what pages need comes after one of them at most.
    """

    def __init__(self, limit: float = LIMIT) -> None:
        self.limit = limit
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = OrderedLock()
        self._what_ifs = OrderedLock()
        self._waiting = [threading.BoundedSemaphore(MOST_WAITING) for _ in range(2)]
        self._kept: Cluster | None = None

    def ask(self, cluster: Cluster, task: str, *arguments: Any) -> Any:
        """Give the answer to a question about a cluster.

        Raises
        ------
        BusyError
            Too many wait already.
        FailedError
            It failed, or took longer than ``limit`` seconds.
        WrongError
            What was asked for cannot be.
        """
        waiting = self._waiting[task == WHAT_IF]
        if not waiting.acquire(blocking=False):
            raise BusyError("too many plans are being played; try again in a moment")
        try:
            with self._what_ifs if task == WHAT_IF else contextlib.nullcontext(), self._turn:
                return self._ask(cluster, task, arguments)
        finally:
            waiting.release()

    def _ask(self, cluster: Cluster, task: str, arguments: tuple[Any, ...]) -> Any:
        process = self._running()
        began = time.monotonic()
        ended = threading.Timer(self.limit, process.kill)
        ended.start()
        try:
            if self._kept is not cluster:
                self._hand_over(process, cluster)
                self._kept = cluster
            kind, value = self._exchange(process, task, arguments)
        except (OSError, EOFError):
            self._end()
            took_long = time.monotonic() - began >= self.limit
            why = f"it took longer than {self.limit:.0f} s" if took_long else "the process that plays it ended"
            raise FailedError(why) from None
        finally:
            ended.cancel()
        if kind == "wrong":
            raise WrongError(value)
        if kind == "failed":
            raise FailedError(value)
        return value

    def _hand_over(self, process: subprocess.Popen[bytes], cluster: Cluster) -> None:
        """Give the process a cluster piece by piece: whoever asks for a page meanwhile need not wait for all of it."""
        self._exchange(process, "keep", (replace(cluster, workloads=()),))
        for first in range(0, len(cluster.workloads), PIECE):
            self._exchange(process, "add", (cluster.workloads[first : first + PIECE],))
            time.sleep(BREATH)
        self._exchange(process, "settle", ())

    def _exchange(self, process: subprocess.Popen[bytes], task: str, arguments: tuple[Any, ...]) -> Any:
        assert process.stdin is not None
        assert process.stdout is not None
        write(process.stdin, (task, arguments))
        return read(process.stdout)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(
                (sys.executable, "-m", "tenure.web.playing.played"),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        return self._process

    def _end(self) -> None:
        process, self._process, self._kept = self._process, None, None
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        process.wait()

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
        with self._turn:
            self._end()
