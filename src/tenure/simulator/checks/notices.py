"""Who was told that it has to go is evicted in time, and not before its time unless it saved its work."""

from __future__ import annotations

import numpy as np

from tenure.simulator.checks.columns import CheckedLog
from tenure.simulator.checks.findings import ViolationCollector
from tenure.simulator.log import BIND, END, EVICT, NOTICE, WITHDRAW, EvictionDetails, NoticeDetails

TOO_EARLY = "eviction before its notice ended"
TOO_LATE = "eviction long after its notice ended"
FORGOTTEN = "notice that nothing came of"


def check_notices(history: CheckedLog, findings: ViolationCollector, *, complete: bool) -> None:
    """Check what became of each notice.

    In a log that is not ``complete`` (the simulation was interrupted), some may still have to end.
    """
    columns = history.columns
    if not (columns.kind == NOTICE).any():
        return
    pending: dict[int, tuple[int, NoticeDetails]] = {}
    found: dict[str, list[int]] = {TOO_EARLY: [], TOO_LATE: [], FORGOTTEN: []}
    for position in np.flatnonzero(np.isin(columns.kind, (BIND, END, EVICT, NOTICE, WITHDRAW))).tolist():
        task = int(history.tasks.first[columns.job[position]] + columns.task[position])
        kind, at, extra = int(columns.kind[position]), int(columns.at[position]), columns.extra[position]
        if kind == NOTICE and isinstance(extra, NoticeDetails):
            pending[task] = position, extra
            continue
        told = pending.pop(task, None)
        if told is None or kind != EVICT or not isinstance(extra, EvictionDetails):
            continue
        saved = extra.saved_at > int(columns.at[told[0]])
        if at < told[1].deadline and not saved:
            found[TOO_EARLY].append(position)
        elif at > told[1].deadline:
            found[TOO_LATE].append(position)
    end = int(columns.at.max())
    if complete:
        found[FORGOTTEN] = [position for position, notice in pending.values() if notice.deadline < end]
    for name, where in found.items():
        findings.add(name, where, len(where), lambda position: _describe(history, position))


def _describe(history: CheckedLog, position: int) -> str:
    columns = history.columns
    task = int(history.tasks.first[columns.job[position]] + columns.task[position])
    return f"{history.name(task)}, at {int(columns.at[position])} µs"
