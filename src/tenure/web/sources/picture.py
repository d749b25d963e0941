"""A cluster as the console shows it: one line for each workload and node, renewed where something changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.device_resources import capacity_of, counted_beside
from tenure.model.node import Node
from tenure.model.settings import Settings
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI
from tenure.model.workload import Phase, Task, TaskSpec, Workload
from tenure.web.sources.kept_order import KeptOrder, SortKey

RUNNING: Final = "running"
PARTLY: Final = "partly running"
WAITING: Final = "waiting"
LEAVING: Final = "leaving"
ENDED: Final = "ended"
FOREIGN: Final = "of another scheduler"
NOT_READY: Final = "not ready"
STATES: Final = (RUNNING, PARTLY, WAITING, LEAVING, ENDED, FOREIGN)

_PARTS = re.compile(r"[0-9]+|[^0-9]+", re.ASCII)
_HOLDS = (Phase.BOUND, Phase.RUNNING, Phase.TERMINATING)
_WAITS = (Phase.PENDING, Phase.GATED)

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

    @property
    def state(self) -> str:
        """Say in a word how full it is, or that something is the matter with it."""
        if self.remark:
            return "trouble"
        share = self.share
        return "free" if share <= 0 else "full" if share >= 1 else "partly"


class Placed(NamedTuple):
    """A task on a node."""

    workload: Workload
    task: Task


class NodeLines:
    """The lines of nodes by name, and their sums: ``ready`` is what of ``size`` is on nodes that are ready."""

    def __init__(self) -> None:
        self.lines: dict[str, NodeLine] = {}
        self.size: Held = {}
        self.ready: Held = {}
        self.states: Counter[str] = Counter()
        self.remarks: Counter[str] = Counter()
        self._names: list[str] | None = None

    @property
    def names(self) -> list[str]:
        """The names of all nodes as people sort them: node-10 after node-9."""
        if self._names is None:
            self._names = sorted(self.lines, key=natural)
        return self._names

    def copy(self) -> NodeLines:
        """Give the same lines, of which some can be put in place of others."""
        new = NodeLines()
        new.lines, new.size, new.ready = dict(self.lines), dict(self.size), dict(self.ready)
        new.states, new.remarks, new._names = self.states.copy(), self.remarks.copy(), self._names
        return new

    def put(self, line: NodeLine) -> None:
        """Put the line of a node in place of the one that it had, if it had one."""
        before = self.lines.get(line.name)
        if before is None:
            self._names = None
        else:
            self._count(before, -1)
        self._count(line, 1)
        self.lines[line.name] = line

    def remove(self, name: str) -> None:
        """Take out the line of a node that is not there any more."""
        self._count(self.lines.pop(name), -1)
        self._names = None

    def _count(self, line: NodeLine, sign: int) -> None:
        _add(self.size, line.size, sign)
        if not line.remark.startswith(NOT_READY):
            _add(self.ready, line.size, sign)
        self.states[line.state] += sign
        if line.remark:
            self.remarks[line.remark] += sign


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
        self.by_namespace: dict[str, Counter[str]] = {}
        self.unknown: set[str] = set()
        self.nodes = NodeLines()
        self._models: dict[str, Node] = {}
        self._orders: dict[str, KeptOrder[WorkloadLine]] = {}

    @classmethod
    def of(cls, cluster: Cluster) -> Picture:
        """Make the picture of a cluster."""
        return cls(replace(cluster, nodes=(), workloads=())).after(cluster)

    def after(self, cluster: Cluster) -> Picture:
        """Give the picture of a later cluster; only what differs from this one is worked out."""
        if cluster.settings.device_resources != self.cluster.settings.device_resources:
            return Picture.of(cluster)
        new = Picture(cluster)
        new.workloads, new.lines = dict(self.workloads), dict(self.lines)
        new.on_node, new.nodes = dict(self.on_node), self.nodes.copy()
        new.queues = {name: dict(held) for name, held in self.queues.items()}
        new.asked = {name: dict(held) for name, held in self.asked.items()}
        new.states, new._models = self.states.copy(), dict(self._models)
        new.counts = {name: counts.copy() for name, counts in self.counts.items()}
        new.by_namespace = {name: counts.copy() for name, counts in self.by_namespace.items()}
        new.unknown = set(self.unknown)
        new._renew(self)
        return new

    @property
    def now(self) -> int:
        """The moment, in µs since the epoch."""
        return self.cluster.now

    @property
    def main(self) -> str:
        """The resource that everything is drawn by: GPUs where there are any."""
        return GPU if self.nodes.size.get(GPU) else CPU

    def in_order(self, name: str, key: SortKey[WorkloadLine]) -> list[WorkloadLine]:
        """Give all workloads in an order. It is made when it is first asked for; later pictures renew it."""
        order = self._orders.get(name)
        if order is None:
            order = self._orders[name] = KeptOrder(key, self.lines.values())
        return order.lines

    def _renew(self, before: Picture) -> None:
        named = {node.name: node for node in self.cluster.nodes}
        touched = {name for name, node in named.items() if self._models.get(name) is not node}
        for name in self._models.keys() - named.keys():
            self.nodes.remove(name)
            self.on_node.pop(name, None)
        self._models = named
        left, came = _difference(before.cluster.workloads, self.cluster.workloads)
        gone = [self.lines[workload.key] for workload in left]
        off: dict[str, set[int]] = {}
        on: dict[str, list[Placed]] = {}
        for workload in left:
            self._leave(workload, off)
        for workload in came:
            self._come(workload, on)
        new = [self.lines[workload.key] for workload in came]
        self._orders = {name: order.after(gone, new) for name, order in list(before._orders.items())}
        for name in off.keys() | on.keys():
            those = off.get(name, ())
            kept = [placed for placed in self.on_node.get(name, ()) if id(placed.workload) not in those]
            self.on_node[name] = (*kept, *on.get(name, ()))
        for name in touched | off.keys() | on.keys():
            if name in named:
                self.nodes.put(_node_line(named[name], self.on_node.get(name, ()), self.cluster.settings))

    def _count(self, line: WorkloadLine, sign: int) -> None:
        queue, state, namespace = line.queue, line.state, line.key.partition("/")[0]
        if queue not in self.counts:
            self.counts[queue], self.queues[queue], self.asked[queue] = Counter(), {}, {}
        if namespace not in self.by_namespace:
            self.by_namespace[namespace] = Counter()
        self.states[state] += sign
        self.counts[queue][state] += sign
        self.by_namespace[namespace][state] += sign
        _add(self.queues[queue], line.held, sign)
        _add(self.asked[queue], line.asked, sign)

    def _leave(self, workload: Workload, off: dict[str, set[int]]) -> None:
        key = workload.key
        self._count(self.lines.pop(key), -1)
        del self.workloads[key]
        self.unknown.discard(key)
        for task in workload.tasks:
            if task.node is not None and task.phase in _HOLDS:
                off.setdefault(task.node, set()).add(id(workload))

    def _come(self, workload: Workload, on: dict[str, list[Placed]]) -> None:
        line = self._line(workload)
        self.workloads[line.key], self.lines[line.key] = workload, line
        self._count(line, 1)
        known = line.started_at is not None or any(task.started_at for task in workload.tasks)
        if line.running and line.state != FOREIGN and not known:
            self.unknown.add(line.key)
        for task in workload.tasks:
            if task.node is not None and task.phase in _HOLDS:
                on.setdefault(task.node, []).append(Placed(workload, task))

    def _line(self, workload: Workload) -> WorkloadLine:
        running = waiting = leaving = told = 0
        held: Held = {}
        asked: Held = {}
        settings = self.cluster.settings
        for task in workload.tasks:
            told += task.notice is not None
            if task.phase in _HOLDS:
                leaving += task.phase is Phase.TERMINATING
                running += task.phase is not Phase.TERMINATING
                memory = self._memory_on(task.node)
                _add(held, asked_by(task.spec, memory, settings), 1)
            elif task.phase in _WAITS:
                waiting += 1
                _add(asked, asked_by(task.spec, None, settings), 1)
        state = _state(workload, running, waiting, leaving)
        return WorkloadLine(
            workload.key, workload.queue or DEFAULT_QUEUE, workload.priority, state, len(workload.tasks), running,
            waiting, workload.created_at, workload.started_at, held, asked, told,
        )  # fmt: skip

    def _memory_on(self, node: str | None) -> int | None:
        model = self._models.get(node or "")
        return None if model is None else model.gpu_memory


def _difference(before: Sequence[Workload], after: Sequence[Workload]) -> tuple[list[Workload], list[Workload]]:
    """Give those that are not there any more, as the very objects that they were, and those that came."""
    if len(before) == len(after):
        pairs = [(old, new) for old, new in zip(before, after, strict=True) if old is not new]
        before, after = [old for old, _ in pairs], [new for _, new in pairs]
    was, now = set(map(id, before)), set(map(id, after))
    return [one for one in before if id(one) not in now], [one for one in after if id(one) not in was]


def _state(workload: Workload, running: int, waiting: int, leaving: int) -> str:
    if workload.scheduler_name != "tenure":
        return FOREIGN
    if running:
        return RUNNING if not waiting or running >= workload.core else PARTLY
    if waiting:
        return WAITING
    return LEAVING if leaving else ENDED


def asked_by(spec: TaskSpec, gpu_memory: int | None, settings: Settings) -> Held:
    """Give what a task counts for its queue, GPUs in milli-GPU, devices of any vendor and of claims among them.

    A part by memory counts as a whole one where the memory of a GPU is unknown.
    """
    found = {name: amount * MILLI if name == GPU else amount for name, amount in spec.requests}
    share = spec.gpu_share
    if share is not None:
        each = share.milli
        if share.memory:
            each = min(MILLI, -(-share.memory * MILLI // gpu_memory)) if gpu_memory else MILLI
        found[GPU] = found.get(GPU, 0) + each * share.devices
    for name, amount in counted_beside(spec, settings).items():
        found[name] = found.get(name, 0) + amount
    return found


def _node_line(node: Node, placed: Iterable[Placed], settings: Settings) -> NodeLine:
    held: Held = {}
    count = 0
    for one in placed:
        _add(held, asked_by(one.task.spec, node.gpu_memory, settings), 1)
        _add(held, dict(one.task.spec.counted), -1)  # devices of claims are no part of what a node says it has
        count += 1
    size = capacity_of((node,), settings)
    remarks = [text for text, on in ((NOT_READY, not node.ready), ("unschedulable", node.unschedulable)) if on]
    remarks += [text for text, on in (("draining", node.drain), ("on its way", node.awaited_until is not None)) if on]
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
