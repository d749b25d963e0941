"""What requeue does to the waits of urgent work, and how much work it destroys, on a real trace.

Replays a trace several times, side by side: without requeue; with requeue; with requeue where jobs save themselves
every half hour; and with a hard limit that kills at the expected run time, whoever waits (for comparison in this
experiment only: Tenure has no such limit).

In a log of the Standard Workload Format the expected run time is what the job's owner asked for, and its queue is its
tier (of SDSC-BLUE: interactive and express, high, normal, low, standby). Other traces say neither: there the expected
run time is the real one times a log-normal factor, drawn per job, one job in ten is urgent, drawn as well, and the
largest virtual clusters are the queues. ``--error`` draws for logs, too. A requeued job loses what it did since it last
saved itself, a killed one everything. Reclaim and preempt stay out: what is seen is requeue alone.

    python examples/requeue/run.py --trace philly.csv.gz --nodes 56
    python examples/requeue/run.py --trace SDSC-BLUE-2000-4.2-cln.swf.gz --html requeue.html
"""

from __future__ import annotations

import argparse
import gzip
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.resources import CPU, GPU
from tenure.model.settings import Settings
from tenure.model.workload import Checkpoint, Workload
from tenure.simulator.checker import check
from tenure.simulator.outcomes import DROPPED, Outcomes, outcomes_of
from tenure.simulator.run import Progress, Setup, Simulation, prepare
from tenure.simulator.trace import Trace, TraceJob, read_trace

SECOND = 1_000_000
HOUR = 3600 * SECOND
TIERS = {"0": 90, "1": 90, "2": 60, "3": 30, "4": 10, "5": 0}
"""Priorities of SDSC-BLUE's queues; others are normal."""

NORMAL, URGENT = 30, 60
"""Priority of what has no tier, and that from which work counts as urgent."""

SAVES = 30 * 60 * SECOND
SCENARIOS = ("no requeue", "requeue", "requeue, saved every 30m", "hard limit")


@dataclass(frozen=True)
class Row:
    """One scenario's figures: waits in hours, work destroyed as a share of all work that was done."""

    name: str
    jobs: int
    urgent_mean: float
    urgent_high: float
    other_mean: float
    requeues: int
    killed: int
    destroyed: float
    violations: int
    seconds: float


def main() -> None:
    """Replay all scenarios, and tell."""
    given = _arguments()
    rows = run(given)
    print(table(rows))
    if given.html:
        Path(given.html).write_text(_page(given, rows), encoding="utf-8")
        print(f"picture: {given.html}")


def _arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", required=True)
    parser.add_argument("--nodes", type=int, default=56, help="nodes of 8 GPUs, for traces that imply no machine")
    parser.add_argument("--queues", type=int, default=11, help="the largest virtual clusters that are kept")
    parser.add_argument("--jobs", type=int, default=0, help="so many jobs from --skip on; 0: all")
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--error", action="store_true", help="draw expected run times for a log as well")
    parser.add_argument("--median", type=float, default=1.5, help="median of expected / actual run time, where drawn")
    parser.add_argument("--sigma", type=float, default=0.7, help="spread of its logarithm")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--html", help="write a page with a picture")
    return parser.parse_args(words)


def run(given: argparse.Namespace) -> list[Row]:
    """Replay the scenarios, so many at a time, and give their figures in order."""
    found: dict[str, Row] = {}
    with TemporaryDirectory() as folder, ProcessPoolExecutor(given.processes) as pool:
        jobs = {pool.submit(replay, name, given, folder): name for name in SCENARIOS}
        left = set(jobs)
        while left:
            done, left = wait(left, timeout=2, return_when=FIRST_COMPLETED)
            for job in done:
                found[jobs[job]] = job.result()
            _show(Path(folder), found)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    return [found[name] for name in SCENARIOS]


def _show(folder: Path, found: dict[str, Row]) -> None:
    """Show how far each scenario is, where somebody looks."""
    if sys.stderr.isatty():
        states = [f"{f.name}: {f.read_text(encoding='utf-8')}" for f in sorted(folder.iterdir()) if f.name not in found]
        sys.stderr.write(f"\r{'; '.join(states)[:150]}\x1b[K")


# -- the trace --------------------------------------------------------------------------------------------------------


def load(given: argparse.Namespace) -> Trace:
    """Read the trace, and give every job its expected run time and its priority; the same seed gives the same."""
    trace = read_trace(given.trace)
    jobs = [j for j in trace.jobs if j.runtime]
    asked = _requested(given.trace) if trace.format == "swf" and not given.error else {}
    if trace.format != "swf":
        size = Counter(j.workload.queue for j in jobs)
        largest = {queue for queue, _ in size.most_common(given.queues)}
        jobs = [j for j in jobs if j.workload.queue in largest]
    jobs = jobs[given.skip : given.skip + given.jobs] if given.jobs else jobs[given.skip :]
    return replace(trace, jobs=tuple(_announced(job, given, asked) for job in jobs))


def _requested(path: str) -> dict[str, int]:
    """Give the run time that each job of a log asked for, in µs, where it asked for one."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", errors="replace") as lines:
        records = [line.split() for line in lines if line.strip() and not line.startswith(";")]
    return {r[0]: round(float(r[8]) * SECOND) for r in records if float(r[8]) > 0}


def _announced(job: TraceJob, given: argparse.Namespace, asked: dict[str, int]) -> TraceJob:
    draw = random.Random(f"{given.seed}/{job.record}")  # noqa: S311  a draw, no secret
    guess = round((job.runtime or 0) * given.median * math.exp(draw.gauss(0, given.sigma)))
    expected = max(SECOND, asked.get(job.record, 0) if asked else guess) if not asked or job.record in asked else None
    urgent = draw.random() < 0.1  # noqa: PLR2004  one in ten
    tier = job.workload.labels.get("queue")
    priority = (URGENT if urgent else NORMAL) if tier is None else TIERS.get(tier, NORMAL)
    return replace(job, workload=replace(job.workload, expected_runtime=expected, priority=priority))


# -- one scenario -----------------------------------------------------------------------------------------------------


def replay(name: str, given: argparse.Namespace, folder: str) -> Row:
    """Replay the trace under one scenario; what has been done so far stands in a file of that name."""
    begin = time.process_time()
    trace, killed = load(given), set()
    if name == "hard limit":
        killed = {j.workload.key for j in trace.jobs if _overstays(j)}
        trace = replace(trace, jobs=tuple(_cut(j) for j in trace.jobs))
    if name.endswith("30m"):
        trace = replace(trace, jobs=tuple(_saving(j) for j in trace.jobs))
    settings = Settings(actions=("allocate", "requeue") if name.startswith("requeue") else ("allocate",))
    nodes = tuple(Node(name=f"n{i}", allocatable={CPU: 96_000, GPU: 8}) for i in range(given.nodes))
    base = Cluster(now=0, nodes=() if trace.nodes else nodes, settings=settings)
    setup = Setup(prepare(base, trace))

    def report(progress: Progress) -> None:
        Path(folder, name).write_text(f"{progress.done} of {progress.jobs}", encoding="utf-8")

    result = Simulation(setup, trace).run(report, every=500)
    outcomes = outcomes_of(result.log, trace)
    violations = check(result.log, setup.cluster.nodes, queues=setup.cluster.queues).total
    return _figures(name, outcomes, killed, violations, time.process_time() - begin)


def _overstays(job: TraceJob) -> bool:
    expected = job.workload.expected_runtime
    return expected is not None and (job.runtime or 0) > expected


def _cut(job: TraceJob) -> TraceJob:
    return replace(job, runtime=job.workload.expected_runtime) if _overstays(job) else job


def _saving(job: TraceJob) -> TraceJob:
    return replace(job, workload=replace(job.workload, checkpoint=Checkpoint(interval=SAVES)))


def _figures(name: str, out: Outcomes, killed: set[str], violations: int, seconds: float) -> Row:
    waits: dict[bool, list[float]] = {True: [], False: []}
    destroyed = done = 0.0
    for number, workload in enumerate(out.workloads):
        if out.state[number] == DROPPED or out.first_start[number] < 0:
            continue
        waits[workload.priority >= URGENT].append((int(out.first_start[number]) - int(out.submit[number])) / HOUR)
        lost = int(out.lost[number])
        held = int(out.runtime[number]) + lost
        size = _size(workload)
        done += size * held
        destroyed += size * (held if workload.key in killed else lost)
    urgent, others = sorted(waits[True]), waits[False]
    high = urgent[min(len(urgent) - 1, int(0.95 * len(urgent)))] if urgent else 0.0
    return Row(
        name, len(urgent) + len(others), _mean(urgent), high, _mean(others), out.by_cause.get("requeue", 0),
        len(killed), destroyed / (done or 1), violations, seconds,
    )  # fmt: skip


def _size(workload: Workload) -> float:
    asks = [dict(t.spec.requests) for t in workload.tasks]
    return sum(a.get(GPU, 0) or a.get(CPU, 0) / 1000 for a in asks)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


# -- what is shown ----------------------------------------------------------------------------------------------------


def table(rows: Sequence[Row]) -> str:
    """Give all figures as text."""
    heading = (
        f"{'':26} {'jobs':>8} {'urgent wait (h)':>16} {'95%':>8} {'other wait (h)':>15} {'requeues':>9} {'killed':>7} "
        f"{'work destroyed':>15} {'violations':>11} {'CPU (s)':>8}"
    )
    lines = [heading]
    lines += [
        f"{r.name:26} {r.jobs:8,} {r.urgent_mean:16.3f} {r.urgent_high:8.2f} {r.other_mean:15.3f} {r.requeues:9,} "
        f"{r.killed:7,} {r.destroyed:15.2%} {r.violations:11} {r.seconds:8.0f}"
        for r in rows
    ]
    return "\n".join(lines)


def _page(given: argparse.Namespace, rows: Sequence[Row]) -> str:
    """One file: three rows of bars and the table."""
    charts = [
        _bars("Mean wait of urgent work, hours", [(r.name, r.urgent_mean, f"{r.urgent_mean:.2f}") for r in rows]),
        _bars("Mean wait of other work, hours", [(r.name, r.other_mean, f"{r.other_mean:.2f}") for r in rows]),
        _bars("Work destroyed, share of all work", [(r.name, r.destroyed, f"{r.destroyed:.2%}") for r in rows]),
    ]
    title = f"Requeue on {Path(given.trace).name}"
    drawn = f"median {given.median}, sigma {given.sigma}, seed {given.seed}"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title>"
        "<style>body{font:15px/1.5 system-ui,sans-serif;max-width:52em;margin:2em auto;padding:0 1em;color:#222}"
        "pre{overflow-x:auto}</style>"
        f"<h1>{escape(title)}</h1><p>Expected run times that the trace does not say are the real ones times a "
        f"log-normal factor ({drawn}).</p>{''.join(charts)}<pre>{table(rows)}</pre></html>"
    )


def _bars(title: str, values: list[tuple[str, float, str]]) -> str:
    top = max(v for _, v, _ in values) or 1.0
    parts = []
    for index, (name, value, text) in enumerate(values):
        y, width = 34 + index * 30, 340 * value / top
        parts.append(
            f"<text x=0 y={y + 15}>{escape(name)}</text><rect x=180 y={y} width={width:.1f} height=20 fill='#3b6ea5'/>"
            f"<text x={188 + width:.1f} y={y + 15}>{text}</text>"
        )
    height = 40 + 30 * len(values)
    return (
        f"<svg role=img aria-label='{escape(title)}' viewBox='0 0 620 {height}' font-size=14 "
        f"xmlns='http://www.w3.org/2000/svg'><text x=0 y=18 font-weight=bold>{escape(title)}</text>"
        f"{''.join(parts)}</svg>"
    )


if __name__ == "__main__":
    main()
