"""An audit of the devices of claims: what is kept up to date is what a look at all claims counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tenure.engine.devices.claimed_devices import DeviceTable
from tenure.engine.devices.counts import BOTH
from tenure.engine.room.nodes import THEN


def device_findings(table: DeviceTable, users: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """Give what does not agree; ``users`` are how many tasks use each claim, now and then."""
    for claim, row in table.rows.items():
        if table.users[row] != users.get(claim, (0, 0)):
            yield f"claim {claim} has {table.users[row]} users, tasks add up to {users.get(claim, (0, 0))}"
    counts = table.room.counts
    used, shared = np.zeros_like(counts.used), np.zeros_like(counts.shared)
    for held in table.holds:
        for view in BOTH:
            given = held[view]
            for taken in given.taken if given is not None else ():
                kept = shared if taken.device.model.is_shared else used
                kept[view, taken.device.number] += not taken.has_admin_access
    for name, kept, found in (("devices", counts.used, used), ("shares", counts.shared, shared)):
        if (kept != found).any():
            yield f"{kept.sum(axis=1).tolist()} {name} are kept as given out, claims have {found.sum(axis=1).tolist()}"
    yield from _free(table)


def _free(table: DeviceTable) -> Iterator[str]:
    """Compare for each kind of requests how many devices are free on each node."""
    counts, reach = table.room.counts, table.room.counts.stock.reach
    for kind in counts.kinds.all():
        free = np.zeros_like(kind.free)
        for number in kind.members:
            free[0, reach[number]] += counts.used[THEN, number] == 0
            free[1, reach[number]] += not counts.used[:, number].any()
        if (free != kind.free).any():
            yield f"of class {kind.asked.class_name} {kind.free.sum()} devices are kept as free, {free.sum()} are"
