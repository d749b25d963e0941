"""A plan with everything in it that a plan may hold, and clusters before and after it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.workload import GpuShare, Nomination, Phase, Task, TaskSpec, Workload

NOW = 1_795_255_200_000_000
GIB = 2**30

GPU_4 = TaskSpec(requests=(("cpu", 8000), ("memory", 64 * GIB), ("nvidia.com/gpu", 4)))
GPU_1 = TaskSpec(requests=(("cpu", 4000), ("nvidia.com/gpu", 1)))
HALF = TaskSpec(requests=(("cpu", 1000),), gpu_share=GpuShare(milli=500))
CPUS = TaskSpec(requests=(("cpu", 16_000), ("memory", 32 * GIB)))


def running(name: str, queue: str, spec: TaskSpec, *nodes: str, devices: tuple[int, ...] = ()) -> Workload:
    tasks = tuple(
        Task(name=f"{name}-{index}", spec=spec, node=node, devices=devices, phase=Phase.RUNNING)
        for index, node in enumerate(nodes)
    )
    return Workload(name=name, queue=queue, tasks=tasks)


def pending(name: str, queue: str, spec: TaskSpec, count: int) -> Workload:
    tasks = tuple(Task(name=f"{name}-{index}", spec=spec) for index in range(count))
    return Workload(name=name, queue=queue, tasks=tasks)


def before(nodes: int = 4) -> Cluster:
    """Some GPU nodes and two without; vision serves on two of them, and <nlp> asks for room."""
    gpu = {"cpu": 96_000, "memory": 768 * GIB, "nvidia.com/gpu": 8}
    return Cluster(
        now=NOW,
        nodes=(
            *(Node(name=f"node-{index}", allocatable=gpu, drain=index == 3) for index in range(nodes)),
            *(Node(name=f"cpu-{index}", allocatable={"cpu": 64_000, "memory": 256 * GIB}) for index in range(2)),
        ),
        queues=(Queue(name="vision"), Queue(name="<nlp>"), Queue(name="batch")),
        workloads=(
            running("serve", "vision", GPU_1, "node-0", "node-0", "node-1"),
            running("old", "vision", GPU_4, "node-0"),
            running("share", "batch", HALF, "node-2", "node-2", devices=(3,)),
            running("crunch", "batch", CPUS, "cpu-0", "cpu-0", "cpu-1"),
            pending("train", "<nlp>", GPU_4, 2),
        ),
    )


def after(nodes: int = 4) -> Cluster:
    """`old` leaves; one task of `train` is bound, the other one is promised what `old` has."""
    cluster = before(nodes)
    old, train = cluster.workloads[1], cluster.workloads[4]
    bound = replace(train.tasks[0], node="node-1", devices=(4, 5, 6, 7), phase=Phase.BOUND)
    nominated_to = replace(train.tasks[1], nominated=Nomination(node="node-0", devices=(2, 3, 4, 5), at=NOW))
    workloads = list(cluster.workloads)
    workloads[1] = replace(old, tasks=(replace(old.tasks[0], phase=Phase.TERMINATING),))
    workloads[4] = replace(train, tasks=(bound, nominated_to))
    return replace(cluster, workloads=tuple(workloads))


def result() -> dict[str, Any]:
    """What `tenure plan --format json` would print of it, and of all that it could print besides."""
    return {
        "now": "2026-11-20T10:00:00Z",
        "steps": [
            {
                "cycle": 0, "action": "evict", "workload": "default/old", "task": "old-0", "node": "node-0",
                "cause": "reclaim", "for": "default/train", "cost": 14_400.0,
                "reason": "queue vision holds more than its fair share, and <nlp> less",
            },
            {
                "cycle": 0, "action": "evict", "workload": "default/share", "task": "share-0", "node": "node-2",
                "cause": "consolidate", "for": "default/train", "cost": 30.0, "reason": "makes room", "to": "node-3",
                "wave": 0,
            },
            {
                "cycle": 0, "action": "nominate", "workload": "default/train", "task": "train-1", "node": "node-0",
                "devices": [2, 3, 4, 5],
            },
            {
                "cycle": 1, "action": "bind", "workload": "default/train", "task": "train-0", "node": "node-1",
                "devices": [4, 5, 6, 7],
            },
        ],
        "pending": [
            {
                "workload": "default/big",
                "reasons": [
                    {"code": "OverMax", "message": "queue vision may hold 16 of nvidia.com/gpu", "queue": "vision"},
                    {"code": "NoRoom", "message": "no node has 8 GPUs free"},
                ],
                "estimatedStart": "2026-11-20T12:00:00Z",
            },
            {"workload": "default/odd", "reasons": [{"code": "Unsupported", "message": ""}], "estimatedStart": None},
        ],
        "refused": [
            {
                "workload": "default/serve", "cause": "reclaim", "for": "default/train", "shield": "min-runtime",
                "until": "2026-11-20T10:30:00Z",
            }
        ],
        "requeue": {
            "nominations": [{"workload": "default/share", "by": ["expected-runtime"]}],
            "skipped": [{"workload": "default/crunch", "plugin": "expected-runtime", "reason": "cooldown"}],
            "committed": 0,
            "rolledBack": 1,
        },
        "quota": [
            {
                "queue": "vision", "state": "armed", "deadline": "2026-11-20T11:00:00Z", "over": {"cpu": 2000},
                "shortfall": {},
            }
        ],
        "moves": [
            {
                "for": ["default/train"], "trigger": "pending", "feasible": True,
                "waves": [
                    [
                        {
                            "workload": "default/share", "task": "share-0", "from": "node-2", "to": "node-3",
                            "mode": "evict-first",
                        }
                    ]
                ],
                "certificate": {
                    "cost": 1_800.0, "lowerBound": 1_800.0, "gap": 0.0, "method": "exact",
                    "reason": "no cheaper set makes room",
                },
            },
            {"for": ["default/huge"], "trigger": "pending", "feasible": False, "waves": [], "certificate": None},
        ],
        "queues": [
            {
                "name": "vision", "allocated": {"nvidia.com/gpu": 7, "milliGpu": 500, "cpu": 20_000},
                "fairShare": {"nvidia.com/gpu": 5, "cpu": 100_000}, "guaranteed": {"nvidia.com/gpu": 4},
                "max": {"nvidia.com/gpu": 16},
            },
            {
                "name": "<nlp>", "allocated": {"nvidia.com/gpu": 4, "cpu": 8000}, "fairShare": {"nvidia.com/gpu": 12},
                "guaranteed": {}, "max": {},
            },
            {
                "name": "batch", "allocated": {"nvidia.com/gpu": 1, "cpu": 50_000, "memory": 96 * GIB},
                "fairShare": {"cpu": 60_000}, "guaranteed": {}, "max": {"cpu": 64_000},
            },
        ],
    }  # fmt: skip
