"""What evictions for guarantees are worth: how long those wait who are due, against the work that is destroyed.

Replays traces and generated workloads without reclaim and with it, under several policies: victims by youth or by cost,
a minimum runtime as a shield and as a price, eviction notices, and patience. Each where no job saves its work, where
half of the jobs do, and where all do. Every replay is checked for violations.

    .venv/bin/python examples/worth/run.py --trace philly.csv.gz --from 63 --to 114 --html worth.html
    .venv/bin/python examples/worth/run.py --generated 0.7 0.9 1.1 --seeds 5
    .venv/bin/python examples/worth/run.py --trace KTH-SP2.swf.gz --load 1 1.3 --split demand --journal done.jsonl

Replays are points of a sweep: they run side by side, here or on a Dask cluster, and with --journal the same command
goes on where it was stopped. With several seeds the medians are told, with the least and the most.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from statistics import median

import replay as replays
from replay import BASE, MIXES, POLICIES, Figures, Replay, simulate

from tenure.cli.terminal.errors import run_program
from tenure.cli.terminal.progress import ProgressLine
from tenure.cli.terminal.targets import check_targets
from tenure.model.documents.files import write_atomically
from tenure.report.drawing.bars import Bar, bars_plot
from tenure.report.drawing.figure import figure
from tenure.report.drawing.plot import Plot
from tenure.report.page import Cell, html_table, page, section
from tenure.report.tables import TableColumn, terminal
from tenure.report.tables import table as set_table
from tenure.simulator.sweep.carry_out import carry_out
from tenure.simulator.sweep.journal import SweepJournal
from tenure.simulator.sweep.points import SweepPoint, key_of
from tenure.simulator.sweep.runners import DaskCluster, LocalProcesses, SweepRunner

COLUMNS = {
    "jobs": ("jobs", ",.0f"),
    "lost": ("lost (weighted hours)", ",.1f"),
    "destroyed": ("destroyed", ".2%"),
    "evictions": ("evictions", ",.0f"),
    "most": ("most of one job", ".0f"),
    "due_wait": ("due: wait (h)", ".3f"),
    "due_end": ("due: arrival to end (h)", ".3f"),
    "due_sooner": ("due: sooner at the end (h)", ".3f"),
    "wait": ("all: wait (h)", ".3f"),
    "per_hour": ("lost per hour spared", ",.2f"),
    "per_weighted_hour": ("lost per weighted hour spared", ",.2f"),
    "violations": ("violations", ".0f"),
}
"""By figure its heading, and how it is written."""

BESIDE_BASE = ("due_sooner", "per_hour", "per_weighted_hour")
"""What compares a replay with the one of its seed without reclaim: how much sooner due jobs end, and what is destroyed
for each hour that they wait less; weighted: times what they ask for."""

Found = dict[Replay, Figures]


def main() -> int:
    """Replay everything, and tell."""
    given = _arguments()
    check_targets({"--html": given.html, "--json": given.json, "--journal": given.journal}, given.trace)
    missing = [trace for trace in given.trace if not Path(trace).is_file()]
    if missing:
        print(f"{missing[0]}: there is no such file; say with --trace where traces are", file=sys.stderr)
        return 1
    asked = list(_asked(given))
    points = [SweepPoint(key_of(asdict(one), asdict(POLICIES[one.policy])), {}, one) for one in asked]
    progress = ProgressLine()
    with SweepJournal(Path(given.journal)) if given.journal else nullcontext() as journal:
        results = carry_out(points, simulate, _runner(given), journal,
                            lambda done, count: progress.show(f"{done} of {count} replays"))  # fmt: skip
    progress.clear()
    found = {one: Figures(**result) for one, result in zip(asked, results, strict=True)}
    for name, group in _groups(found).items():
        print(f"\n{name}\n{_table(group)}")
    for path, write in ((given.html, _document), (given.json, _plain)):
        if path:
            write_atomically(Path(path), write(found))
            print(f"written: {path}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", nargs="*", default=[], help="traces whose queues contend")
    parser.add_argument("--generated", nargs="*", type=float, default=[], metavar="LOAD", help="generated workloads")
    parser.add_argument("--load", nargs="*", type=float, default=[1.0], help="load of traces: 1.3 is 30%% more")
    parser.add_argument("--split", choices=("even", "demand"), default="even", help="how guarantees are split")
    parser.add_argument("--mix", nargs="*", choices=tuple(MIXES), default=list(MIXES), help="how many jobs save")
    parser.add_argument("--policy", nargs="*", choices=tuple(POLICIES), default=list(POLICIES))
    parser.add_argument("--seeds", type=int, default=1, help="so many draws of what is drawn")
    parser.add_argument("--from", dest="begin", type=float, help="first day of a trace")
    parser.add_argument("--to", dest="end", type=float, help="day of a trace before which it ends")
    parser.add_argument("--nodes", type=int, default=56, help="nodes of 8 GPUs, for traces that imply no machine")
    parser.add_argument("--jobs", type=int, default=5000, help="jobs of a generated workload")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="replays side by side")
    parser.add_argument("--dask", metavar="ADDRESS", help="run the replays on a Dask cluster")
    parser.add_argument("--journal", metavar="FILE", help="keep what is done there, and go on with it")
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    parser.add_argument("--html", help="write a page with pictures")
    given = parser.parse_args()
    if not given.trace and not given.generated:
        parser.error("name what is to be replayed: --trace FILE, --generated LOAD, or both")
    if BASE not in given.policy:
        given.policy.insert(0, BASE)
    return given


def _asked(given: argparse.Namespace) -> Sequence[Replay]:
    """Give all replays that are asked for."""
    sources = [(str(Path(t).resolve()), load) for t in given.trace for load in given.load]
    sources += [("generated", load) for load in given.generated]
    return [
        Replay(source=source, load=load, mix=mix, policy=policy, seed=seed, split=given.split, begin=given.begin,
               end=given.end, nodes=given.nodes, jobs=given.jobs)
        for source, load in sources for mix in given.mix for policy in given.policy for seed in range(given.seeds)
        if policy != BASE or mix == given.mix[0]  # without evictions nobody has to save anything
    ]  # fmt: skip


def _runner(given: argparse.Namespace) -> SweepRunner:
    """On a Dask cluster, workers need Tenure, and the traces under the same paths."""
    if given.dask:
        return DaskCluster(given.dask, [Path(replays.__file__)])
    return LocalProcesses(given.processes)


def _groups(found: Found) -> dict[str, Found]:
    """Put together what is to be compared: one workload, one mix; no reclaim is a part of each."""
    groups: dict[str, Found] = {}
    for one in found:
        if one.policy != BASE:
            groups.setdefault(_name(one), {})[one] = found[one]
    for name, group in groups.items():
        first = next(iter(group))
        group.update({o: f for o, f in found.items() if o.policy == BASE and _where(o) == _where(first)})
        groups[name] = group
    return groups


def _where(one: Replay) -> tuple[object, ...]:
    return one.source, one.load


def _name(one: Replay) -> str:
    split = ", guarantees by demand" if one.split == "demand" else ""
    return f"{Path(one.source).name.split('.')[0]}, load {one.load:g}{split}, {one.mix}"


@dataclass(frozen=True)
class PolicyRow:
    """A policy on one workload: its figures, seed by seed, and what the same seeds gave without reclaim."""

    policy: str
    own: list[Figures]
    base: list[Figures]

    def values(self, figure: str) -> list[float]:
        """Give a figure, seed by seed; what was destroyed for an hour where none was spared is infinite."""
        if figure == "due_sooner":
            return [b.due_end - f.due_end for f, b in zip(self.own, self.base, strict=True)]
        if figure == "per_hour":
            spared = [(b.due_wait - f.due_wait) * f.due for f, b in zip(self.own, self.base, strict=True)]
        elif figure == "per_weighted_hour":
            spared = [b.due_waited - f.due_waited for f, b in zip(self.own, self.base, strict=True)]
        else:
            return [getattr(f, figure) for f in self.own]
        return [f.lost / hours if hours > 0 else inf for f, hours in zip(self.own, spared, strict=True)]


def _rows(group: Found) -> list[PolicyRow]:
    """Give the policies of a group, in their order."""
    base = {one.seed: figures for one, figures in group.items() if one.policy == BASE}
    rows = []
    for policy in sorted({one.policy for one in group}, key=list(POLICIES).index):
        own = sorted((one.seed, figures) for one, figures in group.items() if one.policy == policy)
        rows.append(PolicyRow(policy, [figures for _, figures in own], [base[seed] for seed, _ in own]))
    return rows


def _table(group: Found) -> str:
    columns = [TableColumn("policy"), *(TableColumn(heading, right=True) for heading, _ in COLUMNS.values())]
    return set_table(columns, [_cells(row) for row in _rows(group)], terminal())


def _cells(row: PolicyRow) -> list[str]:
    """Give the median of each figure, with the least and the most where there are several seeds."""

    def told(figure: str, form: str) -> str:
        if row.policy == BASE and figure in BESIDE_BASE:
            return ""
        middle, least, most = (format(value, form) for value in _spread_of(row.values(figure)))
        return middle if least == most else f"{middle} ({least} to {most})"

    return [row.policy, *(told(figure, form) for figure, (_, form) in COLUMNS.items())]


def _plain(found: Found) -> str:
    """Give all figures as JSON: of each the median, the least and the most of the seeds; null where it is infinite."""
    rows = [
        {"workload": name, "policy": row.policy, "seeds": len(row.own),
         **{f: _spread(row.values(f)) for f in COLUMNS if row.policy != BASE or f not in BESIDE_BASE},
         "violations": sum(f.violations for f in row.own)}
        for name, group in _groups(found).items() for row in _rows(group)
    ]  # fmt: skip
    return json.dumps({"kind": "worth", "rows": rows}, indent=1) + "\n"


def _spread(values: Sequence[float]) -> list[float | None]:
    return [None if value == inf else round(value, 6) for value in _spread_of(values)]


def _spread_of(values: Sequence[float]) -> tuple[float, float, float]:
    return median(values), min(values), max(values)


def _document(found: Found) -> str:
    """Make one self-contained page."""
    parts = []
    for name, group in _groups(found).items():
        headings = [Cell("policy"), *(Cell(heading, right=True) for heading, _ in COLUMNS.values())]
        lines = [[Cell(c, right=bool(i)) for i, c in enumerate(_cells(row))] for row in _rows(group)]
        front = "".join(f"<h3>{what.capitalize()}</h3>{figure(plot)}" for what, plot in _front(name, group))
        parts.append(section(name, "", front + html_table(headings, lines)))
    lead = "How long jobs wait that are due, and what is destroyed for them, by policy."
    return page("What evictions are worth", lead, parts)


def _front(name: str, group: Found) -> list[tuple[str, Plot]]:
    """Draw waits and work destroyed, policy by policy, from what destroys most to what destroys nothing."""
    rows = sorted(_rows(group), key=lambda row: -median(row.values("lost")))
    plots = []
    for what, value in (("mean wait of due jobs, hours", "due_wait"), ("work destroyed, weighted hours", "lost")):
        bars = [Bar(row.policy, *_spread_of(row.values(value))) for row in rows]
        plots.append(
            (what, bars_plot(f"{name}: {what}", bars, "{:,.0f}".format if value == "lost" else "{:,.2f}".format))
        )
    return plots


if __name__ == "__main__":
    run_program(main)
