"""How many volumes of each driver nodes have attached, and how many they may have."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tenure.engine.journal import Journal
from tenure.engine.room.nodes import NOW, THEN, NodeTable
from tenure.model.mounts import ClaimMount
from tenure.model.volumes import VolumeAttachment

Mask = NDArray[np.bool_]

Users = dict[int, tuple[int, int]]
"""How many tasks use a volume on each node, now and then."""

_UNLIMITED: Final = 1 << 40
_UNUSED: Final = (0, 0)
_ALONE: Final = (1, 1)
_NOBODY: Final[Users] = {}


class AttachedVolumes:
    """The volumes that nodes have attached, for drivers of which any node limits how many.

    ``used`` is ``int64[2, drivers, nodes]``: the volumes of each driver that count against the limit of a node. What
    is mounted names a volume by its driver and its handle.
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
        self.users: list[dict[str, Users]] = [{} for _ in named]
        self._attached: frozenset[tuple[int, str, int]] = frozenset()
        self._attachments: tuple[VolumeAttachment, ...] = ()

    def attach(self, attachments: tuple[VolumeAttachment, ...]) -> None:
        """Take the volumes that are attached to nodes, whether or not a task there uses them; none before counts."""
        if attachments == self._attachments:
            return
        self._attachments = attachments
        found = frozenset(
            (driver, a.handle, self.nodes.index[a.node])
            for a in attachments
            if (driver := self.driver.get(a.driver)) is not None and a.node in self.nodes.index
        )
        changed = found ^ self._attached
        before = {place: self._counts(*place) for place in changed}
        self._attached = found
        for (driver, handle, node), (now, then) in before.items():
            is_now, is_then = self._counts(driver, handle, node)
            self.used[NOW, driver, node] += is_now - now
            self.used[THEN, driver, node] += is_then - then

    def _counts(self, driver: int, handle: str, node: int) -> tuple[bool, bool]:
        """Whether a volume counts on a node now, and then: one that is attached and unused goes with its last user."""
        users = self.users[driver].get(handle, _NOBODY).get(node, _UNUSED)
        return _counted(users, lone=self.is_lone(driver, handle, node))

    def is_lone(self, driver: int, handle: str, node: int) -> bool:
        """Whether a volume is attached to a node whether or not a task there uses it."""
        return bool(self._attached) and (driver, handle, node) in self._attached

    def limited(self, mounts: tuple[ClaimMount, ...]) -> tuple[ClaimMount, ...]:
        """Give those mounts whose volumes count against a limit, each volume once."""
        found = {(m.driver, m.handle): m for m in reversed(mounts) if m.handle and m.driver in self.driver}
        return tuple(m for m in mounts if found.get((m.driver, m.handle)) is m)

    def count(self, mounts: tuple[ClaimMount, ...], node: int, *, now: int, then: int) -> None:
        """Count a task that mounts volumes in or out on a node."""
        if self.journal.depth:
            self.journal.keep(self.used, (slice(None), slice(None), node))
        plain = now == then == 1 and not self._attached and not self.journal.depth
        for mount in mounts:
            driver, handle = self.driver[mount.driver], mount.handle
            users = self.users[driver]
            if plain and handle not in users:
                users[handle] = {node: _ALONE}  # so it is for nearly all while a snapshot is taken in
                self.used[NOW, driver, node] += 1
                self.used[THEN, driver, node] += 1
            else:
                self._count_volume(driver, handle, node, now=now, then=then)

    def _count_volume(self, driver: int, handle: str, node: int, *, now: int, then: int) -> None:
        users = self.users[driver].setdefault(handle, {})
        before = users.setdefault(node, _UNUSED)
        after = before[NOW] + now, before[THEN] + then
        self.journal.put(users, node, after)
        lone = self.is_lone(driver, handle, node)
        held, held_now = _counted(before, lone=lone), _counted(after, lone=lone)
        if held_now[NOW] != held[NOW]:
            self.used[NOW, driver, node] += 1 if held_now[NOW] else -1
        if held_now[THEN] != held[THEN]:
            self.used[THEN, driver, node] += 1 if held_now[THEN] else -1

    def has_room_for(self, mounts: tuple[ClaimMount, ...], node: int) -> bool:
        """Whether a node can attach so many more volumes of each of their drivers, now and then."""
        more, used = len(mounts), self.used
        for mount in mounts:
            driver = self.driver[mount.driver]
            most = self.limit.item(driver, node) - more
            if used.item(NOW, driver, node) > most or used.item(THEN, driver, node) > most:
                return False
        return True

    def by_driver(self, mounts: tuple[ClaimMount, ...]) -> list[tuple[int, list[str]]]:
        """Give the handles of volumes by their driver."""
        found: dict[int, list[str]] = {}
        for mount in mounts:
            found.setdefault(self.driver[mount.driver], []).append(mount.handle)
        return sorted(found.items())

    def attachable(self, driver: int, handles: list[str], view: int, *, at_once: bool = False) -> Mask:
        """Which nodes can attach volumes of a driver, in one view.

        A task that is bound ``at_once`` may keep what its node has attached for others now, though that is more than
        the limit; it adds nothing to that, also not once they have left.
        """
        more, limit = self._not_in_use(driver, handles, view), self.limit[driver]
        if at_once:
            unused = self._not_in_use(driver, handles, NOW)
            limit = np.where(unused == 0, np.maximum(limit, self.used[NOW, driver]), limit)
        mask: Mask = (more == 0) | (self.used[view, driver] + more <= limit)
        return mask

    def _not_in_use(self, driver: int, handles: list[str], view: int) -> NDArray[np.int64]:
        """Give for each node how many of some volumes no task uses there, in one view."""
        found = np.full(len(self.nodes), len(handles), np.int64)
        for handle in handles:
            for node, users in self.users[driver].get(handle, _NOBODY).items():
                found[node] -= users[view] > 0
        return found


def _counted(users: tuple[int, int], *, lone: bool) -> tuple[bool, bool]:
    """Whether a volume with so many users counts on a node now, and then; ``lone``: it is attached without any."""
    now, then = users
    return (now > 0 or lone), (then > 0 or (lone and not now))
