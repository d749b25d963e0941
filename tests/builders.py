"""Clusters in a few words: whole cores and GPUs where the model has parts of them, seconds where it has µs."""

from __future__ import annotations

from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.values.resources import CPU, GPU, MEMORY, PODS
from tenure.model.workload import GpuShare, Nomination, Phase, Task, TaskSpec, Workload

NOW = 1_800_000_000_000_000
SECOND = 1_000_000
GIB = 1 << 30

_SHORT = {"cpu": (CPU, 1000), "gpu": (GPU, 1), "memory": (MEMORY, GIB), "pods": (PODS, 1)}


def amounts(short, *, gpu_unit=1):
    """Turn ``{"cpu": 2, "gpu": 1}`` into amounts of the model; names that are not known here stay as they are."""
    found = {}
    for name, value in short.items():
        full, unit = _SHORT.get(name, (name, 1))
        found[full] = round(value * (gpu_unit if full == GPU else unit))
    return found


def node(name, *, cpu=8, gpu=0, memory=None, pods=None, gpu_memory=None, extra=None, **fields):
    """Make a node; ``memory`` and ``gpu_memory`` in GiB."""
    there = {"cpu": cpu, "gpu": gpu or None, "memory": memory, "pods": pods, **(extra or {})}
    allocatable = amounts({k: v for k, v in there.items() if v is not None})
    return Node(name=name, allocatable=allocatable, gpu_memory=gpu_memory and gpu_memory * GIB, **fields)


def queue(name, parent=None, *, guaranteed=None, max=None, **fields):  # noqa: A002  the field's own name
    """Make a queue."""
    floor, most = (amounts(found or {}, gpu_unit=1000) for found in (guaranteed, max))
    return Queue(name=name, parent=parent, guaranteed=floor, max=most, **fields)


def spec(*, cpu=1, gpu=0, memory=0, fraction=0, gpu_memory=0, devices=1, extra=None, **fields):
    """Make what a task asks for: ``fraction`` in milli-GPU, ``gpu_memory`` and ``memory`` in GiB."""
    asked = amounts({k: v for k, v in {"cpu": cpu, "gpu": gpu, "memory": memory, **(extra or {})}.items() if v})
    share = None
    if fraction or gpu_memory:
        share = GpuShare(milli=fraction, memory=round(gpu_memory * GIB), devices=devices)
    return TaskSpec(requests=tuple(sorted(asked.items())), gpu_share=share, **fields)


def task(name, of=None, *, on=None, devices=(), nominated_to=None, **fields):
    """Make a task; ``on`` names the node where it runs, ``nominated_to`` the one to which it was nominated just now."""
    if on is not None:
        fields.setdefault("phase", Phase.RUNNING)
    if nominated_to is not None:
        fields["nominated"] = Nomination(node=nominated_to, devices=tuple(fields.pop("nominated_devices", ())), at=NOW)
    return Task(name=name, spec=of or spec(), node=on, devices=tuple(devices), **fields)


def workload(name, *, tasks=1, of=None, on=None, age=0, running=None, queue="default", **fields):
    """Make a workload of equal tasks, or of those given; ``on`` lists nodes for the first ones.

    ``age`` is the time since its creation in seconds, ``running`` that since its start.
    """
    if isinstance(tasks, int):
        nodes = [*(on or ()), *[None] * tasks][:tasks]
        tasks = [task(f"{name}-{i}", of, on=where) for i, where in enumerate(nodes)]
    if running is not None:
        fields["started_at"] = NOW - running * SECOND
    for key in ("expected_runtime", "staleness_grace_period"):
        if fields.get(key) is not None:
            fields[key] *= SECOND
    return Workload(name=name, queue=queue, tasks=tuple(tasks), created_at=NOW - age * SECOND, **fields)


def cluster(nodes, workloads=(), queues=(), **settings):
    """Make a cluster at `NOW`; further keywords are settings."""
    return Cluster(
        now=NOW,
        nodes=tuple(nodes),
        queues=tuple(queues),
        workloads=tuple(workloads),
        settings=Settings(**{"actions": ("allocate",), **settings}),
    )


def steps(played, *actions):
    """Give the steps as short tuples: action, task, node, devices; only those actions, if any are named."""
    found = [(s.action, s.task, s.node, s.devices) for s in played.steps]
    return [step for step in found if not actions or step[0] in actions]


def bound(played):
    """Give node by task for everything that was bound."""
    return {s.task: s.node for s in played.steps if s.action == "bind"}


def codes(played):
    """Give the codes of the reasons by workload that waits."""
    return {p.workload.removeprefix("default/"): [r.code for r in p.reasons] for p in played.pending}
