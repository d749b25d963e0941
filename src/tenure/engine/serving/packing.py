"""A necessary condition for moves: nodes and devices hold what moves, none of it where it stood, and what it moves for.

The volume bound asks how much of each amount places hold; this asks how it is cut, for what is left of several devices
is no device. All ways to pack the tasks are tried by room alone, the largest first; whatever else keeps tasks from a
node is left aside. So where there is no way to pack them there is none to place them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain, combinations

from tenure.engine.room.classes import TaskClass
from tenure.engine.room.nodes import THEN, NodeTable
from tenure.engine.state.workloads import TaskState
from tenure.model.values.resources import MILLI

MOST_NODES = 64
"""Nodes up to which it is tried to pack tasks."""

MOST_TASKS = 32
"""Tasks up to which it is tried."""

MOST_LOOKED_AT = 4096
"""Nodes that are looked at, for one task or another, before it is taken that there is a way."""


def may_pack(
    nodes: NodeTable, evicted: Sequence[TaskState], withdrawn: Sequence[TaskState], wanted: Sequence[TaskState]
) -> bool:
    """Whether there may be room for ``evicted`` tasks, none where it stands, for those ``withdrawn``, and ``wanted``.

    False only where there is none. What is evicted or withdrawn stands on nodes, which stay as they are. Where claims
    serve GPUs, which have no numbers, nothing is said.
    """
    tasks = len(evicted) + len(withdrawn) + len(wanted)
    if len(nodes) > MOST_NODES or tasks > MOST_TASKS or nodes.served is not None:
        return True
    return _Packing(nodes, evicted, withdrawn, wanted).found()


class _Packing:
    """The search for a way to pack some tasks."""

    def __init__(
        self,
        nodes: NodeTable,
        evicted: Sequence[TaskState],
        withdrawn: Sequence[TaskState],
        wanted: Sequence[TaskState],
    ) -> None:
        self.room: list[list[int]] = nodes.room[nodes.rows : nodes.rows + nodes.amounts].T.tolist()
        self.devices: list[list[int]] = nodes.device[THEN].tolist()
        for task in chain(evicted, withdrawn):
            cls, room, free = task.cls, self.room[task.node], self.devices[task.node]
            for row, amount in enumerate(cls.takes(task.node, nodes)[: nodes.amounts].tolist()):
                room[row] += amount
            for device in task.devices:
                free[device] += cls.milli_on(task.node)
        self.whole = [free.count(MILLI) for free in self.devices]
        self.tasks = sorted((*evicted, *withdrawn, *wanted), key=_largest_first)
        self.asks = {t.cls: [a for a in t.cls.asks if a[0] < nodes.amounts] for t in self.tasks}
        self.has_devices = nodes.has_devices
        self.left = MOST_LOOKED_AT
        self.owned = {(t.node, device) for t in evicted if t.cls.milli is not None for device in t.devices}
        self.evicted = set(evicted)

    def found(self, number: int = 0, first: int = 0) -> bool:
        """Whether the tasks from one on can be packed beside those before it, or too much was looked at.

        ``first``: the first of the nodes that it may go to.
        """
        if number == len(self.tasks):
            return True
        task = self.tasks[number]
        cls, asks, own = task.cls, self.asks[task.cls], self._own(task)
        alike = number + 1 < len(self.tasks) and self._alike(task, self.tasks[number + 1])
        for node in range(first, len(self.room)):
            if not cls.static_list[node] or (node == own and cls.milli is None):
                continue
            self.left -= 1
            if self.left < 0:
                return True
            room = self.room[node]
            if any(room[row] < amount for row, amount in asks):
                continue
            for devices in self._choices(task, node):
                self._put(cls, node, devices, 1)
                if self.found(number + 1, node if alike else 0):
                    return True
                self._put(cls, node, devices, -1)
        return False

    def _put(self, cls: TaskClass, node: int, devices: Sequence[int], sign: int) -> None:
        """Take what a task takes of a node, and of these devices where it takes parts of them; or give it back."""
        room, free = self.room[node], self.devices[node]
        for row, amount in self.asks[cls]:
            room[row] -= sign * amount
        if cls.milli is None:
            self.whole[node] -= sign * cls.whole  # which of them is open until all parts have their devices
            return
        whole, milli = sum(free[d] == MILLI for d in devices), sign * cls.milli_on(node)
        for device in devices:
            free[device] -= milli
        self.whole[node] += sum(free[d] == MILLI for d in devices) - whole

    def _choices(self, task: TaskState, node: int) -> Collection[tuple[int, ...]]:
        """Give the devices of a node of which a task may take parts, of those that are alike one choice.

        For other tasks that is none, once, if there are as many whole devices as it asks for.
        """
        cls = task.cls
        if cls.milli is None:
            return ((),) if self.whole[node] >= cls.whole or not self.has_devices else ()
        free, milli = self.devices[node], cls.milli_on(node)
        own = task.devices if node == self._own(task) else ()
        able = [d for d, have in enumerate(free) if have >= milli and d not in own]
        found: dict[tuple[int, ...], tuple[int, ...]] = {}
        for chosen in combinations(able, cls.devices) if len(able) >= cls.devices else ():
            kind = tuple(-1 - d if (node, d) in self.owned else free[d] for d in chosen)
            if kind not in found and sum(free[d] == MILLI for d in chosen) <= self.whole[node]:
                found[kind] = chosen
        return found.values()

    def _own(self, task: TaskState) -> int:
        """Give the node on which a task does not land where it stands; -1 for none."""
        return task.node if task in self.evicted else -1

    def _alike(self, one: TaskState, other: TaskState) -> bool:
        """Whether two tasks may change places."""
        same = one.cls is other.cls and self._own(one) == self._own(other)
        return same and (one.cls.milli is None or self._own(one) < 0 or one.devices == other.devices)


def _largest_first(task: TaskState) -> tuple[int, int, int]:
    cls = task.cls
    part = 0 if cls.milli is None else int(cls.milli.max()) * cls.devices
    return -cls.whole, -part, cls.id
