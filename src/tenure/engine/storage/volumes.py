"""What tasks mount, as far as it depends on what else is placed.

A claim that one pod uses at a time, how many volumes of a driver a node attaches, and claims that get their volume
where their first task is placed: they are counted by node in the same two views as room, *now* and *then*.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenure.engine.journal import Journal
from tenure.engine.plan import ClaimedVolume
from tenure.engine.room.nodes import NOW, THEN, NodeTable
from tenure.engine.storage.attached_volumes import AttachedVolumes
from tenure.engine.storage.open_claims import OpenClaimTable, OpenTerm
from tenure.model.mounts import ClaimMount

Mask = NDArray[np.bool_]

_UNUSED: Final = (0, 0)


class MountTerms(NamedTuple):
    """What a task mounts, as far as more than the number of attached volumes matters.

    ``exclusive`` are the rows of claims that it uses alone, ``needed`` the nodes that have its drivers, where those
    have to be there, ``open`` the claims that get a volume where it is placed.
    """

    exclusive: tuple[int, ...] = ()
    needed: Mask | None = None
    open: tuple[OpenTerm, ...] = ()


_NOTHING: Final = MountTerms()


class VolumeTable:
    """The table of what the tasks of a session mount: claims that one uses alone, attached volumes, open claims."""

    def __init__(self, nodes: NodeTable, journal: Journal) -> None:
        self.nodes = nodes
        self.journal = journal
        self.attached = AttachedVolumes(nodes, journal)
        self.open = OpenClaimTable(nodes, journal)
        self._exclusive: dict[str, int] = {}
        self._alone: list[tuple[int, int]] = []
        self._having: dict[str, Mask] = {}

    # -- what a task mounts -----------------------------------------------------------------------------------------

    def of(self, mounts: tuple[ClaimMount, ...]) -> tuple[tuple[ClaimMount, ...], MountTerms | None]:
        """Resolve what a task mounts: that whose volumes count against a limit, and what else depends on others."""
        if len(mounts) == 1:
            (mount,) = mounts
            if mount.open is None and not (mount.is_exclusive or mount.is_needed):
                return (mounts if mount.handle and mount.driver in self.attached.driver else ()), None
        exclusive: list[int] = []
        opened: list[tuple[int, OpenTerm]] = []
        needed: Mask | None = None
        for mount in mounts:
            if mount.is_exclusive:
                exclusive.append(self._exclusive_row(mount.claim))
            if mount.is_needed:
                there = self._nodes_with(mount.driver)
                needed = there if needed is None else needed & there
            if mount.open is not None:
                opened.append((mount.open.size, self.open.term(mount.claim, mount.open)))
        attached = self.attached.limited(mounts)
        if not (exclusive or opened or needed is not None):
            return attached, None
        by_size = tuple(term for _, term in sorted(opened, key=lambda pair: (pair[0], pair[1].claim)))
        return attached, MountTerms(tuple(exclusive), needed, by_size)

    def _exclusive_row(self, claim: str) -> int:
        row = self._exclusive.setdefault(claim, len(self._alone))
        if row == len(self._alone):
            self._alone.append(_UNUSED)
        return row

    def _nodes_with(self, driver: str) -> Mask:
        mask = self._having.get(driver)
        if mask is None:
            there = (any(d.name == driver for d in node.drivers) for node in self.nodes.nodes)
            mask = self._having[driver] = np.fromiter(there, bool, len(self.nodes))
        return mask

    # -- tasks that come and go -------------------------------------------------------------------------------------

    def count(self, terms: MountTerms, node: int, *, now: bool, then: bool, sign: int) -> None:
        """Count a task in (``sign`` 1) or out (-1) on a node, in one or both views."""
        journal = self.journal
        for row in terms.exclusive:
            before = self._alone[row]
            journal.put(self._alone, row, (before[NOW] + sign * now, before[THEN] + sign * then))
        if then:
            for term in terms.open:
                self.open.count(term, node, sign)

    def chosen(self, terms: MountTerms) -> tuple[ClaimedVolume, ...]:
        """Give what the open claims of a placed task will be bound to."""
        return self.open.chosen(terms.open)

    # -- where it fits ----------------------------------------------------------------------------------------------

    def masks(self, attached: tuple[ClaimMount, ...], terms: MountTerms | None) -> tuple[Mask, Mask]:
        """Which nodes let a task mount all that it mounts now, and stay so, and which then."""
        then = self.mask(attached, terms, THEN)
        stays = self.mask(attached, terms, THEN, at_once=True) if attached else then
        return self.mask(attached, terms, NOW) & stays, then

    def mask(
        self, attached: tuple[ClaimMount, ...], terms: MountTerms | None, view: int, *, at_once: bool = False
    ) -> Mask:
        """Which nodes let a task mount all that it mounts, in one view; ``at_once``: it is bound before that is so."""
        mask = np.ones(len(self.nodes), bool)
        for _, passes in self.failing(attached, terms, view, at_once=at_once):
            mask &= passes
        return mask

    def failing(
        self, attached: tuple[ClaimMount, ...], terms: MountTerms | None, view: int, *, at_once: bool = False
    ) -> Iterator[tuple[str, Mask]]:
        """Give each obstacle that there may be, and which nodes it does not keep the task off, in one view."""
        terms = terms or _NOTHING
        if any(self._alone[row][view] > 0 for row in terms.exclusive):
            yield "claim in use by another task", np.zeros(len(self.nodes), bool)
        if terms.needed is not None:
            yield "without the driver of its volumes", terms.needed
        for driver, handles in self.attached.by_driver(attached):
            passes = self.attached.attachable(driver, handles, view, at_once=at_once)
            yield "as many volumes as the node attaches", passes
        if terms.open:
            yield "no volume for its claims", self.open.obtainable(terms.open)
