"""``--add``: manifests of Pods and Jobs, and workloads, before they are submitted."""

from textwrap import dedent

import pytest

from tenure.model.file.added import load_additions
from tenure.model.file.load import load_cluster
from tenure.model.selectors import HostPort, LabelSelector
from tenure.model.values.duration import parse_time
from tenure.model.values.problems import InvalidInputError
from tenure.model.workload import GpuShare, Phase

GPU = "nvidia.com/gpu"
NOW = parse_time("2026-11-20T10:00:00Z")


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(
        "now: 2026-11-20T10:00:00Z\nnodes: [{name: n}]\nqueues: [{name: a}, {name: b, parent: a}, {name: default}]\n"
        "workloads: [{name: taken, queue: b}]\n"
    )
    return load_cluster(path).cluster


@pytest.fixture
def add(tmp_path, cluster):
    def run(text):
        path = tmp_path / "add.yaml"
        path.write_text(dedent(text))
        return load_additions(path, cluster)

    return run


@pytest.fixture
def refuse(add):
    def run(text):
        with pytest.raises(InvalidInputError) as caught:
            add(text)
        return [(problem.line, problem.path, problem.message) for problem in caught.value.problems]

    return run


def pod(spec, metadata="name: p"):
    return f"{{apiVersion: v1, kind: Pod, metadata: {{{metadata}}}, spec: {{{spec}}}}}"


def test_workloads_are_added_as_a_cluster_file_has_them_but_created_now(add):
    (workload,) = add("workloads: [{name: w, queue: b, replicas: 2, createdAt: 2020-01-01T00:00:00Z}]")
    assert (workload.key, len(workload.tasks), workload.created_at) == ("default/w", 2, NOW)


def test_a_pod_is_a_workload_of_one_task(add):
    (workload,) = add(
        """\
        apiVersion: v1
        kind: Pod
        metadata:
          name: p
          namespace: team
          labels: {app: x, kai.scheduler/queue: b}
          annotations: {note: hello}
        spec:
          containers:
          - name: main
            image: busybox
            resources: {requests: {cpu: 500m}, limits: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 2}}
            ports: [{containerPort: 80}, {containerPort: 443, hostPort: 8443, protocol: TCP}]
          nodeSelector: {pool: a}
          tolerations: [{key: gpu, operator: Exists, tolerationSeconds: 300}]
          topologySpreadConstraints:
          - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}
          priority: 70
          priorityClassName: whatever
          terminationGracePeriodSeconds: 5
          restartPolicy: Never
        """
    )
    (task,) = workload.tasks
    assert (workload.key, workload.queue, workload.priority, workload.created_at) == ("team/p", "b", 70, NOW)
    assert workload.annotations == task.annotations == {"note": "hello"}
    assert task.name == "p"
    assert task.phase is Phase.PENDING
    assert task.grace_period == 5_000_000
    assert task.spec.requests == (("cpu", 500), ("memory", 2**30), (GPU, 2))
    assert task.spec.labels == (("app", "x"), ("kai.scheduler/queue", "b"))
    assert task.spec.node_selector == (("pool", "a"),)
    assert task.spec.host_ports == (HostPort(port=8443),)
    assert task.spec.tolerations[0].key == "gpu"
    assert task.spec.spread[0].topology_key == "zone"


@pytest.mark.parametrize(
    ("spec", "requests"),
    [
        ("containers: [{resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 2}}}]", {"cpu": 3_000}),
        ("containers: [{resources: {limits: {cpu: 1}}}]", {"cpu": 1_000}),
        ("containers: [{}], initContainers: [{resources: {requests: {cpu: 2}}}]", {"cpu": 2_000}),
        (
            (
                "containers: [{resources: {requests: {cpu: 1}}}],"
                " initContainers: [{resources: {requests: {cpu: 4}}}, {resources: {requests: {cpu: 3, memory: 5}}}]"
            ),
            {"cpu": 4_000, "memory": 5},
        ),
        (  # a sidecar runs beside the containers, and beside the init containers after it
            (
                "containers: [{resources: {requests: {cpu: 1}}}], initContainers: ["
                "{resources: {requests: {cpu: 2}}}, {restartPolicy: Always, resources: {requests: {cpu: 1}}},"
                " {resources: {requests: {cpu: 2}}}]"
            ),
            {"cpu": 3_000},
        ),
        (
            (
                "containers: [{resources: {requests: {cpu: 5}}}], initContainers: ["
                "{restartPolicy: Always, resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 2}}}]"
            ),
            {"cpu": 6_000},
        ),
        (
            "containers: [{resources: {requests: {cpu: 1}}}], overhead: {cpu: 250m, memory: 1Mi}",
            {"cpu": 1_250, "memory": 2**20},
        ),
        (
            (
                "containers: [{resources: {requests: {cpu: 1, memory: 7}}}], resources: {requests: {cpu: 4}},"
                " overhead: {cpu: 1}"
            ),
            {"cpu": 5_000, "memory": 7},
        ),
        (  # a limit of the pod stands in for its requests where its containers ask for none
            "containers: [{resources: {requests: {cpu: 1}}}, {}], resources: {limits: {cpu: 20, memory: 8}}",
            {"cpu": 1_000, "memory": 8},
        ),
        ("containers: [{}], resources: {limits: {cpu: 20}, requests: {cpu: 2}}", {"cpu": 2_000}),
    ],
)
def test_requests_are_added_up_as_kubernetes_does(add, spec, requests):
    (workload,) = add(pod(spec))
    assert dict(workload.tasks[0].spec.requests) == requests


def test_a_job_is_a_gang_of_what_runs_in_parallel(add):
    text = """\
        apiVersion: batch/v1
        kind: Job
        metadata: {name: j, labels: {a: b}, annotations: {tenure.dev/min-member: "2"}}
        spec:
          parallelism: 4
          completions: 3
          template:
            metadata: {labels: {queue: b}}
            spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1}}}], priorityClassName: system-node-critical}
        """
    (workload,) = add(text)
    assert [task.name for task in workload.tasks] == ["j-0", "j-1", "j-2"]
    assert (workload.queue, workload.min_member, workload.owner_kind) == ("b", 2, "Job")
    assert workload.priority == 2_000_001_000
    assert workload.labels == {"a": "b"}
    (plain,) = add(text.replace(', annotations: {tenure.dev/min-member: "2"}', ""))
    assert plain.min_member == 3


def test_pods_of_one_group_are_one_workload(add):
    label = "labels: {tenure.dev/pod-group: g, queue: b}"
    text = "\n---\n".join(
        [
            pod("containers: [{}], priority: 1", f"name: p0, {label}, annotations: {{tenure.dev/min-member: '2'}}"),
            pod("containers: [{}], priority: 3", f"name: p1, {label}"),
            pod("containers: [{}]", "name: single, labels: {queue: b}"),
            pod("containers: [{}]", f"name: p2, namespace: other, {label}"),
        ]
    )
    found = [(w.key, [task.name for task in w.tasks], w.min_member, w.priority) for w in add(text)]
    assert found == [
        ("default/g", ["p0", "p1"], 2, 3),
        ("default/single", ["single"], None, 0),
        ("other/g", ["p2"], None, 0),
    ]


def test_lists_hold_what_documents_hold(add):
    added = add(
        f"{{apiVersion: v1, kind: List, items: [{pod('containers: [{}]')}, {pod('containers: [{}]', 'name: q')}]}}"
    )
    assert [workload.name for workload in added] == ["p", "q"]


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_the_items_of_a_list_of_one_kind_need_not_say_it(add, kind):
    """So an API server answers."""
    spec = "{containers: [{}]}"
    version, of = ("v1", spec) if kind == "Pod" else ("batch/v1", f"{{template: {{spec: {spec}}}}}")
    items = f"[{{metadata: {{name: p}}, spec: {of}}}, {{metadata: {{name: q}}, spec: {of}}}]"
    added = add(f"{{apiVersion: {version}, kind: {kind}List, items: {items}}}")
    assert [workload.name for workload in added] == ["p", "q"]


def test_a_list_of_what_cannot_be_added_is_refused_as_such(refuse):
    ((_, path, message),) = refuse("{apiVersion: v1, kind: ServiceList, items: []}")
    assert path == "kind"
    assert message.startswith("'ServiceList' of 'v1' cannot be added; Pod")


RUNTIME = (
    "\n---\n{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: vm}, handler: vm, overhead: "
    "{podFixed: {cpu: 250m, memory: 100Mi}}, scheduling: {nodeSelector: {kvm: 'yes'}, tolerations: "
    "[{key: vm, operator: Exists}]}}"
)


def test_a_runtime_class_adds_what_the_api_server_would_have_added(add):
    """Overhead, node selector and tolerations; an overhead that stands in the pod already counts once."""
    given = "runtimeClassName: vm, nodeSelector: {zone: a}, containers: [{resources: {requests: {cpu: 1}}}]"
    for more in ("", ", overhead: {cpu: 250m, memory: 100Mi}"):
        spec = add(pod(given + more) + RUNTIME)[0].tasks[0].spec
        assert dict(spec.requests) == {"cpu": 1250, "memory": 100 << 20}
        assert dict(spec.node_selector) == {"zone": "a", "kvm": "yes"}
        assert [t.key for t in spec.tolerations] == ["vm"]


def test_a_runtime_class_that_is_not_there_is_not_passed_over(add, refuse):
    """What it adds is not known; a pod that has its overhead has been through the API server, which has added it."""
    ((_, path, message),) = refuse(pod("runtimeClassName: vm, containers: [{}]"))
    assert path == "spec.runtimeClassName"
    assert (
        message
        == "runtime class vm is not known here: its overhead and its nodes would not count; add the class beside it"
    )
    assert dict(add(pod("runtimeClassName: vm, overhead: {cpu: 1}, containers: [{}]"))[0].tasks[0].spec.requests) == {
        "cpu": 1000
    }


def test_a_pod_that_stands_against_its_runtime_class_is_refused(refuse):
    """As by the API server."""
    spec = "runtimeClassName: vm, nodeSelector: {kvm: 'no'}, containers: [{}]"
    ((_, path, message),) = refuse(pod(spec) + RUNTIME)
    assert (path, message) == ("spec.nodeSelector.kvm", "is no, but runtime class vm has its nodes at yes")


def test_gated_pods_and_suspended_jobs_are_gated(add):
    (workload,) = add(pod("containers: [{}], schedulingGates: [{name: example.com/wait}]"))
    assert workload.tasks[0].phase is Phase.GATED
    job = (
        "{apiVersion: batch/v1, kind: Job, metadata: {name: j},"
        " spec: {suspend: true, template: {spec: {containers: [{}]}}}}"
    )
    assert add(job)[0].tasks[0].phase is Phase.GATED


def test_annotations_ask_for_parts_of_gpus(add):
    def share(annotations):
        return add(pod("containers: [{}]", f"name: p, annotations: {{{annotations}}}"))[0].tasks[0].spec.gpu_share

    assert share("tenure.dev/gpu-fraction: '0.5'") == GpuShare(milli=500)
    assert share("tenure.dev/gpu-fraction: 250m, tenure.dev/gpu-devices: '2'") == GpuShare(milli=250, devices=2)
    assert share("tenure.dev/gpu-memory: 20Gi") == GpuShare(memory=20 * 2**30)


def test_host_ports_follow_the_host_network(add):
    (workload,) = add(
        pod(
            "hostNetwork: true, containers: [{ports: [{containerPort: 80, protocol: UDP}, {name: none}]}],"
            " initContainers: [{restartPolicy: Always, ports: [{hostPort: 9, hostIP: 10.0.0.1}]},"
            " {ports: [{hostPort: 7}]}]"
        )
    )
    assert workload.tasks[0].spec.host_ports == (HostPort(port=80, protocol="UDP"), HostPort(port=9, ip="10.0.0.1"))


MADE = "volumeClaimTemplate: {spec: {storageClassName: fast, resources: {requests: {storage: 1Gi}}}}"
OF_DEFAULT = "volumeClaimTemplate: {spec: {resources: {requests: {storage: 1Gi}}}}"


def mounted(workloads):
    """Give by task the claims that it mounts, and what it waits for."""
    return {
        t.name: (t.spec.claims, [mount.awaits for mount in t.spec.mounts], t.spec.unsupported)
        for w in workloads
        for t in w.tasks
    }


def test_an_ephemeral_volume_is_a_claim_of_its_pod(add):
    """Of a Pod and of what makes pods; of no class that is said, only the API server knows which one it gets."""
    volumes = f"volumes: [{{name: v, ephemeral: {{{MADE}}}}}, {{name: u, ephemeral: {{{OF_DEFAULT}}}}}]"
    awaits = ["claim {}-v, which is not bound to a volume: there is no class fast"]
    job = (
        "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 2, "
        f"template: {{spec: {{containers: [{{}}], {volumes}}}}}}}}}"
    )
    for text, names in ((pod(f"containers: [{{}}], {volumes}"), ["p"]), (job, ["j-0", "j-1"])):
        expected = {name: ((f"{name}-v",), [line.format(name) for line in awaits], ()) for name in names}
        assert mounted(add(text)) == expected


def test_a_stateful_set_makes_claims_for_each_of_its_pods(add):
    """By name of the template and of the pod, as its controller calls them; a claim that is there is used."""
    there = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-s-1}, spec: {volumeName: gone}}"
    made = (
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {replicas: 2, "
        "template: {spec: {containers: [{}]}}, "
        "volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: fast}}]}}"
    )
    found = mounted(add(f"{there}\n---\n{made}"))
    assert {name: claims for name, (claims, _, _) in found.items()} == {"s-0": ("data-s-0",), "s-1": ("data-s-1",)}
    assert "fast" in found["s-0"][1][0]
    assert "fast" not in found["s-1"][1][0]


def test_a_template_of_a_claim_that_cannot_be_read_is_named_with_its_place(refuse):
    template = "{spec: {storageClassName: fast, resources: {requests: {storage: much}}}}"
    text = pod(f"containers: [{{}}], volumes: [{{name: v, ephemeral: {{volumeClaimTemplate: {template}}}}}]")
    place = "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests.storage"
    assert [path for _, path, _ in refuse(text)] == [place]


def test_constraints_that_are_not_evaluated_are_named(add):
    (workload,) = add(
        pod(
            "containers: [{}], resourceClaims: [{name: gpu, resourceClaimName: x}, {name: other}], volumes: ["
            "{name: data, persistentVolumeClaim: {claimName: c}}, {name: tmp, emptyDir: {}},"
            " {name: cfg, configMap: {name: c}},"
            " {name: s, secret: {}}, {name: pr, projected: {}}, {name: dw, downwardAPI: {}},"
            " {name: h, hostPath: {path: /}},"
            " {name: inline, csi: {driver: d}}, {name: share, nfs: {server: s, path: /}},"
            " {name: disk, rbd: {image: i}}],"
            " affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: ["
            "{topologyKey: zone, labelSelector: {}, namespaceSelector: {matchLabels: {a: b}}},"
            "{topologyKey: zone, labelSelector: {}, namespaceSelector: {}, mismatchLabelKeys: [a]}]}}"
        )
    )
    spec = workload.tasks[0].spec
    assert spec.unsupported == (
        "resource claim other",
        "volume disk (rbd)",
    )
    assert spec.claims == ("c",)
    assert spec.resource_claims == ("x",)


def test_terms_choose_namespaces_by_label_and_tasks_by_labels_of_ones_own(add):
    (workload,) = add(
        pod(
            "containers: [{}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: ["
            "{topologyKey: zone, labelSelector: {}, namespaceSelector: {matchLabels: {a: b}}},"
            "{topologyKey: zone, labelSelector: {}, namespaceSelector: {}, mismatchLabelKeys: [a]}]}}"
        )
    )
    first, second = workload.tasks[0].spec.affinity.pod.required
    assert first.namespace_selector == LabelSelector(match_labels=(("a", "b"),))
    assert (second.namespace_selector, second.mismatch_label_keys) == (LabelSelector(), ("a",))


def test_what_the_api_server_merged_into_selectors_is_not_merged_again(add):
    (workload,) = add(
        pod(
            "containers: [{}], affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: ["
            "{topologyKey: zone, matchLabelKeys: [app, left], mismatchLabelKeys: [tier], labelSelector:"
            " {matchExpressions: [{key: app, operator: In, values: [old]}, {key: tier, operator: NotIn, values: [x]}]}}"
            "]}}, topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule,"
            " matchLabelKeys: [app], labelSelector: {matchExpressions: [{key: app, operator: In, values: [old]}]}}]"
        )
    )
    spec = workload.tasks[0].spec
    (term,) = spec.affinity.pod_anti.required
    assert (term.match_label_keys, term.mismatch_label_keys) == (("left",), ())
    assert [r.values for r in term.selector.match_expressions] == [("old",), ("x",)]
    assert spec.spread[0].match_label_keys == ()


def test_what_the_kubelet_has_to_declare_is_read(add):
    (workload,) = add(
        pod(
            "hostNetwork: true, hostUsers: false, containers: [{restartPolicyRules: [{action: RestartAllContainers}],"
            " volumeMounts: [{name: a, mountPath: /a, bindMountOptions: [ro]}]}]"
        )
    )
    assert workload.tasks[0].spec.features == (
        "RestartAllContainersOnContainerExits",
        "UserNamespacesHostNetworkSupport",
        "VolumeBindMountOptions",
    )


@pytest.mark.parametrize(
    ("asked", "counts"),
    [
        ("memory: 1.1Gi", ("memory", 1181116007)),
        ("memory: 1500m", ("memory", 2)),
        ("cpu: 100u", ("cpu", 1)),
        ("ephemeral-storage: 0.3", ("ephemeral-storage", 1)),
        ("example.org/thing: 3", ("example.org/thing", 3)),
        ("memory: 100E", ("memory", 1 << 53)),
    ],
)
def test_parts_of_a_unit_are_rounded_up(add, asked, counts):
    (workload,) = add(pod("containers: [{resources: {requests: {" + asked + "}}}]"))
    assert workload.tasks[0].spec.requests == (counts,)


def test_parts_are_added_up_before_they_are_rounded(add):
    half = "{resources: {requests: {memory: 500m}}}"
    (workload,) = add(pod(f"containers: [{half}, {half}, {half}], overhead: {{memory: 600m}}"))
    assert workload.tasks[0].spec.requests == (("memory", 3),)


def test_workloads_and_manifests_may_stand_in_one_file(add):
    added = add("workloads: [{name: w, queue: b}]\n---\n" + pod("containers: [{}]"))
    assert [workload.name for workload in added] == ["w", "p"]


@pytest.mark.parametrize(
    ("text", "line", "path", "words"),
    [
        (
            "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}",
            2,
            "kind",
            "'DaemonSet' of 'apps/v1' cannot be added",
        ),
        ("apiVersion: v1\nkind: Job", 2, "kind", "cannot be added"),
        ("nodes: []", 1, "", "workloads: […] or the manifest of a Pod or Job is expected"),
        ("- 1", 1, "", "is a list, but workloads"),
        ("kind: Cluster\nnodes: []\nworkloads: []", 2, "nodes", "unknown key"),
        ("workloads: []", 0, "", "adds nothing"),
        ("\nworkloads:\n- {name: taken, queue: b}", 3, "workloads[0].name", "default/taken is there twice"),
        ("workloads:\n- {name: w, queue: a}", 2, "workloads[0].queue", "leaf queues only"),
        (
            "workloads:\n- {name: w, queue: b, tasks: [{name: t, node: m}]}",
            2,
            "workloads[0].tasks[0].node",
            "no node m",
        ),
        (pod("containers: [{}]", "name: p, labels: {queue: c}"), 1, "", "there is no queue c"),
        (pod("containers: [{}]", "name: taken"), 1, "", "is there twice"),
        (pod("containers: []"), 1, "spec.containers", "at least one container"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: p}", 1, "spec", "is missing"),
        (pod("containers: [{}]", "labels: {}"), 1, "metadata.name", "is missing"),
        (pod("containers: [{}], nodeName: n"), 1, "spec.nodeName", "past any scheduler"),
        (pod("containers: [{}], priorityClassName: high"), 1, "spec.priorityClassName", "add its value as priority: N"),
        (
            pod("containers: [{resources: {requests: {cpu: 1K}}}]"),
            1,
            "spec.containers[0].resources.requests.cpu",
            "not a quantity",
        ),
        (
            pod("containers: [{}]", "name: p, annotations: {tenure.dev/gpu-fraction: much}"),
            1,
            "metadata.annotations.tenure.dev/gpu-fraction",
            "not a quantity",
        ),
        (
            pod("containers: [{}]", "name: p, annotations: {tenure.dev/gpu-fraction: '2'}"),
            1,
            "metadata.annotations.gpuFraction",
            "1m to 1000m",
        ),
        (
            "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {parallelism: 0, template: {}}",
            4,
            "spec",
            "makes no pods",
        ),
        ("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {}", 4, "spec.template", "is missing"),
        (
            (
                "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n"
                "spec: {parallelism: 300001, template: {spec: {containers: [{}]}}}"
            ),
            4,
            "spec",
            "makes more than 300,000 tasks of this file",
        ),
        (
            "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {parallelism: all, template: {}}",
            4,
            "spec.parallelism",
            "a whole number",
        ),
        ("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}", 1, "spec.template", "is missing"),
        (
            (
                "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: t}\n"
                "spec: {pytorchReplicaSpecs: {Worker: {template: {spec: {containers: []}}}}}"
            ),
            4,
            "spec.pytorchReplicaSpecs.Worker.template.spec.containers",
            "at least one container",
        ),
        (
            "apiVersion: sparkoperator.k8s.io/v1beta2\nkind: SparkApplication\nmetadata: {name: s}\nspec: {}",
            4,
            "spec",
            "holds no template",
        ),
        ("apiVersion: tenure.dev/v1alpha1\nkind: WorkloadKind\nspec: {kind: A}", 3, "spec.version", "is missing"),
        ("apiVersion: v1\nkind: List\nitems:\n- 5", 4, "items[0]", "is 5"),
    ],
)
def test_what_cannot_be_added_is_named_with_its_place(refuse, text, line, path, words):
    problems = refuse(text)
    assert (line, path) in [problem[:2] for problem in problems], problems
    assert any(words in problem[2] for problem in problems), problems


def test_pods_of_a_group_name_one_queue(refuse):
    text = "\n---\n".join(
        pod("containers: [{}]", f"name: p{i}, labels: {{tenure.dev/pod-group: g, queue: {queue}}}")
        for i, queue in enumerate(["b", "default"])
    )
    assert refuse(text) == [
        (3, "metadata.labels", "names queue default, but its group g began with b; name one for all")
    ]


CLASS = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: careful, annotations: {yunikorn.apache.org/allow-preemption: "false", owner: somebody}}
value: 700
"""
OPT_OUT = "yunikorn.apache.org/allow-preemption"


def test_a_priority_class_gives_its_value_and_its_opt_out_to_its_pods(add):
    """Wherever in the file it stands; what else is annotated on it is its own business."""
    named = pod("containers: [{}], priorityClassName: careful")
    for text in (f"{named}\n---\n{CLASS}", f"{CLASS}\n---\n{named}"):
        (workload,) = add(text)
        assert workload.priority == 700
        assert workload.tasks[0].annotations == {OPT_OUT: "false"}


def test_a_pod_s_own_annotation_and_priority_count_before_those_of_its_class(add):
    own = pod(
        "containers: [{}], priorityClassName: careful, priority: 3",
        f"name: p, annotations: {{{OPT_OUT}: 'true'}}",
    )
    (workload,) = add(f"{CLASS}\n---\n{own}")
    assert workload.priority == 3
    assert workload.tasks[0].annotations == {OPT_OUT: "true"}


def test_a_priority_class_holds_for_the_pods_of_a_job(add):
    job = (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n"
        "spec: {parallelism: 2, template: {spec: {containers: [{}], priorityClassName: careful}}}"
    )
    (workload,) = add(f"{CLASS}\n---\n{job}")
    assert workload.priority == 700
    assert [t.annotations for t in workload.tasks] == [{OPT_OUT: "false"}] * 2


def test_one_role_for_which_nothing_is_evicted_is_enough(add):
    """As on a cluster, where one pod of a workload says it for all, whatever the others say."""
    roles = "".join(
        f"{name}: {{template: {{spec: {{containers: [{{}}], preemptionPolicy: {policy}}}}}}}, "
        for name, policy in (("Master", "PreemptLowerPriority"), ("Worker", "Never"))
    )
    (workload,) = add(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: t}\n"
        f"spec: {{pytorchReplicaSpecs: {{{roles}}}}}"
    )
    assert workload.preemption_policy == "Never"


def test_what_one_pod_of_a_group_is_annotated_with_holds_for_it_alone(add):
    """What all of them say is said of the group, as on a cluster."""
    label = "labels: {tenure.dev/pod-group: g}"
    own = f"name: p0, {label}, annotations: {{{OPT_OUT}: 'false', note: x}}"
    text = f"{pod('containers: [{}]', own)}\n---\n" + pod(
        "containers: [{}]", f"name: p1, {label}, annotations: {{note: x}}"
    )
    (workload,) = add(text)
    assert workload.annotations == {"note": "x"}
    assert [OPT_OUT in task.annotations for task in workload.tasks] == [True, False]


def test_the_global_default_holds_for_pods_that_name_no_class(add):
    (workload,) = add(f"{CLASS}globalDefault: true\n---\n{pod('containers: [{}]')}")
    assert workload.priority == 700
    assert workload.tasks[0].annotations == {OPT_OUT: "false"}


@pytest.mark.parametrize(
    ("text", "part", "message"),
    [
        (CLASS.replace("value: 700", ""), "value", "is missing"),
        (CLASS.replace("name: careful, ", ""), "metadata.name", "is missing"),
        (CLASS.replace("value: 700", "value: much"), "value", "much"),
        (f"{CLASS}---{CLASS}", "metadata.name", "is there twice"),
        (CLASS, "", "adds nothing"),
    ],
)
def test_a_priority_class_that_is_wrong_is_told_with_its_place(add, text, part, message):
    with pytest.raises(InvalidInputError) as caught:
        add(text)
    assert any(p.path == part and message in str(p) for p in caught.value.problems), caught.value.problems


def test_many_wrong_documents_are_told_of_in_one_pass_and_counted_beyond_a_thousand(tmp_path, cluster):
    """Each with its own line; where thousands are wrong the rest is a number."""
    pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{n}}}\nspec: {{bottles: []}}\n"
    file = tmp_path / "pods.yaml"
    file.write_text("".join(pod.format(n=n) for n in range(1_500)))
    with pytest.raises(InvalidInputError) as raised:
        load_additions(file, cluster)
    told = raised.value.problems
    assert len(told) == 1_001
    assert [problem.line for problem in told[:3]] == [5, 10, 15]
    assert told[999].line == 5_000
    assert told[-1].message == "500 further problems are not shown"


TEMPLATE = "{spec: {containers: [{resources: {limits: {nvidia.com/gpu: 2}}}]}}"
OWNERS = {
    "PyTorchJob": (
        (
            "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: t, labels: {queue: b}}\n"
            "spec: {elasticPolicy: {minReplicas: 1}, pytorchReplicaSpecs: "
            f"{{Master: {{template: {TEMPLATE}}}, Worker: {{replicas: 2, template: {TEMPLATE}}}}}}}"
        ),
        {"t": (2, ["t-master-0", "t-worker-0", "t-worker-1"])},
    ),
    "LeaderWorkerSet": (
        (
            "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: t, labels: {queue: b}}\n"
            f"spec: {{replicas: 2, leaderWorkerTemplate: {{size: 3, workerTemplate: {TEMPLATE}}}}}"
        ),
        {f"t-{n}": (3, [f"t-{n}-leader-0", f"t-{n}-worker-0", f"t-{n}-worker-1"]) for n in range(2)},
    ),
    "Deployment": (
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: t, labels: {queue: b}}\n"
            f"spec: {{replicas: 2, template: {TEMPLATE}}}"
        ),
        {"t-0": (None, ["t-0"]), "t-1": (None, ["t-1"])},
    ),
    "RayCluster": (
        (
            "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: t, labels: {queue: b}}\n"
            f"spec: {{headGroupSpec: {{template: {TEMPLATE}}}, workerGroupSpecs: "
            f"[{{groupName: g, replicas: 2, template: {TEMPLATE}}}]}}"
        ),
        {"t": (3, ["t-head-0", "t-g-0", "t-g-1"])},
    ),
    "RayCluster whose groups have the numbers that KubeRay gives them": (
        (
            "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: t, labels: {queue: b}}\n"
            f"spec: {{headGroupSpec: {{template: {TEMPLATE}}}, workerGroupSpecs: ["
            f"{{groupName: none, template: {TEMPLATE}}}, {{groupName: least, minReplicas: 1, template: {TEMPLATE}}}, "
            f"{{groupName: most, replicas: 9, maxReplicas: 2, template: {TEMPLATE}}}, "
            f"{{groupName: both, replicas: 1, minReplicas: 3, maxReplicas: 1, template: {TEMPLATE}}}, "
            f"{{groupName: asleep, replicas: 4, suspend: true, template: {TEMPLATE}}}]}}"
        ),
        {"t": (5, ["t-head-0", "t-least-0", "t-most-0", "t-most-1", "t-both-0"])},
    ),
    "AppWrapper": (
        (
            "apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata: {name: t, labels: {queue: b}}\n"
            "spec: {components: [{template: {apiVersion: batch/v1, kind: Job, metadata: {name: j}, "
            f"spec: {{parallelism: 2, template: {TEMPLATE}}}}}}}]}}"
        ),
        {"t": (2, ["t-0", "t-1"])},
    ),
    "a kind that is described beside it": (
        (
            "apiVersion: tenure.dev/v1alpha1\nkind: WorkloadKind\nmetadata: {name: farms}\n"
            "spec: {group: e.org, version: v1, kind: Farm, roles: [{replicas: .spec.rows, template: [.spec.plant]}]}\n"
            "---\n"
            f"apiVersion: e.org/v1\nkind: Farm\nmetadata: {{name: t, labels: {{queue: b}}}}\n"
            f"spec: {{rows: 2, plant: {TEMPLATE}}}"
        ),
        {"t": (2, ["t-0", "t-1"])},
    ),
}


@pytest.mark.parametrize("kind", OWNERS)
def test_what_owns_pods_is_added_as_a_cluster_would_read_it(add, kind):
    """Roles, how many of them start together, and one workload or several: as on a live cluster."""
    text, made = OWNERS[kind]
    added = add(text)
    assert {w.name: (w.min_member, [t.name for t in w.tasks]) for w in added} == made
    assert {t.spec.requests for w in added for t in w.tasks} == {(("nvidia.com/gpu", 2),)}


@pytest.mark.parametrize("order", ["AnyOrder", "InOrder"])
def test_a_job_set_is_added_with_its_subgroups(add, order):
    """Also with those that come later: there has to be room for all of it."""
    jobs = "".join(
        f"\n  - {{name: {name}, template: {{spec: {{parallelism: {count}, template: {TEMPLATE}}}}}}}"
        for name, count in (("a", 1), ("b", 2))
    )
    (made,) = add(
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s, labels: {queue: b}}\n"
        f"spec:\n  startupPolicy: {{startupPolicyOrder: {order}}}\n  replicatedJobs:{jobs}"
    )
    assert [(g.name, g.min_member) for g in made.sub_groups] == [("a", 1), ("b", 2)]
    assert [(t.name, t.sub_group) for t in made.tasks] == [("s-a-0", "a"), ("s-b-0", "b"), ("s-b-1", "b")]
