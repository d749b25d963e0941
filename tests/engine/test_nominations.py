"""Nominations: kept, bound whole, given up, and beaten only by who ranks ahead (specification: the transaction)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, bound, cluster, codes, node, queue, spec, steps, task, workload

from tenure.model.cluster import Eviction
from tenure.model.workload import Nomination, Phase
from tenure.playthrough import play

MINUTE = 60 * SECOND


def leaving(name, on, *, cpu=1, since=0, grace=None, **fields):
    """A workload whose one task has been terminating for so many seconds."""
    gone = task(
        f"{name}-0",
        spec(cpu=cpu),
        on=on,
        phase=Phase.TERMINATING,
        terminating_since=NOW - since * SECOND,
        grace_period=grace and grace * SECOND,
    )
    return workload(name, tasks=[gone], **fields)


def nominated_to(name, *places, cpu=1, waited=0, of=None, **fields):
    """A workload whose tasks were nominated so many seconds ago; None for a task that was not."""
    asked = of or spec(cpu=cpu)
    tasks = [task(f"{name}-{i}", asked) for i in range(len(places))]
    at = NOW - waited * SECOND
    tasks = [
        replace(t, nominated=place and Nomination(node=place, at=at)) for t, place in zip(tasks, places, strict=True)
    ]
    return workload(name, tasks=tasks, **fields)


def test_surplus_is_not_bound_while_the_core_is_only_promised():
    """Nothing of a gang runs before its core does."""
    gang = nominated_to("g", "n", None, cpu=2, min_member=1)
    played = play(cluster([node("n", cpu=4), node("m", cpu=4)], [leaving("v", "n", cpu=4), gang]))
    assert steps(played) == []
    assert codes(played)["g"] == ["Nominated"]


def test_part_of_a_core_is_promised_nothing_and_bound_nowhere():
    gang = nominated_to("g", "n", None, cpu=3)
    played = play(cluster([node("n", cpu=4), node("m", cpu=1)], [gang]))
    assert steps(played) == []
    (after,) = played.after.workloads
    assert all(t.nominated is None for t in after.tasks)


@pytest.mark.parametrize("waited", [(9, 5), (5, 9)])
def test_parts_of_two_plans_are_no_promise(waited):
    """Of the writes of the second plan one was refused: both are promised one node, which has room for one of them."""
    gang = nominated_to("g", "a", "a", cpu=3)
    tasks = [
        replace(t, nominated=replace(t.nominated, at=NOW - ago * SECOND))
        for t, ago in zip(gang.tasks, waited, strict=True)
    ]
    played = play(cluster([node("a", cpu=4), node("b", cpu=4)], [replace(gang, tasks=tuple(tasks))]))
    assert sorted(bound(played).values()) == ["a", "b"]


def test_surplus_that_was_promised_later_leaves_the_core_its_promise():
    """The core waits for its room, and what a later plan promised beside it does so too."""
    gang = nominated_to("g", "n", "n", "n", min_member=2, waited=9)
    later = replace(gang.tasks[2], nominated=replace(gang.tasks[2].nominated, at=NOW - SECOND))
    gang = replace(gang, tasks=(*gang.tasks[:2], later))
    played = play(cluster([node("n", cpu=3), node("m", cpu=3)], [leaving("v", "n", cpu=3), gang]))
    assert steps(played) == []
    assert [t.nominated.node for w in played.after.workloads if w.name == "g" for t in w.tasks] == ["n", "n", "n"]


def test_a_promise_lasts_its_timeout_and_the_longest_grace_of_what_has_to_leave():
    """Of two promises that are bound together the later counts."""
    nodes = [node("a", cpu=1), node("b", cpu=1), node("c", cpu=9)]
    slow, quick = leaving("slow", "a", since=400, grace=900), leaving("quick", "b", since=10)
    gang = nominated_to("g", "a", "b", waited=400)
    assert codes(play(cluster(nodes, [slow, quick, gang])))["g"] == ["Nominated"]
    later = cluster(nodes, [slow, quick, nominated_to("g", "a", "b", waited=1201)])
    assert set(bound(play(later)).values()) == {"c"}


def test_a_promise_whose_room_is_there_is_bound_however_late():
    """Victims with a long grace period have left just now: the promise is not taken for overdue."""
    assert bound(play(cluster([node("a"), node("b")], [nominated_to("g", "b", waited=3000)]))) == {"g-0": "b"}


@pytest.mark.parametrize(
    ("mine", "beats"),
    [({"priority": 1}, True), ({"age": 99}, False), ({"priority": -1, "age": 99}, False)],
    ids=["priority", "age", "lower priority"],
)
def test_within_a_queue_only_priority_beats_a_promise(mine, beats):
    held = nominated_to("held", "n", cpu=4)
    played = play(cluster([node("n", cpu=4)], [leaving("v", "n", cpu=4), held, workload("w", of=spec(cpu=4), **mine)]))
    assert steps(played) == ([("nominate", "w-0", "n", ())] if beats else [])
    nominated = {t.name: t.nominated is not None for w in played.after.workloads for t in w.tasks}
    assert nominated["held-0"] is not beats


@pytest.mark.parametrize(
    ("a", "b", "beats"),
    [
        ({"priority": 200}, {}, True),
        ({"guaranteed": {"cpu": 4}}, {}, True),
        ({}, {"guaranteed": {"cpu": 4}}, False),
        ({"created_at": 1}, {"created_at": 2}, False),
    ],
    ids=["queue priority", "within guaranteed", "the other is within guaranteed", "older queue"],
)
def test_between_queues_the_rules_of_order_say_who_beats_a_promise(a, b, beats):
    """Judged as if the promise were not there; age and name do not count."""
    held = nominated_to("held", "n", cpu=4, queue="b")
    contender = workload("w", of=spec(cpu=4), queue="a")
    nodes, queues = [node("n", cpu=4)], [queue("a", **a), queue("b", **b)]
    played = play(cluster(nodes, [leaving("v", "n", cpu=4, queue="b"), held, contender], queues))
    assert bool(steps(played)) is beats


def test_who_gave_way_for_a_promise_does_not_take_it():
    held = nominated_to("held", "n", cpu=4)
    victim = workload("w", of=spec(cpu=4), priority=9)
    found = cluster([node("n", cpu=4)], [leaving("v", "n"), held, victim])
    gave_way = Eviction(at=NOW - SECOND, workload=victim.key, task="w-0", cause="reclaim", beneficiary=held.key)
    assert steps(play(replace(found, evictions=(gave_way,)))) == []
    assert steps(play(found)) == [("nominate", "w-0", "n", ())]


def test_no_more_promises_are_taken_than_are_needed():
    """The one furthest behind loses; who lost for nothing gets the promise again, with its time."""
    nodes = [node("a", cpu=2), node("b", cpu=4)]
    first, second = (
        nominated_to("low", "a", cpu=2, priority=1, waited=7),
        nominated_to("high", "b", cpu=4, priority=2, waited=7),
    )
    gone = [leaving("x", "a", cpu=2), leaving("y", "b", cpu=4)]
    played = play(cluster(nodes, [*gone, first, second, workload("w", of=spec(cpu=3), priority=5)]))
    assert steps(played, "nominate") == [("nominate", "w-0", "b", ())]
    after = {t.name: t.nominated for w in played.after.workloads for t in w.tasks}
    assert after["low-0"].at == NOW - 7 * SECOND
    assert after["high-0"] is None


def test_who_loses_a_promise_is_planned_anew_at_once():
    nodes = [node("a", cpu=4, labels={"k": "a"}), node("b", cpu=4)]
    picky = workload("w", of=spec(cpu=4, node_selector=(("k", "a"),)), priority=5)
    played = play(cluster(nodes, [leaving("v", "a"), nominated_to("held", "a", cpu=4), picky]))
    assert steps(played) == [("nominate", "w-0", "a", ()), ("bind", "held-0", "b", ())]


def test_the_place_of_a_running_gangs_missing_task_is_not_beaten():
    """It may be the landing place of a task that was moved; surplus may be beaten."""
    nodes = [node("n", cpu=2), node("m", cpu=4)]

    def gang(least):
        there, missing = task("g-0", on="n"), task("g-1", spec(cpu=4), nominated_to="m")
        return workload("g", tasks=[there, missing], min_member=least, running=60)

    urgent = workload("w", of=spec(cpu=4), priority=5)
    assert steps(play(cluster(nodes, [leaving("v", "m"), gang(2), urgent]))) == []
    assert steps(play(cluster(nodes, [leaving("v", "m"), gang(1), urgent]))) == [("nominate", "w-0", "m", ())]


def test_a_replacement_is_promised_its_place_alone():
    """All or nothing is a rule for starts."""
    gang = workload("g", tasks=3, on=["n"], running=60)
    played = play(cluster([node("n", cpu=2), node("m", cpu=1)], [leaving("v", "m"), gang]))
    assert steps(played) == [("bind", "g-1", "n", ()), ("nominate", "g-2", "m", ())]


def test_a_promise_that_names_no_devices_gets_some_and_keeps_them():
    nodes = [node("n", gpu=2)]
    part = nominated_to("p", "n", of=spec(fraction=600))
    going = task("v-0", spec(fraction=500), on="n", devices=[0], phase=Phase.TERMINATING, terminating_since=NOW)
    held = task("h-0", spec(fraction=500), on="n", devices=[1])
    played = play(cluster(nodes, [workload("v", tasks=[going]), workload("h", tasks=[held], running=1), part]))
    assert steps(played) == []
    assert steps(play(replace(played.after, workloads=played.after.workloads[1:]))) == [("bind", "p-0", "n", (0,))]


def test_a_promise_on_a_node_that_is_gone_is_forgotten():
    assert bound(play(cluster([node("a")], [nominated_to("p", "gone")]))) == {"p-0": "a"}
