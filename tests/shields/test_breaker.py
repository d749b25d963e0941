"""Causes that lose more than is gained: told of, and paused where that is switched on, but for what is guaranteed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import NOW, SECOND, cluster, node, queue, spec, workload

from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.explanation.remedies import what_helps
from tenure.model.cluster import EvictionOutcome
from tenure.model.settings import PATIENT_CAUSES, BreakerSettings, Settings, WorthSettings
from tenure.model.values.duration import format_time
from tenure.shields.breaker import losing_causes

HOUR = 3600 * SECOND
DAY = 24 * HOUR
GPU = spec(cpu=0, gpu=1)


def outcome(cause, *, ago=HOUR, lost=0, gained=0):
    return EvictionOutcome(at=NOW - ago, cause=cause, lost=lost, gained=gained)


def contended(*outcomes, guaranteed=1, priority=50, enabled=True, **worth):
    """One GPU that `runs` of queue `busy` holds; `waits` of queue `due` would have it by reclaim, or by priority."""
    running = workload("runs", of=GPU, on=["n"], age=7200, running=600, queue="busy")
    waits = workload("waits", of=GPU, age=60, queue="due" if guaranteed is not None else "busy", priority=priority)
    due = {"gpu": guaranteed} if guaranteed else {}
    queues = [queue("busy"), queue("due", guaranteed=due)]
    made = cluster([node("n", gpu=1)], [running, waits], queues)
    breaker = BreakerSettings(enabled=enabled)
    return replace(made, outcomes=outcomes, settings=Settings(worth=WorthSettings(breaker=breaker, **worth)))


def decided(given, now=None):
    made = given if now is None else replace(given, now=now)
    plan = Scheduler(session_of(made)).cycle(made.now)
    return [s.workload for s in plan.steps if s.action == "evict"], plan


def test_a_cause_that_loses_more_than_is_gained_pauses_until_that_is_over():
    """Preemption lost two weighted hours and gained one: nobody is preempted until the loss has left the window."""
    given = contended(outcome("preempt", lost=7200, gained=3600), guaranteed=None, priority=90)
    evicted, plan = decided(given)
    assert not evicted
    (reason,) = [r for r in plan.obstacles["default/waits"] if r.code == "CausePaused"]
    assert "lost 2 weighted hours and gained 1 weighted hour in the last 1d" in reason.message
    assert plan.wake == NOW - HOUR + DAY
    assert plan.losing == [("preempt", plan.warnings[0])]
    assert not decided(given, plan.wake - 1)[0]
    assert decided(given, plan.wake)[0] == ["default/runs"]


@pytest.mark.parametrize(
    "outcomes",
    [
        (),
        (outcome("preempt", lost=3600, gained=3600),),
        (outcome("reclaim", lost=7200),),
        (outcome("preempt", lost=7200, ago=DAY),),
        (outcome("preempt", lost=7200), outcome("preempt", gained=7200, ago=60 * SECOND)),
    ],
)
def test_a_cause_goes_on_whose_losses_are_gained_or_are_of_another_cause_or_long_ago(outcomes):
    """What is asked is whether this cause lost more than was gained by it, within the window."""
    assert decided(contended(*outcomes, guaranteed=None, priority=90))[0] == ["default/runs"]


def test_what_a_queue_is_guaranteed_is_reclaimed_while_reclaim_is_paused():
    """A guarantee is owed, whatever it costs; what goes beyond it has to pay."""
    lost = outcome("reclaim", lost=7200)
    assert decided(contended(lost))[0] == ["default/runs"]
    beyond = contended(lost, guaranteed=0)
    beyond = replace(beyond, workloads=(replace(beyond.workloads[0], priority=50), beyond.workloads[1]),
                     queues=(queue("busy", weight=0.0), queue("due")))  # fmt: skip
    assert not decided(beyond)[0]
    assert decided(replace(beyond, outcomes=()))[0] == ["default/runs"]


def test_it_is_told_where_nothing_pauses():
    """Not switched on, a cause that loses goes on, and the plan says what it lost."""
    evicted, plan = decided(contended(outcome("preempt", lost=7200), guaranteed=None, priority=90, enabled=False))
    assert evicted == ["default/runs"]
    assert plan.losing == [
        ("preempt", "evictions by preempt lost 2 weighted hours and gained 0 weighted hours in the last 1d")
    ]


def test_waiting_for_the_end_of_a_pause_helps_as_the_story_says():
    """`explain` says until when; at that time the contender is served."""
    given = contended(outcome("preempt", lost=7200), guaranteed=None, priority=90)
    _, plan = decided(given)
    found = [r for r in plan.obstacles["default/waits"] if r.code == "CausePaused"]
    assert what_helps(found, given.workloads[1]) == (
        f"to wait: preempt is paused until {format_time(plan.wake)} at the latest",
    )


@st.composite
def accounts(draw):
    number = st.integers(0, 5)
    made = [
        EvictionOutcome(
            at=draw(number), cause=draw(st.sampled_from(PATIENT_CAUSES)), lost=draw(number), gained=draw(number)
        )
        for _ in range(draw(st.integers(0, 8)))
    ]
    return made, draw(st.integers(1, 6)), draw(number)


@settings(max_examples=300, deadline=None)
@given(accounts())
def test_a_pause_ends_at_the_first_time_at_which_no_more_was_lost_than_gained(drawn):
    """Held to each moment looked at one by one; what lies ahead counts as known now."""
    outcomes, window, now = drawn

    def loses(cause, at):
        own = [o for o in outcomes if o.cause == cause and min(o.at, now) > at - window]
        return sum(o.lost for o in own) > sum(o.gained for o in own)

    found = {losing.cause: losing.until for losing in losing_causes(outcomes, window, now)}
    assert found == {
        cause: next(at for at in range(now, now + window + 1) if not loses(cause, at))
        for cause in PATIENT_CAUSES
        if loses(cause, now)
    }
