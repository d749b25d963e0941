"""Causes add up: what all enabled causes would do once a set of victims has gone (spec: the cycle, "Causes add up").

This is the one place where that is judged. A set is evicted and served in a scenario; here the scenario is taken one
step further: what was evicted has left, what was nominated is bound, and minimum runtimes, delays and cooldowns are
over. Then every enabled cause is asked

* what it would evict or move for each victim that waits now: a *follow-up*. Its cost is added to that of the set;
* whether it would take the contender's place for a workload that waits. Such a set is refused, unless the contender's
  queue stays within its guaranteed.

Follow-ups go one level deep: the search for one does not ask what would follow from it. The search for what would take
the contender's place does, as that of a cycle, where the rules let the contender go by itself; what it asks is answered
as if nothing followed from that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice

from tenure.engine.plan import Plan
from tenure.engine.refusal import Refusal
from tenure.engine.serving.allocation import serve
from tenure.engine.state.evictions import depart, evict
from tenure.engine.state.notices import in_turn, notice_of
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import PENDING, TERMINATING, TaskState, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.model.settings import Cause
from tenure.shields.min_runtime import any_minimum
from tenure.shields.plugins import EvictionPlugins, puts_off
from tenure.victims.aftermath.asked import MOST_LOOKED_AT, Asked, AskedWorkloads
from tenure.victims.candidates.gatherer import LeafMemo, leaf_memo
from tenure.victims.dry_run.dry_runs import AcceptedSet, Enough, FollowUp, NextCycles, to_the_end
from tenure.victims.passes.preemption_pass import MakeRules, PreemptionPass
from tenure.victims.recording.state import EvictionState, VictimMemory
from tenure.victims.rules.causes import CauseRules
from tenure.victims.rules.pieces import held
from tenure.victims.search.trials import SearchBudget, SearchResult

TAKEN_AGAIN = "taken-again"

STEPS = 512
"""Sets that are tried for one workload and one cause."""

MOST_HELPED = 16
"""The most victims of one set, or of a plan, for which a follow-up is searched, of those that do not stand alike."""

MOST_ASKED = 4
"""Of all of them, those for which a search is made."""

MOST_CUT = 2
"""Searches for one rival and one cause that may give up; after that it is not searched for again in the cycle."""

MOST_STEPS = 4
"""Steps of one such workload that are looked at, one after the other."""


class Aftermath:
    """What follows from sets that are evicted in one cycle.

    Parameters
    ----------
    state
        The cycle's evictions.
    causes
        By cause that may follow, what makes its rules for a contender; in the order in which they are asked.
    last
        Whether what is searched for here is chosen as if nothing followed from it.
    """

    def __init__(self, state: EvictionState, causes: Mapping[Cause, MakeRules], *, last: bool = False) -> None:
        self.state = state
        self.last = last
        self.session: Session = state.session
        self.causes = causes
        self.plugins = state.plugins.without_times()
        self.asked = AskedWorkloads(state.session, causes)
        self._passes: dict[tuple[Cause, bool, bool], PreemptionPass] = {}
        self._helped: set[int] = set()
        self._helping: list[SearchResult] = []
        self._moved: frozenset[str] = frozenset()
        self._bound: frozenset[TaskState] = frozenset()
        self._endings = state.endings
        self._decided = AcceptedSet([], [])
        self._cut = Counter[tuple[WorkloadState, Cause]]()
        self._leaves: LeafMemo | None = None

    # -- the questions ------------------------------------------------------------------------------------------------

    def judge(
        self,
        contender: WorkloadState,
        victims: Sequence[WorkloadState],
        result: AcceptedSet,
        cause: Cause,
        shares: CurrentShares,
        enough: Enough | None = None,
        *,
        accepted: bool = False,
    ) -> Refusal | None:
        """Refuse a set that was carried out on the session, unless it was ``accepted`` before.

        With ``enough``, it is noted in ``result`` what follows from it, until that is enough.
        """
        causes = self.asked.enabled(cause)
        got = [t for t in result.placed if t.workload is contender]
        at_risk = self.asked.is_at_risk(contender, got, self.state.placer)
        growing = self._growing(contender) if at_risk else []
        rivals = partial(self.asked.rivals, contender, victims, got, result, causes, shares)
        result.may_follow = (
            bool(growing)
            or any(map(_will_grow, victims))
            or any(self.asked.may_be_helped(victims, causes, shares))
            or (at_risk and any(rivals()))
        )
        if not result.may_follow or (not at_risk and enough is None):
            return None
        with self._ahead():
            self.plugins.budgets.foresee(self.session, cause, contender, result.evicted)
            self._settle(result, contender, at_risk=at_risk)
            taker = None
            if at_risk and not accepted and self.asked.is_at_risk(contender, got):
                taker = self._taker(contender, rivals())
                if taker is None and len(growing) > 1:  # one alone is a rival like any other
                    taker = self._grower(contender, growing)
            if taker is None and enough is not None:
                helped = self.asked.may_be_helped(victims, causes, shares)
                result.follow_ups, result.all_known = self._found(helped, enough)
                if at_risk and not (accepted or self.last):
                    taker = next((one for each in self._helping if (one := self._then(each, contender, rivals))), None)
        return None if taker is None else _taken_again(contender, taker)

    def _growing(self, contender: WorkloadState | None = None) -> list[WorkloadState]:
        """Give all workloads, or the others, that ask for more once what they were promised is bound."""
        nominated = {t.workload for t in self.session.nominated}
        return sorted((w for w in nominated if w is not contender and _will_grow(w)), key=lambda w: w.key)

    def of(self, cause: Cause, tasks: Sequence[TaskState]) -> tuple[FollowUp, ...]:
        """Give the follow-ups of evicting tasks without a beneficiary; the session stays as it is."""
        session, causes, shares = self.session, self.asked.enabled(cause), self.state.memory.shares()
        victims = list(dict.fromkeys(t.workload for t in tasks))
        with self._ahead():
            for task in tasks:
                evict(session, task)
            for victim in victims:
                session.refresh(victim)
            waiting = [v for v in victims if v.step is not None and v.entry is not None]
            if not list(self.asked.may_be_helped(waiting, causes, shares)):
                return ()
            for first in waiting:
                if first.step is not None and first.entry is not None:
                    serve(session, self.state.placer, shares, first, victims, endings=self.state.endings)
            placed = [t for v in victims for t in v.tasks if t.nominated >= 0 or t.fresh]
            self._endings = self._endings.after(settle(self.state, tasks, placed))
            return self._found(self.asked.may_be_helped(victims, causes, shares))[0]

    def of_plan(self, given_up: Iterable[WorkloadState] = ()) -> NextCycles:
        """Give what follows from a finished plan, whose evictions are made on the session, and who would lose by it.

        The cycles that follow are played for those who would be helped: its victims, those of earlier plans that still
        wait, for which this plan may have made a difference, who grows, and contenders whose sets were ``given_up``.
        """
        session, shares = self.session, self.state.memory.shares()
        evicting = {s.workload for s in self.state.plan.steps if s.action == "evict"}
        victims = [w for key in sorted(evicting) if (w := session.workloads.get(key)) is not None and w.leaf >= 0]
        before = (w for w in session.waiting.all() if w.last_evicted_at is not None and w.key not in evicting)
        victims += islice(before, MOST_LOOKED_AT)
        ask_later = any(_will_grow(w) or any(t.phase is TERMINATING for t in w.tasks) for w in victims)
        growing, found = self._growing(), NextCycles({}, {})
        if not (ask_later or growing or any(self.asked.may_be_helped(victims, self.asked.enabled(""), shares))):
            return found
        asked_for, said = dict.fromkeys([*victims, *growing[:MOST_ASKED], *given_up]), set(victims)
        with self._ahead():
            budget, promised = SearchBudget(MOST_HELPED * len(self.causes)), frozenset(session.nominated)
            turns, goes_on = in_turn(session), False
            while goes_on or turns:  # one follow-up may let another follow
                if not goes_on:
                    self._bound = frozenset(session.nominated)
                    self._come_true(AcceptedSet([], sorted(self._bound, key=_name), evicted=turns.pop(0)))
                for asked, best in self._round(asked_for, said, budget):
                    if asked.workload in said:
                        found.follow_ups[_follow_up(asked, best)] = None
                    for piece in best.pieces or ():
                        if self.asked.is_at_risk(piece.workload, [t for t in piece.tasks if t in promised]):
                            found.refusals[piece.workload] = _taken_again(piece.workload, asked)
                told = any(notice_of(session, t.workload) for t in self._decided.evicted)  # and goes after the others
                goes_on = not (turns and told) and self._next_cycle()
        return found

    def _round(
        self, waiting: Collection[WorkloadState], victims: Collection[WorkloadState], budget: SearchBudget
    ) -> Iterator[tuple[Asked, SearchResult]]:
        """Give what a cycle would do for those who wait: cause by cause, in their turn, and each on what was decided.

        Where what a cause would do is put off, it is said what the next causes would do as well. What would follow from
        that in turn is asked for others than the ``victims``.
        """
        for cause, make in self.asked.enabled("").items():
            in_vain = set[object]()
            turns = [w for w in self.state.in_order(self.state.fairness.now()) if w in waiting]
            for workload in turns:
                for one in self.asked.may_be_helped([workload], {cause: make}, self.state.fairness.now()):
                    if _alike(workload) in in_vain or not budget.spend():
                        continue
                    sets = list(self._as_waits_stand(one, judged=workload not in victims))
                    if not sets:
                        in_vain.add(_alike(workload))
                    for best, is_put_off in sets:
                        yield one, best
                        if not is_put_off and self._decide(best) and workload.step is not None:
                            turns.append(workload)

    def _as_waits_stand(self, asked: Asked, *, judged: bool) -> Iterator[tuple[SearchResult, bool]]:
        """Give the set that a cause would take were all waits over, and what it takes instead of one that is put off.

        Beside each, whether it is put off.
        """
        waits = partial(puts_off, self.state.plugins, self.session, asked.rules.cause, asked.workload)
        best = self._best_set(asked, judged=judged)
        if best.pieces:
            yield best, (put_off := waits(best.pieces))
            instead = self._searched(asked, self.state.plugins, judged=judged) if put_off else best
            if put_off and instead.pieces and not waits(instead.pieces):
                yield instead, False

    def _grower(self, contender: WorkloadState, growing: Sequence[WorkloadState]) -> Asked | None:
        """Give the first workload that takes something of the contender where several grow, one after the other."""
        with self._undone():
            return next((asked for asked, found in self._growth(growing) if _holds(found, contender)), None)

    def _growth(self, growing: Iterable[WorkloadState]) -> Iterator[tuple[Asked, SearchResult]]:
        """Let workloads grow as long as room is made for them; gives who is helped, and by which set, step by step."""
        for workload in islice(growing, MOST_ASKED):
            for _ in range(MOST_STEPS):
                helped = self.asked.may_be_helped([workload], self.asked.enabled(""), self.state.fairness.now())
                if (found := self._first_set(helped)) is None:
                    break
                yield found
                self._carry_out(found[1])

    def _first_set(self, helped: Iterable[Asked]) -> tuple[Asked, SearchResult] | None:
        """Give the first cause that finds a set for a workload, and that set."""
        sets = ((asked, self._best_set(asked)) for asked in helped)
        return next((pair for pair in sets if pair[1].pieces), None)

    @contextmanager
    def _ahead(self) -> Iterator[None]:
        """Look one step ahead: what is done and found in the block is gone after it."""
        with self._undone():
            self.session.new_epoch()
            yield

    @contextmanager
    def _undone(self) -> Iterator[None]:
        """Undo after the block what is done in it, and forget what was found."""
        budgets = self.plugins.budgets
        endings, risen = self._endings, budgets.risen
        with self.session.scenario(), budgets.ledger.tentatively():
            try:
                yield
            finally:
                self._forget()
                self._endings, budgets.risen = endings, risen

    def _carry_out(self, found: SearchResult) -> bool:
        """Let a set come true, if there is one; what it moves is not moved again for the next step."""
        if decided := self._decide(found):
            self._end_round()
        return decided

    def _decide(self, found: SearchResult) -> bool:
        """Let a set be decided, if there is one: as in a plan, what it evicts asks for nothing until the next round."""
        played = found.played
        if played is None or played.undone is None:
            return False
        self.session.repeat(played.undone)
        self._decided.evicted.extend(played.evicted)
        self._decided.placed.extend(played.placed)
        self._forget(self._moved.union(t.workload.key for t in played.evicted if t.node >= 0))
        return True

    def _end_round(self) -> None:
        """Let what was decided come true; what is left over during a notice goes to those who ask for it then."""
        decided, self._decided = self._decided, AcceptedSet([], [])
        if any(notice_of(self.session, t.workload) for t in decided.evicted):
            decided.placed += self._serve_rest()
        if decided.evicted or decided.placed:
            self._endings = self._endings.after(settle(self.state, decided.evicted, decided.placed))
            self._forget(self._moved)

    def _next_cycle(self) -> bool:
        """Let what was decided come true and give away what is left over; False if the next cycle is as this one.

        What is bound on a nomination stays in the cycle in which it is bound.
        """
        bound, self._bound = self._bound, frozenset(placed := self._decided.placed)
        self._end_round()
        if placed:
            self._endings = self._endings.past(t.workload for t in self._serve_rest())
        self._forget()
        return bool(bound or placed)

    def _forget(self, moved: frozenset[str] = frozenset()) -> None:
        """What was found out holds no longer, but that some workloads were ``moved``."""
        self._moved = moved
        for search in self._passes.values():
            search.gatherer.close()
        self._passes.clear()

    def _settle(self, result: AcceptedSet, contender: WorkloadState, *, at_risk: bool) -> None:
        """Let what a set changes come true; or all that the cycle has decided so far.

        That may matter where others might take from the contender: a rival may take it together with that place.
        What is left over goes to those who ask for it now, before a workload that grows only once it is bound; beside a
        reservation it is left to the next cycle.
        """
        session = self.session
        if session.settings.backfill != "easy" and self._growing():
            result = replace(result, placed=[*result.placed, *self._serve_rest()])
        if at_risk and (len(session.nominated) <= MOST_LOOKED_AT or self._growing(contender)):
            result = AcceptedSet([], sorted(session.nominated, key=_name), evicted=sorted(session.leaving, key=_name))
        self._come_true(result)

    def _come_true(self, result: AcceptedSet) -> None:
        """Let it leave and be bound, and then serve in order those who wait; what is asked next is asked later."""
        touched = settle(self.state, result.evicted, result.placed)
        self._endings = self._endings.past([*touched, *(t.workload for t in self._serve_rest())])

    def _serve_rest(self) -> list[TaskState]:
        """Serve in order those who wait, as far as there is room; gives the tasks that were placed."""
        placed = serve(self.session, self.state.placer, self.state.memory.shares()).placed
        for workload in dict.fromkeys(t.workload for t in placed):
            self.session.note_start(workload)
        return placed

    # -- what is found ------------------------------------------------------------------------------------------------

    def _taker(self, contender: WorkloadState, rivals: Iterable[Asked]) -> Asked | None:
        """Give the first pending workload for which the best set of its cause holds something of the contender.

        Who asks for several steps, one after the other, is looked at for some of them.
        """
        for asked in list(islice(rivals, MOST_ASKED)):
            if asked.workload.step is None or asked.workload.entry is None:  # served since it was asked for
                continue
            with self._undone():
                if self._takes(asked, contender):
                    return asked
        return None

    def _then(
        self, found: SearchResult, contender: WorkloadState, rivals: Callable[[], Iterable[Asked]]
    ) -> Asked | None:
        """Give who would take the contender's place, but by a move, once a follow-up has come true."""
        with self._undone():
            taking = (r for r in rivals() if r.rules.cause != "consolidate")
            return self._taker(contender, taking) if self._carry_out(found) else None

    def _takes(self, asked: Asked, contender: WorkloadState) -> bool:
        rival, rules, _ = asked
        if self._cut[rival, rules.cause] >= MOST_CUT:
            return False
        for _ in range(MOST_STEPS):
            found = self._best_set(Asked(rival, rules))
            self._cut[rival, rules.cause] += found.cut
            if found.pieces and not self.last and not _holds(found, contender) and self._alone(rules, contender):
                found = self._best_set(Asked(rival, rules), judged=True)  # what follows from it may decide
            if _holds(found, contender):
                return True
            if not _asks_for_more(rival) or not self._carry_out(found) or rival.step is None or rival.entry is None:
                return False
            rules = self.causes[rules.cause](rival, self.state.memory.shares())
            if rules.contender_may() is not None:
                return False
        return False

    def _alone(self, rules: CauseRules, contender: WorkloadState) -> bool:
        """Whether the rules, as the queues stand, let a contender go by itself."""
        amount = held(self.session, [t for t in contender.tasks if t.node >= 0 or t.nominated >= 0])
        with self.session.scenario():
            if rules.may_take(contender, amount, core=True, owed=[]) is not None:
                return False
            self.session.queues.release(contender.leaf, amount, fixed=contender.fixed)
            return rules.exchange([contender]) is None

    def _found(self, helped: Iterable[Asked], enough: Enough = to_the_end) -> tuple[tuple[FollowUp, ...], bool]:
        """Give what would be done for each victim by the first cause that finds something, and whether that is all.

        Of those that stand alike none is helped if one is not. Where it may be ``enough``, victims for which
        something was found before are asked about first.
        """
        by_victim: dict[WorkloadState, list[Asked]] = {}
        for asked in helped:
            by_victim.setdefault(asked.workload, []).append(asked)
        in_vain: set[object] = set()
        found: dict[WorkloadState, list[FollowUp]] = {}
        # what is free goes to the first of those that stand alike, in the order of its leaf
        order = sorted(by_victim, key=lambda v: (v.leaf, *(v.entry or ())[:-1]))
        if len(order) <= MOST_HELPED:
            order.sort(key=lambda v: v.leaf not in self._helped)
        budget, self._helping = SearchBudget(MOST_HELPED), []
        for victim in order:
            if _alike(victim) in in_vain:
                continue
            if not budget.spend():
                break
            first = self._first_set(by_victim[victim])
            if first is None:
                in_vain.add(_alike(victim))
                continue
            found[victim] = [_follow_up(*first), *self._as_it_grows(*first)]
            self._helping.append(first[1])
            self._helped.add(victim.leaf)
            if enough([follow_up for each in found.values() for follow_up in each]):
                return tuple(f for victim in by_victim for f in found.get(victim, ())), False
        return tuple(f for victim in by_victim for f in found.get(victim, ())), True

    def _as_it_grows(self, asked: Asked, first: SearchResult) -> list[FollowUp]:
        """Give what would be done for further steps of a victim once what was found for its first has come true."""
        if not _asks_for_more(asked.workload):
            return []
        with self._undone():
            return [_follow_up(*pair) for pair in self._growth([asked.workload])] if self._carry_out(first) else []

    def _best_set(self, asked: Asked, *, judged: bool = False) -> SearchResult:
        """Search for the best set for one workload; the session stays as it is.

        ``judged``: it is what a cycle would choose, for which what follows from a set decides as well. A search that
        gives up among many is made once more among the fewer of which no minimum runtime holds one in the next cycle.
        """
        found = self._searched(asked, self.plugins, judged=judged)
        if found.cut and any_minimum(self.session.settings, self.session.queues):
            found = self._searched(asked, self.state.plugins, judged=judged)
        return found

    def _searched(self, asked: Asked, plugins: EvictionPlugins, *, judged: bool) -> SearchResult:
        key = cause, _, _ = asked.rules.cause, judged, plugins is self.plugins
        search = self._passes.get(key)
        if search is None:
            state = replace(self._thought(), plugins=plugins, aftermath=self._further if judged else None)
            search = self._passes[key] = PreemptionPass(state, cause, self.causes[cause])
        return search.best_set(asked.workload, asked.rules, SearchBudget(STEPS))

    @cached_property
    def _further(self) -> Aftermath:
        """The judge of what is searched for here."""
        return Aftermath(self._thought(), self.causes, last=True)

    def _thought(self) -> EvictionState:
        """Give what a pass needs to search in a scenario: nothing is known of this cycle there, and nothing written.

        What was bound on a nomination stays in the cycle in which it was bound, not in the next.
        """
        state, known = self.state, self.state.memory
        if known.thought is None:  # what is known there is kept apart from what the actions know
            known.thought = VictimMemory(self.session, state.fairness, known.holdings.copy())
        if self._leaves is None:
            self._leaves = leaf_memo(self.session, known.thought.holdings, state.pieces)
        return replace(
            state, plan=Plan(self.session.now), endings=self._endings, plugins=self.plugins, memory=known.thought,
            detailed=False, aftermath=None, moved=set(self._moved), paid=self._bound, memories={},
            budget=SearchBudget(STEPS), leaves=self._leaves,
        )  # fmt: skip


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


def follow_ups(state: EvictionState, cause: Cause, tasks: Sequence[TaskState]) -> Sequence[FollowUp]:
    """Give what enabled causes would do for workloads that lose ``tasks``, without a beneficiary.

    Nothing of it is evicted yet, and the session stays as it is.
    """
    return () if state.aftermath is None else state.aftermath.of(cause, tasks)


def _taken_again(contender: WorkloadState, taker: Asked) -> Refusal:
    """Refuse to help a contender whose place another would take."""
    text = f"{taker.workload.key} would take the place from {contender.key} again ({taker.rules.cause})"
    return Refusal(TAKEN_AGAIN, text, about=taker.workload.key)


def _follow_up(asked: Asked, best: SearchResult) -> FollowUp:
    """Give what a set that was found for a workload would do."""
    pieces = best.pieces or ()
    tasks = tuple(dict.fromkeys(t for p in pieces for t in p.tasks))
    cost, growth = sum(p.cost for p in pieces), sum(p.growth for p in pieces)
    cause = asked.moves_by if asked.rules.cause == "consolidate" else asked.rules.cause
    return FollowUp(asked.workload, cause, tasks, cost, growth)


def _alike(victim: WorkloadState) -> object:
    """Give what victims have in common of which none is helped if one is not."""
    assert victim.step is not None
    return victim.leaf, victim.priority, victim.step.kind, id(victim.step.shape or victim)


def _holds(found: SearchResult, workload: WorkloadState) -> bool:
    """Whether something of a workload is in the set that was found."""
    return any(p.workload is workload for p in found.pieces or ())


def _name(task: TaskState) -> tuple[str, int]:
    return task.workload.key, task.index


def _asks_for_more(workload: WorkloadState) -> bool:
    """Whether a workload that waits would ask for another step after this one."""
    waiting = sum(t.phase is PENDING and t.nominated < 0 for t in workload.tasks)
    return workload.step is not None and waiting > len(workload.step.tasks)


def _will_grow(workload: WorkloadState) -> bool:
    """Whether a workload that is nominated will ask for more once that is bound; it asks for nothing until then."""
    waiting = {t.nominated >= 0 for t in workload.tasks if t.phase is PENDING}
    return len(waiting) > 1
