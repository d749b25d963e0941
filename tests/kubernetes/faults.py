"""What may go wrong between a client and the API server, and a script that says when.

A fault is injected into requests that match, as many times as it says, after as many as it says:

    script.add(Refuse(409), write=True, path="/pods/.*/eviction", times=2)
    script.add(LoseAnswer(), write=True, skip=3)
    script.add(CutWatch(events=5), watch=True)
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_NO_WRITES = re.compile(r"/apis/(authentication|authorization)\.k8s\.io/")


@dataclass(frozen=True)
class Request:
    """A request as the proxy sees it. ``write`` counts the writes from 1; 0 for what only reads."""

    method: str
    path: str
    body: bytes = b""
    write: int = 0

    @property
    def is_watch(self) -> bool:
        """Whether the answer is a stream of events."""
        return self.method == "GET" and re.search(r"[?&]watch=(true|1)\b", self.path) is not None

    @property
    def is_write(self) -> bool:
        """Whether it changes something."""
        return self.method in WRITES and not _NO_WRITES.match(self.path)


class Fault:
    """Something that goes wrong."""


@dataclass(frozen=True)
class Refuse(Fault):
    """The request is answered with an error, and never reaches the server."""

    status: int
    message: str = "injected"
    retry_after: int | None = None

    def body(self) -> dict[str, Any]:
        """Give the ``Status`` object that says so."""
        return {
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "code": self.status,
            "reason": _REASONS.get(self.status, "InternalError"),
            "message": self.message,
        }


_REASONS = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 503: "ServiceUnavailable", 504: "Timeout"}


@dataclass(frozen=True)
class DropRequest(Fault):
    """The connection closes before the request reaches the server."""


@dataclass(frozen=True)
class LoseAnswer(Fault):
    """The server does what is asked, but its answer is lost: the connection closes after ``seconds`` of silence."""

    seconds: float = 0.0


@dataclass(frozen=True)
class Delay(Fault):
    """The request reaches the server later."""

    seconds: float


@dataclass(frozen=True)
class CutWatch(Fault):
    """A watch breaks off after so many events; ``torn``: in the middle of the next one."""

    events: int = 0
    torn: bool = False


@dataclass(frozen=True)
class DelayWatch(Fault):
    """Each event of a watch comes later."""

    seconds: float


@dataclass(frozen=True)
class RepeatWatch(Fault):
    """Each event of a watch comes ``times`` times."""

    times: int = 2


@dataclass(frozen=True)
class ExpireWatch(Fault):
    """After so many events (one at least) a watch says that its version is too old (410 in the stream), and ends."""

    events: int = 1


@dataclass
class _Rule:
    fault: Fault
    matches: Callable[[Request], bool]
    times: int
    skip: int


@dataclass
class Script:
    """Which faults are still to come. Safe to use from several threads."""

    _rules: list[_Rule] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(
        self,
        fault: Fault,
        *,
        path: str = "",
        body: bytes = b"",
        method: str | None = None,
        write: bool | None = None,
        watch: bool | None = None,
        times: int = 1,
        skip: int = 0,
    ) -> None:
        """Inject a fault into the next ``times`` requests that match, after the first ``skip`` of them.

        ``path`` is a regular expression that is searched for in the path with its query, ``body`` is what the body
        holds; None matches either.
        """
        pattern = re.compile(path)

        def matches(request: Request) -> bool:
            return (
                pattern.search(request.path) is not None
                and body in request.body
                and method in (None, request.method)
                and write in (None, request.is_write)
                and watch in (None, request.is_watch)
            )

        with self._lock:
            self._rules.append(_Rule(fault, matches, times, skip))

    def add_random(
        self, seed: int, faults: Sequence[Fault], rate: float, *, times: int, write: bool | None = None
    ) -> None:
        """Inject one of some faults into a share of all requests, the same ones for the same seed and requests."""
        chance = random.Random(seed)
        for _ in range(times):
            skip = int(chance.expovariate(rate))
            self.add(chance.choice(list(faults)), write=write, skip=skip)

    def clear(self) -> None:
        """Let nothing go wrong any more."""
        with self._lock:
            self._rules.clear()

    @property
    def pending(self) -> int:
        """How many faults are still to come."""
        with self._lock:
            return sum(rule.times for rule in self._rules)

    def next_for(self, request: Request) -> Fault | None:
        """Give the fault of a request, and count it as come. Of several rules the first that is due counts."""
        with self._lock:
            for rule in self._rules:
                if not rule.matches(request):
                    continue
                if rule.skip:
                    rule.skip -= 1
                    continue
                rule.times -= 1
                if not rule.times:
                    self._rules.remove(rule)
                return rule.fault
        return None
