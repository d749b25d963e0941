"""Gathering candidates: who could give way to a contender, and who is shielded and until when."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from heapq import merge

from tenure.engine.refusal import Refusal
from tenure.engine.session import Session
from tenure.engine.workloads import TaskState, WorkloadState
from tenure.shields.plugins import Plugins
from tenure.victims.holdings import Holdings
from tenure.victims.pieces import Piece, pieces_of
from tenure.victims.rules import Rules


class Lot:
    """What may be taken from one leaf, the best to take first, and who there was refused.

    Workloads that were taken from are dropped when somebody next looks.
    """

    def __init__(self, pieces: list[Piece], refused: list[tuple[WorkloadState, Refusal]], shielded: int) -> None:
        self.refused = refused
        self.shielded = shielded
        self._pieces = sorted(pieces, key=lambda p: p.rank)
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
        """Give all pieces, those of lower priority first, then by cost."""
        if self._gone:
            self._pieces = [p for p in self._pieces[self._start :] if p.workload not in self._gone]
            self._start = 0
            self._gone = set()
        return self._pieces


class Candidates:
    """The lots that are open to a contender."""

    def __init__(self, lots: Sequence[Lot]) -> None:
        self.lots = lots

    @property
    def count(self) -> int:
        """Number of workloads."""
        return sum(lot.count for lot in self.lots)

    @property
    def shielded(self) -> int:
        """Number of workloads that the rules would let go, and a shield does not."""
        return sum(lot.shielded for lot in self.lots)

    @property
    def refused(self) -> list[tuple[WorkloadState, Refusal]]:
        """Who was refused, by name."""
        return sorted((r for lot in self.lots for r in lot.refused), key=lambda r: r[0].key)

    def first(self) -> Piece | None:
        """Give the piece that is best taken."""
        firsts = [p for lot in self.lots if (p := lot.first()) is not None]
        return min(firsts, key=lambda p: (p.leaf_priority, p.rank[1:]), default=None)

    def all(self) -> list[Piece]:
        """Give all pieces: queues of lower priority first; within a queue lower priorities first; then by cost.

        Priorities of different queues are not compared: queues of one priority are merged by what each would give
        next.
        """
        by_level: dict[int, list[list[Piece]]] = {}
        for lot in self.lots:
            if pieces := lot.all():
                by_level.setdefault(pieces[0].leaf_priority, []).append(pieces)
        found: list[Piece] = []
        for level in sorted(by_level):
            lists = by_level[level]
            found += lists[0] if len(lists) == 1 else merge(*lists, key=lambda p: p.rank[1:])
        return found


class Gatherer:
    """Gathers candidates, leaf by leaf, and remembers them for contenders that stand alike.

    Contenders of one leaf (and, where that matters, of one priority) have the same candidates, unless other plugins
    than minimum runtime are asked, which look at each contender. Where nobody reads who was refused (not
    ``detailed``), only those are looked at that hold something that could be had.
    """

    def __init__(
        self,
        session: Session,
        plugins: Plugins,
        holdings: Holdings,
        fresh: frozenset[TaskState] = frozenset(),
        barred: Collection[str] = (),
        *,
        detailed: bool = True,
    ) -> None:
        self.session = session
        self.plugins = plugins
        self.fresh = fresh
        self.barred = barred
        self.holdings = holdings
        self.detailed = detailed
        self._by_leaf: dict[int, list[WorkloadState]] | None = None
        self._served: set[WorkloadState] = set()
        self._known: dict[object, dict[int, Lot]] = {}
        self._pieces: dict[tuple[str, bool], list[Piece]] = {}

    def gather(self, contender: WorkloadState, rules: Rules, leaves: Iterable[int] | None = None) -> Candidates:
        """Give the candidates for one contender, from some leaves or from all."""
        moves_itself = rules.cause == "consolidate" and contender.occupied()  # others may move what it runs, it may not
        key = (rules.cause, contender.leaf, contender.priority if rules.cause == "preempt" else None)
        if self.plugins.others or moves_itself:
            known: dict[int, Lot] = {}
        else:
            known = self._known.setdefault(key, {})
        lots = []
        for leaf in sorted(self._leaves() if leaves is None else leaves):
            lot = known.get(leaf)
            if lot is None:
                lot = known[leaf] = self._lot(contender, rules, leaf)
            lots.append(lot)
        return Candidates(lots)

    def forget(self, workloads: Iterable[WorkloadState]) -> None:
        """Something was taken from these workloads: look at them anew."""
        for workload in workloads:
            self._pieces.pop((workload.key, True), None)
            self._pieces.pop((workload.key, False), None)
            for known in self._known.values():
                if workload.occupied():  # something is left that may be taken
                    known.pop(workload.leaf, None)
                elif workload.leaf in known:
                    known[workload.leaf].drop(workload)

    def leave(self, workloads: Iterable[WorkloadState]) -> None:
        """Leave out what has just been given something: one pass does not take back what it gave."""
        for workload in workloads:
            self._served.add(workload)
            for known in self._known.values():
                if workload.leaf in known:
                    known[workload.leaf].drop(workload)

    def _leaves(self) -> Iterable[int]:
        if not self.detailed:
            return self.holdings.leaves
        return self._running().keys()

    def _running(self) -> dict[int, list[WorkloadState]]:
        """Everything that runs, by leaf and name."""
        if self._by_leaf is None:
            self._by_leaf = {}
            for _, workload in sorted(self.session.workloads.items()):
                if workload.leaf >= 0 and workload.occupied():
                    self._by_leaf.setdefault(workload.leaf, []).append(workload)
        return self._by_leaf

    def _victims(self, leaf: int) -> Iterable[WorkloadState]:
        if self.detailed:
            return self._running().get(leaf, ())
        self.holdings.catch_up()
        return self.holdings.workloads(leaf)

    def _lot(self, contender: WorkloadState, rules: Rules, leaf: int) -> Lot:
        pieces: list[Piece] = []
        refused: list[tuple[WorkloadState, Refusal]] = []
        shielded = 0
        for victim in self._victims(leaf):
            if victim is contender or victim in self._served or not rules.concerns(victim) or not victim.occupied():
                continue
            if victim.key in self.barred:
                continue
            refusal = rules.eligible(victim)
            if refusal is None and not self._is_fresh(victim):
                refusal = self.plugins.filter(self.session, rules.cause, contender, victim)
                shielded += refusal is not None
            if refusal is not None:
                refused.append((victim, refusal))
                if not refusal.core_only:
                    continue
            pieces += self._pieces_of(victim, core=refusal is None)
        return Lot(pieces, refused, shielded)

    def _is_fresh(self, victim: WorkloadState) -> bool:
        """Whether all that it runs was placed in this cycle, which a shield does not look at."""
        return bool(self.fresh) and all(t in self.fresh for t in victim.tasks if t.node >= 0)

    def _pieces_of(self, victim: WorkloadState, *, core: bool) -> list[Piece]:
        found = self._pieces.get((victim.key, core))
        if found is None:
            found = self._pieces[victim.key, core] = pieces_of(self.session, victim, self.fresh, core=core)
        return found
