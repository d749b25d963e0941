"""Every eviction has a cause that there is, and a beneficiary that then ran."""

from __future__ import annotations

import numpy as np

from tenure.simulator.checks.columns import CheckedLog
from tenure.simulator.checks.findings import ViolationCollector
from tenure.simulator.log import BIND, EVICT, EvictionDetails

NO_CAUSE = "eviction without an allowed cause"
NO_BENEFICIARY = "eviction for nobody"
NEVER_RAN = "eviction whose beneficiary never ran"

FOR_SOMEBODY = frozenset({"reclaim", "preempt", "requeue", "consolidate"})
"""Causes that need a beneficiary."""

CAUSES = FOR_SOMEBODY | {"stale-gang", "quota", "reschedule"}


def check_evictions(history: CheckedLog, findings: ViolationCollector, *, complete: bool) -> None:
    """Check cause and beneficiary of every eviction.

    In a log that is not ``complete`` (the simulation was interrupted), beneficiaries may still be about to run.
    """
    columns = history.columns
    last_bind = np.full(len(history.workloads), -1, dtype=np.int64)
    binds = np.flatnonzero(columns.kind == BIND)
    last_bind[columns.job[binds]] = binds  # positions ascend, so the last one stays
    found: dict[str, list[int]] = {NO_CAUSE: [], NO_BENEFICIARY: [], NEVER_RAN: []}
    for position in np.flatnonzero(columns.kind == EVICT).tolist():
        extra = columns.extra[position]
        beneficiary = int(columns.x[position])
        somebody = 0 <= beneficiary < len(last_bind) and beneficiary != columns.job[position]
        if not isinstance(extra, EvictionDetails) or extra.cause not in CAUSES:
            found[NO_CAUSE].append(position)
        elif not somebody and (extra.cause in FOR_SOMEBODY or beneficiary != -1):
            found[NO_BENEFICIARY].append(position)
        elif somebody and complete and last_bind[beneficiary] < position:
            found[NEVER_RAN].append(position)
    for kind, where in found.items():
        findings.add(kind, where, len(where), lambda position: _describe(history, position))


def _describe(history: CheckedLog, position: int) -> str:
    columns = history.columns
    task = int(history.tasks.first[columns.job[position]] + columns.task[position])
    extra = columns.extra[position]
    cause = extra.cause if isinstance(extra, EvictionDetails) else extra
    return f"{history.name(task)} by {cause} for job {int(columns.x[position])}, at {int(columns.at[position])} µs"
