"""What every action works on, and hands on to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tenure.actions.preconditions import PriorityRange
from tenure.engine.plan import Plan
from tenure.engine.serving.backfill import ExpectedReleases
from tenure.engine.serving.nominations import withdraw
from tenure.engine.serving.placement import Placer
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.fairness.current import CurrentShares, Fairness
from tenure.model.settings import Cause
from tenure.model.workload import Notice
from tenure.requeue.memory import RequeueMemory
from tenure.requeue.rules import OverdueRules
from tenure.shields.plugins import EvictionPlugins
from tenure.victims.aftermath.aftermath import Aftermath
from tenure.victims.passes.preemption_pass import MakeRules
from tenure.victims.recording.record import place_step
from tenure.victims.recording.state import EvictionState, NoEffectPass, VictimMemory
from tenure.victims.rules.causes import CauseRules, ConsolidateRules, PreemptRules, ReclaimEligibility
from tenure.victims.rules.pieces import piece_memo
from tenure.victims.search.trials import SearchBudget


@dataclass(slots=True)
class Context:
    """The session, and the plan of the present cycle.

    ``endings`` is kept only where backfill needs it; ``last_pass`` is what allocate remembers of its last pass;
    ``paid`` are the tasks that held a nomination when the cycle began, ``noticed`` those under notice; ``watched`` are
    gangs that may become stale; ``about``: the one workload that is asked about; ``detailed``: why workloads were
    skipped is read. Kept from cycle to cycle are ``rescheduling`` by the rescheduler, ``requeueing`` by requeue,
    ``memory`` by the search for victims, and ``no_effect_passes``, by cause, of passes that helped no contender.
    """

    session: Session
    placer: Placer
    fairness: Fairness
    endings: ExpectedReleases
    plan: Plan
    cycle: int = 0
    last_pass: object = None
    paid: frozenset[TaskState] = frozenset()
    noticed: dict[TaskState, Notice] = field(default_factory=dict)
    plugins: EvictionPlugins | None = None
    evictions: EvictionState | None = None
    aftermath: Aftermath | None = None
    watched: dict[str, WorkloadState] | None = None
    rescheduling: object = None
    priorities: PriorityRange = field(default_factory=PriorityRange)
    detailed: bool = True
    requeueing: RequeueMemory | None = None
    no_effect_passes: dict[Cause, NoEffectPass] = field(default_factory=dict)
    about: str | None = None
    memory: VictimMemory | None = None

    def evicting(self) -> EvictionState:
        """Give what the actions that evict share in the present cycle."""
        if self.evictions is None or self.evictions.plan is not self.plan:
            if self.plugins is None:
                self.plugins = EvictionPlugins()
            self.plugins.begin(self.session)
            self.plugins.patience.estimates.begin()
            if self.memory is None:
                self.memory = VictimMemory(self.session, self.fairness)
            budget = SearchBudget(self.session.settings.search.max_scenarios)
            self.evictions = EvictionState(
                self.session, self.placer, self.fairness, self.endings, self.plan, self.cycle, self.plugins,
                self.paid, budget, self.memory, piece_memo(self.session), self.detailed, self._only_waits(),
                self.no_effect_passes,
            )  # fmt: skip
            self.aftermath = self.evictions.aftermath = Aftermath(self.evictions, self.causes())
        return self.evictions

    def _only_waits(self) -> WorkloadState | None:
        """Give the workload that is asked about, if it runs nothing: then only why it waits is read."""
        found = self.session.workloads.get(self.about or "")
        return found if found is not None and found.step is not None and not found.occupied() else None

    def causes(self) -> dict[Cause, MakeRules]:
        """Give what makes the rules of each cause that may follow from an eviction."""
        session = self.session

        def moves(contender: WorkloadState, _: CurrentShares) -> CauseRules:
            return ConsolidateRules(session, contender)

        return {
            "consolidate": moves,
            "reclaim": lambda contender, shares: ReclaimEligibility(session, shares, contender),
            "preempt": lambda contender, _: PreemptRules(session, contender),
            "requeue": lambda contender, shares: OverdueRules(session, shares, contender),
            "reschedule": moves,
        }

    def record(self, task: TaskState) -> None:
        """Add the step that places a task to the plan."""
        self.plan.steps.append(place_step(self.session, task, self.cycle))

    def give_up(self, tasks: Sequence[TaskState]) -> None:
        """Take nominations back: their workload is planned anew without them."""
        withdraw(self.session, tasks)
        self.plan.give_up([(t.workload.key, t.index) for t in tasks])

    def settle(self, workload: WorkloadState) -> None:
        """After something of a workload was placed: note its start, and what it asks for next."""
        session = self.session
        before = workload.started_at
        session.note_start(workload)
        if before is None and workload.started_at is not None:
            self.plan.started.append(workload.key)
        if workload.started_at is not None and session.settings.backfill == "easy":
            self.endings.add(workload)
        session.refresh(workload)
