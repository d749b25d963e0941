"""Thirty days of arrivals and departures: what moves do for large jobs, and what they cost.

Generates a workload (Lublin and Feitelson's model, as gangs of pods with GPUs) whose jobs ask for up to ``--largest``
GPUs, and replays it several times on the same cluster: without moves; making room for what waits; improving the layout
in the background; and both; with greedy plans, and with exact ones. Arrivals stop after ``--days``, and what is still
there runs to its end: moves have to die out with the arrivals. Every replay runs in a process of its own.

    .venv/bin/python examples/rescheduler/month.py
    .venv/bin/python examples/rescheduler/month.py --seeds 1 2 3 --each --plans greedy exact --svg month.svg
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields, replace
from pathlib import Path

from month_view import Row, month_page, month_picture, table

from tenure.cli.terminal.errors import run_program
from tenure.cli.terminal.progress import ProgressLine
from tenure.cli.terminal.targets import check_targets
from tenure.model.documents.files import write_atomically
from tenure.model.settings import BackgroundSettings, ExactSettings, ReschedulerSettings, Settings
from tenure.model.values.resources import GPU
from tenure.model.workload import Workload
from tenure.simulator.checker import check
from tenure.simulator.generate import GeneratorConfig, cluster_for, generate
from tenure.simulator.outcomes import Outcomes, outcomes_of
from tenure.simulator.run import Simulation, SimulationSetup, prepare

SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR
NODE = 8
"""GPUs of a node; jobs that ask for whole nodes count as large."""
NEVER = 10_000 * DAY

VARIANTS = ("no moves", "make room", "background", "both")


@dataclass(frozen=True)
class Asked:
    """One replay."""

    name: str
    seed: int
    days: float
    gpus: int
    load: float
    largest: int
    least: float
    exact: bool

    @property
    def label(self) -> str:
        """Name and kind of plan."""
        return f"{self.name}, exact" if self.exact and self.name != VARIANTS[0] else self.name


def main() -> None:
    """Replay all variants, and tell."""
    given = _arguments()
    check_targets({"--html": given.html, "--svg": given.svg})
    asked = [
        Asked(name, seed, given.days, given.gpus, given.load, given.largest, given.min_gain, exact=plan == "exact")
        for plan in given.plans
        for name in VARIANTS
        for seed in given.seeds
        if name != VARIANTS[0] or plan == given.plans[0]
    ]
    rows = run(asked, given.processes, each=given.each)
    print(table(rows))
    title = f"{given.days:g} days on {given.gpus} GPUs"
    lead = f"Offered load {given.load:g}, jobs of up to {given.largest} GPUs, seeds {', '.join(map(str, given.seeds))}."
    if given.html:
        write_atomically(Path(given.html), month_page(title, lead, rows))
    if given.svg:
        write_atomically(Path(given.svg), month_picture(f"{title}, means of {len(given.seeds)} seeds", rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=float, default=30)
    parser.add_argument("--gpus", type=int, default=64)
    parser.add_argument("--load", type=float, default=0.6, help="work that is asked for, as a share of the cluster")
    parser.add_argument("--largest", type=int, default=16, help="GPUs of the largest jobs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--each", action="store_true", help="a row for each seed beside the means")
    parser.add_argument("--min-gain", type=float, default=0.001, help="of the background")
    parser.add_argument("--plans", nargs="+", choices=("greedy", "exact"), default=["greedy"])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--html", help="write a page with pictures")
    parser.add_argument("--svg", help="write the pictures alone")
    return parser.parse_args()


def run(asked: list[Asked], processes: int = 1, *, each: bool = False) -> list[Row]:
    """Replay everything that is asked, and give the mean of each variant over its seeds, perhaps after each seed."""
    line = ProgressLine()
    found: dict[Asked, Row] = {}
    with ProcessPoolExecutor(processes) as pool:
        futures = {pool.submit(replay, a): a for a in asked}
        line.show(f"0 of {len(asked)} replays")
        for done, future in enumerate(as_completed(futures), start=1):
            found[futures[future]] = future.result()
            line.show(f"{done} of {len(asked)} replays")
    line.clear()
    labels = dict.fromkeys(a.label for a in asked)
    rows = []
    for label in labels:
        mine = [a for a in asked if a.label == label]
        if each:
            rows += [replace(found[a], name=f"{label}, seed {a.seed}") for a in mine]
        rows.append(_mean([found[a] for a in mine]))
    return rows


def replay(asked: Asked) -> Row:
    """Replay one variant."""
    begin = time.process_time()
    many = asked.load * asked.gpus / asked.largest
    trace = generate(GeneratorConfig(days=asked.days, load=many, capacity=asked.largest), asked.seed)
    rescheduler = ReschedulerSettings(
        pending_for=60 * SECOND if asked.name in {"make room", "both"} else NEVER,
        exact=ExactSettings(enabled=asked.exact),
        background=BackgroundSettings(
            interval=HOUR if asked.name in {"background", "both"} else None, objective="pack", min_gain=asked.least
        ),
    )
    actions = ("allocate",) if asked.name == "no moves" else ("allocate", "reschedule")
    base = cluster_for(GeneratorConfig(capacity=asked.gpus))
    base = replace(base, settings=Settings(actions=actions, rescheduler=rescheduler))
    simulation = Simulation(SimulationSetup(prepare(base, trace)), trace)
    result = simulation.run()
    out = outcomes_of(result.log, trace)
    last = max(job.workload.created_at for job in trace.jobs)
    times = sorted(move.at for move in simulation.scheduler.context.rescheduling.sent) if actions[1:] else []  # type: ignore[attr-defined]
    found = check(result.log, simulation.setup.cluster.nodes, queues=simulation.setup.cluster.queues)
    return _figures(asked, out, times, last, found.total, time.process_time() - begin)


def _figures(asked: Asked, out: Outcomes, times: list[int], last: int, violations: int, seconds: float) -> Row:
    waits: dict[bool, list[float]] = {True: [], False: []}
    used = lost = done = 0.0
    for number, workload in enumerate(out.workloads):
        start = int(out.first_start[number])
        if start < 0:
            continue
        size = _gpus(workload)
        waits[size >= NODE].append((start - int(out.submit[number])) / HOUR)
        runtime, gone = int(out.runtime[number]), int(out.lost[number])
        used += size * max(0, min(int(out.end[number]), last) - start) if out.end[number] >= 0 else 0
        lost += size * gone
        done += size * (runtime + gone)
    days = int(last // DAY) + 1
    daily = [0.0] * days
    for at in times:
        if at <= last:
            daily[min(days - 1, at // DAY)] += 1
    large = _average(waits[True])
    return Row(
        asked.label, large, large, large, _high(waits[True]), _average(waits[False]), len(times),
        max(daily, default=0.0), sum(at > last for at in times),
        max(0.0, (times[-1] - last) / HOUR) if times else 0.0, used / (asked.gpus * last or 1),
        lost / (done or 1), violations, seconds, tuple(daily),
    )  # fmt: skip


def _gpus(workload: Workload) -> float:
    return sum(
        dict(t.spec.requests).get(GPU, 0) or (t.spec.gpu_share.milli / 1000 if t.spec.gpu_share else 0)
        for t in workload.tasks
    )


def _average(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _high(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))] if values else 0.0


def _mean(rows: list[Row]) -> Row:
    days = max(len(r.daily) for r in rows)
    daily = tuple(_average([r.daily[d] if d < len(r.daily) else 0.0 for r in rows]) for d in range(days))
    means = {f.name: _average([getattr(r, f.name) for r in rows]) for f in fields(Row) if f.type == "float"}
    waits = [r.large for r in rows]
    return Row(name=rows[0].name, daily=daily, **{**means, "low": min(waits), "high": max(waits)})


if __name__ == "__main__":
    run_program(main)
