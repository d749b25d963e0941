"""The report of a simulation: one page with figures and pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import PurePath
from typing import Any

import numpy as np

from tenure.model.cluster import Cluster
from tenure.report.drawing.busiest import busiest
from tenure.report.drawing.charts import (
    evictions_plot,
    slowdown_plot,
    use_plot,
    wait_distribution_plot,
    wait_plot,
    waiting_plot,
)
from tenure.report.drawing.figure import figure
from tenure.report.drawing.gantt import caption, gantt
from tenure.report.drawing.series import Floats, SimulationSeries
from tenure.report.page import Cell, Tile, details, html_table, listed, page, section, tiles
from tenure.report.words import NOTHING, count, duration, number, percent, resource_hours, resource_label
from tenure.simulator.checks.findings import Violations
from tenure.simulator.metrics import TAU_S, slowdowns
from tenure.simulator.outcomes import FINISHED, Outcomes
from tenure.simulator.traces.records import SECOND

MAX_QUEUES = 200
"""Queues in the table."""


def simulation_page(outcomes: Outcomes, cluster: Cluster, summary: dict[str, Any], violations: Violations) -> str:
    """Make the page that `tenure simulate --report` writes.

    Parameters
    ----------
    outcomes
        What became of each job.
    cluster
        What the simulation started from: its nodes are those of the outcomes.
    summary
        What `tenure simulate --format json` prints.
    violations
        What the checker found.
    """
    history = SimulationSeries(outcomes, cluster)
    colors = _colors(history)
    body = [
        _notice(summary),
        tiles(_tiles(summary, history)),
        _use(history),
        _waiting(history),
        f'<div class="pair">{_slowdown(outcomes)}{_waits(summary, outcomes, colors)}</div>',
        _gantt(history),
        _evictions(history, summary),
        _violations(violations),
        _queues(summary, colors),
        _settings(summary),
    ]
    return page(f"Simulation of {_name(summary)}", _lead(summary), body)


def _name(summary: dict[str, Any]) -> str:
    return PurePath(str(summary.get("trace", "a trace"))).name or "a trace"


def _lead(summary: dict[str, Any]) -> str:
    parts = [count(summary["jobs"], "job"), count(summary.get("nodes", 0), "node")]
    settings = summary.get("scheduler", {})
    parts += [f"{name} {settings[name]}" for name in ("placement", "backfill") if isinstance(settings.get(name), str)]
    return f"{', '.join(parts)}, over {duration(summary['makespan_s'])} of virtual time."


def _colors(history: SimulationSeries) -> dict[str, int]:
    """Give the colour of every queue."""
    groups = history.groups
    names = [workload.queue or "default" for workload in history.outcomes.workloads]
    return dict(zip(names, groups.of_job.tolist(), strict=True))


def _notice(summary: dict[str, Any]) -> str:
    if summary.get("complete", True):
        return ""
    return section(
        "Interrupted",
        f"The simulation was ended after {duration(summary['makespan_s'])}: this is a part.",
        kind="notice",
    )


def _tiles(summary: dict[str, Any], history: SimulationSeries) -> list[Tile]:
    wait, slowdown = summary["wait_s"], summary["boundedSlowdown"]
    main = history.main
    used, useful = summary["utilization"].get(main), summary["goodput"].get(main)
    evicted, broken = sum(summary["evictions"].values()), summary["violations"]
    unfinished = [f"{summary[key]:,} {key}" for key in ("running", "waiting", "dropped") if summary.get(key)]
    return [
        Tile("Finished", f"{summary['finished']:,}", ", ".join(unfinished) or f"of {count(summary['jobs'], 'job')}"),
        Tile("Makespan", duration(summary["makespan_s"]), "from the first arrival to the last event"),
        Tile("Mean wait", duration(wait["mean"]), f"median {duration(wait['median'])}, 95% {duration(wait['p95'])}"),
        Tile("Mean bounded slowdown", number(slowdown["mean"], 2), f"95% below {number(slowdown['p95'], 1)}"),
        Tile(f"{resource_label(main)} utilization", percent(used), f"goodput {percent(useful)}"),
        Tile("Fairness of queues", number(float(summary["jain"]), 3), "Jain's index, 1 is equal"),
        Tile("Evictions", number(evicted), _causes(summary["evictions"])),
        Tile(
            "Broken invariants",
            number(broken),
            "see below" if broken else "checked independently",
            "bad" if broken else "good",
        ),
    ]


def _causes(evictions: dict[str, int]) -> str:
    return ", ".join(f"{cause} {number:,}" for cause, number in evictions.items()) or "nothing was evicted"


def _use(history: SimulationSeries) -> str:
    plots = [f"<h3>{escape(resource_label(use.resource))}</h3>{figure(use_plot(use))}" for use in history.uses()]
    if not plots:
        return ""
    told = "What tasks hold, as a share of the capacity of all nodes (dashed line)."
    return section("Use over time", told, *plots, name="use")


def _waiting(history: SimulationSeries) -> str:
    told = "Jobs that have arrived and hold nothing."
    return section("Waiting jobs", told, figure(waiting_plot(history.waiting())), name="waiting")


def _slowdown(outcomes: Outcomes) -> str:
    mine = np.arange(len(outcomes.names)) >= outcomes.initial
    finished = np.array([state == FINISHED for state in outcomes.state], dtype=np.bool_)
    values = slowdowns(outcomes, mine & finished)
    told = f"Time in the system divided by the run time (at least {TAU_S} s); 1 is no delay. Logarithmic."
    content = figure(slowdown_plot(values)) if len(values) else "<p>No job with a known run time has finished.</p>"
    return section("Bounded slowdown", told, content, name="slowdown")


def _waits(summary: dict[str, Any], outcomes: Outcomes, colors: dict[str, int]) -> str:
    if len(summary["queues"]) < 2:  # noqa: PLR2004  one queue: how its jobs differ says more
        values = _first_waits(outcomes)
        content = figure(wait_distribution_plot(values)) if len(values) else "<p>No job has started.</p>"
        return section("Wait", "From arrival to the first start. Logarithmic.", content, name="wait")
    plot = wait_plot(summary["queues"], colors)
    told = "Dot: mean. Bar: median to 95%. Line: up to the longest. Logarithmic."
    content = figure(plot) if plot is not None else "<p>No job has started.</p>"
    return section("Wait by queue", told, content, name="wait")


def _first_waits(outcomes: Outcomes) -> Floats:
    """Give the seconds from arrival to first start of the trace's jobs that started."""
    mine = np.arange(len(outcomes.names)) >= outcomes.initial
    started = mine & (outcomes.first_start >= 0) & (outcomes.submit >= 0)
    return (outcomes.first_start[started] - outcomes.submit[started]) / SECOND


def _gantt(history: SimulationSeries) -> str:
    stretch = busiest(history)
    if stretch is None:
        return ""
    return section("Busiest stretch", caption(history, stretch), figure(gantt(history, stretch)), name="gantt")


def _evictions(history: SimulationSeries, summary: dict[str, Any]) -> str:
    series = history.evictions()
    if series is None:
        return ""
    lost = ", ".join(resource_hours(name, value) for name, value in summary["lost"].items() if value)
    tasks, times = sum(summary["evictedTasks"].values()), sum(summary["evictions"].values())
    told = f"Evicted tasks by cause: {tasks:,} in {count(times, 'eviction')} of workloads. "
    told += f"Lost to them: {lost or 'nothing'}."
    return section("Evictions", told, figure(evictions_plot(series)), name="evictions")


def _violations(violations: Violations) -> str:
    title = "Broken invariants"
    if not violations.total:
        told = (
            "None. A checker that shares no code with the scheduler went through all that happened: no node, device or "
            "queue over its limit, no gang running below its core, no eviction without a beneficiary that then ran for "
            "some time, none of what is not preemptible or has not run for its minimum runtime, none without the "
            "notice that was asked for, nothing bound and evicted in one plan, no victim back in its place on an "
            "unchanged cluster; and every job ended once and as a whole, waits, or was dropped with a reason."
        )
        return section(title, told, name="violations")
    told = ", ".join(f"{kind}: {number:,}" for kind, number in violations.by_kind.items())
    return section(title, f"{told}. Examples:", listed(violations.examples), kind="notice", name="violations")


def _queues(summary: dict[str, Any], colors: dict[str, int]) -> str:
    if not summary["queues"]:
        return ""
    queues = sorted(summary["queues"], key=lambda queue: (-queue["jobs"], queue["name"]))
    headings = ["Queue", "Jobs", "Finished", "Mean wait", "Median", "95%", "Longest"]
    rows = [
        [
            Cell(queue["name"], color=colors.get(queue["name"])),
            Cell(number(queue["jobs"]), right=True),
            Cell(number(queue["finished"]), right=True),
            *(Cell(duration(queue["wait_s"][key]), right=True) for key in ("mean", "median", "p95", "max")),
        ]
        for queue in queues[:MAX_QUEUES]
    ]
    more = len(queues) - MAX_QUEUES
    told = f"The {MAX_QUEUES} with most jobs, of {len(queues):,}." if more > 0 else ""
    head = [Cell(text, right=index > 0) for index, text in enumerate(headings)]
    return section("Queues", told, html_table(head, rows), name="queues")


def _settings(summary: dict[str, Any]) -> str:
    rows: Sequence[tuple[str, str]] = [
        ("Trace", str(summary.get("trace", NOTHING))),
        ("Format", str(summary.get("traceFormat", NOTHING))),
        ("Nodes", number(summary.get("nodes"))),
        ("Dropped", _dropped(summary)),
        ("Simulated in", duration(summary["wall_s"])),
    ]
    chosen = summary.get("scheduler", {})
    settings = f"<pre>{escape(json.dumps(chosen, indent=2, ensure_ascii=False))}</pre>" if chosen else ""
    figures = {key: value for key, value in summary.items() if key != "queues"}
    return section(
        "What was simulated",
        "Settings of the scheduler that differ from the defaults stand below."
        if chosen
        else "All settings of the scheduler are the defaults.",
        html_table([Cell("Input"), Cell("Value")], [[Cell(name), Cell(value)] for name, value in rows]),
        settings,
        details("All figures", f"<pre>{escape(json.dumps(figures, indent=2, ensure_ascii=False))}</pre>"),
        name="settings",
    )


def _dropped(summary: dict[str, Any]) -> str:
    reasons = summary.get("dropReasons", {})
    return ", ".join(f"{number:,}: {reason}" for reason, number in reasons.items()) or "nothing"
