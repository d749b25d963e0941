"""What PodGroups of Volcano ask beside their minimum: pods of each task, subgroups by labels, HyperNodes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import bound
from tests.kubernetes.pods import NOW, node, observed, owner, pod, thing, watching

from tenure.clusters.kubernetes.read.volcano_groups import MOST_PARTS, volcano_group
from tenure.model.selectors import Topology
from tenure.playthrough import play

TASK, PART = "volcano.sh/task-spec", "volcano.sh/partition-id"
GROUP = {"scheduling.k8s.io/group-name": "g"}
GROUPS, NODES = "podgroups.scheduling.volcano.sh", "hypernodes"


def of_task(task, *names, **labels):
    """Give pods of a task that name the group."""
    return [pod(name, labels={TASK: task, **labels}, annotations=GROUP) for name in names]


def seen_of(spec, pods, *nodes, **others):
    """Give the group's workload, with what is wrong with it."""
    watch = watching(*nodes, *pods, **{GROUPS: [owner("g", spec=spec)]}, **others)
    return watch.observe(NOW).made["default/g"]


def workload_of(spec, pods, **others):
    return seen_of(spec, pods, **others).workload


def minima(workload):
    return {group.name: group.min_member for group in workload.sub_groups}


SERVER, WORKERS = of_task("ps", "ps-0"), of_task("w", "w-0", "w-1", "w-2")


def test_of_each_task_as_many_start_as_the_group_says():
    """Each task is a subgroup with its own minimum, so that workers do not start without their server."""
    found = workload_of({"minMember": 3, "minTaskMember": {"ps": 1, "w": 2}}, [*SERVER, *WORKERS])
    assert minima(found) == {"ps": 1, "w": 2}
    assert {task.name: task.sub_group for task in found.tasks} == {"ps-0": "ps", "w-0": "w", "w-1": "w", "w-2": "w"}


def test_a_task_that_has_no_pods_yet_is_waited_for():
    found = workload_of({"minMember": 3, "minTaskMember": {"ps": 1, "w": 2}}, WORKERS)
    assert minima(found) == {"ps": 1, "w": 2}
    assert start_of(found) is None


def test_what_the_minimum_asks_beyond_its_tasks_is_asked_of_those_that_have_more():
    """Neither minimum is missed: two of the workers would do for the task, and the group asks for one more pod."""
    found = workload_of({"minMember": 4, "minTaskMember": {"ps": 1, "w": 2}}, [*SERVER, *WORKERS])
    assert minima(found) == {"ps": 1, "w": 3}
    late = workload_of({"minMember": 6, "minTaskMember": {"ps": 1, "w": 2}}, [*SERVER, *WORKERS])
    assert sum(minima(late).values()) == 6, "it waits for pods that have not been made yet"
    assert start_of(late) is None


def test_a_minimum_below_that_of_all_tasks_counts_alone():
    """So it is in Volcano: fewer pods than all tasks ask for may start, whichever these are."""
    found = workload_of({"minMember": 2, "minTaskMember": {"ps": 1, "w": 2}}, [*SERVER, *WORKERS])
    assert (found.min_member, found.sub_groups) == (2, ())


def test_pods_of_no_task_are_not_needed():
    extra = pod("x", annotations=GROUP)
    found = workload_of({"minMember": 1, "minTaskMember": {"ps": 1}}, [*SERVER, extra])
    assert minima(found) == {"ps": 1, "others": 0}
    assert start_of(found, room=1) == ["ps-0"]


def halves(count, size=2):
    return [p for n in range(count) for p in of_task("w", *(f"w-{n}-{i}" for i in range(size)), **{PART: str(n)})]


def policy(**more):
    selector = {"matchLabels": {TASK: "w"}}
    return {"name": "w", "labelSelector": selector, "matchLabelKeys": [PART], "subGroupSize": 2, **more}


def test_pods_alike_in_the_keys_of_a_policy_are_a_subgroup():
    """Of three subgroups of two pods two start, each as a whole and under one HyperNode."""
    near = {"mode": "hard", "highestTierAllowed": 1}
    spec = {"minMember": 1, "subGroupPolicy": [policy(minSubGroups=2, networkTopology=near)]}
    found = workload_of(spec, [*halves(3), *SERVER])
    above, others = found.sub_groups
    assert (above.name, above.min_sub_group, others.name, others.min_member) == ("w", 2, "others", 0)
    tier = Topology(required="topology.volcano.sh/tier-1")
    assert [(g.name, g.min_member, g.topology) for g in above.sub_groups] == [(f"w-{n}", 2, tier) for n in range(3)]


def test_a_policy_that_asks_for_no_subgroups_starts_with_as_many_as_the_minimum_comes_to():
    found = workload_of({"minMember": 4, "subGroupPolicy": [policy()]}, halves(3))
    (above,) = found.sub_groups
    assert above.min_sub_group == 2
    assert (start_of(found, room=3), len(start_of(found, room=4))) == (None, 4)


def test_subgroups_that_are_not_there_yet_are_waited_for():
    found = workload_of({"minMember": 6, "subGroupPolicy": [policy(minSubGroups=3)]}, halves(2))
    (above,) = found.sub_groups
    assert (len(above.sub_groups), above.min_sub_group) == (3, 3)
    assert start_of(found) is None


def test_the_minimum_of_a_task_counts_for_the_subgroups_of_its_pods():
    """As Volcano's own Jobs state it: a task in partitions, of which its minimum needs two."""
    spec = {"minMember": 5, "minTaskMember": {"ps": 1, "w": 4}, "subGroupPolicy": [policy(minSubGroups=1)]}
    found = workload_of(spec, [*halves(3), *SERVER])
    above, server = found.sub_groups
    assert (above.min_sub_group, server.name, server.min_member) == (2, "ps", 1)


def start_of(workload, room=64):
    """Give the names of the tasks that are bound where there is room for so many; None where none is."""
    asked = dict(workload.tasks[0].spec.requests)["cpu"]
    told = observed(node("n", cpu=f"{room * asked}m")).cluster
    return sorted(bound(play(replace(told, workloads=(workload,))))) or None


def hyper(name, tier, *members, kind="Node", **spec):
    listed = [{"type": kind, "selector": member} for member in members]
    return thing(name, spec={"tier": tier, "members": listed, **spec})


def exactly(name):
    return {"exactMatch": {"name": name}}


RACKS = [
    hyper("r1", 1, exactly("a"), exactly("b")),
    hyper("r2", 1, {"regexMatch": {"pattern": "^c"}}),
    hyper("row", 2, exactly("r1"), {"regexMatch": {"pattern": "^r2$"}}, kind="HyperNode", tierName="row"),
    hyper("alone", 3, {"labelMatch": {"matchLabels": {"rack": "d"}}}),
]


def test_hyper_nodes_are_labels_of_nodes():
    """For each tier the widest HyperNode up to it; beyond the highest tier all nodes are together."""
    nodes = [node(name) for name in ("a", "c1", "lone")] + [node("d1", labels={"rack": "d"})]
    seen = observed(*nodes, **{NODES: RACKS}).cluster.nodes
    found = {n.name: [n.labels.get(f"topology.volcano.sh/tier-{t}") for t in (0, 1, 2, 3, 4)] for n in seen}
    assert found == {
        "a": [None, "r1", "row", "row", "cluster"], "c1": [None, "r2", "row", "row", "cluster"],
        "d1": [None, None, None, "alone", "cluster"], "lone": [None, None, None, None, "cluster"],
    }  # fmt: skip
    assert {n.name: n.labels.get("topology.volcano.sh/tier-row") for n in seen} == {
        "a": "row", "c1": "row", "d1": None, "lone": None,
    }  # fmt: skip


def test_nodes_follow_hyper_nodes_that_change():
    watch = watching(node("a"), node("b"))
    assert all("topology.volcano.sh/tier-1" not in n.labels for n in watch.observe(NOW).cluster.nodes)
    watch.informers._objects(NODES).put(hyper("r1", 1, exactly("b")))
    labels = {n.name: n.labels.get("topology.volcano.sh/tier-1") for n in watch.observe(NOW).cluster.nodes}
    assert labels == {"a": None, "b": "r1"}


@pytest.mark.parametrize(
    ("asked", "means"),
    [
        ({"mode": "hard", "highestTierAllowed": 2}, Topology(required="topology.volcano.sh/tier-2")),
        ({"highestTierAllowed": 99}, Topology(required="topology.volcano.sh/tier-16")),
        ({"mode": "soft", "highestTierAllowed": 1}, Topology(preferred="topology.volcano.sh/tier-1")),
        ({"mode": "hard", "highestTierName": "row"}, Topology(required="topology.volcano.sh/tier-row")),
        ({"mode": "hard"}, None),
    ],
)
def test_a_network_topology_is_a_topology_by_tiers(asked, means):
    assert workload_of({"minMember": 3, "networkTopology": asked}, WORKERS).topology == means


def test_a_job_of_volcano_has_what_its_group_asks():
    """The Job says who belongs together; tasks, policies and topology come from the group that was made of it."""
    whose = ("Job", "v", "batch.volcano.sh/v1alpha1")
    near = {"mode": "hard", "highestTierAllowed": 1}
    job = {"minAvailable": 3, "tasks": [{"name": "ps", "replicas": 1}, {"name": "w", "replicas": 2}],
           "networkTopology": near}  # fmt: skip
    pods = [pod(f"{task}-0", owner=whose, labels={TASK: task}, annotations=GROUP) for task in ("ps", "w")]
    alone = observed(*pods, **{"jobs.batch.volcano.sh": [owner("v", spec=job)]})
    (early,) = alone.cluster.workloads
    assert (early.name, early.topology) == ("g", None)  # until it is known whose the group is
    spec = {"minMember": 3, "minTaskMember": {"ps": 1, "w": 2}, "networkTopology": near}
    kinds = {"jobs.batch.volcano.sh": [owner("v", spec=job)], GROUPS: [owner("g", *whose, spec=spec)]}
    (made,) = observed(*pods, **kinds).cluster.workloads
    assert (made.name, minima(made)) == ("v", {"ps": 1, "w": 2})
    assert made.topology == Topology(required="topology.volcano.sh/tier-1")


def test_too_many_subgroups_are_refused_on_the_workload():
    """Nothing of it is placed, and the reason is on its pods; another is not harmed."""
    spec = {"minMember": 1, "subGroupPolicy": [policy(subGroupSize=1, minSubGroups=MOST_PARTS + 1)]}
    made = seen_of(spec, [*WORKERS, pod("other")])
    assert all(f"more than {MOST_PARTS} subgroups" in task.spec.unsupported[0] for task in made.workload.tasks)
    assert any("subgroups" in line for line in made.problems)


@pytest.mark.parametrize(
    "spec",
    [
        {"minTaskMember": 3},
        {"minTaskMember": {"ps": "1"}},
        {"minTaskMember": {"ps": -1, "w": 2}},
        {"subGroupPolicy": [3]},
        {"subGroupPolicy": [{"labelSelector": {"matchLabels": 3}}]},
        {"subGroupPolicy": [{"subGroupSize": 10**12}]},
        {"networkTopology": "near"},
        {"networkTopology": {"highestTierAllowed": "one"}},
    ],
)
def test_what_cannot_be_read_is_told_of_with_its_place(spec):
    made = seen_of({"minMember": 2, **spec}, WORKERS)
    assert any(line.startswith(f"spec.{next(iter(spec))}") for line in made.problems)
    assert len(made.workload.tasks) == 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["name", "mode", "highestTierAllowed", "subGroupSize", "minSubGroups", "labelSelector", "matchLabels",
         "matchLabelKeys", "networkTopology", TASK, PART]), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@given(st.fixed_dictionaries({}, optional={
    "minMember": JSON, "minTaskMember": JSON | st.dictionaries(st.sampled_from(["ps", "w", ""]), st.integers(-1, 4)),
    "subGroupPolicy": JSON | st.lists(JSON, max_size=3), "networkTopology": JSON,
}))  # fmt: skip
def test_whatever_stands_in_a_group_a_workload_of_all_its_pods_comes_of_it(spec):
    """Every pod is in a subgroup that is there, and no more start than there are pods, or fewer than are asked for."""
    volcano_group(spec)
    found = workload_of(spec, [*SERVER, *WORKERS, *halves(2)])
    assert len(found.tasks) == 8
    leaves = {leaf.name for group in found.sub_groups for leaf in group.sub_groups or (group,)}
    assert all(task.sub_group in leaves for task in found.tasks) or not found.sub_groups
