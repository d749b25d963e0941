"""B13: how long the command line takes to start, beyond Python itself. Run: python benchmarks/b13_startup.py"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from common import COMPILED, ROOT, Seconds, median, print_table
from results import Results

RUNS = 10
TENURE = str(Path(sys.executable).with_name("tenure"))
FILE = str(ROOT / "examples" / "cluster.yaml")
CASES = [
    ("tenure --help", [TENURE, "--help"], 0.15),
    ("tenure plan examples/cluster.yaml", [TENURE, "plan", FILE], 0.5),
]
"""Name, command, and the seconds beyond bare Python that it may take."""


def start(command: list[str]) -> Seconds:
    """Run a command once."""
    before = os.times()
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=COMPILED)
    took = time.perf_counter() - began
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Seconds(took, used)


def main() -> None:
    """Print the medians; the commands take turns, so that what else runs disturbs all of them alike."""
    commands = [[sys.executable, "-c", "pass"], *(command for _, command, _ in CASES)]
    for command in commands:
        start(command)  # fills the caches
    runs = [[start(command) for command in commands] for _ in range(RUNS)]
    bare, *others = (median(times) for times in zip(*runs, strict=True))
    results = Results("B13")
    rows = [["python -c pass", f"{bare.wall:.3f} ({bare.cpu:.3f})", "", "", ""]]
    for (name, _, limit), took in zip(CASES, others, strict=True):
        beyond = Seconds(took.wall - bare.wall, took.cpu - bare.cpu)
        ratio = beyond.wall / limit
        results.add(f"{name}, beyond Python", beyond.wall, "s by the clock", anchor=round(bare.wall, 4),
                    against="Python alone", at_most=limit, note=f"{beyond.cpu:.3f} s of the processor")  # fmt: skip
        rows.append([name, *(f"{t.wall:.3f} ({t.cpu:.3f})" for t in (took, beyond)), f"{limit:.2f}", f"{ratio:.2f}"])
    results.write()
    title = f"Start-up in seconds on the clock (of the processor), median of {RUNS}"
    print_table(title, ["B13", "takes", "beyond Python", "allowed", "ratio"], rows)
    print(
        f"peak memory: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:,.0f} MiB (the largest of them)"
    )


if __name__ == "__main__":
    main()
