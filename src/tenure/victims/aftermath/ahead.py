"""The state that decisions lead to, in a scenario, and what a cycle would find in it were all waits over.

What was evicted has left, what was nominated is bound, and minimum runtimes, delays and cooldowns are over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

from tenure.engine.plan import Plan
from tenure.engine.serving.allocation import serve
from tenure.engine.state.evictions import depart
from tenure.engine.state.notices import notice_of
from tenure.engine.state.workloads import TERMINATING, TaskState, WorkloadState
from tenure.model.settings import Cause
from tenure.shields.min_runtime import any_minimum
from tenure.shields.plugins import EvictionPlugins
from tenure.victims.aftermath.asked import Asked
from tenure.victims.candidates.gatherer import LeafMemo, leaf_memo
from tenure.victims.dry_run.outcome import AcceptedSet, Consequences
from tenure.victims.passes.preemption_pass import MakeRules, PreemptionPass
from tenure.victims.recording.state import EvictionState, VictimMemory
from tenure.victims.search.trials import SearchBudget, SearchResult

STEPS = 512
"""Sets that are tried for one workload and one cause."""

Judge = Callable[[EvictionState], Consequences]


class SearchesAhead:
    """The searches of a later cycle; what one finds out holds until the state is another, see `forget`.

    ``endings`` are those of that cycle, ``moved`` the workloads (namespace/name) that it has moved, and ``bound`` the
    tasks that it bound on a nomination: both stay in it. ``judge`` makes what judges sets there; without it they are
    chosen as if nothing followed from them.
    """

    def __init__(self, state: EvictionState, causes: Mapping[Cause, MakeRules], judge: Judge | None) -> None:
        self.state = state
        self.causes = causes
        self.judge = judge
        self.plugins = state.plugins.without_times()
        self.endings = state.endings
        self.moved: frozenset[str] = frozenset()
        self.bound: frozenset[TaskState] = frozenset()
        self._passes: dict[tuple[Cause, bool, bool], PreemptionPass] = {}
        self._leaves: LeafMemo | None = None

    def forget(self, moved: frozenset[str] = frozenset()) -> None:
        """What was found out holds no longer, but that some workloads were ``moved``."""
        self.moved = moved
        for search in self._passes.values():
            search.gatherer.close()
        self._passes.clear()

    def best_set(self, asked: Asked, *, judged: bool = False) -> SearchResult:
        """Search for the best set for one workload; the session stays as it is.

        ``judged``: it is what a cycle would choose, for which what follows from a set decides as well. A search that
        gives up among many is made once more among the fewer of which no minimum runtime holds one in the next cycle.
        """
        found = self.searched(asked, self.plugins, judged=judged)
        if found.cut and any_minimum(self.state.session.settings, self.state.session.queues):
            found = self.searched(asked, self.state.plugins, judged=judged)
        return found

    def searched(self, asked: Asked, plugins: EvictionPlugins, *, judged: bool) -> SearchResult:
        """Search for the best set that some plugins allow."""
        key = cause, _, _ = asked.rules.cause, judged, plugins is self.plugins
        search = self._passes.get(key)
        if search is None:
            state = replace(self._thought(), plugins=plugins, aftermath=self._further if judged else None)
            search = self._passes[key] = PreemptionPass(state, cause, self.causes[cause])
        return search.best_set(asked.workload, asked.rules, SearchBudget(STEPS))

    @cached_property
    def _further(self) -> Consequences | None:
        """The judge of what is searched for here."""
        return None if self.judge is None else self.judge(self._thought())

    def _thought(self) -> EvictionState:
        """Give what a pass needs to search in a scenario: nothing is known of this cycle there, and nothing written."""
        state, known = self.state, self.state.memory
        if known.thought is None:  # what is known there is kept apart from what the actions know
            known.thought = VictimMemory(state.session, state.fairness, known.holdings.copy())
        if self._leaves is None:
            self._leaves = leaf_memo(state.session, known.thought.holdings)
        return replace(
            state, plan=Plan(state.session.now), endings=self.endings, plugins=self.plugins, memory=known.thought,
            detailed=False, aftermath=None, moved=set(self.moved), paid=self.bound, memories={},
            budget=SearchBudget(STEPS), leaves=self._leaves,
        )  # fmt: skip


class StateAhead:
    """The session as it will be; all that is done to it within `look` or `undone` is gone after that.

    ``decided`` is what the cycle that is looked at evicts and places so far.
    """

    def __init__(self, state: EvictionState, searches: SearchesAhead) -> None:
        self.state = state
        self.session = state.session
        self.searches = searches
        self.budgets = searches.plugins.budgets
        self.decided = AcceptedSet([], [])

    @contextmanager
    def look(self) -> Iterator[None]:
        """Look one step ahead."""
        with self.undone():
            self.session.new_epoch()
            yield

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Undo after the block what is done in it, and forget what was found."""
        endings, risen = self.searches.endings, self.budgets.risen
        with self.session.scenario(), self.budgets.ledger.tentatively():
            try:
                yield
            finally:
                self.searches.forget()
                self.searches.endings, self.budgets.risen = endings, risen

    def come_true(self, evicted: Iterable[TaskState], placed: Iterable[TaskState]) -> None:
        """Let it leave and be bound, and then serve in order those who wait; what is asked next is asked later."""
        touched, rest = settle(self.state, evicted, placed), self.serve_rest()
        self.searches.endings = self.searches.endings.past([*touched, *(t.workload for t in rest)])

    def serve_rest(self) -> list[TaskState]:
        """Serve in order those who wait, as far as there is room; gives the tasks that were placed."""
        placed = serve(self.session, self.state.placer, self.state.memory.shares()).placed
        for workload in dict.fromkeys(t.workload for t in placed):
            self.session.note_start(workload)
        return placed

    def carry_out(self, found: SearchResult) -> bool:
        """Let a set come true, if there is one; what it moves is not moved again for the next step."""
        if decided := self.decide(found):
            self._end_round()
        return decided

    def decide(self, found: SearchResult) -> bool:
        """Let a set be decided, if there is one: as in a plan, what it evicts asks for nothing until the next round."""
        played = found.played
        if played is None or played.undone is None:
            return False
        self.session.repeat(played.undone)
        self.decided.evicted.extend(played.evicted)
        self.decided.placed.extend(played.placed)
        self.searches.forget(self.searches.moved.union(t.workload.key for t in played.evicted if t.node >= 0))
        return True

    def _end_round(self) -> None:
        """Let what was decided come true; what is left over during a notice goes to those who ask for it then."""
        decided, self.decided = self.decided, AcceptedSet([], [])
        if any(notice_of(self.session, t.workload) for t in decided.evicted):
            decided.placed += self.serve_rest()
        if decided.evicted or decided.placed:
            touched = settle(self.state, decided.evicted, decided.placed)
            self.searches.endings = self.searches.endings.after(touched)
            self.searches.forget(self.searches.moved)

    def next_cycle(self) -> bool:
        """Let what was decided come true and give away what is left over; False if the next cycle is as this one."""
        searches = self.searches
        bound, searches.bound = searches.bound, frozenset(placed := self.decided.placed)
        self._end_round()
        if placed:
            searches.endings = searches.endings.past(t.workload for t in self.serve_rest())
        searches.forget()
        return bool(bound or placed)


def settle(
    state: EvictionState, evicted: Iterable[TaskState], placed: Iterable[TaskState]
) -> Collection[WorkloadState]:
    """Let what was evicted leave, and what was nominated be bound where there is room; gives whose tasks these are."""
    session = state.session
    touched: dict[WorkloadState, None] = {}
    for task in evicted:
        if not task.stuck and (task.leaving >= 0 or task.phase is TERMINATING):
            if task.leaving >= 0:
                depart(session, task)
            else:
                session.withdraw(task)
            touched[task.workload] = None
    for task in placed:
        if task.nominated >= 0 and task.leaving < 0:
            node, devices = task.nominated, task.nominated_devices
            session.withdraw(task)
            if state.placer.fits_at(task, node):
                session.bind(task, node, devices)
            else:
                session.nominate(task, node, devices)
        touched[task.workload] = None
    for workload in touched:
        session.note_start(workload)
        session.refresh(workload)
    state.plugins.budgets.rise(session)
    return touched
