"""Nothing is evicted that may not be, or for a workload that its cause does not allow it for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tenure.model.queue import Queue
from tenure.model.workload import NEVER, Workload
from tenure.simulator.checks.columns import CheckedLog
from tenure.simulator.checks.evictions import describe
from tenure.simulator.checks.findings import ViolationCollector
from tenure.simulator.checks.paths import leaf_of, paths_of
from tenure.simulator.log import EVICT, EvictionDetails

NOT_PREEMPTIBLE = "eviction of what is not preemptible"
CLOSED = "eviction from a queue that nothing is taken from"
FOR_NEVER = "eviction for a workload that nothing is evicted for"
NOT_ITS_CAUSE = "eviction that its cause does not allow for its beneficiary"


def check_shields(history: CheckedLog, queues: Sequence[Queue], findings: ViolationCollector) -> None:
    """Check victim and beneficiary of each eviction against what they and their queues say, whatever else happened.

    What is stale goes whatever it says.
    """
    columns, path_of = history.columns, paths_of(queues)
    found: dict[str, list[int]] = {}
    for position in np.flatnonzero(columns.kind == EVICT).tolist():
        extra, other = columns.extra[position], int(columns.x[position])
        if not isinstance(extra, EvictionDetails) or extra.cause == "stale-gang":
            continue
        victim = history.workloads[int(columns.job[position])]
        beneficiary = history.workloads[other] if 0 <= other < len(history.workloads) else None
        for kind in _broken(victim, beneficiary, extra.cause, path_of):
            found.setdefault(kind, []).append(position)
    for kind, where in found.items():
        findings.add(kind, where, len(where), lambda position: describe(history, position))


def _broken(
    victim: Workload, beneficiary: Workload | None, cause: str, path_of: Mapping[str, Sequence[Queue]]
) -> Iterator[str]:
    if not victim.is_preemptible:
        yield NOT_PREEMPTIBLE
    path = path_of.get(leaf_of(victim), ())
    if any(queue.preemption_policy == "disabled" for queue in path):
        yield CLOSED
    if beneficiary is None:
        return
    if beneficiary.preemption_policy == NEVER:
        yield FOR_NEVER
    inside = leaf_of(beneficiary) == leaf_of(victim)
    if cause == "preempt":
        allowed = inside and victim.priority < beneficiary.priority
    else:
        fenced = any(q.preemption_policy == "fence" for q in path_of.get(leaf_of(beneficiary), ()) if q not in path)
        allowed = cause != "reclaim" or not (inside or fenced)
    if not allowed:
        yield NOT_ITS_CAUSE
