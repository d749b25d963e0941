"""Alibaba's cluster-trace-gpu-v2023 ("openb"): a list of pods, and a list of nodes beside it.

Each pod asks for ``gpu_milli`` of each of ``num_gpu`` GPUs. The experiment that inflates the list is that of
Weng et al., "Beware of Fragmentation", USENIX ATC 2023, section 6.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.file.expand import MAX_NODES
from tenure.model.node import Node
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI
from tenure.model.workload import Task, Workload
from tenure.simulator.traces.columns import TraceTable, column, needed
from tenure.simulator.traces.numbers import micros, whole
from tenure.simulator.traces.records import SECOND, ReadOptions, Trace, TraceFormat, TraceJob
from tenure.simulator.traces.source import ProblemList, TraceSource, open_source
from tenure.simulator.traces.specs import MIB, MODEL_LABEL, PodRequest, SpecCache, models_of
from tenure.simulator.traces.table import (
    TableRow,
    TaskLimit,
    TraceTableReader,
    UniqueNames,
    first_line,
    plain_name,
)

PODS = TraceTable(
    "list of pods",
    (
        needed("name", "name of the workload and of its pod"),
        needed("cpu_milli", "CPU", "millicores"),
        needed("memory_mib", "memory", "MiB"),
        needed("num_gpu", "GPUs"),
        needed("gpu_milli", "how much of each of these, 1 to 1000", "thousandths of a GPU"),
        column("gpu_spec", "GPU models that will do, separated by `|`: an affinity to the node's label"),
        column("qos", "label `qos`"),
        column("pod_phase"),
        column("creation_time", "submit time; empty: one pod arrives each second", "seconds of the trace's own time"),
        column("deletion_time", "end; empty: it never ends", "seconds of the trace's own time"),
        column("scheduled_time"),
    ),
)
NODES = TraceTable(
    "list of nodes (`--nodes`)",
    (
        needed("sn", "name of the node"),
        needed("cpu_milli", "CPU", "millicores"),
        needed("memory_mib", "memory", "MiB"),
        needed("gpu", "GPUs"),
        needed("model", "label `nvidia.com/gpu.product`"),
    ),
)

MAX_GPUS = 1024
NO_RUNTIME = "negative run time"

_amount = partial(whole, low=0, high=10**12)
_gpus = partial(whole, low=0, high=MAX_GPUS)
_milli = partial(whole, low=0, high=MILLI)


def read(source: TraceSource, options: ReadOptions) -> Trace:
    """Read a list of pods; each is a workload of one task.

    A pod runs from ``creation_time`` to ``deletion_time`` where both are given, else for ever. Pods of a list
    without times arrive in its order, one a second. ``gpu_spec`` is a required node affinity on the label of the
    GPU model, which nodes of ``options.nodes_file`` carry.

    Raises
    ------
    InvalidInputError
        A line is malformed, or the node list cannot be read.
    """
    problems = ProblemList(source)
    names = UniqueNames()
    specs, limit = SpecCache(), TaskLimit()
    dropped: Counter[str] = Counter()
    keyed: list[tuple[tuple[int, int], TraceJob]] = []
    records = 0
    table = TraceTableReader(source, PODS, problems, mapping=options.mapping)
    for row in table.rows():
        limit.take(source, row.line, 1)
        job = _job(row, records, specs)
        names.check(row, "name", job.record)
        records += 1
        if job.runtime is not None and job.runtime < 0:
            dropped[NO_RUNTIME] += 1
        else:
            keyed.append(((job.workload.created_at, row.line), job))
    problems.raise_if_any()
    keyed.sort(key=lambda pair: pair[0])
    return Trace(
        format="openb",
        jobs=tuple(job for _, job in keyed),
        dropped=dropped.total(),
        drop_reasons=dict(dropped),
        nodes=() if options.nodes_file is None else read_nodes(options.nodes_file),
        records=records,
        notes=table.notes(),
    )


def _job(row: TableRow, index: int, specs: SpecCache) -> TraceJob:
    name = row.need("name", plain_name, "")
    created = row.value("creation_time", micros, index * SECOND)
    deleted = row.value("deletion_time", micros, -1)
    known = bool(row.text("creation_time") and row.text("deletion_time"))
    own, further = _labels(row.text("qos")), row.labels()
    workload = Workload(
        name=name,
        queue=DEFAULT_QUEUE,
        tasks=(Task(name=name, spec=specs.spec(_ask(row))),),
        created_at=created,
        labels=further | own if further else own,
    )
    return TraceJob(workload, deleted - created if known else None, name)


@lru_cache(maxsize=64)
def _labels(qos: str) -> dict[str, str]:
    """Give the labels of pods of one class, which all of them share."""
    return {"qos": qos} if qos else {}


def _ask(row: TableRow) -> PodRequest:
    gpus = row.need("num_gpu", _gpus, 0)
    milli = row.need("gpu_milli", _milli, MILLI)
    if gpus and not milli:
        row.reject("gpu_milli", "0 of each GPU: a pod with num_gpu asks for 1 to 1000")
    return PodRequest(
        cpu_milli=row.need("cpu_milli", _amount, 0),
        memory_mib=row.need("memory_mib", _amount, 0),
        gpus=gpus,
        milli=milli if gpus else MILLI,
        models=models_of(row.text("gpu_spec")),
    )


def read_nodes(path: Path) -> tuple[Node, ...]:
    """Read a list of nodes; the GPU model becomes the label ``nvidia.com/gpu.product``.

    Raises
    ------
    InvalidInputError
        The file cannot be read, a line is malformed, or there are too many.
    """
    source = open_source(path)
    problems = ProblemList(source)
    names = UniqueNames()
    nodes = []
    for row in TraceTableReader(source, NODES, problems).rows():
        node = _node(row)
        names.check(row, "sn", node.name)
        nodes.append(node)
        if len(nodes) > MAX_NODES:
            raise source.fail(f"more than {MAX_NODES:,} nodes up to here; so many are read at the most", row.line)
    problems.raise_if_any()
    return tuple(nodes)


def _node(row: TableRow) -> Node:
    allocatable = {
        CPU: row.need("cpu_milli", _amount, 0),
        MEMORY: row.need("memory_mib", _amount, 0) * MIB,
        GPU: row.need("gpu", _gpus, 0),
    }
    model = row.text("model")
    return Node(
        name=row.need("sn", plain_name, ""),
        allocatable={name: amount for name, amount in allocatable.items() if amount},
        labels={MODEL_LABEL: model} if model else {},
    )


def gpu_milli_of(job: TraceJob) -> int:
    """GPU demand of a job in milli-GPU."""
    total = 0
    for task in job.workload.tasks:
        share = task.spec.gpu_share
        total += dict(task.spec.requests).get(GPU, 0) * MILLI
        total += share.milli * share.devices if share is not None else 0
    return total


def inflate(trace: Trace, gpu_capacity_milli: int, x: float, seed: int) -> Trace:
    """Make the arrivals of the FGD experiment.

    All pods of the list once, then pods drawn from it uniformly, with replacement, until the GPU demand of all is
    at least ``x`` times ``gpu_capacity_milli`` (a list that asks for more than that to begin with gets none); then
    all of them shuffled. One arrives each second, and none ever ends. Copies are called ``NAME-copy-K``.
    Draws come from numpy's PCG64 seeded with ``seed``: first the copies, then the shuffle.

    Raises
    ------
    ValueError
        ``x`` or the capacity is negative, or no pod of the list asks for GPUs.
    """
    import numpy as np  # noqa: PLC0415  readers do without numpy

    if not x >= 0 or gpu_capacity_milli < 0:
        raise ValueError(f"cannot inflate to {x} times {gpu_capacity_milli} milli-GPU: neither may be negative")
    demand = np.array([gpu_milli_of(job) for job in trace.jobs], dtype=np.int64)
    missing = x * gpu_capacity_milli - demand.sum()
    if missing > 0 and not demand.any():
        raise ValueError("cannot inflate a list in which no pod asks for GPUs")
    generator = np.random.Generator(np.random.PCG64(seed))
    drawn = np.empty(0, dtype=np.int64)
    while missing > 0 and demand[drawn].sum() < missing:
        drawn = np.concatenate((drawn, generator.integers(0, len(demand), len(demand))))
    enough = 0 if missing <= 0 else int(np.searchsorted(np.cumsum(demand[drawn]), missing)) + 1
    copies = Counter[int]()
    jobs = [replace(job, runtime=None) for job in trace.jobs]
    for index in drawn[:enough].tolist():
        copies[index] += 1
        jobs.append(_copy(trace.jobs[index], copies[index]))
    order = generator.permutation(len(jobs)).tolist()
    return replace(trace, jobs=tuple(_arriving(jobs[index], at) for at, index in enumerate(order)), records=len(jobs))


def _copy(job: TraceJob, number: int) -> TraceJob:
    name = f"{job.record}-copy-{number}"
    tasks = tuple(replace(task, name=f"{task.name}-copy-{number}") for task in job.workload.tasks)
    return TraceJob(replace(job.workload, name=name, tasks=tasks), None, name)


def _arriving(job: TraceJob, second: int) -> TraceJob:
    return replace(job, workload=replace(job.workload, created_at=second * SECOND))


def _recognises(_name: str, head: str) -> bool:
    return set(PODS.needed) <= set(first_line(head))


def is_node_list(head: str) -> bool:
    """Whether the content is a list of nodes rather than of pods."""
    return set(NODES.needed) <= set(first_line(head))


FORMAT = TraceFormat(
    "openb",
    _recognises,
    read,
    "Alibaba's GPU trace of 2023 ([cluster-trace-gpu-v2023](https://github.com/alibaba/clusterdata/tree/master/"
    "cluster-trace-gpu-v2023)): a list of pods, and a list of nodes beside it.",
    (PODS, NODES),
    ("Pods with a negative run time are dropped.",),
)
