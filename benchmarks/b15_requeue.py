"""B15: a full cycle with 5,000 overdue workloads of which one can give way, beside the same cycle without any.

The cluster is that of B3 in small or in full: nodes of 8 GPUs, leaf queues in four levels, gangs. Anchor: the cycle in
which nothing is expected to end. Wanted: at most 20% more, and the one is found. Prints the ratio.

    python benchmarks/b15_requeue.py [--nodes 5000] [--nominated 5000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from dataclasses import replace

from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.resources import CPU, GPU
from tenure.model.settings import Settings
from tenure.model.workload import Phase, Task, TaskSpec, Workload

NOW = 1_800_000_000_000_000
HOUR = 3_600_000_000
ONE = TaskSpec(requests=((CPU, 1000), (GPU, 1)))
EIGHT = TaskSpec(requests=((CPU, 1000), (GPU, 8)))


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


def build(nodes: int, nominated: int, *, overdue: bool) -> Cluster:
    """A full cluster: GPU by GPU on most nodes, and gangs that wait in every leaf.

    Overdue are one-GPU workloads, of which no eight stand on one node that would make room for what waits; one of
    them holds a whole node in a queue that is far over its share.
    """
    draw = random.Random(1)
    queues = tree()
    parents = {q.parent for q in queues}
    leaves = [q.name for q in queues if q.name not in parents]
    machines = [Node(name=f"n{i}", allocatable={CPU: 96_000, GPU: 8}) for i in range(nodes)]
    workloads, left = [], nominated - 1
    expected = HOUR if overdue else None
    for number, machine in enumerate(machines):
        if number == 0:
            task = Task(name="big-0", spec=EIGHT, phase=Phase.RUNNING, node=machine.name, devices=tuple(range(8)))
            workloads.append(_runs("big", leaves[0], (task,), expected))
            continue
        for device in range(8):
            name = f"r{number}-{device}"
            task = Task(name=f"{name}-0", spec=ONE, phase=Phase.RUNNING, node=machine.name, devices=(device,))
            late = device == 0 and left > 0
            left -= late
            queue = leaves[0 if number < 20 else (number * 8 + device) % len(leaves)]
            workloads.append(_runs(name, queue, (task,), expected if late else None))
    for number in range(nodes * 8 // 8):
        size = draw.choice((1, 2, 4, 8, 16, 64))
        name = f"w{number}"
        tasks = tuple(Task(name=f"{name}-{i}", spec=EIGHT) for i in range(size))
        workloads.append(Workload(name=name, queue=leaves[number % len(leaves)], tasks=tasks, created_at=NOW - number))
    settings = Settings(actions=("allocate", "reclaim", "preempt", "requeue"))
    return Cluster(now=NOW, settings=settings, nodes=tuple(machines), queues=tuple(queues), workloads=tuple(workloads))


def _runs(name: str, queue: str, tasks: tuple[Task, ...], expected: int | None) -> Workload:
    return Workload(
        name=name,
        queue=queue,
        tasks=tasks,
        created_at=NOW - 3 * HOUR,
        started_at=NOW - 2 * HOUR,
        expected_runtime=expected,
    )


def cycle(cluster: Cluster) -> tuple[float, object]:
    """Seconds that one full cycle takes, the session being there, and its plan."""
    scheduler = Scheduler(session_of(cluster))
    begin = time.perf_counter()
    plan = scheduler.cycle(cluster.now)
    return time.perf_counter() - begin, plan


def main() -> None:
    """Measure in turn, so that noise hits both alike."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--nominated", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--actions", default="allocate,reclaim,preempt,requeue")
    given = parser.parse_args()
    actions = tuple(given.actions.split(","))
    clusters = [build(given.nodes, given.nominated, overdue=o) for o in (False, True)]
    clusters = [replace(c, settings=replace(c.settings, actions=actions)) for c in clusters]
    times: list[list[float]] = [[], []]
    plan = None
    for _ in range(given.rounds):
        for which, cluster in enumerate(clusters):
            seconds, plan = cycle(cluster)
            times[which].append(seconds)
    without, with_ = (statistics.median(t) for t in times)
    requeue = plan.requeue  # type: ignore[union-attr]
    print(
        f"without {without:.2f} s, with {len(requeue.nominations)} nominated {with_:.2f} s: {with_ / without:.3f} times"
    )
    print(f"committed {requeue.committed} ({', '.join(requeue.not_before)}), rolled back {requeue.rolled_back}")


if __name__ == "__main__":
    main()
