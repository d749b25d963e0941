"""B6: the experiment of Weng et al., "Beware of Fragmentation", USENIX ATC 2023, on Alibaba's trace of shared GPUs.

Pods arrive until they have asked for 130% of the cluster's GPUs; one that does not fit is dropped, none ends. What
counts is the share of all GPU that is allocated in the end. The anchors are the authors' own results, from
published_allocation.csv beside the trace. Run: python benchmarks/b06_fragmentation.py [--seeds N] [--workload NAME]
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Iterator
from pathlib import Path

from common import Seconds, measure, print_memory, print_table, rate, traces_or_skip
from results import Results
from tenure.model.cluster import Cluster
from tenure.model.settings import Policy, Settings
from tenure.model.values.resources import GPU, MILLI
from tenure.simulator.run import Simulation, SimulationSetup, prepare
from tenure.simulator.trace import Trace, read_trace
from tenure.simulator.traces.openb import inflate

WORKLOADS = ("default", "cpu050", "gpushare40", "gpuspec10", "multigpu20")
ARRIVED = 1.3
SIMULATOR = 4.5
"""Pods that the authors' simulator, in Go, places per second of the processor, about."""


def published(folder: Path) -> dict[tuple[str, str], float]:
    """Read the authors' mean allocation in percent, by workload and policy."""
    with (folder / "published_allocation.csv").open(newline="") as file:
        return {
            (line["workload"].removeprefix("openb_pod_list_"), line["policy"][3:]): float(line["mean_10_seeds"])
            for line in csv.DictReader(file)
            if line["metric"] == "alloc" and line["arrived_pct_of_gpu_capacity"] == "130"
        }


def gpus(cluster: Cluster) -> int:
    """Count all GPU, in milli-GPU."""
    return sum(node.allocatable.get(GPU, 0) for node in cluster.nodes) * MILLI


def place(trace: Trace, policy: Policy, seeds: int) -> Iterator[tuple[float, int, Seconds]]:
    """Give for each seed the share of GPU that is allocated in percent, the pods that came, and the time it took."""
    cluster = prepare(Cluster(now=0, settings=Settings(actions=("allocate",), placement=policy)), trace)
    capacity = gpus(cluster)
    for seed in range(seeds):
        arriving = inflate(trace, capacity, ARRIVED, seed)
        simulation = Simulation(SimulationSetup(cluster, arrivals_only=True, whole_mix=True), arriving)
        took = measure(simulation.run)
        nodes = simulation.session.nodes
        yield 100 * (1 - int(nodes.room[nodes.gpu_row].sum()) / capacity), len(arriving.jobs), took


def row(name: str, folder: Path, seeds: int, anchors: dict[tuple[str, str], float], results: Results) -> list[object]:
    """Run one workload under both policies and give its row."""
    pods = folder / f"openb_pod_list_{name}.csv.gz"
    trace = read_trace(pods, format="openb", nodes_file=folder / "openb_node_list_gpu_node.csv")
    packed = [share for share, _, _ in place(trace, "binpack", seeds)]
    runs = list(place(trace, "fragmentation", seeds))
    ours, theirs = statistics.mean(share for share, _, _ in runs), anchors[name, "FGD"]
    spread = statistics.pstdev(share for share, _, _ in runs)
    took = Seconds(sum(t.wall for _, _, t in runs), sum(t.cpu for _, _, t in runs))
    count, binpack = sum(number for _, number, _ in runs), statistics.mean(packed)
    results.add(f"{name}: GPU allocated", ours, "%", anchor=theirs, against="FGD", at_least=theirs,
                note=f"mean of {seeds} seeds, ± {spread:.2f}")  # fmt: skip
    results.add(f"{name}: above binpack on the same draws", ours - binpack, "points", at_least=1)
    results.add(f"{name}: GPU allocated with binpack", binpack, "%", anchor=anchors[name, "BestFit"], against="BestFit")
    results.add(f"{name}: speed", count / took.cpu, "pods/s", anchor=SIMULATOR, against="the authors' simulator",
                at_least=1_000)  # fmt: skip
    return [
        name, f"{ours:.2f} ± {spread:.2f}", f"{theirs:.2f}", f"{ours / theirs:.4f}", f"{binpack:.2f}",
        f"{anchors[name, 'BestFit']:.2f}", f"{ours - binpack:+.2f}",
        rate(count, took),
    ]  # fmt: skip


def main() -> None:
    """Print one line for each workload."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="draws of arrivals (default 10)")
    parser.add_argument("--workload", choices=WORKLOADS, action="append", help="only this one")
    options = parser.parse_args()
    folder = traces_or_skip("openb")
    anchors = published(folder)
    results = Results("B6")
    rows = [row(name, folder, options.seeds, anchors, results) for name in options.workload or WORKLOADS]
    results.write()
    head = ["B6", "fragmentation", "FGD", "ratio", "binpack", "BestFit", "over binpack", "pods/s"]
    print_table(f"GPU allocated at 130% arrivals, percent, mean of {options.seeds} seeds", head, rows)
    print(
        "FGD, BestFit: the authors' results; pods/s with fragmentation, on the clock (per second of the processor); "
        f"the authors' simulator places about {SIMULATOR} per second of the processor; wanted: 1,000"
    )
    print_memory()


if __name__ == "__main__":
    main()
