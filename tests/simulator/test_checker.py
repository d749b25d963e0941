"""The independent checker: a correct log is clean, and every fault that is put into one is counted."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulator.helpers import SECOND, gang, node, script, spec

from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.workload import SubGroup
from tenure.simulator.checker import check
from tenure.simulator.log import EventLog

NODES = (node("n0", cpu=4, gpus=2), node("n1", cpu=4, gpus=2))


def found(log, nodes=NODES, queues=(), **options):
    return check(log, nodes, queues=queues, **options).by_kind


def test_a_log_without_events_is_clean():
    assert check(EventLog(), NODES).total == 0


def test_a_correct_log_is_clean():
    """A gang runs and ends, is followed at the same instant, and one is evicted for another that then runs."""
    jobs = [gang("a", 2, spec(4)), gang("b", 2, spec(2)), gang("c", 1, spec(4, gpus=2))]
    log = script(
        jobs,
        ("submit", 0, 0), ("bind", 0, 0, 0, 0), ("bind", 0, 0, 1, 1),
        ("submit", 5, 1), ("submit", 6, 2),
        ("end", 10, 0, 0), ("end", 10, 0, 1),
        ("bind", 10, 1, 0, 0), ("bind", 10, 1, 1, 0),
        ("evict", 12, 1, 0, "reclaim", 2), ("evict", 12, 1, 1, "reclaim", 2),
        ("bind", 12, 2, 0, 0, (0, 1)),
        ("bind", 13, 1, 0, 1), ("bind", 13, 1, 1, 1),
        ("end", 20, 1, 0), ("end", 20, 1, 1), ("end", 21, 2, 0),
    )  # fmt: skip
    assert check(log, NODES).total == 0


@pytest.mark.parametrize(
    ("one", "extra", "resource"),
    [
        (spec(3), {}, "cpu"),
        (spec(1, gpus=2), {}, "nvidia.com/gpu"),
        (spec(0), {"pods": 1}, "pods"),
    ],
)
def test_a_node_over_its_capacity(one, extra, resource):
    nodes = (node("n0", cpu=4, gpus=2, extra=extra),)
    log = script([gang("a", 2, one)], ("submit", 0, 0), ("bind", 0, 0, 0, 0), ("bind", 0, 0, 1, 0))
    result = check(log, nodes)
    assert result.by_kind["node over capacity"] == 1
    assert f" of {resource} and has " in result.examples[0]


def test_each_excursion_over_capacity_counts_once():
    jobs = [gang(f"j{i}", 1, spec(3)) for i in range(3)]
    log = script(
        jobs,
        ("submit", 0, 0), ("submit", 0, 1), ("submit", 0, 2), ("bind", 0, 0, 0, 0),
        ("bind", 1, 1, 0, 0), ("bind", 2, 2, 0, 0), ("end", 3, 1, 0), ("end", 4, 2, 0),
        ("end", 5, 0, 0),
    )  # fmt: skip
    assert found(log) == {"node over capacity": 1}


def test_what_a_node_does_not_have_cannot_be_held_there():
    assert found(script([gang("a", 1, spec(1, gpus=1))], ("submit", 0, 0), ("bind", 0, 0, 0, 0)), (node("n0"),)) == {
        "device over capacity": 1,
        "node over capacity": 1,
    }


def test_an_evicted_task_holds_its_room_until_it_leaves():
    jobs = [gang("a", 1, spec(4)), gang("b", 1, spec(4))]
    events = [
        ("submit", 0, 0),
        ("submit", 0, 1),
        ("bind", 0, 0, 0, 0),
        ("evict", 5, 0, 0, "reclaim", 1, {"leaves_at": 8}),
    ]
    assert found(script(jobs, *events, ("bind", 7, 1, 0, 0))) == {"node over capacity": 1}
    assert found(script(jobs, *events, ("bind", 8, 1, 0, 0))) == {}


def share_log(*shares):
    """Bind shares (spec, devices) one after the other to the first node."""
    log = EventLog([gang(f"s{i}", 1, one) for i, (one, _) in enumerate(shares)])
    for index, (_, devices) in enumerate(shares):
        log.submit(index, index)
        log.bind(index, index, 0, 0, devices)
    return log


HALF, MOST, WHOLE = spec(0, milli=500), spec(0, milli=600), spec(0, gpus=1)


@pytest.mark.parametrize(
    ("shares", "kinds"),
    [
        ([(HALF, (0,)), (HALF, (0,)), (WHOLE, (1,))], {}),
        ([(HALF, (0,)), (MOST, (0,))], {"device over capacity": 1}),
        ([(WHOLE, (0,)), (WHOLE, (0,))], {"device over capacity": 1}),
        ([(WHOLE, (0,)), (HALF, (0,))], {"device over capacity": 1}),
        ([(HALF, ())], {"wrong devices": 1}),
        ([(HALF, (2,))], {"wrong devices": 1}),
        ([(WHOLE, (0, 1))], {"wrong devices": 1}),
        ([(spec(0, milli=500, devices=2), (0, 1)), (MOST, (1,))], {"device over capacity": 1}),
        ([(WHOLE, ()), (WHOLE, ())], {}),
        ([(HALF, (0,)), (HALF, (1,)), (WHOLE, ())], {"device over capacity": 1}),
        ([(WHOLE, ()), (HALF, (0,)), (HALF, (0,))], {}),
    ],
)
def test_devices(shares, kinds):
    assert found(share_log(*shares)) == kinds


def test_shares_of_memory_and_of_the_gpu_add_up_on_a_device():
    nodes = (node("n0", gpus=1, gpu_memory=10 << 30),)
    quarter = spec(0, memory=(10 << 30) // 4)
    assert found(share_log((quarter, (0,)), (quarter, (0,)), (HALF, (0,))), nodes) == {}
    log = share_log((quarter, (0,)), (quarter, (0,)), (HALF, (0,)), (spec(0, milli=1), (0,)))
    assert found(log, nodes) == {"device over capacity": 1, "node over capacity": 1}


def test_a_share_of_memory_needs_a_node_that_says_how_much_its_gpus_have():
    assert found(share_log((spec(0, memory=1), (0,)))) == {"device over capacity": 1}


def test_a_gang_that_starts_in_part():
    log = script([gang("a", 3)], ("submit", 0, 0), ("bind", 1, 0, 0, 0), ("bind", 1, 0, 1, 0), ("bind", 2, 0, 2, 0))
    assert found(log) == {"gang running below its core": 1}


def test_a_gang_needs_its_core_only_at_the_end_of_an_instant():
    log = script([gang("a", 2)], ("submit", 0, 0), ("bind", 1, 0, 0, 0), ("bind", 1, 0, 1, 0))
    assert found(log) == {}


def test_a_gang_that_loses_a_part_of_its_core():
    jobs = [gang("a", 3, min_member=2), gang("b")]
    events = [("submit", 0, 0), ("submit", 0, 1), *(("bind", 1, 0, i, 0) for i in range(3))]
    surplus = [("evict", 2, 0, 2, "reclaim", 1), ("bind", 2, 1, 0, 1)]
    assert found(script(jobs, *events, *surplus)) == {}
    assert found(script(jobs, *events, *surplus, ("evict", 3, 0, 1, "quota"))) == {"gang running below its core": 1}


def test_finished_tasks_count_as_active():
    log = script(
        [gang("a", 2)],
        ("submit", 0, 0), ("bind", 1, 0, 0, 0), ("bind", 1, 0, 1, 0), ("end", 2, 0, 0), ("end", 9, 0, 1),
    )  # fmt: skip
    assert found(log) == {}


def test_a_task_on_a_move_counts_as_active_until_it_lands():
    jobs = [gang("a", 2), gang("b")]
    events = [("submit", 0, 0), ("submit", 0, 1), ("bind", 0, 0, 0, 0), ("bind", 0, 0, 1, 0)]
    move = [("evict", 1, 0, 1, "consolidate", 1), ("bind", 2, 1, 0, 0), ("bind", 3, 0, 1, 1)]
    assert found(script(jobs, *events, *move)) == {}
    reclaimed = [("evict", 1, 0, 1, "reclaim", 1), *move[1:]]
    assert found(script(jobs, *events, *reclaimed)) == {"gang running below its core": 1}


def grouped(**fields):
    groups = (SubGroup(name="x", min_member=1), SubGroup(name="y", min_member=2))
    return gang("a", 4, groups=["x", "x", "y", "y"], sub_groups=groups, **fields)


@pytest.mark.parametrize(
    ("fields", "bound", "faults"),
    [({}, [0, 2, 3], 0), ({}, [0, 1, 2], 1), ({"min_sub_group": 1}, [0], 0), ({"min_member": 4}, [0, 2, 3], 1)],
)
def test_subgroups_have_minimums_of_their_own(fields, bound, faults):
    log = script([grouped(**fields)], ("submit", 0, 0), *(("bind", 1, 0, task, 0) for task in bound))
    assert check(log, NODES).total == faults


def test_nested_subgroups_need_as_many_of_their_children_as_they_say():
    inner = (SubGroup(name="x"), SubGroup(name="y"))
    job = gang(
        "a", 4, groups=["x", "x", "y", "y"], sub_groups=(SubGroup(name="top", sub_groups=inner, min_sub_group=1),)
    )
    whole = script([job], ("submit", 0, 0), ("bind", 1, 0, 2, 0), ("bind", 1, 0, 3, 0))
    part = script([job], ("submit", 0, 0), ("bind", 1, 0, 1, 0), ("bind", 1, 0, 2, 0))
    assert (check(whole, NODES).total, check(part, NODES).total) == (0, 1)


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([("bind", 1, 0, 0, 1)], "task bound twice"),
        ([("end", 1, 0, 0), ("end", 2, 0, 0)], "task ended that was not running"),
        ([("end", 1, 0, 0), ("bind", 2, 0, 0, 0)], "task bound after it had finished"),
        ([("evict", 1, 0, 0, "quota"), ("evict", 2, 0, 0, "quota")], "task evicted that was not running"),
        ([("evict", 1, 0, 0, "quota"), ("end", 2, 0, 0)], "task ended that was not running"),
        ([("submit", 1, 0)], "workload submitted twice"),
        ([("drop", 1, 0, "too large")], "workload dropped after it had started"),
        ([("end", -1, 0, 0)], "event before an earlier one"),
        ([("bind", 1, 0, 7, 0)], "event of something unknown"),
        ([("bind", 1, 0, 0, 9)], "event of something unknown"),
        ([("submit", 1, 5)], "event of something unknown"),
        ([("evict", 1, 0, 0, "boredom")], "eviction without an allowed cause"),
        ([("evict", 1, 0, 0, "reclaim")], "eviction without a beneficiary"),
        ([("evict", 1, 0, 0, "requeue", 0)], "eviction without a beneficiary"),
        ([("evict", 1, 0, 0, "reclaim", 99)], "eviction without a beneficiary"),
        ([("evict", 1, 0, 0, "reclaim", 1)], "eviction whose beneficiary never ran"),
    ],
)
def test_a_fault_in_a_correct_log_is_counted(events, kind):
    log = script([gang("a"), gang("b")], ("submit", 0, 0), ("bind", 0, 0, 0, 0), *events)
    assert found(log) == {kind: 1}


def test_a_task_bound_before_its_workload_arrived():
    log = script([gang("a")], ("bind", 0, 0, 0, 0), ("submit", 1, 0))
    assert found(log) == {"event of a workload before it arrived": 1}
    log.initial = 1
    assert found(log) == {}


def test_a_beneficiary_must_run_after_the_eviction_and_not_before():
    jobs = [gang("a"), gang("b", 2, min_member=1)]
    log = script(
        jobs,
        ("submit", 0, 0), ("submit", 0, 1), ("bind", 0, 0, 0, 0), ("bind", 0, 1, 0, 1),
        ("evict", 1, 0, 0, "reclaim", 1),
    )  # fmt: skip
    assert found(log) == {"eviction whose beneficiary never ran": 1}
    assert found(log, complete=False) == {}
    log.bind(2 * SECOND, 1, 1, 0)
    assert found(log) == {}


@pytest.mark.parametrize("cause", ["stale-gang", "quota", "reschedule"])
def test_some_causes_need_no_beneficiary(cause):
    log = script([gang("a")], ("submit", 0, 0), ("bind", 0, 0, 0, 0), ("evict", 1, 0, 0, cause), ("bind", 2, 0, 0, 1))
    assert found(log) == {}


def test_what_moves_has_to_land():
    """Unless its workload ends first, or one that came later took its place."""
    jobs = [gang("a", 2), gang("b")]
    events = [
        ("submit", 0, 0), ("submit", 0, 1), ("bind", 0, 0, 0, 0), ("bind", 0, 0, 1, 0),
        ("evict", 1, 0, 1, "consolidate", 1), ("bind", 1, 1, 0, 0),
    ]  # fmt: skip
    assert found(script(jobs, *events)) == {"moved task that never landed": 1}
    assert found(script(jobs, *events), complete=False) == {}
    assert found(script(jobs, *events, ("end", 2, 0, 0))) == {}
    assert found(script([*jobs, gang("c")], *events, ("submit", 2, 2))) == {}


def evicted_at(second, task=1, **recorded):
    return script(
        [gang("a", 2, min_member=1)],
        ("submit", 0, 0), ("bind", 10, 0, 0, 0), ("bind", 20, 0, 1, 0),
        ("evict", second, 0, task, "quota", -1, recorded),
        *([("evict", second, 0, 0, "quota", -1, recorded)] if task else []),
    )  # fmt: skip


def test_a_protected_core_is_not_evicted_and_surplus_may_be():
    whole, surplus = evicted_at(69), evicted_at(69, task=0)
    minute = {"settings": Settings(reclaim_min_runtime=60 * SECOND)}
    assert found(whole, **minute) == {"protected core evicted": 1}
    assert found(surplus, **minute) == {}
    assert found(evicted_at(70), **minute) == {}


def test_protection_that_the_log_recorded_is_held_against_the_eviction():
    assert found(evicted_at(30, protected_until=31)) == {"protected core evicted": 1}
    assert found(evicted_at(31, protected_until=31)) == {}


def test_protection_starts_anew_after_a_full_eviction():
    log = evicted_at(70)
    log.bind(100 * SECOND, 0, 0, 0)
    log.evict(130 * SECOND, 0, 0, "quota")
    assert found(log, settings=Settings(reclaim_min_runtime=60 * SECOND)) == {"protected core evicted": 1}


TREE = (
    Queue(name="top", max={"cpu": 3000}),
    Queue(name="left", parent="top", max={"nvidia.com/gpu": 1500}),
    Queue(name="right", parent="top"),
)


def queue_log(*binds):
    log = EventLog([gang(f"w{i}", 1, one, queue=queue) for i, (queue, one) in enumerate(binds)])
    for index in range(len(binds)):
        log.submit(index, index)
    for index, (_, one) in enumerate(binds):
        log.bind(10 + index, index, 0, index % 2, (0,) if one.gpu_share else ())
    return log


@pytest.mark.parametrize(
    ("binds", "faults"),
    [
        ([("left", spec(2)), ("right", spec(1))], 0),
        ([("left", spec(2)), ("right", spec(2))], 1),
        ([("left", spec(0, gpus=1)), ("left", spec(0, milli=500))], 0),
        ([("left", spec(0, gpus=1)), ("left", spec(0, milli=501))], 1),
        ([("right", spec(0, gpus=1)), ("right", spec(0, gpus=1))], 0),
        ([("elsewhere", spec(4))], 0),
    ],
)
def test_a_queue_over_its_maximum_at_any_level(binds, faults):
    assert found(queue_log(*binds), queues=TREE) == ({"queue over max": faults} if faults else {})


def test_an_evicted_task_no_longer_counts_for_its_queue_while_it_leaves():
    jobs = [gang("a", 1, spec(3), queue="left"), gang("b", 1, spec(3), queue="right")]
    log = script(
        jobs,
        ("submit", 0, 0), ("submit", 0, 1), ("bind", 0, 0, 0, 0),
        ("evict", 1, 0, 0, "reclaim", 1, {"leaves_at": 30}), ("bind", 2, 1, 0, 1),
    )  # fmt: skip
    assert found(log, queues=TREE) == {}


def test_examples_say_what_was_wrong_and_are_few():
    log = script([gang("a")], ("submit", 0, 0), *[("end", i, 0, 0) for i in range(50)])
    result = check(log, NODES)
    assert (result.total, len(result.examples)) == (50, 5)
    assert "a-0 of default/a" in result.examples[0]


def random_log(seed):
    """Random binds and ends, each task once, many of them beyond what nodes have."""
    draw = random.Random(seed)
    jobs = [gang(f"j{i}", 1, draw.choice([spec(1), spec(2), spec(1, gpus=1)])) for i in range(draw.randint(1, 12))]
    events = []
    for index in range(len(jobs)):
        start = draw.randint(0, 20)
        events.append((start, "bind", index, draw.randint(0, 1)))
        if draw.random() < 0.8:
            events.append((draw.randint(start, 25), "end", index, 0))
    log = EventLog(jobs, initial=len(jobs))
    for at, kind, index, where in sorted(events, key=lambda event: event[0]):
        if kind == "bind":
            log.bind(at, index, 0, where)
        else:
            log.end(at, index, 0)
    return log


def excursions(log, nodes):
    """Count the same by replaying the log one event after the other."""
    where, count = {}, 0
    over = set()
    for kind, _at, job, _task, x, _extra in log.events:
        if kind == 1:
            where[job] = x
        else:
            where.pop(job, None)
        for number, one in enumerate(nodes):
            held = [dict(log.workloads[j].tasks[0].spec.requests) for j, n in where.items() if n == number]
            for resource in ("cpu", "nvidia.com/gpu"):
                key = (number, resource)
                if sum(ask.get(resource, 0) for ask in held) > one.allocatable.get(resource, 0):
                    count += key not in over
                    over.add(key)
                else:
                    over.discard(key)
    return count


@given(st.integers(0, 10**6))
@settings(max_examples=150)
def test_capacity_is_checked_as_a_replay_of_the_log_would(seed):
    log = random_log(seed)
    assert found(log).get("node over capacity", 0) == excursions(log, NODES)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
@settings(max_examples=100)
def test_any_fault_put_into_a_correct_log_is_counted(seed, fault):
    """One event of a clean first-come-first-served run is doubled, removed or moved elsewhere."""
    log, draw = first_come(seed), random.Random(fault)
    assert check(log, NODES).total == 0
    index = draw.randrange(len(log.events))
    kind, at, job, task, x, extra = log.events[index]
    if kind == 0:
        del log.events[index]
    elif kind == 1:
        log.events[index] = (kind, at, job, task, x + len(NODES), extra)
    else:
        log.events.insert(index, (kind, at, job, task, x, extra))
    assert check(log, NODES).total > 0


def first_come(seed):
    """Run random gangs one at a time on the two nodes, each until it has finished."""
    draw = random.Random(seed)
    jobs = [gang(f"j{i}", draw.randint(1, 2), spec(draw.randint(1, 4))) for i in range(draw.randint(1, 6))]
    log, now = EventLog(jobs), 0
    for index, job in enumerate(jobs):
        log.submit(now, index)
        for task in range(len(job.tasks)):
            log.bind(now, index, task, task)
        now += draw.randint(0, 3)
        for task in range(len(job.tasks)):
            log.end(now, index, task)
    return log
