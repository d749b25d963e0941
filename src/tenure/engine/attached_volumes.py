"""How many volumes of each driver nodes have attached, and how many they may have."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tenure.engine.journal import Journal
from tenure.engine.nodes import NOW, THEN, NodeTable
from tenure.model.volumes import VolumeAttachment

Mask = NDArray[np.bool_]

_UNLIMITED: Final = 1 << 40
_UNUSED: Final = (0, 0)
_ALONE: Final = (1, 1)

_UNTOUCHED: Final[dict[int, tuple[int, int]]] = {}
"""The users of all volumes without any; nothing is ever put here."""


class AttachedVolumes:
    """The volumes that nodes have attached, for drivers of which any node limits how many.

    ``used`` is ``int64[2, drivers, nodes]``: the volumes of each driver that count against the limit of a node.
    """

    def __init__(self, nodes: NodeTable, journal: Journal) -> None:
        self.nodes = nodes
        self.journal = journal
        named = {driver.name for node in nodes.nodes for driver in node.drivers if driver.limit is not None}
        self.driver = {name: row for row, name in enumerate(sorted(named))}
        self.limit = np.full((len(named), len(nodes)), _UNLIMITED, np.int64)
        for index, node in enumerate(nodes.nodes):
            for driver in node.drivers:
                if driver.limit is not None:
                    self.limit[self.driver[driver.name], index] = driver.limit
        self.used = np.zeros((2, len(named), len(nodes)), np.int64)
        self._volume: list[dict[str, int]] = [{} for _ in named]
        self._users: list[dict[int, tuple[int, int]]] = []
        self._driver_of: list[int] = []
        self._attached: frozenset[tuple[int, int]] = frozenset()
        self._attachments: tuple[VolumeAttachment, ...] = ()

    def row_of(self, driver: int, handle: str) -> int:
        """Give the row of a volume of a driver."""
        volumes, count = self._volume[driver], len(self._users)
        row = volumes.setdefault(handle, count)
        if row == count:
            self._users.append(_UNTOUCHED)
            self._driver_of.append(driver)
        return row

    def attach(self, attachments: tuple[VolumeAttachment, ...]) -> None:
        """Take the volumes that are attached to nodes, whether or not a task there uses them; none before counts."""
        if attachments == self._attachments:
            return
        self._attachments = attachments
        found = frozenset(
            (self.row_of(driver, a.handle), self.nodes.index[a.node])
            for a in attachments
            if (driver := self.driver.get(a.driver)) is not None and a.node in self.nodes.index
        )
        changed = found ^ self._attached
        before = {pair: self._counts(*pair) for pair in changed}
        self._attached = found
        for (volume, node), (now, then) in before.items():
            is_now, is_then = self._counts(volume, node)
            self.used[NOW, self._driver_of[volume], node] += is_now - now
            self.used[THEN, self._driver_of[volume], node] += is_then - then

    def _counts(self, volume: int, node: int) -> tuple[bool, bool]:
        """Whether a volume counts on a node now, and then: one that is attached and unused goes with its last user."""
        lone = bool(self._attached) and (volume, node) in self._attached
        return _counted(self._users[volume].get(node, _UNUSED), lone=lone)

    def by_driver(self, volumes: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        """Give volumes by their driver."""
        found: dict[int, list[int]] = {}
        for volume in volumes:
            found.setdefault(self._driver_of[volume], []).append(volume)
        return [(driver, tuple(found[driver])) for driver in sorted(found)]

    def count(self, volumes: tuple[int, ...], node: int, *, now: int, then: int) -> None:
        """Count a task that mounts volumes in or out on a node."""
        if self.journal.depth:
            self.journal.keep(self.used, (slice(None), slice(None), node))
        for volume in volumes:
            driver = self._driver_of[volume]
            if self._users[volume] is _UNTOUCHED and not self._attached and not self.journal.depth and now == then == 1:
                self._users[volume] = {node: _ALONE}  # so it is for nearly all while a snapshot is taken in
                self.used[NOW, driver, node] += 1
                self.used[THEN, driver, node] += 1
            else:
                self._count_volume(volume, driver, node, now=now, then=then)

    def _count_volume(self, volume: int, driver: int, node: int, *, now: int, then: int) -> None:
        users = self._users[volume]
        if users is _UNTOUCHED:
            users = self._users[volume] = {}
        before = users.setdefault(node, _UNUSED)
        after = before[NOW] + now, before[THEN] + then
        self.journal.put(users, node, after)
        lone = bool(self._attached) and (volume, node) in self._attached
        held, held_now = _counted(before, lone=lone), _counted(after, lone=lone)
        if held_now[NOW] != held[NOW]:
            self.used[NOW, driver, node] += 1 if held_now[NOW] else -1
        if held_now[THEN] != held[THEN]:
            self.used[THEN, driver, node] += 1 if held_now[THEN] else -1

    def has_room_for(self, volumes: tuple[int, ...], node: int) -> bool:
        """Whether a node can attach so many more volumes of each of their drivers, now and then."""
        more, used = len(volumes), self.used
        for volume in volumes:
            driver = self._driver_of[volume]
            most = self.limit.item(driver, node) - more
            if used.item(NOW, driver, node) > most or used.item(THEN, driver, node) > most:
                return False
        return True

    def attachable(self, driver: int, volumes: tuple[int, ...], view: int, *, at_once: bool = False) -> Mask:
        """Which nodes can attach volumes of a driver, in one view.

        A task that is bound ``at_once`` may keep what its node has attached for others now, though that is more than
        the limit; it adds nothing to that, also not once they have left.
        """
        more, limit = self._not_in_use(volumes, view), self.limit[driver]
        if at_once:
            limit = np.where(self._not_in_use(volumes, NOW) == 0, np.maximum(limit, self.used[NOW, driver]), limit)
        mask: Mask = (more == 0) | (self.used[view, driver] + more <= limit)
        return mask

    def _not_in_use(self, volumes: tuple[int, ...], view: int) -> NDArray[np.int64]:
        """Give for each node how many of some volumes no task uses there, in one view."""
        found = np.full(len(self.nodes), len(volumes), np.int64)
        for volume in volumes:
            for node, users in self._users[volume].items():
                found[node] -= users[view] > 0
        return found


def _counted(users: tuple[int, int], *, lone: bool) -> tuple[bool, bool]:
    """Whether a volume with so many users counts on a node now, and then; ``lone``: it is attached without any."""
    now, then = users
    return (now > 0 or lone), (then > 0 or (lone and not now))
