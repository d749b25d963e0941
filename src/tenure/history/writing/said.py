"""What a workload says of how it may be evicted and what that costs: recorded when it comes, for a replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tenure.history.record import encode
from tenure.model.workload import Checkpoint, Workload

CHECKPOINT: Final = "checkpoint"
"""Stands in every record of kind ``submitted``, null where a workload says nothing; earlier versions had no such."""

GRACE: Final = "grace"
"""The longest grace period of its tasks, in µs."""

_OWN: Final = {
    "preemptible": "preemptible",
    "notice": "eviction_notice",
    "requeueDelay": "requeue_delay",
    "preemptionDelay": "preemption_delay",
    "stalenessGrace": "staleness_grace_period",
}
"""What else it may say, with the attribute; durations in µs."""


def said_by(model: Workload) -> str:
    """Write what a workload says, as fields of a record that follow others."""
    made = model.checkpoint
    told = "null" if made is None else encode(_checkpoint(made))
    fields = {name: value for name, of in _OWN.items() if (value := getattr(model, of)) is not None}
    if grace := max((task.grace_period or 0 for task in model.tasks), default=0):
        fields[GRACE] = grace
    return f',"{CHECKPOINT}":{told}{"," + encode(fields)[1:-1] if fields else ""}'


def _checkpoint(made: Checkpoint) -> dict[str, Any]:
    told = {"interval": made.interval, "lastAt": made.last_at, "restart": made.restart_overhead or None}
    return {name: value for name, value in told.items() if value is not None}


def as_said(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Give the attributes of a workload that a record tells."""
    found: dict[str, Any] = {of: fields[name] for name, of in _OWN.items() if name in fields}
    told = fields.get(CHECKPOINT)
    if told is not None:
        found["checkpoint"] = Checkpoint(
            interval=told.get("interval"), last_at=told.get("lastAt"), restart_overhead=told.get("restart", 0)
        )
    return found


def restart_of(fields: Mapping[str, Any]) -> int:
    """Give how long a restart takes, in µs."""
    return int((fields.get(CHECKPOINT) or {}).get("restart", 0))
