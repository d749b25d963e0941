"""B25: `tenure plan` and `tenure explain` over the file of a large cluster, as somebody at a terminal runs them.

The clusters are B3's: nodes of 8 GPUs nearly all in use, 500 leaf queues in four levels, gangs of 1 to 512 tasks, with
all actions and otherwise default settings. Seconds of the processor of the whole process, children included; of
`explain` the workload is the last that waits. Anchor: `tenure validate` of the same file, which reads and checks it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from b03_cycle import snapshot
from common import COMPILED, print_table
from results import Results, rounded
from tenure.cli.terminal.outputs import write_cluster
from tenure.model.cluster import Cluster
from tenure.model.workload import Phase


class Ran(NamedTuple):
    """A command that has run: seconds on the clock, seconds of the processor, and bytes that it printed."""

    wall: float
    cpu: float
    printed: int


def run(*words: str) -> Ran:
    """Run a command of tenure; raises `subprocess.CalledProcessError` where it fails."""
    before, began = os.times(), time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "tenure", *words], stdout=subprocess.PIPE, check=True, env=COMPILED)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Ran(time.perf_counter() - began, used, len(done.stdout))


def waiting(cluster: Cluster) -> str:
    """Name the last workload of a cluster of which nothing runs."""
    return next(w.key for w in reversed(cluster.workloads) if all(t.phase == Phase.PENDING for t in w.tasks))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--kinds", nargs="+", default=["rest", "return"], choices=["rest", "return"])
    given, results = parser.parse_args(), Results("B25")
    run("--help")  # modules are compiled once, as in an installation
    with tempfile.TemporaryDirectory() as folder:
        for nodes in given.nodes:
            rows = []
            for kind in given.kinds:
                base: Ran | None = None
                cluster, file = snapshot(nodes, kind), str(Path(folder) / f"{kind}.yaml")
                write_cluster(cluster, file)
                commands = {
                    "validate": ("validate", file),
                    "plan": ("plan", file),
                    "plan --format json": ("plan", file, "--format", "json"),
                    "explain": ("explain", file, waiting(cluster)),
                }
                for name, words in commands.items():
                    ran = run(*words)
                    base = base or ran  # what is validated comes first
                    goal = 5 if (nodes, kind, name) == (2000, "return", "explain") else None
                    results.add(f"{nodes:,} nodes, {kind}: tenure {name}", ran.cpu, "s", anchor=rounded(base.cpu),
                                against="tenure validate", at_most=goal)  # fmt: skip
                    rows.append((kind, name, f"{ran.wall:.1f}", f"{ran.cpu:.1f}", f"{ran.printed / 1024:,.0f}"))
            pods = sum(len(w.tasks) for w in cluster.workloads)
            head = ("cluster", "command", "wall s", "cpu s", "KiB printed")
            print_table(f"{nodes} nodes, {pods:,} pods", head, rows)
    results.write()


if __name__ == "__main__":
    main()
