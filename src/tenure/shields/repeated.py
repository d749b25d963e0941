"""No workload is evicted over and over: after ``worth.maxEvictions`` it is protected, until that is forgotten.

A bound that held against all contenders would break guarantees: a workload that was evicted often enough could keep
what another queue is guaranteed. So it ends for a contender that stays within its guaranteed and has waited for as long
as patience with reclaim may last.
"""

from __future__ import annotations

from typing import Final

from tenure.engine.refusal import Refusal
from tenure.engine.state.cost import SECOND
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.model.settings import PATIENT_CAUSES, Cause
from tenure.model.values.duration import format_time
from tenure.shields.patience import is_entitled, longest_of, rule_for, waits_since

SHIELD: Final = "evicted-often"

LONGEST: Final = 4 * 3600 * SECOND
"""For how long these bounds hold against a contender for which there is no rule of patience, in µs."""


def evicted_often(
    session: Session, cause: Cause, contender: WorkloadState | None, victim: WorkloadState
) -> Refusal | None:
    """Refuse a victim that was evicted as often as it may be."""
    worth = session.settings.worth
    most = worth.max_evictions
    if not most or victim.evictions < most or cause not in BOUNDED or is_owed(session, cause, contender):
        return None
    times = victim.times_evicted(session.now, worth.forgotten_after)
    if times < most:
        return None
    assert victim.last_evicted_at is not None
    until = victim.last_evicted_at + worth.forgotten_after
    owed_at = owed_from(session, cause, contender)
    until = until if owed_at is None else min(until, owed_at)
    often = f"{victim.key} was evicted {times} times, and worth.maxEvictions is {most}"
    text = f"{often}: protected until {format_time(until)}"
    return Refusal(SHIELD, text, until)


def is_owed(session: Session, cause: Cause, contender: WorkloadState | None) -> bool:
    """Whether a contender has waited long enough for what its queue is guaranteed."""
    at = owed_from(session, cause, contender)
    return at is not None and session.now >= at


def owed_from(session: Session, cause: Cause, contender: WorkloadState | None) -> int | None:
    """When a contender has waited long enough for what its queue is guaranteed; None if that is not what it wants."""
    if cause != "reclaim" or contender is None or contender.step is None or not is_entitled(session, cause, contender):
        return None
    rule = rule_for(session, cause, contender)
    return waits_since(contender) + (LONGEST if rule is None else longest_of(rule, cause))


BOUNDED: Final[frozenset[Cause]] = frozenset((*PATIENT_CAUSES, "reschedule"))
"""Causes that these bounds hold for: neither a lowered quota, which is to be enforced, nor a gang that is broken."""
