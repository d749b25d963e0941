"""What a dry run comes to: a set that pays, or why it does not, and what would follow from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tenure.engine.refusal import Refusal
from tenure.engine.state.session import Session
from tenure.engine.state.transaction import Undone
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.model.settings import Cause
from tenure.victims.rules.pieces import Piece

NO_ROOM, NO_LANDING, IN_VAIN, TAKES_BACK, TAKEN_AGAIN = "no-room", "no-landing", "in-vain", "takes-back", "taken-again"

LANDLESS = Refusal(NO_LANDING, "what would have to move finds no place to land")


class FollowUp(NamedTuple):
    """A follow-up: what one cause would evict next for a victim of a set; ``cost`` and ``growth`` as of a `Piece`."""

    of: WorkloadState
    cause: Cause
    evict: tuple[TaskState, ...]
    cost: int
    growth: int


Enough = Callable[[Sequence[FollowUp]], bool]
"""Whether it need not be known what else follows from a set, beside these follow-ups."""


def to_the_end(_: Sequence[FollowUp]) -> bool:
    """Ask for all that follows."""
    return False


class Consequences(Protocol):
    """The judgement of what all enabled causes would do once a set has gone."""

    def judge(
        self, contender: WorkloadState, cause: Cause, result: AcceptedSet, shares: CurrentShares, *,
        enough: Enough | None = None, accepted: bool = False,
    ) -> Refusal | None:  # fmt: skip
        """Refuse a set that is carried out on the session, unless it was ``accepted`` before.

        With ``enough``, note in ``result`` what follows from it, until that is enough.
        """


@dataclass(slots=True)
class AcceptedSet:
    """A set that pays: who is evicted, whose placement is withdrawn, and who is placed, bound or nominated.

    ``growth``: the contender's step is no more than another task of its surplus. ``undone`` is what it does on the
    session, once played through. ``follow_ups`` are what enabled causes would do next for its victims, None where
    this was not asked; ``all_known``: there are no others. ``may_follow``: there could be some.
    """

    pieces: list[Piece]
    placed: list[TaskState]
    growth: bool = False
    evicted: list[TaskState] = field(default_factory=list)
    withdrawn: list[TaskState] = field(default_factory=list)
    undone: Undone | None = None
    follow_ups: tuple[FollowUp, ...] | None = None
    all_known: bool = True
    may_follow: bool = False

    @property
    def victims(self) -> list[WorkloadState]:
        """The workloads of which something is evicted."""
        return list(dict.fromkeys(t.workload for t in self.evicted))


def is_back(task: TaskState) -> bool:
    """Whether an evicted task landed where it stood: on its node, and, with a part of a GPU, on its devices.

    Whole GPUs of one node are as good as each other.
    """
    same = task.cls.milli is None or task.nominated_devices == task.leaving_devices
    return task.nominated == task.leaving >= 0 and same


def gone_for_now(
    session: Session, placed: list[TaskState], evicted: Collection[TaskState] = frozenset()
) -> list[TaskState]:
    """Withdraw what this plan evicts for another reason and would seat where it stood; gives the others.

    The next cycle may place it: one plan does not evict a task and give it its place again. Those ``evicted`` by the
    very set that is tried are judged by it.
    """
    back = {t.workload for t in placed if is_back(t) and t not in evicted}
    if not back:
        return placed
    for task in placed:
        if task.workload in back:
            session.withdraw(task)
    for workload in back:
        session.refresh(workload)
    return [t for t in placed if t.workload not in back]
