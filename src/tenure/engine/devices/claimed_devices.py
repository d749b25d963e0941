"""Which devices the claims of a session hold, in the same two views as room.

A claim that has devices holds them with its first task and gives them back with its last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tenure.engine.devices.answers import KnownAnswers
from tenure.engine.devices.counts import BOTH, LATER, DeviceCounts, Views
from tenure.engine.devices.room import DeviceRoom
from tenure.engine.devices.search import DemandedDevices, TakenDevice
from tenure.engine.devices.served_nodes import DeviceTerm, ServedNodes, namespace_of
from tenure.engine.devices.stock import DeviceStock
from tenure.engine.journal import Journal
from tenure.engine.plan import ClaimedDevices
from tenure.engine.room.labels import reached
from tenure.engine.room.nodes import NOW, THEN, NodeTable
from tenure.model.devices import (
    AllocatedDevice,
    DeviceAllocation,
    DeviceClaim,
    DeviceInventory,
    DeviceUse,
)
from tenure.model.selectors import NodeSelector, NodeSelectorTerm, Requirement, common_nodes

Mask = NDArray[np.bool_]
Held = tuple["GivenDevices | None", "GivenDevices | None"]
"""What a claim holds now, and then."""

_UNUSED: Final = (0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class GivenDevices:
    """The devices that a claim has, and the nodes that reach all of them."""

    allocation: DeviceAllocation
    taken: tuple[TakenDevice, ...]
    reach: Mask


class DeviceTable:
    """The table of claims on devices. ``room`` says where there are devices for what they demand.

    By row of ``rows``, ``users`` are how many tasks use a claim now and then, and ``holds`` what it has got.
    """

    def __init__(self, nodes: NodeTable, journal: Journal) -> None:
        self.nodes = nodes
        self.journal = journal
        self.rows: dict[str, int] = {}
        self.users: list[tuple[int, int]] = []
        self.holds: list[Held] = []
        self._fixed: list[GivenDevices | None] = []
        self._known: dict[str, DeviceClaim] = {}
        self._claims: tuple[DeviceClaim, ...] = ()
        self.room = DeviceRoom(DeviceCounts(DeviceStock(nodes, DeviceInventory()), journal))
        self.served = ServedNodes(nodes)

    def take_in(self, inventory: DeviceInventory, known: KnownAnswers | None = None) -> None:
        """Take what drivers publish, and the claims that have devices; before any task.

        What was ``known`` to a session before is, unless most of the kinds of devices are gone.
        """
        if inventory.slices:
            classes = {found.name: found for found in inventory.classes}
            devices = sum(len(one.devices) for one in inventory.slices)
            if known is None or known.classes != classes or len(known.kinds) > 2 * devices:
                known = KnownAnswers(classes, {}, {})
            stock = DeviceStock(self.nodes, inventory, known.kinds)
            self.room = DeviceRoom(DeviceCounts(stock, self.journal, known))
        self.allocate(inventory.claims)

    def allocate(self, claims: tuple[DeviceClaim, ...]) -> None:
        """Take which claims have which devices; what was known before and is not told any more is free."""
        if claims is self._claims:
            return
        self._claims, counts = claims, self.room.counts
        allocated = {claim.key: claim for claim in claims if claim.allocation is not None}
        for key in sorted(self._known.keys() | allocated.keys()):
            before, now = self._known.get(key), allocated.get(key)
            if before is None or now is None or before.allocation != now.allocation:
                row = self._row_of(key)
                self._fixed[row] = None if now is None else _given(self.nodes, counts.stock, now)
                self._settle(row)
        self._known = allocated

    # -- what a task uses -------------------------------------------------------------------------------------------

    def of(self, uses: Iterable[DeviceUse]) -> tuple[DeviceTerm, ...]:
        """Resolve the claims of a task."""
        return tuple(
            DeviceTerm(
                u.claim, self._row_of(u.claim),
                self.room.number_of(DemandedDevices(u.requests, u.constraints), namespace_of(u.claim)), u.resources,
            )
            for u in uses
            if u.is_ready
        )  # fmt: skip

    def _row_of(self, claim: str) -> int:
        row = self.rows.setdefault(claim, len(self.users))
        if row == len(self.users):
            self.users.append(_UNUSED)
            self.holds.append((None, None))
            self._fixed.append(None)
        return row

    # -- tasks that come and go -------------------------------------------------------------------------------------

    def count(self, terms: tuple[DeviceTerm, ...], node: int, *, now: bool, then: bool, sign: int) -> None:
        """Count a task in (``sign`` 1) or out (-1) on a node, in one or both views."""
        terms = self.served.needed_at(terms, node)
        for term in terms:
            users = self.users[term.row]
            self.journal.put(self.users, term.row, (users[NOW] + sign * now, users[THEN] + sign * then))
        if sign > 0:
            self._find_for(terms, node, now=now, then=then)
        for term in terms:
            self._settle(term.row)

    def _find_for(self, terms: tuple[DeviceTerm, ...], node: int, *, now: bool, then: bool) -> None:
        """Give devices to those claims of a task that has come to a node that have none in its views."""
        searched = []
        for term in terms:
            held, fixed = self.holds[term.row], self._fixed[term.row]
            known = held[NOW] or held[THEN] if now else held[THEN]
            if known is None and fixed is not None and (now or _is_kept(self.room.counts, fixed, node)):
                known = fixed
            if known is None:
                searched.append(term)
            else:
                self._hold(term.row, known if now else held[NOW], known if then else held[THEN])
        if searched:
            views = BOTH if now and then else LATER if then else (NOW,)
            found = self.room.find([term.demand for term in searched], node, views)
            for term, taken in zip(searched, found or (), strict=False):
                given, held = _made_of(self.nodes, taken, node), self.holds[term.row]
                self._hold(term.row, given if now else held[NOW], given if then else held[THEN])

    def _settle(self, row: int) -> None:
        """Let a claim hold what it should: what it has by itself while no task is known to use it, else as they do."""
        users, held, fixed = self.users[row], self.holds[row], self._fixed[row]
        if users == _UNUSED:
            self._hold(row, fixed, fixed)
        else:
            self._hold(row, held[NOW] if users[NOW] > 0 else None, held[THEN] if users[THEN] > 0 else None)

    def _hold(self, row: int, now: GivenDevices | None, then: GivenDevices | None) -> None:
        held = self.holds[row]
        if held[NOW] is now and held[THEN] is then:
            return
        for view, given in ((NOW, now), (THEN, then)):
            before = held[view]
            if before is not given:
                self.room.counts.count(() if before is None else before.taken, view, -1)
                self.room.counts.count(() if given is None else given.taken, view, 1)
        self.journal.put(self.holds, row, (now, then))

    def chosen(self, terms: tuple[DeviceTerm, ...]) -> tuple[ClaimedDevices, ...]:
        """Give the devices of the claims of a placed task."""
        found = ((term.claim, self.holds[term.row][THEN]) for term in terms)
        return tuple(ClaimedDevices(claim, given.allocation) for claim, given in found if given is not None)

    def held(self) -> dict[str, GivenDevices]:
        """Give what claims hold once what terminates has left."""
        found = ((claim, self.holds[row][THEN]) for claim, row in sorted(self.rows.items()))
        return {claim: given for claim, given in found if given is not None}

    # -- where it fits ----------------------------------------------------------------------------------------------

    def mask(self, terms: tuple[DeviceTerm, ...], views: Views) -> Mask:
        """Which nodes have the devices for all claims of a task, free in the views."""
        return self.served.joined(terms, lambda needed: _meeting(self, needed, views))


def _meeting(table: DeviceTable, terms: tuple[DeviceTerm, ...], views: Views) -> Mask:
    """Which nodes have the devices for claims that are all needed there."""
    mask = np.ones(len(table.nodes), bool)
    wanted = []
    for term in terms:
        held = table.holds[term.row]
        known = held[THEN] if views == LATER else held[NOW] or held[THEN]
        if known is None:
            wanted.append(term.demand)
        elif _may_share(table.room.counts, known, held, views):
            mask &= known.reach
        else:
            mask[:] = False
    if not wanted:
        return mask
    return mask & table.room.mask(tuple(wanted), views, terms[0].namespace)


def known_answers(table: DeviceTable) -> KnownAnswers:
    """Give what is known of devices, for a session that is made for the same ones."""
    counts = table.room.counts
    return KnownAnswers(counts.stock.classes, counts.stock.kinds, counts.kinds.passes())


def are_there(table: DeviceTable, terms: Iterable[DeviceTerm]) -> bool:
    """Whether, for each claim that has got nothing yet, a node has the devices, used or not."""
    needed = (term for term in terms if not term.resources)  # a node may have these by itself
    return all(any(table.holds[term.row]) or table.room.is_there(term.demand) for term in needed)


def _given(nodes: NodeTable, stock: DeviceStock, claim: DeviceClaim) -> GivenDevices:
    """Give what a claim has; of a device that is not there any more nothing is counted."""
    assert claim.allocation is not None
    taken = tuple(
        TakenDevice(got.request, device, got.has_admin_access, tuple(sorted(got.consumed.items())))
        for got in claim.allocation.devices
        if (device := stock.device_of(got.key)) is not None
    )
    return GivenDevices(claim.allocation, taken, _reach(nodes, claim.allocation.nodes))


def _is_kept(counts: DeviceCounts, fixed: GivenDevices, node: int) -> bool:
    """Whether a claim whose task comes back to where it was finds the devices that it had."""
    return bool(fixed.reach[node]) and counts.is_free(fixed.taken, LATER)


def _may_share(counts: DeviceCounts, known: GivenDevices, held: Held, views: Views) -> bool:
    """Whether what a claim holds in one view is, or could be, what it holds in all views."""
    if any(held[view] not in (None, known) for view in views):
        return False
    return counts.is_free(known.taken, tuple(view for view in views if held[view] is None))


def _made_of(nodes: NodeTable, taken: list[TakenDevice], node: int) -> GivenDevices:
    """Give what a claim has got on a node."""
    devices = tuple(
        AllocatedDevice(
            request=t.request, driver=t.device.key[0], pool=t.device.key[1], device=t.device.key[2],
            has_admin_access=t.has_admin_access, consumed=dict(t.consumed),
            binding_conditions=t.device.model.binding_conditions,
            binding_failure_conditions=t.device.model.binding_failure_conditions,
        )
        for t in taken
    )  # fmt: skip
    there = _nodes_of(nodes, taken, node)
    return GivenDevices(DeviceAllocation(devices=devices, nodes=there), tuple(taken), _reach(nodes, there))


def _reach(nodes: NodeTable, selector: NodeSelector | None) -> Mask:
    return reached(nodes.labels, () if selector is None else (selector,))


def _nodes_of(nodes: NodeTable, taken: list[TakenDevice], node: int) -> NodeSelector | None:
    """Give the nodes that reach some devices: one of them alone, or those that all of their selectors match."""
    if any(t.device.is_local for t in taken):
        here = Requirement(key="metadata.name", operator="In", values=(nodes.names[node],))
        return NodeSelector(terms=(NodeSelectorTerm(match_fields=(here,)),))
    return common_nodes(t.device.nodes for t in taken)
