"""The rules of each cause: which workloads are candidates, and what may be taken from which."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import mul
from typing import ClassVar

from tenure.engine.refusal import Refusal
from tenure.engine.serving.nominations import nominated_tasks
from tenure.engine.state.queues import Amount
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.fairness.reclaiming import Owed, ReclaimRules
from tenure.model.settings import Cause
from tenure.shields.policy import disabled, fence
from tenure.shields.preemptibility import preemptibility
from tenure.shields.short import below_core
from tenure.victims.rules.pieces import Piece, held

PRIORITY = "priority"

Taken = tuple[Piece, Sequence[TaskState], bool]
"""Part of a piece that goes at once, and whether it is a core."""


def overdue(session: Session, workload: WorkloadState) -> bool:
    """Whether a workload runs past its expected runtime."""
    started, expected = workload.started_at, workload.expected
    if not expected or started is None or workload.fixed or workload.leaf < 0 or not workload.occupied():
        return False
    return session.now - started >= expected


class CauseRules(ABC):
    """The rules of one cause for one contender. All but ``eligible`` look at the session as it is at that moment.

    What a cause does not say otherwise holds for each part of a workload by itself, whatever it holds and whatever else
    goes: it may be taken, and no queue loses a share by it.
    """

    cause: ClassVar[Cause]

    in_turn: Callable[[Iterable[Piece]], Iterator[list[Piece]]] | None = None
    """Gives sets of some pieces in the order in which the first that pays is taken; None: the best is."""

    def __init__(self, session: Session, contender: WorkloadState) -> None:
        self.session = session
        self.contender = contender

    def contender_may(self) -> Refusal | None:
        """Refuse the contender itself."""
        return None

    @abstractmethod
    def concerns(self, victim: WorkloadState) -> bool:
        """Whether the cause is about this workload at all."""

    @abstractmethod
    def eligible(self, victim: WorkloadState) -> Refusal | None:
        """Refuse a workload as a victim, whatever else is taken."""

    def may_take(
        self,
        victim: WorkloadState,  # noqa: ARG002
        held: Amount,  # noqa: ARG002
        *,
        core: bool,  # noqa: ARG002
        owed: list[Owed] | None = None,  # noqa: ARG002
    ) -> Refusal | None:
        """Refuse one piece; with ``owed``, a core may go below a guarantee, which is added to that list."""
        return None

    def holds_none(self, rows: Sequence[int]) -> bool:  # noqa: ARG002
        """Whether what holds resources in these rows alone is never taken by itself: none of them is asked for."""
        return False

    def exchange(self, victims: Sequence[WorkloadState]) -> Refusal | None:  # noqa: ARG002
        """Refuse a set that is evicted, the contender not yet being placed."""
        return None

    def repaid(self, owed: Sequence[Owed]) -> bool:
        """Whether the play-through serves again what was owed."""
        return not owed

    def take(self, stages: Iterable[Taken], owed: list[Owed]) -> tuple[WorkloadState, Refusal] | None:
        """Ask about every stage in turn, as the queues stand then, and take it off them; gives the first refusal.

        Surplus that holds nothing of what is asked for is no part of its own where all of its workload goes.
        """
        session, along = self.session, dict[WorkloadState, list[TaskState]]()
        for piece, tasks, core in stages:
            workload = piece.workload
            if piece.whole and not core and self.holds_none([r for r, n in enumerate(held(session, tasks)) if n > 0]):
                along.setdefault(workload, []).extend(tasks)
                continue
            beside = [*along.get(workload, ()), *nominated_tasks(workload)] if piece.whole and core else []
            amount = held(session, [*tasks, *beside] if beside else tasks)
            refusal = self.may_take(workload, amount, core=core, owed=owed)
            if refusal is not None:
                return workload, refusal
            session.queues.release(workload.leaf, amount, fixed=workload.fixed)
        return None

    def lets_go(self, victim: WorkloadState, tasks: Sequence[TaskState], *, core: bool) -> bool:
        """Whether, as the queues stand, tasks that are bound or nominated may be taken by themselves."""
        amount = held(self.session, tasks)
        with self.session.scenario():
            if self.may_take(victim, amount, core=core, owed=[]) is not None:
                return False
            self.session.queues.release(victim.leaf, amount, fixed=victim.fixed)
            return self.exchange([victim]) is None

    @abstractmethod
    def why(self, victim: WorkloadState) -> str:
        """Say which rule allows to take from a victim, as things stood before."""


class ReclaimEligibility(CauseRules):
    """The rules of reclaim for one contender: across leaf queues."""

    cause: ClassVar[Cause] = "reclaim"

    def __init__(self, session: Session, shares: CurrentShares, contender: WorkloadState) -> None:
        super().__init__(session, contender)
        self.rules = ReclaimRules(session, shares, contender)
        self._policies: dict[int, Refusal | None] = {}

    def contender_may(self) -> Refusal | None:
        """Refuse a contender whose leaf has no right to more."""
        return self.rules.contender_may()

    def concerns(self, victim: WorkloadState) -> bool:
        """Whether it stands in another leaf."""
        return victim.leaf != self.contender.leaf

    def eligible(self, victim: WorkloadState) -> Refusal | None:
        """Refuse what is fenced off, disabled, or not preemptible."""
        queues, leaf = self.session.queues, victim.leaf
        if leaf not in self._policies:
            self._policies[leaf] = disabled(queues, leaf) or fence(queues, self.contender.leaf, leaf)
        return preemptibility(victim) or self._policies[leaf]

    def may_take(
        self, victim: WorkloadState, held: Amount, *, core: bool, owed: list[Owed] | None = None
    ) -> Refusal | None:
        """Refuse a piece whose queue has no more to give."""
        return self.rules.may_take(victim.leaf, held, core=core, owed=owed)

    def holds_none(self, rows: Sequence[int]) -> bool:
        """Whether none of these rows is asked for."""
        return not any(row in rows for row in self.rules.rows)

    def exchange(self, victims: Sequence[WorkloadState]) -> Refusal | None:
        """Refuse what would leave the contender's side fuller than the others."""
        return self.rules.fuller(sorted({v.leaf for v in victims}))

    def repaid(self, owed: Sequence[Owed]) -> bool:
        """Whether guarantees that a core carried its queue below are served again."""
        return self.rules.repaid(owed)

    def why(self, victim: WorkloadState) -> str:
        """Say what the victim's queue holds too much of."""
        rules, queues = self.rules, self.session.queues
        mine, theirs = rules.meeting(victim.leaf)
        within = queues.within_guaranteed(mine, rules.amount)
        names = queues.queues[mine].name, queues.queues[theirs].name
        if within:
            return f"queue {names[0]} is within its guaranteed and queue {names[1]} is over its own"
        return f"queue {names[0]} is within its fair share and queue {names[1]} is over its allocatable share"


class PreemptRules(CauseRules):
    """The rules of preempt: inside one leaf queue, from strictly lower priority."""

    cause: ClassVar[Cause] = "preempt"

    def concerns(self, victim: WorkloadState) -> bool:
        """Whether it stands in the same leaf."""
        return victim.leaf == self.contender.leaf

    def eligible(self, victim: WorkloadState) -> Refusal | None:
        """Refuse what is not of strictly lower priority, disabled, or not preemptible."""
        if victim.priority >= self.contender.priority:
            text = f"{victim.key} has priority {victim.priority}, not below {self.contender.priority}"
            return Refusal(PRIORITY, text)
        return preemptibility(victim) or disabled(self.session.queues, victim.leaf)

    def why(self, victim: WorkloadState) -> str:
        """Compare the priorities."""
        name = self.session.queues.queues[victim.leaf].name
        return f"in queue {name} its priority is below {self.contender.priority}"


class ConsolidateRules(CauseRules):
    """The rules of consolidate: no queue loses a share, so only the shields apply."""

    cause: ClassVar[Cause] = "consolidate"

    def concerns(self, victim: WorkloadState) -> bool:  # noqa: ARG002
        """Every running workload could be moved."""
        return True

    def eligible(self, victim: WorkloadState) -> Refusal | None:
        """Refuse what is disabled or not preemptible, or would not start again where it goes."""
        return preemptibility(victim) or disabled(self.session.queues, victim.leaf) or below_core(victim)

    def why(self, victim: WorkloadState) -> str:  # noqa: ARG002
        """Say that it goes on elsewhere."""
        return "every task that moves has a place to land"


def takes_back(
    session: Session, shares: CurrentShares, victim: WorkloadState, contender: WorkloadState, enabled: Collection[str]
) -> CauseRules | None:
    """Give the rules by which a victim that waits might take from its contender, delays and minimum runtimes aside."""
    if victim.step is None:
        return None
    if victim.leaf == contender.leaf:
        rules: CauseRules = PreemptRules(session, victim)
    else:
        rules = ReclaimEligibility(session, shares, victim)
    if rules.cause not in enabled or rules.contender_may() is not None or rules.eligible(contender) is not None:
        return None
    return rules


def in_stages(rules: CauseRules, pieces: Sequence[Piece], asked: Sequence[int]) -> list[Taken]:
    """Give the parts of pieces in the order in which they are taken: surplus first, small before large.

    Before both what is nearer: the contender's side counts without it. Of one resource ``asked`` no other allows more.
    """
    path = rules.session.queues.path
    stages: list[Taken] = [(p, tasks, core) for p in pieces for tasks, core in p.stages]
    if len(stages) < 2:  # noqa: PLR2004  nothing to bring into order
        return stages
    weights, above = [1 / a if a else 0.0 for a in asked], set(path[rules.contender.leaf])

    def key(stage: Taken) -> tuple[int, bool, float]:
        piece, tasks, core = stage
        amount = piece.amount if len(tasks) == len(piece.tasks) else held(rules.session, tasks)
        return -len(above.intersection(path[piece.workload.leaf])), core, sum(map(mul, amount, weights))

    return sorted(stages, key=key)
