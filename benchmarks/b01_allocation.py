"""B1: 10,000 one-task asks of {10 memory, 1 vcore} in 2 queues, on nodes that are just large enough, in one cycle.

The anchor is the benchmark of YuniKorn's core, measured on 2 processors (median of 5). Timed is all that follows
once nodes and queues are known: the asks are taken in, and decided about. The cycle alone stands beside a greedy on
arrays in the same run, which knows neither queues nor reasons: the floor of what deciding costs.
Run: python benchmarks/b01_allocation.py
"""

from __future__ import annotations

import gc
import itertools

import numpy as np

from common import Seconds, measure, median, print_memory, print_table, rate
from results import Results, rounded
from tenure.cycle import Scheduler
from tenure.engine.state.session import Session
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.values.resources import CPU, MEMORY
from tenure.model.workload import Task, TaskSpec, Workload

ASKS = 10_000
ANCHOR = {500: 2_964, 1_000: 3_405, 2_000: 3_064, 5_000: 1_781}
GOAL = {1: 50_000, 1_000: 30_000}
"""Allocations/s that are wanted, by the number of classes."""
REPEATS = 5
QUEUES = (Queue(name="a"), Queue(name="b"))
SETTINGS = Settings(actions=("allocate",))
MEMORY_UNIT = 1_000
"""Ten of memory are 10,000 here, so that a thousand classes can differ by less than one."""


def asks(classes: int) -> list[Workload]:
    """Make the asks; with many classes each asks for a little less memory than the next."""
    specs = [TaskSpec(requests=((CPU, 1000), (MEMORY, 10 * MEMORY_UNIT - i))) for i in range(classes)]
    return [
        Workload(
            name=f"ask-{i:05}", queue="ab"[i % 2], tasks=(Task(name="task", spec=specs[i % classes]),), created_at=i
        )
        for i in range(ASKS)
    ]


def node(number: int, tasks: int) -> Node:
    """Make a node on which just so many tasks fit."""
    return Node(name=f"node-{number:04}", allocatable={CPU: 1000 * tasks, MEMORY: 10 * MEMORY_UNIT * tasks})


def one_pass(nodes: list[Node], workloads: list[Workload]) -> tuple[Seconds, Seconds]:
    """Take the asks in, and decide about them in one cycle; all have to be placed. Gives the time of each."""
    session = Session(nodes, QUEUES, SETTINGS)
    scheduler = Scheduler(session)
    gc.collect()
    taking_in = measure(lambda: session.add_workloads(workloads))
    plans = []
    deciding = measure(lambda: plans.append(scheduler.cycle(ASKS)))
    placed = sum(step.action == "bind" for step in plans[0].steps)
    if placed != len(workloads):
        raise SystemExit(f"{placed} of {len(workloads)} asks were placed")
    return taking_in, deciding


def added(one: Seconds, other: Seconds) -> Seconds:
    """Add up."""
    return Seconds(one.wall + other.wall, one.cpu + other.cpu)


def whole_cluster(count: int, classes: int, results: Results) -> list[object]:
    """Measure all asks on all nodes, in one cycle; gives a row of the table."""
    nodes, workloads = [node(i, ASKS // count) for i in range(count)], asks(classes)
    runs = [one_pass(nodes, workloads) for _ in range(REPEATS)]
    deciding, both = median([d for _, d in runs]), median([added(*r) for r in runs])
    name = f"{count:,} nodes, {classes:,} classes"
    floor = ASKS / median([measure(lambda: greedy(nodes, workloads)) for _ in range(REPEATS)]).cpu
    results.add(
        f"{name}: the cycle alone",
        ASKS / deciding.cpu,
        "allocations/s",
        anchor=rounded(floor),
        against="a greedy in numpy",
    )
    return row(name, count, deciding, both, results, GOAL[classes])


def greedy(nodes: list[Node], workloads: list[Workload]) -> None:
    """Put each ask on the first node on which it fits; all have to be placed."""
    free = np.array([[node.allocatable[CPU], node.allocatable[MEMORY]] for node in nodes])
    for workload in workloads:
        asked = np.array([amount for _, amount in workload.tasks[0].spec.requests])
        fits = np.asarray((free >= asked).all(axis=1))
        first = int(fits.argmax())
        if not fits[first]:
            raise SystemExit(f"{workload.name} was not placed")
        free[first] -= asked


def node_by_node(count: int, results: Results) -> list[object]:
    """Measure a cluster that grows by one node at a time: each cycle sees one new node and the asks that fill it."""
    each = ASKS // count
    workloads = asks(1)
    chunks = [workloads[i : i + each] for i in range(0, ASKS, each)]
    taking_in = deciding = Seconds(0, 0)
    for number, chunk in enumerate(chunks):
        first, second = one_pass([node(number, each)], chunk)
        taking_in, deciding = added(taking_in, first), added(deciding, second)
    return row(f"{count:,} nodes, one at a time", count, deciding, added(taking_in, deciding), results, None)


def row(name: str, count: int, deciding: Seconds, both: Seconds, results: Results, goal: int | None) -> list[object]:
    """Give a row of the table."""
    anchor, ratio = ANCHOR[count], ASKS / both.wall / ANCHOR[count]
    results.add(
        name, ASKS / both.cpu, "allocations/s", anchor=anchor, against="YuniKorn's core", at_least=goal,
        note=f"the cycle alone {ASKS / deciding.cpu:,.0f}",
    )  # fmt: skip
    return [
        name,
        rate(ASKS, deciding),
        rate(ASKS, both),
        f"{ANCHOR[count]:,}",
        f"{ratio:.1f}",
        f"{ASKS / both.wall / goal:.2f}" if goal else "",
    ]


def main() -> None:
    """Print the table."""
    results = Results("B1")
    rows = [whole_cluster(count, classes, results) for classes, count in itertools.product((1, 1_000), ANCHOR)]
    rows += [node_by_node(count, results) for count in (500, 1_000)]
    results.write()
    head = ["B1", "cycle alone", "with taking in", "YuniKorn", "ratio", "of goal"]
    print_table("Allocations/s on the clock (per second of the processor), median of 5", head, rows)
    print(
        "ratio: with taking in, on the clock, to YuniKorn core's own benchmark on 2 processors; goals: "
        "50,000/s with one class, 30,000/s with 1,000"
    )
    print_memory()


if __name__ == "__main__":
    main()
