"""Modes: what a cause in shadow would do is recorded, and nothing can tell that it was thought of."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.actions.helpers import MINUTE, NOW, cluster, play, queue, runs, steps, waits
from tests.effort import tries
from tests.properties.contention import contended

from tenure.model.node import Node
from tenure.model.queue import QueueStatus, QuotaStatus
from tenure.model.settings import CAUSES, QuotaPreemptionSettings, RequeueSettings
from tenure.model.values.duration import parse_duration
from tenure.model.workload import Task

GPU = "nvidia.com/gpu"
HOUR = parse_duration("1h")
TREE = [queue("a", guaranteed=2), queue("b", guaranteed=0)]


def only(cause, workloads, queues=TREE, **more):
    """A cluster in which this cause alone would evict."""
    return cluster(queues, workloads, actions=("allocate", cause), **more)


def reclaim():
    return only("reclaim", [runs("x", "b", ["n0"] * 4), waits("c", "a", gpus=2)])


def preempt():
    return only("preempt", [runs("x", "a", ["n0"] * 4), waits("c", "a", gpus=2, priority=50)], [queue("a")])


def requeue():
    old = runs("x", "a", ["n0"] * 4, expected_runtime=MINUTE)
    return only("requeue", [old, waits("c", "a", gpus=2)], [queue("a")], requeue=RequeueSettings(contenders="any"))


def consolidate():
    return only(
        "consolidate", [runs("x", "a", ["n0"]), runs("y", "a", ["n1"]), waits("c", "a", gpus=4)], [queue("a")], nodes=2
    )


def reschedule():
    made = only("reschedule", [runs("x", "a", ["n0"])], [queue("a")], nodes=2)
    return replace(made, nodes=(replace(made.nodes[0], drain=True), made.nodes[1]))


def stale_gang():
    gang = runs("x", "a", ["n0"] * 2, core=3, stale_since=NOW - HOUR)
    return only("stale-gang", [gang], [queue("a")])


def quota():
    armed = QuotaStatus(armed_at=NOW - 2 * MINUTE, delay=MINUTE, deadline=NOW - MINUTE, max={GPU: 2000})
    tree = [queue("a", most=2, quota_preemption_delay=MINUTE, status=QueueStatus(quota_preemption=armed))]
    return only("quota", [runs("x", "a", ["n0"] * 4, core=1)], tree,
                quota_preemption=QuotaPreemptionSettings(enabled=True))  # fmt: skip


CASES = {
    "reclaim": reclaim, "preempt": preempt, "requeue": requeue, "consolidate": consolidate,
    "reschedule": reschedule, "stale-gang": stale_gang, "quota": quota,
}  # fmt: skip


def under(state, **modes):
    """The same cluster with these causes in these modes."""
    named = {key.replace("_", "-"): mode for key, mode in modes.items()}
    return replace(state, settings=replace(state.settings, modes=named))


def moded(state, cause, mode):
    return replace(state, settings=replace(state.settings, modes={cause: mode}))


def outline(found):
    return [(s.workload, s.task, s.node, s.cause, s.beneficiary, s.cost, s.to) for s in found if s.action == "evict"]


@pytest.mark.parametrize("cause", CAUSES)
def test_shadow_records_what_would_be_evicted_and_carries_nothing_out(cause):
    """The record has the victims, the beneficiary and the cost of the plan that is enforced."""
    state = CASES[cause]()
    enforced, shadow = play(state), play(moded(state, cause, "shadow"))
    assert steps(enforced)
    assert outline(shadow.shadow) == outline(enforced.steps)
    assert steps(shadow) == []
    assert enforced.shadow == []


@pytest.mark.parametrize("cause", CAUSES)
def test_off_neither_evicts_nor_records(cause):
    found = play(moded(CASES[cause](), cause, "off"))
    assert (steps(found), found.shadow) == ([], [])


@pytest.mark.parametrize("cause", CAUSES)
def test_a_record_is_made_once_per_victim_and_contender(cause):
    found = play(moded(CASES[cause](), cause, "shadow"), cycles=4)
    pairs = {(s.workload, s.beneficiary) for s in found.shadow}
    assert {s.cycle for s in found.shadow} == {0}
    assert pairs


def test_a_new_contender_is_recorded_again():
    first = moded(reclaim(), "reclaim", "shadow")
    later = replace(first, workloads=(*first.workloads, waits("d", "a", gpus=2, priority=7)))
    recorded = {s.beneficiary for s in play(later, cycles=2).shadow}
    assert recorded <= {"default/c", "default/d"}
    assert recorded


def test_the_deadline_of_a_quota_in_shadow_is_kept_all_the_same():
    """Without it, shadow would never show what firing would take."""
    state = moded(quota(), "quota", "shadow")
    bare = replace(state, queues=(replace(state.queues[0], status=None),))
    found = play(bare, cycles=3, every=MINUTE)
    assert found.after.queues[0].status.quota_preemption.deadline == NOW + MINUTE
    assert {s.cycle for s in found.shadow} == {1}
    assert [q.state for q in found.quota] == ["armed"]


def test_a_gang_in_shadow_becomes_stale_all_the_same():
    """Its grace is counted in the cluster file, whatever the mode."""
    state = moded(stale_gang(), "stale-gang", "shadow")
    fresh = replace(state, workloads=tuple(replace(w, stale_since=None) for w in state.workloads))
    found = play(fresh, cycles=3, every=MINUTE)
    assert found.after.workloads[0].stale_since == NOW
    assert {s.cycle for s in found.shadow} == {1}


def test_a_cause_in_shadow_takes_nothing_back():
    """Requeue would be refused if reclaim could take the place back; in shadow it could not, as where it is off."""
    for seed in range(60):
        state = contended(seed)
        assert play(under(state, reclaim="shadow")).steps == play(under(state, reclaim="off")).steps


def kept(found):
    """What a cluster file says after it, but for what shadow notes whether it evicts or not."""
    queues = [replace(q, status=None) for q in found.after.queues]
    workloads = [replace(w, stale_since=None) for w in found.after.workloads]
    return found.steps, queues, workloads, found.after.evictions, found.queues


@given(st.integers(0, 1 << 32), st.sets(st.sampled_from(CAUSES), min_size=1), st.booleans())
@settings(max_examples=tries(60, 600))
def test_what_is_in_shadow_changes_nothing_but_the_record(seed, causes, easy):
    """With some causes or all in shadow, the plan is the one with these causes off, over several cycles."""
    state = contended(seed)
    chosen = replace(state.settings, backfill="easy" if easy else "none")
    shadow, off = (
        play(replace(state, settings=replace(chosen, modes=dict.fromkeys(sorted(causes), mode))), cycles=3)
        for mode in ("shadow", "off")
    )
    assert kept(shadow) == kept(off)
    assert {s.cause for s in shadow.shadow} <= causes


def test_a_larger_cluster_with_everything_in_shadow():
    """All causes at once, with nodes to be emptied, gangs that are stale and queues over their max."""
    nodes = [Node(name=f"n{i}", allocatable={GPU: 4}, drain=i == 0) for i in range(3)]
    armed = QuotaStatus(armed_at=NOW - HOUR, delay=MINUTE, deadline=NOW - MINUTE, max={GPU: 1000})
    tree = [
        queue("a", guaranteed=4),
        queue("b", most=1, quota_preemption_delay=MINUTE, status=QueueStatus(quota_preemption=armed)),
        queue("c"),
    ]
    lost = runs("gang", "c", ["n1"], stale_since=NOW - HOUR)
    gang = replace(lost, tasks=(*lost.tasks, Task(name="gone", spec=replace(lost.tasks[0].spec, requests=((GPU, 9),)))))
    work = [runs("over", "b", ["n1", "n1"], core=1), runs("moves", "c", ["n0"]), gang,
            runs("full", "c", ["n2"] * 4), waits("c0", "a", gpus=4), waits("c1", "c", gpus=1, priority=9)]  # fmt: skip
    base = cluster(tree, work, quota_preemption=QuotaPreemptionSettings(enabled=True))
    state = replace(base, nodes=tuple(nodes))
    shadow, off = (
        play(replace(state, settings=replace(state.settings, modes=dict.fromkeys(CAUSES, mode))), cycles=3)
        for mode in ("shadow", "off")
    )
    assert kept(shadow) == kept(off)
    assert {"reclaim", "quota", "stale-gang"} <= {s.cause for s in shadow.shadow}
