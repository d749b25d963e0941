"""What a pod holds and what its constraints look at, as kube-scheduler counts it: from objects to nodes."""

import pytest
from tests.kubernetes.pods import NOW, decoded, observed, pod, thing, watching

from tenure.clusters.kubernetes import api
from tenure.engine.snapshot import session_of

MAIN = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
MATCH = {"matchLabels": {"app": "x"}}


def node(name, labels=None, *, taints=(), unschedulable=False, **amounts):
    """Give a node that is ready and takes many pods."""
    status = {
        "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110", **amounts},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    spec = {"taints": list(taints), "unschedulable": unschedulable}
    return decoded({"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": status}, api.ApiNode)


def held(**fields):
    """Give what a running pod takes from its node, by resource."""
    seen = observed(node("n"), pod("p", node="n", **fields))
    (workload,) = seen.cluster.workloads
    return dict(workload.tasks[0].spec.requests)


def admitted(name, *items, **objects):
    """Give the nodes on which a waiting pod fits."""
    seen = observed(*items, **objects)
    session = session_of(seen.cluster)
    task = session.workloads[f"default/{name}"].tasks[0]
    mask = session.scorer.fits(task.cls, slice(None))[0]
    if task.terms is not None:
        mask = mask & session.terms.admission.masks(task.terms)[0]
    return {session.nodes.names[i] for i in mask.nonzero()[0]}


def resized(allocated=None, actual=None, **more):
    container = {"name": "main"}
    if allocated is not None:
        container["allocatedResources"] = {"cpu": allocated}
    if actual is not None:
        container["resources"] = {"requests": {"cpu": actual}}
    return {"containerStatuses": [container], **more}


INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        (resized(), 1000),
        (resized("1", "1"), 1000),
        (resized("3", "1"), 3000),
        (resized("1", "4"), 4000),
        (resized("500m", "500m"), 1000),
        (resized("500m", "500m", conditions=INFEASIBLE), 500),
        (resized(None, "2500m", conditions=INFEASIBLE), 2500),
        (resized("2", None), 2000),
    ],
)
def test_a_resized_pod_holds_the_most_of_what_it_asks_for_was_given_and_has(status, cpu):
    """What its node refused for good is not asked for any more."""
    assert held(status=status)["cpu"] == cpu


def test_where_a_resize_was_refused_a_container_that_has_what_it_asks_for_counts_as_well():
    """Its spec does not count any more, so that its status has to, as kube-scheduler counts it."""
    containers = [
        {"name": "main", "resources": {"requests": {"cpu": "4"}}},
        {"name": "side", "resources": {"requests": {"cpu": "2"}}},
    ]
    statuses = [
        {"name": "main", "allocatedResources": {"cpu": "1"}},
        {"name": "side", "allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "2"}}},
    ]
    refused = {"containerStatuses": statuses, "conditions": INFEASIBLE}
    assert held(status=refused, containers=containers)["cpu"] == 3000
    assert held(status={"containerStatuses": statuses}, containers=containers)["cpu"] == 6000


def test_a_pod_that_is_resized_as_a_whole_holds_the_most_as_well():
    status = {"allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "2"}}}
    assert held(status=status, resources={"requests": {"cpu": "1500m"}})["cpu"] == 3000


def test_a_sidecar_that_was_resized_counts():
    sidecar = {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    status = {"initContainerStatuses": [{"name": "side", "allocatedResources": {"cpu": "2"}}]}
    assert held(status=status, initContainers=[sidecar])["cpu"] == 3000


def test_parts_of_a_byte_are_held_and_can_be_placed():
    """The API server stores 1.1Gi in thousandths of a byte; kube-scheduler rounds it up."""
    containers = [{"name": "main", "resources": {"requests": {"memory": "1181116006400m"}}}]
    assert held(containers=containers)["memory"] == 1181116007
    assert admitted("p", node("n"), pod("p", containers=containers)) == {"n"}
    assert admitted("p", node("n", memory="1181116006"), pod("p", containers=containers)) == set()
    assert admitted("p", node("n", memory="1181116006001m"), pod("p", containers=containers)) == {"n"}


def repelling(**term):
    """Give a pod on node a that keeps app x out of its zone."""
    required = [{"topologyKey": "zone", "labelSelector": MATCH, **term}]
    return pod(
        "guard", node="a",
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
    )  # fmt: skip


ZONES = (node("a", {"zone": "1"}), node("b", {"zone": "2"}))
TEAMS = [
    thing("default", metadata={"labels": {"team": "blue"}}),
    thing("other", metadata={"labels": {"team": "red"}}),
]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, {"b"}),
        ({"matchLabels": {"team": "blue"}}, {"b"}),
        ({"matchLabels": {"team": "red"}}, {"a", "b"}),
        ({"matchLabels": {"kubernetes.io/metadata.name": "default"}}, {"b"}),
    ],
)
def test_a_pod_that_runs_keeps_others_away_by_the_labels_of_their_namespace(selector, expected):
    waits = pod("p", labels={"app": "x"})
    found = admitted("p", *ZONES, repelling(namespaceSelector=selector), waits, namespaces=TEAMS)
    assert found == expected


def test_ones_own_term_chooses_namespaces_by_label():
    term = {"topologyKey": "zone", "labelSelector": MATCH, "namespaceSelector": {"matchLabels": {"team": "red"}}}
    waits = pod(
        "p", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    )  # fmt: skip
    there = pod("q", namespace="other", node="a", labels={"app": "x"})
    assert admitted("p", *ZONES, there, waits, namespaces=TEAMS) == {"b"}
    assert admitted("p", *ZONES, there, waits) == {"a", "b"}


def test_what_the_api_server_merged_of_mismatch_keys_is_evaluated():
    merged = {"matchExpressions": [{"key": "tenant", "operator": "NotIn", "values": ["me"]}]}
    term = {"topologyKey": "zone", "labelSelector": merged, "mismatchLabelKeys": ["tenant"]}
    waits = pod(
        "p", labels={"tenant": "me"},
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )  # fmt: skip
    mine = pod("q", node="a", labels={"tenant": "me"})
    other = pod("r", node="b", labels={"tenant": "you"})
    assert admitted("p", *ZONES, mine, other, waits) == {"a"}


@pytest.mark.parametrize(
    ("label", "bound", "fits"),
    [
        ("10", "9", True), ("+10", "9", True), ("010", "9", True), ("1_0", "9", False), (" 10", "9", False),
        ("\u0661\u0660", "9", False), ("9223372036854775807", "9", True), ("9223372036854775808", "9", False),
        ("10", "9223372036854775808", False), ("10", "0x9", False), ("-1", "-2", True), ("", "-2", False),
    ],
)  # fmt: skip
def test_numbers_of_labels_are_read_as_go_reads_them(label, bound, fits):
    terms = [{"matchExpressions": [{"key": "gen", "operator": "Gt", "values": [bound]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    assert bool(admitted("p", node("n", {"gen": label}), pod("p", affinity=affinity))) is fits


def test_a_term_with_what_is_no_number_matches_nothing_and_the_others_count():
    """The API server accepts it."""
    terms = [
        {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["x"]}]},
        {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["ssd"]}]},
    ]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    nodes = node("a", {"gen": "5", "disk": "ssd"}), node("b", {"disk": "hdd"})
    assert admitted("p", *nodes, pod("p", affinity=affinity)) == {"b"}


BEYOND = node("other", {"zone": "1", "tenure.dev/node-pool": "gpus"})


def test_a_pod_of_another_pool_keeps_others_out_of_its_zone():
    """Anti-affinity by zone does not end where a pool ends; nothing is placed on the other pool's nodes."""
    term = [{"topologyKey": "zone", "labelSelector": MATCH}]
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
    guard = pod("guard", node="other", affinity=apart)
    assert admitted("p", *ZONES, BEYOND, guard, pod("p", labels={"app": "x"})) == {"b"}
    assert admitted("p", *ZONES, BEYOND, guard, pod("p")) == {"a", "b"}


def test_affinity_and_spread_by_zone_count_pods_of_other_pools():
    term = [{"topologyKey": "zone", "labelSelector": MATCH}]
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
    there = pod("q", node="other", labels={"app": "x"})
    assert admitted("p", *ZONES, BEYOND, there, pod("p", affinity=near)) == {"a"}
    even = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": MATCH}]
    waits = pod("p", labels={"app": "x"}, topologySpreadConstraints=even)
    assert admitted("p", *ZONES, BEYOND, there, waits) == {"b"}


def test_a_domain_that_only_another_pool_has_counts_for_spread():
    far = node("far", {"zone": "3", "tenure.dev/node-pool": "gpus"})
    even = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": MATCH}]
    pods = [pod(f"q-{n}", node=n, labels={"app": "x"}) for n in "ab"]
    waits = pod("p", labels={"app": "x"}, topologySpreadConstraints=even)
    assert admitted("p", *ZONES, *pods, waits) == {"a", "b"}
    assert admitted("p", *ZONES, far, *pods, waits) == set()


def test_a_spread_constraint_that_selects_everything_holds_nobody_back():
    even = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]
    pods = [pod(f"q-{i}", node="a") for i in range(3)]
    assert admitted("p", *ZONES, *pods, pod("p", topologySpreadConstraints=even)) == {"a", "b"}


def test_a_node_takes_as_many_pods_as_it_says():
    """One that says nothing takes none."""
    bare = decoded(
        {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8"},
         "conditions": [{"type": "Ready", "status": "True"}]}}, api.ApiNode
    )  # fmt: skip
    assert admitted("p", bare, pod("p")) == set()


def test_the_taint_of_an_unschedulable_node_counts_without_the_field_too():
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoExecute"}
    assert admitted("p", node("n", taints=[taint]), pod("p")) == set()
    tolerating = pod("p", tolerations=[{"key": taint["key"], "operator": "Exists"}])
    assert admitted("p", node("n", taints=[taint], unschedulable=True), tolerating) == {"n"}


def test_what_the_kubelet_does_not_declare_it_is_not_given():
    rules = [{"action": "RestartAllContainers"}]
    waits = pod("p", containers=[{**MAIN, "restartPolicyRules": rules}])
    able = decoded(
        {"metadata": {"name": "able"}, "status": {"allocatable": {"cpu": "8", "pods": "9"},
         "conditions": [{"type": "Ready", "status": "True"}],
         "declaredFeatures": ["RestartAllContainersOnContainerExits"]}}, api.ApiNode
    )  # fmt: skip
    assert admitted("p", node("n"), able, waits) == {"able"}


def test_pods_on_a_node_that_is_seen_later_than_they_are_hold_their_room():
    """Watches of nodes and pods are not in step."""
    watch = watching(pod("p", node="late"))
    assert not watch.observe(NOW).cluster.workloads
    watch.informers.nodes.put(node("late"))
    assert [w.tasks[0].node for w in watch.observe(NOW).cluster.workloads] == ["late"]
