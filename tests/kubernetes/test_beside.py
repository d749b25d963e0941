"""The rescheduler beside the default kube-scheduler: it makes room, keeps it, and leaves nothing behind."""

from __future__ import annotations

import re
import time

import msgspec
import pytest
from tests.kubernetes.faults import Refuse
from tests.kubernetes.proxy import FaultProxy
from tests.kubernetes.running import PODS, SETS, TENURE, Scheduler, bound, clear, pods_of, running, tenure
from tests.kubernetes.stage import wait_until
from tools.controlplane.plane import ControlPlane, Options

from tenure.clusters.kubernetes import api, holes, policy
from tenure.clusters.kubernetes.manifests import Installation, objects
from tenure.clusters.kubernetes.rbac import Role, granted

ACCOUNT = "system:serviceaccount:tenure-system:tenure"
MAPS = "/api/v1/namespaces/tenure-system/configmaps"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
BUDGET_RULES = f"{TENURE}/disruptionbudgets"
RESCHEDULER = {"schedulers": ["default-scheduler"], "pendingFor": "1s"}


@pytest.fixture(scope="module")
def plane(programs, tmp_path_factory):
    assert programs.exists()
    options = Options(scheduler=True, audit=True)
    with ControlPlane(tmp_path_factory.mktemp("beside-plane"), options) as started:
        started.install_tenure(Installation(image="tenure:test", config={"rescheduler": RESCHEDULER}))
        first = {"metadata": {"name": "thief"}, "value": 1000, "preemptionPolicy": "Never"}
        started.client().create("/apis/scheduling.k8s.io/v1/priorityclasses", first)
        yield started


@pytest.fixture
def client(plane):
    """Give a client, on two nodes of 10 cores, 4 of each in use: there is no room for 9, and it can be made.

    Tenure's own replicas are simulated there too, and take a quarter of a core each.
    """
    made = plane.client()
    for name in ("node-0", "node-1"):
        plane.add_node(name, {"cpu": "10", "memory": "32Gi"})
    wait_until(lambda: all(is_ready(n) for n in made.get("/api/v1/nodes")["items"]), "the nodes are not ready", 30)
    for name in ("small-a", "small-b"):
        made.create(SETS, replicas(name, 2, 2, terminationGracePeriodSeconds=1))
        wait_until(lambda name=name: sorted(nodes_of(made, name)) == ["node-0", "node-1"], f"{name} is not spread", 30)
    yield made
    for budget in made.get(BUDGETS)["items"]:
        made.delete(f"{BUDGETS}/{budget['metadata']['name']}")
    clear(plane.client())


@pytest.fixture
def kubeconfig(plane):
    return plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "tenure")


def replicas(name, cpu, count=1, **spec):
    """Give a ReplicaSet for the default scheduler."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": str(cpu)}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
    body = {"replicas": count, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": body}


def thieves(count, **spec):
    """Give pods that kube-scheduler serves first, and for which Tenure makes no room: it does not evaluate volumes."""
    volumes = [{"name": "data", "nfs": {"server": "nowhere", "path": "/"}}]
    return replicas("thief", 6, count, priorityClassName="thief", volumes=volumes, **spec)


def settle(client, **settings):
    """Give the node pool its settings."""
    body = {"scheduler": {"rescheduler": RESCHEDULER, **settings}}
    item = {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": body}
    client.create(f"{TENURE}/nodepools", item)


def nodes_of(client, name):
    return [p["spec"]["nodeName"] for p in pods_of(client, name) if p["spec"].get("nodeName")]


def is_ready(node):
    """Whether pods may land on a node."""
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", ()))
    return ready and not node["spec"].get("taints")


def tainted(client):
    nodes = client.get("/api/v1/nodes")["items"]
    return [n["metadata"]["name"] for n in nodes
            if any(t["key"] == holes.TAINT for t in n["spec"].get("taints", ()))]  # fmt: skip


def record(client):
    """Give the ConfigMap by which something is kept, if there is one."""
    found = [m for m in client.get(MAPS)["items"] if m["metadata"]["name"].startswith("tenure-moves")]
    return found[0] if found else None


def nothing_is_left(client):
    return not tainted(client) and record(client) is None


def events(client, reason):
    return [e for e in client.get("/apis/events.k8s.io/v1/events")["items"] if e["reason"] == reason]


def test_a_pod_of_kube_scheduler_gets_its_room_by_a_move_and_nobody_steals_it(plane, client, kubeconfig, tmp_path):
    """The hole goes to whom it was made for, what moved lands elsewhere, and nothing is left of how it was done."""
    settle(client)
    before = {uid: pod["spec"]["nodeName"] for uid, pod in small(client).items()}
    client.create(SETS, replicas("large", 9))
    client.create(SETS, thieves(4))
    with running(kubeconfig, tmp_path) as scheduler:
        wait_until(lambda: bound(client, "large") == 1, lambda: scheduler.log.read_text()[-3000:], 60)
        wait_until(lambda: nothing_is_left(client), lambda: f"{tainted(client)} {record(client)}", 60)
        wait_until(lambda: bound(client, "small-a") == bound(client, "small-b") == 2, "what moved does not land", 30)
    assert bound(client, "thief") == 0
    after = small(client)
    (hole,) = {before[uid] for uid in set(before) - set(after)}
    new = [after[uid] for uid in set(after) - set(before)]
    assert nodes_of(client, "large") == [hole]
    assert len(new) == 2
    for pod in new:
        assert pod["spec"]["nodeName"] != hole
        assert pod["metadata"]["annotations"][holes.KEPT_OFF] == hole
    made = list(calls(plane))
    assert [call for call in made if call[1] == "pods/binding" or call[3] == 403] == []
    further = set(granted(Role.SCHEDULER, guides=True)) - set(granted(Role.SCHEDULER))
    assert further <= {call[:3] for call in made}
    assert events(client, "HoleKept")
    assert events(client, "HoleFilled")


def test_a_budget_says_what_of_it_is_used(client, kubeconfig, plane, tmp_path):
    """Its status and its columns show the evictions of the current window, and how many more it allows."""
    settle(client)
    for name, most in (("all", 5), ("tight", 2)):
        spec = {"maxEvictions": most, "per": "1h"}
        client.create(BUDGET_RULES, {"apiVersion": "tenure.dev/v1alpha1", "kind": "DisruptionBudget",
                                     "metadata": {"name": name}, "spec": spec})  # fmt: skip
    client.create(SETS, replicas("large", 9))
    with running(kubeconfig, tmp_path) as scheduler:
        wait_until(lambda: bound(client, "large") == 1, lambda: scheduler.log.read_text()[-3000:], 60)
        wait_until(lambda: status_of(client, "all").get("evictions") == 2, lambda: str(status_of(client, "all")), 60)
        wait_until(lambda: status_of(client, "tight").get("nextAt"), lambda: str(status_of(client, "tight")), 60)
    assert (status_of(client, "all")["allowed"], status_of(client, "all")["inForce"]) == (3, True)
    assert (status_of(client, "tight")["allowed"], status_of(client, "tight")["evictions"]) == (0, 2)
    assert "nextAt" not in status_of(client, "all")
    header, row = plane.kubectl("get", "tdb", "all").splitlines()
    shown = [row[header.index(name) :].split()[0] for name in ("EVICTIONS", "PER", "USED", "ALLOWED")]
    assert shown == ["5", "1h", "2", "3"]


def status_of(client, name):
    return client.get(f"{BUDGET_RULES}/{name}").get("status", {})


def test_a_plan_of_several_waves_goes_wave_by_wave_and_what_it_frees_on_the_way_is_kept(
    client, kubeconfig, plane, tmp_path
):
    """What has to make room for another move goes first; that lands before the next goes, and nobody slips in."""
    settle(client)
    plane.add_node("node-2", {"cpu": "10", "memory": "32Gi"})
    wait_until(lambda: all(is_ready(n) for n in client.get("/api/v1/nodes")["items"]), "no third node", 30)
    for name in ("small-a", "small-b"):
        client.delete(f"{SETS}/{name}", {"propagationPolicy": "Background"})
    wait_until(lambda: not pods_of(client, "small-a") + pods_of(client, "small-b"), "the small ones do not go", 30)
    place(plane, client, "node-0", replicas("first", 4, **only("node-0", "node-1")))
    place(plane, client, "node-1", replicas("second", 4))
    place(plane, client, "node-1", fixed("wall-1", 3))
    place(plane, client, "node-2", fixed("wall-2", 4))
    client.create(SETS, replicas("large", 9, **only("node-0")))
    client.create(SETS, thieves(2, **only("node-0", "node-1")))
    with running(kubeconfig, tmp_path) as scheduler:
        wait_until(lambda: bound(client, "large") == 1, lambda: scheduler.log.read_text()[-3000:], 60)
        wait_until(lambda: nothing_is_left(client), lambda: f"{tainted(client)} {record(client)}", 60)
        evicted = [line for line in scheduler.lines() if line["message"] == "evicted"]
    assert [line["workload"] for line in evicted] == ["default/second", "default/first"]
    assert (nodes_of(client, "large"), nodes_of(client, "first"), nodes_of(client, "second")) == (
        ["node-0"], ["node-1"], ["node-2"],
    )  # fmt: skip
    (second,) = pods_of(client, "second")
    scheduled = next(c for c in second["status"]["conditions"] if c["type"] == "PodScheduled")
    assert scheduled["lastTransitionTime"] <= evicted[1]["time"]


def test_in_shadow_it_says_what_would_move_and_writes_nothing_of_it(plane, client, kubeconfig, tmp_path):
    """No record, no taint, no toleration, no eviction: only an event on what would move."""
    settle(client, modes={"reschedule": "shadow"})
    client.create(SETS, replicas("large", 9))
    before = len(list(calls(plane)))
    with running(kubeconfig, tmp_path):
        wait_until(lambda: events(client, "WouldEvict"), "it does not say what it would do", 60)
        time.sleep(2)
    assert written(list(calls(plane))[before:]) == set()
    assert nothing_is_left(client)
    assert bound(client, "large") == 0


def test_a_hole_that_nobody_fills_in_time_is_given_back(client, kubeconfig, tmp_path):
    """The taint goes when the time is over, though what moves has not left; the record goes when that has landed."""
    settle(client, nominationTimeout="3s")
    for name in ("small-a", "small-b"):
        for pod in pods_of(client, name):
            slow = {"metadata": {"annotations": {"simulated.tenure.dev/stop-seconds": "12"}}}
            client.patch(f"{PODS}/{pod['metadata']['name']}", slow, "merge")
    client.create(SETS, replicas("large", 9))
    with running(kubeconfig, tmp_path) as scheduler:
        wait_until(lambda: tainted(client), lambda: scheduler.log.read_text()[-3000:], 60)
        until = holes.hole_of(item_of(record(client))).until
        wait_until(lambda: not tainted(client), lambda: scheduler.log.read_text()[-3000:], 30)
        wait_until(lambda: events(client, "HoleGivenUp"), "it does not say so", 30)
        assert time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) >= until[:19]
        assert bound(client, "large") == 0
        wait_until(lambda: record(client) is None, lambda: str(record(client)), 60)


def test_a_hole_whose_scheduler_has_died_is_given_back_by_the_next_one(plane, client, tmp_path):
    """The limit stands in the cluster: whoever comes after it takes everything back, and has moved nobody."""
    settle(client, nominationTimeout="3s")
    before = set(small(client))
    client.create(SETS, replicas("large", 9))
    with Deadly(plane.server, plane.authority) as proxy:
        kubeconfig = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "killed", proxy.server)
        scheduler = Scheduler(kubeconfig, tmp_path, "killed")
        proxy.arm(scheduler, "after", [r"PATCH /api/v1/namespaces/default/pods/[^/]+$"])
        scheduler.start()
        wait_until(lambda: not proxy.left, lambda: scheduler.log.read_text()[-3000:], 60)
        assert tainted(client)
        time.sleep(6)
        scheduler.start()
        try:
            wait_until(lambda: nothing_is_left(client), lambda: scheduler.log.read_text()[-3000:], 60)
        finally:
            scheduler.stop()
    assert set(small(client)) == before


def test_a_pause_lets_nobody_leave_and_gives_back_what_was_kept_for_that(plane, client, tmp_path):
    """Room that is kept although nothing has moved yet is given back, and none is kept before the pause ends."""
    settle(client)
    before = set(small(client))
    client.create(SETS, replicas("large", 9))
    with Deadly(plane.server, plane.authority) as proxy:
        kubeconfig = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "killed", proxy.server)
        scheduler = Scheduler(kubeconfig, tmp_path, "killed")
        proxy.arm(scheduler, "after", [r"PATCH /api/v1/namespaces/default/pods/[^/]+$"])
        scheduler.start()
        wait_until(lambda: not proxy.left, lambda: scheduler.log.read_text()[-3000:], 60)
        assert tainted(client)
        paused = tenure("pause", "--for", "10m", "--reason", "a test", kubeconfig=plane.kubeconfig)
        assert paused.returncode == 0, paused.stderr
        scheduler.start()
        try:
            wait_until(lambda: nothing_is_left(client), lambda: scheduler.log.read_text()[-3000:], 60)
            time.sleep(3)
            assert nothing_is_left(client)
        finally:
            scheduler.stop()
            tenure("pause", "--end", kubeconfig=plane.kubeconfig)
    assert set(small(client)) == before


def test_a_budget_that_refuses_at_the_last_moment_leaves_no_taint(plane, client, tmp_path):
    """What was kept is given back at once, and nobody has left."""
    settle(client)
    with FaultProxy(plane.server, plane.authority) as proxy:
        proxy.script.add(Refuse(429), method="POST", path="/eviction$", times=2, skip=4)
        token = plane.token_of("tenure", "tenure-system")
        client.create(SETS, replicas("large", 9))
        with running(plane.kubeconfig_for(token, "refused", proxy.server), tmp_path) as scheduler:
            wait_until(lambda: events(client, "HoleGivenUp"), lambda: scheduler.log.read_text()[-3000:], 60)
            wait_until(lambda: nothing_is_left(client), "something is left", 10)
            assert bound(client, "small-a") == bound(client, "small-b") == 2
            assert not [line for line in scheduler.lines() if line["message"] == "evicted"]


def test_what_a_budget_forbids_is_never_begun(plane, client, kubeconfig, tmp_path):
    """Where no pod may be down, nothing is kept and nothing is asked for."""
    settle(client)
    for name in ("small-a", "small-b"):
        spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": name}}}
        client.create(BUDGETS, {"metadata": {"name": name}, "spec": spec})
    client.create(SETS, replicas("large", 9))
    before = len(list(calls(plane)))
    with running(kubeconfig, tmp_path):
        time.sleep(8)
    assert written(list(calls(plane))[before:]) == set()
    assert bound(client, "large") == 0


def test_without_the_admission_policy_nothing_is_moved(client, kubeconfig, tmp_path):
    """It says that the policy is missing, and keeps nothing."""
    settle(client)
    found = client.get(policy.BINDING_PATH)
    client.delete(policy.BINDING_PATH)
    try:
        client.create(SETS, replicas("large", 9))
        with running(kubeconfig, tmp_path):
            wait_until(lambda: events(client, "HoleRefused"), "it does not say so", 60)
        assert "tenure install" in events(client, "HoleRefused")[-1]["note"]
        assert nothing_is_left(client)
        assert bound(client, "large") == 0
    finally:
        body = {key: found[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": policy.NAME}}
        client.create(policy.BINDING_PATH.rpartition("/")[0], body)


def test_a_replacement_that_is_kept_off_in_vain_is_made_anew(plane, client, tmp_path):
    """Where it was to land has closed, and where it comes from is free again: it goes there in the end."""
    settle(client)
    before = {uid: pod["spec"]["nodeName"] for uid, pod in small(client).items()}
    client.create(SETS, replicas("large", 9))
    with Closing(plane.server, plane.authority) as proxy:
        proxy.plane, proxy.closed = plane, set()
        kubeconfig = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "closing", proxy.server)
        with running(kubeconfig, tmp_path) as scheduler:
            wait_until(lambda: bound(client, "large") == 1, lambda: scheduler.log.read_text()[-3000:], 60)
            (hole,) = nodes_of(client, "large")
            wait_until(lambda: not tainted(client), "the taint stays", 30)
            client.delete(f"{SETS}/large", {"propagationPolicy": "Background"})
            wait_until(lambda: bound(client, "small-a") == bound(client, "small-b") == 2, "they wait for ever", 120)
            wait_until(lambda: nothing_is_left(client), "something is left", 60)
    new = [pod["spec"]["nodeName"] for uid, pod in small(client).items() if uid not in before]
    assert new == [hole, hole]
    plane.kubectl("uncordon", *proxy.closed)


class Closing(FaultProxy):
    """A proxy that closes the node where something would land, just before that is evicted."""

    def run_before(self, request):
        super().run_before(request)
        if request.path.endswith("/eviction") and b"dryRun" not in request.body and not self.closed:
            client = self.plane.client()
            self.closed |= {n["metadata"]["name"] for n in client.get("/api/v1/nodes")["items"]} - set(tainted(client))
            self.plane.kubectl("cordon", *self.closed)


FATAL = (
    r"(POST|PUT) .*/configmaps(/tenure-moves-default)?$",
    r"PATCH /api/v1/nodes/",
    r"PATCH /api/v1/namespaces/default/pods/[^/]+$",
    r"(POST|PUT) .*/configmaps(/tenure-evictions-default-0)?$",
    r"PATCH .*/pods/small-[^/]+/status$",
    r"POST .*/eviction$",
    r"PATCH /api/v1/nodes/",
    r"(PUT|DELETE) .*/configmaps/tenure-moves-default$",
)
"""The writes of one move, in their order."""


class Deadly(FaultProxy):
    """A proxy that kills the scheduler at certain writes, one after the other, before or after they are done."""

    def arm(self, scheduler, when, writes=FATAL):
        self.scheduler, self.when, self.left = scheduler, when, list(writes)

    def run_before(self, request):
        super().run_before(request)
        self.kill("before", request)

    def run_after(self, request):
        super().run_after(request)
        self.kill("after", request)

    def kill(self, when, request):
        if when == self.when and self.left and re.match(self.left[0], f"{request.method} {request.path}"):
            if request.path.endswith("/eviction") and b"dryRun" in request.body:
                return
            del self.left[0]
            self.scheduler.process.kill()
            self.scheduler.process.wait(10)


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_one_of_its_writes_it_gets_there_all_the_same(when, plane, client, tmp_path):
    """Whoever comes next goes on: two pods move, once each, the room goes to whom it was made for, nothing is left."""
    settle(client)
    client.create(SETS, replicas("large", 9))
    client.create(SETS, thieves(4))
    before = set(small(client))
    with Deadly(plane.server, plane.authority) as proxy:
        kubeconfig = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "killed", proxy.server)
        scheduler = Scheduler(kubeconfig, tmp_path, "killed")
        proxy.arm(scheduler, when)
        until = time.monotonic() + 150
        try:
            while time.monotonic() < until and not (bound(client, "large") and nothing_is_left(client)):
                if scheduler.process is None or scheduler.process.poll() is not None:
                    scheduler.start()
                time.sleep(0.1)
        finally:
            scheduler.process.kill()
            scheduler.process.wait(10)
        assert proxy.left == []
    assert bound(client, "large") == 1
    assert nothing_is_left(client)
    assert bound(client, "thief") == 0
    wait_until(lambda: bound(client, "small-a") == bound(client, "small-b") == 2, "what moved does not land", 30)
    assert len(before - set(small(client))) == 2


@pytest.mark.parametrize(
    ("config", "role", "more"),
    [
        ({"rescheduler": RESCHEDULER}, Role.SCHEDULER, True),
        ({"rescheduler": RESCHEDULER}, Role.READ_ONLY, False),
        ({"rescheduler": {}}, Role.SCHEDULER, False),
        (None, Role.SCHEDULER, False),
    ],
)
def test_further_rights_are_given_only_where_schedulers_are_named(config, role, more):
    """The policy and the rights on nodes and pods stand in the manifests of an installation that uses them alone."""
    made = objects(Installation(image="tenure:test", config=config, role=role))
    rules = next(o["rules"] for o in made if o["kind"] == "ClusterRole" and o["metadata"]["name"] == "tenure")
    assert any("patch" in r["verbs"] and r["resources"] in (["nodes"], ["pods"]) for r in rules) == more
    assert any(r.get("resourceNames") == [policy.NAME] for r in rules) == more
    assert {o["kind"] for o in made if "Admission" in o["kind"]} == (
        {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"} if more else set()
    )


def place(plane, client, node, body):
    """Create pods on a node, by closing all others meanwhile."""
    others = [n["metadata"]["name"] for n in client.get("/api/v1/nodes")["items"] if n["metadata"]["name"] != node]
    plane.kubectl("cordon", *others)
    is_pod = body["kind"] == "Pod"
    client.create(PODS if is_pod else SETS, body)
    name = body["metadata"]["name"]
    wait_until(lambda: nodes_of(client, name) == [node], f"{name} does not run on {node}", 30)
    plane.kubectl("uncordon", *others)


def only(*nodes):
    """Give the part of a pod's spec that lets it run on some nodes alone."""
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def fixed(name, cpu):
    """Give a pod that nobody would recreate, and which is never moved for that."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": str(cpu)}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"containers": [container]}}  # fmt: skip


def item_of(plain):
    return msgspec.convert({key: plain[key] for key in ("metadata", "data")}, api.Anything, strict=False)


def small(client):
    """Give the small pods by uid."""
    return {pod["metadata"]["uid"]: pod for name in ("small-a", "small-b") for pod in pods_of(client, name)}


def calls(plane):
    """Give what the service account asked for: group, resource, verb, and the answer's code."""
    for event in plane.audit(ACCOUNT):
        about = event.get("objectRef")
        if about is not None:
            resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            yield about.get("apiGroup", ""), resource, event["verb"], event["responseStatus"]["code"]


def written(made):
    """Give what was written of pods, nodes and records."""
    writes = {(resource, verb) for _, resource, verb, _ in made if verb in ("create", "update", "patch", "delete")}
    return {call for call in writes if call[0].startswith(("pods", "nodes", "configmaps"))}
