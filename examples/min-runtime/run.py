"""What a minimum runtime costs and what it saves: lost work, evictions, waits of those who are due, and fairness.

Replays Philly's eleven largest virtual clusters on 56 nodes of 8 GPUs under seventeen scenarios: no reclaim at all;
and reclaim with a minimum runtime of 0, 10 minutes, 30 minutes and 2 hours, with and without checkpoints every 30
minutes, where victims are the cheapest or the youngest. Every restart takes 62 seconds.

Each virtual cluster is guaranteed an equal eleventh of the GPUs. Their demands differ by more than ten times, so the
large ones live on what the small ones leave idle, and give way when these come back: that is where contention is.

    .venv/bin/python examples/min-runtime/run.py --trace philly.csv.gz --html min-runtime.html
    .venv/bin/python examples/min-runtime/run.py --trace philly.csv.gz --days 2
    .venv/bin/python examples/min-runtime/run.py --trace philly.csv.gz --dask tcp://scheduler:8786 --journal done.jsonl

The scenarios are points of a sweep: they run side by side, here or on a Dask cluster, and with --journal the same
command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import drawing
import scenario as scenarios
from scenario import FIRST_DAY, LAST_DAY, Period, Scenario, figures_of, simulate

from tenure.cli.terminal.errors import run_program
from tenure.cli.terminal.targets import check_targets
from tenure.model.documents.files import write_atomically
from tenure.simulator.sweep.carry_out import carry_out
from tenure.simulator.sweep.journal import SweepJournal
from tenure.simulator.sweep.points import SweepPoint, key_of
from tenure.simulator.sweep.runners import DaskCluster, LocalProcesses, SweepRunner

MINUTE = 60_000_000
MINIMA = (0, 10 * MINUTE, 30 * MINUTE, 120 * MINUTE)
INTERVALS = (None, 30 * MINUTE)
CHOICES: tuple[Literal["cost", "youngest"], ...] = ("cost", "youngest")


def main() -> int:
    """Run all scenarios, and tell."""
    given = _arguments()
    writes = {"--html": given.html, "--picture": given.picture, "--json": given.json, "--journal": given.journal}
    check_targets(writes, [given.trace])
    if not Path(given.trace).is_file():
        print(f"{given.trace}: there is no such file; say with --trace where Philly's jobs are", file=sys.stderr)
        return 1
    period = Period(str(Path(given.trace).resolve()), given.begin, given.end)
    points = [SweepPoint(key_of(asdict(s), asdict(period)), {}, (s, period)) for s in all_scenarios()]
    with SweepJournal(Path(given.journal)) if given.journal else nullcontext() as journal:
        rows = [figures_of(result) for result in carry_out(points, simulate, _runner(given), journal, _told)]
    print(drawing.table(rows))
    print(drawing.verdict(rows))
    drawn = ((given.html, drawing.document), (given.picture, drawing.drawing), (given.json, drawing.plain))
    for path, draw in drawn:
        if path:
            write_atomically(Path(path), draw(rows, period))
            print(f"written: {path}")
    return 0


def all_scenarios() -> list[Scenario]:
    """List what is compared."""
    found = [Scenario(reclaim=False, minimum=0, interval=None, victims="cost")]
    for interval in INTERVALS:
        for minimum in MINIMA:
            found += [Scenario(reclaim=True, minimum=minimum, interval=interval, victims=v) for v in CHOICES]
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", required=True, help="Philly's jobs, as CSV, gzipped or not")
    parser.add_argument("--from", dest="begin", type=float, default=FIRST_DAY, help="first day of the trace")
    parser.add_argument("--to", dest="end", type=float, default=LAST_DAY, help="day of the trace before which it ends")
    parser.add_argument("--days", type=float, help="so many days from --from on, instead of --to")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="scenarios side by side")
    parser.add_argument("--dask", metavar="ADDRESS", help="run the scenarios on a Dask cluster")
    parser.add_argument("--journal", metavar="FILE", help="keep what is done there, and go on with it")
    parser.add_argument("--json", metavar="FILE", help="write the figures of all scenarios")
    parser.add_argument("--html", help="write a page with pictures")
    parser.add_argument("--picture", help="write the pictures alone, as SVG")
    given = parser.parse_args()
    if given.days is not None:
        given.end = given.begin + given.days
    if given.end <= given.begin:
        parser.error("the period is empty: --to must lie after --from, and --days must be positive")
    return given


def _runner(given: argparse.Namespace) -> SweepRunner:
    """On a Dask cluster, workers need Tenure, and the trace under the same path."""
    if given.dask:
        return DaskCluster(given.dask, [Path(scenarios.__file__)])
    return LocalProcesses(given.processes)


def _told(done: int, count: int) -> None:
    print(f"{done} of {count} scenarios", file=sys.stderr, flush=True)


if __name__ == "__main__":
    run_program(main)
