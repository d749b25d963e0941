"""B5: EASY backfilling on two logs of the Parallel Workloads Archive, through the full engine.

Every start is compared with that of the textbook implementation in the tests, which shares no code with the engine.
AccaSim, a simulator in Python, runs beside it on the same log, where ``make accasim`` has installed it.
Run: python benchmarks/b05_easy.py [--log KTH-SP2] [--repeats N]
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from common import ROOT, measure, median, print_memory, print_table, rate, traces_or_skip
from results import Results, rounded
from tenure.model.cluster import Cluster
from tenure.model.settings import Settings
from tenure.simulator.log import BIND
from tenure.simulator.run import Simulation, SimulationResult, SimulationSetup, prepare
from tenure.simulator.trace import Trace, read_trace, scale_load

sys.path.insert(0, str(ROOT))
from tests.simulator.textbook import Job, easy_starts, mean_bounded_slowdown, mean_wait

SECOND = 1_000_000
LOGS = {
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln.swf.gz", 100, 1.0, 20_000),
    "SDSC-BLUE": ("SDSC-BLUE-2000-4.2-cln.swf.gz", 1_152, 1.0, 20_000),
    "KTH-SP2, 1.6 times the load": ("KTH-SP2-1996-2.1-cln.swf.gz", 100, 1.6, 10_000),
}
"""File, processors, load, and jobs/s that are wanted. With 1.6 times the load thousands of jobs wait for days."""
ACCASIM = ROOT / ".accasim" / "bin" / "python"
"""The interpreter of the environment in which AccaSim is installed."""


class AccaSim(NamedTuple):
    """What AccaSim does with a log: jobs per second of the processor, and the mean wait (s) under its own EASY."""

    rate: float
    wait: float


def textbook_jobs(trace: Trace) -> list[Job]:
    """Give the jobs as the textbook knows them."""
    return [
        Job(
            int(job.record), job.workload.created_at // SECOND, job.workload.tasks[0].spec.requests[0][1] // 1000,
            (job.runtime or 0) // SECOND, (job.workload.expected_runtime or 0) // SECOND,
        )
        for job in trace.jobs
    ]  # fmt: skip


def accasim(log: Path, processors: int) -> AccaSim | None:
    """Run AccaSim on a log; None where it is not installed."""
    if not ACCASIM.exists():
        return None
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / log.stem
        plain.write_bytes(gzip.decompress(log.read_bytes()))
        command = [str(ACCASIM), str(Path(__file__).with_name("accasim_easy.py")), str(plain), str(processors)]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return AccaSim(found["jobs"] / found["seconds"], found["wait"])


def whole_seconds(trace: Trace) -> Trace:
    """Let all jobs arrive at whole seconds, as in logs: the textbook knows no others."""
    jobs = (
        replace(j, workload=replace(j.workload, created_at=j.workload.created_at // SECOND * SECOND))
        for j in trace.jobs
    )
    return replace(trace, jobs=tuple(jobs))


def run(name: str, folder: Path, repeats: int, results: Results) -> list[object]:
    """Simulate one log and give its row."""
    file, processors, load, goal = LOGS[name]
    trace = whole_seconds(scale_load(read_trace(folder / file, processors=processors), load))
    cluster = prepare(Cluster(now=0, settings=Settings(backfill="easy", actions=("allocate",))), trace)
    runs, found = [], list[SimulationResult]()
    for _ in range(repeats):
        simulation = Simulation(SimulationSetup(cluster), trace)
        found[:] = []
        runs.append(measure(lambda simulation=simulation: found.append(simulation.run())))
    took = median(runs)
    starts = {int(trace.jobs[job].record): at // SECOND for kind, at, job, *_ in found[0].log.events if kind == BIND}
    jobs = textbook_jobs(trace)
    expected = easy_starts(jobs, processors)
    equal = sum(starts.get(number) == start for number, start in expected.items())
    wait, slowdown = mean_wait(jobs, expected), mean_bounded_slowdown(jobs, expected)
    other = accasim(folder / file, processors) if load == 1 else None
    speed = {"anchor": rounded(other.rate), "against": "AccaSim"} if other else {}
    note = f"AccaSim's own EASY: mean wait {other.wait:,.0f} s" if other else ""
    results.add(f"{name}: speed", len(jobs) / took.cpu, "jobs/s", at_least=goal, note=note, **speed)  # type: ignore[arg-type]
    results.add(f"{name}: starts that equal the textbook's", equal, "starts", anchor=len(expected),
                against="all starts", at_least=len(expected))  # fmt: skip
    results.add(f"{name}: mean wait", mean_wait(jobs, starts), "s", anchor=rounded(wait), against="textbook")
    return [
        name, f"{len(jobs):,}", rate(len(jobs), took), f"{len(jobs) / took.cpu / other.rate:.1f}" if other else "",
        f"{mean_wait(jobs, starts):,.1f} / {wait:,.1f}", f"{mean_bounded_slowdown(jobs, starts):.2f} / {slowdown:.2f}",
        f"{equal:,} of {len(expected):,}",
    ]  # fmt: skip


def main() -> None:
    """Print one line for each log."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--log", choices=[*LOGS], action="append", help="only this log")
    parser.add_argument("--repeats", type=int, default=3, help="runs, of which the median counts (default 3)")
    options = parser.parse_args()
    folder = traces_or_skip("swf")
    results = Results("B5")
    rows = [run(name, folder, options.repeats, results) for name in options.log or LOGS]
    results.write()
    head = ["B5", "jobs", "jobs/s", "x AccaSim", "mean wait / textbook, s", "slowdown / textbook", "equal starts"]
    print_table("EASY: jobs/s on the clock (per second of the processor)", head, rows)
    print("wanted: 20,000 jobs per second of the processor, 10,000 where thousands wait")
    print_memory()


if __name__ == "__main__":
    main()
