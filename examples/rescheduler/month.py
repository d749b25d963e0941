"""Thirty days of arrivals and departures: what moves do for large jobs, and what they cost.

Generates a workload (Lublin and Feitelson's model, as gangs of pods with GPUs) whose jobs ask for up to ``--largest``
GPUs, and replays it several times on the same cluster: without moves; making room for what waits; improving the layout
in the background; and both. Arrivals stop after ``--days``, and what is still there runs to its end: moves have to die
out with the arrivals. Every variant runs in a process of its own.

    python examples/rescheduler/month.py
    python examples/rescheduler/month.py --days 30 --gpus 64 --load 0.7 --seeds 1 2 3 --html month.html
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from tenure.model.resources import GPU
from tenure.model.settings import BackgroundSettings, ExactSettings, ReschedulerSettings, Settings
from tenure.model.workload import Workload
from tenure.simulator.checker import check
from tenure.simulator.generate import GeneratorConfig, cluster_for, generate
from tenure.simulator.outcomes import Outcomes, outcomes_of
from tenure.simulator.run import Setup, Simulation, prepare

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


@dataclass(frozen=True)
class Row:
    """What came out of one replay, or the mean of several.

    Waits in hours; ``daily`` counts moves by day; ``after`` those made when nothing arrives any more, the last of them
    ``until`` hours after the last arrival; ``use`` is the share of GPU-time in use until arrivals stop, ``lost`` what
    moves destroyed of all work.
    """

    name: str
    large: float
    large_p95: float
    small: float
    moves: float
    most: float
    after: float
    until: float
    use: float
    lost: float
    violations: float
    seconds: float
    daily: tuple[float, ...]


def main() -> None:
    """Replay all variants, and tell."""
    given = _arguments()
    asked = [
        Asked(name, seed, given.days, given.gpus, given.load, given.largest, given.min_gain, given.exact)
        for name in VARIANTS
        for seed in given.seeds
    ]
    rows = run(asked, given.processes)
    print(table(rows))
    if given.html:
        Path(given.html).write_text(_page(given, rows), encoding="utf-8")
        print(f"picture: {given.html}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=float, default=30)
    parser.add_argument("--gpus", type=int, default=64)
    parser.add_argument("--load", type=float, default=0.6, help="work that is asked for, as a share of the cluster")
    parser.add_argument("--largest", type=int, default=16, help="GPUs of the largest jobs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--min-gain", type=float, default=0.001, help="of the background")
    parser.add_argument("--exact", action="store_true", help="exact plans too; it takes longer")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--html", help="write a page with a picture")
    return parser.parse_args()


def run(asked: list[Asked], processes: int = 1) -> list[Row]:
    """Replay everything that is asked, and give the mean of each variant over its seeds."""
    found: dict[str, list[Row]] = {}
    if processes > 1:
        with ProcessPoolExecutor(processes) as pool:
            futures = [pool.submit(replay, a) for a in asked]
            for done, future in enumerate(as_completed(futures), start=1):
                row = future.result()
                found.setdefault(row.name, []).append(row)
                _progress(f"{done} of {len(asked)} replays")
    else:
        for done, one in enumerate(asked, start=1):
            found.setdefault(one.name, []).append(replay(one))
            _progress(f"{done} of {len(asked)} replays")
    _progress("")
    return [_mean(found[name]) for name in VARIANTS if name in found]


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
    simulation = Simulation(Setup(prepare(base, trace)), trace)
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
    return Row(
        asked.name, _average(waits[True]), _high(waits[True]), _average(waits[False]), len(times),
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
    def of(key: str) -> float:
        return _average([getattr(r, key) for r in rows])

    days = max(len(r.daily) for r in rows)
    daily = tuple(_average([r.daily[d] if d < len(r.daily) else 0.0 for r in rows]) for d in range(days))
    return Row(
        rows[0].name, of("large"), of("large_p95"), of("small"), of("moves"), of("most"), of("after"), of("until"),
        of("use"), of("lost"), of("violations"), of("seconds"), daily,
    )  # fmt: skip


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text}\x1b[K")


def table(rows: list[Row]) -> str:
    """Give the figures as a table."""
    lines = [
        (
            f"{'':12} {'large wait (h)':>15} {'p95':>7} {'other wait':>11} {'moves':>6} {'a day':>6} {'most':>5} "
            f"{'after':>6} {'until (h)':>10} {'in use':>7} {'lost':>6} {'violations':>11} {'CPU s':>6}"
        )
    ]
    lines += [
        f"{r.name:12} {r.large:15.2f} {r.large_p95:7.1f} {r.small:11.2f} {r.moves:6.0f} "
        f"{r.moves / max(1, len(r.daily)):6.1f} {r.most:5.0f} {r.after:6.0f} "
        f"{r.until:10.1f} {r.use:7.1%} {r.lost:6.2%} {r.violations:11.0f} {r.seconds:6.0f}"
        for r in rows
    ]
    return "\n".join(lines)


def _page(given: argparse.Namespace, rows: list[Row]) -> str:
    """One file: bars of the waits, moves by day, and the table."""
    title = f"{given.days:g} days on {given.gpus} GPUs"
    bars = _bars("Mean wait of jobs of whole nodes, hours", [(r.name, r.large, f"{r.large:.2f}") for r in rows])
    days = "".join(_days(r, max(max(x.daily, default=1) for x in rows) or 1) for r in rows if r.moves)
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title>"
        "<style>body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}"
        "pre{overflow-x:auto;font-size:13px}svg{display:block;margin:1.2em 0}</style>"
        f"<h1>{escape(title)}</h1><p>Offered load {given.load:g}, jobs of up to {given.largest} GPUs, seeds "
        f"{', '.join(map(str, given.seeds))}.</p>{bars}{days}<pre>{escape(table(rows))}</pre></html>"
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
    return _svg(title, "".join(parts), 40 + 30 * len(values))


def _days(row: Row, top: float) -> str:
    wide = 560 / max(1, len(row.daily))
    marks = "".join(
        f"<rect x={day * wide:.1f} y={110 - 80 * count / top:.1f} width={wide * 0.8:.1f} height={80 * count / top:.1f} "
        f"fill='#3b6ea5'><title>day {day + 1}: {count:g} moves</title></rect>"
        for day, count in enumerate(row.daily)
    )
    axis = "<line x1=0 x2=560 y1=110 y2=110 stroke='#888'/>"
    return _svg(f"Moves by day: {row.name} (at most {row.most:g})", marks + axis, 120)


def _svg(title: str, inside: str, height: int) -> str:
    return (
        f"<svg role=img aria-label='{escape(title)}' viewBox='0 0 600 {height}' font-size=14 "
        f"xmlns='http://www.w3.org/2000/svg'><text x=0 y=18 font-weight=bold>{escape(title)}</text>{inside}</svg>"
    )


if __name__ == "__main__":
    main()
