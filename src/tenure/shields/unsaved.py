"""Minimum runtimes that shield work which does not save itself.

Such a shield sends evictions to work that has run for longer, and that loses more if it does not save itself either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tenure.engine.journal import Journal
from tenure.engine.state.queues import QueueTree
from tenure.engine.state.session import Session
from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.settings import Settings
from tenure.model.workload import Workload
from tenure.shields.min_runtime import any_minimum, longest_minimum


class UnsavedBehindShield(NamedTuple):
    """A queue below which minimum runtimes shield work: so many workloads, of which some name no checkpoints."""

    queue: str
    unsaved: int
    shielded: int

    @property
    def message(self) -> str:
        """Say it, with what would be better."""
        number = f"{self.shielded} workload{'s' * (self.shielded != 1)}"
        return f"{self.queue}: {SHIELDED} ({self.unsaved} of {number})"


SHIELDED = (
    "a minimum runtime shields workloads whose checkpoints are not known, so evictions hit those that have run for "
    "longer and lose more: set their checkpoints, or minRuntime.mode: price"
)


def unsaved_behind_shields(
    settings: Settings, queues: QueueTree, workloads: Iterable[tuple[int, bool]]
) -> list[UnsavedBehindShield]:
    """Count by top-level queue what minimum runtimes shield.

    Parameters
    ----------
    settings
        Node pool values and modes.
    queues
        The tree.
    workloads
        The leaf of each workload that may be evicted, and whether it says that it makes checkpoints.
    """
    if not any_minimum(settings, queues):
        return []
    found = Counter(workloads)
    unsaved: Counter[int] = Counter()
    shielded: Counter[int] = Counter()
    for (leaf, saves), count in found.items():
        if longest_minimum(settings, queues, leaf, "shield"):
            top = queues.path[leaf][-1]
            shielded[top] += count
            unsaved[top] += 0 if saves else count
    return [
        UnsavedBehindShield(queues.queues[top].name, unsaved[top], count)
        for top, count in sorted(shielded.items())
        if unsaved[top]
    ]


def unsaved_in(session: Session) -> list[UnsavedBehindShield]:
    """Count what minimum runtimes shield on a session."""
    states = session.workloads.values()
    evictable = ((w.leaf, saves(w.model)) for w in states if w.leaf >= 0 and not w.fixed)
    return unsaved_behind_shields(session.settings, session.queues, evictable)


def unsaved_of(cluster: Cluster) -> list[UnsavedBehindShield]:
    """Count what minimum runtimes shield in a cluster."""
    queues = QueueTree(list(cluster.queues), [], Journal())
    evictable = (
        (queues.index[name], saves(w))
        for w in cluster.workloads
        if w.is_preemptible and (name := w.queue or DEFAULT_QUEUE) in queues.index
    )
    return unsaved_behind_shields(cluster.settings, queues, evictable)


def saves(workload: Workload) -> bool:
    """Whether a workload says that it makes checkpoints."""
    return workload.checkpoint is not None and workload.checkpoint.made
