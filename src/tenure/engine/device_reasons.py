"""Which devices the claims of a task that waits ask for, and what is missing."""

from __future__ import annotations

from typing import Final

from tenure.engine.claimed_devices import LATER, DeviceTable, DeviceTerm
from tenure.engine.session import Session
from tenure.engine.workloads import TaskState
from tenure.model.devices import DeviceRequest, ExactDevices

_LONG: Final = 120


def tied_by_devices(session: Session, task: TaskState) -> str:
    """Say for which claim a task waits because no node, or not every one, has the devices; empty if that is not so."""
    terms, table = task.terms, session.terms.devices
    if terms is None:
        return ""
    nodes = session.nodes
    for term in terms.devices:
        there = table.mask((term,), LATER) & nodes.ready
        if not there.any():
            return f"it waits for resource claim {_name(term)}: {_missing(table, term)}"
        held = table.held_by(term)
        if held is not None:
            names = [nodes.names[i] for i in there.nonzero()[0].tolist()]
            where = f"node {names[0]}" if len(names) == 1 else f"{len(names)} nodes"
            return f"resource claim {_name(term)} has its devices on {where}"
    if len(terms.devices) > 1 and not (table.mask(terms.devices, LATER) & nodes.ready).any():
        every = ", ".join(_name(term) for term in terms.devices)
        return f"no node has the devices for its resource claims {every} together"
    return ""


def _name(term: DeviceTerm) -> str:
    return term.claim.partition("/")[2]


def _missing(table: DeviceTable, term: DeviceTerm) -> str:
    problem = table.problem(term)
    if problem:
        return problem
    demand = table.demand_of(term)
    asked = " and ".join(_asked(request) for request in demand.requests)
    more = ", as its constraints want them" if demand.constraints else ""
    if not table.is_there(term):
        return f"there is no device that does: it asks for {asked}"
    return f"on no node are {asked} free{more}"


def _asked(request: DeviceRequest) -> str:
    return " or ".join(_counted(asked) for _, asked in request.options)


def _counted(asked: ExactDevices) -> str:
    many = "all devices" if asked.mode == "All" else f"{asked.count} device{'s' * (asked.count != 1)}"
    text = " and ".join(selector.cel.expression for selector in asked.selectors)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    shown = text if len(text) <= _LONG else f"{text[:_LONG]}…"
    return f"{many} of class {asked.class_name}" + (f" with {shown}" if shown else "")
