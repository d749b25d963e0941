"""Rules that placed tasks obey: nodes exist, GPUs are there and not given away twice."""

from __future__ import annotations

from collections.abc import Sequence

from tenure.model.checks.findings import ClusterFinding, Findings
from tenure.model.checks.workloads import PLACED
from tenure.model.node import Node
from tenure.model.values.problems import NearestNames
from tenure.model.values.quantity import format_quantity
from tenure.model.values.report import Path
from tenure.model.values.resources import GPU, MEMORY, MILLI, PODS
from tenure.model.workload import GpuShare, Task, Workload


def check_nodes(nodes: Sequence[Node]) -> Findings:
    """Check that no name is there twice."""
    places: dict[str, int] = {}
    for index, node in enumerate(nodes):
        if places.setdefault(node.name, index) != index:
            yield ClusterFinding(("nodes", index, "name"), f"node {node.name} is there twice; give each its own name")


def check_placement(nodes: Sequence[Node], workloads: Sequence[Workload]) -> Findings:
    """Check placed and nominated tasks against their nodes.

    A GPU that is given away twice is an error; a node that holds more than it has is a warning, for that happens on
    real clusters (a node that shrank, pods that others bound).
    """
    holdings = {node.name: _Holding(node) for node in nodes}
    coming = {node.name for node in nodes if node.awaited_until is not None}
    names = NearestNames(holdings)
    for w, workload in enumerate(workloads):
        for t, task in enumerate(workload.tasks):
            at: Path = ("workloads", w, "tasks", t)
            if task.nominated is not None and task.nominated.node not in holdings:
                yield ClusterFinding((*at, "nominated", "node"), _unknown(task.nominated.node, names))
            if task.phase not in PLACED or task.node is None:
                continue
            holding = holdings.get(task.node)
            if holding is None:
                yield ClusterFinding((*at, "node"), _unknown(task.node, names))
            elif task.node in coming:
                text = f"node {task.node} is on its way (awaitedUntil), so that no task is there yet"
                yield ClusterFinding((*at, "node"), text)
            else:
                yield from holding.place(task, at)
    for index, node in enumerate(nodes):
        yield from holdings[node.name].check_capacity(index)


def _unknown(name: str, names: NearestNames) -> str:
    return f"there is no node {name}{names.hint(name) or '; add it to nodes'}"


class _Holding:
    """What the tasks on one node hold."""

    __slots__ = ("_devices", "_node", "_used", "_whole")

    def __init__(self, node: Node) -> None:
        self._node = node
        self._used: dict[str, int] = {PODS: 0}
        self._whole = 0
        self._devices: dict[int, tuple[int, int]] = {}
        """By GPU: milli-GPU, and bytes of its memory beside them."""

    def place(self, task: Task, at: Path) -> Findings:
        """Add a task."""
        used = self._used
        used[PODS] += 1
        whole = 0
        served = {name for use in task.spec.device_uses for name in use.resources}
        for resource, amount in task.spec.requests:
            if resource in served and not self._node.allocatable.get(resource):
                continue  # devices serve it, and claims count these
            if resource == GPU:
                whole = amount
            elif resource != PODS:
                used[resource] = used.get(resource, 0) + amount
        if whole or task.spec.gpu_share is not None or task.devices:
            message = self._device_message(task, whole)
            if message:
                yield ClusterFinding((*at, "devices" if task.devices else "node"), f"task {task.name} {message}")
            else:
                yield from self._hold(task, whole, at)

    def _device_message(self, task: Task, whole: int) -> str | None:
        share = task.spec.gpu_share
        if share is not None:
            message = self._share_message(share, named=bool(task.devices))
            if message:
                return message
        wanted = share.devices if share is not None else whole
        if task.devices and len(task.devices) != wanted:
            return f"names {len(task.devices)} devices, but asks for {wanted}"
        return self._names_message(task)

    def _share_message(self, share: GpuShare, *, named: bool) -> str | None:
        node = self._node
        if not node.allocatable.get(GPU):
            return f"holds a part of a GPU, but node {node.name} has no {GPU}"
        if share.memory and node.gpu_memory is None:
            return f"holds GPU memory, but node {node.name} does not say its gpuMemory; add it"
        if share.memory > (node.gpu_memory or 0):
            asked, there = format_quantity(share.memory, MEMORY), format_quantity(node.gpu_memory or 0, MEMORY)
            return f"holds {asked} of a GPU's memory, more than the {there} that those of node {node.name} have"
        return None if named else f"holds a part of {share.devices} GPU of node {node.name}; say which: devices: [0]"

    def _names_message(self, task: Task) -> str | None:
        gpus = self._node.allocatable.get(GPU, 0)
        if len(set(task.devices)) != len(task.devices):
            return "names a device twice"
        if any(device >= gpus for device in task.devices):
            return f"names device {max(task.devices)}, but node {self._node.name} has {gpus} GPUs, counted from 0"
        return None

    def _hold(self, task: Task, whole: int, at: Path) -> Findings:
        if whole and not task.devices:
            self._whole += whole
        share = task.spec.gpu_share
        milli, memory = (share.milli, share.memory) if share is not None else (MILLI, 0)
        for device in task.devices:
            held, held_memory = self._devices.get(device, (0, 0))
            self._devices[device] = (held + milli, held_memory + memory)
            if self._is_over(held + milli, held_memory + memory):
                message = (
                    f"task {task.name} holds device {device} of node {self._node.name}, which has no room left beside "
                    f"the tasks that hold it already; move one of them"
                )
                yield ClusterFinding((*at, "devices"), message)

    def _is_over(self, milli: int, memory: int) -> bool:
        size = self._node.gpu_memory or 1
        return milli * size + memory * MILLI > MILLI * size

    def check_capacity(self, index: int) -> Findings:
        """Warn of each resource of which more is held than there is."""
        self._used[GPU] = self._whole + len(self._devices)
        for resource, amount in sorted(self._used.items()):
            there = self._node.allocatable.get(resource, None if resource == PODS else 0)
            if there is not None and amount > there:
                held, has = format_quantity(amount, resource), format_quantity(there, resource)
                message = f"the tasks on node {self._node.name} hold {held} of {resource}, more than its {has}"
                yield ClusterFinding(("nodes", index, "allocatable", resource), message, is_warning=True)
