"""The whole state of a session as plain values, for comparing one moment with another."""

from __future__ import annotations

from tenure.engine.state.workloads import TaskState, WorkloadState


def state_of(session):
    """Give everything that decides, caches and the log of changed nodes left out."""
    return {
        "room": session.nodes.room.tolist(),
        "device": session.nodes.device.tolist(),
        "waiting tasks": session.nodes.waiting,
        "stamps": list(session.nodes.stamps),
        "match": session.terms.counts.match.tolist(),
        "leaving": session.terms.counts.leaving.tolist(),
        "hold": session.terms.counts.hold.tolist(),
        "port": session.terms.counts.port.tolist(),
        "queues": [list(session.queues.allocated), list(session.queues.fixed), list(session.queues.pending)],
        "foreign": list(session.occupancy.foreign),
        "on node": [sorted(_name(t) for t in tasks) for tasks in session.on_node],
        "nominated": sorted(_name(t) for t in session.nominated),
        "terminating": sorted(_name(t) for t in session.leaving),
        "tasks": {_name(t): _slots(t) for w in session.workloads.values() for t in w.tasks},
        "workloads": {w.key: _slots(w) for w in session.workloads.values()},
        "order": [[_name(e[-1]), id(e)] for q in session.waiting.entries.values() for e in q if e[-1].entry is e],
        "open": session.journal.depth,
    }


def _name(thing):
    return f"{thing.workload.key}/{thing.model.name}" if isinstance(thing, TaskState) else thing.key


def _slots(thing):
    """Every slot of a task or workload. What nobody changes in place is compared by identity."""
    return {name: _plain(getattr(thing, name)) for name in type(thing).__slots__}


def _plain(value):
    if isinstance(value, (TaskState, WorkloadState)):
        return _name(value)
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, (int, float, str)):
        return value
    return id(value)
