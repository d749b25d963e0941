"""Queues that are over their max, in what ``tenure plan --format json`` prints. Its fields are a contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenure.engine.quota_state import QuotaBlocker, QuotaEvent, QuotaState
from tenure.model.values.duration import format_time

Amounts = Callable[[dict[str, int]], dict[str, int]]


def quota_json(state: QuotaState, amounts: Amounts) -> dict[str, Any]:
    """Give a queue that is armed as plain data; ``amounts`` puts GPUs into the units of the output."""
    return {
        "queue": state.queue,
        "state": state.state,
        "deadline": format_time(state.deadline),
        "over": amounts(state.over),
        "shortfall": amounts(state.shortfall),
        "blockers": [_blocker(b) for b in state.blockers],
        "searchExhausted": state.exhausted,
    }


def _blocker(blocker: QuotaBlocker) -> dict[str, Any]:
    return {
        "queue": blocker.queue,
        "reason": blocker.reason,
        "resource": blocker.resource,
        "workload": blocker.workload,
        "until": None if blocker.until is None else format_time(blocker.until),
    }


def quota_event_json(event: QuotaEvent) -> dict[str, Any]:
    """Give what happened to a queue as plain data."""
    found: dict[str, Any] = {
        "cycle": event.cycle,
        "at": format_time(event.at),
        "queue": event.queue,
        "event": event.kind,
        "deadline": None if event.deadline is None else format_time(event.deadline),
    }
    if event.kind == "fired":
        found |= {"tasks": event.tasks, "cost": event.cost}
    return found
