"""What the checker says of evictions that some shield or rule forbids, each put into a log by hand."""

from __future__ import annotations

import pytest
from tests.simulator.helpers import SECOND, gang, node, script, spec

from tenure.model.queue import Queue
from tenure.model.settings import MinRuntimeSettings, Settings
from tenure.model.workload import SubGroup
from tenure.simulator.checker import check
from tenure.simulator.checks.gangs import PROTECTED
from tenure.simulator.checks.min_runtime import min_runtime_of
from tenure.simulator.checks.notices import UNTOLD
from tenure.simulator.checks.shields import CLOSED, FOR_NEVER, NOT_ITS_CAUSE, NOT_PREEMPTIBLE

NODES = (node("n0", cpu=4), node("n1", cpu=4))
QUEUES = (
    Queue(name="all"),
    Queue(name="a", parent="all"),
    Queue(name="b", parent="all"),
    Queue(name="closed", parent="all", preemption_policy="disabled"),
    Queue(name="in-closed", parent="closed"),
    Queue(name="fenced", parent="all", preemption_policy="fence"),
    Queue(name="x", parent="fenced"),
    Queue(name="y", parent="fenced"),
)


def evicted(cause, victim, beneficiary, settings=None, *, after=100):
    """The kinds of what is found where a victim is evicted for a beneficiary, each given by its fields."""
    jobs = [gang("victim", of=spec(4), **victim), gang("other", of=spec(4), **beneficiary)]
    log = script(
        jobs, ("submit", 0, 0), ("submit", 0, 1), ("bind", 0, 0, 0, 0),
        ("evict", after, 0, 0, cause, 1), ("bind", after, 1, 0, 0), ("bind", after, 0, 0, 1),
    )  # fmt: skip
    return check(log, NODES, queues=QUEUES, settings=settings).by_kind


IN_A, IN_B, HIGHER = {"queue": "a"}, {"queue": "b"}, {"queue": "a", "priority": 1}


@pytest.mark.parametrize(
    ("cause", "victim", "beneficiary", "kind"),
    [
        ("reclaim", IN_A, IN_B, None),
        ("preempt", IN_A, HIGHER, None),
        ("requeue", IN_A, IN_B, None),
        ("consolidate", IN_A, IN_A, None),
        ("reclaim", IN_A | {"preemptible": False}, IN_B, NOT_PREEMPTIBLE),
        ("reclaim", IN_A | {"priority": 100}, IN_B, NOT_PREEMPTIBLE),
        ("consolidate", IN_A | {"owner_kind": "DaemonSet"}, IN_B, NOT_PREEMPTIBLE),
        ("stale-gang", IN_A | {"preemptible": False}, IN_B, None),
        ("reclaim", {"queue": "in-closed"}, IN_A, CLOSED),
        ("requeue", {"queue": "in-closed"}, IN_A, CLOSED),
        ("reclaim", IN_A, {"queue": "in-closed"}, None),
        ("consolidate", IN_A, IN_B | {"preemption_policy": "Never"}, FOR_NEVER),
        ("preempt", IN_A, IN_A, NOT_ITS_CAUSE),
        ("preempt", HIGHER, IN_A, NOT_ITS_CAUSE),
        ("preempt", IN_A, {"queue": "b", "priority": 1}, NOT_ITS_CAUSE),
        ("reclaim", IN_A, HIGHER, NOT_ITS_CAUSE),
        ("reclaim", IN_A, {"queue": "x"}, NOT_ITS_CAUSE),
        ("reclaim", {"queue": "x"}, IN_A, None),
        ("reclaim", {"queue": "x"}, {"queue": "y"}, None),
        ("requeue", IN_A, {"queue": "x"}, None),
    ],
)
def test_an_eviction_that_may_not_be_is_told(cause, victim, beneficiary, kind):
    assert evicted(cause, victim, beneficiary) == ({} if kind is None else {kind: 1})


def test_an_eviction_without_the_notice_that_was_asked_for():
    assert evicted("reclaim", IN_A, IN_B, Settings(eviction_notice=SECOND)) == {UNTOLD: 1}
    assert evicted("reclaim", IN_A | {"eviction_notice": 0}, IN_B, Settings(eviction_notice=SECOND)) == {}
    assert evicted("reclaim", IN_A | {"eviction_notice": 1}, IN_B, Settings()) == {UNTOLD: 1}


@pytest.mark.parametrize("cause", ["reclaim", "consolidate", "reschedule"])
def test_a_core_that_has_not_run_for_its_minimum_runtime_is_not_moved_either(cause):
    minute = Settings(reclaim_min_runtime=60 * SECOND)
    assert evicted(cause, IN_A, IN_B, minute, after=59) == {PROTECTED: 1}
    assert evicted(cause, IN_A, IN_B, minute, after=60) == {}


def test_what_stood_when_the_log_began_started_before():
    log = script([gang("a")], ("submit", 0, 0), ("bind", 0, 0, 0, 0))
    log.initial = 1
    log.plans.begin(len(log))
    log.evict(SECOND, 0, 0, "quota")
    log.plans.begin(len(log))
    log.bind(2 * SECOND, 0, 0, 0)
    minute = Settings(reclaim_min_runtime=60 * SECOND)
    assert check(log, NODES, settings=minute).by_kind == {}
    log.plans.begin(len(log))
    log.evict(3 * SECOND, 0, 0, "quota")
    assert check(log, NODES, settings=minute).by_kind == {PROTECTED: 1}


def test_a_part_of_a_subgroup_that_moves_is_protected_as_well():
    jobs = [gang("a", 2, groups=["g", "g"], sub_groups=(SubGroup(name="g"),)), gang("b")]
    log = script(
        jobs, ("submit", 0, 0), ("submit", 0, 1), ("bind", 0, 0, 0, 0), ("bind", 0, 0, 1, 0),
        ("evict", 10, 0, 1, "consolidate", 1), ("bind", 10, 1, 0, 0), ("bind", 10, 0, 1, 1),
    )  # fmt: skip
    assert check(log, NODES, settings=Settings(reclaim_min_runtime=60 * SECOND)).by_kind == {PROTECTED: 1}
    assert check(log, NODES, settings=Settings(reclaim_min_runtime=10 * SECOND)).by_kind == {}


FIRST = (
    Queue(name="A"), Queue(name="B", parent="A", reclaim_min_runtime=600), Queue(name="C", parent="B"),
    Queue(name="leaf1", parent="C", reclaim_min_runtime=0), Queue(name="leaf2", parent="C", reclaim_min_runtime=180),
    Queue(name="D", parent="B", reclaim_min_runtime=60), Queue(name="leaf3", parent="D"), Queue(name="other"),
)  # fmt: skip
SECOND_TREE = (
    Queue(name="A"), Queue(name="B", parent="A", preempt_min_runtime=600), Queue(name="C", parent="B"),
    Queue(name="leaf1", parent="C", preempt_min_runtime=300), Queue(name="leaf2", parent="C"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("queues", "cause", "beneficiary", "victim", "expected"),
    [
        (FIRST, "reclaim", "leaf1", "leaf3", 60),
        (FIRST, "reclaim", "leaf1", "leaf2", 180),
        (FIRST, "reclaim", "leaf3", "leaf1", 600),
        (FIRST, "requeue", "leaf3", "leaf1", 600),
        (FIRST, "reclaim", "other", "leaf2", 7),
        (FIRST, "quota", "leaf3", "leaf1", 0),
        (FIRST, "reschedule", None, "leaf2", 180),
        (FIRST, "stale-gang", None, "leaf2", 0),
        (SECOND_TREE, "preempt", "leaf1", "leaf1", 300),
        (SECOND_TREE, "preempt", "leaf2", "leaf2", 600),
        (SECOND_TREE, "consolidate", "leaf2", "leaf2", 600),
        (SECOND_TREE, "consolidate", "leaf1", "leaf2", 7),
    ],
)
def test_which_minimum_runtime_holds(queues, cause, beneficiary, victim, expected):
    """The table of the specification, and what follows from it for other causes; the node pool's is 7."""
    jobs = [gang("victim", queue=victim), gang("other", queue=beneficiary)]
    of = min_runtime_of(Settings(reclaim_min_runtime=7), queues, jobs)
    assert of(0, cause, -1 if beneficiary is None else 1) == expected


def test_a_minimum_runtime_that_is_a_price_protects_nothing():
    def held(queue, cause, mode):
        settings = Settings(reclaim_min_runtime=7, min_runtime=MinRuntimeSettings(mode=mode))
        return min_runtime_of(settings, (queue,), [gang("victim", queue="a"), gang("other", queue="b")])(0, cause, 1)

    plain = Queue(name="a")
    assert held(plain, "reclaim", "shield") == 7
    assert held(plain, "reclaim", "price") == 0
    assert held(plain, "reclaim", {"reclaim": "price"}) == 0
    assert held(plain, "requeue", {"reclaim": "price"}) == 7
    assert held(Queue(name="a", min_runtime_mode="shield"), "reclaim", "price") == 7
