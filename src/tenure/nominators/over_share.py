"""Nominates work of queues that are over their fair share, past usage counted where fairness looks back."""

from __future__ import annotations

from typing import ClassVar

from tenure.engine.state.workloads import WorkloadState
from tenure.nominators.contract import (
    NominationContext,
    NominationSkip,
    NominatorFindings,
    RequeueNomination,
    held_back,
)


class OverShare:
    """The nominator of queues over their share, off by default (setting ``nominators.over-share``)."""

    name: ClassVar[str] = "over-share"

    def nominate(self, scene: NominationContext) -> NominatorFindings:
        """Name what holds a resource of which its queue, or one above it, has more than its fair share."""
        found = NominatorFindings()
        queues, fair = scene.session.queues, scene.shares.fair
        over = {
            number: [row for row in scene.shares.rows if queues.allocated[number][row] > fair[number][row]]
            for number in range(len(queues.queues))
        }
        for workload in scene.everyone:
            rows = {row for queue in queues.path[workload.leaf] for row in over[queue]} if workload.leaf >= 0 else ()
            if not rows or not workload.occupied() or not _holds(scene, workload, rows):
                continue
            reason = held_back(scene, workload)
            if reason is None:
                found.nominations.append(RequeueNomination(workload.key))
            else:
                found.skips.append(NominationSkip(workload.key, self.name, reason))
        return found


def _holds(scene: NominationContext, workload: WorkloadState, rows: set[int]) -> bool:
    nodes = scene.session.nodes
    return any(t.cls.amount_at(t.node, nodes)[row] for t in workload.placed() for row in rows)
