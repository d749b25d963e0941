"""The full state of a session, as plain data: everything that a decision could depend on."""

from __future__ import annotations


def full_state(session):
    """Give room, queues, workloads, tasks, and who waits in which order."""
    nodes, queues = session.nodes, session.queues
    workloads = {
        key: (
            w.started_at, w.created_at, w.last_evicted_at, w.not_before, w.queued_at, w.expected, w.stale_since,
            None if w.step is None else (w.step.kind, [t.index for t in w.step.tasks]),
            None if w.entry is None else w.entry[:5],
            [tuple(getattr(t, name) for name in t.saved) for t in w.tasks],
        )
        for key, w in sorted(session.workloads.items())
    }  # fmt: skip
    return {
        "room": nodes.room.tolist(),
        "device": nodes.device.tolist(),
        "waiting": nodes.waiting,
        "queues": (list(queues.allocated), list(queues.pending), list(queues.fixed)),
        "workloads": workloads,
        "order": [w.key for w in session.waiting.all()],
        "on_node": [sorted((t.workload.key, t.index) for t in tasks) for tasks in session.on_node],
        "depth": session.journal.depth,
    }
