"""Events of one cycle, each on a workload or a queue, with a reason from a fixed set and a sentence."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tenure.engine.plan import Plan, PlanStep
from tenure.engine.quota_state import QuotaBlocker, QuotaState
from tenure.engine.reasons import unsupported
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import PENDING
from tenure.model.values.duration import format_time
from tenure.model.values.readable import amount_with_unit, weighted_hours
from tenure.shields.unsaved import SHIELDED
from tenure.telemetry.samples import exhausted, unknown_starts

_QUOTA = {
    "armed": ("QuotaPreemptionArmed", "it uses more than its max; from {} on, work is evicted"),
    "moved": ("QuotaPreemptionMoved", "its deadline has moved to {}"),
    "cleared": ("QuotaPreemptionCleared", "it no longer has to be brought under its max"),
    "fired": ("QuotaPreemptionFired", "its deadline of {} has passed: {} tasks are evicted, which costs {}"),
}
_OF_STEPS = {"evict": "Evicted", "notice": "EvictionNotice", "withdraw": "NoticeWithdrawn"}


class CycleEvent(NamedTuple):
    """An event on a workload (namespace/name), a queue or the node pool; ``reason`` is one of the table's.

    The node pool is named by the cause that the event is about.
    """

    kind: Literal["workload", "queue", "pool"]
    name: str
    reason: str
    message: str


class LogRecord(NamedTuple):
    """A line for the log: what it is about, and its fields."""

    event: str
    fields: dict[str, str]


def events_of(plan: Plan, session: Session) -> list[CycleEvent]:
    """Give the events of a cycle, by kind, name and reason; ``session`` is the cluster after it."""
    found = [CycleEvent("workload", e.workload, e.reason, e.message) for e in plan.requeue.events()]
    found += _of_steps(plan.steps) + [
        CycleEvent("workload", s.workload, "WouldEvict", f"in shadow, not carried out: {s.reason}")
        for s in _once(plan.shadow)
    ]
    found += [
        CycleEvent(
            "workload",
            key,
            "UnknownStart",
            "its start is unknown, so its minimum runtime does not protect it",
        )
        for key in unknown_starts(session)
    ]
    found += _unsupported(session)
    found += [CycleEvent("queue", queue, "ShieldWithoutCheckpoints", SHIELDED) for queue in plan.unsaved]
    found += [CycleEvent("pool", cause, "CauseLoses", text) for cause, text in plan.losing]
    found += [
        CycleEvent(
            "workload", key, "SearchExhausted", f"the search for victims by {cause} was cut off by search.maxScenarios"
        )
        for key, cause in exhausted(plan).items()
    ]
    for event in plan.quota_events:
        reason, text = _QUOTA[event.kind]
        until = "" if event.deadline is None else format_time(event.deadline)
        found.append(
            CycleEvent("queue", event.queue, reason, text.format(until, event.tasks, weighted_hours(event.cost)))
        )
    found += [CycleEvent("queue", q.queue, "QuotaShortfall", _shortfall(q)) for q in plan.quota if q.shortfall]
    return sorted(found)


def records_of(plan: Plan) -> list[LogRecord]:
    """Give what belongs into the log alone: who was skipped by which nominator, and why."""
    return [
        LogRecord("requeue-skip", {"workload": s.workload, "plugin": s.plugin, "reason": s.reason})
        for s in plan.requeue.skipped
    ]


def _of_steps(steps: list[PlanStep]) -> list[CycleEvent]:
    found = []
    for step in _once([s for s in steps if s.action in _OF_STEPS]):
        text = step.reason
        if step.action == "notice":
            text = f"it will be evicted by {format_time(step.deadline)}: {text}"
        found.append(CycleEvent("workload", step.workload, _OF_STEPS[step.action], text))
    return found


def _once(steps: list[PlanStep]) -> list[PlanStep]:
    """Of the steps of one workload that say the same, the first."""
    return list({(s.action, s.workload, s.reason, s.deadline): s for s in reversed(steps)}.values())[::-1]


def _unsupported(session: Session) -> list[CycleEvent]:
    found: list[CycleEvent] = []
    if not any(cls.spec.unsupported for cls in session.classes.classes):
        return found
    for key, workload in session.workloads.items():
        asked = sorted({u for t in workload.tasks if t.phase is PENDING for u in t.cls.spec.unsupported})
        if asked and workload.leaf >= 0:
            reason = unsupported(asked)
            found.append(CycleEvent("workload", key, reason.code, reason.message))
    return found


def _shortfall(state: QuotaState) -> str:
    amounts = ", ".join(amount_with_unit(v, r) for r, v in sorted(state.shortfall.items()))
    why = "; ".join(dict.fromkeys(_blocked(b) for b in state.blockers)) or "nothing is left that may be evicted"
    return f"it is over its max by {amounts}, which cannot be reclaimed now: {why}"


def _blocked(blocker: QuotaBlocker) -> str:
    whom = f", workload {blocker.workload}" if blocker.workload is not None else ""
    return f"queue {blocker.queue} blocks ({blocker.reason}{whom})"
