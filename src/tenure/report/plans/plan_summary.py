"""A large plan in a few lines: what is done by cause, which workloads wait and why, and where to read on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from tenure.model.values.readable import cost_figure
from tenure.report.plans.plan_rows import COST, Plan, Rows
from tenure.report.words import number

LARGE: Final = 60
"""Rows of a table from which on a plan is one that is summed up first."""

TOP: Final = 10
"""Rows of each table that are shown of a large plan, if nothing else is said."""

READ_ON: Final = (
    "Read on: --workload NAMESPACE/NAME or --queue NAME shows everything about one, --top N shows N rows of each table "
    "(0: all), --format json gives everything."
)
_PARTS: Final = ("steps", "shadow", "pending", "refused")


def is_large(plan: Plan) -> bool:
    """Whether a plan is better summed up first."""
    external = plan.get("external") or {}
    return any(len(part.get(name, ())) > LARGE for part in (plan, external) for name in _PARTS)


def summary(plan: Plan) -> list[Rows]:
    """Sum up what is done, by action and cause, and what waits, by every reason that it has."""
    return [rows for rows in (_done(plan["steps"]), _waiting(plan["pending"])) if rows.rows]


def _done(steps: Iterable[Mapping[str, Any]]) -> Rows:
    tasks: Counter[tuple[str, str]] = Counter()
    workloads: dict[tuple[str, str], set[str]] = {}
    others: dict[tuple[str, str], set[str]] = {}
    costs: Counter[tuple[str, str]] = Counter()
    for step in steps:
        key = step["action"], step.get("cause") or ""
        tasks[key] += 1
        workloads.setdefault(key, set()).add(step["workload"])
        if step.get("for"):
            others.setdefault(key, set()).add(step["for"])
        costs[key] += step.get("cost") or 0
    rows = [
        (*key, number(count), number(len(workloads[key])), number(len(others.get(key, ()))) if key[1] else "",
         cost_figure(float(costs[key])) if key[1] else "")
        for key, count in sorted(tasks.items())
    ]  # fmt: skip
    numbers = ("tasks", "workloads", "for workloads", COST)
    return Rows("What is done", ("action", "cause", *numbers), rows, numbers=numbers)


def _waiting(pending: Iterable[Mapping[str, Any]]) -> Rows:
    found: dict[str, list[tuple[str, str]]] = {}
    for entry in pending:
        messages: dict[str, str] = {}
        for reason in entry["reasons"] or [{"code": "", "message": ""}]:
            messages.setdefault(reason["code"], reason["message"])
        for code, message in messages.items():
            found.setdefault(code, []).append((entry["workload"], message))
    rows = [
        (code, number(len(having)), *having[0])
        for code, having in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    title = "Why workloads wait (each counts at all of its reasons)"
    return Rows(title, ("reason", "workloads", "such as", "why"), rows, numbers=("workloads",), wide=("such as", "why"))


def of_some(plan: Plan, keys: Collection[str], queues: Collection[str]) -> Plan:
    """Give of a plan what is about some workloads, and the queues that are named."""

    def about(entry: Mapping[str, Any]) -> bool:
        return entry["workload"] in keys or entry.get("for") in keys

    requeue = plan.get("requeue") or {}
    found = {
        **plan,
        "steps": [step for step in plan["steps"] if about(step)],
        "shadow": [step for step in plan.get("shadow", ()) if about(step)],
        "pending": [entry for entry in plan["pending"] if about(entry)],
        "refused": [entry for entry in plan.get("refused", ()) if about(entry)],
        "requeue": {
            **requeue,
            **{name: [e for e in requeue.get(name, ()) if about(e)] for name in ("nominations", "skipped")},
        },
        "followUps": [entry for entry in plan.get("followUps", ()) if _follows_some(entry, keys)],
        "quota": [entry for entry in plan.get("quota", ()) if entry["queue"] in queues],
        "quotaEvents": [entry for entry in plan.get("quotaEvents", ()) if entry["queue"] in queues],
        "moves": [move for move in plan.get("moves", ()) if _moves_some(move, keys)],
        "queues": [queue for queue in plan["queues"] if queue["name"] in queues],
    }  # fmt: skip
    if plan.get("external"):
        inner = {"queues": (), **plan["external"]}
        found["external"] = of_some(inner, keys, queues)
    return found


def _follows_some(entry: Mapping[str, Any], keys: Collection[str]) -> bool:
    named = {entry.get("of"), entry.get("for"), *(victim["workload"] for victim in entry.get("evict", ()))}
    return not named.isdisjoint(keys)


def _moves_some(move: Plan, keys: Collection[str]) -> bool:
    moved = {entry["workload"] for wave in move.get("waves") or () for entry in wave}
    return not moved.isdisjoint(keys) or not set(move.get("for") or ()).isdisjoint(keys)
