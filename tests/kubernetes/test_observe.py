"""From objects to a cluster: grouping, queues, phases, and what is wrong with objects."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kubernetes.pods import NOW, node, observed, owner, pod, sealed, thing, watching

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.cache.handlers import ASSUMED_SECONDS, ObjectStore
from tenure.clusters.kubernetes.read import eviction_log
from tenure.clusters.kubernetes.seals import NominationNote
from tenure.engine.snapshot import session_of
from tenure.model.cluster import Eviction
from tenure.model.file.dump import dump_cluster
from tenure.model.file.load import load_cluster
from tenure.model.volumes import NodeDriver, VolumeAttachment
from tenure.model.workload import DO_NOT_DISRUPT, OPT_OUT, PREFER_NO_EVICTION, SAFE_TO_EVICT, Phase
from tenure.playthrough import play
from tenure.shields.opt_out import spared

ENTRY = eviction_log.entry_of(
    Eviction(
        at=NOW - 1_000_000, workload="default/w", task="w-0", cause="reclaim", beneficiary="default/c", from_node="n"
    ),
    "uid-w-0",
    "uid-w",
    NOW + 60_000_000,
)


def by_name(seen):
    return {w.name: w for w in seen.cluster.workloads}


GROUPS = {
    "a label": ({"labels": {"tenure.dev/pod-group": "g"}}, "g"),
    "KAI's annotation": ({"annotations": {"pod-group-name": "g"}}, "g"),
    "the coscheduling plugin's label": ({"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, "g"),
    "Kubernetes' own field": ({"schedulingGroup": {"podGroupName": "g"}}, "g"),
    "a Job": ({"owner": ("Job", "g")}, "g"),
    "a JobSet": ({"owner": ("Job", "g-x-0")}, "g"),
    "a ReplicaSet": ({"owner": ("ReplicaSet", "g")}, "g"),
    "Kueue's label": ({"labels": {"kueue.x-k8s.io/pod-group-name": "g"}}, "g"),
    "a StatefulSet": ({"owner": ("StatefulSet", "g")}, "g"),
    "an owner of any other kind": ({"owner": ("RayCluster", "g")}, "g"),
}


@pytest.mark.parametrize("by", GROUPS)
def test_pods_are_one_workload_by(by):
    """Pods that name the same group, or have the same owner, are one workload of that name."""
    fields, name = GROUPS[by]
    jobs = [owner("g-x-0", "JobSet", "g", "jobset.x-k8s.io/v1alpha2")]
    seen = by_name(observed(pod("p-0", **fields), pod("p-1", **fields), jobs=jobs))
    assert {k: [t.name for t in w.tasks] for k, w in seen.items()} == {name: ["p-0", "p-1"]}


def test_pods_of_nobody_are_workloads_of_their_own_that_are_not_moved():
    """A pod without a controller stands for itself, and says that nobody would recreate it."""
    seen = by_name(observed(pod("a"), pod("b")))
    assert {w.name: (w.owner_kind, w.min_member) for w in seen.values()} == {"a": ("Pod", 1), "b": ("Pod", 1)}


JOB = {"spec": {"parallelism": 4, "completions": 3}}
TWO = {"tenure.dev/min-member": "2"}


@pytest.mark.parametrize(
    ("metadata", "of_pods", "together"),
    [({}, {}, 3), ({}, TWO, 2), ({"annotations": TWO}, {}, 2), ({"labels": TWO}, {}, 2)],
)
def test_as_many_of_a_job_start_together_as_run_in_parallel_or_as_is_said(metadata, of_pods, together):
    """An annotation or label of the Job says it, then one of its pods, then how many run in parallel."""
    pods = [pod(f"g-{i}", owner=("Job", "g"), annotations=of_pods) for i in range(4)]
    jobs = [thing("g", namespace="default", metadata=metadata, **JOB)]
    assert by_name(observed(*pods, jobs=jobs))["g"].min_member == together


def test_a_job_of_which_nothing_is_known_starts_as_its_pods_say():
    pods = [pod(f"g-{i}", owner=("Job", "g"), annotations=TWO) for i in range(4)]
    assert by_name(observed(*pods))["g"].min_member == 2


SECOND = 1_000_000


def test_a_group_by_label_waits_until_no_more_pods_come():
    """What says nowhere how many it is starts when no pod has joined it for a second."""
    labels = {"tenure.dev/pod-group": "g"}
    watch = watching(pod("a", labels=labels, owner=("Set", "s")))
    first = watch.observe(NOW)
    assert by_name(first)["g"].min_member > len(by_name(first)["g"].tasks)
    assert first.wake == NOW + SECOND
    watch.informers.pods.put(pod("b", labels=labels, owner=("Set", "s")))
    late = watch.observe(NOW + SECOND // 4)
    assert late.wake == NOW + SECOND // 4 + SECOND
    assert by_name(watch.observe(NOW + SECOND))["g"].min_member == 3
    complete = watch.observe(NOW + SECOND // 4 + SECOND)
    assert (by_name(complete)["g"].min_member, complete.wake) == (2, None)


@pytest.mark.parametrize("said", ["a PodGroup", "an annotation"])
def test_a_group_that_says_how_many_it_is_waits_for_nothing_else(said):
    labels = {"tenure.dev/pod-group": "g"}
    stated = said == "an annotation"
    waits = pod("a", labels=labels, annotations={"tenure.dev/min-member": "1"} if stated else {})
    groups = [] if stated else [thing("g", namespace="default", spec={"minMember": 1})]
    assert by_name(observed(waits, podgroups=groups))["g"].min_member == 1


def test_a_group_of_which_some_run_waits_for_no_more():
    labels = {"tenure.dev/pod-group": "g"}
    runs = pod("a", labels=labels, node="n", owner=("Set", "s"))
    seen = by_name(observed(node("n"), runs, pod("b", labels=labels, owner=("Set", "s"))))
    assert seen["g"].min_member == 2


def test_what_is_replaced_one_by_one_starts_one_by_one():
    """Pods of a ReplicaSet do not wait for each other, unless an annotation says so."""
    fields = {"owner": ("ReplicaSet", "g")}
    told = [owner("g", metadata={"annotations": {"tenure.dev/min-member": "2"}})]
    assert by_name(observed(pod("p-0", **fields), pod("p-1", **fields)))["g"].min_member == 1
    assert by_name(observed(pod("p-0", **fields), pod("p-1", **fields), replicasets=told))["g"].min_member == 2


@pytest.mark.parametrize("label", keys.QUEUE_LABELS)
def test_a_label_names_the_queue(label):
    """Tenure's own label, KAI's and YuniKorn's name a queue."""
    queues = [thing("default", spec={}), thing("q", spec={})]
    assert by_name(observed(pod("a", labels={label: "q"}), queues=queues))["a"].queue == "q"


def test_a_pod_for_a_queue_that_is_not_there_waits_and_others_do_not():
    """What names no queue of the tree is told of, and left out of what is decided about."""
    watch = watching(pod("lost", labels={"tenure.dev/queue": "none"}), pod("fine"), queues=[thing("default", spec={})])
    assert set(by_name(watch.observe(NOW))) == {"fine"}
    assert [(meta.name, "there is no queue none" in line) for _, meta, line in watch.informers.findings.new] == [
        ("lost", True)
    ]


def test_a_running_pod_for_a_queue_that_is_not_there_is_charged_and_evictable():
    """What runs without a queue that is there is charged to the default queue, and nothing spares it."""
    found = observed(
        node("n"), pod("lost", labels={"tenure.dev/queue": "none"}, node="n"), queues=[thing("default", spec={})]
    )
    workload = by_name(found)["lost"]
    assert (workload.scheduler_name, workload.queue, workload.preemptible) == ("tenure", "default", True)
    assert [t.node for t in workload.tasks] == ["n"]


PHASES = {
    "waits": ({}, Phase.PENDING),
    "is gated": ({"schedulingGates": [{"name": "held"}]}, Phase.GATED),
    "is bound": ({"node": "n", "phase": "Pending"}, Phase.BOUND),
    "runs": ({"node": "n"}, Phase.RUNNING),
    "terminates": (
        {"node": "n", "deletionTimestamp": "2026-11-20T10:00:30Z", "deletionGracePeriodSeconds": 30},
        Phase.TERMINATING,
    ),
    "has succeeded": ({"node": "n", "phase": "Succeeded"}, Phase.SUCCEEDED),
}


@pytest.mark.parametrize("what", PHASES)
def test_a_task_is_in_the_phase_in_which_its_pod(what):
    """Phases follow from the pod's status, node, gates and deletion."""
    fields, phase = PHASES[what]
    task = by_name(observed(node("n"), pod("p", owner=("Job", "g"), **fields)))["g"].tasks[0]
    assert task.phase is phase
    if phase is Phase.TERMINATING:
        assert task.terminating_since == NOW


@pytest.mark.parametrize("fields", [{"phase": "Failed", "node": "n"}, {"deletionTimestamp": "2026-11-20T10:00:00Z"}])
def test_what_has_failed_or_goes_before_it_was_placed_is_no_task(fields):
    """It holds nothing and waits for nothing."""
    assert not observed(node("n"), pod("p", **fields)).cluster.workloads


def test_mirror_pods_daemons_and_other_schedulers_pods_are_never_victims():
    """Static pods and other schedulers' pods only hold room; a DaemonSet's pods are not preemptible."""
    found = observed(
        node("n"),
        pod("static", node="n", annotations={keys.MIRROR: "x"}, owner=("Node", "n"), schedulerName="default-scheduler"),
        pod("other", node="n", schedulerName="default-scheduler"),
        pod("daemon", node="n", owner=("DaemonSet", "d")),
    )
    seen = by_name(found)
    assert seen["static"].scheduler_name != "tenure"
    assert seen["other"].scheduler_name == "default-scheduler"
    assert (seen["daemon"].owner_kind, seen["daemon"].preemptible) == ("DaemonSet", False)


def test_a_workload_started_when_the_first_of_its_pods_says():
    """The start is written on each pod with its binding, and stays with those that stay."""
    at = {keys.STARTED: "2026-11-20T09:30:00Z"}
    found = observed(
        node("n"), pod("g-0", owner=("Job", "g"), node="n", annotations=at), pod("g-1", owner=("Job", "g"))
    )
    assert by_name(found)["g"].started_at == NOW - 1_800_000_000


def test_the_oldest_checkpoint_of_a_gang_counts_and_one_that_lies_ahead_does_not():
    """In a gang the oldest checkpoint counts; one in the future counts as none."""
    times = ("2026-11-20T09:50:00Z", "2026-11-20T09:40:00Z", "2026-11-20T12:00:00Z")
    pods = [pod(f"g-{i}", owner=("Job", "g"), node="n", annotations={keys.CHECKPOINT: t}) for i, t in enumerate(times)]
    assert by_name(observed(node("n"), *pods))["g"].checkpoint.last_at == NOW - 1_200_000_000


def test_a_nomination_counts_where_record_and_status_agree():
    """A promise is what the status names and the record is about; what a tenant says is none."""
    note = NominationNote(node="n", at="2026-11-20T09:59:00Z", devices=(1,))
    ours = pod("a", status={**sealed(nomination=note), "nominatedNodeName": "n"})
    moved = pod("b", status={**sealed(nomination=note), "nominatedNodeName": "m"})
    said = {keys.NOMINATION: json.dumps({"node": "n", "at": "2026-11-20T09:59:00Z"})}
    forged = pod("c", annotations=said, status={"nominatedNodeName": "n"})
    seen = by_name(observed(node("n", **{"nvidia.com/gpu": "2"}), node("m"), ours, moved, forged))
    assert (seen["a"].tasks[0].nominated.node, seen["a"].tasks[0].nominated.devices) == ("n", (1,))
    assert seen["b"].tasks[0].nominated is None
    assert seen["c"].tasks[0].nominated is None


def log(*entries):
    return [
        thing(
            "tenure-evictions-default-0",
            namespace="tenure-system",
            data={eviction_log.DATA: eviction_log.write(entries)},
        )
    ]


def test_an_eviction_on_record_whose_pod_is_gone_counts():
    """The record outlives the pod: it counts for budgets, and its cooldown holds."""
    found = observed(node("n"), pod("w-1", owner=("Job", "w"), node="n"), eviction_log=log(ENTRY))
    assert [e.task for e in found.cluster.evictions] == ["w-0"]
    assert by_name(found)["w"].requeue_not_before == NOW + 60_000_000


@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_an_eviction_on_record_whose_pod_is_on_its_way_out_counts(phase):
    """What was evicted counts as evicted as soon as it goes, though it may be there for a while when it has ended."""
    gone = {"deletionTimestamp": "2026-11-20T10:00:00Z", "deletionGracePeriodSeconds": 0}
    pods = [pod("w-0", owner=("Job", "w"), node="n", phase=phase, **gone), pod("w-1", owner=("Job", "w"))]
    seen = observed(node("n"), *pods, eviction_log=log(ENTRY))
    assert [e.task for e in seen.cluster.evictions] == ["w-0"]
    assert by_name(seen)["w"].requeue_not_before == NOW + 60_000_000


def test_an_eviction_on_record_whose_pod_still_runs_is_under_notice():
    """What was announced and never done counts for nobody, and is judged anew."""
    found = observed(node("n"), pod("w-0", owner=("Job", "w"), node="n"), eviction_log=log(ENTRY))
    assert found.cluster.evictions == ()
    task = by_name(found)["w"].tasks[0]
    assert (task.notice.cause, task.notice.beneficiary) == ("reclaim", "default/c")


def test_a_cooldown_is_not_handed_to_another_job_of_the_same_name():
    """The record names the owner's identity: a new Job of an old name begins without a cooldown."""
    made = [thing("w", namespace="default", metadata={"uid": "another"}, spec={})]
    new = pod("w-1", owner=("Job", "w"), node="n")
    new.metadata.owner_references[0].uid = "another"
    found = observed(node("n"), new, eviction_log=log(ENTRY), jobs=made)
    assert by_name(found)["w"].requeue_not_before is None


def test_the_place_of_a_moved_pod_of_a_deployment_is_its_replacements():
    """Each pod of a Deployment is a workload; what replaces one that was moved has its promise all the same."""
    whose = ("ReplicaSet", "d-1", "apps/v1")
    move = eviction_log.entry_of(
        Eviction(at=NOW - 1_000_000, workload="default/a", task="a", cause="consolidate", from_node="n", to_node="m"),
        "uid-a", "uid-d", None,
    )  # fmt: skip
    objects = {"replicasets": [owner("d-1", "Deployment", "d", "apps/v1")], "eviction_log": log(move)}
    stays, goes = pod("b", owner=whose, node="n"), {"deletionTimestamp": "2026-11-20T10:00:29Z"}
    leaving = pod("a", owner=whose, node="n", deletionGracePeriodSeconds=30, **goes)
    new = pod("c", owner=whose)
    new.metadata.creation_timestamp = "2026-11-20T10:00:00Z"
    promised = {}
    for there in ((stays, leaving), (stays,), (stays, leaving, new), (stays, new)):
        seen = observed(node("n"), node("m"), *there, **objects).cluster
        tasks = [task for workload in seen.workloads for task in workload.tasks]
        promised[len(promised)] = {task.name: task.nominated.node for task in tasks if task.nominated}
    assert promised == {0: {"a": "m"}, 1: {"a.moving": "m"}, 2: {"c": "m"}, 3: {"c": "m"}}


def test_a_moved_pod_is_stood_in_for_until_its_replacement_is_there():
    """The place that a moved pod is to land on stays promised, and is handed on to the pod that replaces it."""
    move = eviction_log.entry_of(
        Eviction(at=NOW - 1_000_000, workload="default/w", task="w-0", cause="consolidate", from_node="n", to_node="m"),
        "uid-gone", "uid-w", None,
    )  # fmt: skip
    stays = pod("w-1", owner=("Job", "w"), node="n")
    before = observed(node("n"), node("m"), stays, eviction_log=log(move))
    assert [(t.name, t.nominated.node) for t in by_name(before)["w"].tasks[1:]] == [("w-0.moving", "m")]
    assert not before.has_pod("default/w", 1)
    new = pod("w-2", owner=("Job", "w"))
    new.metadata.creation_timestamp = "2026-11-20T10:00:00Z"
    after = observed(node("n"), node("m"), stays, new, eviction_log=log(move))
    assert [t.nominated and t.nominated.node for t in by_name(after)["w"].tasks] == [None, "m"]
    assert [(landing.pod.name, landing.replaces) for landing in after.promises.landings] == [("w-2", "uid-gone")]


@pytest.mark.parametrize(
    ("where", "created", "names"),
    [
        ("m", "2026-11-20T10:00:00Z", []),
        ("m", "2026-11-20T09:00:00Z", ["w-0.moving"]),
        ("n", "2026-11-20T10:00:00Z", ["w-0.moving"]),
    ],
    ids=["landed", "older", "elsewhere"],
)
def test_a_moved_pod_whose_replacement_runs_where_it_was_to_land_is_stood_in_for_no_longer(where, created, names):
    """Its room would be held twice. A replacement that found its place at once was promised none."""
    move = eviction_log.entry_of(
        Eviction(at=NOW - 1_000_000, workload="default/w", task="w-0", cause="consolidate", from_node="n", to_node="m"),
        "uid-gone", "uid-w", None,
    )  # fmt: skip
    stays, new = (pod(f"w-{n}", owner=("Job", "w"), node=on) for n, on in ((1, "n"), (2, where)))
    new.metadata.creation_timestamp = created
    seen = observed(node("n"), node("m"), stays, new, eviction_log=log(move))
    assert [t.name for t in by_name(seen)["w"].tasks[2:]] == names


def test_a_promise_is_broken_while_somebody_who_was_to_go_stays():
    """A place for which a pod had to go that was never sent away is no promise, and is taken back."""
    note = NominationNote(node="n", at="2026-11-20T09:59:00Z", needs=("uid-stays",))
    hopes = pod("hopes", status={**sealed(nomination=note), "nominatedNodeName": "n"})
    found = observed(node("n"), hopes, pod("stays", node="n"))
    assert by_name(found)["hopes"].tasks[0].nominated is None
    assert [p.name for p in found.promises.broken] == ["hopes"]
    assert by_name(observed(node("n"), hopes))["hopes"].tasks[0].nominated is not None


def test_two_owners_of_one_name_are_two_workloads():
    """A Job and a StatefulSet may have one name; the Job keeps it."""
    found = by_name(observed(pod("a-0", owner=("Job", "x")), pod("b-0", owner=("StatefulSet", "x"))))
    assert {k: w.tasks[0].name for k, w in found.items()} == {"x": "a-0", "x.statefulset": "b-0"}


def test_pods_of_another_pool_are_not_seen():
    """A pool is the nodes with its label, what runs there, and what waits with its label."""
    there = node("n")
    there.metadata.labels = {keys.POOL: "gpu"}
    pods = [pod("runs", node="n"), pod("waits", labels={keys.POOL: "gpu"}), pod("elsewhere")]
    assert set(by_name(observed(there, *pods, pool="gpu"))) == {"runs", "waits"}
    assert set(by_name(observed(there, *pods))) == {"elsewhere"}


def claim(name, *, volume="", bound=True, phase="Bound", owner="", **metadata):
    """Give a claim, bound to a volume if it has one."""
    meta = {"annotations": {keys.BIND_COMPLETED: "yes"} if bound and volume else {}, **metadata}
    if owner:
        meta["ownerReferences"] = [{"kind": "Pod", "name": "p", "uid": owner}]
    spec = {"volumeName": volume, "accessModes": ["ReadWriteOnce"]}
    body = {"spec": spec, "status": {"phase": phase}, "metadata": meta}
    return thing(name, namespace="default", kind=api.ApiClaim, **body)


def volume(name, *, labels=None, **spec):
    """Give a volume."""
    return thing(name, kind=api.ApiVolume, spec=spec, metadata={"labels": labels or {}})


def in_zones(*zones):
    """Give the node affinity of a volume in zones."""
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": list(zones)}]}]
    return {"required": {"nodeSelectorTerms": terms}}


def mounting(*claims, name="p", **fields):
    """Give a pod that mounts claims."""
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    return pod(name, volumes=volumes, **fields)


def spec_of(seen, name="p"):
    """Give what the first task of a workload asks for."""
    return by_name(seen)[name].tasks[0].spec


UNREADABLE = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": 7}]}]}}
HUGE = in_zones(*map(str, range(2000)))
CLAIMS = {
    "is not there": ([], [], {"awaits": "claim data, which is not there"}),
    "is not bound": ([claim("data")], [], {"awaits": "claim data, which is not bound to a volume"}),
    "is half bound": (
        [claim("data", volume="v", bound=False)], [volume("v")],
        {"awaits": "claim data, which is not bound to a volume: it names v"},
    ),
    "is lost": (
        [claim("data", volume="v", phase="Lost")], [], {"awaits": "claim data, which has lost its volume"},
    ),
    "goes": (
        [claim("data", volume="v", deletionTimestamp="2026-11-20T09:59:00Z")], [volume("v")],
        {"awaits": "claim data, which is being deleted"},
    ),
    "has no volume": (
        [claim("data", volume="v")], [], {"awaits": "volume v of claim data, which is not there"},
    ),
    "is reached everywhere": ([claim("data", volume="v")], [volume("v", nfs={})], {}),
    "has an affinity that says nothing": (
        [claim("data", volume="v")], [volume("v", nodeAffinity=UNREADABLE)],
        {"unsupported": "claim data (a node affinity that cannot be read)"},
    ),
    "has an affinity without end": (
        [claim("data", volume="v")], [volume("v", nodeAffinity=HUGE)],
        {"unsupported": "claim data (a node affinity that cannot be read)"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("state", CLAIMS)
def test_a_pod_waits_for_a_claim_that(state):
    """Each state of a claim has its reason, and one that is bound to what all nodes reach has none."""
    claims, volumes, expected = CLAIMS[state]
    (mount,) = spec_of(observed(mounting("data"), node("n"), claims=claims, volumes=volumes)).mounts
    assert {k: getattr(mount, k) for k in ("awaits", "unsupported", "nodes") if getattr(mount, k)} == expected


def test_a_pod_goes_where_all_its_volumes_can_be_reached():
    """The node affinity of one volume, and the zone that another is labelled with."""
    seen = observed(
        mounting("data", "logs"),
        node("n"),
        claims=[claim("data", volume="v"), claim("logs", volume="w")],
        volumes=[
            volume("v", nodeAffinity=in_zones("a", "b")),
            volume("w", labels={"topology.kubernetes.io/zone": "b__c"}),
        ],
    )
    first, second = (nodes for mount in spec_of(seen).mounts for nodes in mount.nodes)
    assert [r.values for t in first.terms for r in t.match_expressions] == [("a", "b")]
    assert [(r.key, r.operator, r.values) for r in second.terms[0].match_expressions] == [
        ("topology.kubernetes.io/zone", "In", ("b", "c"))
    ]
    assert {r.operator for r in second.terms[1].match_expressions} == {"DoesNotExist"}


def test_a_claim_of_one_pod_and_a_driver_with_limits_are_counted():
    """A claim says that one pod uses it at a time, a node how many volumes of a driver it attaches, and has."""
    limits = thing("n", spec={"drivers": [{"name": "limited", "allocatable": {"count": 3}}, {"name": "free"}]})
    single = claim("data", volume="v")
    single.spec.access_modes = ["ReadWriteOncePod"]
    attached = thing("a", spec={"attacher": "limited", "nodeName": "n", "source": {"persistentVolumeName": "v"}})
    seen = observed(
        mounting("data"),
        node("n"),
        claims=[single],
        volumes=[volume("v", csi={"driver": "limited", "volumeHandle": "h"})],
        csinodes=[limits],
        attachments=[attached],
    )
    (mount,) = spec_of(seen).mounts
    assert (mount.is_exclusive, mount.driver, mount.handle) == (True, "limited", "h")
    assert seen.cluster.nodes[0].drivers == (NodeDriver(name="free"), NodeDriver(name="limited", limit=3))
    assert seen.cluster.attachments == (VolumeAttachment(driver="limited", handle="h", node="n"),)


def test_an_ephemeral_volume_is_a_claim_of_the_pods_own():
    """It has the pod's name before its own, and belongs to the pod: one that does not is somebody else's."""
    own = pod("p", volumes=[{"name": "scratch", "ephemeral": {}}])
    volumes = [volume("v")]
    for whose, awaits in (("uid-p", ()), ("uid-q", ("claim p-scratch, which was not made for this pod",))):
        seen = observed(own, claims=[claim("p-scratch", volume="v", owner=whose)], volumes=volumes)
        assert awaited(spec_of(seen)) == awaits


def test_a_claim_that_is_given_to_somebody_else_is_seen_so():
    """Nothing but its owner changes, to and fro: each time its pod is made anew."""
    own = pod("p", volumes=[{"name": "scratch", "ephemeral": {}}])
    observer = watching(own, claims=[claim("p-scratch", volume="v", owner="uid-p")], volumes=[volume("v")])
    assert spec_of(observer.observe(NOW)).is_placeable
    for whose, awaits in (("uid-q", ("claim p-scratch, which was not made for this pod",)), ("uid-p", ())):
        observer.informers._objects("claims").put(claim("p-scratch", volume="v", owner=whose))
        assert awaited(spec_of(observer.observe(NOW))) == awaits


def test_a_claim_that_changes_makes_the_pods_that_mount_it_anew_and_no_others():
    """It is bound, its volume comes, one zone reaches that: each time its pods are seen as they are then."""
    observer = watching(mounting("data"), mounting("other", name="q"), node("n"))
    put = {name: observer.informers._objects(name).put for name in ("claims", "volumes")}
    before = by_name(observer.observe(NOW))
    assert awaited(before["p"].tasks[0].spec) == ("claim data, which is not there",)
    put["claims"](claim("data", volume="v"))
    assert awaited(spec_of(observer.observe(NOW))) == ("volume v of claim data, which is not there",)
    put["volumes"](volume("v", csi={"driver": "d"}))
    assert spec_of(observer.observe(NOW)).is_placeable
    put["volumes"](volume("w", csi={"driver": "d"}))
    assert by_name(observer.observe(NOW))["q"] is before["q"]
    put["volumes"](volume("v", nodeAffinity=in_zones("a")))
    after = by_name(observer.observe(NOW))
    assert after["p"].tasks[0].spec.mounts[0].nodes
    assert after["q"] is before["q"]
    observer.informers.pods.drop(("default", "p"))
    observer.observe(NOW)
    assert list(observer.claims._users.of) == [("default", "other")]


def awaited(spec):
    """Give what a task waits for."""
    return tuple(mount.awaits for mount in spec.mounts if mount.awaits)


def test_more_claims_than_a_pod_has_are_not_read():
    """Each is held against every node."""
    spec = spec_of(observed(mounting(*(f"c-{i}" for i in range(40)))))
    assert spec.unsupported == ("40 claims (32 at the most)",)


def test_a_heartbeat_changes_nothing():
    """A node's status that says the same again is no reason for a cycle."""
    watch = watching(node("n"))
    before = watch.informers.version()
    watch.informers.nodes.put(node("n"))
    assert watch.informers.version() == before


TEXTS = st.one_of(
    st.text(max_size=20), st.sampled_from(["0", "-1", "null", "{}", "[]", "1h", "2026-11-20T10:00:00Z", "true"])
)
ANNOTATIONS = st.dictionaries(
    st.sampled_from([*sorted(keys.WRITTEN), keys.TASK_ORDER, keys.MIN_MEMBER, keys.SUB_GROUP, keys.ROLE,
                     keys.NOT_BEFORE,
                     "tenure.dev/gpu-fraction", "tenure.dev/gpu-devices", "tenure.dev/expected-runtime",
                     "tenure.dev/checkpoint-interval", "tenure.dev/preemptible", "pod-group-name"]),
    TEXTS, max_size=6,
)  # fmt: skip
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**12) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(
    ANNOTATIONS,
    st.booleans(),
    st.dictionaries(st.sampled_from(["queue", "minMember", "subGroups", "checkpoint"]), PLAIN),
)
def test_whatever_objects_say_the_rest_is_decided_about(annotations, placed, spec):
    """Any annotations, any pod group: the engine can be given what is observed, and a sound pod is in it."""
    strange = pod(
        "strange", annotations=annotations, labels={"tenure.dev/pod-group": "g"}, node="n" if placed else None
    )
    queues = [
        thing("default", spec={}),
        thing("bad", spec={"max": {"cpu": "-1"}}),
        thing("lost", spec={"parent": "none"}),
    ]
    groups = [thing("g", namespace="default", spec=spec)]
    found = observed(node("n"), strange, pod("fine", node="n"), queues=queues, podgroups=groups)
    session = session_of(found.cluster)
    assert session.workloads["default/fine"].leaf >= 0


def test_what_is_observed_can_be_written_as_a_cluster_file_and_read_again(tmp_path):
    """A snapshot says all that is decided about: what is read of it is equal to what was observed."""
    note = NominationNote(node="n", at="2026-11-20T09:59:00Z")
    found = observed(
        node("n"),
        pod("w-0", owner=("Job", "w"), node="n", annotations={keys.STARTED: "2026-11-20T09:30:00Z"}),
        pod("new", status={**sealed(nomination=note), "nominatedNodeName": "n"}),
        pod("other", schedulerName="default-scheduler", node="n"),
        eviction_log=log(ENTRY),
        queues=[thing("default", spec={"max": {"cpu": "20"}})],
    ).cluster
    file = tmp_path / "cluster.json"
    with file.open("w") as stream:
        dump_cluster(found, stream, format="json")
    assert load_cluster(file).cluster == found


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("leases", {"spec": {"renewTime": "a"}}, {"spec": {"renewTime": "b"}}),
        ("queues", {"spec": {}, "status": {"allocated": {}}}, {"spec": {}, "status": {"allocated": {"cpu": "1"}}}),
        ("deployments", {"status": {"replicas": 1}}, {"status": {"replicas": 2}}),
    ],
)
def test_what_decides_nothing_is_no_reason_for_a_cycle(kind, before, after):
    """A renewed lease, figures in a status: nothing is decided anew for them."""
    watch = watching(**{kind: [thing("x", **before)]})
    version = watch.informers.version()
    watch.informers.objects[kind].put(thing("x", **after, metadata={"resourceVersion": "8"}))
    assert watch.informers.version() == version


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("leases", {"metadata": {"annotations": {keys.PAUSE: "{}"}}}),
        ("queues", {"spec": {"max": {"cpu": "1"}}}),
        ("queues", {"status": {"quotaPreemption": {"deadline": "2026-11-20T10:00:00Z"}}}),
        ("podgroups", {"metadata": {"annotations": {"tenure.dev/expected-runtime": "1h"}}}),
        ("priorityclasses", {"value": 5}),
    ],
)
def test_what_decides_something_is_a_reason_for_a_cycle(kind, after):
    """A pause, a spec, a deadline, an annotation, a value: each may change what is decided."""
    watch = watching(**{kind: [thing("x")]})
    version = watch.informers.version()
    watch.informers.objects[kind].put(thing("x", **after))
    assert watch.informers.version() > version


def test_what_was_written_is_believed_before_a_watch_that_lags_shows_it():
    """An older version is passed over, for a while; that or a newer one counts, and so does whatever comes later on."""
    now = [0.0]
    store = ObjectStore(clock=lambda: now[0])

    def version(number, **body):
        return thing("q", metadata={"resourceVersion": number}, **body)

    def spec():
        return store.items["", "q"].spec

    store.written(version("5", spec="unknown"))
    assert not store.items
    store.written(version("5", spec="made by us"), is_new=True)
    store.put(version("4", spec="of a page that was deleted"))
    assert spec() == "made by us"
    store.put(version("5", spec="old"))
    store.written(version("7", spec="ours"))
    store.put(version("6", spec="before ours"))
    assert spec() == "ours"
    store.put(version("8", spec="after ours"))
    store.put(version("6", spec="listed anew"))
    assert spec() == "listed anew"
    store.written(version("9", spec="ours again"))
    now[0] = ASSUMED_SECONDS
    store.put(version("7", spec="as the server has it"))
    assert spec() == "as the server has it"
    store.written(version("10", spec="ours"), is_new=True)
    store.drop(("", "q"))
    store.put(version("3", spec="made anew"))
    assert spec() == "made anew"


@pytest.mark.parametrize(
    ("key", "asks", "denies"),
    [
        (OPT_OUT, "false", "true"),
        (SAFE_TO_EVICT, "false", "true"),
        (DO_NOT_DISRUPT, "2h", "1s"),
        (PREFER_NO_EVICTION, "", "false"),
    ],
)
def test_a_priority_class_asks_to_be_spared_for_its_pods_that_say_nothing_themselves(key, asks, denies):
    """As in manifests: for those of a group that are of the class, and not where a pod says the contrary."""
    group = {"labels": {"tenure.dev/pod-group": "g"}, "owner": ("Set", "s"), "node": "n"}
    classes = [thing("calm", value=5, metadata={"annotations": {key: asks, "note": "x"}})]
    classed = {**group, "priorityClassName": "calm"}
    seen = observed(
        node("n"),
        pod("a", **classed),
        pod("b", annotations={key: denies}, **classed),
        pod("c", **group),
        priorityclasses=classes,
    )
    session = session_of(seen.cluster)
    (workload,) = session.workloads.values()
    assert [(t.model.name, spared(session, t)) for t in workload.tasks] == [("a", True), ("b", False), ("c", False)]
    assert not [t for t in by_name(seen)["g"].tasks if "note" in t.annotations]


@pytest.mark.parametrize("by", ["its own field", "its class"])
def test_nothing_is_evicted_for_a_group_of_which_one_pod_says_so(by):
    """By a field of its own, or by that of its priority class."""
    classes = [
        thing("calm", value=5, preemptionPolicy="Never"),
        thing("pushy", preemptionPolicy="PreemptLowerPriority"),
    ]
    group = {"labels": {"tenure.dev/pod-group": "g"}, "owner": ("Set", "s")}
    said = {"preemptionPolicy": "Never"} if by == "its own field" else {"priorityClassName": "calm"}
    pods = (
        pod("a", **group, priorityClassName="pushy", preemptionPolicy="PreemptLowerPriority"),
        pod("b", **group, **said),
    )
    seen = by_name(observed(*pods, pod("c", priorityClassName="pushy"), priorityclasses=classes))
    assert {name: w.preemption_policy for name, w in seen.items()} == {"g": "Never", "c": None}


@pytest.mark.parametrize("said", [True, None])
def test_a_group_that_may_be_preempted_says_so_for_its_class_as_well(said):
    """The word of the group makes its own pods evictable."""
    groups = [thing("g", namespace="default", spec={} if said is None else {"allowPreemption": said})]
    classes = [thing("calm", value=5, metadata={"annotations": {OPT_OUT: "false"}})]
    waits = pod("a", labels={"tenure.dev/pod-group": "g"}, priorityClassName="calm")
    seen = by_name(observed(waits, podgroups=groups, priorityclasses=classes))["g"]
    assert seen.asks_to_be_spared == (said is None)


@pytest.mark.parametrize("left", [8, 4, 0])
def test_a_gang_whose_node_shows_fewer_gpus_for_a_while_stays_one(left):
    """The plugin of a driver that starts anew takes them away: what runs there is evicted as a whole, or not at all."""
    eight, devices = {"nvidia.com/gpu": "8"}, {"tenure.dev/devices": "0,1,2,3,4,5,6,7"}
    asked = {"containers": [{"name": "main", "resources": {"requests": eight, "limits": eight}}]}
    gang = [pod(f"g-{i}", owner=("Job", "g"), node=f"n{i}", annotations=devices, **asked) for i in range(2)]
    nodes = [node("n0", **eight), node("n1", **{"nvidia.com/gpu": str(left)})]
    jobs = [owner("g", spec={"parallelism": 2, "completions": 2})]
    seen = observed(*nodes, *gang, pod("w", priority=9, **asked), jobs=jobs)
    assert (by_name(seen)["g"].min_member, seen.left_out) == (2, ())
    assert {s.task for s in play(seen.cluster).steps if s.action == "evict"} == {"g-0", "g-1"}


WAITS = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "HeldBack", "message": "later"}]}


@pytest.mark.parametrize(
    ("fields", "is_reason"),
    [
        ({"status": WAITS}, False),
        ({"node": "n"}, True),
        ({"annotations": {"tenure.dev/expected-runtime": "1h"}}, True),
        ({"phase": "Failed"}, True),
        ({"deletionTimestamp": "2026-11-20T10:00:00Z"}, True),
    ],
)
def test_only_what_decides_of_a_pod_is_a_reason_for_a_cycle(fields, is_reason):
    """Why it waits decides nothing, but it is known from then on: writes are of the version that was seen."""
    watch = watching(node("n"), pod("p", owner=("Job", "w")))
    watch.observe(NOW)
    version = watch.informers.version()
    changed = pod("p", owner=("Job", "w"), **fields)
    changed.metadata.resource_version = "8"
    watch.informers.pods.put(changed)
    assert (watch.informers.version() > version) == is_reason
    if not is_reason:
        assert watch.observe(NOW).pods["default/w"][0].version == "8"
