"""What requeue does to the waits of urgent work, and how much work it destroys, on a real trace.

Replays a trace several times, side by side: without requeue; with requeue; with patient requeue, which takes the
cheapest candidate first and evicts only once a quarter of the wait of urgent work is worth what is lost; with both
where jobs save themselves every half hour; and with a hard limit that kills at the expected run time, whoever waits
(for comparison in this experiment only: Tenure has no such limit).

In a log of the Standard Workload Format the expected run time is what the job's owner asked for; other traces do not
say: there it is the real one times a log-normal factor, drawn per job, and the largest virtual clusters are the queues.
``--error`` draws for logs, too. Which work is urgent is given by ``--priorities``, a mapping from the values of a label
(``queue``, or that of ``--priority-of``) to priorities: from 60 on it is urgent, and what the mapping does not have is
30. Jobs without that label, and all of them where no mapping is given, are drawn: one in ten is urgent. A requeued job
loses what it did since it last saved itself, a killed one everything. Reclaim and preempt stay out: what is seen is
requeue alone.

Replays are points of a sweep: they run side by side, and with --journal the same command goes on where it was stopped.

    .venv/bin/python examples/requeue/run.py --trace philly.csv.gz SDSC-BLUE-2000-4.2-cln.swf.gz --html page.html \
        --priorities examples/requeue/sdsc-blue.json
    .venv/bin/python examples/requeue/run.py --trace philly.csv.gz --jobs 6000 --picture requeue.svg
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tenure.cli.terminal.errors import run_program
from tenure.cli.terminal.progress import ProgressLine
from tenure.cli.terminal.targets import check_targets
from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.settings import PatienceRule, RequeueSettings, Settings, WorthSettings
from tenure.model.values.resources import CPU, GPU
from tenure.model.workload import Checkpoint, Workload
from tenure.report.drawing.figure import figure
from tenure.report.drawing.plot import WIDTH, Plot, grid, rect
from tenure.report.drawing.scales import Tick, nice_step, top_of
from tenure.report.page import Cell, html_table, page, section
from tenure.report.picture import picture
from tenure.report.tables import TableColumn, terminal
from tenure.report.tables import table as set_table
from tenure.report.words import figure_text, short_number
from tenure.simulator.checker import check
from tenure.simulator.outcomes import DROPPED, Outcomes, outcomes_of
from tenure.simulator.run import Simulation, SimulationSetup, prepare
from tenure.simulator.sweep.carry_out import carry_out
from tenure.simulator.sweep.journal import SweepJournal
from tenure.simulator.sweep.points import SweepPoint, key_of
from tenure.simulator.sweep.runners import LocalProcesses
from tenure.simulator.trace import Trace, TraceJob, read_trace

SECOND = 1_000_000
HOUR = 3600 * SECOND
NORMAL, URGENT = 30, 60
"""Priority of what the mapping does not have, and that from which work counts as urgent."""

SAVES = 30 * 60 * SECOND
SCENARIOS = (
    "no requeue", "requeue", "patient requeue", "requeue, checkpoint every 30m",
    "patient requeue, checkpoint every 30m", "hard limit",
)  # fmt: skip
PATIENT = Settings(requeue=RequeueSettings(order="cost"), worth=WorthSettings(patience={"requeue": PatienceRule()}))
HEIGHT = 150
ASIDE = ("processes", "html", "picture", "journal", "json", "only")
"""Options that change nothing of what a replay gives."""

HEADINGS = (
    "", "jobs", "urgent wait, mean (h)", "95%", "other wait (h)", "requeues", "killed", "work destroyed", "violations",
    "CPU (s)",
)  # fmt: skip


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
    writes = {"--html": given.html, "--picture": given.picture, "--json": given.json, "--journal": given.journal}
    check_targets(writes, given.trace)
    missing = [trace for trace in given.trace if not Path(trace).is_file()]
    if missing:
        sys.exit(f"{missing[0]}: there is no such file; say with --trace where traces are")
    found = run(given)
    for one, rows in found:
        print(f"{name_of(one)}\n{table(rows)}")
    for path, text in ((given.html, document), (given.picture, drawing), (given.json, plain)):
        if path:
            Path(path).write_text(text(found), encoding="utf-8")
            print(f"written: {path}")


def _arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", required=True, nargs="+")
    parser.add_argument("--nodes", type=int, default=56, help="nodes of 8 GPUs, for traces that imply no machine")
    parser.add_argument("--queues", type=int, default=11, help="the largest virtual clusters that are kept")
    parser.add_argument("--jobs", type=int, default=0, help="so many jobs from --skip on; 0: all")
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--priorities", metavar="FILE|A=N,B=N", type=priorities_of, default={},
                        help="priorities by the values of a label: a JSON file with one object, or pairs")  # fmt: skip
    parser.add_argument("--priority-of", metavar="LABEL", default="queue", help="the label that --priorities is about")
    parser.add_argument("--error", action="store_true", help="draw expected run times for a log as well")
    parser.add_argument("--median", type=float, default=1.5, help="median of expected / actual run time, where drawn")
    parser.add_argument("--sigma", type=float, default=0.7, help="spread of its logarithm")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), help="make these replays alone"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--journal", metavar="FILE", help="keep what is done there, and go on with it")
    parser.add_argument("--json", metavar="FILE", help="write the figures of all replays")
    parser.add_argument("--html", help="write a page with pictures and tables")
    parser.add_argument("--picture", help="write a picture, as SVG")
    return parser.parse_args(words)


def priorities_of(text: str) -> dict[str, int]:
    """Read a mapping to priorities: pairs, or the name of a JSON file."""
    try:
        if "=" in text and not Path(text).exists():
            pairs = [part.rpartition("=") for part in text.split(",")]
            return {name.strip(): int(priority) for name, _, priority in pairs}
        read = json.loads(Path(text).read_text(encoding="utf-8"))
        return {str(name): int(priority) for name, priority in read.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        message = f"{text!r} maps nothing to priorities ({error}); write such as high=90,low=10, or a JSON file"
        raise argparse.ArgumentTypeError(message) from None


def each(given: argparse.Namespace) -> list[argparse.Namespace]:
    """Give what was asked for, trace by trace."""
    kept = {name: value for name, value in vars(given).items() if name not in ASIDE}
    return [argparse.Namespace(**{**kept, "trace": trace}) for trace in given.trace]


def name_of(one: argparse.Namespace) -> str:
    """Name a trace, and how much of it is replayed."""
    count = f", {one.jobs:,} jobs" if one.jobs else ""
    return f"{Path(one.trace).name.split('.')[0]}{count}"


Found = Sequence[tuple[argparse.Namespace, Sequence["Row"]]]
"""What came out, trace by trace."""


def run(given: argparse.Namespace) -> Found:
    """Replay the scenarios of all traces, so many at a time, the longest first, and give their figures in order."""
    order = sorted(given.only, key=lambda scenario: not _requeues(scenario))
    points = [SweepPoint(key_of(s, vars(one)), {}, (s, one)) for s in order for one in each(given)]
    progress = ProgressLine()
    with SweepJournal(Path(given.journal)) if given.journal else nullcontext() as journal:
        results = carry_out(points, replayed, LocalProcesses(given.processes), journal,
                            lambda done, count: progress.show(f"{done} of {count} replays"))  # fmt: skip
    progress.clear()
    found = {point.key: Row(**result) for point, result in zip(points, results, strict=True)}
    return [(one, [found[key_of(s, vars(one))] for s in given.only]) for one in each(given)]


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
    tier = job.workload.labels.get(given.priority_of) if given.priorities else None
    priority = (URGENT if urgent else NORMAL) if tier is None else given.priorities.get(tier, NORMAL)
    return replace(job, workload=replace(job.workload, expected_runtime=expected, priority=priority))


# -- one scenario -----------------------------------------------------------------------------------------------------


def replayed(task: tuple[str, argparse.Namespace]) -> dict[str, Any]:
    """Replay a trace under one scenario, and give its figures as plain data."""
    return asdict(replay(*task))


def replay(name: str, given: argparse.Namespace) -> Row:
    """Replay the trace under one scenario."""
    begin = time.process_time()
    trace, killed = load(given), set()
    if name == "hard limit":
        killed = {j.workload.key for j in trace.jobs if _overstays(j)}
        trace = replace(trace, jobs=tuple(_cut(j) for j in trace.jobs))
    if name.endswith("30m"):
        trace = replace(trace, jobs=tuple(_saving(j) for j in trace.jobs))
    actions = ("allocate", "requeue") if _requeues(name) else ("allocate",)
    settings = replace(PATIENT if name.startswith("patient") else Settings(), actions=actions)
    nodes = tuple(Node(name=f"n{i}", allocatable={CPU: 96_000, GPU: 8}) for i in range(given.nodes))
    base = Cluster(now=0, nodes=() if trace.nodes else nodes, settings=settings)
    setup = SimulationSetup(prepare(base, trace))

    result = Simulation(setup, trace).run()
    outcomes = outcomes_of(result.log, trace)
    violations = check(result.log, setup.cluster.nodes, queues=setup.cluster.queues).total
    return _figures(name, outcomes, killed, violations, time.process_time() - begin)


def _requeues(name: str) -> bool:
    return name.removeprefix("patient ").startswith("requeue")


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
    columns = [TableColumn(heading, right=bool(place)) for place, heading in enumerate(HEADINGS)]
    return set_table(columns, [_cells(row) for row in rows], terminal())


def _cells(row: Row) -> list[str]:
    return [
        row.name, f"{row.jobs:,}", f"{row.urgent_mean:.3f}", f"{row.urgent_high:.2f}", f"{row.other_mean:.3f}",
        f"{row.requeues:,}", f"{row.killed:,}", f"{row.destroyed:.2%}", f"{row.violations}", f"{row.seconds:.0f}",
    ]  # fmt: skip


def plain(found: Found) -> str:
    """Give all figures as JSON."""
    rows = [{"trace": name_of(one), **asdict(row)} for one, rows in found for row in rows]
    return json.dumps({"kind": "requeue", "rows": rows}, indent=1) + "\n"


def document(found: Found) -> str:
    """Give one page: what waits and what is destroyed, and the figures."""
    parts = []
    for one, rows in found:
        figures = "".join(section(title, "", figure(plot)) for title, plot in _plots(rows))
        headings = [Cell(heading, right=bool(place)) for place, heading in enumerate(HEADINGS)]
        lines = [[Cell(cell, right=bool(place)) for place, cell in enumerate(_cells(row))] for row in rows]
        parts.append(section(name_of(one), _said(one), html_table(headings, lines), figures))
    lead = "What requeue does to the waits of urgent work, and how much work it destroys."
    return page("Requeue", lead, parts)


def drawing(found: Found) -> str:
    """Give one picture."""
    plots = [
        (f"{name_of(one)}: {title[0].lower()}{title[1:]}", plot) for one, rows in found for title, plot in _plots(rows)
    ]
    return picture("What requeue does to waits, and how much work it destroys", plots)


def _said(one: argparse.Namespace) -> str:
    drawn = f"median {one.median}, sigma {one.sigma}, seed {one.seed}"
    return f"Run times that the trace does not announce are the real ones times a log-normal factor ({drawn})."


def _plots(rows: Sequence[Row]) -> list[tuple[str, Plot]]:
    return [
        _plot("Mean wait of urgent work, hours", [(r.name, r.urgent_mean) for r in rows], short_number),
        _plot("Mean wait of other work, hours", [(r.name, r.other_mean) for r in rows], short_number),
        _plot("Work destroyed, share of all work", [(r.name, r.destroyed) for r in rows], "{:.0%}".format),
    ]


def _plot(title: str, values: Sequence[tuple[str, float]], write: Callable[[float], str]) -> tuple[str, Plot]:
    """One bar for each scenario."""
    top = top_of(max(value for _, value in values))
    step = nice_step(top, 3)
    ticks = [Tick(step * n / top, write(step * n)) for n in range(round(top / step) + 1)]
    width, marks = WIDTH / len(values), grid(ticks, HEIGHT)
    for number, (name, value) in enumerate(values):
        tall = HEIGHT * value / top
        marks += rect(
            (number + 0.2) * width, HEIGHT - tall, 0.6 * width, tall, f"bar c{number}", f"{name}: {figure_text(value)}"
        )
    told = ", ".join(f"{name} {figure_text(value)}" for name, value in values)
    legend = [(f"c{number}", name) for number, (name, _) in enumerate(values)]
    return title, Plot(f"{title}: {told}", HEIGHT, marks, (), ticks, legend=legend)


if __name__ == "__main__":
    run_program(main)
