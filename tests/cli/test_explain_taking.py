"""`tenure explain` where queues take from each other: who gives way to whom, why, and what it would take else."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.actions.helpers import GPU, MINUTE, changed, cluster, codes, play, queue, runs, waits

from tenure.explanation.explain import explain_workload
from tenure.explanation.remedies import REMEDIED
from tenure.model.settings import BudgetRule, DisruptionSettings

FEWER = "fewer pods that must not move"
QUEUES = [queue("a", guaranteed=2), queue("b", guaranteed=0)]
STATE = cluster(QUEUES, [runs("victim", "b", ["n0"], gpus=4), waits("contender", "a", gpus=2)])


def story(state, name, **more):
    found = play(state, **more)
    return explain_workload(found, next(w for w in found.after.workloads if w.name == name))


def said(told):
    return "\n".join(told.lines())


def test_whoever_is_promised_room_learns_who_gives_way_and_at_what_cost():
    told = story(STATE, "contender")
    assert [r.code for r in told.reasons] == ["Nominated", "MadeRoom"]
    assert "of default/victim, 1 task is evicted for it (reclaim), at a cost of 4 weighted hours" in said(told)
    assert "has waited for 5 min" in told.headline


def test_in_the_next_cycle_it_is_still_known_for_whom_a_victim_leaves():
    after = play(STATE).after
    assert "of default/victim, 1 task is still leaving for it" in said(story(after, "contender"))
    told = story(after, "victim")
    assert told.state == "leaving"
    assert "Evicted" in said(told)


def test_a_victim_under_notice_learns_until_when_it_runs_and_for_whom():
    told_first = changed(STATE, "victim", eviction_notice=4 * MINUTE)
    for state in (told_first, play(told_first).after):  # when it is told, and afterwards
        told = story(state, "victim")
        assert told.state == "running"
        (reason,) = [r for r in told.reasons if r.code == "Notice"]
        assert (reason.numbers["for"], reason.numbers["cause"]) == ("default/contender", "reclaim")
        assert f"is to be evicted for default/contender by reclaim at {reason.numbers['deadline']}" in reason.message
        assert "1 task is to be evicted for it (reclaim) at" in said(story(state, "contender"))


def test_an_eviction_names_what_came_next_and_what_was_shielded():
    work = [
        runs("x", "b", ["n0"], minutes=10),
        runs("y", "b", ["n0"], minutes=60, priority=5),
        runs("z", "b", ["n0"], gpus=2, minutes=1),
        waits("contender", "a"),
    ]
    told = story(cluster([QUEUES[0], queue("b", reclaim_min_runtime=5 * MINUTE)], work), "x")
    assert told.state == "gives way"
    considered = "considered: 2 candidates in 1 set of victims (not taken, priced one by one, "
    considered += "though one may not make room: default/y (priority 5) at 1 weighted hour)"
    assert considered in told.headline
    assert "1 other was shielded (default/z by min-runtime until" in told.headline


BUDGET = DisruptionSettings(budgets=(BudgetRule(name="none", max_evictions=0, per=60 * MINUTE),))
FIXED = changed(STATE, "victim", preemptible=False)
EQUAL = cluster([queue("a")], [runs("victim", "a", ["n0"], gpus=4), waits("contender", "a", gpus=2)])


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (FIXED, "for reclaim, preemptible: true on default/victim, or the end of it"),
        (EQUAL, "for preempt, a priority above that of default/victim"),
        (changed(STATE, "a", preemption_policy="fence"), "its own queue without the fence (preemptionPolicy)"),
        (changed(STATE, "b", preemption_policy="disabled"), "another preemptionPolicy for the queue of default/victim"),
        (changed(STATE, "b", guaranteed={GPU: 4000}), "guarantees: the queue of default/victim is within its own"),
        (changed(STATE, "b", reclaim_min_runtime=61 * MINUTE), "until then min-runtime protects default/victim"),
        (cluster(QUEUES, STATE.workloads, disruption=BUDGET), "a budget that allows default/victim to be evicted"),
    ],
)  # fmt: skip
def test_what_it_would_take_is_said_for_each_shield(state, expected):
    helps = story(state, "contender").helps
    assert any(expected in h for h in helps), helps


def test_how_much_room_it_would_take_is_said():
    (room, *_) = story(FIXED, "contender").helps
    first = "and that no workload before it takes the room"
    assert room == f"one node that admits it and has 2 GPUs free, {first}"
    gang = cluster(QUEUES, [FIXED.workloads[0], waits("contender", "a", tasks=2)])
    (room, *_) = story(gang, "contender").helps
    assert room.endswith(f"has 1 GPU free, and as much for each of the 2 tasks that start together, {first}")


def test_what_has_no_start_says_that_no_minimum_runtime_protects_it():
    """Whether it gives way or not; the earliest start of a task would do."""
    state = changed(STATE, "b", reclaim_min_runtime=600 * MINUTE)
    (victim,) = (w for w in state.workloads if w.name == "victim")
    silent = tuple(replace(t, started_at=None) for t in victim.tasks)
    for more, expected in (({"tasks": silent}, True), ({}, False), ({"tasks": silent, "preemptible": False}, True)):
        told = story(changed(state, "victim", started_at=None, **more), "victim")
        assert ("UnknownStart" in [r.code for r in told.reasons]) is expected
        assert (told.state == "gives way") is (expected and "preemptible" not in more)


def test_whoever_is_promised_room_hears_nothing_of_what_else_was_tried():
    """Reclaim had no right to take for it; preempt has."""
    work = [runs("victim", "a", ["n0"], gpus=4), waits("contender", "a", gpus=2, priority=10)]
    told = story(cluster([queue("a", guaranteed=2), queue("b")], work), "contender")
    assert [r.code for r in told.reasons] == ["Nominated", "MadeRoom"]


def test_what_never_fits_is_not_told_that_others_could_give_way():
    contender = waits("contender", "a", gpus=2)
    spec = replace(contender.tasks[0].spec, node_selector=(("gpu", "h100"),))
    told = story(changed(FIXED, "contender", tasks=(replace(contender.tasks[0], spec=spec),)), "contender")
    assert "NeverFits" in [r.code for r in told.reasons]
    assert told.helps == (
        "one node that admits it (without this obstacle: node selector) and has 2 GPUs free: no waiting helps",
    )


def test_a_slot_for_a_pod_is_named_where_there_is_none():
    """No workload asks for one in so many words."""
    state = cluster([queue("a")], [runs("victim", "a", ["n0"]), waits("contender", "a", priority=-1)])
    full = replace(state, nodes=tuple(replace(n, allocatable={GPU: 4, "pods": 1}) for n in state.nodes))
    (room, *_) = story(full, "contender").helps
    assert room.startswith("one node that admits it and has 1 GPU and 1 pod slot free")


def test_no_priority_is_asked_for_above_what_would_not_give_way_even_then():
    work = [
        runs("fixed", "a", ["n0"], gpus=2, preemptible=False, priority=5),
        runs("other", "a", ["n0"], gpus=2),
        waits("contender", "a", gpus=2),
    ]
    state = cluster([queue("a")], work)
    assert "for preempt, a priority above that of default/other" in story(state, "contender").helps
    assert codes(play(changed(state, "contender", priority=1)), "contender") == ["Nominated"]
    alone = replace(
        state, workloads=(changed(state, "fixed", priority=0).workloads[0], waits("contender", "a", gpus=4))
    )
    both = "for preempt, a priority above that of default/fixed together with preemptible: true on it"
    assert [h for h in story(alone, "contender").helps if "preempt" in h] == [both]


def test_preemptible_is_not_asked_for_where_a_guarantee_protects_as_well():
    state = changed(FIXED, "b", guaranteed={GPU: 4000})
    told = story(state, "contender")
    assert "preemptibility" in said(told)
    assert not [h for h in told.helps if "preemptible" in h]
    assert not play(changed(state, "victim", preemptible=True)).steps


@pytest.mark.parametrize(("held", "expected"), [(False, "another node"), (True, f"another node, or {FEWER}")])
def test_fewer_pods_that_must_not_move_help_only_where_some_are_held(held, expected):
    """Four GPUs are free on two nodes together, or one."""
    work = [
        runs("x", "a", ["n0"], gpus=2 if held else 4, preemptible=not held),
        runs("y", "a", ["n1"], gpus=2 if held else 3, preemptible=not held),
        waits("contender", "a", gpus=4, minutes=60),
    ]
    told = story(cluster([queue("a")], work, nodes=2, actions=("reschedule",)), "contender")
    assert [r.code for r in told.reasons][-1] == "NoMoveHelps"
    assert told.helps[-1] == expected


def idle(told):
    """What is said of causes that do not act."""
    return [r.message for r in told.reasons if r.code == "CauseIdle"]


def test_a_cause_that_does_not_act_and_could_help_is_named_with_what_sets_it_to_work():
    """Off, not among the actions, or in shadow, where it is known whom it would evict."""
    off = replace(STATE, settings=replace(STATE.settings, modes={"reclaim": "off"}))
    told = story(off, "contender")
    assert idle(told) == ["reclaim is off, so it evicts nothing for it"]
    assert "for reclaim, the mode enforce (scheduler.modes.reclaim)" in told.helps
    told = story(replace(STATE, settings=replace(STATE.settings, actions=("allocate", "preempt"))), "contender")
    assert idle(told) == ["reclaim is not among the actions, so it evicts nothing for it"]
    assert "for reclaim, reclaim among the actions (scheduler.actions)" in told.helps
    shadow = replace(STATE, settings=replace(STATE.settings, modes={"reclaim": "shadow"}))
    told = story(shadow, "contender")
    assert idle(told) == ["reclaim is in shadow: it would evict default/victim for it, and only records that"]
    assert "for reclaim, the mode enforce (scheduler.modes.reclaim)" in told.helps


def test_a_cause_that_does_not_act_is_not_named_where_its_rules_would_open_nothing():
    """It has no right, the victim is protected or of no lower priority, or nothing is to be evicted for it."""
    work = [runs("victim", "a", ["n0"], gpus=4), waits("contender", "a", gpus=2)]
    inside = cluster([queue("a")], work, actions=("allocate",))
    assert not idle(story(inside, "contender"))
    higher = changed(inside, "contender", priority=1)
    assert idle(story(higher, "contender")) == ["preempt is not among the actions, so it evicts nothing for it"]
    assert not idle(story(changed(higher, "contender", preemption_policy="Never"), "contender"))
    none = replace(STATE, settings=replace(STATE.settings, actions=("allocate",)))
    assert not idle(story(changed(none, "a", guaranteed={GPU: 0}, weight={GPU: 0}), "contender"))
    assert not idle(story(changed(none, "victim", preemptible=False), "contender"))


def test_a_move_that_could_help_is_named_where_neither_cause_that_moves_acts():
    work = [runs("x", "a", ["n0"], gpus=2), runs("y", "a", ["n1"], gpus=2), waits("contender", "a", gpus=4)]
    state = cluster([queue("a")], work, nodes=2, actions=("allocate", "preempt"))
    assert idle(story(state, "contender")) == ["consolidate is not among the actions, so it moves nothing for it"]
    moving = replace(state, settings=replace(state.settings, actions=("allocate", "reschedule")))
    assert not idle(story(moving, "contender"))


def test_whoever_lets_nothing_be_evicted_for_it_is_told_what_says_so():
    never = changed(EQUAL, "contender", preemption_policy="Never", priority=1)
    told = story(never, "contender")
    assert "NeverPreempts" in [r.code for r in told.reasons]
    assert "a preemptionPolicy other than Never, of its own or of its priority class" in told.helps


def test_each_reason_that_an_eviction_is_not_made_has_a_remedy():
    """Those that say that moves are under way or dearer, and what is promised, need none."""
    none = {"CheaperVictims", "MovesUnderWay", "MadeRoom"}
    text = (Path(__file__).parents[2] / "docs/concepts.md").read_text()
    reasons = text.partition("\n## Reasons\n")[2].partition("\n### Of what runs\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", reasons, re.MULTILINE)) - none == REMEDIED
