"""Estimated starts: those of cycles that are played on, in which what runs ends when it is expected to."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.builders import NOW, SECOND, cluster, node, queue, spec, workload
from tests.effort import tries
from tests.properties.contention import MINUTE, contended

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.serving.estimate import estimated_starts
from tenure.engine.snapshot import session_of
from tenure.fairness.current import Fairness
from tenure.model.workload import DEFAULT_GRACE_PERIOD, Phase
from tenure.playthrough import play

PLACED = (Phase.BOUND, Phase.RUNNING)


def starts(found):
    """Estimated start by workload of those that wait."""
    return {p.workload.removeprefix("default/"): p.estimated_start for p in play(found).pending}


def test_the_same_room_is_not_promised_twice():
    """Two that each fit when the running one ends: the second starts when the first of them has ended."""
    work = [
        workload("r", of=spec(cpu=4), on="n", running=60, expected_runtime=100),
        workload("a", of=spec(cpu=4), age=20, expected_runtime=50),
        workload("b", of=spec(cpu=4), age=10, expected_runtime=50),
    ]
    assert starts(cluster([node("n", cpu=4)], work)) == {"a": NOW + 40 * SECOND, "b": NOW + 90 * SECOND}


def test_behind_one_that_never_ends_nobody_knows():
    """Without an expected run time it holds its room for ever."""
    work = [
        workload("r", of=spec(cpu=4), on="n", running=60, expected_runtime=100),
        workload("a", of=spec(cpu=4), age=20),
        workload("b", of=spec(cpu=4), age=10),
    ]
    assert starts(cluster([node("n", cpu=4)], work)) == {"a": NOW + 40 * SECOND, "b": None}


def test_those_who_start_count_against_the_max_of_their_queue():
    """There is room for both at once, but not in the queue."""
    work = [
        workload("r", of=spec(cpu=4), on="n", queue="q", running=60, expected_runtime=100),
        workload("a", of=spec(cpu=3), queue="q", age=20, expected_runtime=50),
        workload("b", of=spec(cpu=3), queue="q", age=10, expected_runtime=50),
    ]
    found = starts(cluster([node("n", cpu=8)], work, [queue("q", max={"cpu": 4})]))
    assert found == {"a": NOW + 40 * SECOND, "b": NOW + 90 * SECOND}


def test_what_still_waits_of_a_workload_that_has_ended_starts_no_more_and_keeps_no_room_from_others():
    """Its surplus would be served first, and take the room that its own end leaves."""
    work = [
        workload("r", tasks=2, of=spec(cpu=4), on=["n"], min_member=1, priority=50, running=60, expected_runtime=100),
        workload("a", of=spec(cpu=4), expected_runtime=50),
    ]
    assert starts(cluster([node("n", cpu=4)], work)) == {"r": None, "a": NOW + 40 * SECOND}


def test_surplus_may_end_when_the_rest_of_its_workload_does():
    """What has started just now ends at the same time as what it would grow by just now."""
    grows = workload("a", tasks=2, of=spec(cpu=2), on=["n"], min_member=1, running=0, expected_runtime=50)
    session = session_of(cluster([node("n", cpu=4)], [grows, workload("b", of=spec(cpu=4))]))
    assert estimated_starts(session, Fairness(session)) == {"default/a": NOW, "default/b": NOW + 50 * SECOND}


def test_what_grows_takes_its_room_in_its_turn_and_gives_it_back_with_all_of_its_workload():
    """The surplus of the first comes behind the core of the second, and ends when its core does."""
    work = [
        workload("r", of=spec(cpu=4), on="n", running=60, expected_runtime=100),
        workload("a", tasks=2, of=spec(cpu=2), age=20, min_member=1, priority=50, expected_runtime=50),
        workload("b", of=spec(cpu=4), age=10, expected_runtime=50),
    ]
    assert starts(cluster([node("n", cpu=4)], work)) == {"a": NOW + 40 * SECOND, "b": NOW + 90 * SECOND}


def test_a_queue_that_has_got_something_comes_behind_one_that_has_nothing():
    """Not the order of now: when the second of one queue has its turn, the other queue is the emptier one."""
    work = [
        workload("r", of=spec(cpu=4), on="n", queue="c", running=60, expected_runtime=100),
        workload("a0", of=spec(cpu=2), queue="a", age=30),
        workload("a1", of=spec(cpu=2), queue="a", age=20, expected_runtime=50),
        workload("b0", of=spec(cpu=2), queue="b", age=10, expected_runtime=50),
    ]
    found = starts(cluster([node("n", cpu=4)], work, [queue(name) for name in "abc"]))
    assert found == {"a0": NOW + 40 * SECOND, "b0": NOW + 40 * SECOND, "a1": NOW + 90 * SECOND}


def test_with_backfilling_nobody_starts_who_would_delay_the_first():
    """There is room for the small one at once, but the large one is promised all of it in 40 s."""
    work = [
        workload("r", of=spec(cpu=2), on="n", running=60, expected_runtime=100),
        workload("large", of=spec(cpu=4), age=20, expected_runtime=50),
        workload("small", of=spec(cpu=2), age=10, expected_runtime=50),
        workload("brief", of=spec(cpu=2), age=5, expected_runtime=30),
    ]
    found = starts(cluster([node("n", cpu=4)], work, backfill="easy"))
    assert found == {"large": NOW + 40 * SECOND, "small": NOW + 90 * SECOND}, "the brief one runs"


def test_what_was_promised_its_place_ends_as_well():
    """Evictions make room for the first when the victim has left; the second has it when the first has ended."""
    work = [
        workload("victim", of=spec(cpu=4), on="n", running=60),
        workload("first", of=spec(cpu=4), age=20, priority=50, expected_runtime=50),
        workload("second", of=spec(cpu=4), age=10, priority=40, expected_runtime=50, preemption_policy="Never"),
    ]
    found = starts(cluster([node("n", cpu=4)], work, actions=("allocate", "preempt")))
    first = NOW + DEFAULT_GRACE_PERIOD
    assert found == {
        "first": first,
        "second": first + 50 * SECOND,
        "victim": first + 100 * SECOND,
    }


@pytest.mark.parametrize(("ends", "starts_after"), [(90, 30), (160, 100), (161, 130)])
def test_what_is_under_notice_is_left_to_finish_where_it_ends_before(ends, starts_after):
    """The notice is 100 s, and the grace period 30 s; the victim has run for 60 s."""
    work = [
        workload("victim", of=spec(cpu=4), on="n", running=60, expected_runtime=ends),
        workload("first", of=spec(cpu=4), age=20, priority=50),
    ]
    found = cluster([node("n", cpu=4)], work, actions=("allocate", "preempt"), eviction_notice=100 * SECOND)
    assert starts(found)["first"] == NOW + starts_after * SECOND


def test_what_was_evicted_after_its_notice_starts_anew_and_ends_as_well():
    """The last one has the room once the victim, which is served before it, has run from its beginning."""
    work = [
        workload("victim", of=spec(cpu=4), on="n", age=90, running=60, expected_runtime=1000),
        workload("first", of=spec(cpu=4), age=20, priority=50, expected_runtime=50),
        workload("last", of=spec(cpu=4), age=10, preemption_policy="Never"),
    ]
    found = cluster([node("n", cpu=4)], work, actions=("allocate", "preempt"), eviction_notice=100 * SECOND)
    assert starts(found) == {"first": NOW + 130 * SECOND, "last": NOW + 1180 * SECOND}


def test_an_estimate_leaves_the_session_as_it_was():
    """What it plays is undone, what pods of other schedulers hold included."""
    foreign = workload("f", of=spec(cpu=2), on="n", running=60, expected_runtime=100, scheduler_name="other")
    session = session_of(cluster([node("n", cpu=4)], [foreign, workload("a", of=spec(cpu=4))]))
    before = session.occupancy.total()
    assert estimated_starts(session, Fairness(session)) == {"default/a": NOW + 40 * SECOND}
    assert (session.occupancy.total(), session.now) == (before, NOW)


LASTS = (None, 20, 50, 100, 400)


@st.composite
def futures(draw):
    """Nodes full of what runs, and a few that wait; some say how long they run."""
    lasts, work, nodes = st.sampled_from(LASTS), [], []
    for number in range(draw(st.integers(1, 3))):
        size, name = draw(st.integers(2, 6)), f"n{number}"
        nodes.append(node(name, cpu=size))
        left = size
        while left and draw(st.integers(0, 6)):
            cpu, ran, expected = draw(st.integers(1, left)), draw(st.integers(0, 90)), draw(lasts)
            left -= cpu
            expected = expected if expected is None or expected > ran else ran + draw(st.integers(1, 50))
            fields = {"running": ran, "expected_runtime": expected}
            work.append(workload(f"r{number}-{left}", of=spec(cpu=cpu), on=[name], queue=draw(QUEUES), **fields))
    for number in range(draw(st.integers(1, 6))):
        tasks = draw(st.integers(1, 2))
        fields = {
            "age": draw(st.integers(0, 90)),
            "expected_runtime": draw(lasts),
            "tasks": tasks,
            "min_member": draw(st.sampled_from((1, tasks))),
            "priority": draw(st.sampled_from((0, 0, 10))),
        }
        work.append(workload(f"w{number}", of=spec(cpu=draw(st.integers(1, 4))), queue=draw(QUEUES), **fields))
    most = draw(st.sampled_from((None, 4, 7)))
    queues = [queue("a", max=None if most is None else {"cpu": most}), queue("b"), queue("c")]
    return cluster(nodes, work, queues, backfill=draw(st.sampled_from(("none", "easy"))))


QUEUES = st.sampled_from("abc")


def end(item):
    """When what runs of a workload ends; None where that is not known."""
    runs = item.started_at is not None and any(t.phase in PLACED for t in item.tasks)
    return item.started_at + item.expected_runtime if runs and item.expected_runtime else None


def leaves(one):
    """When a task that terminates has left."""
    return one.terminating_since + (DEFAULT_GRACE_PERIOD if one.grace_period is None else one.grace_period)


def waits_still(one, now):
    """A task that terminates does so until its grace period is over."""
    return replace(one, never_terminates=one.phase is Phase.TERMINATING and leaves(one) > now)


def moved_on(found, now):
    """The cluster at a later time: what is expected to end by then has ended, and what terminates has left in time."""
    stays = [w for w in found.workloads if (at := end(w)) is None or at > now]
    held = tuple(replace(w, tasks=tuple(waits_still(t, now) for t in w.tasks)) for w in stays)
    embedded = EmbeddedCluster(replace(found, workloads=held))
    embedded.advance(now)
    return embedded


def played_on(found):
    """When each workload is bound in cycles that only allocate: one now, and one whenever something ends or leaves."""
    bound, found = {}, replace(found, settings=replace(found.settings, actions=("allocate",)))
    at = found.now
    while at is not None:
        embedded = moved_on(found, max(at, found.now))
        seen = embedded.observe()
        plan = Scheduler(session_of(seen)).cycle(seen.now)
        embedded.carry_out(plan)
        found = embedded.observe()
        for step in plan.steps:
            if step.action == "bind":
                bound.setdefault(step.workload, plan.now)
        ends = [e for w in found.workloads if (e := end(w)) is not None]
        gone = [leaves(t) for w in found.workloads for t in w.tasks if t.phase is Phase.TERMINATING]
        at = min([*ends, *gone], default=None)
    return bound


def check(played):
    """The estimates are the times at which those that wait are bound."""
    told = {p.workload: p.estimated_start for p in played.pending}
    bound = played_on(played.after)
    assert told == {key: bound.get(key) for key in told}
    return told


@settings(max_examples=tries(75, 1500))
@given(futures())
def test_an_estimated_start_is_when_it_is_bound_if_nothing_else_arrives(found):
    """With queues and their maxima, gangs, surplus and backfilling."""
    if check(play(found)):
        event(found.settings.backfill)


def with_ends(seed, backfill):
    """A contended cluster in which most say how long they run, and none is overdue."""
    rng, state = random.Random(seed), contended(seed)

    def ending(item):
        after = rng.choice((None, 5, 30, 100, 1000))
        ran = 0 if item.started_at is None else state.now - item.started_at
        return replace(item, expected_runtime=None if after is None else ran + after * MINUTE)

    return replace(
        state,
        workloads=tuple(map(ending, state.workloads)),
        settings=replace(state.settings, backfill=backfill),
    )


@settings(max_examples=tries(100, 2000))
@given(st.integers(0, 1 << 32), st.sampled_from(("none", "easy")))
def test_so_it_is_where_others_give_way(seed, backfill):
    """What is promised is bound when its victims have left, and these contend from then on."""
    played = play(with_ends(seed, backfill))
    if any(s.action == "nominate" for s in played.steps):
        event("promised")
    if beaten(played):
        event("beaten")
    check(played)


def test_it_is_foreseen_that_the_next_cycle_gives_what_was_promised_to_another():
    """One that ranks ahead takes the room, and who was promised it starts when that one would have."""
    played = play(with_ends(126, "none"))
    assert beaten(played)
    check(played)


def beaten(played):
    """Whether the next cycle gives room that was promised to another."""
    after = replace(played.after, settings=replace(played.after.settings, actions=("allocate",)))
    return bool(Scheduler(session_of(after)).cycle(after.now).expired)
