"""Evictions under EASY backfilling: nobody is evicted for a workload that the reservation of another keeps out."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.actions.helpers import GPU, MINUTE, NOW, cluster, codes, play, queue, runs, steps, waits
from tests.effort import tries
from tests.properties.adding_up import drawn
from tests.properties.contention import contended

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.plan import Plan
from tenure.engine.snapshot import session_of
from tenure.engine.state.workloads import RUNNING
from tenure.victims.search.trials import MOST_IN_VAIN
from tenure.victims.search.victim_search import VictimSearch

FIXED = runs("fixed", "a", ["n0"], gpus=2, minutes=1, priority=90, preemptible=False, expected_runtime=11 * MINUTE)
VICTIM = runs("victim", "a", ["n0"], minutes=2, expected_runtime=12 * MINUTE)
FIRST = waits("first", "a", gpus=3, priority=50)


def full(contender, *more, victim=VICTIM, **chosen):
    """Three GPUs: the first that waits needs them all, which it has in ten minutes; the contender needs one now."""
    return cluster([queue("a", guaranteed=4)], [FIXED, victim, FIRST, contender, *more], gpus=3, **chosen)


def behind(minutes, **fields):
    """A contender of one GPU that stands behind the first, and runs for so long."""
    expected = None if minutes is None else minutes * MINUTE
    return waits("contender", "a", priority=40, expected_runtime=expected, **fields)


def test_without_a_reservation_the_contender_takes_what_it_may():
    assert steps(play(full(behind(None)))) == [("victim", "victim-0")]


@pytest.mark.parametrize("minutes", [None, 10, 600])
def test_nobody_is_evicted_for_whoever_would_then_delay_the_first_that_waits(minutes):
    """As the ordinary pass would refuse it the room: the first would lose its time to somebody behind it."""
    found = play(full(behind(minutes), backfill="easy"))
    assert found.steps == []
    assert "ShieldedVictims" in codes(found, "contender")
    (first,) = [p for p in found.pending if p.workload == "default/first"]
    assert first.estimated_start == NOW + 10 * MINUTE


@pytest.mark.parametrize("detailed", [False, True])
@pytest.mark.parametrize("before", [[600], [None], [600, 60], [None, 600]])
def test_what_is_gone_in_time_is_looked_at_behind_what_is_not(before, detailed):
    """All stand alike but for how long they run; what runs longer got nothing, and that says nothing of the last."""
    longer = [replace(behind(minutes), name=f"longer-{n}") for n, minutes in enumerate(before)]
    short = replace(behind(9), name="short", created_at=NOW - 1)
    scheduler = Scheduler(session_of(full(*longer, short, backfill="easy")))
    scheduler.context.detailed = detailed
    found = scheduler.cycle(NOW)
    assert steps(found) == [("victim", "victim-0")]
    assert {s.beneficiary for s in found.steps if s.action == "evict"} == {"default/short"}


@pytest.mark.parametrize(("grace", "goes"), [(0, True), (60, True), (61, False)])
def test_whoever_is_gone_in_time_may_take_from_others_counted_from_when_they_have_left(grace, goes):
    victim = replace(VICTIM, tasks=tuple(replace(t, grace_period=grace * 1_000_000) for t in VICTIM.tasks))
    assert bool(steps(play(full(behind(9), victim=victim, backfill="easy")))) is goes


@pytest.mark.parametrize(("backfill", "minutes", "goes"), [
    ("none", None, True), ("easy", None, False), ("easy", 600, False), ("easy", 9, True),
])  # fmt: skip
def test_nothing_overdue_is_requeued_for_whoever_would_delay_the_first_that_waits(backfill, minutes, goes):
    """Its end has passed, so that the reservation may count on its room; who is gone in time may have it until then."""
    overdue = replace(VICTIM, expected_runtime=MINUTE)
    found = play(full(behind(minutes), victim=overdue, backfill=backfill, actions=("allocate", "requeue")))
    assert steps(found) == [("victim", "victim-0")] * goes


@pytest.mark.parametrize(("minutes", "goes"), [(1, True), (2, False)])
def test_a_notice_puts_the_end_off_as_well(minutes, goes):
    victim = replace(VICTIM, tasks=tuple(replace(t, grace_period=0) for t in VICTIM.tasks))
    found = play(full(behind(9), victim=victim, backfill="easy", eviction_notice=minutes * MINUTE))
    assert bool(steps(found, "notice")) is goes


def test_who_takes_what_is_left_beside_the_reservation_delays_nobody():
    """On a node that is too small for the first that waits."""
    state = full(behind(None), runs("other", "a", ["n1"], minutes=1), backfill="easy")
    state = replace(state, nodes=(*state.nodes, replace(state.nodes[0], name="n1", allocatable={GPU: 1})))
    assert steps(play(state)) == [("other", "other-0")]


def test_whom_no_expected_end_helps_holds_up_nobody():
    """The first that waits has no reservation, because nobody knows when the fixed one ends."""
    state = full(behind(None), backfill="easy")
    silent = tuple(replace(w, expected_runtime=None) if w.name == "fixed" else w for w in state.workloads)
    assert steps(play(replace(state, workloads=silent))) == [("victim", "victim-0")]


def test_what_gave_surplus_still_ends_when_it_said():
    """Of an elastic victim the rest runs on: who is promised its room later counts on its end as before."""
    elastic = runs("elastic", "b", ["n0"] * 4, core=2, expected_runtime=70 * MINUTE)
    state = cluster([queue("a", guaranteed=1), queue("b")], [elastic, waits("c", "a")], backfill="easy")
    scheduler = Scheduler(session_of(state))
    plan = scheduler.cycle(NOW)
    assert [s.task for s in plan.steps if s.action == "evict"] == ["elastic-3"]
    running = [t for t in scheduler.session.workloads["default/elastic"].tasks if t.phase is RUNNING]
    ((end, amount, key, _),) = scheduler.endings.sorted
    assert (end, key) == (NOW + 10 * MINUTE, "default/elastic")
    assert sum(amount) == sum(sum(t.cls.amount) for t in running)


def with_ends(seed, backfill):
    """A contended cluster in which most say how long they run."""
    rng, state = random.Random(seed), contended(seed)
    ends = [None, 5, 30, 100, 1000]
    workloads = tuple(
        replace(w, expected_runtime=None if (m := rng.choice(ends)) is None else m * MINUTE) for w in state.workloads
    )
    actions = tuple(a for a in state.settings.actions if a not in ("requeue", "reschedule"))
    return replace(state, workloads=workloads, settings=replace(state.settings, backfill=backfill, actions=actions))


@given(st.integers(0, 1 << 32), st.sampled_from(["none", "easy"]))
@settings(max_examples=tries(125, 2500))
def test_once_its_victims_are_gone_an_ordinary_pass_gives_the_contender_its_room(seed, backfill):
    """The cluster without the victims, which wait again, is given to allocate alone; where one contender takes."""
    state = with_ends(seed, backfill)
    plan = Scheduler(session_of(state)).cycle(state.now)
    evicted = [s for s in plan.steps if s.action == "evict" and s.cause in ("reclaim", "preempt")]
    if len({s.beneficiary for s in evicted}) != 1 or len(evicted) < sum(s.action == "evict" for s in plan.steps):
        return
    free = [s for s in plan.steps[: plan.steps.index(evicted[0])] if s.action == "bind"]
    embedded, gone = EmbeddedCluster(state), Plan(state.now)
    gone.steps, gone.started = [*free, *evicted], [k for k in plan.started if k in {s.workload for s in free}]
    embedded.carry_out(gone)
    embedded.advance(state.now)
    after = embedded.observe()
    after = replace(after, settings=replace(after.settings, actions=("allocate",)))
    bound = {(s.workload, s.task) for s in Scheduler(session_of(after)).cycle(state.now).steps if s.action == "bind"}
    nominated_to = {(s.workload, s.task) for s in plan.steps if s.action == "nominate"}
    assert {p for p in nominated_to if p[0] == evicted[0].beneficiary} <= bound


def test_moves_that_would_put_a_start_off_are_tried_in_vain(monkeypatch):
    """After as many of them as of moves without a place to land the search ends; it went on for hundreds."""
    tried, run = [], VictimSearch.run

    def counted(self, budget):
        found = run(self, budget)
        tried.append(found.tried)
        return found

    monkeypatch.setattr(VictimSearch, "run", counted)
    state = drawn(517244)
    state = replace(state, settings=replace(state.settings, actions=("quota", "allocate", "consolidate")))
    Scheduler(session_of(state)).cycle(state.now)
    assert MOST_IN_VAIN < max(tried) < 2 * MOST_IN_VAIN


def test_moves_that_consolidate_looked_for_in_vain_are_not_looked_for_again(monkeypatch):
    """Where something asked to be spared, the rescheduler is asked as well; but for that its moves are the same.

    In a later cycle what was bound on a nomination may move as well, and is looked at then.
    """
    found, run = Counter(), VictimSearch.run

    def counted(self, budget):
        key = self.rules.contender.key, self.session.epoch, self.trials.with_spared, id(self.dry_runs.plugins)
        if self.rules.cause == "consolidate":
            found[(*key, *(p.tasks for p in self.candidates.all()))] += 1
        return run(self, budget)

    monkeypatch.setattr(VictimSearch, "run", counted)
    state = drawn(868650)
    assert Scheduler(session_of(state)).cycle(state.now).steps
    assert max(found.values()) == 1
