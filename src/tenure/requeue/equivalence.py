"""Candidates that stand alike in every respect that a play-through looks at: where one is refused, all are.

They are of one kind, stand at the same place in their leaf's order once they are gone, and on nodes that have the same
room and admit the same tasks. Where tasks look at each other or at topologies, and for workloads that may be evicted in
parts, none are alike.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from tenure.engine.session import Session
from tenure.engine.workloads import START, WorkloadState
from tenure.requeue.candidates import RequeueCandidate

Likeness = tuple[object, ...]


class CandidateEquivalence:
    """Likenesses of candidates, as things are when it is made."""

    def __init__(self, session: Session) -> None:
        self.session = session
        waiting = session.waiting.all()
        self.never = session.terms.used or any(w.root.topology is not None or w.root.children for w in waiting)
        self._looks: dict[int, bytes] = {}

    def of(self, candidate: RequeueCandidate, kind: int) -> Likeness:
        """Give what all that are alike have in common."""
        held = candidate.held_tasks()
        if self.never or not candidate.is_simple or any(t.cls.milli is not None for t in held):
            return (candidate.workload.key,)
        on: dict[int, list[int]] = {}
        for task in held:
            on.setdefault(task.node, []).append(task.cls.id)
        places = sorted((self._look(node), tuple(sorted(classes))) for node, classes in on.items())
        return kind, self._place(candidate.workload), tuple(places)

    def _place(self, workload: WorkloadState) -> int:
        """How many entries of its leaf are ahead of a workload once it waits."""
        entry = (-workload.priority, START, 0.0, workload.queued_at, workload.key)
        return bisect_left(self.session.waiting.entries[workload.leaf], entry)

    def _look(self, node: int) -> bytes:
        """Give all that placement can see of a node."""
        found = self._looks.get(node)
        if found is None:
            nodes, classes = self.session.nodes, self.session.classes.classes
            admits = bytes(c.static_list[node] for c in classes)
            liked = [float(c.preference[node]) for c in classes if c.preference is not None]
            parts = [nodes.room[:, node], nodes.capacity[:, node], np.array(liked), *np.sort(nodes.device[:, node])]
            found = self._looks[node] = b"".join([admits, *(part.tobytes() for part in parts)])
        return found
