"""What would follow if a set went: sets after which another cause would evict for one of their tasks come last.

A set that has a follow-up is told apart by a *cut*: it may not hold a task of the workload for which something would
be evicted, unless it holds one of those tasks as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from tenure.engine.workloads import TaskState, WorkloadState
from tenure.quota.units import EvictionUnit

Follow = Callable[[Sequence[TaskState]], Sequence["FollowUpCut"]]
"""Says of tasks that would be evicted what would follow; nothing where nothing does."""


@dataclass(frozen=True, slots=True)
class FollowUpCut:
    """For ``victim``, one of the set, ``evicts`` would be evicted next."""

    victim: WorkloadState
    evicts: frozenset[TaskState]

    def concerns(self, unit: EvictionUnit) -> bool:
        """Whether a unit is one for which something would be evicted."""
        return unit.workload is self.victim

    def prevented_by(self, unit: EvictionUnit) -> bool:
        """Whether with this unit what would be evicted next is gone already."""
        return not self.evicts.isdisjoint(unit.tasks)

    def without(self, tasks: Collection[TaskState]) -> FollowUpCut:
        """Give the cut that some tasks do not prevent: what is taken has to be needed."""
        return replace(self, evicts=self.evicts.difference(tasks))


def respects(units: Iterable[EvictionUnit], cuts: Sequence[FollowUpCut]) -> bool:
    """Whether a set is none of those that are told apart."""
    chosen = list(units) if cuts else []
    return not any(
        any(cut.concerns(t) for t in chosen) and not any(cut.prevented_by(t) for t in chosen) for cut in cuts
    )
