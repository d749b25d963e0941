"""Gathering candidates: who could give way to a contender, and who is shielded and until when."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from heapq import merge
from itertools import takewhile

import numpy as np

from tenure.engine.memo import Memo
from tenure.engine.refusal import Refusal
from tenure.engine.room.nodes import Ints, NodeTable
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.model.settings import Cause
from tenure.shields.opt_out import asked_to_stay
from tenure.shields.plugins import EvictionPlugins
from tenure.victims.candidates.leaf_candidates import LeafCandidates, PricedPieces
from tenure.victims.candidates.preemptible_usage import PreemptibleUsage
from tenure.victims.rules.causes import CauseRules
from tenure.victims.rules.pieces import Piece, PieceMemo, alike_in_content, piece_memo, pieces_of, singles_of

Alike = tuple[Cause, int, int, bool]
"""Cause, and of the contender what decides what of a leaf is open."""

LeafMemo = Memo[int, LeafCandidates]
"""By leaf, the candidates for those who may take from it whatever is preemptible."""


def leaf_memo(session: Session, holdings: PreemptibleUsage, known: PieceMemo) -> LeafMemo:
    """Give a memo of all that is preemptible in a leaf; what is asked in one scenario after the other shares it."""

    def work_out(leaf: int) -> LeafCandidates:
        holdings.catch_up()
        running = (w for w in holdings.workloads(leaf) if w.occupied())
        pieces = [piece for workload in running for piece in known((workload, True, False))]
        return LeafCandidates(leaf, session.queues.queues[leaf].priority, pieces)

    def same(one: LeafCandidates, other: LeafCandidates) -> bool:
        return alike_in_content(list(one.all()), list(other.all()))

    return Memo(work_out, lambda leaf: session.queues.versions[leaf], same)


def _in_queues(piece: Piece) -> tuple[object, ...]:
    """Give the place of a piece among those of several queues, whose workloads' priorities are not compared."""
    return piece.floor, piece.rank[1:]


class VictimCandidates:
    """The candidates that are open to a contender, leaf by leaf.

    ``beyond``: what opens only once something has gone on the contender's own side.
    """

    def __init__(self, candidate_leaves: Sequence[LeafCandidates], beyond: DeferredCandidates | None = None) -> None:
        self.candidate_leaves = candidate_leaves
        self.beyond = beyond

    def __bool__(self) -> bool:
        """Whether there is a candidate."""
        return any(map(len, self.candidate_leaves))

    @property
    def count(self) -> int:
        """Number of workloads."""
        return sum(map(len, self.candidate_leaves))

    @property
    def shielded(self) -> int:
        """Number of workloads that the rules would let go, and a shield does not."""
        return sum(leaf_candidates.shielded for leaf_candidates in self.candidate_leaves)

    @property
    def refused(self) -> list[tuple[WorkloadState, Refusal]]:
        """Who was refused, by name."""
        beyond = () if self.beyond is None else self.beyond.refused.items()
        return sorted([*(r for c in self.candidate_leaves for r in c.refused), *beyond], key=lambda r: r[0].key)

    def first(self, allowed: Callable[[Piece], bool] | None = None) -> Piece | None:
        """Give the piece that no set of ``allowed`` ones comes before; None if there is none, or that is not certain.

        It is not where a leaf holds several priorities, and what is cheapest is not what is of the lowest.
        """
        firsts = (next(filter(allowed, c.all()), None) for c in self.candidate_leaves)
        best = min((p for p in firsts if p is not None), key=_in_queues, default=None)
        if best is None:
            return None
        for leaf_candidates in self.candidate_leaves:
            ordered = () if leaf_candidates.uniform else leaf_candidates.but(lambda *_: False, cheapest_first=True)
            no_dearer = takewhile(lambda p: p.floor <= best.floor, ordered)
            if any(_in_queues(p) < _in_queues(best) for p in filter(allowed, no_dearer)):
                return None
        return best

    def all(self) -> Iterator[Piece]:
        """Give all pieces in order, see `in_order`."""
        return in_order((leaf_candidates.level, leaf_candidates.all()) for leaf_candidates in self.candidate_leaves)

    def priced(self, nodes: NodeTable) -> PricedPieces:
        """Give each piece on each of its nodes."""
        found = [leaf_candidates.priced(nodes.rows) for leaf_candidates in self.candidate_leaves]
        found = found or [LeafCandidates(0, 0, ()).priced(nodes.rows)]
        return PricedPieces(*(np.concatenate(of_all, axis=-1) for of_all in zip(*found, strict=True)))

    def times(self, of: Callable[[WorkloadState], int]) -> Ints:
        """Give a time of each piece's workload, in the order of `priced`."""
        pieces = (p for candidates in self.candidate_leaves for p in candidates.all())
        return np.array([of(p.workload) for p in pieces for _ in p.frees], np.int64)


def in_order(leaves: Iterable[tuple[int, Iterable[Piece]]]) -> Iterator[Piece]:
    """Bring the pieces of several leaves into one order; of each: the priority of its queue, and its pieces in order.

    Queues of lower priority come first; priorities of workloads are not compared between queues: queues of one priority
    are merged by what each would give next.
    """
    by_level: dict[int, list[Iterable[Piece]]] = {}
    for level, pieces in leaves:
        by_level.setdefault(level, []).append(pieces)
    for level in sorted(by_level):
        streams = by_level[level]
        yield from streams[0] if len(streams) == 1 else merge(*streams, key=lambda p: p.rank[1:])


class DeferredCandidates:
    """Leaves that are not open to a contender as things stand; they are gathered when a search comes to them."""

    def __init__(self, gatherer: CandidateGatherer, rules: CauseRules, leaves: Iterable[int]) -> None:
        self.gatherer = gatherer
        self.rules = rules
        self.leaves = frozenset(leaves)
        self.refused: dict[WorkloadState, Refusal] = {}

    def candidate_leaves(self, leaves: Iterable[int]) -> list[LeafCandidates]:
        """Gather some leaves."""
        deferred = [leaf for leaf in leaves if leaf in self.leaves]
        found = self.gatherer.candidate_leaves(self.rules, deferred)
        self.refused.update(pair for leaf_candidates in found for pair in leaf_candidates.refused)
        return found


class CandidateMemory:
    """The memory of one pass: candidates ``by_leaf``, for contenders that stand alike, until it takes something.

    ``served`` are workloads to which it has given something.
    """

    def __init__(self, session: Session, plugins: EvictionPlugins, holdings: PreemptibleUsage) -> None:
        self.session = session
        self.plugins = plugins
        self.holdings = holdings
        self.by_leaf: dict[int, dict[tuple[Alike, bool, bool], LeafCandidates]] = {}
        self.served: set[WorkloadState] = set()

    def alike(self, rules: CauseRules) -> Callable[[int], Alike]:
        """Give, by leaf, what contenders have in common to which the same candidates of it are open."""
        cause, contender, own = rules.cause, rules.contender, rules.contender.leaf
        if cause in ("preempt", "requeue"):  # its priority decides, and where requeue is fenced off, its leaf
            return lambda _: (cause, own, contender.priority, False)
        owed = self.plugins.is_owed(self.session, cause, contender)
        if self.plugins.budgets.active:
            return lambda _: (cause, own, 0, owed)
        reach = self.holdings.open_to(own) if cause == "reclaim" else None
        minimum, session = self.plugins.min_runtime.minimum, self.session

        def alike(leaf: int) -> Alike:
            if leaf == own or (reach is not None and leaf not in reach):
                return cause, own, 0, owed
            return cause, -1, minimum(session, cause, own, leaf), owed

        return alike

    def forget(self, workloads: Iterable[WorkloadState]) -> None:
        """Something was taken from these workloads: look at them anew."""
        for workload in workloads:
            if workload.occupied():  # something is left that may be taken
                self.by_leaf.pop(workload.leaf, None)
            else:
                for leaf_candidates in self.by_leaf.get(workload.leaf, {}).values():
                    leaf_candidates.drop(workload)

    def leave(self, workloads: Collection[WorkloadState]) -> None:
        """Leave out what has just been given something: one pass does not take back what it gave."""
        self.served.update(workloads)
        for workload in workloads:
            for leaf_candidates in self.by_leaf.get(workload.leaf, {}).values():
                leaf_candidates.drop(workload)

    def close(self) -> None:
        """The pass is over: let go of the candidates, which know their gatherer."""
        self.by_leaf.clear()


class CandidateGatherer:
    """Gathers candidates, leaf by leaf, and remembers them for contenders that stand alike.

    Contenders of one leaf (and, where that matters, of one priority) have the same candidates, unless other plugins
    than minimum runtime are asked, which look at each contender. Where refusals are not read (not ``detailed``), only
    those are looked at that hold something that could be had. ``whole`` has leaves of which nothing is kept back, where
    gatherers of one scenario after the other share them: nothing may be taken from these gatherers.
    """

    def __init__(
        self, session: Session, plugins: EvictionPlugins, holdings: PreemptibleUsage,
        fresh: frozenset[TaskState] = frozenset(), barred: Collection[str] = (), *,
        paid: frozenset[TaskState] = frozenset(), detailed: bool = True, known: PieceMemo | None = None,
    ) -> None:  # fmt: skip
        self.session = session
        self.plugins = plugins
        self.known = piece_memo(session) if known is None else known
        self.whole: LeafMemo | None = None
        self.fresh = fresh
        self.paid = paid
        self.barred = barred
        self.holdings = holdings
        self.detailed = detailed
        self.memory = CandidateMemory(session, plugins, holdings)
        self._served = self.memory.served
        self.sparing = True
        self._of_this_cycle = {t.workload for t in fresh} | {t.workload for t in paid}

    def gather(
        self, rules: CauseRules, leaves: Iterable[int] | None = None, beyond: Collection[int] = ()
    ) -> VictimCandidates:
        """Give the candidates for a contender, from some leaves or all; those ``beyond`` when it comes to them."""
        if leaves is None:
            leaves = (rules.contender.leaf,) if rules.cause == "preempt" else self._leaves()
        candidate_leaves = self.candidate_leaves(rules, leaves)
        deferred = DeferredCandidates(self, rules, beyond) if beyond else None
        return VictimCandidates(candidate_leaves, deferred)

    def candidate_leaves(self, rules: CauseRules, leaves: Iterable[int]) -> list[LeafCandidates]:
        """Give the candidates of each leaf."""
        moves_itself = rules.cause == "consolidate" and rules.contender.occupied()  # others may move what it runs
        known = {} if self.plugins.others or moves_itself else self.memory.by_leaf
        alike = self.memory.alike(rules)
        candidate_leaves = []
        for leaf in sorted(leaves):
            of_leaf, key = known.setdefault(leaf, {}), (alike(leaf), self.sparing, self.detailed)
            leaf_candidates = of_leaf.get(key)
            if leaf_candidates is None:
                leaf_candidates = of_leaf[key] = self._leaf_candidates(rules, leaf)
            candidate_leaves.append(leaf_candidates)
        return candidate_leaves

    def _leaves(self) -> Iterable[int]:
        if not self.detailed:
            self.holdings.catch_up()
            return self.holdings.leaves
        return self._running.keys()

    @cached_property
    def _running(self) -> dict[int, list[WorkloadState]]:
        """Everything that runs, by leaf and name."""
        found: dict[int, list[WorkloadState]] = {}
        for _, workload in sorted(self.session.workloads.items()):
            if workload.leaf >= 0 and workload.occupied():
                found.setdefault(workload.leaf, []).append(workload)
        return found

    @cached_property
    def asked_to_be_spared(self) -> set[int]:
        """Leaves in which something asked to be spared, or did."""
        return {w.leaf for w in self.session.workloads.values() if w.sparing and w.leaf >= 0}

    @contextmanager
    def everybody(self) -> Iterator[None]:
        """Gather what asked to be spared as well, for as long as the block lasts: it comes last of all."""
        self.sparing = False
        try:
            yield
        finally:
            self.sparing = True

    def _leaf_candidates(self, rules: CauseRules, leaf: int) -> LeafCandidates:
        self.holdings.catch_up()
        asked = leaf in self.asked_to_be_spared
        silent = self.plugins.silent(self.session, rules.cause, rules.contender, leaf)
        if self.whole is not None and silent and not asked and self._keeps_nothing_back(rules, leaf):
            return self.whole(leaf)
        pieces: list[Piece] = []
        refused: list[tuple[WorkloadState, Refusal]] = []
        shielded = 0
        for victim in self._running.get(leaf, ()) if self.detailed else self.holdings.workloads(leaf):
            if not self._may_concern(rules, victim):
                continue
            refusal = rules.eligible(victim)
            if refusal is None and not silent:
                refusal = self._shielded(rules, victim)
                shielded += refusal is not None
            if refusal is not None:
                refused.append((victim, refusal))
                if not refusal.core_only:
                    continue
            singly = rules.cause == "consolidate" and len(victim.tasks) > 1
            found = self._pieces_of(victim, core=refusal is None, singly=singly)
            asks = asked and self.sparing and victim.sparing
            if asks and found and all(p.spared for p in found):
                refused.append((victim, asked_to_stay(self.session, victim)))
            pieces += [p for p in found if not p.spared] if asks else found
        return LeafCandidates(leaf, self.session.queues.queues[leaf].priority, pieces, refused, shielded)

    def _keeps_nothing_back(self, rules: CauseRules, leaf: int) -> bool:
        """Whether all that is preemptible in a leaf is a candidate: it is another queue's, and open to reclaim."""
        own = rules.contender.leaf
        if rules.cause != "reclaim" or leaf == own or leaf not in self.holdings.open_to(own):
            return False
        return not (self.detailed or self.barred or self._served or self._of_this_cycle)

    def _may_concern(self, rules: CauseRules, victim: WorkloadState) -> bool:
        if victim is rules.contender or victim in self._served or not rules.concerns(victim) or not victim.occupied():
            return False
        return victim.key not in self.barred

    def _shielded(self, rules: CauseRules, victim: WorkloadState) -> Refusal | None:
        """Refuse a victim that a shield holds; none looks at what was placed as a whole in this cycle."""
        if self.fresh and all(t in self.fresh for t in victim.tasks if t.node >= 0):
            return None
        return self.plugins.filter(self.session, rules.cause, rules.contender, victim)

    def _pieces_of(self, victim: WorkloadState, *, core: bool, singly: bool) -> list[Piece]:
        """Give the pieces of a workload, or its tasks one by one."""
        if victim not in self._of_this_cycle:
            return self.known((victim, core, singly))
        make = singles_of if singly else pieces_of
        return make(self.session, victim, self.fresh, core=core, paid=self.paid)
