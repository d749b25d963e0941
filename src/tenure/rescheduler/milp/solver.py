"""The other side of the solver's process: it is started when it is first needed, and killed when it takes too long."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tenure.rescheduler.milp.program import MixedIntegerProgram
from tenure.rescheduler.milp.worker import HEADER, INFEASIBLE, OPTIMAL, frame, parse

GRACE = 5.0
"""Seconds that the process has beyond its time limit, which it watches itself, before it is killed."""
_PIECE = 1 << 16
_LONGEST = 1 << 40
"""Bytes: what begins with a greater length is no answer."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The solution of a program: values (None if none were found), the proven bound, and whether the search ended.

    ``seconds`` are those of the processor. ``failure`` says what went wrong with the process, empty if nothing did;
    ``refused``: nothing did, but what may be spent is spent.
    """

    values: NDArray[np.float64] | None
    bound: float
    optimal: bool
    infeasible: bool
    nodes: int = 0
    failure: str = ""
    refused: bool = False
    seconds: float = 0.0


class Solver(Protocol):
    """A solver of mixed-integer programs."""

    def solve(self, program: MixedIntegerProgram, *, node_limit: int, time_limit: float) -> Solution:
        """Solve a program, within so many nodes of the search tree and, as a guard, so many seconds."""


class ProcessSolver:
    """HiGHS, in a process of its own."""

    def __init__(self, command: tuple[str, ...] = (sys.executable, "-m", "tenure.rescheduler.milp.worker")) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def _launch(self) -> None:
        """Start the process if it does not run."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(  # noqa: S603  our own module, no input of anybody's
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
            )

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        process.wait()

    def __enter__(self) -> Self:
        """Use it for as long as the block lasts."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.close()

    def solve(self, program: MixedIntegerProgram, *, node_limit: int, time_limit: float) -> Solution:
        """Solve a program; whatever happens to the process is told and not raised."""
        message = {
            "cost": program.cost, "upper": program.upper, "rows": program.rows, "columns": program.columns,
            "values": program.values, "low": program.low, "high": program.high,
            "start": program.start, "broken": program.broken, "gap": np.float64(program.gap),
            "loose": np.bool_(program.loose), "relaxed": np.bool_(program.relaxed),
            "node_limit": np.int64(node_limit), "time_limit": np.float64(time_limit),
        }  # fmt: skip
        try:
            self._launch()
            answer = self._exchange(frame(message), time.monotonic() + time_limit + GRACE)
        except TimeoutError:
            self.close()
            return _nothing(f"the solver was stopped after {time_limit:.0f} s")
        except (OSError, ValueError, EOFError) as error:
            self.close()
            return _nothing(f"the solver failed: {error}")
        except BaseException:
            self.close()  # what is still to come of the answer would be taken for that of the next program
            raise
        return _solution(answer)

    def _exchange(self, data: bytes, deadline: float) -> dict[str, Any]:
        """Send a message and wait for the answer, at most until the deadline."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        view = memoryview(data)
        os.set_blocking(process.stdin.fileno(), False)
        with selectors.DefaultSelector() as waiting:
            waiting.register(process.stdin, selectors.EVENT_WRITE)
            while view:
                _wait(waiting, deadline)
                view = view[os.write(process.stdin.fileno(), view[:_PIECE]) :]
        with selectors.DefaultSelector() as waiting:
            waiting.register(process.stdout, selectors.EVENT_READ)
            (length,) = HEADER.unpack(_read(process.stdout.fileno(), HEADER.size, waiting, deadline))
            if length > _LONGEST:
                raise ValueError("what it said is no answer")
            return parse(_read(process.stdout.fileno(), length, waiting, deadline))


_left: list[tuple[int, ProcessSolver]] = []
"""The solver that is not in use now, with the process that left it: to start one takes as long as ten small plans."""


def take_up() -> ProcessSolver:
    """Give the solver that was left, or one whose process has yet to start."""
    try:
        owner, solver = _left.pop()
    except IndexError:
        return ProcessSolver()
    return solver if owner == os.getpid() else ProcessSolver()  # a fork would share the pipes of its parent


def leave(solver: ProcessSolver) -> None:
    """Leave a solver for the next plans; a second one is ended."""
    if _left:
        solver.close()
    else:
        _left.append((os.getpid(), solver))


def _wait(waiting: selectors.BaseSelector, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0 or not waiting.select(left):
        raise TimeoutError


def _read(stream: int, length: int, waiting: selectors.BaseSelector, deadline: float) -> bytes:
    data = bytearray()
    while len(data) < length:
        _wait(waiting, deadline)
        piece = os.read(stream, min(_PIECE, length - len(data)))
        if not piece:
            raise EOFError("it ended before it had answered")
        data += piece
    return bytes(data)


def _nothing(failure: str) -> Solution:
    return Solution(None, -np.inf, optimal=False, infeasible=False, failure=failure)


def _solution(answer: dict[str, Any]) -> Solution:
    status, values = int(answer["status"]), answer["x"]
    return Solution(
        values if len(values) else None,
        float(answer["bound"]),
        optimal=status == OPTIMAL,
        infeasible=status == INFEASIBLE,
        nodes=int(answer["nodes"]),
        seconds=float(answer["seconds"]),
    )
