"""B29: a cycle that evicts nothing, with volumes on a third of the pods, beside the same cluster without volumes.

The cluster is that of B3. Each pod of the third has a claim of its own, bound to a volume of one of eight zones that a
driver attaches, with a limit on every node. Measured are the session and a cycle of ``allocate`` alone, and the next
cycle after one workload in a hundred has ended and as many have come. Wanted: at most 1.2 times the time without.

    python benchmarks/b29_volumes.py [--nodes 500] [--rounds 3]
"""

from __future__ import annotations

import argparse
import gc
from dataclasses import replace
from typing import Any

import b03_cycle
from common import Seconds, measure, median, print_table
from results import Results, rounded
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.engine.state.session import Session
from tenure.model.cluster import Cluster
from tenure.model.selectors import NodeSelector, NodeSelectorTerm, Requirement
from tenure.model.settings import Settings
from tenure.model.storage import with_mounts
from tenure.model.volumes import NodeDriver, Storage, Volume, VolumeClaim
from tenure.model.workload import Workload

ZONES = 8
LIMIT = 64
DRIVER = "csi.example.com"


def cluster_of(nodes: int, actions: str, *, has_volumes: bool) -> Cluster:
    """Give the cluster of B3, whose nodes are in zones."""
    made = b03_cycle.snapshot(nodes, "rest")
    drivers = (NodeDriver(name=DRIVER, limit=LIMIT, topology_keys=("zone",)),)
    zones = {node.name: f"z{i % ZONES}" for i, node in enumerate(made.nodes)}
    there = tuple(replace(node, labels={"zone": zones[node.name]}, drivers=drivers) for node in made.nodes)
    named: Any = actions.split(",")
    settings = Settings() if actions == "all" else Settings(actions=tuple(named))
    made = replace(made, nodes=there, settings=settings)
    return _with_volumes(made, zones) if has_volumes else made


def _with_volumes(made: Cluster, zones: dict[str, str]) -> Cluster:
    claims: list[VolumeClaim] = []
    volumes: list[Volume] = []

    def mounted(workload: Workload) -> Workload:
        tasks = []
        for task in workload.tasks:
            number = len(claims)
            if hash_of(task.name) % 3:
                tasks.append(task)
                continue
            zone = zones[task.node] if task.node is not None else f"z{number % ZONES}"
            here = Requirement(key="zone", operator="In", values=(zone,))
            reach = NodeSelector(terms=(NodeSelectorTerm(match_expressions=(here,)),))
            claims.append(VolumeClaim(name=f"c{number}", namespace=workload.namespace, volume=f"v{number}"))
            volumes.append(Volume(name=f"v{number}", driver=DRIVER, handle=f"h{number}", node_affinity=reach,
                                  claim=f"{workload.namespace}/c{number}"))  # fmt: skip
            tasks.append(replace(task, spec=replace(task.spec, claims=(f"c{number}",))))
        return replace(workload, tasks=tuple(tasks))

    workloads = tuple(map(mounted, made.workloads))
    return with_mounts(
        replace(made, workloads=workloads, storage=Storage(volumes=tuple(volumes), claims=tuple(claims)))
    )


def hash_of(name: str) -> int:
    """Give a number that depends on a name alone."""
    return sum(name.encode())


def timed(cluster: Cluster) -> tuple[Seconds, Seconds, Seconds, int]:
    """Time the session, a full cycle and the next one; gives how many pods were placed as well.

    What earlier rounds left behind is collected before: it would be while this one's session is made.
    """
    gc.collect()
    sessions: list[Session] = []
    placed: list[int] = []
    taken = measure(lambda: sessions.append(session_of(cluster)))
    scheduler = Scheduler(sessions[0])

    def cycle(now: int) -> None:
        placed.append(len(scheduler.cycle(now).steps))

    full = measure(lambda: cycle(b03_cycle.NOW))
    b03_cycle.change(sessions[0], cluster)
    then = measure(lambda: cycle(b03_cycle.NOW + 1_000_000))
    return taken, full, then, sum(placed)


def main() -> None:
    """Print one line for each part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--actions", default="allocate", help="separated by commas, or all")
    asked = parser.parse_args()
    clusters = [cluster_of(asked.nodes, asked.actions, has_volumes=has) for has in (False, True)]
    rounds = [[timed(cluster) for cluster in clusters] for _ in range(asked.rounds)]
    rows, results = [], Results("B29")
    for number, name in enumerate(("taking the snapshot in", "full cycle", "next cycle, 1% changed")):
        without, with_them = (median([found[side][:3][number] for found in rounds]) for side in (0, 1))
        results.add(f"{asked.nodes:,} nodes, {asked.actions}: {name}", with_them.cpu, "s", anchor=rounded(without.cpu),
                    against="without volumes", at_most=rounded(1.2 * without.cpu))  # fmt: skip
        rows.append([name, f"{without.cpu:.2f} s", f"{with_them.cpu:.2f} s", f"{with_them.cpu / without.cpu:.2f}"])
    pods = [task for workload in clusters[1].workloads for task in workload.tasks]
    mounting = sum(bool(task.spec.claims) for task in pods)
    placed = " and ".join(f"{found[3]:,}" for found in rounds[0])
    results.write()
    title = f"B29: {len(pods):,} pods, {mounting:,} with a volume; {placed} placed"
    print_table(title, ["", "without", "with volumes", "times (1.2)"], rows)


if __name__ == "__main__":
    main()
