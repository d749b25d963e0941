"""What tasks mount, as far as it depends on what else is placed.

A claim that one pod uses at a time, how many volumes of a driver a node attaches, and claims that get their volume
where their first task is placed: they are counted by node in the same two views as room, *now* and *then*.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenure.engine.journal import Journal
from tenure.engine.labels import reached
from tenure.engine.nodes import NOW, THEN, NodeTable
from tenure.engine.plan import ClaimedVolume
from tenure.model.mounts import AvailableVolume, ClaimMount, OpenClaim
from tenure.model.volumes import VolumeAttachment

Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]

_UNLIMITED: Final = 1 << 40
_NOBODY: Final = (0, 0)


class VolumeChoice(NamedTuple):
    """The choice for an open claim: the node of its first task, and the volume (None: one is made for that node)."""

    node: int
    volume: str | None


class _Candidate(NamedTuple):
    name: str
    nodes: Indices


@dataclass(frozen=True, slots=True)
class OpenTerm:
    """An open claim of a task. ``provided`` are the nodes for which a volume would be made, ``selected`` the one for
    which it is being made (-1: none yet).
    """

    claim: str
    row: int
    provisioner: str
    candidates: tuple[_Candidate, ...]
    provided: Mask
    selected: int


@dataclass(frozen=True, slots=True)
class MountTerms:
    """What a task mounts, as rows of the table.

    ``exclusive`` are claims that it uses alone, ``attached`` its volumes by driver of which nodes limit the number,
    ``needed`` the nodes that have its drivers, where those have to be there.
    """

    exclusive: tuple[int, ...] = ()
    attached: tuple[tuple[int, tuple[int, ...]], ...] = ()
    needed: Mask | None = None
    open: tuple[OpenTerm, ...] = ()


class VolumeTable:
    """The table of what the tasks of a session mount.

    ``used`` is ``int64[2, drivers, nodes]``: the volumes of each driver that count against the limit of a node.
    """

    def __init__(self, nodes: NodeTable, journal: Journal) -> None:
        self.nodes = nodes
        self.journal = journal
        named = {driver.name for node in nodes.nodes for driver in node.drivers if driver.limit is not None}
        self._driver = {name: row for row, name in enumerate(sorted(named))}
        self.limit = np.full((len(named), len(nodes)), _UNLIMITED, np.int64)
        for index, node in enumerate(nodes.nodes):
            for driver in node.drivers:
                if driver.limit is not None:
                    self.limit[self._driver[driver.name], index] = driver.limit
        self.used = np.zeros((2, len(named), len(nodes)), np.int64)
        self._volume: dict[tuple[str, str], int] = {}
        self._users: list[dict[int, tuple[int, int]]] = []
        self._driver_of: list[int] = []
        self._attached: frozenset[tuple[int, int]] = frozenset()
        self._attachments: tuple[VolumeAttachment, ...] = ()
        self._exclusive: dict[str, int] = {}
        self._alone: list[tuple[int, int]] = []
        self._open: dict[str, int] = {}
        self._waiting: list[int] = []
        self._choice: list[VolumeChoice | None] = []
        self._taker: dict[str, str] = {}
        self._pools: dict[int, tuple[Any, tuple[_Candidate, ...]]] = {}
        self._having: dict[str, Mask] = {}

    # -- what a task mounts -----------------------------------------------------------------------------------------

    def of(self, mounts: Iterable[ClaimMount]) -> MountTerms | None:
        """Resolve what a task mounts; None where nothing of it depends on what else is placed."""
        exclusive, opened = [], []
        attached: dict[int, list[int]] = {}
        needed: Mask | None = None
        for mount in mounts:
            if mount.is_exclusive:
                exclusive.append(self._exclusive_row(mount.claim))
            driver = self._driver.get(mount.driver)
            if driver is not None and mount.handle:
                attached.setdefault(driver, []).append(self._volume_row(driver, mount.driver, mount.handle))
            if mount.is_needed:
                there = self._nodes_with(mount.driver)
                needed = there if needed is None else needed & there
            if mount.open is not None:
                opened.append((mount.open.size, self._open_term(mount.claim, mount.open)))
        if not (exclusive or attached or opened or needed is not None):
            return None
        return MountTerms(
            tuple(exclusive),
            tuple((driver, tuple(dict.fromkeys(rows))) for driver, rows in sorted(attached.items())),
            needed,
            tuple(term for _, term in sorted(opened, key=lambda pair: (pair[0], pair[1].claim))),
        )

    def _exclusive_row(self, claim: str) -> int:
        row = self._exclusive.setdefault(claim, len(self._alone))
        if row == len(self._alone):
            self._alone.append(_NOBODY)
        return row

    def _volume_row(self, driver: int, name: str, handle: str) -> int:
        row = self._volume.setdefault((name, handle), len(self._users))
        if row == len(self._users):
            self._users.append({})
            self._driver_of.append(driver)
        return row

    def _open_term(self, claim: str, asked: OpenClaim) -> OpenTerm:
        row = self._open.setdefault(claim, len(self._choice))
        if row == len(self._choice):
            self._choice.append(None)
            self._waiting.append(0)
        labels = self.nodes.labels
        provided = reached(labels, asked.nodes) if asked.provisioner else np.zeros(len(self.nodes), bool)
        refused = [self.nodes.index[name] for name in asked.refused if name in self.nodes.index]
        if refused and provided.sum() > len(refused):
            provided = provided.copy()
            provided[refused] = False
        selected = self.nodes.index.get(asked.selected, len(self.nodes)) if asked.selected else -1
        return OpenTerm(claim, row, asked.provisioner, self._candidates(asked.available), provided, selected)

    def _candidates(self, available: tuple[AvailableVolume, ...]) -> tuple[_Candidate, ...]:
        """Give the volumes that would do, with the nodes that reach each; claims that ask alike share them."""
        known = self._pools.get(id(available))
        if known is None:
            labels = self.nodes.labels
            found = tuple(_Candidate(v.name, np.flatnonzero(reached(labels, v.nodes))) for v in available)
            known = self._pools[id(available)] = available, found
            for volume in available:
                self._taker.setdefault(volume.name, "")
        return known[1]

    def _nodes_with(self, driver: str) -> Mask:
        mask = self._having.get(driver)
        if mask is None:
            there = (any(d.name == driver for d in node.drivers) for node in self.nodes.nodes)
            mask = self._having[driver] = np.fromiter(there, bool, len(self.nodes))
        return mask

    # -- what is attached without being used ------------------------------------------------------------------------

    def attach(self, attachments: tuple[VolumeAttachment, ...]) -> None:
        """Take the volumes that are attached to nodes, whether or not a task there uses them; none before counts."""
        if attachments == self._attachments:
            return
        self._attachments = attachments
        found = frozenset(
            (self._volume_row(driver, a.driver, a.handle), self.nodes.index[a.node])
            for a in attachments
            if (driver := self._driver.get(a.driver)) is not None and a.node in self.nodes.index
        )
        changed = found ^ self._attached
        before = {pair: self._counts(*pair) for pair in changed}
        self._attached = found
        for (volume, node), (now, then) in before.items():
            is_now, is_then = self._counts(volume, node)
            self.used[NOW, self._driver_of[volume], node] += is_now - now
            self.used[THEN, self._driver_of[volume], node] += is_then - then

    def _counts(self, volume: int, node: int) -> tuple[bool, bool]:
        """Whether a volume counts on a node now, and then: one that no pod there uses goes with its last user."""
        now, then = self._users[volume].get(node, _NOBODY)
        lone = (volume, node) in self._attached
        return now > 0 or lone, then > 0 or (lone and not now)

    # -- tasks that come and go -------------------------------------------------------------------------------------

    def count(self, terms: MountTerms, node: int, *, now: bool, then: bool, sign: int) -> None:
        """Count a task in (``sign`` 1) or out (-1) on a node, in one or both views."""
        journal = self.journal
        for row in terms.exclusive:
            before = self._alone[row]
            journal.put(self._alone, row, (before[NOW] + sign * now, before[THEN] + sign * then))
        for driver, volumes in terms.attached:
            journal.keep(self.used, (slice(None), driver, node))
            for volume in volumes:
                self._count_volume(volume, driver, node, now=sign * now, then=sign * then)
        if then:
            for term in terms.open:
                self._count_open(term, node, sign)

    def _count_volume(self, volume: int, driver: int, node: int, *, now: int, then: int) -> None:
        users = self._users[volume]
        before, held = users.setdefault(node, _NOBODY), self._counts(volume, node)
        self.journal.put(users, node, (before[NOW] + now, before[THEN] + then))
        held_now = self._counts(volume, node)
        self.used[NOW, driver, node] += held_now[NOW] - held[NOW]
        self.used[THEN, driver, node] += held_now[THEN] - held[THEN]

    def _count_open(self, term: OpenTerm, node: int, sign: int) -> None:
        """A claim is decided about with its first task, and open again without its last one."""
        journal, row = self.journal, term.row
        journal.put(self._waiting, row, self._waiting[row] + sign)
        choice = self._choice[row]
        if sign > 0 and choice is None:
            volume = None if term.selected >= 0 else self._smallest(term, node)
            journal.put(self._choice, row, VolumeChoice(node, volume))
            if volume is not None:
                journal.put(self._taker, volume, term.claim)
        elif sign < 0 and not self._waiting[row] and choice is not None:
            journal.put(self._choice, row, None)
            if choice.volume is not None:
                journal.put(self._taker, choice.volume, "")

    def _smallest(self, term: OpenTerm, node: int) -> str | None:
        for name, nodes in term.candidates:
            at = int(np.searchsorted(nodes, node))
            if not self._taker[name] and at < len(nodes) and nodes[at] == node:
                return name
        return None

    def chosen(self, terms: MountTerms) -> tuple[ClaimedVolume, ...]:
        """Give what the open claims of a placed task will be bound to."""
        found = ((term.claim, self._choice[term.row]) for term in terms.open)
        names = self.nodes.names
        return tuple(ClaimedVolume(c, choice.volume or "", names[choice.node]) for c, choice in found if choice)

    # -- where it fits ----------------------------------------------------------------------------------------------

    def mask(self, terms: MountTerms, view: int) -> Mask:
        """Which nodes let a task mount all that it mounts, in one view."""
        mask = np.ones(len(self.nodes), bool)
        for _, passes in self.failing(terms, view):
            mask &= passes
        return mask

    def failing(self, terms: MountTerms, view: int) -> Iterator[tuple[str, Mask]]:
        """Give each obstacle that there may be, and which nodes it does not keep the task off, in one view."""
        if any(self._alone[row][view] > 0 for row in terms.exclusive):
            yield "claim in use by another task", np.zeros(len(self.nodes), bool)
        if terms.needed is not None:
            yield "without the driver of its volumes", terms.needed
        for driver, volumes in terms.attached:
            yield "as many volumes as the node attaches", self._attachable(driver, volumes, view)
        if terms.open:
            yield "no volume for its claims", self._obtainable(terms.open)

    def _attachable(self, driver: int, volumes: tuple[int, ...], view: int) -> Mask:
        more = np.full(len(self.nodes), len(volumes), np.int64)
        for volume in volumes:
            for node, users in self._users[volume].items():
                more[node] -= users[view] > 0
        mask: Mask = (more == 0) | (self.used[view, driver] + more <= self.limit[driver])
        return mask

    def _obtainable(self, opened: tuple[OpenTerm, ...]) -> Mask:
        """Nodes on which each open claim finds a volume or gets one; no volume serves two of them."""
        mask = np.ones(len(self.nodes), bool)
        taken: list[Indices] = []
        names: dict[str, int] = {}
        for term in opened:
            choice = self._choice[term.row]
            if choice is not None:
                mask &= self._beside(term, choice)
            elif term.selected >= 0:
                mask &= term.provided & (np.arange(len(self.nodes)) == term.selected)
            else:
                found = self._matched(term, taken, names)
                taken.append(found)
                mask &= (found >= 0) | term.provided
        return mask

    def _matched(self, term: OpenTerm, taken: list[Indices], names: dict[str, int]) -> Indices:
        """Give the number of the smallest volume that each node reaches and no claim before it took there; else -1."""
        found = np.full(len(self.nodes), -1, np.int64)
        for name, nodes in reversed(term.candidates):
            if not self._taker[name]:
                number = names.setdefault(name, len(names))
                there = nodes
                for other in taken:
                    there = there[other[there] != number]
                found[there] = number
        return found

    def _beside(self, term: OpenTerm, choice: VolumeChoice) -> Mask:
        """Nodes that reach what a claim will be bound to, because another task that mounts it was placed."""
        mask = np.zeros(len(self.nodes), bool)
        if choice.volume is not None:
            mask[next(nodes for name, nodes in term.candidates if name == choice.volume)] = True
            return mask
        keys = next(
            (d.topology_keys for d in self.nodes.nodes[choice.node].drivers if d.name == term.provisioner), None
        )
        if keys is None:
            mask[choice.node] = True
            return mask
        mask[:] = True
        for key in keys:
            ids, _ = self.nodes.labels.domains(key)
            mask &= ids == ids[choice.node]
        return mask
