"""The best set by the solver, against every possible set."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.builders import GIB, cluster, node, queue, spec, workload
from tests.effort import tries
from tests.quota.oracle import best, keeps_guarantees, over, value
from tests.quota.strategies import clusters
from tests.quota.test_best_set import fire_at_once, taken_in

from tenure.actions import quota as action
from tenure.engine.snapshot import session_of
from tenure.fairness.current import Fairness
from tenure.model.settings import ExactSettings, QuotaPreemptionSettings
from tenure.model.workload import Phase
from tenure.playthrough import play
from tenure.quota.candidates import QuotaCandidates
from tenure.quota.choose import choose
from tenure.quota.follow_up_cuts import FollowUpCut, respects
from tenure.quota.problem import QuotaSelection
from tenure.quota.selection_program import LinearProgram
from tenure.rescheduler.memory import MoveMemory
from tenure.shields.plugins import EvictionPlugins


def chosen(cluster, name, *, solve=None, follow=lambda _: ()):
    """What is chosen of one queue."""
    session = session_of(cluster)
    session.now = cluster.now
    queues = session.queues
    number = queues.index[name]
    rows = {queues.resources.index(r): amount for r, amount in over(cluster, name).items()}
    shares = Fairness(session).now().allocatable_without_history
    never = cluster.settings.quota_preemption.overshoot == "never"
    return choose(
        QuotaCandidates(session, EvictionPlugins()), number, rows, shares, never=never, solve=solve, follow=follow
    )  # fmt: skip


MOST_PIECES = 7
"""Pieces of which every set is tried."""


def best_key(choice):
    """The least key that any set has which the rules allow."""
    problem = choice.problem
    pieces = [p for p in choice.pool.pieces if problem.possible(p)]
    assume(len(pieces) <= MOST_PIECES)
    found = None
    for bits in product((False, True), repeat=len(pieces)):
        picked = [p for p, taken in zip(pieces, bits, strict=True) if taken]
        tasks = [t for p in picked for t in p.tasks]
        selection = QuotaSelection(problem)
        if len(set(tasks)) == len(tasks) and all(map(selection.try_add, picked)):
            key = problem.key(picked)
            found = key if found is None else min(found, key)
    return found


def uneven(cluster):
    """Give all workloads memory in odd bytes, which have no common part."""
    work = []
    for number, w in enumerate(cluster.workloads):
        asked = w.tasks[0].spec.requests
        odd = tuple((r, a - 12_345_679 * (number + 1) if r == "memory" else a) for r, a in asked)
        work.append(replace(w, tasks=tuple(replace(t, spec=replace(t.spec, requests=odd)) for t in w.tasks)))
    return replace(cluster, workloads=tuple(work))


def runs(name, cpu, **fields):
    return workload(name, of=spec(cpu=cpu), on="n", queue="q", **fields)


def names(choice):
    return sorted(t.model.name for piece in choice.pieces for t in piece.tasks)


@settings(max_examples=tries(30, 600), deadline=None)
@given(clusters(levels=3, most=6, work=7), st.data())
def test_the_solver_finds_a_set_as_good_as_any(solve, cluster, data):
    """Every subset is tried: least over max, fewest spared, priorities from the highest down, least freed."""
    armed = [q.name for q in cluster.queues if over(cluster, q.name)]
    assume(armed)
    name = data.draw(st.sampled_from(armed))
    choice = chosen(cluster, name, solve=solve)
    gone = set(names(choice))
    taken = [(w, [t for t in w.tasks if t.name in gone]) for w in cluster.workloads]
    taken = [(w, tasks) for w, tasks in taken if tasks]
    assert keeps_guarantees(cluster, taken)
    assert value(cluster, name, taken) == best(cluster, name)
    assert not choice.exhausted


@settings(max_examples=tries(20, 400), deadline=None)
@given(clusters(levels=4, most=9, work=7), st.sampled_from(("cost", "youngest", "oldest")), st.booleans(), st.data())
def test_the_solver_finds_the_best_set_to_the_last_word(solve, cluster, victims, odd, data):
    """Distance, age or cost, cores, tasks and what is younger included; amounts may have no common part."""
    cluster = replace(cluster, settings=replace(cluster.settings, victims=victims))
    cluster = uneven(cluster) if odd else cluster
    armed = [q.name for q in cluster.queues if over(cluster, q.name)]
    assume(armed)
    choice = chosen(cluster, data.draw(st.sampled_from(armed)), solve=solve)
    assert choice.problem.key(choice.pieces) == best_key(choice)
    assert not choice.exhausted


def of_bytes(name, leaf, held, running, cpu=1, **fields):
    """Work that holds some bytes of memory."""
    return workload(name, of=spec(cpu=cpu, memory=held / GIB), queue=leaf, running=running, age=4000, **fields)


def test_amounts_without_a_common_part_mislead_no_solver(solve):
    """The one that leaves least over max goes: beside other bytes, the solver took the set that it was given for it."""
    tree = [
        queue("top", max={"cpu": 16, "memory": 12}, guaranteed={"memory": 12}, priority=200),
        queue("left", "top", guaranteed={"cpu": 0}),
        queue("first", "left", guaranteed={"cpu": 1}),
        queue("second", "left", guaranteed={"memory": 8}),
        queue("right", "top", priority=200),
        queue("third", "right", priority=200),
        queue("fourth", "right", priority=200),
    ]
    work = [
        of_bytes("w0", "first", 4305354432, 60),
        of_bytes("w1", "second", 1363249203, 60, priority=50, tasks=2, min_member=1),
        of_bytes("w2", "third", 4264996143, 600, cpu=2, priority=10, allow_preemption=False),
        of_bytes("w3", "second", 2410830696, 600, priority=50, allow_preemption=False),
        of_bytes("w4", "fourth", 806590865, 600, cpu=3, priority=10, tasks=3, preemptible=False),
        of_bytes("w5", "second", 1606626128, 60, priority=50),
    ]
    work = [replace(w, tasks=tuple(replace(t, node="n", phase=Phase.RUNNING) for t in w.tasks)) for w in work]
    choice = chosen(cluster([node("n", cpu=100, memory=100)], work, tree), "top", solve=solve)
    assert names(choice) == ["w2-0"]


def crowd(count, most):
    """One queue with work of many sizes, priorities and ages, over its max."""
    work = [
        runs(
            f"w{i}", 1 + i % 7, priority=(0, 20, 50, 80)[i // 3 % 4], running=60 + 37 * i, allow_preemption=i % 9 > 0
        )
        for i in range(count)
    ]  # fmt: skip
    return cluster([node("n", cpu=10 * count)], work, [queue("q", max={"cpu": most})])


class Noting(MoveMemory):
    """One that notes how often its solver is asked for."""

    asked = 0

    @property
    def solver(self):
        self.asked += 1
        return super().solver


@pytest.mark.parametrize("columns", [20_000, 20_001])
def test_a_program_that_would_end_by_the_clock_is_not_begun(columns):
    """As many columns as the rescheduler solves at once are solved; with one more the solver is not even asked for."""
    context = SimpleNamespace(rescheduling=Noting())
    program = LinearProgram(
        [1.0] * columns, [1.0] * columns, [{0: 1.0}], [1.0], [1.0], [1.0] + [0.0] * (columns - 1), []
    )
    values = action._solve(context, ExactSettings(), program)
    assert context.rescheduling.asked == (columns == 20_000)
    assert values == ([1.0] + [0.0] * (columns - 1) if columns == 20_000 else None)


def test_thousands_of_workloads_are_no_bound(solve):
    """The best set of thousands is proved: exactly under max, nobody spared is taken, and no priority too high."""
    found = crowd(3000, 5000)
    choice = chosen(found, "q", solve=solve)
    assert not choice.exhausted
    need = over(found, "q")["cpu"]
    sizes = {w.name: dict(w.tasks[0].spec.requests)["cpu"] for w in found.workloads}
    gone = {piece.workload.model.name for piece in choice.pieces}
    assert sum(sizes[name] for name in gone) == need
    assert all(w.allow_preemption for w in found.workloads if w.name in gone)
    highest = max(w.priority for w in found.workloads if w.name in gone)
    below = sum(sizes[w.name] for w in found.workloads if w.allow_preemption and w.priority < highest)
    taken = sum(sizes[w.name] for w in found.workloads if w.name in gone and w.priority == highest)
    assert taken == need - below


def test_what_has_a_follow_up_is_chosen_last(solve):
    """A set after which something else would be evicted loses against a dearer one after which nothing would."""
    work = [
        runs("cheap", 2, running=60),
        runs("dear", 2, running=6000),
    ]
    found = cluster([node("n", cpu=10)], work, [queue("q", max={"cpu": 2})])

    def follow(tasks):
        helped = next((t.workload for t in tasks if t.model.name.startswith("cheap")), None)
        return [] if helped is None else [FollowUpCut(helped, frozenset())]

    assert names(chosen(found, "q", solve=solve)) == ["cheap-0"]
    assert names(chosen(found, "q", solve=solve, follow=follow)) == ["dear-0"]


def test_a_follow_up_that_no_set_avoids_is_taken_as_it_is(solve):
    """Least over max comes first: where every such set has a follow-up, the best of them goes."""
    found = cluster([node("n", cpu=10)], [runs("w", 4, running=60)], [queue("q", max={"cpu": 2})])

    def follow(tasks):
        return [FollowUpCut(t.workload, frozenset()) for t in tasks]

    assert names(chosen(found, "q", solve=solve, follow=follow)) == ["w-0"]


def test_a_cut_says_which_sets_do_not_count():
    """It forbids the victim alone, not with what would be evicted for it."""
    victim, other = object(), object()
    task, further = object(), object()
    cut = FollowUpCut(victim, frozenset([further]))
    one, two = SimpleNamespace(workload=victim, tasks=(task,)), SimpleNamespace(workload=other, tasks=(further,))
    assert [respects(pieces, [cut]) for pieces in ([one], [two], [one, two], [])] == [False, True, True, True]


def test_a_large_problem_is_solved_within_a_cycle():
    """The action itself starts the solver."""
    found = fire_at_once(crowd(300, 600), "q")
    on = QuotaPreemptionSettings(enabled=True)
    found = replace(found, settings=replace(found.settings, actions=("quota",), quota_preemption=on))
    played = play(found)
    assert next(q for q in played.quota if q.queue == "q").exhausted is False
    assert not over(played.after, "q")
    assert taken_in(found, played)
