"""Classes of tasks that ask for the same, and what is known of each about every node.

Labels are no part of a class: what other tasks' terms make of them is the task's *profile*
(`tenure.engine.terms`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tenure.engine.room.labels import reached
from tenure.engine.room.nodes import Ints, NodeTable
from tenure.engine.room.taints import NOT_READY_POINTS
from tenure.model.values.resources import GPU, MILLI, PODS
from tenure.model.workload import TaskSpec

Floats = NDArray[np.float64]

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})

ANYTHING = -(1 << 62)
"""Less than any room: of what a task does not ask for, a node may have less than nothing."""


class Footprint:
    """The footprint of some classes: their tasks take the same of any node, and differ in where they may go.

    ``widest`` is the class of them that is kept off the fewest nodes, of those that prefer none. What is known of it
    about a node, whether one fits and how good the node is, holds for the classes that it covers as well.
    """

    __slots__ = ("widest",)

    def __init__(self) -> None:
        self.widest: TaskClass | None = None

    def offer(self, cls: TaskClass) -> None:
        """Note that there is a class, which is the widest if it covers what has been that."""
        widest = self.widest
        if cls.preference is None and (widest is None or (cls.covers(widest) and not widest.covers(cls))):
            self.widest = cls


class TaskClass:
    """Tasks with equal asks and constraints.

    ``ask`` is ``int64[rows]``: what one task takes from a node, the amount of a part of a GPU left out, because it
    may differ by node (``milli``, ``int64[nodes]``, of each of ``devices`` devices). ``whole`` is the number of whole
    GPUs. ``amount`` is what a pending task counts for its queue, in the amounts' rows. ``static`` says which nodes
    its constraints admit, whatever else runs there, and ``admitted`` how many; ``preference`` is what those that are
    only preferred are worth.
    """

    __slots__ = (
        "_plain", "_within", "admitted", "amount", "ask", "asks", "best", "best_key", "both", "devices", "footprint",
        "id", "key", "least", "milli", "placeable", "preference", "rate", "spec", "static", "static_list", "synced",
        "version", "whole",
    )  # fmt: skip

    def __init__(self, number: int, spec: TaskSpec, nodes: NodeTable, footprint: Footprint) -> None:
        self.id = number
        self.spec = spec
        self.placeable = spec.is_placeable
        self.footprint = footprint
        self._within: tuple[TaskClass, bool] | None = None
        self.ask = np.zeros(nodes.rows, np.int64)
        self.whole = 0
        self.devices = 0
        self.milli: Ints | None = None
        for name, value in spec.requests:
            if name == GPU:
                self.whole = value
            elif value and name in nodes.row:
                self.ask[nodes.row[name]] = value
        if PODS in nodes.row:
            self.ask[nodes.row[PODS]] += 1
        if self.whole and nodes.gpu_row >= 0:
            self.ask[nodes.gpu_row] = self.whole * MILLI
        if self.whole and nodes.has_devices:
            self.ask[nodes.rows - 1] = self.whole
        if spec.gpu_share is not None:
            self.devices = spec.gpu_share.devices
            self.milli = milli_by_node(spec, nodes)
        self.both = np.concatenate([self.ask, self.ask])
        self.least = np.where(self.both > 0, self.both, ANYTHING)[:, None]
        self.asks = [(row, amount) for row, amount in enumerate(self.ask.tolist()) if amount]
        self.amount = self._pending_amount(nodes)
        self._plain: tuple[int, ...] = tuple(self.ask.tolist())
        self.static = self._static(nodes)
        self.static_list: list[bool] = self.static.tolist()
        self.admitted: int = sum(self.static_list)
        self.preference = self._preference(nodes)
        self.key: Floats | None = None
        self.synced = 0
        self.version = 0
        self.best = -1
        self.best_key = -np.inf
        self.rate: float | None = None  # what a second of it costs, once somebody has asked
        footprint.offer(self)

    def covers(self, other: TaskClass) -> bool:
        """Whether its constraints admit every node that those of another class admit."""
        return not bool((other.static & ~self.static).any())

    def wider(self) -> TaskClass | None:
        """Give the widest class of its footprint, if that covers this one; None for the widest itself."""
        widest = self.footprint.widest
        if widest is None or widest is self:
            return None
        if self._within is None or self._within[0] is not widest:
            self._within = widest, widest.covers(self)
        return widest if self._within[1] else None

    def _pending_amount(self, nodes: NodeTable) -> tuple[int, ...]:
        amount = self.ask[: nodes.amounts].tolist()
        if self.whole and nodes.gpu_row >= 0:
            amount[nodes.gpu_row] = self.whole * MILLI
        if self.milli is not None and nodes.gpu_row >= 0:
            will_do = self.milli[self.milli > 0]
            amount[nodes.gpu_row] = self.devices * (int(will_do.max()) if len(will_do) else MILLI)
        for name, counted in self._counted(nodes):
            amount[nodes.row[name]] += counted
        return tuple(amount)

    def _counted(self, nodes: NodeTable) -> Iterator[tuple[str, int]]:
        """Give what it counts for its queue beside what it asks for: for devices of claims, and for parts of GPUs."""
        for name, counted in self.spec.counted:
            if name in nodes.row:
                yield name, counted
        for resource, many in self.spec.requests if nodes.counts else ():
            for name, each in nodes.counts.get(resource, _NOTHING).items():
                yield name, many * each

    def _static(self, nodes: NodeTable) -> NDArray[np.bool_]:
        labels, affinity = nodes.labels, self.spec.affinity
        mask = (
            nodes.admitting & nodes.taints.tolerated(self.spec.tolerations) & labels.selected(self.spec.node_selector)
        )
        mask &= labels.affine(affinity.node if affinity else None) & reached(labels, self.spec.volume_nodes)
        for feature in self.spec.features:
            mask &= labels.declaring(feature)
        for constraint in self.spec.spread:
            if constraint.when_unsatisfiable == "DoNotSchedule":
                mask &= labels.having(constraint.topology_key)
        if self.milli is not None:
            mask &= (self.milli > 0) & (nodes.device_count >= self.devices)
        unknown = any(value and name not in nodes.row for name, value in self.spec.requests)
        if unknown or not self.placeable:
            mask = np.zeros(len(nodes), bool)
        return mask

    def _preference(self, nodes: NodeTable) -> Floats | None:
        node_affinity = self.spec.affinity.node if self.spec.affinity else None
        score = nodes.labels.preference(node_affinity) - nodes.taints.avoided(self.spec.tolerations)
        score -= NOT_READY_POINTS * (self.static & ~nodes.ready)
        return score.astype(np.float64) if score.any() else None

    def takes(self, node: int, nodes: NodeTable) -> Ints:
        """What one task takes from ``node``: ``int64[rows]``, with its part of a GPU."""
        if self.milli is None:
            return self.ask
        ask = self.ask.copy()
        ask[nodes.gpu_row] += int(self.milli[node]) * self.devices
        return ask

    def numbered(self, node: int, nodes: NodeTable) -> int:
        """How many devices with numbers one task holds on ``node``: none where claims serve its GPUs."""
        return self.devices or (self.whole if nodes.device_count[node] else 0)

    def milli_on(self, node: int) -> int:
        """Milli-GPU that one task takes of each of its devices on ``node``."""
        return MILLI if self.milli is None else int(self.milli[node])

    def frees(self, node: int, devices: Sequence[int], nodes: NodeTable) -> tuple[int, ...]:
        """What ``node`` would have again without one task, by row of amounts; at most, for parts of GPUs.

        The devices of which it has a part may become wholly free.
        """
        if self.milli is None:
            return self._plain
        takes: list[int] = self.takes(node, nodes).tolist()
        takes[-1] += len(devices)
        return tuple(takes)

    def amount_at(self, node: int, nodes: NodeTable) -> tuple[int, ...]:
        """What one task counts for its queue once it is placed on ``node``."""
        if self.milli is None:
            return self.amount
        amount = list(self.amount)
        counted = sum(amount for name, amount in self._counted(nodes) if name == GPU)
        amount[nodes.gpu_row] = int(self.milli[node]) * self.devices + counted
        return tuple(amount)


def milli_by_node(spec: TaskSpec, nodes: NodeTable) -> Ints:
    """Milli-GPU of one device that the task's part of a GPU is, by node; 0 where it fits no device there.

    Memory is rounded up to whole milli-GPU, so that a device is never promised beyond its memory.
    """
    share = spec.gpu_share
    assert share is not None
    if share.milli:
        return np.where(nodes.device_count > 0, share.milli, 0)
    per_device = nodes.gpu_memory
    fits = (per_device >= share.memory) & (nodes.device_count > 0)
    memory = np.where(fits, per_device, 1).astype(object)
    parts = [-(-share.memory * MILLI // m) for m in memory]
    return np.where(fits, np.array(parts, object), 0).astype(np.int64)


class ClassTable:
    """The table of all task classes of a session, each made once."""

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self.classes: list[TaskClass] = []
        self._by_key: dict[tuple[object, ...], TaskClass] = {}
        self._by_identity: dict[int, tuple[TaskSpec, TaskClass]] = {}
        self._with_reach: dict[tuple[object, ...], tuple[object, TaskClass]] = {}
        self._footprints: dict[object, Footprint] = {}

    @property
    def size(self) -> int:
        """How many specs and classes are kept."""
        return len(self.classes) + len(self._by_identity) + len(self._with_reach)

    def of(self, spec: TaskSpec) -> TaskClass:
        """Give the class of ``spec``."""
        known = self._by_identity.get(id(spec))
        if known is not None:
            return known[1]
        if len(spec.mounts) == 1 and not spec.device_uses:
            return self._of_lone(spec)
        found = self._of_key(spec)
        if not any(_ASIDE(spec)):  # specs that differ in labels only would pile up here
            self._by_identity[id(spec)] = (spec, found)
        return found

    def _of_lone(self, spec: TaskSpec) -> TaskClass:
        """Give the class of a spec with one volume; the nodes of all volumes of a zone are one object as a rule."""
        (mount,) = spec.mounts
        nodes = mount.nodes
        key = _ITSELF(spec), id(nodes), mount.awaits, mount.unsupported
        known = self._with_reach.get(key)
        if known is None:
            known = self._with_reach[key] = nodes, self._of_key(spec)
        return known[1]

    def _of_key(self, spec: TaskSpec) -> TaskClass:
        key = _key(spec)
        found = self._by_key.get(key)
        if found is None:
            footprint = self._footprints.setdefault((spec.requests, spec.gpu_share), Footprint())
            found = self._by_key[key] = TaskClass(len(self.classes), _bare(spec, key), self.nodes, footprint)
            self.classes.append(found)
        return found


_LEFT_OUT: Final = ("labels", "claims", "mounts", "resource_claims", "device_uses", "extended")
_JOINED: Final = ("volume_nodes", "awaits", "unsupported")
_ASIDE: Final = attrgetter(*_LEFT_OUT)
_DECIDING: Final = attrgetter(*(f.name for f in fields(TaskSpec) if f.name not in (*_LEFT_OUT, *_JOINED)))
_ITSELF: Final = attrgetter(*(f.name for f in fields(TaskSpec) if f.name not in _LEFT_OUT))


def _key(spec: TaskSpec) -> tuple[object, ...]:
    """Give what of a spec decides about its class: of what it mounts, which nodes reach that, and what is wrong.

    A spec of its own for each pod is usual where claims are mounted, and to make a bare one of each took most of the
    time that volumes cost a session (``benchmarks/b29_volumes.py``).
    """
    mounts, uses = spec.mounts, spec.device_uses
    if not (mounts or uses):
        return (_DECIDING(spec), spec.volume_nodes, spec.awaits, spec.unsupported)
    return (
        _DECIDING(spec),
        tuple(dict.fromkeys((*spec.volume_nodes, *(nodes for mount in mounts for nodes in mount.nodes)))),
        (*spec.awaits, *_told(m.awaits for m in mounts), *_told(u.awaits for u in uses)),
        (*spec.unsupported, *_told(m.unsupported for m in mounts), *_told(u.unsupported for u in uses)),
    )


def _bare(spec: TaskSpec, key: tuple[object, ...]) -> TaskSpec:
    """Give a spec with what decides about the class alone."""
    if not any(_ASIDE(spec)):
        return spec
    changes: dict[str, Any] = {**dict.fromkeys(_LEFT_OUT, ()), **dict(zip(_JOINED, key[1:], strict=True))}
    return replace(spec, **changes)


def _told(texts: Iterable[str]) -> Iterator[str]:
    return (text for text in texts if text)
