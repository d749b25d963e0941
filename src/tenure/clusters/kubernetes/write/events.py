"""Events: what was done and why something waits, for whoever looks at an object. They may be late or missing."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tenure.clusters.kubernetes.client.leader import NotLeaderError, format_micro
from tenure.clusters.kubernetes.client.requests import ApiError, Client

MOST_WAITING = 2000
"""So many events may wait to be written; then the oldest of the namespace of which most wait is dropped."""

SAME_SECONDS = 600.0
"""The same event of the same object is written once in so long."""

PER_SECOND = 200.0
"""Events are written at most this fast: as many as pods are bound."""

MOST_NOTE = 1000

CONTROLLER: Final = "tenure.dev/scheduler"
"""Who says it."""


class Subject(NamedTuple):
    """The subject of an event."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class WaitingEvents:
    """The events that wait to be written: namespaces take turns, so that none waits for all that is said of another."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, deque[dict[str, Any]]] = {}
        self._count = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Give how many there are."""
        return self._count

    def add(self, body: dict[str, Any]) -> None:
        """Let one wait."""
        with self._lock:
            self._by_namespace.setdefault(body["metadata"]["namespace"], deque()).append(body)
            self._count += 1

    def take(self) -> dict[str, Any]:
        """Take the oldest of the namespace whose turn it is; there has to be one."""
        with self._lock:
            namespace = next(iter(self._by_namespace))
            listed = self._by_namespace.pop(namespace)
            body = listed.popleft()
            if listed:
                self._by_namespace[namespace] = listed  # behind the others
            self._count -= 1
            return body

    def drop(self) -> None:
        """Drop the oldest of the namespace of which most wait."""
        with self._lock:
            namespace = max(self._by_namespace, key=lambda name: len(self._by_namespace[name]))
            self._by_namespace[namespace].popleft()
            if not self._by_namespace[namespace]:
                del self._by_namespace[namespace]
            self._count -= 1


class Events:
    """The writer of events, in a thread of its own, so that nothing waits for it."""

    def __init__(
        self, client: Client, instance: str, *, wall: Callable[[], int] = lambda: time.time_ns() // 1000
    ) -> None:
        self.client = client
        self.instance = instance
        self.dropped = 0
        self._wall = wall
        self._waiting = WaitingEvents()
        self._told: dict[tuple[Subject, str, str], float] = {}
        self._most_told = MOST_WAITING
        self._there = threading.Event()
        self._stopped = False
        self._serial = 0
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._thread.start()

    def tell(self, subject: Subject, reason: str, note: str, *, is_warning: bool = False) -> None:
        """Say something about an object, unless the same was said a short while ago."""
        now = time.monotonic()
        key = (subject, reason, note)
        if now - self._told.get(key, -SAME_SECONDS) < SAME_SECONDS:
            return
        if len(self._told) > self._most_told:
            self._told = {k: at for k, at in self._told.items() if now - at < SAME_SECONDS / 10}
            self._most_told = max(MOST_WAITING, 2 * len(self._told))  # so that looking through them stays rare
        self._told[key] = now
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.drop()
            self.dropped += 1
        self._waiting.add(self._body(subject, reason, note, is_warning=is_warning))
        self._there.set()

    def stop(self, seconds: float = 2.0) -> None:
        """Write what waits, for at most so many seconds, and end with what is being written."""
        until = time.monotonic() + seconds
        while self._waiting and time.monotonic() < until:
            time.sleep(0.02)
        self._stopped = True
        self._there.set()
        self._thread.join(max(0.0, until - time.monotonic()))

    def _body(self, subject: Subject, reason: str, note: str, *, is_warning: bool) -> dict[str, Any]:
        self._serial += 1
        at = self._wall()
        namespace = subject.namespace or "default"
        regarding = {
            "apiVersion": subject.api_version, "kind": subject.kind, "name": subject.name, "uid": subject.uid,
            "namespace": subject.namespace,
        }  # fmt: skip
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{subject.name[:200]}.{at:x}{self._serial:x}", "namespace": namespace},
            "eventTime": format_micro(at),
            "reportingController": CONTROLLER,
            "reportingInstance": self.instance,
            "action": reason,
            "reason": reason,
            "regarding": {key: value for key, value in regarding.items() if value},
            "note": note[:MOST_NOTE],
            "type": "Warning" if is_warning else "Normal",
        }

    def _run(self) -> None:
        while not self._stopped:
            self._there.wait()
            self._there.clear()
            while self._waiting and not self._stopped:
                body = self._waiting.take()
                try:
                    self.client.create(
                        f"/apis/events.k8s.io/v1/namespaces/{body['metadata']['namespace']}/events", body
                    )
                except (ApiError, NotLeaderError):
                    self.dropped += 1  # an event is not worth more
                time.sleep(1.0 / PER_SECOND)
