"""Random small clusters in which queues contend: everything is full, and somebody waits."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.selectors import (
    Affinity,
    HostPort,
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
    SpreadConstraint,
)
from tenure.model.settings import MinRuntimeSettings, Settings
from tenure.model.workload import Phase, SubGroup, Task, TaskSpec, Workload

GPU = "nvidia.com/gpu"
NOW = 1_000_000_000_000_000
MINUTE = 60_000_000


def contended(seed: int, *, settings: Settings | None = None, large: bool = False, crowd: int = 4) -> Cluster:
    """Draw a cluster from a seed: GPUs alone, so that every number can be checked by hand.

    ``crowd``: how many wait at most.
    """
    rng = random.Random(seed)
    count, size = rng.randint(1, 6 if large else 3), rng.choice([2, 4])
    nodes = tuple(Node(name=f"n{i}", allocatable={GPU: size}) for i in range(count))
    queues = _queues(rng, count * size)
    parents = {q.parent for q in queues}
    leaves = [q.name for q in queues if q.name not in parents]
    workloads = _running(rng, nodes, size, leaves) + _pending(rng, size, leaves, rng.randint(1, crowd))
    chosen = settings or Settings(
        reclaim_min_runtime=rng.choice([0, 0, 10 * MINUTE]),
        preempt_min_runtime=rng.choice([0, 0, 5 * MINUTE]),
        min_runtime=MinRuntimeSettings(method=rng.choice(["lca", "queue"])),
    )
    return Cluster(now=NOW, settings=chosen, nodes=nodes, queues=queues, workloads=tuple(workloads))


def _queues(rng: random.Random, total: int) -> tuple[Queue, ...]:
    queues = []
    for top in range(rng.randint(1, 3)):
        name = f"q{top}"
        children = rng.choice([0, 0, 2, 3])
        queues.append(_queue(rng, name, None, total, guaranteed=not children))
        queues += [_queue(rng, f"{name}c{i}", name, total, guaranteed=True) for i in range(children)]
    return tuple(queues)


def _queue(rng: random.Random, name: str, parent: str | None, total: int, *, guaranteed: bool) -> Queue:
    floor = {GPU: 1000 * rng.randint(0, max(1, total // 3))} if guaranteed and rng.random() < 0.7 else {}
    most = {}
    if rng.random() < 0.15 and parent is not None:
        most = {GPU: max(floor.get(GPU, 0), 1000 * rng.randint(1, total))}
    return Queue(
        name=name,
        parent=parent,
        guaranteed=floor,
        max=most,
        weight=rng.choice([1.0, 1.0, 2.0, 0.0]),
        priority=rng.choice([100, 100, 100, 50]),
        preemption_policy=rng.choice(["default"] * 8 + ["fence", "disabled"]),
        reclaim_min_runtime=rng.choice([None, None, None, 0, 20 * MINUTE]),
        preempt_min_runtime=rng.choice([None, None, None, 0, 20 * MINUTE]),
    )


def _running(rng: random.Random, nodes: tuple[Node, ...], size: int, leaves: list[str]) -> list[Workload]:
    room = {n.name: size for n in nodes}
    found: list[Workload] = []
    while sum(room.values()) and len(found) < 9:
        if rng.random() < 0.1:
            break
        ask = rng.choice([1, 1, 2, size])
        wanted, tasks = rng.choice([1, 1, 1, 2, 3]), []
        for name in rng.sample(sorted(room), len(room)):
            while room[name] >= ask and len(tasks) < wanted:
                room[name] -= ask
                tasks.append(name)
        if not tasks:
            if ask == 1:
                break
            continue
        number = len(found)
        started = NOW - rng.choice([1, 7, 15, 60, 600]) * MINUTE
        found.append(
            Workload(
                name=f"r{number}",
                queue=rng.choice(leaves),
                priority=rng.choice([0, 0, 10, 50, 100]),
                min_member=rng.randint(1, len(tasks)),
                created_at=started - MINUTE,
                started_at=started,
                tasks=tuple(
                    Task(
                        name=f"r{number}-{i}",
                        spec=TaskSpec(requests=((GPU, ask),)),
                        phase=Phase.RUNNING,
                        node=node,
                        started_at=started,
                    )
                    for i, node in enumerate(tasks)
                ),
            )
        )
    return found


def _pending(rng: random.Random, size: int, leaves: list[str], count: int) -> list[Workload]:
    found = []
    for number in range(count):
        ask, tasks = rng.choice([1, 2, size]), rng.choice([1, 1, 2, 3])
        found.append(
            Workload(
                name=f"p{number}",
                queue=rng.choice(leaves),
                priority=rng.choice([0, 0, 10, 50, 100]),
                min_member=rng.randint(1, tasks),
                created_at=NOW - rng.randint(0, 50) * MINUTE,
                tasks=tuple(Task(name=f"p{number}-{i}", spec=TaskSpec(requests=((GPU, ask),))) for i in range(tasks)),
            )
        )
    return found


def in_groups(state: Cluster, seed: int) -> Cluster:
    """The same cluster, but of some workloads the tasks are in two subgroups, one of which may be enough."""
    rng, found = random.Random(seed), []
    for workload in state.workloads:
        if len(workload.tasks) < 2 or rng.random() < 0.4:
            found.append(workload)
            continue
        groups = [SubGroup(name=name, min_member=rng.choice([None, 1])) for name in "gh"]
        tasks = tuple(replace(t, sub_group="gh"[number % 2]) for number, t in enumerate(workload.tasks))
        fields = {"min_member": None, "sub_groups": tuple(groups), "min_sub_group": rng.choice([None, 1])}
        found.append(replace(workload, tasks=tasks, **fields))
    return replace(state, workloads=tuple(found))


def with_terms(state: Cluster, seed: int) -> Cluster:
    """The same cluster, but its tasks look at each other: many alike, some in a way of their own."""
    rng = random.Random(seed)
    nodes = tuple(
        replace(node, labels={"host": node.name, "zone": "ab"[number % 2]}) for number, node in enumerate(state.nodes)
    )
    pool = [_looking(rng) for _ in range(rng.randint(1, 3))]
    found = []
    for workload in state.workloads:
        own, mixed = rng.choice(pool), rng.random() < 0.2
        tasks = tuple(replace(t, spec=replace(t.spec, **(rng.choice(pool) if mixed else own))) for t in workload.tasks)
        found.append(replace(workload, tasks=tasks))
    return replace(state, nodes=nodes, workloads=tuple(found))


def _looking(rng: random.Random) -> dict[str, Any]:
    """Labels, and often terms about those of others."""
    found: dict[str, Any] = {"labels": (("app", rng.choice("xy")),)}
    away, near = (tuple(_term(rng) for _ in range(rng.choice(counts))) for counts in ((0, 1, 1, 2), (0, 0, 0, 1)))
    found["affinity"] = Affinity(pod=PodAffinity(required=near), pod_anti=PodAffinity(required=away))
    if rng.random() < 0.2:
        selector = LabelSelector(match_labels=(("app", rng.choice("xy")),))
        found["spread"] = (SpreadConstraint(max_skew=1, topology_key=rng.choice(["host", "zone"]), selector=selector),)
    if rng.random() < 0.1:
        found["host_ports"] = (HostPort(port=80),)
    return found


def _term(rng: random.Random) -> PodAffinityTerm:
    of = rng.choice([LabelSelector(match_labels=(("app", app),)) for app in "xyz"] + [LabelSelector()])
    return PodAffinityTerm(topology_key=rng.choice(["host", "host", "zone"]), selector=of)
