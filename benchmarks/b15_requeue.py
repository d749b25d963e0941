"""B15: the full cycle of B3 with 5,000 overdue workloads of which one can give way, beside the same cycle without any.

The cluster is as large as that of B3: 100,000 pods, 60,000 of them running, on 5,000 nodes of 8 GPUs; 500 leaf queues
in four levels; gangs of 1 to 512; all actions of the default order, from the snapshot to the plan. What the actions
take alone stands beside it. Anchor: the cycle in which nothing is expected to end. Wanted: at most 20% more, and the
one is found. Two kinds, by what rules the others out:

``order``  many would make room enough, but all leaves hold equal amounts: nobody is more deserving
``room``   they stand in a queue far over its share: everybody is more deserving, but they make too little room

    python benchmarks/b15_requeue.py [--nodes 5000] [--nominated 5000] [--rounds 3] [--kinds order room]
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
from collections.abc import Iterator

from common import measure, print_memory, print_table
from results import Results, rounded
from tenure.cycle import Scheduler
from tenure.engine.plan import Plan
from tenure.engine.snapshot import session_of
from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.values.resources import CPU, GPU
from tenure.model.workload import Phase, Task, TaskSpec, Workload

NOW = 1_800_000_000_000_000
HOUR = 3_600_000_000
GPUS = 8
ONE = TaskSpec(requests=((CPU, 4_000), (GPU, 1)))
WHOLE = TaskSpec(requests=((CPU, 32_000), (GPU, GPUS)))
SMALL = TaskSpec(requests=((CPU, 1_000),))
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
KINDS = ("order", "room")

Place = tuple[int, tuple[int, ...]]
"""Node and devices."""


def tree() -> list[Queue]:
    """500 leaves in four levels: 5, 5, 5 and 4."""
    found = []
    for a in range(5):
        found.append(Queue(name=f"a{a}"))
        for b in range(5):
            found.append(Queue(name=f"a{a}b{b}", parent=f"a{a}"))
            for c in range(5):
                found.append(Queue(name=f"a{a}b{b}c{c}", parent=f"a{a}b{b}"))
                found += [Queue(name=f"a{a}b{b}c{c}d{d}", parent=f"a{a}b{b}c{c}") for d in range(4)]
    return found


class Builder:
    """Fills all GPUs, and lets as much again wait.

    The workload that can give way holds the two last nodes. Its queue has a sibling that lacks those 16 GPUs, and
    whose gangs are so large that reclaim, which ends at the fair share, is of no use to them.
    """

    def __init__(self, kind: str, nodes: int, nominated: int, *, overdue: bool) -> None:
        self.kind = kind
        self.draw = random.Random(1)
        self.queues = tree()
        parents = {q.parent for q in self.queues}
        self.leaves = [q.name for q in self.queues if q.name not in parents]
        self.nodes = [Node(name=f"n{i:04}", allocatable={CPU: 96_000, GPU: GPUS}) for i in range(nodes)]
        self.nominated = nominated
        self.expected = HOUR if overdue else None
        self.workloads: list[Workload] = []
        self.share = nodes * GPUS // len(self.leaves)

    def build(self) -> Cluster:
        """Give the cluster."""
        places = iter([(n, (d,)) for d in range(GPUS) for n in range(len(self.nodes) - 2)])
        last = len(self.nodes) - 1
        self.run("big", self.leaves[0], WHOLE, [(n, tuple(range(GPUS))) for n in (last - 1, last)], self.expected)
        if self.kind == "order":
            self._run_equally(places)
        else:
            self._run_unequally(places)
        self._run_small()
        self._wait()
        return Cluster(now=NOW, nodes=tuple(self.nodes), queues=tuple(self.queues), workloads=tuple(self.workloads))

    def _run_equally(self, places: Iterator[Place]) -> None:
        """Every leaf holds its share, but the first holds 8 more and the second 8 less; overdue ones everywhere."""
        count = dict.fromkeys(self.leaves, self.share)
        count[self.leaves[0]] -= GPUS
        count[self.leaves[1]] -= GPUS
        each, rest = divmod(self.nominated - 1, len(self.leaves) - 2)
        for number, leaf in enumerate(self.leaves):
            late = each + (number - 2 < rest) if number > 1 else 0
            self._run_leaf(leaf, min(late, count[leaf]), count[leaf], places)

    def _run_unequally(self, places: Iterator[Place]) -> None:
        """The first leaf holds one GPU of each node, as long as there are nominated ones; the others share the rest."""
        late = self.nominated - 1
        self._run_leaf(self.leaves[0], late, late, places)
        each, rest = divmod((len(self.nodes) - 2) * GPUS - late, len(self.leaves) - 1)
        for number, leaf in enumerate(self.leaves[1:]):
            self._run_leaf(leaf, 0, each + (number < rest), places)

    def _run_leaf(self, leaf: str, late: int, count: int, places: Iterator[Place]) -> None:
        for number in range(late):
            self.run(f"{leaf}-s{number}", leaf, ONE, [next(places)], self.expected)
        left, number = count - late, 0
        while left:
            size = min(left, self.draw.choice(SIZES[:6]))
            self.run(f"{leaf}-g{number}", leaf, ONE, [next(places) for _ in range(size)])
            left, number = left - size, number + 1

    def _run_small(self) -> None:
        """Half as many pods again that need no GPU, in gangs."""
        size = len(self.nodes) * GPUS // 2 // len(self.leaves)
        for number, leaf in enumerate(self.leaves):
            places: list[Place] = [((number * size + i) % len(self.nodes), ()) for i in range(size)]
            self.run(f"{leaf}-c", leaf, SMALL, places)

    def run(self, name: str, leaf: str, spec: TaskSpec, places: list[Place], expected: int | None = None) -> None:
        """Add a gang that has been running for two hours."""
        tasks = tuple(
            Task(name=f"{name}-{i}", spec=spec, phase=Phase.RUNNING, node=self.nodes[node].name, devices=devices)
            for i, (node, devices) in enumerate(places)
        )
        self.workloads.append(
            Workload(name=name, queue=leaf, tasks=tasks, created_at=NOW - 3 * HOUR, started_at=NOW - 2 * HOUR,
                     expected_runtime=expected)
        )  # fmt: skip

    def _wait(self) -> None:
        """As many pods as there are GPUs wait: single GPUs where order decides, whole nodes where room does."""
        spec, left, number = ONE if self.kind == "order" else WHOLE, len(self.nodes) * GPUS, 0
        while left:
            leaf = self.leaves[number % len(self.leaves)]
            sizes: tuple[int, ...] = SIZES if self.kind == "order" and number % len(self.leaves) != 1 else SIZES[1:]
            sizes = SIZES[4:] if self.kind == "order" and number % len(self.leaves) == 1 else sizes
            size = min(left, self.draw.choices(sizes, [s**-0.6 for s in sizes])[0])
            tasks = tuple(Task(name=f"w{number}-{i}", spec=spec) for i in range(size))
            self.workloads.append(Workload(name=f"w{number}", queue=leaf, tasks=tasks, created_at=NOW - HOUR + number))
            left, number = left - size, number + 1


def cycle(cluster: Cluster) -> tuple[float, float, Plan]:
    """Seconds of the processor that a full cycle takes from the snapshot on, and its actions alone, and the plan."""
    gc.collect()
    gc.freeze()  # what was there before is not looked through in the middle of one of the two
    schedulers: list[Scheduler] = []
    plans: list[Plan] = []
    building = measure(lambda: schedulers.append(Scheduler(session_of(cluster))))
    deciding = measure(lambda: plans.append(schedulers[0].cycle(cluster.now)))
    return building.cpu + deciding.cpu, deciding.cpu, plans[0]


def compare(kind: str, given: argparse.Namespace, results: Results) -> list[object]:
    """Measure with and without in turn, so that noise hits both alike; give a row of the table."""
    clusters = [Builder(kind, given.nodes, given.nominated, overdue=o).build() for o in (False, True)]
    times: list[list[float]] = [[], []]
    alone: list[list[float]] = [[], []]
    for _ in range(given.rounds):
        for which, cluster in enumerate(clusters):
            seconds, deciding, plan = cycle(cluster)
            times[which].append(seconds)
            alone[which].append(deciding)
    without, with_ = (statistics.median(t) for t in times)
    actions = [statistics.median(t) for t in alone]
    pods = sum(len(w.tasks) for w in clusters[1].workloads)
    found = ", ".join(plan.requeue.not_before) or "nobody"
    results.add(f"{kind}: full cycle with {len(plan.requeue.nominations):,} nominated", with_, "s",
                anchor=rounded(without), against="without", at_most=rounded(1.2 * without),
                note=f"actions alone {actions[1]:.2f} and {actions[0]:.2f} s")  # fmt: skip
    return [
        kind, f"{pods:,}", f"{len(plan.requeue.nominations):,}", f"{without:.2f}", f"{with_:.2f}",
        f"{with_ / without:.3f}", f"{actions[0]:.2f}", f"{actions[1]:.2f}",
        f"{plan.requeue.committed} ({found})", f"{plan.requeue.rolled_back:,}",
    ]  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--nominated", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    given = parser.parse_args()
    head = (
        "kind",
        "pods",
        "nominated",
        "without",
        "with",
        "ratio",
        "actions, without",
        "with",
        "committed",
        "rolled back",
    )
    results = Results("B15")
    rows = [compare(kind, given, results) for kind in given.kinds]
    results.write()
    print_table("B15, seconds of the processor; wanted: ratio <= 1.2", head, rows)
    print_memory()


if __name__ == "__main__":
    main()
