"""Groups and queues of others: KAI's, and Kubernetes' own."""

from __future__ import annotations

import pytest
from tests.kubernetes.pods import node, observed, pod, thing


def by_name(seen):
    return {w.name: w for w in seen.cluster.workloads}


def kai(name, *groups, **spec):
    return [thing(name, namespace="default", spec={"subGroups": list(groups), **spec})]


def test_subgroups_of_kai_are_a_tree():
    """Each of KAI's subgroups names the one above it; how many have to start is said of pods below, of groups above."""
    groups = kai(
        "g",
        {"name": "prefill", "minSubGroup": 1},
        {"name": "first", "parent": "prefill", "minMember": 2, "topologyConstraint": {"requiredTopologyLevel": "rack"}},
        {"name": "second", "parent": "prefill", "minMember": 2},
        {"name": "decode", "minMember": 1},
        minMember=3,
    )
    labels = {"tenure.dev/pod-group": "g", "tenure.dev/sub-group": "first"}
    seen = by_name(observed(pod("p-0", labels=labels), **{"kai podgroups": groups}))["g"]
    prefill, decode = seen.sub_groups
    assert (prefill.name, prefill.min_sub_group, decode.min_member) == ("prefill", 1, 1)
    assert [(g.name, g.min_member) for g in prefill.sub_groups] == [("first", 2), ("second", 2)]
    assert prefill.sub_groups[0].topology.required == "rack"
    assert seen.min_member is None


@pytest.mark.parametrize(
    "lost",
    [
        [{"name": "x", "parent": "nobody"}],
        [{"name": "x", "parent": "x"}],
        [{"name": "x", "parent": "y"}, {"name": "y", "parent": "x"}],
        [{"name": "whole"}],
        [{"name": "whole", "parent": "whole"}],
    ],
)
def test_subgroups_of_kai_that_hang_nowhere_are_told_of(lost):
    """Subgroups in a circle, below none that is there, or there twice do not stop the rest."""
    groups = kai("g", {"name": "whole", "minMember": 1}, *lost)
    labels = {"tenure.dev/pod-group": "g", "tenure.dev/sub-group": "whole"}
    seen = observed(pod("p-0", labels=labels), pod("other"), **{"kai podgroups": groups})
    assert [g.name for g in by_name(seen)["g"].sub_groups] == ["whole"]
    assert "other" in by_name(seen)


@pytest.mark.parametrize(("quota", "gets"), [(-1, 8000), (2, 2000), (0, 0)])
def test_a_quota_of_kai_without_end_is_all_that_there_is(quota, gets):
    """KAI's -1 means that everything is guaranteed, and not nothing."""
    seen = observed(
        node("n", **{"nvidia.com/gpu": "8"}),
        **{"kai queues": [thing("q", spec={"resources": {"gpu": {"quota": quota, "limit": -1}}})]},
    )
    (queue,) = seen.cluster.queues
    assert min(queue.guaranteed.get("nvidia.com/gpu", 0), 8000) == gets
    assert "nvidia.com/gpu" not in queue.max


def described(name, owner, *templates):
    spec = {"controllerRef": {"kind": owner[0], "name": owner[1]}, "podGroupTemplates": list(templates)}
    return thing(name, namespace="default", spec=spec)


def test_a_workload_of_kubernetes_says_how_many_of_its_owner_start_together():
    """Where a Workload describes a Job by one template, its gang counts, and not the Job's parallelism."""
    jobs = [thing("g", namespace="default", spec={"parallelism": 4, "completions": 4})]
    pods = [pod(f"g-{i}", owner=("Job", "g"), priority=7) for i in range(4)]
    gang = {"name": "main", "schedulingPolicy": {"gang": {"minCount": 2}}, "priority": 7}
    one = observed(*pods, jobs=jobs, **{"native workloads": [described("w", ("Job", "g"), gang)]})
    assert (by_name(one)["g"].min_member, by_name(one)["g"].priority) == (2, 7)
    several = observed(*pods, jobs=jobs, **{"native workloads": [described("w", ("Job", "g"), gang, gang)]})
    assert by_name(several)["g"].min_member == 4
    custom = [pod(f"r-{i}", owner=("RayCluster", "r")) for i in range(3)]
    other = observed(*custom, **{"native workloads": [described("w", ("RayCluster", "r"), gang)]})
    assert (by_name(other)["r"].min_member, by_name(other)["r"].uid) == (2, "uid-r")


@pytest.mark.parametrize(
    ("annotations", "share"),
    [
        ({"gpu-fraction": "0.5"}, (500, 0, 1)),
        ({"gpu-memory": "2000"}, (0, 2000 << 20, 1)),
        ({"gpu-fraction": "0.25", "gpu-fraction-num-devices": "2"}, (250, 0, 2)),
        ({"gpu-fraction": "0.5", "tenure.dev/gpu-memory": "1Gi"}, (0, 1 << 30, 1)),
    ],
)
def test_parts_of_gpus_are_asked_for_as_in_kai(annotations, share):
    """KAI's annotations ask for a part of a GPU, its memory in MiB; Tenure's own come before them."""
    (task,) = observed(pod("p", annotations=annotations)).cluster.workloads[0].tasks
    made = task.spec.gpu_share
    assert (made.milli, made.memory, made.devices) == share


@pytest.mark.parametrize("annotations", [{"gpu-fraction": "much"}, {"gpu-memory": "1Gi"}, {"gpu-memory": "-1"}])
def test_a_part_of_a_gpu_that_cannot_be_read_is_not_placed(annotations):
    (task,) = observed(pod("p", annotations=annotations)).cluster.workloads[0].tasks
    assert task.spec.unsupported
