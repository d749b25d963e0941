"""B21: how the cost of a cycle grows with the cluster, and with what changed.

B3's clusters of the kind ``rest``: nodes of 8 GPUs nearly all in use, 500 leaf queues in four levels, gangs of 1 to
512. Of each size: taking the snapshot in, the full cycle, the cycles after 0.1%, 1% and 10% of what runs has changed
(as many end as arrive), and memory. Each size is a process of its own that may take ``--limit`` seconds by the clock.
Exponents say by which power a figure grows: of the size from one to the next, of what changed from one change to the
next; 1 is linear.

    python benchmarks/b21_growth.py [--sizes 1000x10 20000x50] [--limit 600]
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys

from b03_cycle import NOW, change, snapshot
from common import measure, peak_memory, print_table
from results import Results, machine_speed
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.engine.state.session import Session

SECOND = 1_000_000
SHARES = (0.001, 0.01, 0.1)
LARGEST = (20_000, 50)
GOALS = {"full cycle": 60.0, "next cycle, 0.1% changed": 1.0, "memory at most": 4096.0}
"""What is wanted of a million pods on 20,000 nodes: seconds, and MiB."""


def size(text: str) -> tuple[int, int]:
    """Read a size: nodes, and pods for each."""
    nodes, _, each = text.partition("x")
    return int(nodes), int(each)


def measured(nodes: int, each: int) -> dict[str, float]:
    """Measure one size: figures by their names, and what the machine took beside them."""
    speed = machine_speed()
    cluster = snapshot(nodes, "rest", each=each)
    sessions: list[Session] = []
    found = {"taking the snapshot in": measure(lambda: sessions.append(session_of(cluster))).cpu}
    scheduler = Scheduler(sessions[0])
    found["full cycle"] = measure(lambda: scheduler.cycle(NOW)).cpu
    for turn, share in enumerate(SHARES):
        now = NOW + (turn + 1) * SECOND
        change(sessions[0], cluster, seed=turn + 2, share=share)
        found[next_cycle(share)] = measure(lambda now=now: scheduler.cycle(now)).cpu
    found["memory at most"] = peak_memory()
    return {**found, "machine": min(speed, machine_speed())}


def next_cycle(share: float) -> str:
    """Name the cycle after a change."""
    return f"next cycle, {share:.1%} changed" if share < 0.01 else f"next cycle, {share:.0%} changed"


def apart(nodes: int, each: int, limit: float) -> dict[str, float] | None:
    """Measure one size in a process of its own; None where it did not end within the limit."""
    command = [sys.executable, __file__, "--part", str(nodes), str(each)]
    try:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def exponent(now: float, before: float, growth: float) -> float:
    """Give the power of the growth by which a figure became another one."""
    return math.log(now / before) / math.log(growth)


def report(
    results: Results, nodes: int, each: int, found: dict[str, float], before: tuple[int, dict[str, float]] | None
) -> list[list[object]]:
    """Report the figures of a size, with exponents against the size before; gives rows."""
    rows: list[list[object]] = []
    pods = nodes * each
    machine = found["machine"]
    for name, figure in found.items():
        if name == "machine":
            continue
        grown = f"{exponent(figure, before[1][name], pods / before[0]):.2f}" if before else ""
        note = f"exponent {grown} of the pods" if grown else ""
        unit = "MiB" if name == "memory at most" else "s"
        goal = GOALS.get(name) if (nodes, each) == LARGEST else None
        results.add(f"{pods:,} pods, {nodes:,} nodes: {name}", figure, unit, at_most=goal, machine=machine, note=note)
        rows.append([f"{pods:,}", f"{nodes:,}", name, f"{figure:,.2f}", grown, f"{machine:.3f}"])
    first, *others = SHARES
    for share in others:
        case = f"{pods:,} pods, {nodes:,} nodes: exponent of what changed, {first:.1%} to {share:.0%}"
        power = exponent(found[next_cycle(share)], found[next_cycle(first)], share / first)
        results.add(case, power, "", at_most=1.0, machine=machine)
    return rows


def main() -> None:
    """Measure all sizes, or one of them and print it as JSON."""
    if sys.argv[1:2] == ["--part"]:
        print(json.dumps(measured(*map(int, sys.argv[2:]))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=size, nargs="+", default=[(1000, 10), (1000, 50), (5000, 50), (20000, 50)])
    parser.add_argument("--limit", type=float, default=600.0, help="seconds by the clock that a size may take")
    given, results = parser.parse_args(), Results("B21")
    rows: list[list[object]] = []
    before = None
    for nodes, each in given.sizes:
        found = apart(nodes, each, given.limit)
        if found is None:
            case = f"{nodes * each:,} pods, {nodes:,} nodes: ended within {given.limit:g} s"
            results.add(case, 0, "times", at_least=1)
            rows.append([f"{nodes * each:,}", f"{nodes:,}", f"not done within {given.limit:g} s", "", "", ""])
            continue
        rows += report(results, nodes, each, found, before)
        before = nodes * each, found
    results.write()
    print_table("B21: one cycle", ["pods", "nodes", "", "s or MiB", "exponent", "machine"], rows)


if __name__ == "__main__":
    main()
