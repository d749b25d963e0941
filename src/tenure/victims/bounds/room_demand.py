"""Necessary bounds: how many tasks of a step could have room if some pieces were gone.

Room alone is looked at, node by node; it costs a few sums, and no play-through where it says no.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import ge

import numpy as np
from numpy.typing import NDArray

from tenure.engine.devices.claimed_devices import are_there
from tenure.engine.memo import Memo
from tenure.engine.room.classes import TaskClass
from tenure.engine.room.nodes import Ints, NodeTable
from tenure.engine.room.slots import fitting
from tenure.engine.serving.placement import fixed_of
from tenure.engine.state.queues import Amount, add_at
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import Demand, Shape
from tenure.model.values.resources import MILLI
from tenure.victims.rules.pieces import Piece

Mask = NDArray[np.bool_]


class RoomDemand:
    """The room that a demand needs, class by class: how many tasks, and for how many each node has room.

    ``within``: it has to stand on these nodes alone, as where its tasks share a value of a label.
    ``exact``: fits are decided by room alone, so that the bound is no mere bound. Where other subgroups may do instead
    of those that the step names, there is no bound at all: nothing is needed of any class, and no task is ``fixed``.
    """

    def __init__(self, session: Session, step: Demand, within: Mask | None = None) -> None:
        self.nodes = session.nodes
        self.devices = session.terms.devices
        self.fixed = fixed_of(step)
        counts = Counter(t.cls.id for t in self.fixed)
        classes = {t.cls.id: t.cls for t in step.tasks}
        self.parts = [_Part(session, classes[i], counts[i], within) for i in sorted(counts)]
        root, cls = step.tasks[0].workload.root, step.tasks[0].cls
        plain = cls.milli is None and (root.topology is None or within is not None) and not root.children
        self.exact = len(self.parts) == 1 and plain and all(t.terms is None for t in step.tasks)
        self.tasks = len(step.tasks)

    def ever(self) -> bool:
        """Whether an empty cluster would have room."""
        claims = (task.terms.devices for task in self.fixed if task.terms is not None)
        return all(part.ever() for part in self.parts) and all(are_there(self.devices, c) for c in claims)

    def met(self, pieces: Iterable[Piece], others: int = 0) -> bool:
        """Whether, by room alone, the step could fit with these pieces gone, and so many others of each class."""
        freed = freed_by(pieces)
        return all(part.count + part.gain(freed) >= part.needed + others for part in self.parts)

    def lost_to(self, first: RoomDemand) -> int:
        """How many tasks of each class have room no more, at least, once an `exact` demand has been placed."""
        (other,) = first.parts
        if any((other.cls.static & ~part.cls.static).any() for part in self.parts):
            return 0
        asked = dict(other.asks)
        return other.needed * min((asked.get(row, 0) // each for p in self.parts for row, each in p.asks), default=0)

    def met_by_all(self, freed: Ints) -> bool:
        """Whether it could fit with ``freed`` (``int64[rows, nodes]``) gone."""
        return all(part.capacity(freed) >= part.needed for part in self.parts)


class RoomDemands:
    """Demands of steps; those of one shape need the same while what room ``depends`` on is the same."""

    def __init__(self, session: Session, depends: Callable[[], object]) -> None:
        self.session = session
        self._of_shape = Memo[Shape, RoomDemand](lambda _: RoomDemand(session, self._asked), lambda _: depends(), _same)

    def of(self, step: Demand) -> RoomDemand:
        """Give what a step needs."""
        if step.shape is None:
            return RoomDemand(self.session, step)
        self._asked = step
        return self._of_shape(step.shape)


def _same(one: RoomDemand, other: RoomDemand) -> bool:
    mine, others = ([(p.cls, p.needed, p.count) for p in need.parts] for need in (one, other))
    return mine == others and one.exact == other.exact and one.tasks == other.tasks


class _Part:
    """The tasks of one class."""

    def __init__(self, session: Session, cls: TaskClass, needed: int, within: Mask | None) -> None:
        self.cls = cls
        self.static = cls.static if within is None else cls.static & within
        self.static_list: list[bool] = cls.static_list if within is None else self.static.tolist()
        self.nodes: NodeTable = session.nodes
        self.needed = needed
        rows = self.nodes.rows
        asks = list(cls.asks)
        if cls.milli is not None:
            smallest = int(cls.milli[cls.milli > 0].min(initial=MILLI))
            asks.append((self.nodes.gpu_row, smallest * cls.devices))
        self.asks = asks
        plain = cls.milli is None
        known = plain and within is None
        self.per_node = session.scorer.slots.of(cls) if known else self._per_node(self.nodes.room[rows:])
        self.count = int(self.per_node.sum())
        self._gains: dict[tuple[int, Amount], int] = {}

    def _per_node(self, room: Ints) -> Ints:
        return fitting(room, self.asks, self.static)

    def ever(self) -> bool:
        return int(self._per_node(self.nodes.capacity).sum()) >= self.needed

    def capacity(self, freed: Ints) -> int:
        rows = self.nodes.rows
        return int(self._per_node(self.nodes.room[rows:] + freed).sum())

    def slots(self, node: int, freed: Sequence[int]) -> int:
        """How many tasks have room on a node once ``freed`` of it is."""
        if not self.static_list[node]:
            return 0
        free = self.nodes.room[self.nodes.rows :, node].tolist()
        return max(0, min(((free[row] + freed[row]) // amount for row, amount in self.asks), default=1 << 40))

    def gain(self, freed: dict[int, Amount]) -> int:
        found, gains = 0, self._gains
        for place in freed.items():  # most sets have most places in common
            gain = gains.get(place)
            if gain is None:
                gain = gains[place] = self.slots(*place) - int(self.per_node[place[0]])
            found += gain
        return found


def freed_by(pieces: Iterable[Piece]) -> dict[int, Amount]:
    """What pieces free, by node."""
    freed: dict[int, Amount] = {}
    for piece in pieces:
        for node, amounts in piece.frees:
            add_at(freed, node, amounts)
    return freed


def room_of_all(session: Session) -> list[int]:
    """Give the room of all ready nodes together, by row."""
    nodes = session.nodes
    room: list[int] = nodes.room[nodes.rows : nodes.rows + nodes.amounts, nodes.ready].sum(axis=1).tolist()
    return room


def room_in_all(session: Session, step: Demand, room: Sequence[int] | None = None) -> bool:
    """Whether all ready nodes together have room enough for a step, wherever it is; ``room`` if that is known."""
    return all(map(ge, room_of_all(session) if room is None else room, step.amount))
