"""Candidates that would win their place back before the contender has its turn: sets of which that is known unplayed.

It is what most sets in a standing backlog come to, in one cycle after the other: the contender stands behind another
workload in its leaf whose step, though it does not fit, has its turn first, and until then the candidate's own leaf is
ahead.

Why no play-through is needed. All tasks in question are of one class, for which there is no room at present. So if
there were still room for the contender at its turn, every candidate that had its turn before found room as well; but
their places together are all the room there is for the class. And every candidate has its turn before: keys of queues
only grow while workloads are served, the contender comes no earlier than the greatest key of those ahead of it in its
leaf, a candidate no later than that of those ahead of it in its own. The two leaves' keys are compared as siblings, so
this is looked at only where the candidate's leaf is one. Who could be served ahead of a candidate, so that its leaf's
key grows, must not find room at all, or none beside the contender.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenure.engine.order import Key, queue_key
from tenure.engine.queues import Amount
from tenure.engine.session import Session
from tenure.engine.workloads import START, TaskState, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.requeue.classes import ShapeNeeds
from tenure.requeue.pending_index import PendingClass, PendingIndex, shape_of
from tenure.victims.pieces import Piece

COMPARED = 5
"""So many items of a key grow, or stay, with what a queue holds; the others break ties among equal ones."""


class ReturningCandidate(NamedTuple):
    """A candidate that waits again: those ahead of it in its leaf, and the greatest key until it has had its turn."""

    ahead: list[PendingClass]
    key: Key


class KnownReturns:
    """The returns known in one round, as long as nothing is committed in it: ``still`` says whether that is so."""

    def __init__(
        self,
        session: Session,
        shares: CurrentShares,
        pending_index: PendingIndex,
        needs: ShapeNeeds,
        still: Callable[[], bool],
    ) -> None:
        self.session = session
        self.queues = session.queues
        self.shares = shares
        self.needs = needs
        self.still = still
        self._lines: dict[int, list[PendingClass]] = {}
        for line in pending_index.lines():
            self._lines.setdefault(line.alike[0], []).append(line)
        self._behind: dict[WorkloadState, ReturningCandidate] = {}
        self._turns: dict[tuple[WorkloadState, int], Key] = {}

    def certain(self, contender: WorkloadState, pieces: Sequence[Piece]) -> bool:
        """Whether all of a set would have their places back before a contender has its turn."""
        step, queues = contender.step, self.queues
        if not self.still() or step is None or len(step.tasks) != 1 or not _is_plain(contender, step.tasks[0]):
            return False
        task = step.tasks[0]
        if not all(self._is_like(piece, task) for piece in pieces):
            return False
        forks = {queues.parent[piece.workload.leaf] for piece in pieces}
        if len(forks) != 1:
            return False
        fork = forks.pop()
        side = next((q for q in queues.path[contender.leaf] if queues.parent[q] == fork), -1)
        if side < 0 or any(piece.workload.leaf == side for piece in pieces):
            return False
        turn = self._turn_of(contender, step.amount, side)[:COMPARED]
        return all(self._back(p.workload).key[:COMPARED] < turn for p in pieces) and self._nobody_else(task, pieces)

    def _is_like(self, piece: Piece, task: TaskState) -> bool:
        """Whether what goes is one running task of the same class, that may wait again as it is."""
        workload = piece.workload
        return (
            piece.whole
            and not piece.fresh
            and len(workload.tasks) == 1
            and _is_plain(workload, workload.tasks[0])
            and workload.tasks[0].cls is task.cls
            and workload.root.minimum == 1
            and not (workload.fixed or self.queues.limited[workload.leaf])
        )

    def _turn_of(self, contender: WorkloadState, amount: Amount, side: int) -> Key:
        """Give the key before which a contender does not have its turn."""
        found = self._turns.get((contender, side))
        if found is None:
            assert contender.entry is not None
            ahead = {line.step.amount for line in self._lines[contender.leaf] if line.entries[0] < contender.entry}
            keys = [queue_key(self.session, self.shares, side, a) for a in ahead | {amount}]
            found = self._turns[contender, side] = max(keys)
        return found

    def _back(self, workload: WorkloadState) -> ReturningCandidate:
        """Say who is ahead of a candidate once it waits, and when it has had its turn."""
        found = self._behind.get(workload)
        if found is None:
            session, leaf, amount = self.session, workload.leaf, workload.tasks[0].cls.amount
            place = (-workload.priority, START, 0.0, workload.queued_at, workload.key)
            ahead = [line for line in self._lines.get(leaf, ()) if line.entries[0] < place]
            with session.scenario():
                self.queues.release(leaf, amount, fixed=False)
                keys = [queue_key(session, self.shares, leaf, a) for a in {amount, *(x.step.amount for x in ahead)}]
            found = self._behind[workload] = ReturningCandidate(ahead, max(keys))
        return found

    def _nobody_else(self, task: TaskState, pieces: Sequence[Piece]) -> bool:
        """Whether there is no room as it is, and no workload ahead of a candidate in its leaf leaves any."""
        workload = task.workload
        assert workload.step is not None
        if self.needs.of_step(shape_of(workload, workload.step), workload.step).parts[0].count:
            return False
        ahead = {id(line): line for piece in pieces for line in self._back(piece.workload).ahead}
        return all(self._finds_none(line, task, pieces) for line in ahead.values())

    def _finds_none(self, line: PendingClass, task: TaskState, pieces: Sequence[Piece]) -> bool:
        """Whether no workload of a line could be placed; with one candidate, or only in the contender's place."""
        need = self.needs.of_step(line.alike[3], line.step)
        if not need.met(pieces):
            return True
        if len(pieces) > 1 or need.met(()):
            return False
        nodes, node = self.session.nodes, pieces[0].workload.tasks[0].node
        there = nodes.room[nodes.rows :, node] + task.cls.ask
        return all(
            t.cls.milli is None and (not t.cls.static[node] or bool((t.cls.ask + task.cls.ask > there).any()))
            for t in line.step.tasks
        )


def _is_plain(workload: WorkloadState, task: TaskState) -> bool:
    """Whether nothing but its class decides where a task fits."""
    plain = task.terms is None and task.cls.milli is None and task.cls.spec.is_placeable
    return plain and workload.root.topology is None and not workload.root.children
