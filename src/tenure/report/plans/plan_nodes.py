"""Nodes of a cluster file as they are drawn: who holds which GPU, and how much CPU and memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.node import Node
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI
from tenure.model.workload import Phase, Task, TaskSpec, Workload

RUNS, LEAVES, PROMISED = "runs", "leaves", "promised"


class NodePart(NamedTuple):
    """The part of a thing that one task has: an amount (milli-GPU of a device, or the model's units), and its state."""

    workload: str
    task: str
    queue: str
    amount: int
    state: str


def held(parts: Iterable[NodePart]) -> int:
    """Add up what is held; what is only promised is not."""
    return sum(part.amount for part in parts if part.state != PROMISED)


@dataclass(slots=True)
class NodeView:
    """A node as it is drawn: the parts of each of its GPUs, of its CPU and memory, and what there is of these."""

    name: str
    gpus: list[list[NodePart]]
    cpu: int
    memory: int
    cpu_parts: list[NodePart] = field(default_factory=list)
    memory_parts: list[NodePart] = field(default_factory=list)
    remark: str = ""

    @property
    def things(self) -> list[list[NodePart]]:
        """The parts of each of its things: of each GPU, of its CPU, of its memory."""
        return [*self.gpus, self.cpu_parts, self.memory_parts]

    @property
    def share(self) -> float:
        """Share in use of what the node is drawn by: its GPUs, else its CPU."""
        if self.gpus:
            return sum(map(held, self.gpus)) / (len(self.gpus) * MILLI)
        return held(self.cpu_parts) / self.cpu if self.cpu else 0.0


def views_of(cluster: Cluster) -> dict[str, NodeView]:
    """Give all nodes by name. Tasks with unknown whole GPUs get the lowest that are free."""
    views = {node.name: _empty(node) for node in cluster.nodes if not node.outside}
    memory = {node.name: node.gpu_memory for node in cluster.nodes}
    for workload, task, place in sorted(_placed(cluster), key=_turn):
        if (view := views.get(place.node)) is not None:
            _put(view, workload, task, place, memory[place.node])
    return views


class _Place(NamedTuple):
    node: str
    devices: tuple[int, ...]
    state: str


def _turn(placed: tuple[Workload, Task, _Place]) -> int:
    """Those whose GPUs are known come first, so that no other task gets these; promises lie over what is held."""
    place = placed[2]
    return 2 if place.state == PROMISED else 0 if place.devices else 1


def _placed(cluster: Cluster) -> Iterator[tuple[Workload, Task, _Place]]:
    for workload in cluster.workloads:
        for task in workload.tasks:
            if task.node is not None and task.phase in (Phase.BOUND, Phase.RUNNING, Phase.TERMINATING):
                state = LEAVES if task.phase is Phase.TERMINATING else RUNS
                yield workload, task, _Place(task.node, task.devices, state)
            if task.nominated is not None and task.phase in (Phase.PENDING, Phase.GATED, Phase.TERMINATING):
                yield workload, task, _Place(task.nominated.node, task.nominated.devices, PROMISED)


def _empty(node: Node) -> NodeView:
    remarks = [text for text, on in (("not ready", not node.ready), ("unschedulable", node.unschedulable)) if on]
    remarks += ["draining"] if node.drain else []
    return NodeView(
        node.name,
        [[] for _ in range(node.allocatable.get(GPU, 0))],
        node.allocatable.get(CPU, 0),
        node.allocatable.get(MEMORY, 0),
        remark=", ".join(remarks),
    )


def _put(view: NodeView, workload: Workload, task: Task, place: _Place, gpu_memory: int | None) -> None:
    requests = dict(task.spec.requests)
    queue = workload.queue or DEFAULT_QUEUE

    def part(amount: int) -> NodePart:
        return NodePart(workload.key, task.name, queue, amount, place.state)

    if amount := requests.get(CPU, 0):
        view.cpu_parts.append(part(amount))
    if amount := requests.get(MEMORY, 0):
        view.memory_parts.append(part(amount))
    each, devices = _of_devices(task.spec, gpu_memory)
    chosen = place.devices or _free(view, devices)
    for device in chosen:
        if device < len(view.gpus):
            view.gpus[device].append(part(each))


def _of_devices(spec: TaskSpec, gpu_memory: int | None) -> tuple[int, int]:
    """Give the milli-GPU that a task has of each of how many devices."""
    share = spec.gpu_share
    if share is None:
        return MILLI, dict(spec.requests).get(GPU, 0)
    if share.memory:
        return min(MILLI, share.memory * MILLI // gpu_memory) if gpu_memory else MILLI, share.devices
    return share.milli, share.devices


def _free(view: NodeView, devices: int) -> list[int]:
    free = [index for index, parts in enumerate(view.gpus) if not parts]
    return free[:devices]
