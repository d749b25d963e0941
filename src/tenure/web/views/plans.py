"""Plans, as far as a viewer sees them: moves, and what a cycle would do."""

from __future__ import annotations

from typing import Final

from tenure.report.plans.plan_rows import all_moves
from tenure.web.views.look import Looked, Plain, moment, redacted


def moves(look: Looked, drain: str | None) -> Plain | None:
    """What emptying a node, or making room, would move; None where there is no such node, or it is not for them."""
    if not look.viewer.sees_everything or (drain is not None and drain not in look.picture.nodes.lines):
        return None
    plan = look.played("moves", drain)
    found = [] if plan is None else all_moves(plan)
    return {**moment(look), "settled": plan is not None, "drain": drain, "moves": found,
            "warnings": [] if plan is None else plan["warnings"]}  # fmt: skip


def narrowed(plan: Plain, look: Looked) -> Plain:
    """Give of a plan what the viewer sees: their own workloads, and of others only the sums of queues."""
    viewer = look.viewer
    if viewer.sees_everything:
        return plan
    return {
        "now": plan["now"],
        "steps": [_step(one, look) for one in plan["steps"] if viewer.sees(one["workload"])],
        "shadow": [_step(one, look) for one in plan["shadow"] if viewer.sees(one["workload"])],
        "pending": [
            {**one, "reasons": [redacted(reason, look) for reason in one["reasons"]]}
            for one in plan["pending"] if viewer.sees(one["workload"])
        ],
        "refused": [
            {**one, "workload": look.told(one["workload"]), "for": viewer.named(one["for"]),
             "message": look.told(one["message"])}
            for one in plan["refused"] if any(viewer.sees(key) for key in one["workload"].split(", "))
        ],
        "requeue": {"nominations": [], "skipped": [], "committed": 0, "rolledBack": 0},
        "quota": [], "quotaEvents": [], "moves": [], "queues": plan["queues"], "warnings": [],
    }  # fmt: skip


_OF_NODES: Final = frozenset({"node", "to", "devices", "claims", "volumes"})
"""What of a step says where it is, or which devices and volumes there."""


def _step(step: Plain, look: Looked) -> Plain:
    kept = dict(step)
    if "for" in kept:
        kept["for"] = look.viewer.named(kept["for"])
        kept["reason"] = look.told(kept["reason"])
    if not look.viewer.nodes:
        kept = {name: value for name, value in kept.items() if name not in _OF_NODES} | {"node": None, "devices": []}
    return kept
