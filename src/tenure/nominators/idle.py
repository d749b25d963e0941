"""Nominates what holds GPUs and has left them idle for long; never without figures."""

from __future__ import annotations

from typing import ClassVar

from tenure.engine.room.nodes import NodeTable
from tenure.engine.state.workloads import TaskState
from tenure.model.settings import IdleSettings
from tenure.model.values.resources import GPU
from tenure.nominators.contract import (
    NominationContext,
    NominationSkip,
    NominatorFindings,
    RequeueNomination,
    held_back,
)


class Idle:
    """The nominator of idle GPUs, off by default (setting ``nominators.idle``)."""

    name: ClassVar[str] = "idle"

    def __init__(self, settings: IdleSettings) -> None:
        self.settings = settings

    def nominate(self, scene: NominationContext) -> NominatorFindings:
        """Name what uses less of each of its GPUs than the threshold, and has done so for long enough.

        Every task that holds GPUs has to say so: one that is busy, or that is not measured, keeps its workload.
        """
        found, session = NominatorFindings(), scene.session
        row = session.nodes.gpu_row
        if row < 0:
            return found
        for workload in scene.everyone:
            if workload.leaf < 0:
                continue
            holding = [t for t in workload.placed() if _held(t, row, session.nodes)]
            if not holding or not all(self._is_idle(t, _held(t, row, session.nodes)) for t in holding):
                continue
            reason = held_back(scene, workload)
            if reason is not None:
                found.skips.append(NominationSkip(workload.key, self.name, reason))
                continue
            lasted = min(t.model.usage_for or 0 for t in holding)
            since = max(session.now - lasted + self.settings.for_, workload.not_before or 0)
            found.nominations.append(RequeueNomination(workload.key, since))
        return found

    def _is_idle(self, task: TaskState, held: int) -> bool:
        """Whether figures say of a task that holds ``held`` milli-GPU that it is idle."""
        usage, lasted = task.model.usage, task.model.usage_for
        if usage is None or GPU not in usage or lasted is None:
            return False
        return lasted >= self.settings.for_ and usage[GPU] < self.settings.below * held


def _held(task: TaskState, row: int, nodes: NodeTable) -> int:
    return task.cls.amount_at(task.node, nodes)[row]
