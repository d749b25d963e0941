"""Finds out, beside the loop, what came of evictions of which this process has heard no answer.

They were announced in the cluster's log by a process that ended, or whose answer was lost. Few are asked about: what
this process did itself it knows, and what the log calls done was done.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from tenure.clusters.kubernetes.read.eviction_log import EvictionEntry
from tenure.clusters.kubernetes.read.proofs import EvictionProof

MEMORY: Final = 600_000_000
"""An API server forgets what became of a pod after some minutes: what is older (µs) is not asked about."""

MOST: Final = 5_000
"""Entries that wait to be asked about at most; the others are asked about later."""

PAUSE: Final = 1.0
"""Seconds before an API server that gave no answer is asked again."""

FoundProof = tuple[EvictionEntry, EvictionProof]
"""An entry of the eviction log, and what came of it."""


class ProofInquiries:
    """A thread that asks, one after the other. ``ask`` gives what became of an entry; an OSError: not known yet."""

    def __init__(self, ask: Callable[[EvictionEntry], EvictionProof]) -> None:
        self._ask = ask
        self._waiting: deque[EvictionEntry] = deque()
        self._asked: set[tuple[str, str]] = set()
        self._found: list[FoundProof] = []
        self._changed = threading.Condition()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def want(self, entry: EvictionEntry) -> None:
        """Ask about an entry, if that is not done already; never waits."""
        name = entry.uid, entry.at
        with self._changed:
            if name in self._asked or len(self._asked) >= MOST:
                return
            self._asked.add(name)
            self._waiting.append(entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="proofs", daemon=True)
                self._thread.start()
            self._changed.notify()

    def take(self) -> list[FoundProof]:
        """Give what was found out since the last time; what is still open may be asked about again."""
        with self._changed:
            found, self._found = self._found, []
            self._asked.difference_update((entry.uid, entry.at) for entry, _ in found)
        return found

    def stop(self) -> None:
        """End."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopped)
                if self._stopped:
                    return
                entry = self._waiting[0]
            try:
                proof = self._ask(entry)
            except OSError:
                with self._changed:
                    self._changed.wait_for(lambda: self._stopped, PAUSE)
                continue
            except Exception:  # noqa: BLE001  an answer that cannot be read says nothing, and holds up no other
                proof = EvictionProof.UNKNOWN
            with self._changed:
                self._waiting.popleft()
                self._found.append((entry, proof))
