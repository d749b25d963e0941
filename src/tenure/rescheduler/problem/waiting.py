"""Who waits and would fit: no move may take that away (spec: never create another trigger's condition)."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from tenure.engine.state.workloads import WorkloadState
from tenure.victims.recording.state import EvictionState

MOST = 16
"""So many workloads that wait are tried."""


def fitting(state: EvictionState, only: Sequence[WorkloadState] | None = None) -> list[WorkloadState]:
    """Give those that wait, held back by something else, and whose next step would find room as things stand."""
    session = state.session
    if only is None:
        only = [w for w in session.waiting.all() if w.step is not None][:MOST]
    found = []
    for workload in only:
        if workload.step is None:
            continue
        with session.scenario():
            if state.placer.place(workload, copy(workload.step)):
                found.append(workload)
    return found
