"""Which devices the claims of a task that waits ask for, and what is missing; and what all devices count for queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from tenure.engine.devices.answers import TOO_MUCH
from tenure.engine.devices.claimed_devices import DeviceTable
from tenure.engine.devices.counts import LATER
from tenure.engine.devices.search import DeviceSearchError, alternatives
from tenure.engine.devices.served_nodes import DeviceTerm
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState
from tenure.model.devices import DeviceRequest, ExactDevices
from tenure.model.manifests.extended_resources import is_implied

Mask = np.ndarray[Any, np.dtype[np.bool_]]

_LONG: Final = 120


def missing_devices(table: DeviceTable, terms: tuple[DeviceTerm, ...]) -> Iterator[tuple[str, Mask]]:
    """Give each obstacle that there may be once what terminates has left, and which nodes it does not concern."""
    for term in terms:
        yield f"without devices for {_name(term)}", table.mask((term,), LATER)
    if len(terms) > 1:
        yield "without devices for all resource claims together", table.mask(terms, LATER)


def tied_by_devices(session: Session, task: TaskState) -> str:
    """Say for which claim a task waits because no node has the devices, or only some; empty if that is not so."""
    terms, table = task.terms, session.terms.devices
    if terms is None or not terms.devices:
        return ""
    nodes, held = session.nodes, table.held()
    for term in terms.devices:
        there = table.mask((term,), LATER) & nodes.ready
        if not there.any():
            return f"it waits for {_name(term)}: {_missing(table, term)}"
        if term.claim in held:
            names = [nodes.names[i] for i in there.nonzero()[0].tolist()]
            where = f"node {names[0]}" if len(names) == 1 else f"{len(names)} nodes"
            return f"{_name(term)} has its devices on {where}"
    if len(terms.devices) > 1 and not (table.mask(terms.devices, LATER) & nodes.ready).any():
        every = ", ".join(_name(term) for term in terms.devices)
        return f"no node has the devices for {every} together"
    return ""


def supply(table: DeviceTable, counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Give what all devices count that ready nodes reach; ``counts``: what one of each class counts."""
    kinds, reach, ready = table.room.counts.kinds, table.room.counts.stock.reach, table.nodes.ready
    found: dict[str, int] = {}
    for name, each in sorted(counts.items()):
        members = kinds.of(ExactDevices(class_name=name)).members
        many = sum(bool(ready[reach[number]].any()) for number in members)
        for resource, amount in each.items():
            found[resource] = found.get(resource, 0) + many * amount
    return found


def _name(term: DeviceTerm) -> str:
    if is_implied(term.claim):
        return f"{' and '.join(term.resources)}, which is given out by claims"
    return f"resource claim {term.claim.partition('/')[2]}"


def _missing(table: DeviceTable, term: DeviceTerm) -> str:
    problem = _problem(table, term)
    if problem:
        return problem
    demand = table.room.demands[term.demand]
    asked = " and ".join(_asked(request) for request in demand.requests)
    if not table.room.is_there(term.demand):
        return f"no node has {asked}, free or not"
    more = ", as its constraints want them" if demand.constraints else ""
    return f"on no node are {asked} free{more}"


def _problem(table: DeviceTable, term: DeviceTerm) -> str:
    """Say what is wrong with the selectors of a claim, or that it takes too long; empty if nothing is."""
    room, demand = table.room, table.room.demands[term.demand]
    for asked in alternatives((demand,)):
        kind = room.counts.kinds.of(asked)
        problem = next((p for p in kind.passes.values() if isinstance(p, DeviceSearchError)), None)
        if problem is None and room.counts.kinds.is_unfinished(kind):
            problem = TOO_MUCH
        if problem is not None:
            return str(problem)
    return room.problem(term.demand, term.namespace)


def _asked(request: DeviceRequest) -> str:
    return " or ".join(_counted(asked) for _, asked in request.options)


def _counted(asked: ExactDevices) -> str:
    many = "all devices" if asked.mode == "All" else f"{asked.count} device{'s' * (asked.count != 1)}"
    text = " and ".join(selector.cel.expression for selector in asked.selectors)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    shown = text if len(text) <= _LONG else f"{text[:_LONG]}…"
    return f"{many} of class {asked.class_name}" + (f" with {shown}" if shown else "")
