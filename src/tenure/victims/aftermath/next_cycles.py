"""The cycles after a finished plan, played for those who would be helped in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from typing import Final, NamedTuple

from tenure.engine.refusal import Refusal
from tenure.engine.state.notices import expire, in_turn, notice_of
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TERMINATING, TaskState, WorkloadState
from tenure.model.settings import Cause
from tenure.victims.aftermath.ahead import SearchesAhead
from tenure.victims.aftermath.asked import (
    MOST_ASKED,
    MOST_LOOKED_AT,
    Asked,
    AskedWorkloads,
    by_name,
    may_be_moved_for,
    taken_again,
    will_grow,
)
from tenure.victims.aftermath.follow_ups import MOST_HELPED, alike, follow_up
from tenure.victims.bounds.room_demand import room_of_all
from tenure.victims.dry_run.outcome import FollowUp
from tenure.victims.passes.preemption_pass import MakeRules
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.pieces import Piece
from tenure.victims.search.trials import SearchBudget, SearchResult

MOVES: Final[Collection[Cause]] = ("consolidate", "reschedule")


Enforce = Callable[[Callable[[], EvictionState]], list[TaskState]]
"""Evicts what quotas would in the cycle that is looked at, whose state it asks for; gives the tasks."""


class NextCycles(NamedTuple):
    """What would be done in the cycles after a plan: all that follows, and why some would lose what it promised."""

    follow_ups: dict[FollowUp, None]
    refusals: dict[WorkloadState, Refusal]


class CyclesAhead:
    """The cycles after a plan whose evictions are made on the session: what they do, and for which workloads."""

    def __init__(self, searches: SearchesAhead, asked: AskedWorkloads, enforce: Enforce) -> None:
        self.state = searches.state
        self.session = self.state.session
        self.searches = searches
        self.ahead = searches.ahead
        self.asked = asked
        self.enforce = enforce
        self._causes: Collection[Cause] = searches.causes.keys()

    def play(self, given_up: Iterable[WorkloadState]) -> NextCycles:
        """Play them for all that wait, as each cycle does.

        Where many wait, only for the plan's victims, for those of earlier plans that still wait, for which it may have
        made a difference, for what grows, for contenders whose sets were ``given_up``, and for some that others may
        move for.
        """
        victims, growing = self._victims(), self.asked.growing()
        ask_later = any(will_grow(w) or any(t.phase is TERMINATING for t in w.tasks) for w in victims)
        may_follow = self.asked.may_be_helped(victims, self.asked.enabled(""), self.state.memory.shares())
        if not (ask_later or growing or any(may_follow)):
            return NextCycles({}, {})
        return self._played(victims, dict.fromkeys([*victims, *growing[:MOST_ASKED], *given_up], self._causes))

    def _played(
        self, victims: Collection[WorkloadState], asked_for: dict[WorkloadState, Collection[Cause]]
    ) -> NextCycles:
        """Play them, and say what is done for victims, which are asked in brief if they are many."""
        session, found = self.session, NextCycles({}, {})
        said = {w for w in asked_for if w in victims or w.last_evicted_at is not None}
        in_brief = said if len(said) > MOST_HELPED else ()
        self.budget = SearchBudget(MOST_HELPED * len(self._causes))
        with self.ahead.look():
            promised, turns, goes_on = frozenset(session.nominated), in_turn(session), False
            while goes_on or turns:  # one follow-up may let another follow
                if not goes_on:
                    self.ahead.bound = frozenset(session.nominated)
                    self.ahead.come_true(_next_turn(session, turns), sorted(session.nominated, key=by_name))
                at_risk = self._at_risk(promised)
                self.ahead.decided.evicted.extend(self.enforce(self.searches.thought))
                for asked, best in self._round(self._turns(asked_for), in_brief):
                    if asked.workload in said:
                        found.follow_ups[follow_up(asked, best)] = None
                    for piece in best.pieces or ():
                        if not at_risk.isdisjoint(piece.tasks):
                            found.refusals[piece.workload] = taken_again(piece.workload, asked)
                told = dict.fromkeys(t for t in self.ahead.decided.evicted if notice_of(session, t.workload))
                turns += [list(told)] if told else []  # it goes after the others
                goes_on = self.ahead.next_cycle(told)
        return found

    def _at_risk(self, promised: Collection[TaskState]) -> set[TaskState]:
        """Give what was promised that another might take: its leaf is not within guaranteed as the cycle begins."""
        held = {w: [t for t in w.tasks if t in promised] for w in {t.workload for t in promised}}
        return {t for workload, tasks in held.items() if self.asked.is_at_risk(workload, tasks) for t in tasks}

    def _victims(self) -> list[WorkloadState]:
        """Give the workloads that the plan evicts, and some that earlier ones have evicted and that still wait."""
        evicting = {s.workload for s in self.state.plan.steps if s.action == "evict"}
        workloads, waiting = self.session.workloads, self.session.waiting
        victims = [w for key in sorted(evicting) if (w := workloads.get(key)) is not None and w.leaf >= 0]
        before = (w for w in waiting.all() if w.last_evicted_at is not None and w.key not in evicting)
        return [*victims, *islice(before, MOST_LOOKED_AT)]

    def _turns(self, asked_for: dict[WorkloadState, Collection[Cause]]) -> dict[WorkloadState, Collection[Cause]]:
        """Give the workloads that have a turn in a cycle, and by which causes: all that wait.

        Of many, those that are ``asked_for``, and the first that might fit by moves: these may let a victim be helped.
        """
        if len(everyone := self.session.waiting.all()) <= MOST_LOOKED_AT:
            return dict.fromkeys(everyone, self._causes)
        fits = partial(may_be_moved_for, self.session, room=room_of_all(self.session))
        return dict.fromkeys(islice(filter(fits, everyone), MOST_ASKED), MOVES) | asked_for

    def _round(
        self, waiting: Mapping[WorkloadState, Collection[Cause]], in_brief: Collection[WorkloadState]
    ) -> Iterator[tuple[Asked, SearchResult]]:
        """Give what a cycle would do for those who wait, or by moves alone: by cause, in turn, on what was decided.

        Where a cause puts it off the next are asked too. What would follow in turn is asked for all not ``in_brief``.
        """
        fairness = self.state.fairness
        for cause, make in self.asked.enabled("").items():
            in_vain, shares = set[object](), fairness.now()  # shares as they are until something is decided
            turns = [w for w in self.state.in_order(shares) if cause in waiting.get(w, ())]
            turns = self._by_candidate(turns, make) if cause == "requeue" and len(turns) > 1 else turns
            gone = self.ahead.losing()  # they contend in the next cycle
            for workload in turns:
                if workload in gone:
                    continue
                for one in self.asked.may_be_helped([workload], {cause: make}, shares):
                    if alike(self.session, workload) in in_vain or not self.budget.spend():
                        continue
                    if self.ahead.decide(self.searches.as_it_is(one)):
                        shares = fairness.now()
                        turns += [workload] if workload.step is not None else []
                        continue
                    judged = workload not in in_brief
                    best = self.searches.best_set(one, judged=judged)
                    if not best.pieces or (cause == "reschedule" and self.searches.on_its_node(best)):
                        in_vain.add(alike(self.session, workload))
                        continue
                    yield one, best
                    now = self.searches.as_waits_stand(one, best, judged=judged)
                    if now.pieces and now is not best:
                        yield one, now
                    if self.ahead.decide(now, workload):
                        shares, gone = fairness.now(), self.ahead.losing()
                        turns += [workload] if workload.step is not None else []

    def _by_candidate(self, turns: list[WorkloadState], make: MakeRules) -> list[WorkloadState]:
        """Put those who wait into the order in which requeue comes to them, candidate by candidate."""
        found, order = dict[WorkloadState, set[Piece]](), None
        for asked in self.asked.may_be_helped(turns, {"requeue": make}, self.state.fairness.now()):
            if pieces := self.searches.best_set(asked).pieces:
                found[asked.workload], order = set(pieces), asked.rules.in_turn
        tried = [] if order is None else list(order(dict.fromkeys(chain.from_iterable(found.values()))))
        place = {w: next((n for n, s in enumerate(tried) if own.issubset(s)), len(tried)) for w, own in found.items()}
        return sorted(turns, key=lambda w: place.get(w, len(tried)))


def _next_turn(session: Session, turns: list[list[TaskState]]) -> list[TaskState]:
    """Take out who leaves next; nothing yet where their notices end now: they terminate first, and contend later."""
    ending = [t for t in turns[0] if t.notice is not None]
    for task in ending:
        expire(session, task)
    return [] if ending else turns.pop(0)
