"""Where the volumes of a task that waits are, and what is missing there."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tenure.engine.room.labels import reached
from tenure.engine.room.nodes import FREE_DEVICES
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState
from tenure.model.values.readable import amount_with_unit
from tenure.model.values.resources import GPU

Mask = np.ndarray[Any, np.dtype[np.bool_]]

_PLACES: Final = (("topology.kubernetes.io/zone", "zone"), ("topology.kubernetes.io/region", "region"))
_FEW: Final = 3


def tied_by_volumes(session: Session, task: TaskState) -> str:
    """Say for which claim a task waits because nodes that reach its volume have no room; empty if that is not so."""
    nodes = session.nodes
    for mount in task.model.spec.mounts:
        there = nodes.ready & reached(nodes.labels, mount.nodes) if mount.nodes else nodes.ready
        if there.any() and not there.all():
            name, missing = mount.claim.partition("/")[2], _missing(session, task, there)
            return f"it waits for claim {name}: its volume is {_place(session, there)}, where {missing}"
    return ""


def _place(session: Session, there: Mask) -> str:
    """Say where some nodes are: in zones or regions that hold them and no other, else by their names."""
    nodes = session.nodes
    for label, kind in _PLACES:
        ids, values = nodes.domains.of(label)
        inside = np.unique(ids[there])
        if inside[0] >= 0 and not np.isin(ids[nodes.ready & ~there], inside).any():
            names = [values[i] for i in inside.tolist()]
            return f"in {kind} {names[0]}" if len(names) == 1 else f"in {kind}s {_listed(names)}"
    names = [nodes.names[i] for i in np.flatnonzero(there).tolist()]
    return f"on node {names[0]}" if len(names) == 1 else f"on nodes {_listed(names)}"


def _listed(names: list[str]) -> str:
    more = len(names) - _FEW
    return ", ".join(names[:_FEW]) + (f" and {more} more" if more > 0 else "")


def _missing(session: Session, task: TaskState, there: Mask) -> str:
    """Say what no node of some has, where there is one such thing."""
    nodes = session.nodes
    for row, amount in task.cls.asks:
        if (nodes.room[nodes.rows + row, there] < amount).all():
            resource = nodes.resources[row]
            if resource == FREE_DEVICES:
                return f"no node has {amount_with_unit(amount, GPU, milli_gpu=False)} free"
            return f"no node has {amount_with_unit(amount, resource)} free"
    return "no node fits"
