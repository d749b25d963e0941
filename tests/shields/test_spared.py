"""What asked to be spared is last for every cause, never for what only improves; and for some nothing is evicted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import NOW, SECOND, cluster, codes, node, queue, spec, task, workload

from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.file.added import load_additions
from tenure.model.file.load import load_cluster
from tenure.playthrough import play
from tenure.shields.opt_out import SHIELD, spared

HOUR = 3600

ASKS = [
    {"allow_preemption": False},
    {"annotations": {"yunikorn.apache.org/allow-preemption": "false"}},
    {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
    {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
    {"annotations": {"karpenter.sh/do-not-disrupt": "2h"}},
    {"annotations": {"descheduler.alpha.kubernetes.io/prefer-no-eviction": "true"}},
    {"annotations": {"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}},
]
SILENT = [
    {},
    {"annotations": {"yunikorn.apache.org/allow-preemption": "true"}},
    {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}},
    {"annotations": {"karpenter.sh/do-not-disrupt": "false"}},
    {"annotations": {"karpenter.sh/do-not-disrupt": "1m"}},
    {"annotations": {"karpenter.sh/do-not-disrupt": "soon"}},
    {"annotations": {"descheduler.alpha.kubernetes.io/prefer-no-eviction": "false"}},
    {"allow_preemption": False, "allow_preemption_until": NOW},
]
CAUSES = ("preempt", "reclaim", "requeue")


def contended(cause, cheap, *, dear=True, **contender):
    """One node full of a cheap and a dear workload, and a contender for whom one of them has to go."""
    own = "mine" if cause == "preempt" else "theirs"
    fields = {"expected_runtime": 60} if cause == "requeue" else {}
    work = [workload("cheap", of=spec(cpu=4), on="n", queue=own, running=600, **fields, **cheap)]
    if dear:
        work.append(workload("dear", of=spec(cpu=4), on="n", queue=own, running=60_000, **fields))
    work.append(workload("j", of=spec(cpu=4), queue="mine", priority=50, age=5, **contender))
    queues = [queue("mine", guaranteed={"cpu": 4}), queue("theirs")]
    return cluster([node("n", cpu=8 if dear else 4)], work, queues, actions=("allocate", cause))


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("asks", ASKS)
def test_the_dearer_goes_where_the_cheaper_asked_to_be_spared(cause, asks):
    """However it asks, and whatever the cause."""
    assert {s.workload for s in play(contended(cause, asks)).steps if s.action == "evict"} == {"default/dear"}


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("silent", SILENT)
def test_the_cheaper_goes_where_it_did_not_ask_or_its_request_has_ended(cause, silent):
    found = play(contended(cause, silent))
    expected = {"default/dear"} if cause == "requeue" else {"default/cheap"}
    assert {s.workload for s in found.steps if s.action == "evict"} == expected


@pytest.mark.parametrize("cause", CAUSES)
def test_where_nothing_else_helps_it_goes(cause):
    """It is the last resort, not a shield."""
    found = play(contended(cause, {"allow_preemption": False}, dear=False))
    assert {s.workload for s in found.steps if s.action == "evict"} == {"default/cheap"}


@pytest.mark.parametrize("cause", CAUSES)
def test_two_go_together_rather_than_one_that_asked_to_be_spared(cause):
    """A set with fewer such tasks comes first, also where each candidate is tried alone before several."""
    given = contended(cause, {"allow_preemption": False})
    own = "mine" if cause == "preempt" else "theirs"
    fields = {"expected_runtime": 60} if cause == "requeue" else {}
    halves = [workload(f"half-{n}", of=spec(cpu=2), on="n", queue=own, running=60_000, **fields) for n in (0, 1)]
    given = replace(given, workloads=(*halves, *(w for w in given.workloads if w.name != "dear")))
    evicted = {s.workload for s in play(given).steps if s.action == "evict"}
    assert evicted == {"default/half-0", "default/half-1"}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_task_alone_may_ask(cause):
    """An annotation of the pod counts as one of its workload does."""
    found = contended(cause, {})
    asked = replace(found.workloads[0].tasks[0], annotations={"karpenter.sh/do-not-disrupt": "true"})
    found = replace(found, workloads=(replace(found.workloads[0], tasks=(asked,)), *found.workloads[1:]))
    assert {s.workload for s in play(found).steps if s.action == "evict"} == {"default/dear"}


def test_the_queue_caps_what_an_annotation_asks():
    """After ``maxOptOut`` it counts no more."""
    found = contended("preempt", {"annotations": {"karpenter.sh/do-not-disrupt": "true"}})
    found = replace(found, queues=tuple(replace(q, max_opt_out=600 * SECOND) for q in found.queues))
    assert {s.workload for s in play(found).steps if s.action == "evict"} == {"default/cheap"}


@pytest.mark.parametrize("cause", ["preempt", "requeue"])
def test_nothing_spared_goes_for_a_surplus_task(cause):
    """A workload that runs its core grows only into what others give freely."""
    overdue = {"expected_runtime": 60} if cause == "requeue" else {}
    work = [
        workload("cheap", of=spec(cpu=4), on="n", queue="mine", running=600, allow_preemption=False, **overdue),
        workload(
            "j", tasks=[task("j-0", spec(cpu=4), on="n"), task("j-1", spec(cpu=4))], queue="mine", priority=50,
            min_member=1, running=60,
        ),
    ]  # fmt: skip
    found = cluster([node("n", cpu=8)], work, [queue("mine")], actions=("allocate", cause))
    assert not [s for s in play(found).steps if s.action == "evict"]
    willing = replace(found, workloads=(replace(found.workloads[0], allow_preemption=True), found.workloads[1]))
    assert [s.workload for s in play(willing).steps if s.action == "evict"] == ["default/cheap"]


def test_nothing_spared_is_moved():
    """Consolidation leaves it where it is."""
    work = [
        workload("a", of=spec(cpu=4), on="n", running=60, allow_preemption=False),
        workload("b", of=spec(cpu=2), on="m", running=60),
        workload("j", of=spec(cpu=8), age=5),
    ]
    found = cluster([node("n", cpu=8), node("m", cpu=6)], work, actions=("allocate", "consolidate"))
    assert not [s for s in play(found).steps if s.action == "evict"]
    willing = replace(found, workloads=(replace(found.workloads[0], allow_preemption=True), *found.workloads[1:]))
    assert {s.workload for s in play(willing).steps if s.action == "evict"} == {"default/a"}


@pytest.mark.parametrize(
    ("asks", "ends"),
    [
        ({"allow_preemption": False, "allow_preemption_until": NOW + 90 * SECOND}, 90),
        ({"annotations": {"karpenter.sh/do-not-disrupt": "2h"}}, 2 * HOUR - 60),
        ({"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}, 7 * 24 * HOUR - 60),
    ],
)
def test_where_nothing_spared_is_moved_it_is_looked_at_again_when_the_request_ends(asks, ends):
    """The refusal says until when it holds, and the cycle when it has to be played again; it ran for a minute."""
    work = [
        workload("a", of=spec(cpu=4), on="n", running=60, **asks),
        workload("b", of=spec(cpu=2), on="m", running=60),
        workload("j", of=spec(cpu=8), age=5),
    ]
    found = cluster([node("n", cpu=8), node("m", cpu=6)], work, actions=("allocate", "consolidate"))
    plan = Scheduler(session_of(found)).cycle(NOW)
    assert [r.until for r in plan.refused if r.shield == SHIELD] == [NOW + ends * SECOND]
    assert plan.wake == NOW + ends * SECOND


@pytest.mark.parametrize("cause", CAUSES)
def test_for_whoever_never_preempts_nothing_is_evicted(cause):
    """Its policy says so, and it says it as its reason."""
    played = play(contended(cause, {}, preemption_policy="Never"))
    assert not [s for s in played.steps if s.action == "evict"]
    assert "NeverPreempts" in codes(played)["j"]


@pytest.mark.parametrize("cause", ["consolidate", "reschedule"])
def test_for_whoever_never_preempts_nothing_is_moved(cause):
    """A move is an eviction, whichever cause makes it."""
    work = [
        workload("a", of=spec(cpu=4), on="n", running=600),
        workload("b", of=spec(cpu=2), on="m", running=600),
        workload("j", of=spec(cpu=8), age=600),
    ]
    found = cluster([node("n", cpu=8), node("m", cpu=6)], work, actions=("allocate", cause))
    assert [s.workload for s in play(found).steps if s.action == "evict"] == ["default/a"]
    never = replace(found, workloads=(*found.workloads[:2], replace(found.workloads[2], preemption_policy="Never")))
    played = play(never)
    assert not played.steps
    assert "NeverPreempts" in codes(played)["j"]


POD = """
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {queue: mine}, annotations: {karpenter.sh/do-not-disrupt: "true"}}
spec: {%s containers: [{name: c, resources: {requests: {cpu: 1}}}]}
"""
CLASS = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: calm}
value: 50
preemptionPolicy: Never
---"""


@pytest.mark.parametrize("given", ["", "preemptionPolicy: Never, priority: 50,", "priorityClassName: calm,"])
def test_manifests_say_it_too(tmp_path, given):
    """Of the pod or of its priority class."""
    file = Path(tmp_path / "pod.yaml")
    file.write_text(CLASS + POD % given)
    state = cluster([node("n")], queues=[queue("mine")])
    (added,) = load_additions(file, state)
    assert added.preemption_policy == ("Never" if given else None)
    session = session_of(replace(state, workloads=(added,)))
    assert spared(session, session.workloads[added.key].tasks[0])


def test_files_say_it_too(tmp_path):
    """The field of a workload in a cluster file."""
    file = Path(tmp_path / "c.yaml")
    file.write_text(
        "apiVersion: tenure.dev/v1alpha1\nkind: Cluster\nnow: 2026-11-20T10:00:00Z\n"
        "nodes: [{name: n, allocatable: {cpu: 4}}]\nqueues: [{name: q}]\n"
        "workloads: [{name: w, queue: q, replicas: 1, requests: {cpu: 1}, preemptionPolicy: Never}]\n"
    )
    assert load_cluster(file).cluster.workloads[0].preemption_policy == "Never"


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("asks", [*ASKS[:4], {"role": "originator"}])
def test_a_request_to_be_spared_ends_by_default(cause, asks):
    """Whatever says it, and where no queue sets an end: after a week, or after what the settings say."""
    fields = {key: value for key, value in asks.items() if key != "role"}
    found = contended(cause, fields)
    if "role" in asks:
        driver = replace(found.workloads[0].tasks[0], role=asks["role"])
        found = replace(found, workloads=(replace(found.workloads[0], tasks=(driver,)), *found.workloads[1:]))
    cheapest = {"default/dear"} if cause == "requeue" else {"default/cheap"}

    def gone(longest):
        disruption = replace(found.settings.disruption, max_opt_out=longest)
        played = play(replace(found, settings=replace(found.settings, disruption=disruption)))
        return {s.workload for s in played.steps if s.action == "evict"}

    assert found.settings.disruption.max_opt_out == 7 * 24 * 3600 * SECOND
    assert gone(601 * SECOND) == {"default/dear"}
    assert gone(600 * SECOND) == cheapest
