"""Builders for logs and traces, and where the real traces are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tenure.model.node import Node
from tenure.model.values.resources import CPU, GPU, MEMORY
from tenure.model.workload import GpuShare, Task, TaskSpec, Workload
from tenure.simulator.log import EventLog

SECOND = 1_000_000
CHECKOUT = Path(__file__).parents[2]
TRACES = Path(os.environ.get("TENURE_TRACES", CHECKOUT.parent / "shared" / "traces"))

KTH = "swf/KTH-SP2-1996-2.1-cln.swf.gz"
BLUE = "swf/SDSC-BLUE-2000-4.2-cln.swf.gz"
PHILLY = "philly/philly.csv.gz"
OPENB_NODES = "openb/openb_node_list_gpu_node.csv"


def real_trace(name):
    path = TRACES / name
    if not path.exists():
        pytest.skip(f"the real trace {name} is not there")
    return path


def node(name="n", cpu=8, gpus=0, **more):
    allocatable = {CPU: cpu * 1000, MEMORY: 64 << 30}
    if gpus:
        allocatable[GPU] = gpus
    return Node(name=name, allocatable={**allocatable, **more.pop("extra", {})}, **more)


def spec(cpu=1, gpus=0, milli=0, devices=1, memory=0):
    requests = {CPU: cpu * 1000} | ({GPU: gpus} if gpus else {})
    share = GpuShare(milli=milli, memory=memory, devices=devices) if milli or memory else None
    return TaskSpec(requests=tuple(sorted(requests.items())), gpu_share=share)


def gang(name, tasks=1, of=None, **fields):
    """A workload of equal tasks, in a queue of its own where none is named."""
    one = of or spec()
    fields.setdefault("queue", name)
    groups = fields.pop("groups", [None] * tasks)
    members = tuple(Task(name=f"{name}-{i}", spec=one, sub_group=groups[i]) for i in range(tasks))
    return Workload(name=name, tasks=members, **fields)


def script(workloads, *events):
    """Make a log from tuples: ("bind", second, job, task, node, devices) and so on."""
    log = EventLog(list(workloads))
    for kind, second, *rest in events:
        options = rest.pop() if rest and isinstance(rest[-1], dict) else {}
        options = {key: value * SECOND if key != "initial" else value for key, value in options.items()}
        getattr(log, kind)(second * SECOND, *rest, **options)
    return log
