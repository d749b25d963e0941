"""Why workloads wait, as their pods are to say it: a few in each cycle, and for no longer than that is worth."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from tenure.engine.plan import Plan
from tenure.engine.reasons import why_pending
from tenure.engine.serving.reserved_start import NextPass
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import PENDING, WorkloadState
from tenure.fairness.current import Fairness
from tenure.live.isolation import Containment, Quarantine
from tenure.live.port import LiveCluster, WaitingReason
from tenure.live.reasons import SET_ASIDE, condition
from tenure.model.cluster import Cluster
from tenure.model.workload import Workload

_MOST_EXPLAINED: Final = 50
_EXPLAINING: Final = 0.05
"""Seconds of a processor in each cycle that looking why something waits may take."""


class WaitingReasons:
    """The reasons of workloads that wait and do not say yet why: what sets them aside, else what obstructs them."""

    def __init__(self, cluster: LiveCluster, quarantine: Quarantine, containment: Containment) -> None:
        self._cluster = cluster
        self._quarantine = quarantine
        self._containment = containment

    def of(self, session: Session, plan: Plan, observed: Any, cluster: Cluster) -> Sequence[WaitingReason]:
        """Give what is to be told after a cycle."""
        found: list[WaitingReason] = []
        is_any_aside = self._quarantine.count(cluster.now) > 0
        models: dict[str, Workload] = {}
        until = time.thread_time() + _EXPLAINING
        following = NextPass(session, Fairness(session).now)
        for key in self._cluster.unexplained(observed, _MOST_EXPLAINED):
            if is_any_aside and not models:
                models = {w.key: w for w in cluster.workloads}
            state = session.workloads.get(key)
            aside = self._quarantine.why(models[key], cluster.now) if key in models else ""
            if aside:
                found.append(WaitingReason(key, SET_ASIDE, aside))
            elif state is not None and state.leaf >= 0 and any(t.phase is PENDING for t in state.tasks):
                said = self._containment.alone("tell", key, lambda: _condition(session, state, plan, following))  # noqa: B023
                if said is not None:
                    found.append(WaitingReason(key, *said))
            if time.thread_time() > until:
                break
        return found


def _condition(session: Session, state: WorkloadState, plan: Plan, following: NextPass) -> tuple[str, str]:
    return condition((*why_pending(session, state, following), *plan.obstacles.get(state.key, ())))
