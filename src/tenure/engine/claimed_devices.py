"""Which devices the claims of a session hold, in the same two views as room, and where claims would get theirs.

A claim that has devices holds them with its first task and gives them back with its last. Where all devices that a
request takes are given out as wholes, a node is known to do by a count; else the search is tried, node by node, again
where something changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenure.engine.device_capacity import Consumed, consumed_of, is_tainted
from tenure.engine.device_search import (
    DemandedDevices,
    DeviceSearch,
    DeviceSearchError,
    TakenDevice,
    alternatives,
)
from tenure.engine.device_stock import DeviceStock, StockedDevice
from tenure.engine.journal import Journal
from tenure.engine.labels import reached
from tenure.engine.nodes import NOW, THEN, NodeTable
from tenure.engine.plan import ClaimedDevices
from tenure.model.devices import (
    AllocatedDevice,
    DeviceAllocation,
    DeviceClaim,
    DeviceInventory,
    DeviceSelector,
    DeviceUse,
    ExactDevices,
)
from tenure.model.selectors import NodeSelector, NodeSelectorTerm, Requirement

Mask = NDArray[np.bool_]
Views = tuple[int, ...]

LATER: Final[Views] = (THEN,)
BOTH: Final[Views] = (NOW, THEN)
"""The views in which a device has to be free: for a promise, and for what is bound at once."""

_UNUSED: Final = (0, 0)


class DeviceTerm(NamedTuple):
    """A claim of a task: its row in the table, and the number of what it demands."""

    claim: str
    row: int
    demand: int


@dataclass(frozen=True, slots=True, eq=False)
class GivenDevices:
    """The devices that a claim has, and the nodes that reach all of them."""

    allocation: DeviceAllocation
    taken: tuple[TakenDevice, ...]
    reach: Mask


@dataclass(slots=True)
class _Row:
    """A kind of requests: ``passes`` says by kind of device what it would consume of one, None: it does not take it."""

    asked: ExactDevices
    passes: dict[int, Consumed | DeviceSearchError | None]
    members: set[int]
    is_plain: bool


@dataclass(slots=True)
class _Shape:
    """The demands of claims together. ``counts`` are the devices of each row that they need, where counting does."""

    demands: tuple[DemandedDevices, ...]
    counts: tuple[tuple[int, int], ...] | None


class DeviceTable:
    """The table of claims on devices, and of the devices that they hold."""

    def __init__(self, nodes: NodeTable, journal: Journal) -> None:
        self.nodes = nodes
        self.journal = journal
        self._rows: dict[str, int] = {}
        self._users: list[tuple[int, int]] = []
        self._held: list[tuple[GivenDevices | None, GivenDevices | None]] = []
        self._fixed: list[GivenDevices | None] = []
        self._demands: dict[DemandedDevices, int] = {}
        self._demand_list: list[DemandedDevices] = []
        self._known: dict[str, DeviceClaim] = {}
        self._claims: tuple[DeviceClaim, ...] = ()
        self._stock_up(DeviceInventory())

    def take_in(self, inventory: DeviceInventory) -> None:
        """Take what drivers publish, and the claims that have devices; before any task."""
        self._stock_up(inventory)
        self.allocate(inventory.claims)

    def _stock_up(self, inventory: DeviceInventory) -> None:
        self.stock = DeviceStock(self.nodes, inventory)
        count, nodes = len(self.stock.numbers), len(self.nodes)
        self._used = np.zeros((2, count), np.int64)
        self._shared = np.zeros((2, count), np.int64)
        self._consumed: list[dict[tuple[int, str], int]] = [{}, {}]
        self._counted = [[0] * len(self.stock.totals) for _ in range(2)]
        self._asked: dict[Any, int] = {}
        self._kinds_of_request: list[_Row] = []
        self._rows_of: list[list[int]] = [[] for _ in range(count)]
        self._free: list[NDArray[np.int64]] = []
        self._stamps = np.zeros(nodes, np.int64)
        self._stamp = 0
        self._shapes: dict[tuple[int, ...], _Shape] = {}
        self._found: dict[tuple[tuple[int, ...], Views], tuple[Any, Mask]] = {}

    def allocate(self, claims: tuple[DeviceClaim, ...]) -> None:
        """Take which claims have which devices; what was known before and is not told any more is free."""
        if claims is self._claims:
            return
        self._claims = claims
        allocated = {claim.key: claim for claim in claims if claim.allocation is not None}
        for key in sorted(self._known.keys() | allocated.keys()):
            before, now = self._known.get(key), allocated.get(key)
            if before is None or now is None or before.allocation != now.allocation:
                row = self._row_of(key)
                self._fixed[row] = None if now is None else self._given(now)
                self._settle(row)
        self._known = allocated

    # -- what a task uses -------------------------------------------------------------------------------------------

    def of(self, uses: Iterable[DeviceUse]) -> tuple[DeviceTerm, ...]:
        """Resolve the claims of a task."""
        found = []
        for use in uses:
            if use.is_ready:
                demand = DemandedDevices(use.requests, use.constraints)
                number = self._demands.setdefault(demand, len(self._demand_list))
                if number == len(self._demand_list):
                    self._demand_list.append(demand)
                    for asked in alternatives((demand,)):  # not in a scenario: what it undoes knows no new rows
                        self._kind(asked)
                found.append(DeviceTerm(use.claim, self._row_of(use.claim), number))
        return tuple(found)

    def _row_of(self, claim: str) -> int:
        row = self._rows.setdefault(claim, len(self._users))
        if row == len(self._users):
            self._users.append(_UNUSED)
            self._held.append((None, None))
            self._fixed.append(None)
        return row

    def _given(self, claim: DeviceClaim) -> GivenDevices:
        """Give what a claim has, by the numbers of the devices; of one that is not there any more nothing is known."""
        assert claim.allocation is not None
        taken = []
        for got in claim.allocation.devices:
            number = self.stock.numbers.get(got.key)
            device = None if number is None else self.stock.by_number[number]
            if device is not None:
                consumed = tuple(sorted(got.consumed.items()))
                taken.append(TakenDevice(got.request, device, got.has_admin_access, consumed))
        nodes = claim.allocation.nodes
        reach = reached(self.nodes.labels, () if nodes is None else (nodes,))
        return GivenDevices(claim.allocation, tuple(taken), reach)

    # -- tasks that come and go -------------------------------------------------------------------------------------

    def count(self, terms: tuple[DeviceTerm, ...], node: int, *, now: bool, then: bool, sign: int) -> None:
        """Count a task in (``sign`` 1) or out (-1) on a node, in one or both views."""
        for term in terms:
            users = self._users[term.row]
            self.journal.put(self._users, term.row, (users[NOW] + sign * now, users[THEN] + sign * then))
        if sign > 0:
            self._find_for(terms, node, now=now, then=then)
        for term in terms:
            self._settle(term.row)

    def _find_for(self, terms: tuple[DeviceTerm, ...], node: int, *, now: bool, then: bool) -> None:
        """Give devices to those claims of a task that has come to a node that have none in its views."""
        searched = []
        for term in terms:
            held, fixed = self._held[term.row], self._fixed[term.row]
            known = held[NOW] or held[THEN] if now else held[THEN]
            if known is None and fixed is not None and (now or (fixed.reach[node] and self._is_free(fixed, LATER))):
                known = fixed
            if known is None:
                searched.append(term)
                continue
            self._hold(term.row, known if now else held[NOW], known if then else held[THEN])
        if searched:
            views = BOTH if now and then else LATER if then else (NOW,)
            found = self._search(tuple(self._demand_list[t.demand] for t in searched), node, views)
            for term, taken in zip(searched, found or (), strict=False):
                given = self._made_of(taken, node)
                held = self._held[term.row]
                self._hold(term.row, given if now else held[NOW], given if then else held[THEN])

    def _settle(self, row: int) -> None:
        """Let a claim hold what it should: what it has by itself while no task is known to use it, else as they do."""
        users, held, fixed = self._users[row], self._held[row], self._fixed[row]
        if users == _UNUSED:
            self._hold(row, fixed, fixed)
        else:
            self._hold(row, held[NOW] if users[NOW] > 0 else None, held[THEN] if users[THEN] > 0 else None)

    def _hold(self, row: int, now: GivenDevices | None, then: GivenDevices | None) -> None:
        held = self._held[row]
        if held[NOW] is now and held[THEN] is then:
            return
        for view, given in ((NOW, now), (THEN, then)):
            before = held[view]
            if before is not given:
                if before is not None:
                    self._count_devices(before, view, -1)
                if given is not None:
                    self._count_devices(given, view, 1)
        self.journal.put(self._held, row, (now, then))

    def _count_devices(self, given: GivenDevices, view: int, sign: int) -> None:
        for taken in given.taken:
            if taken.has_admin_access:
                continue
            device = taken.device
            if device.model.is_shared:
                self._count_share(taken, view, sign)
            else:
                self._count_whole(device, view, sign)

    def _count_whole(self, device: StockedDevice, view: int, sign: int) -> None:
        number = device.number
        before = self._used[:, number].copy()
        self.journal.keep(self._used, (slice(None), number))
        self._used[view, number] += sign
        after = self._used[:, number]
        change_then = int(after[THEN] == 0) - int(before[THEN] == 0)
        change_both = int(not after.any()) - int(not before.any())
        if change_then or change_both:
            nodes = self.stock.reach[number]
            for row in self._rows_of[number]:
                free = self._free[row]
                self.journal.keep(free, (slice(None), nodes))
                free[0, nodes] += change_then
                free[1, nodes] += change_both
        if (before[view] == 0) != (after[view] == 0):
            self._count_counters(device, view, sign)
        self._changed(device)

    def _count_share(self, taken: TakenDevice, view: int, sign: int) -> None:
        device, consumed = taken.device, self._consumed[view]
        for name, amount in taken.consumed:
            key = device.number, name
            consumed.setdefault(key, 0)
            self.journal.put(consumed, key, consumed[key] + sign * amount)  # type: ignore[arg-type]
        self.journal.keep(self._shared, (view, device.number))
        before = int(self._shared[view, device.number])
        self._shared[view, device.number] += sign
        if (before == 0) != (before + sign == 0):
            self._count_counters(device, view, sign)
        self._changed(device)

    def _count_counters(self, device: StockedDevice, view: int, sign: int) -> None:
        counted = self._counted[view]
        for counter, amount in device.counters:
            self.journal.put(counted, counter, counted[counter] + sign * amount)

    def _changed(self, device: StockedDevice) -> None:
        """Note for the nodes that reach a device, or one that shares counters with it, that something changed."""
        nodes = self.stock.pool_nodes[device.pool] if device.counters else self.stock.reach[device.number]
        self.journal.keep(self._stamps, nodes)
        self._stamp += 1
        self._stamps[nodes] = self._stamp

    def chosen(self, terms: tuple[DeviceTerm, ...]) -> tuple[ClaimedDevices, ...]:
        """Give the devices of the claims of a placed task."""
        found = ((term.claim, self._held[term.row][THEN]) for term in terms)
        return tuple(ClaimedDevices(claim, given.allocation) for claim, given in found if given is not None)

    def _made_of(self, taken: list[TakenDevice], node: int) -> GivenDevices:
        """Give what a claim has got on a node."""
        devices = tuple(
            AllocatedDevice(
                request=t.request, driver=t.device.key[0], pool=t.device.key[1], device=t.device.key[2],
                has_admin_access=t.has_admin_access, consumed=dict(t.consumed),
            )
            for t in taken
        )  # fmt: skip
        nodes = self._nodes_of(taken, node)
        reach = reached(self.nodes.labels, () if nodes is None else (nodes,))
        return GivenDevices(DeviceAllocation(devices=devices, nodes=nodes), tuple(taken), reach)

    def _nodes_of(self, taken: list[TakenDevice], node: int) -> NodeSelector | None:
        """Give the nodes that reach some devices: one of them alone, or those that all of their selectors match."""
        if any(t.device.is_local for t in taken):
            here = Requirement(key="metadata.name", operator="In", values=(self.nodes.names[node],))
            return NodeSelector(terms=(NodeSelectorTerm(match_fields=(here,)),))
        terms = [t.device.nodes.terms[0] for t in taken if t.device.nodes is not None and t.device.nodes.terms]
        if not terms:
            return None
        both = NodeSelectorTerm(
            match_expressions=tuple(dict.fromkeys(r for term in terms for r in term.match_expressions)),
            match_fields=tuple(dict.fromkeys(r for term in terms for r in term.match_fields)),
        )
        return NodeSelector(terms=(both,))

    # -- where it fits ----------------------------------------------------------------------------------------------

    def mask(self, terms: tuple[DeviceTerm, ...], views: Views) -> Mask:
        """Which nodes have the devices for all claims of a task, free in the views."""
        mask = np.ones(len(self.nodes), bool)
        wanted = []
        for term in terms:
            held = self._held[term.row]
            known = held[THEN] if views == LATER else held[NOW] or held[THEN]
            if known is None:
                wanted.append(term.demand)
            elif self._may_share(known, held, views):
                mask &= known.reach
            else:
                mask[:] = False
        if wanted:
            mask &= self._obtainable(tuple(wanted), views)
        return mask

    def _may_share(
        self, known: GivenDevices, held: tuple[GivenDevices | None, GivenDevices | None], views: Views
    ) -> bool:
        """Whether what a claim holds in one view is, or could be, what it holds in all views."""
        if any(held[view] not in (None, known) for view in views):
            return False
        return self._is_free(known, tuple(view for view in views if held[view] is None))

    def _is_free(self, given: GivenDevices, views: Views) -> bool:
        return not views or all(
            t.has_admin_access or t.device.model.is_shared or not self._used[list(views), t.device.number].any()
            for t in given.taken
        )

    def _obtainable(self, wanted: tuple[int, ...], views: Views) -> Mask:
        shape = self._shapes.get(wanted)
        if shape is None:
            shape = self._shapes[wanted] = self._shape_of(tuple(self._demand_list[d] for d in wanted))
        if shape.counts is not None:
            mask = np.ones(len(self.nodes), bool)
            for row, count in shape.counts:
                mask &= self._free[row][0 if views == LATER else 1] >= count
            return mask
        return self._searched(wanted, shape, views)

    def _searched(self, wanted: tuple[int, ...], shape: _Shape, views: Views) -> Mask:
        """Search on each node, again where something changed since."""
        known = self._found.get((wanted, views))
        if known is None:
            stamps, mask = np.full(len(self.nodes), -1, np.int64), np.zeros(len(self.nodes), bool)
            known = self._found[wanted, views] = stamps, mask
        stamps, mask = known
        for node in np.flatnonzero(stamps != self._stamps).tolist():
            try:
                mask[node] = self._run(shape.demands, node, views) is not None
            except DeviceSearchError:
                mask[node] = False
        stamps[:] = self._stamps
        return mask.copy()

    def _search(self, demands: tuple[DemandedDevices, ...], node: int, views: Views) -> list[list[TakenDevice]] | None:
        try:
            return self._run(demands, node, views)
        except DeviceSearchError:
            return None

    def _run(self, demands: tuple[DemandedDevices, ...], node: int, views: Views) -> list[list[TakenDevice]] | None:
        there = self.stock.at[node]
        return DeviceSearch(there, _Ledger(self, views), demands, len(views)).run()

    # -- kinds of requests ------------------------------------------------------------------------------------------

    def _shape_of(self, demands: tuple[DemandedDevices, ...]) -> _Shape:
        """Find out whether counting tells where some demands can be met: each wants wholes, and no two the same."""
        counts: dict[int, int] = {}
        for demand in demands:
            total = 0
            for request in demand.requests:
                asked = request.exactly
                if asked is None or asked.mode == "All" or asked.has_admin_access or demand.constraints:
                    return _Shape(demands, None)
                row = self._kind(asked)
                counts[row] = counts.get(row, 0) + asked.count
                total += asked.count
            if total > _FEW_DEVICES:
                return _Shape(demands, None)
        rows = [self._kinds_of_request[row] for row in counts]
        for place, kind in enumerate(rows):
            if not kind.is_plain or any(kind.members & other.members for other in rows[:place]):
                return _Shape(demands, None)
        return _Shape(demands, tuple(counts.items()))

    def _kind(self, asked: ExactDevices) -> int:
        """Give the number of a kind of requests, with the devices that it takes."""
        capacity = None if asked.capacity is None else tuple(sorted(asked.capacity.requests.items()))
        key = asked.class_name, asked.selectors, asked.tolerations, capacity
        number = self._asked.get(key)
        if number is None:
            number = self._asked[key] = len(self._kinds_of_request)
            self._kinds_of_request.append(self._made_kind(asked, number))
        return number

    def _made_kind(self, asked: ExactDevices, number: int) -> _Row:
        row = _Row(asked, {}, set(), is_plain=True)
        free = np.zeros((2, len(self.nodes)), np.int64)
        self._free.append(free)
        for device in self.stock.by_number:
            if device is None:
                continue
            passes = self._passes(row, device)
            if isinstance(passes, DeviceSearchError):
                row.is_plain = False
            elif passes is not None:
                row.members.add(device.number)
                row.is_plain &= device.is_plain and device.number not in self.stock.odd
                self._rows_of[device.number].append(number)
                used, nodes = self._used[:, device.number], self.stock.reach[device.number]
                free[0, nodes] += int(used[THEN] == 0)
                free[1, nodes] += int(not used.any())
        return row

    def _passes(self, row: _Row, device: StockedDevice) -> Consumed | DeviceSearchError | None:
        """Give what a kind of requests would consume of a device; None: it does not take it; an error: who knows."""
        if device.kind not in row.passes:
            try:
                row.passes[device.kind] = self._judge(row.asked, device)
            except DeviceSearchError as error:
                row.passes[device.kind] = error
        return row.passes[device.kind]

    def _judge(self, asked: ExactDevices, device: StockedDevice) -> Consumed | None:
        found = self.stock.classes.get(asked.class_name)
        if found is None:
            return None
        for whose, selectors in ((f"device class {found.name}", found.selectors), ("the request", asked.selectors)):
            for selector in selectors:
                if not _is_selected(whose, selector, device):
                    return None
        if is_tainted(device.model.taints, asked.tolerations):
            return None
        return consumed_of(asked.capacity, device.model)

    # -- why not ----------------------------------------------------------------------------------------------------

    def failing(self, terms: tuple[DeviceTerm, ...]) -> Iterator[tuple[str, Mask]]:
        """Give each obstacle that there may be once what terminates has left, and which nodes it does not concern."""
        for term in terms:
            yield f"without devices for resource claim {term.claim.partition('/')[2]}", self.mask((term,), LATER)
        if len(terms) > 1:
            yield "without devices for all resource claims together", self.mask(terms, LATER)

    def problem(self, term: DeviceTerm) -> str:
        """Say what is wrong with the selectors of a claim, or that it takes too long; empty if nothing is."""
        demand = self._demand_list[term.demand]
        for asked in alternatives((demand,)):
            row = self._kinds_of_request[self._kind(asked)]
            for found in row.passes.values():
                if isinstance(found, DeviceSearchError):
                    return str(found)
        for node in range(len(self.nodes)):
            try:
                if self.stock.at[node].devices and self._run((demand,), node, LATER) is not None:
                    break
            except DeviceSearchError as error:
                return str(error)
        return ""

    def supply(self, counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
        """Give what all devices count that ready nodes reach; ``counts``: what one of each class counts."""
        found: dict[str, int] = {}
        for name, each in sorted(counts.items()):
            members = self._kinds_of_request[self._kind(ExactDevices(class_name=name))].members
            many = sum(bool(self.nodes.ready[self.stock.reach[number]].any()) for number in members)
            for resource, amount in each.items():
                found[resource] = found.get(resource, 0) + many * amount
        return found

    def held_by(self, term: DeviceTerm) -> GivenDevices | None:
        """Give the devices that a claim has once what terminates has left."""
        return self._held[term.row][THEN]

    def held(self) -> dict[str, GivenDevices]:
        """Give what claims hold once what terminates has left."""
        found = ((claim, self._held[row][THEN]) for claim, row in sorted(self._rows.items()))
        return {claim: given for claim, given in found if given is not None}

    def demand_of(self, term: DeviceTerm) -> DemandedDevices:
        """Give what a claim demands."""
        return self._demand_list[term.demand]

    def is_there(self, term: DeviceTerm) -> bool:
        """Whether any node has devices that each request of a claim takes, used or not."""
        for request in self.demand_of(term).requests:
            if not any(self._kinds_of_request[self._kind(asked)].members for _, asked in request.options):
                return False
        return True


_FEW_DEVICES: Final = 32


class _Ledger:
    """What is given out, in some views."""

    def __init__(self, table: DeviceTable, views: Views) -> None:
        self._table = table
        self._views = views

    def takes(self, asked: ExactDevices, device: StockedDevice) -> Consumed | None:
        table = self._table
        found = table._passes(table._kinds_of_request[table._kind(asked)], device)  # noqa: SLF001  its own table
        if isinstance(found, DeviceSearchError):
            raise found
        return found

    def is_used(self, device: StockedDevice) -> bool:
        used = self._table._used  # noqa: SLF001
        return any(used[view, device.number] > 0 for view in self._views)

    def shared_in(self, device: StockedDevice) -> tuple[bool, ...]:
        shared = self._table._shared  # noqa: SLF001
        return tuple(bool(shared[view, device.number] > 0) for view in self._views)

    def has_capacity(self, device: StockedDevice, consumed: Consumed, more: dict[str, int]) -> bool:
        held = [self._table._consumed[view] for view in self._views]  # noqa: SLF001
        return all(
            known.get((device.number, name), 0) + more.get(name, 0) + amount <= device.model.capacity[name].value
            for name, amount in consumed for known in held
        )  # fmt: skip

    def has_counters(self, view: int, taken: dict[int, int]) -> bool:
        table = self._table
        counted = table._counted[self._views[view]]  # noqa: SLF001
        return all(counted[counter] + amount <= table.stock.totals[counter] for counter, amount in taken.items())


def _is_selected(whose: str, selector: DeviceSelector, device: StockedDevice) -> bool:
    from tenure.engine.device_selectors import DeviceSelectorError, compiled  # noqa: PLC0415  takes long to import

    program = compiled(selector.cel.expression)
    if isinstance(program, DeviceSelectorError):
        raise DeviceSearchError(f"a selector of {whose} {program}")
    try:
        return program.matches(device.key[0], device.model)
    except DeviceSelectorError as error:
        raise DeviceSearchError(f"a selector of {whose} fails for device {'/'.join(device.key)}: {error}") from None
