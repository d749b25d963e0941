"""A tenant with the rights of its namespace alone tries everything; the others never notice.

Each scene is tried on a real control plane, by the token of a service account with the role ``edit`` in one namespace.
At first without the admission policies: the scheduler alone has to hold. Then with them: they refuse beforehand.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from datetime import datetime

import pytest
from tests.kubernetes.running import running, tenure
from tests.kubernetes.stage import wait_until
from tools.controlplane.client import ApiError

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.install.tenant_policies import JOINS, RESERVED, policies
from tenure.clusters.kubernetes.keys import SEAL
from tenure.clusters.kubernetes.seals import Seal, condition_of

GPU = "nvidia.com/gpu"
EVIL = "/api/v1/namespaces/evil/pods"
TEAM = "/api/v1/namespaces/team/pods"
TENURE = "/apis/tenure.dev/v1alpha1"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
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
            wait_until(lambda name=name: self.sealed(name), lambda name=name: self.why_not(name), 30)

    def why_not(self, name):
        """Say what is known of a pod that does not run: what it was told, who else is there, what was logged last."""
        found = self.admin.get(f"{EVIL}/{name}")
        others = {path: [p["metadata"]["name"] for p in self.admin.get(path)["items"]] for path in (EVIL, TEAM)}
        logged = self.scheduler.lines()[-5:]
        return f"{name} does not run: {found['spec'].get('nodeName')} {found['status']}; {others}; {logged}"

    def running(self):
        """Give how many of the tenant's pods run."""
        found = self.admin.get(EVIL)["items"]
        return sum("nodeName" in p["spec"] and "deletionTimestamp" not in p["metadata"] for p in found)

    def sealed(self, name):
        found = self.admin.get(f"{EVIL}/{name}")
        conditions = {c["type"]: c.get("message", "") for c in found["status"].get("conditions", ())}
        return found["spec"].get("nodeName") and json.loads(conditions.get(SEAL, "{}")).get("queue")

    def can_be_resized(self, name):
        """Let a pod run on a kubelet that resizes in place: it says in the status what its containers have."""
        wait_until(lambda: self.admin.get(f"{EVIL}/{name}")["status"].get("containerStatuses"), f"{name} does not run")
        found = self.admin.get(f"{EVIL}/{name}")
        for told, asked in zip(found["status"]["containerStatuses"], found["spec"]["containers"], strict=True):
            told["resources"] = asked["resources"]
        self.admin.request("PUT", f"{EVIL}/{name}/status", found)

    def settings(self, **scheduler):
        """Let the node pool have these settings."""
        body = {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "default"},
                "spec": {"scheduler": scheduler}}  # fmt: skip
        self.plane.apply(body)
        time.sleep(0.5)

    def budget(self, name, **spec):
        """Let the tenant make a PodDisruptionBudget over its pods of app kept; Kubernetes has seen it then."""
        path = "/apis/policy/v1/namespaces/evil/poddisruptionbudgets"
        spec.setdefault("selector", {"matchLabels": {"app": "kept"}})
        self.tenant.create(path, {"metadata": {"name": name}, "spec": spec})
        wait_until(
            lambda: self.admin.get(f"{path}/{name}").get("status", {}).get("observedGeneration"), f"{name} is not seen"
        )

    def tries(self, name):
        """Give how often Tenure asked for the eviction of a pod, without effect or with it."""
        events = self.plane.audit("system:serviceaccount:tenure-system:tenure")
        about = (e.get("objectRef", {}) for e in events if e["verb"] == "create")
        return sum(o.get("subresource") == "eviction" and o["name"] == name for o in about)

    def bound(self, path=EVIL):
        """Give the names of the tenant's pods that have a node and do not go."""
        found = self.admin.get(path)["items"]
        return {
            p["metadata"]["name"] for p in found
            if p["spec"].get("nodeName") and "deletionTimestamp" not in p["metadata"]
        }  # fmt: skip

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
            f"{TENURE}/nodepools",
            EVIL,
            TEAM,
            f"{TENURE}/namespaces/evil/podgroups",
            "/apis/policy/v1/namespaces/evil/poddisruptionbudgets",
        ):
            for item in self.admin.get(path)["items"]:
                self.admin.discard(f"{path}/{item['metadata']['name']}", {"gracePeriodSeconds": 0})
        wait_until(
            lambda: not self.admin.get(EVIL)["items"] and not self.admin.get(TEAM)["items"], "pods do not go", 30
        )


@pytest.fixture(scope="module")
def land(plane):
    """Give the control plane with an honest team and a tenant that is not, on two nodes."""
    for name in ("team", "evil"):
        plane.add_namespace(name)
    plane.kubectl("label", "namespace", "team", "team=true")
    plane.kubectl("label", "namespace", "evil", "tenure.dev/tenant=true")
    plane.kubectl("-n", "evil", "create", "serviceaccount", "tenant")
    plane.kubectl("-n", "evil", "create", "rolebinding", "tenant", "--clusterrole=edit", "--serviceaccount=evil:tenant")
    for number in range(2):
        plane.add_node(f"node-{number}", {"cpu": "64", "memory": "64Gi", GPU: "4"})
    client = plane.client()
    selector = {"matchLabels": {"team": "true"}}
    for name, spec in (
        ("team", {"guaranteed": {GPU: 8}, "namespaceSelector": selector}),
        ("evil", {}),
    ):
        client.create(f"{TENURE}/queues", {"apiVersion": "tenure.dev/v1alpha1", "kind": "Queue",
                                           "metadata": {"name": name}, "spec": spec})  # fmt: skip
    client.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1_000_000})
    return plane


def labelled(name):
    """Give the metadata of a policy."""
    return {"name": name, "labels": {"app.kubernetes.io/name": "tenure"}}


def switch(plane, *, on):
    """Let the policies hold, or not."""
    kept = ("tenure-itself", "tenure-deletes", "tenure-maps")
    switched = [policy for policy in policies("tenure-system", ("tenure",)) if policy.name not in kept]
    if on:
        plane.apply(*(made for policy in switched for made in policy.objects(labelled)))
        return
    client = plane.client()
    for policy in switched:
        binding = f"{BINDINGS}/{policy.name}"
        if client.exists(binding):
            client.delete(binding)


@pytest.fixture(scope="module")
def town(land, tmp_path_factory):
    switch(land, on=False)
    kubeconfig = land.kubeconfig_for(land.token_of("tenure", "tenure-system"), "tenants")
    with running(kubeconfig, tmp_path_factory.mktemp("town")) as scheduler:
        wait_until(scheduler.leads, "nobody leads", 60)
        yield Town(land, scheduler)


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


def restless(town, name, ended):
    """Change a pod of the tenant's own as often as the API server takes it."""
    client, number = town.plane.client(town.plane.token_of("tenant", "evil")), 0
    while not ended.is_set():
        number += 1
        with suppress(ApiError, OSError):
            client.patch(f"{EVIL}/{name}", {"metadata": {"annotations": {"example.com/number": str(number)}}})


@pytest.mark.parametrize("notice", [None, "1s"])
def test_who_keeps_changing_its_pods_escapes_nothing(town, notice):
    """Each change makes what was decided a moment ago one of an old version: it is told, and goes, all the same."""
    grouped(town, "restless", minMember=1, **({"evictionNotice": notice} if notice else {}))
    names = [f"restless-{n}" for n in range(4)]
    town.run(*(pod(name, "evil", gpus=2, labels={keys.POD_GROUP: "restless"}) for name in names))
    ended = threading.Event()
    threads = [threading.Thread(target=restless, args=(town, name, ended)) for name in names]
    for thread in threads:
        thread.start()
    try:
        assert len(town.is_evicted_for_the_team(*names, gpus=4)) >= 2
    finally:
        ended.set()
        for thread in threads:
            thread.join(30)


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


STUCK = {
    "none may go": [{"maxUnavailable": 0}],
    "all have to be there": [{"minAvailable": "100%"}],
    "as many as there are": [{"minAvailable": 4}],
    "two over the same pods": [{"maxUnavailable": 3}, {"maxUnavailable": 4}],
}


@pytest.mark.parametrize("budgets", STUCK.values(), ids=STUCK)
def test_a_budget_that_never_allows_ends_when_asking_to_be_spared_does(town, budgets):
    """After `maxOptOut` its pods go as others do; each is on record, and says why on itself before it goes."""
    town.run(*(pod(f"kept-{n}", "evil", gpus=2, labels={"app": "kept"}) for n in range(4)))
    for number, budget in enumerate(budgets):
        town.budget(f"never-{number}", **budget)
    time.sleep(2)
    town.settings(disruption={"maxOptOut": "1s"})
    assert len(town.is_evicted_for_the_team(*(f"kept-{n}" for n in range(4)), gpus=4)) == 2


def test_a_budget_over_pods_that_are_never_ready_ends_as_well(town):
    """It would allow one, if one were ready; Kubernetes says since when it has allowed none."""
    never = {"readinessGates": [{"conditionType": "example.com/never"}]}
    town.run(*(pod(f"kept-{n}", "evil", gpus=2, labels={"app": "kept"}, **never) for n in range(4)))
    town.budget("some", maxUnavailable=3)
    time.sleep(3)
    town.settings(disruption={"maxOptOut": "1s"})
    assert len(town.is_evicted_for_the_team(*(f"kept-{n}" for n in range(4)), gpus=4)) == 2


ASKS = {
    "yunikorn": {"yunikorn.apache.org/allow-preemption": "false"},
    "autoscaler": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
    "karpenter": {"karpenter.sh/do-not-disrupt": "true"},
    "descheduler": {"descheduler.alpha.kubernetes.io/prefer-no-eviction": "true"},
    "originator": {keys.ROLE: "originator"},
}


@pytest.mark.parametrize("asks", ASKS.values(), ids=ASKS)
def test_asking_to_be_spared_ends(town, asks):
    """What asks goes last, but not for ever: after `maxOptOut` it goes first, as it is cheaper than what ran before."""
    town.run(pod("older", "evil", gpus=4))
    time.sleep(2.5)
    town.run(pod("asks", "evil", gpus=4, annotations=asks))
    time.sleep(1.5)
    town.settings(disruption={"maxOptOut": "1s"})
    assert town.is_evicted_for_the_team("older", "asks", gpus=4) == {"asks"}
    town.settings(disruption={"maxOptOut": "1h"})
    town.run(pod("younger", "evil", gpus=4))
    town.clear()
    town.run(pod("older-2", "evil", gpus=4))  # not the old name: the simulated kubelet stops pods by name
    town.settings(disruption={"maxOptOut": "1h"})
    town.run(pod("asks-2", "evil", gpus=4, annotations=asks))
    assert town.is_evicted_for_the_team("older-2", "asks-2", gpus=4) == {"older-2"}


def grouped(town, name, **spec):
    """Let the tenant make a group of its queue."""
    group = {"apiVersion": "tenure.dev/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}}
    town.tenant.create(f"{TENURE}/namespaces/evil/podgroups", {**group, "spec": {"queue": "evil", **spec}})


def test_a_notice_is_no_longer_than_the_administrator_says(town):
    """Asked for nine hours it is given ten minutes, and where the queue says two seconds, those."""
    grouped(town, "slow", evictionNotice="9h", minMember=1)
    town.run(*(pod(f"slow-{n}", "evil", gpus=4, labels={keys.POD_GROUP: "slow"}) for n in range(2)))
    town.admin.create(TEAM, pod("owed", "team", gpus=4))

    def deadlines():
        conditions = [c for p in town.admin.get(EVIL)["items"] for c in p["status"].get("conditions", ())]
        notes = [json.loads(c["message"]).get("notice") for c in conditions if c["type"] == SEAL]
        return [datetime.fromisoformat(note["deadline"]).timestamp() for note in notes if note]

    wait_until(deadlines, "nobody is told", 60)
    assert all(at < time.time() + 605 for at in deadlines())
    town.admin.patch(f"{TENURE}/queues/evil", {"spec": {"maxEvictionNotice": "2s"}})
    try:
        town.admin.delete(f"{TEAM}/owed", {"gracePeriodSeconds": 0})
        wait_until(lambda: not deadlines(), "the notice is not withdrawn", 60)
        assert town.is_evicted_for_the_team("slow-0", "slow-1", gpus=4)
    finally:
        town.admin.patch(f"{TENURE}/queues/evil", {"spec": {"maxEvictionNotice": None}})


def test_who_does_not_go_is_waited_for_no_longer_than_the_administrator_says(town):
    """A grace period of years, and a finalizer that nobody removes: the room comes from somebody else."""
    town.settings(disruption={"maxGracePeriod": "2s"}, nominationTimeout="3s")
    lasting = {"terminationGracePeriodSeconds": 2**31 - 1}
    stays = pod("stays", "evil", gpus=4, **lasting)
    stays["metadata"]["finalizers"] = ["example.com/never"]
    town.run(pod("goes", "evil", gpus=4))
    time.sleep(2.5)
    town.run(stays)
    town.is_evicted_for_the_team("goes", "stays", gpus=4)
    assert "deletionTimestamp" in town.admin.get(f"{EVIL}/stays")["metadata"] or "goes" not in town.bound()


def test_one_pod_that_a_quota_allows_does_not_raise_a_hundred(town):
    """A quota counts one pod of a high class; a group with that pod and others is of no higher priority than those."""
    quota = {"metadata": {"name": "high"}, "spec": {"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [
        {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}}}  # fmt: skip
    quotas = "/api/v1/namespaces/evil/resourcequotas"
    town.admin.create(quotas, quota)
    try:
        wait_until(lambda: town.admin.get(f"{quotas}/high").get("status", {}).get("hard"), "the quota is not counted")
        town.run(*(pod(f"low-{n}", "evil", gpus=4) for n in range(2)))
        grouped(town, "mixed", priorityClassName="high", minMember=2)
        town.tenant.create(EVIL, pod("m-0", "evil", gpus=4, labels={keys.POD_GROUP: "mixed"}, priorityClassName="high"))
        with pytest.raises(ApiError, match="exceeded quota"):
            town.tenant.create(
                EVIL, pod("m-1", "evil", gpus=4, labels={keys.POD_GROUP: "mixed"}, priorityClassName="high")
            )
        town.tenant.create(EVIL, pod("m-1", "evil", gpus=4, labels={keys.POD_GROUP: "mixed"}))
        town.others_go_on("a group with one pod of a high class")
        time.sleep(1)
        assert town.bound() == {"low-0", "low-1"}
    finally:
        town.admin.delete(f"{quotas}/high")


def test_an_eviction_that_is_refused_for_ever_costs_nobody_else_theirs(town):
    """A budget that is not looked at, the 101st: whom it keeps is left alone for ever longer, and others are chosen."""
    for number in range(100):
        path = "/apis/policy/v1/namespaces/evil/poddisruptionbudgets"
        selector = {"matchLabels": {"app": f"none-{number}"}}
        spec = {"maxUnavailable": 0, "selector": selector}
        town.tenant.create(path, {"metadata": {"name": f"a-{number}"}, "spec": spec})
    town.run(pod("older", "evil", gpus=4))
    time.sleep(2.5)
    town.run(*(pod(f"kept-{n}", "evil", gpus=2, labels={"app": "kept"}) for n in range(2)))
    town.budget("z", maxUnavailable=0)
    assert town.is_evicted_for_the_team("kept-0", "kept-1", "older", gpus=4) == {"older"}
    refused_for_long(town, "kept-0")


def refused_for_long(town, name):
    """Somebody waits for room that only a pod could give whose eviction is refused: it is tried seldom, and told."""
    began, tried = time.monotonic(), town.tries(name)
    town.admin.create(TEAM, pod("first", "team", gpus=4))
    town.admin.create(TEAM, pod("wants", "team", gpus=4))
    text = lambda: str(town.admin.get(f"{TEAM}/wants")["status"].get("conditions"))  # noqa: E731
    wait_until(lambda: "the API server refused to evict" in text(), lambda: f"it does not say why: {text()}", 30)
    wait_until(lambda: time.monotonic() - began > 12, "time passes", 30)
    assert 0 <= town.tries(name) - tried <= 4
    assert float(metric(town, "tenure_refused_evictions")) >= 1
    events = town.admin.get("/apis/events.k8s.io/v1/namespaces/evil/events")["items"]
    assert any(event["reason"] == "EvictionRefused" for event in events)
    says_so = lambda: "the API server refused to evict" in explained(town, "team/wants")  # noqa: E731  not while it is tried
    wait_until(says_so, lambda: explained(town, "team/wants"), 30)


def explained(town, workload):
    """Give what ``tenure explain --live`` says in a process of its own."""
    done = tenure("explain", workload, kubeconfig=town.plane.kubeconfig)
    assert done.returncode == 0, done.stderr
    return done.stdout


def metric(town, name):
    lines = town.scheduler.page("/metrics")[1].splitlines()
    return next(line.rpartition(" ")[2] for line in lines if line.startswith(name))


def test_a_hook_that_cannot_be_asked_about_evictions_costs_nobody_else_theirs(town):
    """The API server answers with an error of its own (500), for some pods."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"],
              "scope": "*"}]  # fmt: skip
    deaf = {"metadata": {"name": "deaf"}, "webhooks": [{
        "name": "deaf.example.com", "rules": rules, "failurePolicy": "Fail", "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/"}, "timeoutSeconds": 1,
        "matchConditions": [{"name": "kept", "expression": "request.name.startsWith('kept-')"}]}]}  # fmt: skip
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    town.run(pod("older", "evil", gpus=4))
    time.sleep(2.5)
    town.run(*(pod(f"kept-{n}", "evil", gpus=2) for n in range(2)))
    town.admin.create(hooks, deaf)
    try:
        time.sleep(2)
        assert town.is_evicted_for_the_team("kept-0", "kept-1", "older", gpus=4) == {"older"}
        refused_for_long(town, "kept-0")
    finally:
        town.admin.delete(f"{hooks}/deaf")


def test_a_static_pod_that_is_none_is_evicted(town):
    """The annotation of a mirror pod on a pod for Tenure, which has to name its node itself then."""
    forged = pod("mirror", "evil", gpus=4, annotations={keys.MIRROR: "x"}, nodeName="node-0")
    with pytest.raises(ApiError, match=r"must set spec\.nodeName"):
        town.tenant.create(EVIL, pod("waits", "evil", annotations={keys.MIRROR: "x"}))
    town.run(forged)
    town.run(pod("other", "evil", gpus=4))
    assert town.is_evicted_for_the_team("mirror", "other", gpus=4)


def requested(town, node, resource, read):
    """Give what the pods on a node ask for of a resource, as they stand in their spec."""
    pods = [p for path in (EVIL, TEAM) for p in town.admin.get(path)["items"] if p["spec"].get("nodeName") == node]
    amounts = [c["resources"].get("requests", {}).get(resource, "0") for p in pods for c in p["spec"]["containers"]]
    return sum(map(read, amounts))


def cores(text):
    return int(text[:-1]) / 1000 if text.endswith("m") else int(text)


def test_a_pod_that_is_made_larger_where_it_runs_is_counted_so(town):
    """Resized in place: what it asks for now is not given to others."""
    town.run(pod("grows", "evil", cpu="1", nodeSelector={"kubernetes.io/hostname": "node-0"}))
    larger = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "60"}}}]}}
    town.can_be_resized("grows")
    town.admin.request("PATCH", f"{EVIL}/grows/resize", larger, "application/strategic-merge-patch+json")
    time.sleep(1)
    for number in range(10):
        town.tenant.create(EVIL, pod(f"fills-{number}", "evil", cpu="10"))
    wait_until(lambda: len(town.bound()) >= 7, "nothing is bound", 30)
    time.sleep(1)
    assert all(requested(town, f"node-{n}", "cpu", cores) <= 64 for n in range(2))
    town.others_go_on("a pod that was resized")


def test_parts_of_a_byte_are_counted(town):
    """Fractions of bytes, which the API server stores in thousandths: three pods fill a node."""
    for number in range(7):
        body = pod(f"part-{number}", "evil")
        body["spec"]["containers"][0]["resources"]["requests"]["memory"] = "20.1Gi"
        town.tenant.create(EVIL, body)
    wait_until(lambda: len(town.bound()) == 6, lambda: f"bound are {town.bound()}", 30)
    town.others_go_on("parts of bytes")
    assert len(town.bound()) == 6


def away_from(app, key="kubernetes.io/hostname", **more):
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_who_keeps_others_away_by_the_labels_of_their_namespace_is_heeded(town):
    """A namespaceSelector in the term of what runs: nobody is put beside it against kube-scheduler's filters."""
    anywhere = away_from("loud", namespaceSelector={})
    town.run(pod("quiet", "evil", affinity=anywhere, nodeSelector={"kubernetes.io/hostname": "node-0"}))
    for number in range(3):
        town.admin.create(TEAM, pod(f"loud-{number}", "team", labels={"app": "loud"}))
    wait_until(lambda: len(town.bound(TEAM)) == 3, "those that are kept away have no place", 30)
    assert {town.node_of(TEAM, f"loud-{n}") for n in range(3)} == {"node-1"}


def test_terms_reach_beyond_the_nodes_that_are_decided_about(town, plane):
    """Somebody on a node of another pool keeps others out of its zone."""
    zone = "topology.kubernetes.io/zone"
    plane.add_node("beyond", {"cpu": "4", "memory": "4Gi"}, labels={"tenure.dev/node-pool": "other", zone: "z"})
    try:
        plane.kubectl("label", "node", "node-0", f"{zone}=z")
        town.tenant.create(EVIL, pod("far", "evil", nodeName="beyond", affinity=away_from("loud", zone)))
        time.sleep(1)
        for number in range(3):
            town.tenant.create(EVIL, pod(f"loud-{number}", "evil", labels={"app": "loud"}))
        wait_until(lambda: len(town.bound()) == 4, "those that are kept away have no place", 30)
        assert {town.node_of(EVIL, f"loud-{n}") for n in range(3)} == {"node-1"}
    finally:
        plane.kubectl("label", "node", "node-0", f"{zone}-")
        plane.kubectl("delete", "node", "beyond")


def test_numbers_that_are_none_match_no_node(town):
    """Gt and Lt with what Go does not read as a whole number: it waits, and nobody minds."""
    for number, value in enumerate(("1_0", " 5", "0x1", "٣", "1e3", "9" * 40)):
        expression = {"key": "kubernetes.io/hostname", "operator": "Gt", "values": [value]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        odd = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        with suppress(ApiError):  # the API server may know better
            town.tenant.create(EVIL, pod(f"odd-{number}", "evil", affinity=odd))
    town.others_go_on("numbers that are none")
    assert not town.bound()


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


def refused(town, verb, *arguments, by=None):
    """Whether the API server refuses something of the tenant by a policy of Tenure's; what it took is gone again.

    ``by``: the client of somebody else who does it for the tenant.
    """
    try:
        getattr(by or town.tenant, verb)(*arguments)
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
        # another value each time: what slipped in before they held is no change when it is written again
        for field, name in (("annotations", keys.STARTED), ("labels", "tenure.dev/queue")):  # each by its own policy
            wait_until(
                lambda field=field, name=name: refused(
                    town, "patch", f"{EVIL}/runs", {"metadata": {field: {name: f"t{time.monotonic_ns()}"}}}
                ),
                "the policies do not hold", 30,
            )  # fmt: skip
        for change in (
            {"labels": {"tenure.dev/queue": "team"}}, {"labels": {keys.POD_GROUP: "g"}},
            {"annotations": {"tenure.dev/preemptible": "false"}}, {"annotations": {keys.NOTICE: "{}"}},
            {"annotations": {keys.DEVICES: "0"}}, {"annotations": {keys.NOMINATION: "{}"}},
            {"annotations": {keys.ROLE: "originator"}}, ESCAPES["a DaemonSet for an owner"],
            {"annotations": {keys.VISIBLE_DEVICES: "all"}}, {"annotations": {keys.POD_GROUP: "g"}},
            *({"labels": {label: "g"}} for label in (*keys.FOREIGN_GROUPS, *JOINS, keys.KAI_PREEMPTIBILITY)),
            *({"annotations": {key: "g"}} for key in JOINS),
        ):  # fmt: skip
            assert refused(town, "patch", f"{EVIL}/runs", {"metadata": change}), change
        forged = pod("forged", "evil", annotations={keys.NOT_BEFORE: "2999-01-01T00:00:00Z"})
        assert refused(town, "create", EVIL, forged)
        wait_until(lambda: refused(town, "create", EVIL, pod("intruder", "team")), "queues are not heard of", 30)
        assert refused(town, "create", EVIL, pod("bound", "evil", nodeName="node-0"))
        assert refused(town, "create", EVIL, pod("high", "evil", priorityClassName="tenure"))
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


@pytest.fixture(scope="module")
def controller(land):
    """Give the client of a controller of Kubernetes' with its own account; those that run here are administrators."""
    land.kubectl("-n", "kube-system", "create", "serviceaccount", "job-controller")
    land.kubectl("create", "clusterrolebinding", "jobs", "--clusterrole=admin",
                 "--serviceaccount=kube-system:job-controller")  # fmt: skip
    return land.client(land.token_of("job-controller", "kube-system"))


def test_a_template_gets_no_further_than_a_pod(town, plane, controller):
    """Who makes pods of a tenant's template makes none that is placed already, or of the class of Tenure itself."""
    switch(plane, on=True)
    try:
        for number, spec in enumerate(({"nodeName": "node-0"}, {"priorityClassName": "tenure"})):
            made = pod(f"made-{number}", "evil", **spec)
            wait_until(
                lambda made=made: refused(town, "create", EVIL, made, by=controller), f"{spec} is not refused", 30
            )
        controller.create(EVIL, pod("made", "evil"))
        mirror = {"annotations": {keys.MIRROR: "x"}, "nodeName": "node-0"}
        assert refused(town, "create", EVIL, pod("mirror", "evil", **mirror))
    finally:
        switch(plane, on=False)


FORGED = {
    **dict.fromkeys(RESERVED, "9999-01-01T00:00:00Z"),
    keys.NOMINATION: json.dumps({"at": "2999-01-01T00:00:00Z", "node": "node-0"}),
    keys.NOTICE: UNREADABLE[keys.NOTICE],
    keys.DEVICES: "17,99",
    keys.VISIBLE_DEVICES: "all",
    keys.CHECKPOINT: "9999-01-01T00:00:00Z",
    keys.GPU_USAGE: "99",
    keys.GPU_USAGE_SINCE: "2000-01-01T00:00:00Z",
    keys.KEPT_OFF: "node-0 node-1",
    keys.ROLE: "originator",
    "tenure.dev/restart-overhead": "3650d",
    "tenure.dev/checkpoint-interval": "3650d",
    "tenure.dev/expected-runtime": "0",
    "tenure.dev/requeue-delay": "3650d",
    **{key: text for asked in ASKS.values() for key, text in asked.items()},
}
"""Whatever a template may say so that its pods are not evicted: what is Tenure's to write, and what is a tenant's."""

KINDS = {
    "Job": ("batch/v1", {"parallelism": 2, "completions": 2}),
    "ReplicaSet": ("apps/v1", {"replicas": 2}),
    "Deployment": ("apps/v1", {"replicas": 2}),
    "StatefulSet": ("apps/v1", {"replicas": 2, "podManagementPolicy": "Parallel", "serviceName": "none"}),
    "DaemonSet": ("apps/v1", {}),
}
"""Kinds whose pods a controller of Kubernetes' makes; CronJob, JobSet and others make Jobs of theirs."""


def templated(kind, name, **template):
    """Give the path and an object of a kind that has two pods of four GPUs each, of a template with further fields."""
    version, spec = KINDS[kind]
    made = pod(name, "evil", gpus=4, labels={"set": name}, **template)
    made["spec"]["restartPolicy"] = "Never" if version == "batch/v1" else "Always"
    whole = {**spec, "template": made}
    if kind != "Job":
        whole["selector"] = {"matchLabels": {"set": name}}
    path = f"/apis/{version}/namespaces/evil/{kind.lower()}s"
    return path, {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": whole}


def of_set(town, name):
    """Give the pods of a template by their uids."""
    return {p["metadata"]["uid"]: p for p in town.admin.get(f"{EVIL}?labelSelector=set%3D{name}")["items"]}


@pytest.fixture
def guarded(town, plane):
    """Let the policies hold, and nothing of a template be left afterwards."""
    switch(plane, on=True)
    wait_until(lambda: refused(town, "create", EVIL, pod("bound", "evil", nodeName="node-0")), "they do not hold", 30)
    yield
    for kind, (version, _) in KINDS.items():
        path = f"/apis/{version}/namespaces/evil/{kind.lower()}s"
        for item in town.admin.get(path)["items"]:
            with suppress(ApiError):  # its owner may take it along
                town.admin.delete(f"{path}/{item['metadata']['name']}", {"propagationPolicy": "Background"})
    switch(plane, on=False)


@pytest.mark.usefixtures("guarded")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "DaemonSet"])
def test_what_a_template_says_spares_its_pods_no_longer_than_what_a_pod_says(town, kind):
    """A controller may write it, and Tenure does not believe it: a pod goes when its room is owed to others."""
    town.settings(disruption={"maxOptOut": "1s"})
    town.tenant.create(*templated(kind, "forges", annotations=FORGED))
    sealed = lambda: [  # noqa: E731
        json.loads(c["message"]) for p in of_set(town, "forges").values() for c in p["status"].get("conditions", ())
        if c["type"] == SEAL and p["spec"].get("nodeName")
    ]  # fmt: skip
    wait_until(lambda: len(sealed()) == 2 and all("queue" in seal for seal in sealed()),
               lambda: str(town.admin.get(EVIL)["items"]), 60)  # fmt: skip
    for seal in sealed():
        assert seal["queue"] == "evil"
        assert not {"notice", "nomination", "stale", "fixed"} & seal.keys()
        assert not seal.get("started", "").startswith("9999")
    before = set(of_set(town, "forges"))
    time.sleep(1.5)
    town.admin.create(TEAM, pod("owed", "team", gpus=4))
    wait_until(lambda: town.node_of(TEAM, "owed"), lambda: str(town.scheduler.lines()[-5:]), 60)
    there = {uid for uid, p in of_set(town, "forges").items() if "deletionTimestamp" not in p["metadata"]}
    assert before - there


@pytest.fixture
def guaranteed_none(town):
    """Let the tenant's queue say that it is guaranteed no GPU."""
    town.admin.patch(f"{TENURE}/queues/evil", {"spec": {"guaranteed": {GPU: 0}}})
    yield
    town.admin.patch(f"{TENURE}/queues/evil", {"spec": {"guaranteed": None}})


@pytest.mark.usefixtures("guarded", "guaranteed_none")
@pytest.mark.parametrize(("kind", "further"), [("DaemonSet", {}), ("Job", {keys.PREEMPTIBLE: "false"})])
def test_what_a_template_keeps_for_good_is_within_what_its_queue_is_guaranteed(town, kind, further):
    """Pods that would never be evicted do not start where their queue says that it is guaranteed none of that."""
    name = f"stays-{kind.lower()}"
    town.tenant.create(*templated(kind, name, annotations={**FORGED, **further}))
    wait_until(lambda: len(of_set(town, name)) == 2, "its pods are not made", 30)
    reasons = lambda: {  # noqa: E731
        c.get("reason") for p in of_set(town, name).values() for c in p["status"].get("conditions", ())
    }
    wait_until(lambda: "QueueBeyondGuaranteed" in reasons(), lambda: str(reasons()), 30)
    town.others_go_on("pods that would never be evicted")
    assert not any(p["spec"].get("nodeName") for p in of_set(town, name).values())


@pytest.mark.usefixtures("guarded")
def test_where_all_pods_have_to_be_tenures_nobody_leaves_it_out(town, plane, controller):
    """Neither a pod nor what a controller makes of a template names another scheduler, none, or none and its node."""
    plane.kubectl("label", "namespace", "evil", "tenure.dev/only=true")
    try:
        for number, other in enumerate(({}, {"nodeName": "node-0"}, {"schedulerName": "kai-scheduler"})):
            body = pod(f"other-{number}", "evil", **{"schedulerName": "default-scheduler", **other})
            for by in (town.tenant, controller):
                wait_until(lambda body=body, by=by: refused(town, "create", EVIL, body, by=by), str(other), 30)
        town.run(pod("own", "evil"))
        controller.create(EVIL, pod("made", "evil"))
    finally:
        plane.kubectl("label", "namespace", "evil", "tenure.dev/only-")


def test_the_status_of_a_pod_is_not_the_tenants(town):
    """What the scheduler recorded stands where the role ``edit`` cannot write."""
    town.run(pod("runs", "evil"))
    with pytest.raises(ApiError, match="pods/status"):
        town.tenant.patch(f"{EVIL}/runs/status", {"status": {"conditions": []}})


def test_a_record_is_forged_by_no_tenant(town):
    """Neither with a pod that is made, nor by a later update; a start to come spares nobody, whoever wrote it."""
    forged = condition_of(Seal(queue="team", started="9999-01-01T00:00:00Z", fixed=True), 0)
    body = pod("forges", "evil", gpus=4)
    body["status"] = {"conditions": [forged]}
    town.run(body)
    made = town.tenant.get(f"{EVIL}/forges")
    assert SEAL in {c["type"] for c in made["status"]["conditions"]}
    assert "9999" not in str(made["status"]["conditions"])
    made["status"]["conditions"] = [forged]
    del made["metadata"]["resourceVersion"]  # whatever else has changed meanwhile
    town.tenant.request("PUT", f"{EVIL}/forges", made)
    assert "9999" not in str(town.admin.get(f"{EVIL}/forges")["status"]["conditions"])
    town.admin.create(TEAM, pod("fills", "team", gpus=4))
    wait_until(lambda: town.node_of(TEAM, "fills"), "the other node is not filled", 30)
    town.settings(reclaimMinRuntime="1s")
    told = {"status": {"conditions": [condition_of(Seal(queue="evil", started="9999-01-01T00:00:00Z"), 0)]}}
    town.admin.patch(f"{EVIL}/forges/status", told, "strategic")
    assert "9999" in str(town.admin.get(f"{EVIL}/forges")["status"]["conditions"])
    assert town.is_evicted_for_the_team("forges", gpus=4) == {"forges"}
