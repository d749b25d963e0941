"""Groups and queues of others: KAI's, and Kubernetes' own."""

from __future__ import annotations

import pytest
from tests.kubernetes.pods import NOW, node, observed, pod, thing, watching

from tenure.playthrough import play


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


def test_pods_name_their_subgroup_of_kai_by_its_own_label():
    """The label counts for pods of one of KAI's groups, and for no others."""
    groups = kai("g", {"name": "actor", "minMember": 1}, {"name": "critic", "minMember": 1})
    label, named = "kai.scheduler/subgroup-name", {"pod-group-name": "g"}
    pods = [pod(name, labels={label: name}, annotations=named) for name in ("actor", "critic")]
    seen = by_name(observed(*pods, pod("alone", labels={label: "actor"}), **{"kai podgroups": groups}))
    assert {task.name: task.sub_group for task in seen["g"].tasks} == {"actor": "actor", "critic": "critic"}
    assert seen["alone"].tasks[0].sub_group is None


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


@pytest.mark.parametrize(
    ("constraint", "told"),
    [
        ({"topology": "dc", "requiredTopologyLevel": "rack", "preferredTopologyLevel": "host"}, ""),
        ({"topology": "dc", "requiredTopologyLevel": "row"}, "Topology dc has no level 'row', but zone, rack, host"),
        ({"topology": "other", "requiredTopologyLevel": "rack"}, "topology: there is no Topology 'other'"),
        ({"requiredTopologyLevel": "row"}, ""),
        ({"topology": 7}, ""),
    ],
)
def test_levels_that_no_topology_of_kai_has_are_told_of(constraint, told):
    """A level is a node label whatever the topology says; one that it does not have is most likely misspelt."""
    levels = [{"nodeLabel": name} for name in ("zone", "rack", "host")]
    groups = kai("g", {"name": "x", "minMember": 1, "topologyConstraint": constraint})
    topologies = [thing("dc", spec={"levels": levels}), thing("odd", spec=[]), thing("odder", spec={"levels": [3]})]
    labels = {"tenure.dev/pod-group": "g", "tenure.dev/sub-group": "x"}
    watch = watching(pod("p", labels=labels), **{"kai podgroups": groups, "kai topologies": topologies})
    made = watch.observe(NOW).made["default/g"]
    assert [told in line for line in made.problems] == ([True] if told else [])
    if isinstance(constraint.get("requiredTopologyLevel"), str):
        assert made.workload.sub_groups[0].topology.required == constraint["requiredTopologyLevel"]


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


@pytest.mark.parametrize("prefix", ["kueue.x-k8s.io/podset-{}-topology", "kai.scheduler/topology-{}-placement"])
def test_pods_ask_to_be_near_each_other_as_in_kueue_and_kai(prefix):
    """The annotation names a node label; what Tenure's own group says comes before it."""
    asked = {prefix.format("required"): "example.org/rack", prefix.format("preferred"): "example.org/host"}
    labels = {"tenure.dev/pod-group": "g"}
    pods = [pod(f"p-{n}", labels=labels, annotations=asked) for n in range(2)]
    made = by_name(observed(*pods, podgroups=[thing("g", namespace="default", spec={"minMember": 2})]))["g"]
    assert (made.topology.required, made.topology.preferred) == ("example.org/rack", "example.org/host")
    own = [thing("g", namespace="default", spec={"minMember": 2, "topology": {"required": "zone"}})]
    assert by_name(observed(*pods, podgroups=own))["g"].topology.required == "zone"


@pytest.mark.parametrize(("mode", "core"), [({"all": {}}, 3), ({"single": {}}, 2), (None, 2), ("all", 2)])
def test_a_group_that_can_only_be_disrupted_as_a_whole_has_all_that_runs_as_its_core(mode, core):
    """``disruptionMode`` of Kubernetes' own groups: what runs goes together, and what waits is not waited for."""
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": mode}
    group = thing("g", namespace="default", spec=spec)
    pods = [pod(f"p-{n}", schedulingGroup={"podGroupName": "g"}, node="n") for n in range(3)]
    waits = pod("p-3", schedulingGroup={"podGroupName": "g"})
    assert by_name(observed(node("n"), *pods, waits, **{"native podgroups": [group]}))["g"].min_member == core


def quota(**amounts):
    """Give a flavor's quotas: nominal, or nominal and what may be borrowed."""
    found = []
    for name, amount in amounts.items():
        nominal, *borrowed = amount if isinstance(amount, tuple) else (amount,)
        found.append({"name": name, "nominalQuota": nominal, **({"borrowingLimit": borrowed[0]} if borrowed else {})})
    return {"resources": found}


def test_queues_of_kueue_are_a_tree_with_their_quotas_over_all_flavors():
    """Quotas of flavors add up; a cohort is the queue above; what may be borrowed is the most beyond the quota."""
    gpu = "nvidia.com/gpu"
    flavors = [quota(**{gpu: ("4", "2"), "cpu": "8"}), quota(**{gpu: ("4", "0"), "cpu": ("500m", "1")})]
    sharing = {"weight": "2500m"}
    queues = [
        thing(
            "vision", spec={"cohortName": "research", "resourceGroups": [{"flavors": flavors}], "fairSharing": sharing}
        ),
        thing("alone", spec={"resourceGroups": [{"flavors": [quota(**{gpu: "3"})]}]}),
    ]
    cohorts = [thing("research", spec={"parentName": "lab"})]
    tree = {q.name: q for q in observed(clusterqueues=queues, cohorts=cohorts).cluster.queues}
    assert {name: q.parent for name, q in tree.items()} == {
        "alone": None, "cohort.lab": None, "cohort.research": "cohort.lab", "vision": "cohort.research",
    }  # fmt: skip
    assert (tree["vision"].guaranteed, tree["vision"].max) == ({gpu: 8000, "cpu": 8500}, {gpu: 10000})
    assert (tree["vision"].weight, tree["alone"].max) == (2.5, {gpu: 3000})


def test_quotas_of_two_flavors_of_two_vendors_stay_two_quotas():
    """Else one AMD GPU would use up what is for NVIDIA's; a pool that says what a device counts is asked first."""
    flavors = [quota(**{"nvidia.com/gpu": "1"}), quota(**{"amd.com/gpu": "1"})]
    queues = [thing("vision", spec={"resourceGroups": [{"flavors": [flavor]} for flavor in flavors]})]
    nodes = [node("n", **{"nvidia.com/gpu": "4"}), node("a", **{"amd.com/gpu": "4"})]
    mine = {"labels": {"tenure.dev/queue": "vision"}}
    pods = [
        pod(f"{name[0]}-{n}", containers=[{"name": "main", "resources": {"limits": {name: "1"}}}], **mine)
        for name in ("nvidia.com/gpu", "amd.com/gpu") for n in range(2)
    ]  # fmt: skip
    apart = observed(*nodes, *pods, clusterqueues=queues).cluster
    assert {s.task[0] for s in play(apart).steps} == {"n", "a"}
    pool = thing("default", spec={"scheduler": {"deviceResources": {"amd.com/*": {"nvidia.com/gpu": 1}}}})
    together = observed(*nodes, *pods, clusterqueues=queues, nodepools=[pool]).cluster
    assert len(play(together).steps) == 1


def test_a_pod_for_a_local_queue_of_kueue_is_in_its_cluster_queue():
    """The label names a LocalQueue of the namespace, on the pod or its owner; where that leads elsewhere it follows."""
    label = {"kueue.x-k8s.io/queue-name": "mine"}
    leads = [thing("mine", namespace="default", spec={"clusterQueue": "vision"})]
    queues = [thing(name, spec={}) for name in ("vision", "other")]
    jobs = [thing("j", namespace="default", metadata={"labels": label}, spec={})]
    watch = watching(pod("p", labels=label), pod("of-j", owner=("Job", "j")), jobs=jobs,
                     clusterqueues=queues, localqueues=leads)  # fmt: skip
    assert {name: w.queue for name, w in by_name(watch.observe(NOW)).items()} == {"p": "vision", "j": "vision"}
    watch.informers._objects("localqueues").put(thing("mine", namespace="default", spec={"clusterQueue": "other"}))
    assert by_name(watch.observe(NOW))["p"].queue == "other"


def test_queues_of_volcano_are_queues_where_there_are_no_others():
    """What is deserved comes before what is reserved; nothing is taken from a queue that is not reclaimable."""
    queues = [
        thing("root", spec={"weight": 1}),
        thing("lab", spec={"parent": "root", "weight": 3, "capability": {"cpu": "16", "nvidia.com/gpu": "8"}}),
        thing("vision", spec={"parent": "lab", "deserved": {"nvidia.com/gpu": "4"}, "priority": 7,
                              "guarantee": {"resource": {"nvidia.com/gpu": "1"}}}),
        thing("kept", spec={"guarantee": {"resource": {"cpu": "2"}}, "reclaimable": False}),
    ]  # fmt: skip
    gpu = "nvidia.com/gpu"
    watch = watching(pod("p", labels={"queue": "vision"}), **{"volcano queues": queues})
    tree = {q.name: q for q in watch.observe(NOW).cluster.queues}
    assert {name: q.parent for name, q in tree.items()} == {"lab": None, "vision": "lab", "kept": None}
    assert (tree["lab"].max, tree["lab"].weight) == ({"cpu": 16000, gpu: 8000}, 3)
    assert (tree["vision"].guaranteed, tree["vision"].priority) == ({gpu: 4000}, 7)
    assert (tree["kept"].guaranteed, tree["kept"].preemption_policy) == ({"cpu": 2000}, "disabled")
    watch.informers._objects("kai queues").put(thing("kais", spec={}))
    assert [q.name for q in watch.observe(NOW).cluster.queues] == ["kais"]


@pytest.mark.parametrize("spec", [None, [], {"capability": 3}, {"weight": "x"}, {"guarantee": []}, {"parent": {}}])
def test_a_queue_of_volcano_that_cannot_be_read_harms_no_other(spec):
    seen = observed(**{"volcano queues": [thing("q", spec=spec), thing("fine", spec={})]})
    assert "fine" in {q.name for q in seen.cluster.queues}


MUCH = {"resourceGroups": [{"flavors": [{"resources": [{"name": "cpu", "nominalQuota": "much"}]}]}]}


@pytest.mark.parametrize(
    "spec", [None, [], {"resourceGroups": 3}, MUCH, {"cohort": "q"}, {"fairSharing": {"weight": "x"}}]
)
def test_a_queue_of_kueue_that_cannot_be_read_harms_no_other(spec):
    seen = observed(clusterqueues=[thing("q", spec=spec), thing("fine", spec={})])
    assert "fine" in {q.name for q in seen.cluster.queues}
