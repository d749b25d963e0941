"""A cluster as the console shows it: one line for each workload and node, renewed where something changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.node import Node
from tenure.model.resources import CPU, GPU, MEMORY, MILLI
from tenure.model.workload import Phase, Task, TaskSpec, Workload

RUNNING: Final = "running"
PARTLY: Final = "partly running"
WAITING: Final = "waiting"
LEAVING: Final = "leaving"
ENDED: Final = "ended"
FOREIGN: Final = "of another scheduler"
STATES: Final = (RUNNING, PARTLY, WAITING, LEAVING, ENDED, FOREIGN)

_PARTS = re.compile(r"[0-9]+|[^0-9]+", re.ASCII)
_HOLDS = frozenset({Phase.BOUND, Phase.RUNNING, Phase.TERMINATING})
_RUNS = frozenset({Phase.BOUND, Phase.RUNNING})
_WAITS = frozenset({Phase.PENDING, Phase.GATED})

Held = dict[str, int]
"""Amounts by resource in the model's units, GPUs in milli-GPU."""


class WorkloadLine(NamedTuple):
    """A workload: what it is, where it stands, what it holds and what it still asks for. Times in µs."""

    key: str
    queue: str
    priority: int
    state: str
    tasks: int
    running: int
    waiting: int
    created_at: int
    started_at: int | None
    held: Held
    asked: Held
    told: int
    """Tasks that were told that they have to go."""


class NodeLine(NamedTuple):
    """A node: what it has, what of it is held, how many tasks are on it, and what is the matter with it."""

    name: str
    size: Held
    held: Held
    tasks: int
    remark: str

    @property
    def share(self) -> float:
        """Share in use of what the node is drawn by: its GPUs, else its CPU."""
        for resource in (GPU, CPU):
            if self.size.get(resource):
                return self.held.get(resource, 0) / self.size[resource]
        return 0.0


class Placed(NamedTuple):
    """A task on a node."""

    workload: Workload
    task: Task


class Picture:
    """Everything that is there at one moment. What is published is not changed any more: `after` makes the next."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.workloads: dict[str, Workload] = {}
        self.lines: dict[str, WorkloadLine] = {}
        self.on_node: dict[str, tuple[Placed, ...]] = {}
        self.queues: dict[str, Held] = {}
        self.asked: dict[str, Held] = {}
        self.states: Counter[str] = Counter()
        self.counts: dict[str, Counter[str]] = {}
        self.unknown: set[str] = set()
        self.nodes: dict[str, NodeLine] = {}
        self._models: dict[str, Node] = {}
        self._sorted: list[str] | None = None

    @property
    def node_names(self) -> list[str]:
        """The names of all nodes as people sort them: node-10 after node-9."""
        if self._sorted is None:
            self._sorted = sorted(self.nodes, key=natural)
        return self._sorted

    @classmethod
    def of(cls, cluster: Cluster) -> Picture:
        """Make the picture of a cluster."""
        return cls(cluster).after(cluster)

    def after(self, cluster: Cluster) -> Picture:
        """Give the picture of a later cluster; only what differs from this one is worked out."""
        new = Picture(cluster)
        new.workloads, new.lines = dict(self.workloads), dict(self.lines)
        new.on_node, new.nodes = dict(self.on_node), dict(self.nodes)
        new.queues = {name: dict(held) for name, held in self.queues.items()}
        new.asked = {name: dict(held) for name, held in self.asked.items()}
        new.states, new._models = self.states.copy(), dict(self._models)
        new.counts = {name: counts.copy() for name, counts in self.counts.items()}
        new.unknown = set(self.unknown)
        new._renew()
        if self._sorted is not None and self.nodes.keys() == new.nodes.keys():
            new._sorted = self._sorted
        return new

    @property
    def now(self) -> int:
        """The moment, in µs since the epoch."""
        return self.cluster.now

    @property
    def main(self) -> str:
        """The resource that everything is drawn by: GPUs where there are any."""
        return GPU if any(node.allocatable.get(GPU) for node in self.cluster.nodes) else CPU

    def _renew(self) -> None:
        named = {node.name: node for node in self.cluster.nodes}
        touched = {name for name, node in named.items() if self._models.get(name) is not node}
        for name in self._models.keys() - named.keys():
            del self.nodes[name]
            self.on_node.pop(name, None)
        self._models = named
        gone = set(self.workloads)
        off: dict[str, set[str]] = {}
        on: dict[str, list[Placed]] = {}
        for workload in self.cluster.workloads:
            key = workload.key
            gone.discard(key)
            before = self.workloads.get(key)
            if before is workload:
                continue
            if before is not None:
                self._leave(before, off)
            self._come(workload, on)
        for key in gone:
            self._leave(self.workloads[key], off)
            del self.workloads[key], self.lines[key]
        for name in off.keys() | on.keys():
            left = off.get(name, ())
            kept = [placed for placed in self.on_node.get(name, ()) if placed.workload.key not in left]
            self.on_node[name] = (*kept, *on.get(name, ()))
        for name in touched | off.keys() | on.keys():
            if name in named:
                self.nodes[name] = _node_line(named[name], self.on_node.get(name, ()))

    def _leave(self, workload: Workload, off: dict[str, set[str]]) -> None:
        line = self.lines[workload.key]
        self.states[line.state] -= 1
        self.counts[line.queue][line.state] -= 1
        self.unknown.discard(workload.key)
        _add(self.queues.setdefault(line.queue, {}), line.held, -1)
        _add(self.asked.setdefault(line.queue, {}), line.asked, -1)
        for task in workload.tasks:
            if task.node is not None and task.phase in _HOLDS:
                off.setdefault(task.node, set()).add(workload.key)

    def _come(self, workload: Workload, on: dict[str, list[Placed]]) -> None:
        line = self._line(workload)
        self.workloads[workload.key], self.lines[workload.key] = workload, line
        self.states[line.state] += 1
        self.counts.setdefault(line.queue, Counter())[line.state] += 1
        known = line.started_at is not None or any(task.started_at for task in workload.tasks)
        if line.running and line.state != FOREIGN and not known:
            self.unknown.add(workload.key)
        _add(self.queues.setdefault(line.queue, {}), line.held, 1)
        _add(self.asked.setdefault(line.queue, {}), line.asked, 1)
        for task in workload.tasks:
            if task.node is not None and task.phase in _HOLDS:
                on.setdefault(task.node, []).append(Placed(workload, task))

    def _line(self, workload: Workload) -> WorkloadLine:
        counts = Counter(task.phase for task in workload.tasks)
        running, waiting = sum(counts[p] for p in _RUNS), sum(counts[p] for p in _WAITS)
        held: Held = {}
        asked: Held = {}
        for task in workload.tasks:
            if task.phase in _HOLDS:
                memory = self._memory_on(task.node)
                _add(held, asked_by(task.spec, memory), 1)
            elif task.phase in _WAITS:
                _add(asked, asked_by(task.spec, None), 1)
        state = _state(workload, running, waiting, counts[Phase.TERMINATING])
        told = sum(task.notice is not None for task in workload.tasks)
        return WorkloadLine(
            workload.key, workload.queue or DEFAULT_QUEUE, workload.priority, state, len(workload.tasks), running,
            waiting, workload.created_at, workload.started_at, held, asked, told,
        )  # fmt: skip

    def _memory_on(self, node: str | None) -> int | None:
        model = self._models.get(node or "")
        return None if model is None else model.gpu_memory


def _state(workload: Workload, running: int, waiting: int, leaving: int) -> str:
    if workload.scheduler_name != "tenure":
        return FOREIGN
    if running:
        least = len(workload.tasks) if workload.min_member is None else workload.min_member
        return RUNNING if not waiting or running >= least else PARTLY
    if waiting:
        return WAITING
    return LEAVING if leaving else ENDED


def asked_by(spec: TaskSpec, gpu_memory: int | None) -> Held:
    """Give what a task asks for, GPUs in milli-GPU; a part by memory counts as a whole one where that is unknown."""
    found = {name: amount * MILLI if name == GPU else amount for name, amount in spec.requests}
    share = spec.gpu_share
    if share is not None:
        each = share.milli
        if share.memory:
            each = min(MILLI, -(-share.memory * MILLI // gpu_memory)) if gpu_memory else MILLI
        found[GPU] = found.get(GPU, 0) + each * share.devices
    return found


def _node_line(node: Node, placed: Iterable[Placed]) -> NodeLine:
    held: Held = {}
    count = 0
    for one in placed:
        _add(held, asked_by(one.task.spec, node.gpu_memory), 1)
        count += 1
    size = {name: amount * MILLI if name == GPU else amount for name, amount in node.allocatable.items()}
    remarks = [text for text, on in (("not ready", not node.ready), ("unschedulable", node.unschedulable)) if on]
    remarks += ["draining"] if node.drain else []
    return NodeLine(node.name, size, held, count, ", ".join(remarks))


def _add(sums: Held, amounts: Mapping[str, int], sign: int) -> None:
    for name, amount in amounts.items():
        sums[name] = sums.get(name, 0) + sign * amount


def natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Give what names are sorted by, so that node-10 comes after node-9."""
    return tuple((not part.isdigit(), int(part[:18]) if part.isdigit() else 0, part) for part in _PARTS.findall(name))


def shown_resources(held: Iterable[str]) -> list[str]:
    """Put resources in the order in which they are shown, GPUs first; pods are left out."""
    known = [name for name in (GPU, CPU, MEMORY) if name in held]
    return known + sorted(set(held) - {GPU, CPU, MEMORY, "pods"})
