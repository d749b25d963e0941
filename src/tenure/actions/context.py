"""What every action works on, and hands on to the next."""

from __future__ import annotations

from dataclasses import dataclass

from tenure.engine.backfill import Endings
from tenure.engine.placement import Placer
from tenure.engine.plan import Plan, Step
from tenure.engine.session import Session
from tenure.engine.workloads import TaskState
from tenure.fairness.current import Fairness


@dataclass(slots=True)
class Context:
    """The session and the plan of one cycle. ``endings`` is kept only where backfill needs it."""

    session: Session
    placer: Placer
    fairness: Fairness
    endings: Endings
    plan: Plan
    cycle: int = 0

    def record(self, task: TaskState) -> None:
        """Add the step that places a task to the plan."""
        names = self.session.nodes.names
        if task.node >= 0:
            step = Step("bind", task.workload.key, task.model.name, names[task.node], task.devices, self.cycle)
        else:
            devices = task.nominated_devices
            step = Step("nominate", task.workload.key, task.model.name, names[task.nominated], devices, self.cycle)
        self.plan.steps.append(step)
