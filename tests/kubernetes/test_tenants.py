"""A tenant with the rights of its namespace alone tries everything; the others never notice.

Each scene is tried on a real control plane, by the token of a service account with the role ``edit`` in one namespace.
At first without the admission policies: the scheduler alone has to hold. Then with them: they refuse beforehand.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest
from tests.kubernetes.running import running
from tests.kubernetes.stage import wait_until
from tools.controlplane.client import ApiError
from tools.controlplane.plane import ControlPlane, Options

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.install.tenant_policies import policies
from tenure.clusters.kubernetes.keys import SEAL

GPU = "nvidia.com/gpu"
EVIL = "/api/v1/namespaces/evil/pods"
TEAM = "/api/v1/namespaces/team/pods"
TENURE = "/apis/tenure.dev/v1alpha1"
PROMPT = 15.0
"""Seconds within which an honest pod is bound, on a machine that does other things as well."""


def pod(name, queue, *, gpus=0, cpu="100m", labels=None, **more):
    """Give a pod for Tenure; ``more`` are fields of its spec, ``annotations`` those of its metadata."""
    meta = {
        "name": name,
        "labels": {"tenure.dev/queue": queue, **(labels or {})},
        "annotations": more.pop("annotations", {}),
    }
    meta |= {key: more.pop(key) for key in ("ownerReferences",) if key in more}
    resources = {"requests": {"cpu": cpu}, "limits": {GPU: str(gpus)} if gpus else {}}
    spec = {"schedulerName": "tenure", "terminationGracePeriodSeconds": 0, **more}
    return {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "x", "resources": resources}], **spec}}


class Town:
    """A cluster with honest people and one tenant who is not."""

    def __init__(self, plane, scheduler):
        self.plane, self.scheduler = plane, scheduler
        self.admin = plane.client()
        self.tenant = plane.client(plane.token_of("tenant", "evil"))
        self.count = 0

    def others_go_on(self, why):
        """An honest pod is bound promptly, the scheduler is well, and no cycle failed."""
        self.count += 1
        name = f"honest-{self.count}"
        began = time.monotonic()
        self.admin.create(TEAM, pod(name, "team"))
        wait_until(lambda: self.node_of(TEAM, name), f"an honest pod is not bound: {why}", PROMPT)
        took = time.monotonic() - began
        self.admin.delete(f"{TEAM}/{name}", {"gracePeriodSeconds": 0})
        assert not [line for line in self.scheduler.lines() if line["message"] == "a cycle failed"], why
        assert self.scheduler.leads(), why
        return took

    def node_of(self, path, name):
        return self.admin.get(f"{path}/{name}")["spec"].get("nodeName")

    def run(self, *bodies):
        """Let pods of the tenant run, and have them recorded."""
        for body in bodies:
            self.tenant.create(EVIL, body)
        for body in bodies:
            name = body["metadata"]["name"]
            wait_until(lambda name=name: self.sealed(name), f"{name} does not run", 30)

    def running(self):
        """Give how many of the tenant's pods run."""
        found = self.admin.get(EVIL)["items"]
        return sum("nodeName" in p["spec"] and "deletionTimestamp" not in p["metadata"] for p in found)

    def sealed(self, name):
        found = self.admin.get(f"{EVIL}/{name}")
        conditions = {c["type"]: c.get("message", "") for c in found["status"].get("conditions", ())}
        return found["spec"].get("nodeName") and json.loads(conditions.get(SEAL, "{}")).get("queue")

    def change(self, name, **metadata):
        """Let the tenant change metadata of a pod of its own."""
        self.tenant.patch(f"{EVIL}/{name}", {"metadata": metadata})

    def is_evicted_for_the_team(self, *names, gpus):
        """The team asks for what it is guaranteed: whatever the tenant's pods say, they go, each on record."""
        self.count += 1
        wanted = f"owed-{self.count}"
        self.admin.create(TEAM, pod(wanted, "team", gpus=gpus))
        wait_until(lambda: self.node_of(TEAM, wanted), lambda: f"{wanted} is not bound beside {names}", 30)
        left = {
            p["metadata"]["name"] for p in self.admin.get(EVIL)["items"] if "deletionTimestamp" not in p["metadata"]
        }
        self.admin.delete(f"{TEAM}/{wanted}", {"gracePeriodSeconds": 0})
        return set(names) - left

    def clear(self):
        for path in (
            EVIL,
            TEAM,
            f"{TENURE}/namespaces/evil/podgroups",
            "/apis/policy/v1/namespaces/evil/poddisruptionbudgets",
        ):
            for item in self.admin.get(path)["items"]:
                with suppress(ApiError):  # it may have gone by itself
                    self.admin.delete(f"{path}/{item['metadata']['name']}", {"gracePeriodSeconds": 0})
        wait_until(
            lambda: not self.admin.get(EVIL)["items"] and not self.admin.get(TEAM)["items"], "pods do not go", 30
        )


@pytest.fixture(scope="module")
def plane(programs, tmp_path_factory):
    assert programs.exists()
    with ControlPlane(tmp_path_factory.mktemp("tenants"), Options(audit=True)) as started:
        started.install_tenure()
        for name in ("team", "evil"):
            started.add_namespace(name)
        started.kubectl("label", "namespace", "team", "team=true")
        started.kubectl("label", "namespace", "evil", "tenure.dev/tenant=true")
        started.kubectl("-n", "evil", "create", "serviceaccount", "tenant")
        started.kubectl(
            "-n", "evil", "create", "rolebinding", "tenant", "--clusterrole=edit", "--serviceaccount=evil:tenant"
        )
        for number in range(2):
            started.add_node(f"node-{number}", {"cpu": "64", "memory": "64Gi", GPU: "4"})
        client = started.client()
        selector = {"matchLabels": {"team": "true"}}
        for name, spec in (
            ("team", {"guaranteed": {GPU: 8}, "namespaceSelector": selector}),
            ("evil", {}),
        ):
            client.create(f"{TENURE}/queues", {"apiVersion": "tenure.dev/v1alpha1", "kind": "Queue",
                                               "metadata": {"name": name}, "spec": spec})  # fmt: skip
        client.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1_000_000})
        yield started


def switch(plane, *, on):
    """Let the policies hold, or not."""
    for policy in policies("tenure-system", ("tenure",)):
        made, binding = policy.objects(lambda name: {"name": name, "labels": {"app.kubernetes.io/name": "tenure"}})
        if policy.name in ("tenure-itself", "tenure-maps"):
            continue
        if on:
            plane.apply(made, binding)
        else:
            plane.kubectl("delete", "validatingadmissionpolicybinding", policy.name, "--ignore-not-found")


@pytest.fixture(scope="module")
def town(plane, tmp_path_factory):
    switch(plane, on=False)
    kubeconfig = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "tenants")
    with running(kubeconfig, tmp_path_factory.mktemp("town")) as scheduler:
        wait_until(scheduler.leads, "nobody leads", 60)
        yield Town(plane, scheduler)


@pytest.fixture(autouse=True)
def clean(town):
    yield
    town.clear()


DEEP = "[" * 100_000
DIGITS = "9" * 5_000
UNREADABLE = {
    keys.NOMINATION: DEEP, keys.MIN_MEMBER: DIGITS, keys.DEVICES: DIGITS, keys.TASK_ORDER: DIGITS,
    "tenure.dev/gpu-devices": DIGITS, "tenure.dev/restart-overhead": DIGITS, keys.GPU_USAGE: DIGITS,
    keys.NOTICE: json.dumps({"deadline": "9999-01-01T00:00:00Z", "cause": "x", "to": "node-0", "devices": [99]}),
}  # fmt: skip


def test_no_annotation_stops_anybody_else(town):
    """Text that nests, numbers without end, forged notices: on pods that wait and that run, and on their group."""
    town.run(pod("runs", "evil"))
    for number, (key, text) in enumerate(UNREADABLE.items()):
        town.tenant.create(
            EVIL, pod(f"waits-{number}", "evil", annotations={key: text}, schedulingGates=[{"name": "x/y"}])
        )
        town.change("runs", annotations={key: text})
    group = {"apiVersion": "tenure.dev/v1alpha1", "kind": "PodGroup", "spec": {}}
    town.tenant.create(
        f"{TENURE}/namespaces/evil/podgroups", {**group, "metadata": {"name": "g", "annotations": UNREADABLE}}
    )
    town.tenant.create(EVIL, pod("grouped", "evil", labels={keys.POD_GROUP: "g"}, annotations=UNREADABLE))
    town.others_go_on("unreadable annotations")


def test_a_scheduler_that_starts_beside_them_reads_all_the_rest(town, plane, tmp_path):
    """A list of pods with such annotations: a replica that starts now is ready."""
    town.tenant.create(EVIL, pod("strange", "evil", annotations=UNREADABLE, schedulingGates=[{"name": "x/y"}]))
    kubeconfig = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "second")
    with running(kubeconfig, tmp_path, "second") as second:
        wait_until(lambda: second.page("/readyz")[0] == 200, "a second replica does not get ready", 30)


def test_a_victim_that_cannot_be_written_on_takes_nobody_with_it(town):
    """A megabyte of labels, and annotations up to the last byte: it goes, and so do the others of that plan."""
    town.run(*(pod(f"victim-{n}", "evil", gpus=2) for n in range(4)))
    town.change("victim-0", labels={f"example.com/{n}-{'x' * 50}": "y" * 60 for n in range(7_000)})
    town.change("victim-1", annotations={f"example.com/{n}": "y" * 1000 for n in range(255)})
    assert len(town.is_evicted_for_the_team("victim-0", "victim-1", "victim-2", "victim-3", gpus=4)) >= 2
    town.others_go_on("a victim without room for a note")
    town.is_evicted_for_the_team(gpus=4)


def test_names_that_collide_give_no_room_away(town):
    """A group ``a.job``, a group ``a`` and a Job ``a``: nothing runs beyond what the nodes have."""
    limits = {"limits": {GPU: "2"}}
    template = {"metadata": {"labels": {"tenure.dev/queue": "evil"}}, "spec": {
        "schedulerName": "tenure", "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "x", "resources": limits}]}}  # fmt: skip
    job = {"metadata": {"name": "a"}, "spec": {"parallelism": 1, "completions": 1, "template": template}}
    town.tenant.create("/apis/batch/v1/namespaces/evil/jobs", {"apiVersion": "batch/v1", "kind": "Job", **job})
    for name, group in (("one", "a.job"), ("two", "a"), ("three", "a.job.x")):
        town.tenant.create(EVIL, pod(name, "evil", gpus=2, labels={keys.POD_GROUP: group}))
    bound = lambda: [p for p in town.admin.get(EVIL)["items"] if p["spec"].get("nodeName")]  # noqa: E731
    wait_until(lambda: len(bound()) == 4, "not all are bound", 30)
    town.tenant.create(EVIL, pod("more", "evil", gpus=2))
    town.others_go_on("names that collide")
    assert len(bound()) == 4
    town.admin.delete("/apis/batch/v1/namespaces/evil/jobs/a", {"propagationPolicy": "Background"})


ESCAPES = {
    "a bogus subgroup": {"labels": {keys.SUB_GROUP: "none"}},
    "forged devices": {"annotations": {keys.DEVICES: "17,99"}},
    "an unknown queue": {"labels": {"tenure.dev/queue": "none"}},
    "another's queue": {"labels": {"tenure.dev/queue": "team"}},
    "preemptible: false": {"annotations": {"tenure.dev/preemptible": "false"}},
    "a DaemonSet for an owner": {"ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}]},
    "a notice": {"annotations": {keys.NOTICE: UNREADABLE[keys.NOTICE]}},
    "a start that moves on": {"annotations": {keys.STARTED: "2999-01-01T00:00:00Z"}},
}  # fmt: skip


def test_whatever_runs_stays_charged_and_goes_when_it_is_owed(town):
    """Changed in any way after its start, it stays in its queue; the team gets what it is guaranteed."""
    names = [f"escapes-{n}" for n in range(len(ESCAPES))]
    town.run(*(pod(name, "evil", gpus=1) for name in names))
    for name, change in zip(names, ESCAPES.values(), strict=True):
        town.change(name, **change)
    town.others_go_on("pods that try to escape")
    allocated = lambda: town.admin.get(f"{TENURE}/queues/evil").get("status", {}).get("allocated", {}).get(GPU)  # noqa: E731
    wait_until(lambda: allocated() == str(town.running()), lambda: f"the queue is charged {allocated()}", 30)
    assert town.running() >= len(names) - 1  # what names an owner that is not there is collected as garbage
    for half in (4, 4):
        town.is_evicted_for_the_team(gpus=half)
    gone = town.is_evicted_for_the_team(*names, gpus=4)
    assert len(gone) >= 4


def test_a_group_does_not_raise_a_priority(town):
    """A PodGroup of a high class evicts nothing of lower priority: its pods have none."""
    town.run(*(pod(f"low-{n}", "evil", gpus=4) for n in range(2)))
    group = {"apiVersion": "tenure.dev/v1alpha1", "kind": "PodGroup", "metadata": {"name": "high"},
             "spec": {"priorityClassName": "high", "queue": "evil"}}  # fmt: skip
    town.tenant.create(f"{TENURE}/namespaces/evil/podgroups", group)
    town.tenant.create(EVIL, pod("raised", "evil", gpus=4, labels={keys.POD_GROUP: "high"}))
    town.others_go_on("a group of a high class")
    time.sleep(1)
    assert not town.node_of(EVIL, "raised")
    assert all(town.node_of(EVIL, f"low-{n}") for n in range(2))


def test_a_queue_is_for_the_namespaces_that_it_admits(town):
    """A pod for another's queue waits and says why."""
    town.tenant.create(EVIL, pod("intruder", "team"))
    town.others_go_on("a pod for another's queue")
    reason = lambda: [c.get("reason") for c in town.admin.get(f"{EVIL}/intruder")["status"].get("conditions", ())]  # noqa: E731
    wait_until(lambda: "QueueRefused" in reason(), lambda: f"it says {reason()}", 20)
    assert not town.node_of(EVIL, "intruder")


def test_a_budget_that_never_allows_protects_only_its_own(town):
    """Pods under such a budget stay; the contender gets its room from others."""
    town.run(*(pod(f"kept-{n}", "evil", gpus=2, labels={"app": "kept"}) for n in range(2)))
    town.run(*(pod(f"other-{n}", "evil", gpus=2) for n in range(2)))
    budget = {
        "metadata": {"name": "never"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "kept"}}},
    }
    town.tenant.create("/apis/policy/v1/namespaces/evil/poddisruptionbudgets", budget)
    time.sleep(1)
    town.is_evicted_for_the_team(gpus=2)
    assert all(town.node_of(EVIL, f"kept-{n}") for n in range(2))


def test_terms_without_end_slow_nobody_down(town):
    """Many pods with twenty anti-affinity terms each: an honest pod is bound as promptly as before."""
    before = min(town.others_go_on("nothing yet") for _ in range(3))
    term = {
        "labelSelector": {"matchLabels": {"app": "x"}},
        "topologyKey": "kubernetes.io/hostname",
        "namespaceSelector": {},
    }
    many = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term] * 20}}

    for number in range(200):
        town.tenant.create(EVIL, pod(f"anti-{number}", "evil", affinity=many, cpu="1m"))
    after = max(town.others_go_on("terms without end") for _ in range(5))
    assert after < max(2 * before, before + 2), (before, after)


def refused(town, verb, *arguments):
    """Whether the API server refuses something of the tenant by a policy of Tenure's; what it took is gone again."""
    try:
        getattr(town.tenant, verb)(*arguments)
    except ApiError as error:
        return "ValidatingAdmissionPolicy 'tenure-" in str(error)
    if verb == "create":
        path, body = arguments
        town.admin.delete(f"{path}/{body['metadata']['name']}", {"gracePeriodSeconds": 0})
    return False


def test_the_policies_refuse_what_would_not_be_believed(town, plane):
    """With the policies each of it is refused at submission, and honest work passes as before."""
    town.run(pod("runs", "evil", labels={"app": "kept"}))
    switch(plane, on=True)
    try:
        wait_until(lambda: refused(town, "patch", f"{EVIL}/runs", {"metadata": {"annotations": {keys.STARTED: "x"}}}),
                   "the policies do not hold", 30)  # fmt: skip
        for change in (
            {"labels": {"tenure.dev/queue": "team"}}, {"labels": {keys.POD_GROUP: "g"}},
            {"annotations": {"tenure.dev/preemptible": "false"}}, {"annotations": {keys.NOTICE: "{}"}},
            {"annotations": {keys.DEVICES: "0"}}, {"annotations": {keys.NOMINATION: "{}"}},
            {"annotations": {keys.ROLE: "originator"}}, ESCAPES["a DaemonSet for an owner"],
        ):  # fmt: skip
            assert refused(town, "patch", f"{EVIL}/runs", {"metadata": change}), change
        forged = pod("forged", "evil", annotations={keys.NOT_BEFORE: "2999-01-01T00:00:00Z"})
        assert refused(town, "create", EVIL, forged)
        wait_until(lambda: refused(town, "create", EVIL, pod("intruder", "team")), "queues are not heard of", 30)
        assert refused(town, "create", EVIL, pod("bound", "evil", nodeName="node-0"))
        group = {"apiVersion": "tenure.dev/v1alpha1", "kind": "PodGroup", "metadata": {"name": "high"}}
        groups = f"{TENURE}/namespaces/evil/podgroups"
        assert refused(town, "create", groups, {**group, "spec": {"priorityClassName": "high"}})
        assert refused(town, "create", groups, {**group, "spec": {"queue": "team"}})
        budgets = "/apis/policy/v1/namespaces/evil/poddisruptionbudgets"
        selector = {"selector": {"matchLabels": {"app": "kept"}}}
        assert refused(town, "create", budgets, {"metadata": {"name": "n"}, "spec": {"maxUnavailable": 0, **selector}})
        assert refused(
            town, "create", budgets, {"metadata": {"name": "n"}, "spec": {"minAvailable": "100%", **selector}}
        )
        town.tenant.create(budgets, {"metadata": {"name": "fine"}, "spec": {"maxUnavailable": 1, **selector}})
        town.tenant.create(groups, {**group, "spec": {"queue": "evil", "minMember": 1}})
        town.run(pod("fine", "evil", labels={keys.POD_GROUP: "high"}))
        town.change("fine", labels={"mine": "yes"}, annotations={"tenure.dev/eviction-ack": "true"})
        town.others_go_on("with the policies")
        town.run(*(pod(f"victim-{n}", "evil", gpus=4) for n in range(2)))
        town.is_evicted_for_the_team(gpus=4)
    finally:
        switch(plane, on=False)


def test_the_status_of_a_pod_is_not_the_tenants(town):
    """What the scheduler recorded stands where the role ``edit`` cannot write."""
    town.run(pod("runs", "evil"))
    with pytest.raises(ApiError, match="pods/status"):
        town.tenant.patch(f"{EVIL}/runs/status", {"status": {"conditions": []}})
