"""What would follow if a set went: sets after which another cause would evict for one of their tasks come last.

A set that has a follow-up is told apart by a *cut*: it may not hold a task of the workload for which something would
be evicted, unless it holds one of those tasks as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.victims.rules.pieces import Piece

Follow = Callable[[Sequence[TaskState]], Sequence["FollowUpCut"]]
"""Says of tasks that would be evicted what would follow; nothing where nothing does."""


@dataclass(frozen=True, slots=True)
class FollowUpCut:
    """For ``victim``, one of the set, ``evicts`` would be evicted next."""

    victim: WorkloadState
    evicts: frozenset[TaskState]

    def prevented_by(self, piece: Piece) -> bool:
        """Whether with this piece what would be evicted next is gone already."""
        return not self.evicts.isdisjoint(piece.tasks)

    def without(self, tasks: Collection[TaskState]) -> FollowUpCut:
        """Give the cut that some tasks do not prevent: what is taken has to be needed."""
        return replace(self, evicts=self.evicts.difference(tasks))


def respects(pieces: Iterable[Piece], cuts: Sequence[FollowUpCut]) -> bool:
    """Whether a set is none of those that are told apart."""
    chosen = list(pieces) if cuts else []
    return not any(
        any(cut.victim is p.workload for p in chosen) and not any(cut.prevented_by(p) for p in chosen) for cut in cuts
    )
