"""Gathering candidates: who could give way to a contender, and who is shielded and until when."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import merge

from tenure.engine.refusal import Refusal
from tenure.engine.session import Session
from tenure.engine.workloads import TaskState, WorkloadState
from tenure.shields.plugins import Plugins
from tenure.victims.pieces import Piece, pieces_of
from tenure.victims.rules import Rules


class Candidates:
    """Pieces that may be taken, in the order in which they are best taken, and who was refused.

    Workloads that were taken from are dropped when somebody next looks at all pieces.
    """

    def __init__(self, pieces: list[Piece], refused: list[tuple[WorkloadState, Refusal]]) -> None:
        self.refused = refused
        self._pieces = pieces
        self._start = 0
        self._gone: set[WorkloadState] = set()
        self._workloads = {p.workload for p in pieces}

    @property
    def count(self) -> int:
        """Number of workloads."""
        return len(self._workloads)

    def drop(self, workload: WorkloadState) -> None:
        """A workload is no candidate any more."""
        if workload in self._workloads:
            self._workloads.discard(workload)
            self._gone.add(workload)

    def first(self) -> Piece | None:
        """Give the piece that is best taken."""
        pieces, gone = self._pieces, self._gone
        while self._start < len(pieces) and pieces[self._start].workload in gone:
            self._start += 1
        return pieces[self._start] if self._start < len(pieces) else None

    def all(self) -> list[Piece]:
        """Give all pieces."""
        if self._gone:
            self._pieces = [p for p in self._pieces[self._start :] if p.workload not in self._gone]
            self._start = 0
            self._gone = set()
        return self._pieces


class Gatherer:
    """Gathers candidates, and remembers them for contenders that stand alike.

    Contenders of one leaf (and, where that matters, of one priority) have the same candidates, unless other plugins
    than minimum runtime are asked, which look at each contender.
    """

    def __init__(self, session: Session, plugins: Plugins, fresh: frozenset[TaskState], barred: set[str]) -> None:
        self.session = session
        self.plugins = plugins
        self.fresh = fresh
        self.barred = barred
        self.running = [w for _, w in sorted(session.workloads.items()) if w.leaf >= 0 and w.occupied()]
        self._gone: set[WorkloadState] = set()
        self._known: dict[object, Candidates] = {}
        self._pieces: dict[tuple[str, bool], list[Piece]] = {}

    def gather(self, contender: WorkloadState, rules: Rules) -> Candidates:
        """Give the candidates for one contender."""
        moves_itself = rules.cause == "consolidate" and contender.occupied()  # others may move what it runs, it may not
        if self.plugins.others or moves_itself:
            return self._gather(contender, rules)
        key = (rules.cause, contender.leaf, contender.priority if rules.cause == "preempt" else None)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._gather(contender, rules)
        return found

    def forget(self, workloads: Iterable[WorkloadState]) -> None:
        """Something was taken from these workloads: look at them anew."""
        for workload in workloads:
            self._pieces.pop((workload.key, True), None)
            self._pieces.pop((workload.key, False), None)
            if workload.occupied():  # something is left that may be taken
                self._known.clear()
            else:
                self._gone.add(workload)
            for found in self._known.values():
                found.drop(workload)

    def _gather(self, contender: WorkloadState, rules: Rules) -> Candidates:
        pieces: list[Piece] = []
        refused: list[tuple[WorkloadState, Refusal]] = []
        for victim in self.running:
            if victim is contender or victim in self._gone or victim.key in self.barred or not rules.concerns(victim):
                continue
            refusal = rules.eligible(victim)
            is_fresh = not refusal and bool(self.fresh) and all(t in self.fresh for t in victim.tasks if t.node >= 0)
            if refusal is None and not is_fresh:
                refusal = self.plugins.filter(self.session, rules.cause, contender, victim)
            if refusal is not None:
                refused.append((victim, refusal))
                if not refusal.core_only:
                    continue
            pieces += self._pieces_of(victim, core=refusal is None)
        return Candidates(in_order(pieces), refused)

    def _pieces_of(self, victim: WorkloadState, *, core: bool) -> list[Piece]:
        found = self._pieces.get((victim.key, core))
        if found is None:
            found = self._pieces[victim.key, core] = pieces_of(self.session, victim, self.fresh, core=core)
        return found


def in_order(pieces: Iterable[Piece]) -> list[Piece]:
    """Put pieces into one order: queues of lower priority first; within a queue lower priorities first; then by cost.

    Priorities of different queues are not compared: queues of one priority are merged by what each would give next.
    """
    by_level: dict[int, dict[int, list[Piece]]] = {}
    for piece in pieces:
        by_level.setdefault(piece.leaf_priority, {}).setdefault(piece.workload.leaf, []).append(piece)
    found: list[Piece] = []
    for level in sorted(by_level):
        lists = [sorted(own, key=lambda p: p.rank) for _, own in sorted(by_level[level].items())]
        found += lists[0] if len(lists) == 1 else merge(*lists, key=lambda p: p.rank[1:])
    return found
