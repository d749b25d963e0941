"""Gives up, at the end of a cycle, evictions for a contender that would lose its place again (spec: causes add up).

Each set of victims was judged as things were when it was found. What is decided after it for others changes that: a
workload that grows may take what it would not have taken, and a queue that loses something may be entitled to more. So
each set is judged once more in what the finished plan leads to; a set whose contender would lose its place is given up,
and its contender contends in the next cycle, in which the rest has come true.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from tenure.actions.context import Context
from tenure.actions.quota import enforce_ahead
from tenure.actions.reprieve import promise_alone, rewrite, run_on, serve_all, take_back
from tenure.actions.victim_sets import Sets, judged, sets_of
from tenure.engine.plan import EVICTING, NextEviction
from tenure.engine.refusal import Refusal
from tenure.engine.state.cost import MICRO
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.victims.aftermath.aftermath import Aftermath
from tenure.victims.dry_run.outcome import NO_ROOM, is_back
from tenure.victims.recording.explanations import shielded
from tenure.victims.recording.state import EvictionState
from tenure.victims.search.trials import SearchBudget

MOST_JUDGED: Final = 32
"""How often a set of one plan is judged once more."""

MOST_TOGETHER: Final = 4
"""Other sets with each of which one is given up together where it cannot be by itself."""


def settle_what_follows(context: Context, *, last: bool) -> bool:
    """Give up sets whose contenders would lose their places, and say in the plan what follows from it.

    True if all were given up: others are to be asked about once more then, if this was not the ``last`` time. Of a plan
    that evicts nothing, nothing follows: what goes on under notice was told of when that began. In the story of one
    workload nothing is said, and what follows is looked at only where sets concern it: that takes a third of the time
    of a large cluster's cycle.
    """
    state, aftermath = context.evictions, context.aftermath
    if state is None or aftermath is None or state.plan is not context.plan:
        return False
    sets, budget = sets_of(context), SearchBudget(MOST_JUDGED)
    contenders = dict.fromkeys(sets)
    while len(sets) > 1:  # one alone was judged as things are
        refused = ((c, judged(context, sets, c)) for c in reversed(sets) if budget.spend())
        if not any(r is not None and _give_up_with(context, state, sets, c, r, last=last) for c, r in refused):
            break
    while any(s.action in EVICTING for s in context.plan.steps) and (
        context.about is None or _alone(context) or _concern(sets, context.about)
    ):
        follows = aftermath.of_plan([c for c in contenders if c not in sets], partial(enforce_ahead, context))
        lost = [(c, follows.refusals[c]) for c in reversed(sets) if c in follows.refusals]
        kept = last and _alone(context)
        if not kept and any(_give_up_with(context, state, sets, c, r, last=last) for c, r in lost):
            continue
        context.plan.follow_ups = [
            NextEviction(f.of.key, f.cause, tuple((t.workload.key, t.name) for t in f.evict), f.cost / MICRO)
            for f in (follows.follow_ups if context.about is None else ())
        ]
        break
    again = not last and bool(contenders) and not sets
    if again:
        context.aftermath = state.aftermath = Aftermath(state, context.causes())  # which has given up nothing yet
    return again


def _alone(context: Context) -> bool:
    """Whether all that goes does so for one contender, and no promise was open: the next cycle would decide the same.

    With quotas, or a notice that ends, what was decided after a set, or before it, may change it as well.
    """
    return not context.paid and len({s.beneficiary for s in context.plan.steps if s.action in EVICTING}) <= 1


def _concern(sets: Sets, about: str) -> bool:
    """Whether a workload (namespace/name) is a contender of some sets, or gives way in one."""
    return any(about in {c.key, *(t.workload.key for t in tasks)} for c, (_, tasks) in sets.items())


def _give_up_with(
    context: Context, state: EvictionState, sets: Sets, contender: WorkloadState, refusal: Refusal, *, last: bool
) -> bool:
    """Give up a set by itself, else with another one: that might get the room, or needs what would run on to go.

    Nothing goes for its contender in this cycle then. The ``last`` time not both where nothing else would go: the next
    cycle would decide the same. Before, all sets where two are not enough: the others are looked for once more.
    """
    nodes = {t.leaving for t in sets[contender][1]}
    others = [c for c in reversed(sets) if c is not contender and (len(sets) > 2 or not last)]  # noqa: PLR2004
    others.sort(key=lambda c: all(t.nominated not in nodes for t in c.tasks))
    together = [[contender], *([contender, other] for other in others[:MOST_TOGETHER])]
    together += [[contender, *others]] if len(others) > 1 and not last else []
    if not any(_give_up(context, state, sets, given_up, refusal) for given_up in together):
        return False
    state.given_up.add(contender.key)
    return True


def _give_up(
    context: Context, state: EvictionState, sets: Sets, contenders: Sequence[WorkloadState], refusal: Refusal
) -> bool:
    """Let all run on that went for some contenders; False, and nothing is done, where others need their room."""
    tasks = [t for c in contenders for t in sets[c][1]]
    promised = [t for c in contenders for t in c.tasks if t.nominated >= 0]
    stay, nodes = dict.fromkeys(t.workload for t in tasks), {t.leaving for t in tasks}
    there = {t.workload for t in context.session.nominated if t not in context.paid and t.nominated in nodes}
    others = [t for w in sorted(there, key=lambda w: w.key) if w not in contenders and w not in stay
              for t in w.tasks if t.nominated >= 0 and t not in context.paid]  # fmt: skip
    with context.session.scenario() as scenario:
        if not run_on(context, tasks, [*promised, *others]):
            return False
        kept = _served(context, others)
        helped = {s.beneficiary for s in context.plan.steps if s.action in EVICTING}
        needed = [t for t in others if t.leaving >= 0 or t.workload.key in helped]
        if any(map(is_back, kept)) or not set(needed).issubset(kept):
            return False
        scenario.keep()
    lost = {(t.workload.key, t.index) for t in {*promised, *others}.difference(kept)}
    steps = context.plan.steps
    steps[:] = [s for s in steps if s.action != "nominate" or (s.workload, s.task_index) not in lost]
    rewrite(context, kept)
    for workload in stay:
        take_back(context, state, workload, [t for t in tasks if t.workload is workload])
    for contender in contenders:
        cause, gone = sets.pop(contender)
        stays = dict.fromkeys(t.workload.key for t in gone)
        state.obstacle(contender.key, shielded(cause, [(key, refusal) for key in stays]))
        refusal = Refusal(NO_ROOM, f"the room would go to {contender.key}, which would lose its own again")
    return True


def _served(context: Context, promised: Sequence[TaskState]) -> list[TaskState]:
    """Serve all that wait, in order, and promise again what withdrawn promises can have; gives those tasks."""
    placed, wanted = serve_all(context), set(promised)
    kept = [t for t in placed if t in wanted]
    promise_alone(context, placed, kept)
    return kept
