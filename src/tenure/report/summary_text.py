"""The summary of a simulation as tables for a terminal."""

from __future__ import annotations

from typing import Any

from tenure.report.tables import TableColumn, Terminal, table
from tenure.report.words import NOTHING, duration, number, percent, resource_hours, resource_label, seconds

MAX_QUEUES = 24
"""Queues that are listed; the rest is summed up in a line."""


def summary_text(summary: dict[str, Any], where: Terminal) -> str:
    """Give the summary that `tenure simulate` prints: figures, resources, queues, and broken invariants."""
    parts = [_figures(summary, where), _resources(summary, where)]
    if len(summary["queues"]) > 1:
        parts.append(_queues(summary, where))
    return "\n".join(part for part in parts if part)


def _figures(summary: dict[str, Any], where: Terminal) -> str:
    wait, slowdown = summary["wait_s"], summary["boundedSlowdown"]
    rows = [
        ("jobs", _jobs(summary)),
        ("makespan", f"{seconds(summary['makespan_s'])} ({duration(summary['makespan_s'])})"),
        ("mean wait", f"{seconds(wait['mean'])} ({duration(wait['mean'])})" if wait["mean"] is not None else NOTHING),
        ("wait: median, 95%, max", ", ".join(seconds(wait[key]) for key in ("median", "p95", "max"))),
        (
            f"bounded slowdown (τ = {slowdown['tau_s']} s)",
            f"mean {number(slowdown['mean'], 2)}, 95% below {number(slowdown['p95'], 2)}",
        ),
        ("fairness of queues (Jain)", number(float(summary["jain"]), 3)),
        ("evictions", _by_name(summary["evictions"]) or "none"),
        *_notices(summary),
        ("broken invariants", number(summary["violations"]) if summary["violations"] else "none"),
        ("simulated in", f"{duration(summary['wall_s'])}{_rate(summary)}"),
    ]
    columns = (TableColumn("figure"), TableColumn("value", wrap=True))
    return table(columns, rows, where)


def _notices(summary: dict[str, Any]) -> list[tuple[str, str]]:
    found = summary.get("notices") or {}
    if not found.get("told"):
        return []
    spared = ", ".join(resource_hours(name, float(value)) for name, value in found["spared"].items() if value)
    text = f"{found['told']:,} told, {found['withdrawn']:,} withdrawn, {spared or 'nothing'} spared"
    return [("evictions announced", text)]


def _jobs(summary: dict[str, Any]) -> str:
    parts = [f"{summary['jobs']:,}", f"{summary['finished']:,} finished"]
    parts += [f"{summary[key]:,} {key}" for key in ("running", "waiting") if summary[key]]
    reasons = summary.get("dropReasons", {})
    if summary["dropped"]:
        why = f" ({next(iter(reasons)) if len(reasons) == 1 else _by_name(reasons)})" if reasons else ""
        parts.append(f"{summary['dropped']:,} dropped{why}")
    return ", ".join(parts)


def _by_name(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {value:,}" for name, value in counts.items())


def _rate(summary: dict[str, Any]) -> str:
    done = summary["finished"] + summary["running"] + summary["dropped"]
    return f" ({done / summary['wall_s']:,.0f} jobs/s)" if done and summary["wall_s"] > 0 else ""


def _resources(summary: dict[str, Any], where: Terminal) -> str:
    names = list(summary["utilization"])
    held = {("nvidia.com/gpu" if name == "milliGpu" else name): share for name, share in summary["allocated"].items()}
    rows = [
        (
            resource_label(name),
            percent(summary["utilization"][name], 2),
            percent(summary["goodput"].get(name), 2),
            percent(held.get(name), 2),
            resource_hours(name, float(summary["lost"].get(name, 0.0))),
        )
        for name in names
    ]
    headings = ("resource", "utilization", "goodput", "held at the end", "lost to evictions")
    columns = [TableColumn(heading, right=index > 0) for index, heading in enumerate(headings)]
    return table(columns, rows, where) if rows else ""


def _queues(summary: dict[str, Any], where: Terminal) -> str:
    queues = sorted(summary["queues"], key=lambda queue: (-queue["jobs"], queue["name"]))
    rows = [
        (
            queue["name"],
            number(queue["jobs"]),
            number(queue["finished"]),
            *(duration(queue["wait_s"][key]) for key in ("mean", "median", "p95", "max")),
        )
        for queue in queues[:MAX_QUEUES]
    ]
    headings = ("queue", "jobs", "finished", "mean wait", "median", "95%", "max")
    columns = [TableColumn(heading, right=index > 0, wrap=not index) for index, heading in enumerate(headings)]
    more = len(queues) - MAX_QUEUES
    return table(columns, rows, where) + (f"and {more} more queues\n" if more > 0 else "")
