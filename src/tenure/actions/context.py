"""What every action works on, and hands on to the next."""

from __future__ import annotations

from dataclasses import dataclass, field

from tenure.engine.backfill import Endings
from tenure.engine.placement import Placer
from tenure.engine.plan import Plan, Step
from tenure.engine.session import Session
from tenure.engine.workloads import TaskState, WorkloadState
from tenure.fairness.current import Fairness
from tenure.model.settings import Cause
from tenure.requeue.memory import Memory
from tenure.requeue.next_turn import RequeueNext
from tenure.shields.plugins import Plugins
from tenure.victims.aftermath import Aftermath, MakeRules
from tenure.victims.gates import Priorities
from tenure.victims.rules import Move, Preempt, Reclaim
from tenure.victims.search import Budget
from tenure.victims.state import Evicting, VainPass
from tenure.victims.state import Memory as VictimMemory


@dataclass(slots=True)
class Context:
    """The session, and the plan of the present cycle.

    ``endings`` is kept only where backfill needs it; ``last_pass`` is what allocate remembers of its last pass;
    ``paid`` are the tasks that held a nomination when the cycle began; ``watched`` are gangs that may become stale;
    ``detailed``: somebody reads why workloads were skipped. Kept from cycle to cycle are ``rescheduling`` by the
    rescheduler, ``requeueing`` by requeue, ``memory`` by the search for victims, and ``vain_passes``, by cause, of
    passes that helped nobody.
    """

    session: Session
    placer: Placer
    fairness: Fairness
    endings: Endings
    plan: Plan
    cycle: int = 0
    last_pass: object = None
    paid: frozenset[TaskState] = frozenset()
    plugins: Plugins | None = None
    evictions: Evicting | None = None
    watched: dict[str, WorkloadState] | None = None
    rescheduling: object = None
    priorities: Priorities = field(default_factory=Priorities)
    detailed: bool = True
    requeueing: Memory | None = None
    vain_passes: dict[Cause, VainPass] = field(default_factory=dict)
    memory: VictimMemory | None = None

    def evicting(self) -> Evicting:
        """Give what the actions that evict share in the present cycle."""
        if self.evictions is None or self.evictions.plan is not self.plan:
            if self.plugins is None:
                self.plugins = Plugins()
            self.plugins.budgets.begin(self.session)
            if self.memory is None:
                self.memory = VictimMemory(self.session, self.fairness)
            budget = Budget(self.session.settings.search.max_scenarios)
            self.evictions = Evicting(
                self.session, self.placer, self.fairness, self.endings, self.plan, self.cycle, self.plugins,
                self.paid, budget, self.memory, self.detailed, self.vain_passes,
            )  # fmt: skip
            self.evictions.aftermath = Aftermath(self.evictions, self._causes())
        return self.evictions

    def _causes(self) -> dict[Cause, MakeRules]:
        """Give what makes the rules of each cause that may follow from an eviction."""
        session = self.session
        return {
            "consolidate": lambda contender, _: Move(session, contender),
            "reclaim": lambda contender, shares: Reclaim(session, shares, contender),
            "preempt": lambda contender, _: Preempt(session, contender),
            "requeue": lambda contender, shares: RequeueNext(session, shares, contender),
        }

    def record(self, task: TaskState) -> None:
        """Add the step that places a task to the plan."""
        bound = task.node >= 0
        node, devices = (task.node, task.devices) if bound else (task.nominated, task.nominated_devices)
        self.plan.steps.append(
            Step(
                "bind" if bound else "nominate",
                task.workload.key,
                task.model.name,
                self.session.nodes.names[node],
                task.index,
                node,
                devices,
                self.cycle,
            )
        )

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
