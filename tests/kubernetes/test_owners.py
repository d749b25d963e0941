"""Who belongs together: the owners above pods, of kinds that are known and of kinds that were added."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.kubernetes.pods import NOW, node, observed, owned_by, owner, pod, sealed, thing, watching

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.owners import MOST_OWNERS
from tenure.clusters.kubernetes.read.observe import Observer
from tenure.clusters.kubernetes.write.placing import sealed_at_bind
from tenure.model.selectors import Topology
from tenure.playthrough import play

TRAINING = "training.kubeflow.org/replica-type"
KUBEFLOW, RAY, LWS = "kubeflow.org/v1", "ray.io/v1", "leaderworkerset.x-k8s.io/v1"


def by_name(seen):
    return {w.name: w for w in seen.cluster.workloads}


def core_of(workload):
    """Give the names of the tasks without which it does not start."""
    ordered = sorted(workload.tasks, key=lambda task: task.order or 0)
    return {task.name for task in ordered[: workload.min_member]}


def replicas(**counts):
    return {role: {"replicas": count} for role, count in counts.items()}


def pytorch(name, spec, **body):
    return {"pytorchjobs.kubeflow.org": [owner(name, spec=spec, **body)]}


def training(name, kind="PyTorchJob", label=TRAINING, version=KUBEFLOW, **counts):
    """Give pods of a training job, by role."""
    return [
        pod(f"{name}-{role}-{n}", owner=(kind, name, version), labels={label: role})
        for role, count in counts.items()
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("told", "starts"),
    [("3", True), ("1-3", True), ("0,2-3", True), ("", False), ("x", False), ("5-3", False), (7, False)],
)
def test_a_job_does_not_wait_for_pods_of_indexes_that_failed_for_good(told, starts):
    """Its controller makes none for them any more (``backoffLimitPerIndex``), also where what ran was evicted."""
    pods = [pod(f"g-{n}", owner=("Job", "g")) for n in range(3)]
    jobs = [owner("g", spec={"parallelism": 4, "completions": 4}, status={"failedIndexes": told})]
    played = play(observed(node("n"), *pods, jobs=jobs).cluster)
    assert {s.task for s in played.steps if s.action == "bind"} == ({"g-0", "g-1", "g-2"} if starts else set())


def test_a_training_job_starts_with_all_its_roles():
    """Without a minimum of its own all replicas start together, the master first."""
    spec = {"pytorchReplicaSpecs": replicas(Master=1, Worker=3)}
    seen = by_name(observed(*training("t", worker=3, master=1), **pytorch("t", spec)))["t"]
    assert (seen.min_member, seen.tasks[0].name, len(seen.tasks)) == (4, "t-master-0", 4)


@pytest.mark.parametrize(
    ("more", "together"),
    [
        ({"elasticPolicy": {"minReplicas": 2}}, 3),
        ({"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}, 2),
        ({"runPolicy": {"schedulingPolicy": {"minAvailable": 9}}}, 9),
        ({"runPolicy": {"schedulingPolicy": {"minAvailable": "9"}}}, 4),
        ({"elasticPolicy": []}, 4),
    ],
)
def test_the_minimum_of_a_training_job_is_its_own(more, together):
    """Elastic workers and ``minAvailable`` say how many start together; what cannot be read is told of."""
    spec = {"pytorchReplicaSpecs": replicas(Master=1, Worker=3), **more}
    watch = watching(*training("t", master=1, worker=3), **pytorch("t", spec))
    seen = by_name(watch.observe(NOW))["t"]
    assert seen.min_member == together
    assert "t-master-0" in core_of(seen)
    assert bool(watch.informers.findings.new) == (together == 4 and "runPolicy" in more)


def test_queue_and_class_come_from_the_pod_then_its_owner_then_its_namespace():
    """Of several that name a queue the nearest to the pod counts; a class of the owner lowers, and does not raise."""
    queues = [thing(name, spec={}) for name in ("default", "of-pod", "of-field", "of-label", "of-namespace")]
    namespaces = [thing("default", metadata={"labels": {"tenure.dev/queue": "of-namespace"}})]
    classes = [thing("low", value=-5), thing("high", value=500)]

    def queue(labels=None, spec=None, metadata=None, named=namespaces):
        made = pod("t-0", owner=("PyTorchJob", "t", KUBEFLOW), labels=labels or {}, priority=3)
        jobs = pytorch("t", spec or {}, metadata=metadata or {})
        return by_name(observed(made, queues=queues, namespaces=named, priorityclasses=classes, **jobs))["t"]

    field = {"runPolicy": {"schedulingPolicy": {"queue": "of-field", "priorityClass": "low"}}}
    label = {"labels": {"tenure.dev/queue": "of-label"}}
    assert queue({"tenure.dev/queue": "of-pod"}, field, label).queue == "of-pod"
    assert (queue(None, field, label).queue, queue(None, field, label).priority) == ("of-field", -5)
    assert queue(None, None, label).queue == "of-label"
    assert queue().queue == "of-namespace"
    assert queue(named=[]).queue == "default"
    assert queue(None, {"runPolicy": {"schedulingPolicy": {"priorityClass": "high"}}}).priority == 3


def test_a_namespace_that_names_another_queue_changes_its_workloads_alone():
    queues = [thing("default", spec={}), thing("q", spec={})]
    watch = watching(pod("a"), pod("b", namespace="other"), queues=queues)
    before = by_name(watch.observe(NOW))
    told = thing("default", metadata={"labels": {"tenure.dev/queue": "q"}})
    watch.informers._objects("namespaces").put(told)
    after = watch.observe(NOW)
    assert {name: w.queue for name, w in by_name(after).items()} == {"a": "q", "b": "default"}
    assert by_name(after)["b"] is before["b"]
    assert after.cluster == Observer(watch.informers).observe(NOW).cluster


def test_a_job_set_has_a_subgroup_for_each_of_its_jobs():
    """Each replicated job is a subgroup that starts as a whole; another minimum makes it one group."""
    label, version = "jobset.sigs.k8s.io/replicatedjob-name", "jobset.x-k8s.io/v1alpha2"
    spec = {
        "replicatedJobs": [
            {"name": "driver", "template": {"spec": {}}},
            {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 2, "completions": 2}}},
            {"name": "none", "replicas": 0, "template": {"spec": {"parallelism": 2}}},
        ]
    }
    jobs = [owner(f"s-{name}", "JobSet", "s", version) for name in ("driver-0", "workers-0", "workers-1")]
    pods = [pod("d", owner=("Job", "s-driver-0", "batch/v1"), labels={label: "driver"})] + [
        pod(f"w-{n}", owner=("Job", f"s-workers-{n // 2}", "batch/v1"), labels={label: "workers"}) for n in range(4)
    ]
    sets = {"jobsets.jobset.x-k8s.io": [owner("s", spec=spec)]}
    seen = by_name(observed(*pods, jobs=jobs, **sets))["s"]
    assert [(g.name, g.min_member) for g in seen.sub_groups] == [("driver", 1), ("workers", 4)]
    assert {t.name: t.sub_group for t in seen.tasks}["w-3"] == "workers"
    told = {
        "jobsets.jobset.x-k8s.io": [owner("s", spec=spec, metadata={"annotations": {"tenure.dev/min-member": "3"}})]
    }
    other = by_name(observed(*pods, jobs=jobs, **told))["s"]
    assert (other.sub_groups, other.min_member) == ((), 3)


JOB_OF_SET, JOB_SET = "jobset.sigs.k8s.io/replicatedjob-name", "jobset.x-k8s.io/v1alpha2"


def job_set(said="depends", **status):
    """A set of two jobs, of two pods and of three: the second comes after the first, or at once."""
    after = {"dependsOn": [{"name": "first", "status": "Ready"}]} if said == "depends" else {}
    jobs = [
        {"name": "first", "template": {"spec": {"parallelism": 2, "completions": 2}}},
        {"name": "last", "template": {"spec": {"parallelism": 3, "completions": 3}}, **after},
    ]
    order = {"startupPolicy": {"startupPolicyOrder": "InOrder" if said == "in order" else "AnyOrder"}}
    told = [{"name": name, "succeeded": succeeded} for name, succeeded in status.items()]
    spec = {"replicatedJobs": jobs, **order}
    return {
        "jobsets.jobset.x-k8s.io": [owner("s", spec=spec, status={"replicatedJobsStatus": told})],
        "jobs": [owner(f"s-{name}-0", "JobSet", "s", JOB_SET) for name in ("first", "last")],
    }


def pods_of_set(name, count, **more):
    return [
        pod(f"{name}-{n}", owner=("Job", f"s-{name}-0", "batch/v1"), labels={JOB_OF_SET: name}, **more)
        for n in range(count)
    ]


def starting(cluster):
    """Give the names of the pods that are bound."""
    return {s.task for s in play(cluster).steps if s.action == "bind"}


@pytest.mark.parametrize("said", ["in order", "depends", "neither"])
def test_jobs_of_a_set_that_come_later_are_not_waited_for(said):
    """Their controller makes them when those before them are ready, or have ended; what is there starts together."""

    def many(cpu="8", **counts):
        pods = [made for name, count in counts.items() for made in pods_of_set(name, count)]
        return len(starting(observed(node("n", cpu), *pods, **job_set(said)).cluster))

    assert [many(first=1), many(first=2)] == [0, 0 if said == "neither" else 2]
    assert [many(first=2, last=2), many("4", first=2, last=3), many(first=2, last=3)] == [0, 0, 5]


@pytest.mark.parametrize(("cpu", "there", "starts"), [("8", 2, 0), ("4", 3, 0), ("5", 3, 3)])
def test_a_job_of_a_set_that_comes_later_starts_together(cpu, there, starts):
    """It waits for all of its pods and for room for them, beside the jobs that run."""
    runs = pods_of_set("first", 2, node="n")
    assert len(starting(observed(node("n", cpu), *runs, *pods_of_set("last", there), **job_set()).cluster)) == starts


@pytest.mark.parametrize(("loses", "is_evicted"), [("", False), ("last", True), ("first", True)])
def test_what_runs_of_a_set_is_not_stale_while_a_later_job_waits(loses, is_evicted):
    """Once that job runs, all of it is needed; what is lost of the jobs before it was needed from the beginning."""
    runs = pods_of_set("first", 1 if loses == "first" else 2, node="n")
    last = pods_of_set("last", 3)
    if loses == "last":
        last[:2] = pods_of_set("last", 2, node="n")
    cpu = str(len(runs) + 2 * (loses == "last"))
    cluster = observed(node("n", cpu), *runs, *last, **job_set()).cluster
    (made,) = cluster.workloads
    cluster = replace(cluster, workloads=(replace(made, stale_since=NOW - 3600 * 1_000_000),))
    assert any(s.action == "evict" for s in play(cluster).steps) == is_evicted


@pytest.mark.parametrize(("ended", "there", "starts"), [(1, 3, 3), (1, 2, 0), (0, 3, 0)])
@pytest.mark.parametrize("said", ["depends", "neither"])
def test_a_set_does_not_wait_for_pods_of_jobs_that_have_ended(said, ended, there, starts):
    """They went with their node, say. What is left starts as a whole, also after it was evicted."""
    waits = pods_of_set("last", there)
    assert len(starting(observed(node("n"), *waits, **job_set(said, first=ended)).cluster)) == starts


@pytest.mark.parametrize("status", [{"succeeded": 1}, {"failedIndexes": "2"}, {"succeeded": 9}, {}])
@pytest.mark.parametrize("there", ["waits", "runs"])
def test_a_set_does_not_wait_for_pods_that_have_ended_in_a_job_that_goes_on(status, there):
    """One of three is gone, and what is left starts, also beside another job of the set; its Job says how many are."""
    said = job_set("neither")
    said["jobs"] = [
        owner(f"s-{name}-0", "JobSet", "s", JOB_SET, spec={"parallelism": count, "completions": count}, status=told)
        for name, count, told in (("first", 2, {}), ("last", 3, status))
    ]
    first = pods_of_set("first", 2, **({"node": "n"} if there == "runs" else {}))
    cluster = observed(node("n"), *first, *pods_of_set("last", 2), **said).cluster
    assert len(starting(cluster)) == (0 if not status and there == "waits" else 4 if there == "waits" else 2)
    cluster = replace(cluster, workloads=(replace(cluster.workloads[0], stale_since=NOW - 3600 * 1_000_000),))
    assert any(s.action == "evict" for s in play(cluster).steps) == (not status and there == "runs")


def test_of_a_set_as_one_group_those_count_that_have_ended():
    """Half of four pods of a role are gone; those that are still there are not counted twice."""
    said = job_set("neither", first=9)
    said["jobsets.jobset.x-k8s.io"][0].metadata.annotations = {"tenure.dev/min-member": "5"}
    assert len(starting(observed(node("n"), *pods_of_set("last", 3), **said).cluster)) == 3
    there = pods_of_set("first", 2, node="n", phase="Succeeded")
    assert starting(observed(node("n"), *there, *pods_of_set("last", 2), **said).cluster) == set()
    of_last = owner("s-last-0", "JobSet", "s", JOB_SET, spec={"parallelism": 3}, status={"succeeded": 1})
    said["jobs"] = [said["jobs"][0], of_last]
    assert len(starting(observed(node("n"), *there, *pods_of_set("last", 2), **said).cluster)) == 2


@pytest.mark.parametrize("why", ["its leader is ready", "its leader has a place"])
def test_workers_that_come_later_than_their_leader_start_together(why):
    """Of two groups with room for the workers of one, one gets it all. A leader starts without them."""
    index, worker = "leaderworkerset.sigs.k8s.io/group-index", "leaderworkerset.sigs.k8s.io/worker-index"
    pods, sets = [], []
    for group in "01":
        whose = ("StatefulSet", "x", "apps/v1")
        pods.append(pod(f"x-{group}", owner=whose, labels={index: group, worker: "0"}, node="n"))
        sets.append(owner(f"x-{group}", "Pod", f"x-{group}"))
        whose = ("StatefulSet", f"x-{group}", "apps/v1")
        pods += [pod(f"x-{group}-{n}", owner=whose, labels={index: group, worker: str(n)}) for n in (1, 2, 3)]
    spec, near = {"leaderWorkerTemplate": {"size": 4}}, "leaderworkerset.sigs.k8s.io/exclusive-topology"
    if why == "its leader is ready":
        spec["startupPolicy"] = "LeaderReady"
    annotations = {near: "example.com/rack"} if why == "its leader has a place" else {}
    whole = {
        "leaderworkersets.leaderworkerset.x-k8s.io": [owner("x", spec=spec, metadata={"annotations": annotations})],
        "statefulsets": [*sets, owner("x", "LeaderWorkerSet", "x", LWS)],
    }
    assert starting(observed(node("n", "7"), *pods, **whole).cluster) == {"x-0-1", "x-0-2", "x-0-3"}
    leader = pod("x-0", owner=("StatefulSet", "x", "apps/v1"), labels={index: "0", worker: "0"})
    assert starting(observed(node("n", "7"), leader, **whole).cluster) == {"x-0"}


@pytest.mark.parametrize("where", ["set", "job"])
def test_a_set_with_domains_of_its_own_starts_with_the_first_pod_of_each_job(where):
    """Others are refused until that has a place. They start together then, and all of it is needed once they run."""
    index, near = "batch.kubernetes.io/job-completion-index", "alpha.jobset.sigs.k8s.io/exclusive-topology"
    metadata = {"annotations": {near: "example.com/rack"}}
    template = {"spec": {"parallelism": 3, "completions": 3}, **({"metadata": metadata} if where == "job" else {})}
    spec = {"replicatedJobs": [{"name": "w", "replicas": 2, "template": template}]}
    of_set = metadata if where == "set" else {}
    sets = {
        "jobsets.jobset.x-k8s.io": [owner("s", spec=spec, metadata=of_set)],
        "jobs": [owner(f"s-w-{n}", "JobSet", "s", JOB_SET) for n in range(2)],
    }

    def pods(*numbers, **more):
        return [
            pod(f"{job}-{n}", owner=("Job", f"s-w-{job}", "batch/v1"), labels={JOB_OF_SET: "w", index: str(n)}, **more)
            for job in range(2)
            for n in numbers
        ]

    def begins(cpu, *listed):
        return starting(observed(node("n", cpu), *listed, **sets).cluster)

    first, runs = pods(0), pods(0, node="n")
    assert [begins("8", *first[:1]), begins("8", *first)] == [set(), {"0-0", "1-0"}]
    assert begins("8", *first, *pods(1)) == {"0-0", "1-0"}  # left from before
    assert begins("8", *runs, *pods(1)) == begins("5", *runs, *pods(1, 2)) == set()
    assert begins("6", *runs, *pods(1, 2)) == {"0-1", "0-2", "1-1", "1-2"}
    ended = pods(0, node="n", phase="Succeeded")
    assert begins("8", *ended[:1], *first[1:], *pods(1)) == {"1-0", "0-1", "1-1"}  # nothing that is not there is needed
    (whole,) = observed(node("n"), *pods(0, 1, 2, node="n"), **sets).cluster.workloads
    assert [(g.name, g.min_member) for g in whole.sub_groups] == [("w", 2), ("w-following", 4)]


@pytest.mark.parametrize("policy", ["AtStartup", "WaitForWorkersReady"])
def test_launcher_and_workers_of_mpi_are_one_workload(policy):
    """The launcher is a Job's pod. One that comes when its workers run is not waited for, and needed once it runs."""
    spec = {"mpiReplicaSpecs": replicas(Launcher=1, Worker=2), "launcherCreationPolicy": policy}
    jobs = [owner("m-launcher", "MPIJob", "m", "kubeflow.org/v2beta1", spec={})]

    def made(launcher, workers):
        named, whose = "training.kubeflow.org/job-role", ("MPIJob", "m", "kubeflow.org/v2beta1")
        pods = [pod(f"w-{n}", owner=whose, labels={named: "worker"}, node=workers) for n in range(2)]
        if launcher is not None:
            first = ("Job", "m-launcher", "batch/v1")
            pods.append(pod("l", owner=first, labels={named: "launcher"}, node=launcher))
        seen = observed(node("n"), *pods, jobs=jobs, **{"mpijobs.kubeflow.org": [owner("m", spec=spec)]})
        (found,) = seen.cluster.workloads
        assert found.name == "m"
        return found

    comes_later = policy == "WaitForWorkersReady"
    assert made(None, "").min_member == (2 if comes_later else 3)
    assert made("", "").min_member == made("n", "n").min_member == 3
    assert "l" in core_of(made("", ""))
    assert [g.min_member for g in made("", "n").sub_groups] == ([2, None] if comes_later else [])


def test_what_comes_later_counts_as_what_its_workload_began_with():
    """A launcher of MPI that comes when its workers run is recorded as one of three."""
    spec = {"mpiReplicaSpecs": replicas(Launcher=1, Worker=2), "launcherCreationPolicy": "WaitForWorkersReady"}
    label, whose = "training.kubeflow.org/job-role", ("MPIJob", "m", "kubeflow.org/v2beta1")
    workers = [pod(f"w-{n}", owner=whose, labels={label: "worker"}, node="n") for n in range(2)]
    watch = watching(
        node("n"), *workers, pod("l", owner=whose, labels={label: "launcher"}),
        **{"mpijobs.kubeflow.org": [owner("m", spec=spec)]},
    )  # fmt: skip
    (made,) = watch.observe(NOW).cluster.workloads
    launcher = watch.informers.pods.records["default", "l"]
    assert sealed_at_bind(launcher, made, (), NOW).together == 3


@pytest.mark.parametrize(
    ("began", "asked", "runs", "needed", "is_evicted"),
    [
        (2, 5, 2, 2, False),  # it was given more
        (2, 5, 1, 2, True),  # and has lost one of those with which it began
        (5, 5, 2, 5, True),  # it has lost three
        (5, 2, 2, 2, False),  # it was made smaller
        (5, 4, 2, 2, False),  # and then larger again
        (0, 5, 2, 5, True),  # pods of before that was recorded
    ],
)
def test_what_runs_of_an_owner_is_whole_as_it_began(began, asked, runs, needed, is_evicted):
    """A Job with more ``parallelism`` than when it began grows as far as there is room; what runs of it stays."""
    seal = sealed(queue="default", started="2026-11-20T09:00:00Z", together=began)
    pods = [pod(f"g-{n}", owner=("Job", "g"), node="n", status=seal) for n in range(runs)]
    pods += [pod(f"g-{n}", owner=("Job", "g")) for n in range(runs, asked)]
    cluster = observed(node("n", str(runs)), *pods, jobs=[owner("g", spec={"parallelism": asked})]).cluster
    (made,) = cluster.workloads
    assert made.min_member == needed
    cluster = replace(cluster, workloads=(replace(made, stale_since=NOW - 3600 * 1_000_000),))
    assert any(s.action == "evict" for s in play(cluster).steps) == is_evicted
    more = observed(node("n", str(runs + 1)), *pods, jobs=[owner("g", spec={"parallelism": asked})]).cluster
    assert len(starting(more)) == (asked > runs)


def test_each_group_of_leader_and_workers_is_a_workload():
    """Workers belong to a set that belongs to their leader's pod, which belongs to the whole."""
    index, worker = "leaderworkerset.sigs.k8s.io/group-index", "leaderworkerset.sigs.k8s.io/worker-index"
    pods, sets = [], [owner("x", "LeaderWorkerSet", "x", LWS)]
    for group in "01":
        pods.append(pod(f"x-{group}", owner=("StatefulSet", "x", "apps/v1"), labels={index: group, worker: "0"}))
        sets.append(owner(f"x-{group}", "Pod", f"x-{group}"))
        pods += [
            pod(f"x-{group}-{n}", owner=("StatefulSet", f"x-{group}", "apps/v1"), labels={index: group, worker: str(n)})
            for n in (1, 2)
        ]
    whole = {"leaderworkersets.leaderworkerset.x-k8s.io": [owner("x", spec={"leaderWorkerTemplate": {"size": 3}})]}
    for order in (pods, pods[::-1]):
        seen = by_name(observed(*order, statefulsets=sets, **whole))
        assert {name: (w.min_member, w.tasks[0].name) for name, w in seen.items()} == {
            "x-0": (3, "x-0"), "x-1": (3, "x-1"),
        }  # fmt: skip


@pytest.mark.parametrize("has_operator", [True, False])
def test_a_driver_starts_before_its_executors_and_goes_last(has_operator):
    """Executors belong to the driver's pod, which belongs to an application or to nobody."""
    application = ("SparkApplication", "s", "sparkoperator.k8s.io/v1beta2") if has_operator else None
    executors = [pod(f"e-{n}", owner=("Pod", "driver"), labels={"spark-role": "executor"}) for n in range(2)]
    driver = pod("driver", owner=application, labels={"spark-role": "driver"})
    kinds = {"sparkapplications.sparkoperator.k8s.io": [owner("s", spec={"executor": {"instances": 2}})]}
    for order in ((driver, *executors), (*executors, driver)):
        seen = by_name(observed(*order, **kinds))
        (found,) = seen.values()
        assert found.name == ("s" if has_operator else "driver")
        assert [t.name for t in found.tasks] == ["driver", "e-0", "e-1"]
        assert core_of(found) == {"driver"}


@pytest.mark.parametrize(("scales", "together"), [(False, 8), (True, 3)])
def test_a_ray_cluster_starts_whole_unless_it_scales(scales, together):
    """Groups whose workers span hosts count each host; where Ray scales, the minimum of each group starts."""
    groups = [
        {"groupName": "cpu", "replicas": 3, "minReplicas": 0},
        {"groupName": "gpu", "replicas": 2, "minReplicas": 1, "numOfHosts": 2},
    ]
    spec = {"workerGroupSpecs": groups, "enableInTreeAutoscaling": scales}
    pods = [pod("h", owner=("RayCluster", "r", RAY), labels={"ray.io/node-type": "head", "ray.io/group": "headgroup"})]
    for group, count in (("cpu", 3), ("gpu", 4)):
        labels = {"ray.io/node-type": "worker", "ray.io/group": group}
        pods += [pod(f"{group}-{n}", owner=("RayCluster", "r", RAY), labels=labels) for n in range(count)]
    seen = by_name(observed(*pods, **{"rayclusters.ray.io": [owner("r", spec=spec)]}))["r"]
    assert seen.min_member == together
    assert {"h", "gpu-0", "gpu-1"} <= core_of(seen)
    above = {"rayjobs.ray.io": [owner("j", spec={"rayClusterSpec": spec})]}
    submits = pod("submit", owner=("Job", "submit", "batch/v1"))
    below = {"rayclusters.ray.io": [owner("r", "RayJob", "j", RAY, spec=spec)]}
    jobs = [owner("submit", "RayJob", "j", RAY)]
    of_job = by_name(observed(*pods, submits, jobs=jobs, **above, **below))
    assert set(of_job) == {"j"}
    assert (of_job["j"].min_member, of_job["j"].tasks[-1].name) == (together, "submit")


def test_clusters_of_a_service_are_workloads_of_their_own_in_its_queue():
    clusters = [owner(name, "RayService", "s", RAY, spec={}) for name in ("old", "new")]
    pods = [pod(f"{name}-h", owner=("RayCluster", name, RAY)) for name in ("old", "new")]
    services = [owner("s", metadata={"labels": {"tenure.dev/queue": "q"}})]
    queues = [thing("default", spec={}), thing("q", spec={})]
    found = by_name(observed(*pods, queues=queues, **{"rayclusters.ray.io": clusters, "rayservices.ray.io": services}))
    assert {name: w.queue for name, w in found.items()} == {"old": "q", "new": "q"}


@pytest.mark.parametrize("kind", ["Deployment", "Workflow"])
def test_pods_that_do_not_belong_together_are_workloads_of_their_own(kind):
    """Each pod of a Deployment or a workflow starts and goes by itself, in the queue of its owner."""
    metadata = {"labels": {"tenure.dev/queue": "q"}}
    queues = [thing("default", spec={}), thing("q", spec={})]
    if kind == "Deployment":
        first = ("ReplicaSet", "d-5f", "apps/v1")
        objects = {"replicasets": [owner("d-5f", "Deployment", "d", "apps/v1")],
                   "deployments": [owner("d", metadata=metadata, spec={"replicas": 2})]}  # fmt: skip
    else:
        first = ("Workflow", "d", "argoproj.io/v1alpha1")
        objects = {"workflows.argoproj.io": [owner("d", metadata=metadata)]}
    seen = by_name(observed(pod("a", owner=first), pod("b", owner=first), queues=queues, **objects))
    assert {name: (w.min_member, w.queue, w.uid) for name, w in seen.items()} == {
        "a": (1, "q", "uid-d"), "b": (1, "q", "uid-d"),
    }  # fmt: skip


def test_a_training_job_that_a_workflow_creates_starts_as_a_whole():
    """In the queue of the workflow, whose own steps are single pods."""
    flow = ("Workflow", "w", "argoproj.io/v1alpha1")
    jobs = [owner("t", *flow, spec={"pytorchReplicaSpecs": replicas(Master=1, Worker=3)})]
    seen = observed(
        node("n", "4"), *training("t", master=1, worker=3), pod("step", owner=flow),
        queues=[thing("default", spec={}), thing("q", spec={})],
        **{"pytorchjobs.kubeflow.org": jobs,
           "workflows.argoproj.io": [owner("w", metadata={"labels": {"tenure.dev/queue": "q"}})]},
    )  # fmt: skip
    assert {name: (w.min_member, w.queue) for name, w in by_name(seen).items()} == {"t": (4, "q"), "step": (1, "q")}
    assert starting(seen.cluster) in ({"step"}, {"t-master-0", "t-worker-0", "t-worker-1", "t-worker-2"})


def test_what_wraps_others_is_one_workload_of_their_roles():
    """A TrainJob has the subgroups of its JobSet; of an AppWrapper the objects inside say what belongs together."""
    version = "jobset.x-k8s.io/v1alpha2"
    spec = {"replicatedJobs": [{"name": "node", "template": {"spec": {"parallelism": 2}}}]}
    pods = [
        pod(f"p-{n}", owner=("Job", "t-node", "batch/v1"), labels={"jobset.sigs.k8s.io/replicatedjob-name": "node"})
        for n in range(2)
    ]
    objects = {
        "jobs": [owner("t-node", "JobSet", "t", version)],
        "jobsets.jobset.x-k8s.io": [owner("t", "TrainJob", "t", "trainer.kubeflow.org/v1alpha1", spec=spec)],
        "trainjobs.trainer.kubeflow.org": [owner("t")],
    }
    (train,) = observed(*pods, **objects).cluster.workloads
    assert [(g.name, g.min_member) for g in train.sub_groups] == [("node", 2)]
    inner = [
        {"template": {"apiVersion": KUBEFLOW, "kind": "PyTorchJob",
                      "spec": {"pytorchReplicaSpecs": replicas(Master=1, Worker=2)}}},
        {"template": {"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 2}}},
    ]  # fmt: skip
    wrapper = ("AppWrapper", "w", "workload.codeflare.dev/v1beta2")
    wrapped = by_name(observed(
        *training("t", master=1, worker=2), pod("j", owner=("Job", "j", "batch/v1")),
        jobs=[owner("j", *wrapper, spec={"parallelism": 2})],
        **{"pytorchjobs.kubeflow.org": [owner("t", *wrapper)],
           "appwrappers.workload.codeflare.dev": [owner("w", spec={"components": inner})]},
    ))  # fmt: skip
    assert {name: w.min_member for name, w in wrapped.items()} == {"w": 5}


def test_pods_of_volcano_belong_to_its_job_or_to_the_group_that_they_name():
    """Volcano's Job says how many of all start; its groups are named by an annotation."""
    spec = {"minAvailable": 2, "queue": "q", "tasks": [{"name": "ps", "replicas": 1}, {"name": "w", "replicas": 3}]}
    queues = [thing("default", spec={}), thing("q", spec={})]
    label, named = "volcano.sh/task-spec", {"scheduling.k8s.io/group-name": "podgroup-1"}
    whose = ("Job", "v", "batch.volcano.sh/v1alpha1")
    pods = [pod(f"w-{n}", owner=whose, labels={label: "w"}, annotations=named) for n in range(3)]
    pods.append(pod("ps", owner=whose, labels={label: "ps"}, annotations=named))
    alone = [pod(f"x-{n}", annotations={"scheduling.k8s.io/group-name": "g"}) for n in range(3)]
    groups = [owner("podgroup-1", *whose, spec={"minMember": 4}), owner("g", spec={"minMember": 3, "queue": "q"})]
    seen = by_name(observed(*pods, *alone, queues=queues, **{
        "jobs.batch.volcano.sh": [owner("v", spec=spec)], "podgroups.scheduling.volcano.sh": groups,
    }))  # fmt: skip
    assert {name: (w.min_member, w.queue, w.tasks[0].name) for name, w in seen.items()} == {
        "v": (2, "q", "ps"), "g": (3, "q", "x-0"),
    }  # fmt: skip


def test_gangs_of_grove_are_named_by_a_label():
    groups = [{"name": "g-0-a", "minReplicas": 1}, {"name": "g-0-b", "minReplicas": 2}]
    pods = [
        pod(f"{clique}-{n}", owner=("PodClique", clique, "grove.io/v1alpha1"),
            labels={"grove.io/podgang": "g-0", "grove.io/podclique": clique})
        for clique, count in (("g-0-a", 2), ("g-0-b", 2)) for n in range(count)
    ]  # fmt: skip
    kinds = {"podgangs.scheduler.grove.io": [owner("g-0", spec={"podgroups": groups})]}
    (found,) = observed(*pods, **kinds).cluster.workloads
    assert [(g.name, g.min_member) for g in found.sub_groups] == [("g-0-a", 1), ("g-0-b", 2)]


RACK, BLOCK = "example.com/rack", "example.com/block"


def packed(required=None, preferred=None):
    """A topology constraint in Grove's form."""
    levels = {"required": required, "preferred": preferred}
    return {"packConstraint": {key: level for key, level in levels.items() if level is not None}}


def gang_of_grove(spec):
    """The workload of a PodGang with three cliques of two pods each."""
    pods = [
        pod(f"{clique}-{n}", owner=("PodClique", clique, "grove.io/v1alpha1"),
            labels={"grove.io/podgang": "g-0", "grove.io/podclique": clique})
        for clique in ("a", "b", "c") for n in range(2)
    ]  # fmt: skip
    seen = observed(*pods, **{"podgangs.scheduler.grove.io": [owner("g-0", spec=spec)]})
    (found,) = seen.cluster.workloads
    return found, "; ".join(problem for made in seen.made.values() for problem in made.problems)


def cliques(**topologies):
    return [
        {"name": name, "minReplicas": 2, **({"topologyConstraint": topologies[name]} if name in topologies else {})}
        for name in ("a", "b", "c")
    ]


def test_topology_constraints_of_grove_hold_for_the_gang_its_groups_and_groups_of_these():
    near = {"name": "b-and-c", "podGroupNames": ["b", "c"], "topologyConstraint": packed(RACK)}
    spec = {
        "podgroups": cliques(a=packed(None, "kubernetes.io/hostname"), c=packed("kubernetes.io/hostname")),
        "topologyConstraint": packed(BLOCK, RACK), "topologyConstraintGroupConfigs": [near],
    }  # fmt: skip
    found, problems = gang_of_grove(spec)
    assert problems == ""
    assert found.topology == Topology(required=BLOCK, preferred=RACK)
    alone, both = found.sub_groups
    assert (alone.name, alone.min_member, alone.topology) == ("a", 2, Topology(preferred="kubernetes.io/hostname"))
    assert (both.name, both.topology) == ("b-and-c", Topology(required=RACK))
    assert [(g.name, g.min_member, g.topology) for g in both.sub_groups] == [
        ("b", 2, None), ("c", 2, Topology(required="kubernetes.io/hostname")),
    ]  # fmt: skip
    assert [task.sub_group for task in found.tasks] == ["a", "a", "b", "b", "c", "c"]


def test_cliques_of_grove_that_belong_together_land_in_one_rack():
    """Two racks of four places: what is near each other fills one of them, and the third clique goes to the other."""
    near = {"name": "near", "podGroupNames": ["a", "c"], "topologyConstraint": packed(RACK)}
    pods = [
        pod(f"{clique}-{n}", owner=("PodClique", clique, "grove.io/v1alpha1"),
            labels={"grove.io/podgang": "g-0", "grove.io/podclique": clique})
        for clique in ("a", "b", "c") for n in range(2)
    ]  # fmt: skip
    gang = owner("g-0", spec={"podgroups": cliques(), "topologyConstraintGroupConfigs": [near]})
    nodes = [node(f"n{n}", cpu="2", labels={RACK: f"r{n // 2}"}) for n in range(4)]
    plan = play(observed(*pods, *nodes, **{"podgangs.scheduler.grove.io": [gang]}).cluster)
    racks = {name: {f"r{int(s.node[1]) // 2}" for s in plan.steps if s.task[0] == name} for name in ("a", "b", "c")}
    assert len(racks["a"] | racks["c"]) == 1
    assert racks["b"] == {"r0", "r1"} - racks["a"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"topologyConstraint": "near"}, ""),
        ({"topologyConstraint": {"packConstraint": {"required": 7}}}, "required: is 7 (a number)"),
        ({"topologyConstraint": packed("x" * 1000)}, "but a label of nodes is expected"),
        ({"topologyConstraintGroupConfigs": "all"}, ""),
        ({"topologyConstraintGroupConfigs": [{"podGroupNames": ["a"]}]}, "but a name is expected"),
        ({"topologyConstraintGroupConfigs": [{"name": "a", "podGroupNames": ["b"]}]}, "no role and no other group has"),
        ({"topologyConstraintGroupConfigs": [{"name": "x", "podGroupNames": ["d"]}]}, "but the name of a role"),
        ({"topologyConstraintGroupConfigs": [{"name": "x" * 100_000, "podGroupNames": ["a"]}]}, "but a name is"),
        (
            {"topologyConstraintGroupConfigs": [{"name": n, "podGroupNames": ["a"] * 9999} for n in ("x", "y")]},
            "that is in no other group",
        ),
        ({"topologyConstraintGroupConfigs": [{"name": f"x{n}", "podGroupNames": []} for n in range(5000)]}, ""),
        ({"topologyConstraintGroupConfigs": [{"name": "x", "podGroupNames": [{}, None, 3]}]}, "is a mapping"),
    ],
)
def test_what_a_gang_of_grove_should_not_say_is_reported_and_bounded(spec, words):
    """The cliques start together all the same, each with as many as it needs."""
    found, problems = gang_of_grove({"podgroups": cliques(), **spec})
    assert words in problems
    assert len(problems) < 10_000

    def leaves(groups):
        return [leaf for g in groups for leaf in (leaves(g.sub_groups) or [(g.name, g.min_member)])]

    assert sorted(leaves(found.sub_groups)) == [("a", 2), ("b", 2), ("c", 2)]


def test_a_group_of_kueue_says_how_many_pods_it_has():
    fields = {"labels": {"kueue.x-k8s.io/pod-group-name": "g"},
              "annotations": {"kueue.x-k8s.io/pod-group-total-count": "3"}}  # fmt: skip
    assert by_name(observed(pod("a", **fields), pod("b", **fields)))["g"].min_member == 3


def test_a_kind_that_is_added_says_what_belongs_together():
    """A WorkloadKind says where an object of any kind says it; taken away, pods are on their own again."""
    kind = thing("farms", spec={
        "group": "example.org", "version": "v1", "kind": "Farm", "plural": "farms",
        "roles": [{"each": ".spec.fields[*]", "named": ".crop", "label": "crop", "replicas": ".rows"}],
        "queue": [".spec.owner['a/b']"],
    })  # fmt: skip
    farm = owner("f", spec={"fields": [{"crop": "rye", "rows": 2}, {"crop": "oat"}], "owner": {"a/b": "q"}})
    whose = ("Farm", "f", "example.org/v1")
    pods = [pod("o", owner=whose, labels={"crop": "oat"})]
    pods += [pod(f"r-{n}", owner=whose, labels={"crop": "rye"}) for n in range(2)]
    watch = watching(*pods, queues=[thing("default", spec={}), thing("q", spec={})], workloadkinds=[kind])
    watch.observe(NOW)
    watch.informers._objects("farms.example.org").put(farm)
    (found,) = watch.observe(NOW).cluster.workloads
    assert (found.name, found.queue, found.min_member, found.tasks[0].name) == ("f", "q", 3, "r-0")
    watch.informers._objects("workloadkinds").drop(("", "farms"))
    (alone,) = watch.observe(NOW).cluster.workloads
    assert (alone.queue, alone.min_member) == ("default", 1)


def test_a_kind_that_cannot_be_read_is_told_of():
    watch = watching(pod("a"), workloadkinds=[thing("bad", spec={"version": "v1", "kind": "X", "queue": ["spec"]})])
    watch.observe(NOW)
    assert [(kind, "no path of fields" in line) for kind, _, line in watch.informers.findings.new] == [
        ("WorkloadKind", True)
    ]


def chain(length, *, closed=False):
    """Give Jobs, each owned by the next."""
    last = ("Job", "j-0", "batch/v1") if closed else ()
    return [owner(f"j-{n}", *(("Job", f"j-{n + 1}", "batch/v1") if n + 1 < length else last)) for n in range(length)]


@pytest.mark.parametrize(
    ("jobs", "name", "says"),
    [
        (chain(3), "j-2", ""),
        (chain(MOST_OWNERS), f"j-{MOST_OWNERS - 1}", ""),
        (chain(MOST_OWNERS + 1), "j-0", "more than"),
        (chain(3, closed=True), "j-0", "circle"),
        (chain(1, closed=True), "j-0", "circle"),
    ],
)
def test_owners_in_a_circle_and_without_end_leave_the_first_to_decide(jobs, name, says):
    """A chain of owners that leads nowhere costs its own pods what it says, and is told of."""
    watch = watching(pod("p", owner=("Job", "j-0", "batch/v1")), pod("other"), jobs=jobs)
    assert set(by_name(watch.observe(NOW))) == {name, "other"}
    told = [line for _, _, line in watch.informers.findings.new]
    assert bool(told) == bool(says)
    assert all(says in line for line in told)


def test_owners_that_come_late_bring_their_pods_together():
    """Pods wait a while for owners that are watched; in whatever order these come, the result is the same."""
    watch = watching()
    watch.informers.pods.owners.watched |= {"Job", "JobSet.jobset.x-k8s.io"}
    for n in range(2):
        watch.informers.pods.put(pod(f"p-{n}", owner=("Job", f"j-{n}", "batch/v1")))
    early = watch.observe(NOW)
    assert all(w.min_member > len(w.tasks) for w in early.cluster.workloads)
    assert early.wake is not None
    for n in range(2):
        watch.informers._objects("jobs").put(owner(f"j-{n}", "JobSet", "s", "jobset.x-k8s.io/v1alpha2"))
    assert {w.name: len(w.tasks) for w in watch.observe(NOW).cluster.workloads} == {"s": 2}
    late = watch.observe(NOW + 2_000_000)
    assert [w.min_member for w in late.cluster.workloads] == [1]
    watch.informers._objects("jobsets.jobset.x-k8s.io").put(owner("s", spec={"replicatedJobs": [{"name": "a"}]}))
    assert [w.min_member for w in watch.observe(NOW + 2_000_000).cluster.workloads] == [1]


def test_an_owner_that_is_gone_keeps_its_pods_together_until_they_go():
    """Pods of an application that was deleted stay one workload with their driver."""
    labels = {"spark-role": "executor"}
    executors = [pod(f"e-{n}", owner=("Pod", "d"), labels=labels, node="n") for n in range(2)]
    watch = watching(node("n"), pod("d", labels={"spark-role": "driver"}, node="n"), *executors)
    watch.observe(NOW)
    watch.informers.pods.drop(("default", "d"))
    assert {w.name: len(w.tasks) for w in watch.observe(NOW).cluster.workloads} == {"d": 2}
    for n in range(2):
        watch.informers.pods.drop(("default", f"e-{n}"))
    index = watch.informers.pods.owners
    assert (index._known, index._below, index._gone, index._chains) == ({}, {}, set(), {})


def test_two_of_one_name_are_two():
    """An owner that was made anew, and another kind of the same name, are workloads of their own."""
    second = pod("b", owner=("Job", "j", "batch/v1"))
    second.metadata.owner_references[0] = api.Owner("Job", "j", "uid-new", "batch/v1", controller=True)
    seen = observed(
        pod("a", owner=("Job", "j", "batch/v1")), second, pod("c", owner=("Job", "j", "batch.volcano.sh/v1"))
    )
    assert len(seen.cluster.workloads) == 3
    assert owned_by("Job", "j")["uid"] == "uid-j"
