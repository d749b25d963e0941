"""A nomination that another workload beats in the cycle that evicts for it: room is promised to one of them alone."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest
from tests.actions.helpers import MINUTE, NOW, cluster, play, queue, runs, steps, waits

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.file.load import load_cluster
from tenure.model.workload import Checkpoint, Nomination, Notice, Phase

SECOND = 1_000_000
BEATEN = dedent("""
    apiVersion: tenure.dev/v1alpha1
    kind: Cluster
    now: 2026-11-20T10:00:00Z
    scheduler: {evictionNotice: 10s}
    nodes:
      - {name: n0, allocatable: {cpu: "4", pods: 3, nvidia.com/gpu: 4}}
      - {name: n2, allocatable: {cpu: "4", pods: 3, nvidia.com/gpu: 4}}
      - {name: n3, allocatable: {cpu: "4", pods: 3, nvidia.com/gpu: 4}}
    queues: [{name: q0, preemptMinRuntime: 20m}, {name: q1, preemptMinRuntime: 20m}]
    workloads:
      - name: r0
        queue: q0
        requests: {nvidia.com/gpu: 1, cpu: 100m}
        tasks:
          - {name: r0-0, node: n0}
          - {name: r0-1, node: n2}
          - {name: r0-2, node: n0, startedAt: 2026-11-20T09:52:30Z}
          - {name: r0-3, node: n0, startedAt: 2026-11-20T09:52:30Z}
      - {name: r1, queue: q0, priority: 50, createdAt: 2026-11-19T23:58:30Z, startedAt: 2026-11-19T23:59:30Z,
         requests: {cpu: "2"}, tasks: [{name: r1-0, node: n2}]}
      - {name: r2, queue: q1, priority: 50, createdAt: 2026-11-20T08:58:30Z, startedAt: 2026-11-20T08:59:30Z,
         requests: {nvidia.com/gpu: 4, cpu: 100m}, checkpoint: {interval: 1h, restartOverhead: 1m},
         tasks: [{name: r2-0, node: n3}]}
      - {name: r5, queue: q1, createdAt: 2026-11-20T08:58:30Z, startedAt: 2026-11-20T08:59:30Z,
         requests: {nvidia.com/gpu: 2, cpu: 100m}, tasks: [{name: r5-0, node: n2}]}
      - {name: r7, queue: q1, minMember: 1, createdAt: 2026-11-20T09:43:30Z, startedAt: 2026-11-20T09:44:30Z,
         requests: {cpu: "2"}, tasks: [{name: r7-0, node: n3}, {name: r7-1}]}
      - {name: p0, queue: q1, priority: 60, createdAt: 2026-11-20T09:53:30Z, replicas: 1, requests: {cpu: "2"}}
      - {name: p1, queue: q1, priority: 70, createdAt: 2026-11-20T09:59:30Z, replicas: 1, requests: {cpu: "2"}}
      - {name: p2, queue: q1, priority: 50, createdAt: 2026-11-20T09:13:30Z, replicas: 1,
         requests: {nvidia.com/gpu: 4, cpu: "0"}, checkpoint: {interval: 1h, restartOverhead: 1m}}
""")


def test_what_is_beaten_is_no_step_of_the_plan_and_the_room_is_used_once_it_is_free(tmp_path):
    written = tmp_path / "cluster.yaml"
    written.write_text(BEATEN, encoding="utf-8")
    given, plans = load_cluster(written).cluster, []
    later = [w for w in given.workloads if w.name == "p1"]
    embedded = EmbeddedCluster(replace(given, workloads=tuple(w for w in given.workloads if w not in later)))
    begin = embedded.observe().now
    for number in range(3):
        if number == 1:
            there = embedded.observe()
            embedded = EmbeddedCluster(replace(there, workloads=(*there.workloads, *later)))
        embedded.advance(begin + number * SECOND)
        now = embedded.observe()
        plans.append(Scheduler(session_of(now)).cycle(now.now))
        embedded.carry_out(plans[-1])
    evicts = next(plan for plan in plans if any(s.action == "evict" for s in plan.steps))
    assert {s.workload for s in evicts.steps if s.action == "nominate"} == {"default/p1", "default/p2"}
    running = {w.key for w in embedded.observe().workloads if w.tasks[0].phase in (Phase.BOUND, Phase.RUNNING)}
    assert {"default/p1", "default/p2"} <= running


def test_what_goes_first_takes_nothing_that_was_promised_before_it_went():
    """``late`` saves at once, and is ahead then of ``urgent``, which waits for the end of a notice.

    It had its own place when that was given.
    """
    saves = Checkpoint(interval=10 * MINUTE, restart_overhead=MINUTE)
    running = [runs("late", "a", ["n1"], gpus=2, expected_runtime=5 * MINUTE, checkpoint=saves),
               runs("gang", "b", ["n0", "n0"])]  # fmt: skip
    waiting = [waits("urgent", "b", gpus=2, priority=100), waits("first", "b", priority=50),
               waits("second", "b", priority=50)]  # fmt: skip
    queues = [queue("a", guaranteed=1), queue("b", guaranteed=3, priority=50)]
    state = cluster(queues, [*running, *waiting], nodes=2, gpus=2, eviction_notice=3 * SECOND)
    found = play(state, cycles=6)
    assert steps(found) == [("gang", "gang-0"), ("gang", "gang-1"), ("late", "late-0")]
    assert steps(found, "bind") == [("first", "first-0"), ("second", "second-0"), ("urgent", "urgent-0")]
    assert steps(found, "withdraw") == []


def test_who_goes_at_the_end_of_a_notice_asks_for_its_share_all_along():
    """Were ``low`` not counted in the cycle in which it goes, all of b's requests would fit, and ``next`` be ahead."""
    running = [runs("keeps", "a", ["n0", "n0", "n1", "n2"], priority=100), runs("low", "a", ["n3"], gpus=2),
               runs("other", "b", ["n4"], gpus=2)]  # fmt: skip
    waiting = [waits("high", "a", gpus=2, priority=50), waits("next", "b", gpus=2)]
    state = cluster(
        [queue("a", weight=3.0), queue("b")], [*running, *waiting], nodes=5, gpus=2, eviction_notice=3 * SECOND,
        actions=("allocate", "preempt"),
    )  # fmt: skip
    found = play(state, cycles=6)
    assert steps(found) == [("low", "low-0")]
    assert steps(found, "bind") == [("high", "high-0")]


@pytest.mark.parametrize(
    ("priority", "minutes", "expected"),
    [
        (10, 0, [("evict", "preempt", "default/next")]),
        (10, 1, [("notice", "preempt", "default/next")]),
        (0, 0, [("withdraw", "preempt", "default/high")]),
    ],
    ids=["at its end", "before", "not where that may take nothing"],
)
def test_what_was_told_for_one_that_needs_it_no_more_goes_for_another_that_was_promised_its_room(
    priority, minutes, expected
):
    notice = Notice(deadline=NOW + minutes * MINUTE, cause="preempt", beneficiary="default/high", at=NOW - MINUTE)
    told, promised = runs("low", "a", ["n0"], gpus=4), waits("next", "a", gpus=4, priority=priority)
    told = replace(told, tasks=(replace(told.tasks[0], notice=notice, devices=(0, 1, 2, 3)),))
    room = Nomination(node="n0", devices=(0, 1, 2, 3), at=NOW - MINUTE)
    promised = replace(promised, tasks=(replace(promised.tasks[0], nominated=room),))
    running = [told, runs("high", "a", ["n1"], gpus=4, priority=50)]
    found = play(cluster([queue("a")], [*running, promised], nodes=2, eviction_notice=2 * MINUTE), cycles=1)
    assert [(s.action, s.cause, s.beneficiary) for s in found.steps if s.workload == "default/low"] == expected
