"""What requeue does to the waits of urgent work, and how much work it destroys.

Replays a trace three times: without requeue; with requeue; and with a hard limit that kills at the expected runtime,
whoever waits (for comparison in this experiment only: Tenure has no such limit). Jobs announce their run times with
an error: expected = run time times a log-normal factor, drawn per job from the seed. In an SWF log the priority of a
job follows its queue (of SDSC-BLUE: interactive and express, high, normal, low, standby); in other traces one job in
ten is urgent, drawn as well. A requeued job loses what it did since its last checkpoint, a killed one everything.
Fair shares between queues, reclaim and preempt stay out: what is seen is requeue alone.

    python examples/requeue/run.py --trace philly.csv.gz --nodes 56
    python examples/requeue/run.py --trace SDSC-BLUE-2000-4.2-cln.swf.gz --html requeue.html
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.resources import CPU, GPU
from tenure.model.settings import Settings
from tenure.model.workload import Checkpoint
from tenure.simulator.checker import check
from tenure.simulator.outcomes import DROPPED, outcomes_of
from tenure.simulator.run import Progress, Setup, Simulation, prepare
from tenure.simulator.trace import Trace, TraceJob, read_trace

SECOND = 1_000_000
TIERS = {"0": 90, "1": 90, "2": 60, "3": 30, "4": 10, "5": 0}
"""Priorities of SDSC-BLUE's queues; others are normal."""

URGENT = 60
"""Priority from which work counts as urgent."""

VARIANTS = ("no requeue", "requeue", "hard limit")


@dataclass(frozen=True)
class Row:
    """One variant's figures: waits in hours, work destroyed as a share of all work that was done."""

    name: str
    urgent_mean: float
    urgent_p95: float
    other_mean: float
    requeues: int
    killed: int
    destroyed: float
    violations: int


def main() -> None:
    """Read, replay three times, and tell."""
    given = _arguments()
    trace = _trace(given)
    rows = [_replay(name, given, trace) for name in VARIANTS]
    print(_table(rows))
    if given.html:
        Path(given.html).write_text(_page(given, rows), encoding="utf-8")
        print(f"picture: {given.html}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", required=True)
    parser.add_argument("--nodes", type=int, default=56, help="nodes of 8 GPUs, for traces that imply no machine")
    parser.add_argument("--jobs", type=int, default=5000, help="so many jobs from --skip on; 0: all")
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--median", type=float, default=0.8, help="median of expected ÷ actual run time")
    parser.add_argument("--sigma", type=float, default=0.7, help="spread of its logarithm")
    parser.add_argument("--checkpoint", type=float, default=0, help="minutes between checkpoints; 0: none is made")
    parser.add_argument("--html", help="write a page with a picture")
    return parser.parse_args()


def _trace(given: argparse.Namespace) -> Trace:
    trace = read_trace(given.trace)
    jobs = trace.jobs[given.skip : given.skip + given.jobs] if given.jobs else trace.jobs[given.skip :]
    return replace(trace, jobs=tuple(_announced(job, given) for job in jobs if job.runtime))


def _announced(job: TraceJob, given: argparse.Namespace) -> TraceJob:
    """Give a job its expected run time and its priority; the same seed gives the same."""
    draw = random.Random(f"{given.seed}/{job.record}")  # noqa: S311  a draw, no secret
    expected = round((job.runtime or 0) * given.median * math.exp(draw.gauss(0, given.sigma)))
    urgent = draw.random() < 0.1  # noqa: PLR2004  one in ten
    tier = job.workload.labels.get("queue")
    priority = (URGENT if urgent else 0) if tier is None else TIERS.get(tier, 30)
    saves = Checkpoint(interval=round(given.checkpoint * 60 * SECOND)) if given.checkpoint else None
    expected = max(SECOND, expected)
    return replace(job, workload=replace(job.workload, expected_runtime=expected, priority=priority, checkpoint=saves))


def _replay(name: str, given: argparse.Namespace, trace: Trace) -> Row:
    killed: set[str] = set()
    if name == "hard limit":
        killed = {j.workload.key for j in trace.jobs if (j.runtime or 0) > (j.workload.expected_runtime or 0)}
        trace = replace(trace, jobs=tuple(_cut(j) for j in trace.jobs))
    actions = ("allocate", "requeue") if name == "requeue" else ("allocate",)
    nodes = tuple(Node(name=f"n{i}", allocatable={CPU: 96_000, GPU: 8}) for i in range(given.nodes))
    base = Cluster(now=0, nodes=() if trace.nodes else nodes, settings=Settings(actions=actions))
    setup = Setup(prepare(base, trace))
    result = Simulation(setup, trace).run(lambda p: _progress(name, p), every=200)
    _clear()
    return _figures(name, trace, setup, result.log, killed)


def _cut(job: TraceJob) -> TraceJob:
    return replace(job, runtime=min(job.runtime or 0, job.workload.expected_runtime or 0))


def _figures(name: str, trace: Trace, setup: Setup, log: object, killed: set[str]) -> Row:
    out = outcomes_of(log, trace)  # type: ignore[arg-type]
    waits: dict[bool, list[float]] = {True: [], False: []}
    destroyed = done = 0.0
    for number, workload in enumerate(out.workloads):
        if out.state[number] == DROPPED or out.first_start[number] < 0:
            continue
        hours = (int(out.first_start[number]) - int(out.submit[number])) / SECOND / 3600
        waits[workload.priority >= URGENT].append(hours)
        size = sum(
            dict(t.spec.requests).get(GPU, 0) or dict(t.spec.requests).get(CPU, 0) / 1000 for t in workload.tasks
        )
        lost = int(out.lost[number])
        held = int(out.runtime[number]) + lost
        done += size * held
        destroyed += size * (held if workload.key in killed else lost)
    found = check(log, setup.cluster.nodes, queues=setup.cluster.queues)  # type: ignore[arg-type]
    requeues = out.by_cause.get("requeue", 0)
    urgent, others = waits[True], waits[False]
    return Row(
        name, _mean(urgent), _high(urgent), _mean(others), requeues, len(killed), destroyed / (done or 1), found.total
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _high(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))] if values else 0.0


def _progress(name: str, progress: Progress) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{name}: {progress.done} of {progress.jobs} jobs \x1b[K")


def _clear() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")


def _table(rows: list[Row]) -> str:
    heading = (
        f"{'':12} {'urgent wait (h)':>17} {'p95':>8} {'other wait (h)':>16} {'requeues':>9} {'killed':>7} "
        f"{'work destroyed':>15} {'violations':>11}"
    )
    lines = [heading]
    lines += [
        f"{r.name:12} {r.urgent_mean:17.2f} {r.urgent_p95:8.2f} {r.other_mean:16.2f} {r.requeues:9} {r.killed:7} "
        f"{r.destroyed:15.1%} {r.violations:11}"
        for r in rows
    ]
    return "\n".join(lines)


def _page(given: argparse.Namespace, rows: list[Row]) -> str:
    """One file: two rows of bars and the table."""
    charts = [
        _bars("Mean wait of urgent work, hours", [(r.name, r.urgent_mean, f"{r.urgent_mean:.2f}") for r in rows]),
        _bars("Work destroyed, share of all work", [(r.name, r.destroyed, f"{r.destroyed:.1%}") for r in rows]),
    ]
    title = f"Requeue on {Path(given.trace).name}"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title>"
        "<style>body{font:15px/1.5 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em;color:#222}"
        "pre{overflow-x:auto}</style>"
        f"<h1>{escape(title)}</h1><p>{given.jobs or 'all'} jobs, seed {given.seed}; expected = run time times a "
        f"log-normal factor (median {given.median}, sigma {given.sigma}).</p>"
        f"{''.join(charts)}<pre>{_table(rows)}</pre></html>"
    )


def _bars(title: str, values: list[tuple[str, float, str]]) -> str:
    top = max(v for _, v, _ in values) or 1.0
    parts = []
    for index, (name, value, text) in enumerate(values):
        y, width = 34 + index * 30, 380 * value / top
        parts.append(
            f"<text x=0 y={y + 15}>{escape(name)}</text><rect x=110 y={y} width={width:.1f} height=20 fill='#3b6ea5'/>"
            f"<text x={118 + width:.1f} y={y + 15}>{text}</text>"
        )
    height = 40 + 30 * len(values)
    return (
        f"<svg role=img aria-label='{escape(title)}' viewBox='0 0 600 {height}' font-size=14 "
        f"xmlns='http://www.w3.org/2000/svg'><text x=0 y=18 font-weight=bold>{escape(title)}</text>"
        f"{''.join(parts)}</svg>"
    )


if __name__ == "__main__":
    main()
