"""What the actions that evict hand on to each other within a cycle, and from one cycle to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple

from tenure.engine.memo import Memo
from tenure.engine.plan import Plan, Reason, Refused
from tenure.engine.serving.backfill import ExpectedReleases
from tenure.engine.serving.order import in_order
from tenure.engine.serving.placement import Placer
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import BOUND, TaskState, WorkloadState
from tenure.fairness.current import CurrentShares, Fairness
from tenure.model.settings import Cause
from tenure.model.workload import Notice
from tenure.shields.plugins import EvictionPlugins
from tenure.victims.bounds.reclaim_limits import ReclaimLimits
from tenure.victims.candidates.gatherer import LeafMemo
from tenure.victims.candidates.preemptible_usage import PreemptibleUsage
from tenure.victims.dry_run.dry_runs import DryRuns
from tenure.victims.dry_run.outcome import Consequences
from tenure.victims.rules.pieces import PieceMemo, core_of
from tenure.victims.search.trials import SearchBudget

MOST_REFUSED = 200
"""Refused candidates that are listed for one contender."""

MOST_REFUSED_IN_ALL = 100_000
"""Refused candidates that are listed for all contenders together."""


class EvictionTimes(NamedTuple):
    """The times of a workload that an eviction changes, in µs since the epoch, and how often it was evicted.

    These it has while it is only told.
    """

    started_at: int | None
    last_evicted_at: int | None
    evictions: int
    not_before: int | None


class NoEffectPass(NamedTuple):
    """The state in which a pass helped no contender: epoch of room, fair shares, and the next end of a shield."""

    epoch: int
    fair: list[list[int]]
    wake: int | None


class VictimMemory:
    """The knowledge kept from earlier cycles: preemptible usage, and shares.

    ``thought`` is the same kind of knowledge of scenarios, for what is asked in them.
    """

    def __init__(self, session: Session, fairness: Fairness, holdings: PreemptibleUsage | None = None) -> None:
        self.session = session
        self.fairness = fairness
        self.holdings = PreemptibleUsage(session) if holdings is None else holdings
        self.limits = ReclaimLimits(session.queues, self.holdings)
        self.thought: VictimMemory | None = None
        self._shares = Memo[None, CurrentShares](
            lambda _: fairness.now(), lambda _: self._depends(), lambda one, other: one.fair == other.fair
        )

    def shares(self) -> CurrentShares:
        """Give the shares as they are now; the ones of the last time, if nothing that they depend on has changed."""
        return self._shares(None)

    def _depends(self) -> object:
        """Give what shares depend on; with history they are others at any time."""
        now = self.fairness.now()
        return object() if self.fairness.settings is not None else (now.request, now.total)


@dataclass(slots=True)
class EvictionState:
    """The evictions of one cycle, with what the actions that evict share.

    ``paid``: tasks that held a nomination when the cycle began.

    ``evicted`` lost something in this cycle, ``given_up`` had their set given up; neither contends before the next.
    ``moved`` were moved.
    ``memories`` are the last passes of each cause that helped no contender; they outlive the cycle. ``before`` has the
    times of workloads as they were before anything was evicted, ``lapsed`` the notices that were withdrawn in this
    cycle. ``reasons`` has by reason of an eviction what makes it of the cost (weighted resource-seconds) of all that
    give it. ``memory`` outlives the cycle as well, ``pieces`` do not, nor do ``leaves``, which only scenarios of what
    follows have. ``aftermath`` judges what follows from a set.
    ``detailed``: the reasons why nothing was evicted for a pending workload are read, or, if there is such a workload,
    those of what it is ``about``. ``in_order`` gives all that wait in the order in which they would be served.
    """

    session: Session
    placer: Placer
    fairness: Fairness
    endings: ExpectedReleases
    plan: Plan
    cycle: int
    plugins: EvictionPlugins
    paid: frozenset[TaskState]
    budget: SearchBudget
    memory: VictimMemory
    pieces: PieceMemo
    detailed: bool = True
    about: WorkloadState | None = None
    memories: dict[Cause, NoEffectPass] = field(default_factory=dict)
    before: dict[WorkloadState, EvictionTimes] = field(default_factory=dict)
    lapsed: dict[TaskState, Notice] = field(default_factory=dict)
    reasons: dict[str, Callable[[float], str]] = field(default_factory=dict)
    evicted: set[str] = field(default_factory=set)
    given_up: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    aftermath: Consequences | None = None
    helped: frozenset[str] = frozenset()
    leaves: LeafMemo | None = None
    in_order: Memo[CurrentShares, list[WorkloadState]] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with nothing known of the order."""
        self.in_order = Memo(partial(in_order, self.session), lambda _: self.session.epoch)

    def dry_runs(self, shares: CurrentShares) -> DryRuns:
        """Give what plays sets through on the session, while nothing else changes it."""
        return DryRuns(self.session, self.placer, shares, self.plugins, self.endings, self.aftermath)

    def fresh(self) -> frozenset[TaskState]:
        """Tasks that this cycle placed, and that a later action may undo."""
        workloads, promised = self.session.workloads, self._kept()
        tasks = (workloads[s.workload].tasks[s.task_index] for s in self.plan.steps if s.action == "bind")
        return frozenset(t for t in tasks if t.phase is BOUND and t not in promised)

    def settled(self) -> frozenset[TaskState]:
        """Tasks that may not be evicted in this cycle, because other tasks were evicted for them.

        They were bound in it on a nomination, or are the core of a workload that holds a nomination paid for so.
        """
        found = {t for t in self._kept() if t.phase is BOUND and t.fresh}
        for workload in self._promised():
            found.update(core_of(workload))
        return frozenset(found)

    def _kept(self) -> set[TaskState]:
        """Give the tasks that held a nomination when the cycle began, but for those that have lost it in it."""
        given_up = set(self.plan.expired)
        return {t for t in self.paid if (t.workload.key, t.index) not in given_up}

    def _promised(self) -> set[WorkloadState]:
        """Running workloads with a nomination for which others were evicted, or are under notice; or their own move."""
        holding = {w for w in {t.workload for t in self.session.nominated} if w.occupied()}
        if not holding:
            return holding
        paid_for = {e.beneficiary for e in self.session.evictions} | {s.beneficiary for s in self.plan.steps}
        paid_for |= {t.notice.beneficiary for t in self.session.noticed if t.notice is not None}
        moving = {t.workload.key for t in self.session.noticed if t.nominated >= 0}
        moving |= {s.workload for s in self.plan.steps if s.to is not None}
        return {w for w in holding if w.key in paid_for | moving | self.helped}

    def remember(self, workload: WorkloadState) -> None:
        """Note the times of a workload of which something is about to be evicted."""
        evictions = workload.times_evicted(self.session.now, self.session.settings.worth.forgotten_after)
        times = EvictionTimes(workload.started_at, workload.last_evicted_at, evictions, workload.not_before)
        self.before.setdefault(workload, times)

    def reason(self, make: Callable[[float], str], cost: float) -> str:
        """Give the reason of evictions that cost so much (weighted resource-seconds), and keep what makes it."""
        text = make(cost)
        self.reasons[text] = make
        return text

    def obstacle(self, workload: str, reason: Reason) -> None:
        """Note why nothing is evicted for a workload."""
        known = self.plan.obstacles.setdefault(workload, [])
        if all(r.message != reason.message for r in known):
            known.append(reason)

    def wake_at(self, time: int | None) -> None:
        """Note that a rule ends at ``time``."""
        self.plan.wake_at(time)

    def refuse(self, refused: Iterable[Refused]) -> None:
        """List refused candidates of a contender in the plan, as far as it has room for them."""
        room = min(MOST_REFUSED, MOST_REFUSED_IN_ALL - len(self.plan.refused))
        self.plan.refused += islice(refused, max(0, room))
