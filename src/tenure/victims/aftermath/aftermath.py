"""Causes add up: what all enabled causes would do once a set of victims has gone (spec: the cycle, "Causes add up").

This is the one place where that is judged. A set is evicted and served in a scenario; here the scenario is taken one
step further (`ahead`). Then every enabled cause is asked

* what it would evict or move for each victim that waits now: a *follow-up*. Its cost is added to that of the set;
* whether it would take the contender's place for a workload that waits. Such a set is refused, unless the contender's
  queue stays within its guaranteed.

Follow-ups of a set go one level deep: the search for one does not ask what would follow from it, as it does after a
finished plan. The search for what would take the contender's place does, as that of a cycle, where the rules let the
contender go by itself; what it asks is answered as if nothing followed from that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice

from tenure.engine.refusal import Refusal
from tenure.engine.serving.allocation import serve
from tenure.engine.state.evictions import evict_all
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.model.settings import Cause
from tenure.victims.aftermath.ahead import Ahead, SearchesAhead, settle
from tenure.victims.aftermath.asked import (
    MOST_ASKED,
    MOST_LOOKED_AT,
    MOST_STEPS,
    Asked,
    AskedWorkloads,
    asks_for_more,
    by_name,
    taken_again,
    will_grow,
)
from tenure.victims.aftermath.follow_ups import FollowUpSearch
from tenure.victims.aftermath.next_cycles import CyclesAhead, Enforce, NextCycles
from tenure.victims.dry_run.outcome import AcceptedSet, Enough, FollowUp
from tenure.victims.passes.preemption_pass import MakeRules
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.causes import CauseRules
from tenure.victims.search.trials import SearchResult

MOST_CUT = 2
"""Searches for one rival and one cause that may give up; after that it is not searched for again in the cycle."""


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
        self.asked = AskedWorkloads(state.session, state.placer, causes)
        judge = None if last else partial(Aftermath, causes=causes, last=True)
        self.ahead = Ahead(state)
        self.searches = SearchesAhead(self.ahead, causes, judge)
        self.follow_ups = FollowUpSearch(self.searches, self.asked)
        self._cut = Counter[tuple[WorkloadState, Cause]]()

    def judge(
        self, contender: WorkloadState, cause: Cause, result: AcceptedSet, shares: CurrentShares, *,
        enough: Enough | None = None, accepted: bool = False,
    ) -> Refusal | None:  # fmt: skip
        """Refuse a set that was carried out on the session, unless it was ``accepted`` before.

        With ``enough``, it is noted in ``result`` what follows from it, until that is enough.
        """
        causes, victims = self.asked.enabled(cause), result.victims
        got = [t for t in result.placed if t.workload is contender]
        at_risk = self.asked.is_at_risk(contender, got, self.state.placer)
        growing = self.asked.growing(contender) if at_risk else []
        rivals = partial(self.asked.rivals, contender, got, result, causes, shares)
        result.may_follow = (
            bool(growing)
            or any(map(will_grow, victims))
            or any(self.asked.may_be_helped(victims, causes, shares))
            or (at_risk and any(rivals()))
        )
        if not result.may_follow or (not at_risk and enough is None):
            return None
        with self.ahead.look():
            self.ahead.plugins.budgets.foresee(self.session, cause, contender, result.evicted)
            self._come_true(result, contender, at_risk=at_risk)
            taker = None
            if at_risk and not accepted and self.asked.is_at_risk(contender, got):
                taker = self._taker(contender, rivals())
                if taker is None and len(growing) > 1:  # one alone is a rival like any other
                    taker = self._taker_growing(contender, growing)
            if taker is None and enough is not None:
                helped = self.asked.may_be_helped(victims, causes, shares)
                result.follow_ups, result.all_known = self.follow_ups.of(helped, enough)
                if at_risk and not accepted:
                    then = (self._taker_after(each, contender, rivals) for each in self.follow_ups.sets)
                    taker = next(filter(None, then), None)
        return None if taker is None else taken_again(contender, taker)

    def _come_true(self, result: AcceptedSet, contender: WorkloadState, *, at_risk: bool) -> None:
        """Let what a set changes come true; or all that the cycle has decided so far.

        That may matter where others might take from the contender: a rival may take it together with that place.
        """
        session, evicted = self.session, result.evicted
        placed = [*result.placed, *self.ahead.serve_at_once(evicted)]
        if at_risk and (len(session.nominated) <= MOST_LOOKED_AT or self.asked.growing(contender)):
            evicted, placed = sorted(session.leaving, key=by_name), sorted(session.nominated, key=by_name)
        self.ahead.come_true(evicted, placed, served=session.settings.backfill != "easy")
        self.ahead.next_cycle()  # in which what starts again ends later than what was bound with the contender

    def _taker(self, contender: WorkloadState, rivals: Iterable[Asked]) -> Asked | None:
        """Give the first pending workload for which the best set of its cause holds something of the contender.

        Who asks for several steps, one after the other, is looked at for some of them.
        """
        for asked in list(islice(rivals, MOST_ASKED)):
            if asked.workload.step is None or asked.workload.entry is None:  # served since it was asked for
                continue
            with self.ahead.undone():
                if self._takes(asked, contender):
                    return asked
        return None

    def _taker_after(
        self, found: SearchResult, contender: WorkloadState, rivals: Callable[[], Iterable[Asked]]
    ) -> Asked | None:
        """Give who would take the contender's place, but by a move, once a follow-up has come true."""
        with self.ahead.undone():
            taking = (r for r in rivals() if r.rules.cause != "consolidate")
            return self._taker(contender, taking) if self.ahead.carry_out(found) else None

    def _taker_growing(self, contender: WorkloadState, growing: Sequence[WorkloadState]) -> Asked | None:
        """Give the first workload that takes something of the contender where several grow, one after the other."""
        with self.ahead.undone():
            return next((asked for asked, found in self.follow_ups.growth(growing) if _holds(found, contender)), None)

    def _takes(self, asked: Asked, contender: WorkloadState) -> bool:
        rival, cause = asked.workload, asked.cause
        if self._cut[rival, cause] >= MOST_CUT:
            return False
        for _ in range(MOST_STEPS):
            found, judged = self._choice(asked, contender)
            if not found.pieces and self.ahead.pass_on():
                found, judged = self._choice(asked, contender)
            if _holds(found, contender) or _holds(self.searches.as_waits_stand(asked, found, judged=judged), contender):
                return True
            if not asks_for_more(rival) or not self.ahead.carry_out(found) or rival.step is None or rival.entry is None:
                return False
            asked = Asked(rival, self.searches.causes[cause](rival, self.state.memory.shares()), cause)
            if asked.rules.contender_may() is not None:
                return False
        return False

    def _choice(self, asked: Asked, contender: WorkloadState) -> tuple[SearchResult, bool]:
        """Give the set that a rival would take, and whether what follows from it decided."""
        found = self.searches.best_set(asked)
        self._cut[asked.workload, asked.cause] += found.cut
        if judged := self._follows_decide(asked.rules, found, contender):
            found = self.searches.best_set(asked, judged=True)
        return found, judged

    def _follows_decide(self, rules: CauseRules, found: SearchResult, contender: WorkloadState) -> bool:
        """Whether a contender that is not in the set that is best by itself may be in one of which less follows."""
        if self.last or not found.pieces or _holds(found, contender):
            return False
        own = [t for t in contender.tasks if t.node >= 0 or t.nominated >= 0]
        return rules.lets_go(contender, own, core=True)

    def of(self, cause: Cause, tasks: Sequence[TaskState]) -> tuple[FollowUp, ...]:
        """Give the follow-ups of evicting tasks without a beneficiary; the session stays as it is."""
        session, causes, shares = self.session, self.asked.enabled(cause), self.state.memory.shares()
        victims = list(dict.fromkeys(t.workload for t in tasks))
        with self.ahead.look():
            evict_all(session, tasks)
            for victim in victims:
                session.refresh(victim)
            waiting = [v for v in victims if v.step is not None and v.entry is not None]
            if not list(self.asked.may_be_helped(waiting, causes, shares)):
                return ()
            for first in waiting:
                if first.step is not None and first.entry is not None:
                    serve(session, self.state.placer, shares, first, victims, endings=self.state.endings)
            placed = [t for v in victims for t in v.tasks if t.nominated >= 0 or t.fresh]
            self.ahead.endings = self.ahead.endings.after(settle(self.state, tasks, placed))
            return self.follow_ups.of(self.asked.may_be_helped(victims, causes, shares))[0]

    def of_plan(self, given_up: Iterable[WorkloadState], enforce: Enforce) -> NextCycles:
        """Give what follows from a finished plan, whose evictions are made on the session, and who would lose by it.

        Looked at are its victims, who grows, and contenders whose sets were ``given_up``; quotas ``enforce`` theirs.
        """
        return CyclesAhead(self.searches, self.asked, enforce).play(given_up)


def _holds(found: SearchResult, workload: WorkloadState) -> bool:
    """Whether something of a workload is in the set that was found."""
    return any(p.workload is workload for p in found.pieces or ())
