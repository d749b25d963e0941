"""A terse builder of clusters, and a plan as plain data."""

from __future__ import annotations

from dataclasses import replace

from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.workload import Phase, Task, TaskSpec, Workload
from tenure.playthrough import play

GPU = "nvidia.com/gpu"
MINUTE = 60_000_000
NOW = 1_000_000_000_000_000


def queue(name, parent=None, *, guaranteed=None, most=None, **more):
    """A queue; amounts are whole GPUs."""
    floor = {} if guaranteed is None else {GPU: 1000 * guaranteed}
    return Queue(name=name, parent=parent, guaranteed=floor, max={} if most is None else {GPU: 1000 * most}, **more)


def runs(name, where, nodes, *, gpus=1, minutes=60, core=None, **more):
    """A workload with one running task on each of ``nodes``, started so many minutes ago."""
    started = NOW - minutes * MINUTE
    tasks = tuple(
        Task(
            name=f"{name}-{i}",
            spec=TaskSpec(requests=((GPU, gpus),)),
            phase=Phase.RUNNING,
            node=node,
            started_at=started,
        )
        for i, node in enumerate(nodes)
    )
    fields = {"created_at": started, "started_at": started, "min_member": core} | more
    return Workload(name=name, queue=where, tasks=tasks, **fields)


def waits(name, where, *, gpus=1, tasks=1, minutes=5, **more):
    """A pending workload."""
    spec = TaskSpec(requests=((GPU, gpus),))
    members = tuple(Task(name=f"{name}-{i}", spec=spec) for i in range(tasks))
    return Workload(name=name, queue=where, tasks=members, created_at=NOW - minutes * MINUTE, **more)


def cluster(queues, workloads, *, nodes=1, gpus=4, **settings):
    """Nodes n0, n1, … of so many GPUs."""
    machines = tuple(Node(name=f"n{i}", allocatable={GPU: gpus}) for i in range(nodes))
    return Cluster(
        now=NOW, settings=Settings(**settings), nodes=machines, queues=tuple(queues), workloads=tuple(workloads)
    )


def steps(found, action="evict"):
    """Workload and task of the steps of one kind, sorted."""
    return sorted((s.workload.removeprefix("default/"), s.task) for s in found.steps if s.action == action)


def shields(found):
    """Which shields are named, by workload."""
    return {(r.workload.removeprefix("default/"), r.shield) for r in found.refused}


def codes(found, name):
    """Codes of the reasons of a workload that waits."""
    return [r.code for p in found.pending if p.workload == f"default/{name}" for r in p.reasons]


def changed(state, name, **fields):
    """The same cluster with other fields of one workload or queue."""
    return replace(
        state,
        queues=tuple(replace(q, **fields) if q.name == name else q for q in state.queues),
        workloads=tuple(replace(w, **fields) if w.name == name else w for w in state.workloads),
    )


__all__ = ["GPU", "MINUTE", "NOW", "changed", "cluster", "codes", "play", "queue", "runs", "shields", "steps", "waits"]
