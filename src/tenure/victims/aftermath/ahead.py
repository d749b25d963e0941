"""The state that decisions lead to, in a scenario, and what a cycle would find in it were all waits over.

What was evicted has left, what was nominated is bound, and minimum runtimes, delays and cooldowns are over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial

from tenure.engine.memo import Memo
from tenure.engine.plan import Plan
from tenure.engine.serving.allocation import serve
from tenure.engine.serving.nominations import bind_group, bound_together
from tenure.engine.state.evictions import leave
from tenure.engine.state.notices import count_told, notice_of, stand
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TERMINATING, TaskState, WorkloadState
from tenure.model.settings import Cause
from tenure.shields.delay import moved_for_from
from tenure.shields.plugins import puts_off
from tenure.victims.aftermath.asked import Asked
from tenure.victims.candidates.gatherer import LeafMemo, leaf_memo
from tenure.victims.dry_run.outcome import AcceptedSet, Consequences
from tenure.victims.passes.consolidation import cheaper, price_of
from tenure.victims.passes.contender_search import ContenderSearch
from tenure.victims.passes.preemption_pass import MakeRules
from tenure.victims.recording.record import place_step
from tenure.victims.recording.state import EvictionState, VictimMemory
from tenure.victims.search.trials import SearchBudget, SearchResult

STEPS = 512
"""Sets that are tried for one workload and one cause."""

Judge = Callable[[EvictionState], Consequences]


class Ahead:
    """The session as it will be, in a scenario: what is done to it within `look` or `undone` is gone after that.

    ``endings`` are those of the cycle that is looked at, ``moved`` the workloads (namespace/name) that it has moved,
    and ``bound`` the tasks that it bound on a nomination: both stay in it; what it ``served`` first may be undone.
    ``decided`` is what it evicts and places so far, for those ``helped``. ``number`` grows with whatever changes.
    """

    def __init__(self, state: EvictionState) -> None:
        self.state = state
        self.session = state.session
        self.plugins = state.plugins.without_times()
        self.endings = state.endings
        self.moved: frozenset[str] = frozenset()
        self.bound: frozenset[TaskState] = frozenset()
        self.served: Sequence[TaskState] = ()
        self.decided = AcceptedSet([], [])
        self.helped: frozenset[str] = frozenset()
        self.number = 0

    @contextmanager
    def look(self) -> Iterator[None]:
        """Look one step ahead."""
        with self.undone():
            self.session.new_epoch()
            yield

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Undo after the block what is done in it."""
        budgets, endings, bound, served = self.plugins.budgets, self.endings, self.bound, self.served
        risen = budgets.risen
        with self.session.scenario(), budgets.ledger.tentatively():
            try:
                yield
            finally:
                self.moved, self.endings, self.bound, budgets.risen = frozenset(), endings, bound, risen
                self.served = served
                self.number += 1

    def come_true(self, evicted: Sequence[TaskState], placed: Sequence[TaskState], *, served: bool = False) -> None:
        """Let it leave and be bound as the next cycle begins, later than all before, and serve in order those who wait.

        ``served``: they were just served, so that nothing is left for them unless one grows.
        """
        later = self.endings.later + 1
        self.endings = self.endings.after(settle(self.state, evicted, placed, later), later=1)
        self.number += 1
        grown = any(t.workload.entry is not None for t in placed)
        self.served = self.serve_rest() if grown or ((evicted or placed) and not served) else ()
        self.endings = self.endings.after(t.workload for t in self.served)

    def serve_rest(self, victims: Sequence[WorkloadState] = ()) -> list[TaskState]:
        """Serve in order those who wait, as far as there is room; gives the tasks that were placed."""
        session, shares = self.session, self.state.memory.shares()
        placed = serve(session, self.state.placer, shares, victims=victims, endings=self.endings).placed
        for workload in dict.fromkeys(t.workload for t in placed):
            session.note_start(workload, self.endings.later)
        return placed

    def serve_at_once(self, evicted: Sequence[TaskState]) -> list[TaskState]:
        """Serve those who ask in the same cycle, before one that grows only once it is bound.

        Beside a reservation what is left over waits for the next cycle; under notice ``evicted`` are still there in it.
        """
        session = self.session
        waits = session.settings.backfill == "easy" and not any(notice_of(session, t.workload) for t in evicted)
        return [] if waits else self.serve_rest([t.workload for t in evicted])

    def decide(self, found: SearchResult, contender: WorkloadState | None = None) -> bool:
        """Let a set be decided, if there is one: as in a plan, what it evicts asks for nothing until the next round.

        The core of the ``contender`` for which it evicts stays until then.
        """
        played = found.played
        if played is None or played.undone is None:
            return False
        self.session.repeat(played.undone)
        self.decided.evicted.extend(played.evicted)
        self.decided.placed.extend(played.placed)
        self.moved |= {t.workload.key for t in played.evicted if t.node >= 0}
        self.helped |= {contender.key} if contender is not None else set()
        self.number += 1
        return True

    def losing(self) -> set[WorkloadState]:
        """Give the workloads that lose something by what was decided."""
        return {t.workload for t in self.decided.evicted}

    def carry_out(self, found: SearchResult) -> bool:
        """Let a set come true, if there is one; what it moves is not moved again for the next step."""
        if decided := self.decide(found):
            evicted, placed = self._end_round()
            self.bound = frozenset(t for t in placed if t.nominated >= 0)
            self.come_true(evicted, placed)
        return decided

    def pass_on(self) -> bool:
        """Look at the cycle after the one that binds; False if it is that one."""
        bound, self.bound = self.bound, frozenset()
        self.number += bool(bound)
        return bool(bound)

    def next_cycle(self, told: Collection[TaskState] = ()) -> bool:
        """Let what was decided come true, but for what is only ``told`` to go, and give away what is left over.

        False if the next cycle is as this one.
        """
        bound, (evicted, placed) = self.bound, self._end_round()
        self.bound = frozenset(t for t in placed if t.nominated >= 0)
        for task in told:
            stand(self.session, task)
            self.session.refresh(task.workload)
        self.come_true([t for t in evicted if t not in told], placed)
        self.moved = frozenset()
        return bool(bound or placed or evicted)

    def _end_round(self) -> tuple[Sequence[TaskState], Sequence[TaskState]]:
        """Give what was decided to leave and to be placed, and begin anew; others are served at once beside it."""
        decided, self.decided, self.helped = self.decided, AcceptedSet([], []), frozenset()
        return decided.evicted, [*decided.placed, *self.serve_at_once(decided.evicted)]


class SearchesAhead:
    """What a cycle would find in the state that is looked at, were all waits over.

    ``judge`` makes what judges sets there; without it they are chosen as if nothing followed from them.
    """

    def __init__(self, ahead: Ahead, causes: Mapping[Cause, MakeRules], judge: Judge | None) -> None:
        self.ahead = ahead
        self.state = ahead.state
        self.causes = causes
        self.judge = judge
        self._searches = Memo[tuple[Cause, bool, bool], ContenderSearch](
            lambda key: self._search(*key), lambda _: ahead.number, lambda one, other: one.cause == other.cause
        )

    def best_set(self, asked: Asked, *, judged: bool = False) -> SearchResult:
        """Search for the best set for one workload; the session stays as it is.

        ``judged``: it is what a cycle would choose, for which what follows from a set decides as well. A search that
        gives up among many is made once more among the fewer of which no minimum runtime holds one in the next cycle.
        """
        found, minimum = self.searched(asked, judged=judged), self.ahead.plugins.min_runtime
        if found.cut and minimum.may_hold(self.state.session, asked.rules.cause, asked.workload.leaf):
            found = self.searched(asked, judged=judged, waits=True)
        return found

    def searched(self, asked: Asked, *, judged: bool, waits: bool = False) -> SearchResult:
        """Search for the best set; with ``waits``, as minimum runtimes and delays stand.

        Consolidate moves nothing where what reclaim or preempt may take as these stand comes cheaper.
        """
        search = self._by(asked.cause, judged=judged, waits=waits)
        found = search.best_set(asked.rules, SearchBudget(STEPS), asked.cause)
        if asked.cause == "consolidate" and found.pieces:
            price = partial(price_of, search, asked.rules, found)
            standing = self._by(asked.cause, judged=judged, waits=True)
            if cheaper(standing, asked.workload, price, SearchBudget(STEPS)) is not None:
                return SearchResult()
        return found

    def on_its_node(self, found: SearchResult) -> bool:
        """Whether something moves to other devices of its node: consolidate does so, and the rescheduler does not."""
        if (played := found.played) is None or played.undone is None:
            return False
        with self.state.session.scenario():
            self.state.session.repeat(played.undone)
            return any(t.nominated == t.leaving for t in played.evicted)

    def as_waits_stand(self, asked: Asked, best: SearchResult, *, judged: bool) -> SearchResult:
        """Give the set that a cause takes now, which may be another than the ``best`` were all waits over."""
        session, workload = self.state.session, asked.workload
        waits = partial(puts_off, self.state.plugins, session, asked.cause, workload)
        if asked.cause == "reschedule" and session.now < moved_for_from(session, workload):
            return SearchResult()
        if not best.pieces or not waits(best.pieces):
            return best
        instead = self.searched(asked, judged=judged, waits=True)
        return SearchResult() if not instead.pieces or waits(instead.pieces) else instead

    def as_it_is(self, asked: Asked) -> SearchResult:
        """Give what serves a workload for which what was decided leaves room, as its turn comes in the same cycle."""
        if not self.ahead.decided.evicted:
            return SearchResult()
        return SearchResult(played=self._by(asked.cause, judged=True).as_it_is(asked.rules))

    def _by(self, cause: Cause, *, judged: bool, waits: bool = False) -> ContenderSearch:
        """Give the search of a cause; both causes that move have one."""
        return self._searches(("consolidate" if cause == "reschedule" else cause, judged, waits))

    def _search(self, cause: Cause, judged: bool, waits: bool) -> ContenderSearch:
        plugins, judge = (self.state if waits else self.ahead).plugins, self._further if judged else None
        return ContenderSearch(replace(self.thought(), plugins=plugins, aftermath=judge), cause)

    @cached_property
    def _further(self) -> Consequences | None:
        """The judge of what is searched for here."""
        return None if self.judge is None else self.judge(self.thought())

    @cached_property
    def _memory(self) -> VictimMemory:
        """What is known of scenarios, kept apart from what the actions know."""
        known = self.state.memory
        if known.thought is None:
            known.thought = VictimMemory(self.state.session, self.state.fairness, known.holdings.copy())
        return known.thought

    @cached_property
    def _leaves(self) -> LeafMemo:
        """What may be taken of each leaf, which all searches here share."""
        return leaf_memo(self.state.session, self._memory.holdings, self.state.pieces)

    def thought(self) -> EvictionState:
        """Give what a pass needs to search in a scenario: nothing is known of this cycle there, and nothing written."""
        ahead, session = self.ahead, self.state.session
        steps = [place_step(session, t, self.state.cycle) for t in ahead.served if t.node >= 0]
        return replace(
            self.state, plan=Plan(session.now, steps=steps), endings=ahead.endings, plugins=ahead.plugins,
            memory=self._memory, detailed=False, aftermath=None, moved=set(ahead.moved), paid=ahead.bound, memories={},
            helped=ahead.helped, budget=SearchBudget(STEPS), leaves=self._leaves,
        )  # fmt: skip


def settle(
    state: EvictionState, evicted: Iterable[TaskState], placed: Iterable[TaskState], later: int = 0
) -> Collection[WorkloadState]:
    """Let what was evicted leave, and bind what was nominated so many µs ``later`` if it fits; gives whose it is.

    A core is bound as a whole, or waits.
    """
    session, promised = state.session, dict[WorkloadState, set[TaskState]]()
    touched = dict.fromkeys(_leave(session, evicted))
    for task in placed:
        if task.nominated >= 0 and task.leaving < 0:
            promised.setdefault(task.workload, set()).add(task)
        touched[task.workload] = None
    for workload, tasks in promised.items():
        for group in bound_together(workload):
            if not tasks.isdisjoint(group):
                bind_group(session, state.placer, group)
    for workload in touched:
        session.note_start(workload, later)
        session.refresh(workload)
    state.plugins.budgets.rise(session)
    return touched


def _leave(session: Session, evicted: Iterable[TaskState]) -> list[WorkloadState]:
    """Let what was evicted leave, and give whose it is; queues are relieved of what was under notice of it."""
    gone = [t for t in evicted if not t.stuck and (t.leaving >= 0 or t.phase is TERMINATING)]
    for task in gone:
        leave(session, task)
    if session.queues.under_notice:
        count_told(session)
    return [t.workload for t in gone]
