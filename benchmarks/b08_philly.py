"""B8: Philly's eleven largest virtual clusters on 56 nodes of 8 GPUs, with reclaim: how fast the curve is drawn.

The curve itself is what `examples/min-runtime` draws. Anchors: the same replay without reclaim, and with the youngest
as victims. A part of the period may be chosen, as the whole takes long where much waits.
"""

from __future__ import annotations

import argparse
import sys

from common import ROOT, print_memory, print_table, traces_or_skip
from results import Results

sys.path.insert(0, str(ROOT / "examples" / "min-runtime"))

from drawing import name_of
from scenario import FIRST_DAY, Period, Scenario, replayed

MINUTE = 60_000_000


def main() -> None:
    """Print one line for each scenario."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=float, default=51, help="days from 2017-10-09 on (default: 51, all)")
    given = parser.parse_args()
    trace = traces_or_skip("philly") / "philly.csv.gz"
    period = Period(str(trace), FIRST_DAY, FIRST_DAY + given.days)
    scenarios = [
        Scenario(reclaim=False, minimum=0, interval=None, victims="cost"),
        Scenario(reclaim=True, minimum=0, interval=None, victims="youngest"),
        Scenario(reclaim=True, minimum=0, interval=None, victims="cost"),
        Scenario(reclaim=True, minimum=30 * MINUTE, interval=None, victims="cost"),
    ]
    rows, results = [], Results("B8")
    bare = 0.0
    for scenario in scenarios:
        found = replayed(scenario, period)
        rate = found.jobs / found.seconds
        bare = bare or rate
        results.add(f"{given.days:g} days, {name_of(scenario)}", rate, "jobs/s", anchor=bare, against="no reclaim",
                    at_least=5_000, note=f"{found.evictions:,} evictions, {found.violations} violations")  # fmt: skip
        rows.append(
            [name_of(scenario), f"{rate:,.0f}", "5,000", f"{found.lost:,.1f}", found.evictions, found.violations]
        )
    results.write()
    print_table(
        f"B8 Philly, {given.days:g} days: jobs per second of the processor",
        ["", "jobs/s", "goal", "lost GPU-h", "evictions", "violations"],
        rows,
    )
    print_memory()


if __name__ == "__main__":
    main()
