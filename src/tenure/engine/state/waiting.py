"""Who waits in each leaf queue, in the order in which the leaf serves them (spec: the cycle, order)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tenure.engine.journal import Journal
from tenure.engine.state.workloads import START, WorkloadState

Entry = tuple[Any, ...]
"""A place in a leaf's order; its last item is the workload."""


Put = tuple[WorkloadState, Entry | None, bool]
"""A workload, its new place (None: it waits no longer), and whether it had one, which is stale now."""


class WaitingLists:
    """Sorted entries by leaf.

    An entry counts only while it is its workload's present one; what is stale is skipped, and dropped between
    cycles. So within a transaction lists only grow, and undoing it takes out what was put in.

    ``watchers`` are sets to which every workload is added whose place may have changed, for caches to catch up.
    """

    def __init__(self, leaves: Iterable[int], journal: Journal) -> None:
        self.journal = journal
        self.entries: dict[int, list[Entry]] = {leaf: [] for leaf in leaves}
        self._stale = dict.fromkeys(self.entries, 0)
        self._serial = 0
        self.watchers: list[set[WorkloadState]] = []
        self._log: list[Put] = []
        self._unsorted: set[int] | None = None

    def put(self, state: WorkloadState) -> None:
        """Put a workload that has a next step into its leaf's order."""
        step = state.step
        assert step is not None
        ratio = 0.0 if step.kind <= START else _relative_surplus(state)
        entry = (-state.priority, step.kind, ratio, state.queued_at, state.key, self.next_serial(), state)
        had = state.entry is not None
        self.journal.set(state, "entry", entry)
        if self._unsorted is None:
            insort(self.entries[state.leaf], entry)
        else:
            self._unsorted.add(state.leaf)
            self.entries[state.leaf].append(entry)
        self._note(state, entry, had=had)

    def _note(self, state: WorkloadState, entry: Entry | None, *, had: bool) -> None:
        """Tell the watchers, and remember what is to be taken out again where this is undone."""
        self._stale[state.leaf] += had
        if self.journal.depth:
            self._log.append((state, entry, had))
        for told in self.watchers:
            told.add(state)

    @contextmanager
    def many(self) -> Iterator[None]:
        """Let many be put, and each leaf be sorted once at the end; nothing may read the lists before."""
        self._unsorted = set()
        try:
            yield
        finally:
            for leaf in self._unsorted:
                self.entries[leaf].sort()
            self._unsorted = None

    def drop(self, state: WorkloadState) -> None:
        """Let a workload wait no longer."""
        if state.entry is not None:
            self.journal.set(state, "entry", None)
            self._note(state, None, had=True)

    def mark(self) -> int:
        """Give the mark of a checkpoint."""
        return len(self._log)

    def rollback(self, mark: int, undone: list[Put] | None = None) -> None:
        """Take out everything that was put in since ``mark``; ``undone`` gets what that was, the last first."""
        log = self._log
        while len(log) > mark:
            state, entry, had = put = log.pop()
            self._stale[state.leaf] -= had
            if undone is not None:
                undone.append(put)
            if entry is not None:
                entries = self.entries[state.leaf]
                del entries[bisect_left(entries, entry)]
            for told in self.watchers:
                told.add(state)

    def repeat(self, undone: list[Put]) -> None:
        """Put in again what was taken out."""
        for state, entry, had in reversed(undone):
            if entry is not None:
                insort(self.entries[state.leaf], entry)
            self._note(state, entry, had=had)

    def commit(self) -> None:
        """Keep what was put in; to be told when the outermost checkpoint closes."""
        self._log.clear()

    def next_serial(self) -> int:
        """Give a number that was not given before."""
        self._serial += 1
        return self._serial

    def all(self) -> list[WorkloadState]:
        """Give all workloads that wait for a step, leaf by leaf, in order."""
        return [e[-1] for leaf in sorted(self.entries) for e in self.entries[leaf] if e[-1].entry is e]

    def compact(self) -> list[int]:
        """Drop stale entries where there are many, and give these leaves; within a transaction nothing is dropped."""
        if self.journal.depth:
            return []
        compacted = []
        for leaf, stale in self._stale.items():
            if stale and 4 * stale > len(entries := self.entries[leaf]):
                entries[:] = [e for e in entries if e[-1].entry is e]
                self._stale[leaf] = 0
                compacted.append(leaf)
        return compacted


def anything_waits(lists: WaitingLists) -> bool:
    """Whether some workload waits for a step."""
    return any(e[-1].entry is e for entries in lists.entries.values() for e in entries)


def _relative_surplus(state: WorkloadState) -> float:
    running = sum(g.running for g in state.root.leaves())
    core = state.root.size
    return (running - core) / max(core, 1)
