"""What ``tenure install`` prints, applied to a real API server by ``kubectl`` as it is."""

import subprocess
import time
from functools import cache

import pytest
import yaml
from tests import preloaded
from tools.controlplane.client import ApiError
from tools.controlplane.plane import ControlPlane, Options
from tools.controlplane.process import wait_for

from tenure.cli.console import console
from tenure.cli.install import install
from tenure.cli.scheduler import scheduler
from tenure.clusters.kubernetes.install.rbac import Role, granted, own_namespace_rights
from tenure.model.file.load import load_file
from tenure.model.settings import Settings

ACCOUNT = "tenure-system/tenure"
OPTIONS = {
    Role.SCHEDULER: [
        "--service-monitor",
        "--yunikorn-config=yunikorn/yunikorn-configs",
        "--replicas=3",
        "--scheduler-name=kai-scheduler",
    ],
    Role.READ_ONLY: ["--read-only", "--replicas=1"],
}
SERVICE_MONITORS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": {"kind": "ServiceMonitor", "plural": "servicemonitors"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def tenure(*arguments):
    return preloaded.run(arguments, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def printed(*options):
    run = tenure("install", *options)
    assert run.returncode == 0, run.stderr
    return run.stdout


def put_printed(plane, *options):
    """Apply what is printed, and give it; without ``kubectl``, which takes the processor longer than all else."""
    text = printed(*options)
    plane.apply(*yaml.load_all(text, yaml.CSafeLoader))
    return text


def find(text, kind, name="tenure"):
    return next(o for o in yaml.load_all(text, yaml.CSafeLoader) if o["kind"] == kind and o["metadata"]["name"] == name)


@pytest.fixture(scope="module")
def plane(programs, tmp_path_factory):
    assert programs.exists()
    with ControlPlane(tmp_path_factory.mktemp("install"), Options(scheduler=True)) as plane:
        plane.add_namespace("yunikorn")
        plane.apply(SERVICE_MONITORS)
        plane.kubectl("wait", "--for=condition=Established", "crd", SERVICE_MONITORS["metadata"]["name"])
        for number in range(3):
            plane.add_node(f"node-{number}", {"cpu": "8", "memory": "32Gi"})
        yield plane


@pytest.mark.parametrize("role", Role)
def test_kubectl_applies_it_unchanged_and_again(plane, role):
    """The API server takes every object with all its fields, applying again changes none, and the pods start."""
    text = printed(*OPTIONS[role])
    plane.kubectl("apply", "--validate=strict", "-f", "-", given=text)
    assert plane.kubectl("diff", "-f", "-", given=text) == ""  # the API server goes through an apply for that
    plane.kubectl("-n", "tenure-system", "rollout", "status", "deployment/tenure", "--timeout=60s")
    replicas = find(text, "Deployment")["spec"]["replicas"]
    pods = plane.client().get("/api/v1/namespaces/tenure-system/pods?labelSelector=app.kubernetes.io%2Fname%3Dtenure")
    running = [pod for pod in pods["items"] if "deletionTimestamp" not in pod["metadata"]]
    assert len({pod["spec"]["nodeName"] for pod in running}) >= min(replicas, 2)
    assert all(pod["spec"]["priority"] == 1_000_000_000 for pod in running)


def test_each_pool_has_a_deployment_of_its_own(plane):
    """A second pool's installation stands beside the first: each pool has its own names, and they share the rest."""
    put_printed(plane)
    before = plane.client().get("/apis/apps/v1/namespaces/tenure-system/deployments/tenure")
    text = put_printed(plane, "--pool", "gpu", "--service-monitor")
    plane.kubectl("-n", "tenure-system", "rollout", "status", "deployment/tenure-gpu", "--timeout=60s")
    after = plane.client().get("/apis/apps/v1/namespaces/tenure-system/deployments/tenure")
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    (container,) = find(text, "Deployment", "tenure-gpu")["spec"]["template"]["spec"]["containers"]
    assert "--pool=gpu" in container["args"]
    assert scheduler.make_context("scheduler", container["args"][1:]).params["pool"] == "gpu"
    budgets = plane.client().get("/apis/policy/v1/namespaces/tenure-system/poddisruptionbudgets")["items"]
    wait_for(
        lambda: [expected_pods(plane, b["metadata"]["name"]) for b in budgets] == [2, 2],
        "budgets that overlap in no pod",
    )
    monitored = find(text, "ServiceMonitor", "tenure-gpu")["spec"]["selector"]["matchLabels"]
    assert monitored.items() <= find(text, "Service", "tenure-gpu")["metadata"]["labels"].items()


def expected_pods(plane, budget):
    path = f"/apis/policy/v1/namespaces/tenure-system/poddisruptionbudgets/{budget}"
    return plane.client().get(path)["status"]["expectedPods"]


def test_the_namespace_refuses_pods_that_are_not_restricted(plane):
    """The namespace holds its pods to the restricted standard, which Tenure's own pods meet."""
    put_printed(plane)
    spec = {"containers": [{"name": "c", "image": "x"}], "hostNetwork": True}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "root"}, "spec": spec}
    with pytest.raises(ApiError, match='violates PodSecurity "restricted'):
        plane.client().create("/api/v1/namespaces/tenure-system/pods", pod)


@pytest.mark.parametrize("role", Role)
def test_the_account_may_do_what_is_listed_and_nothing_else(plane, role):
    """The service account may do what the table of rights lists for the installation, and no other verb on it."""
    put_printed(plane, *OPTIONS[role])
    put_printed(plane, "--pool", "other")
    rights = set(granted(role))
    own = [
        (r.group, resource, verb, r.names)
        for r in own_namespace_rights("default")
        for resource in r.resources
        for verb in r.verbs
    ]
    namespaced = {(group, resource) for group, resource, _, _ in own}
    named = {(group, resource, verb): names[-1] for group, resource, verb, names in own if names}
    client = plane.client(plane.token_of("tenure", "tenure-system"))
    allowed = {
        (group, resource, verb)
        for group, resource in {(group, resource) for known in Role for group, resource, _ in granted(known)}
        for verb in ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
        if may(
            client,
            group,
            resource,
            verb,
            "tenure-system" if (group, resource) in namespaced else None,
            named.get((group, resource, verb), ""),
        )
    }
    assert allowed == rights
    for group, resource, verb in set(named) & rights:  # on its own objects, and on no other beside them
        assert not may(client, group, resource, verb, "tenure-system", "another")
        assert not may(client, group, resource, verb, "tenure-system")
    for other in (
        ("", "secrets", "list"),
        ("", "configmaps", "list"),
        ("rbac.authorization.k8s.io", "roles", "create"),
    ):
        assert not may(client, *other, None)
    assert not may(client, "coordination.k8s.io", "leases", "update", "kube-system")


def test_the_account_of_a_pool_has_the_rights_of_its_own_installation(plane):
    """A read-only pool takes nothing from another, and gets nothing of it; neither writes what the other keeps."""
    put_printed(plane)
    put_printed(plane, "--pool", "quiet", "--read-only")
    acts, looks = (plane.client(plane.token_of(name, "tenure-system")) for name in ("tenure", "tenure-quiet"))
    assert [may(one, "", "pods/eviction", "create", None) for one in (acts, looks)] == [True, False]
    assert [may(one, "", "pods", "watch", None) for one in (acts, looks)] == [True, True]
    for pool, allowed in (("default", [True, False]), ("quiet", [False, True])):
        lease = ("coordination.k8s.io", "leases", "update", "tenure-system", f"tenure-scheduler-{pool}")
        assert [may(one, *lease) for one in (acts, looks)] == allowed


MAPS = "/api/v1/namespaces/tenure-system/configmaps"


def test_a_pool_of_several_makes_no_config_map_of_another_and_writes_on_pods(plane):
    """The policies know the account of each pool: it creates its own pages alone, and is no tenant."""
    plane.add_namespace("others")
    for pool in ("gpu", "gpu-old"):
        put_printed(plane, "--pool", pool)
    client, old = (plane.client(plane.token_of(name, "tenure-system")) for name in ("tenure-gpu", "tenure-gpu-old"))

    def made(by, name):
        try:
            by.create(f"{MAPS}?dryRun=All", {"metadata": {"name": name}})
        except ApiError as error:
            return "ValidatingAdmissionPolicy 'tenure-maps'" not in str(error)
        return True

    wait_for(lambda: not made(client, "tenure-queues-default"), "the policy to hold")
    names = ("tenure-evictions-gpu-0", "tenure-queues-gpu", "tenure-moves-gpu", "tenure-evictions-gpu-old-0",
             "tenure-queues-gpu-old", "tenure-evictions-default-0", "tenure", "tenure-evictions-gpu-x")  # fmt: skip
    assert [name for name in names if made(client, name)] == list(names[:3])
    assert [name for name in names if made(old, name)] == ["tenure-evictions-gpu-old-0", "tenure-queues-gpu-old"]
    pods = "/api/v1/namespaces/others/pods"
    plane.client().create(pods, {"metadata": {"name": "one"}, "spec": {"containers": [{"name": "c", "image": "x"}]}})
    plane.kubectl("-n", "others", "create", "serviceaccount", "tenure-gpu")
    plane.kubectl(
        "create", "clusterrolebinding", "not-it", "--clusterrole=tenure:gpu", "--serviceaccount=others:tenure-gpu"
    )
    stranger = plane.client(plane.token_of("tenure-gpu", "others"))

    def refused():
        try:
            stranger.patch(f"{pods}/one/status", nominated())
        except ApiError as error:
            return "only Tenure writes the annotations" in str(error)
        return False

    wait_for(refused, "the policy to hold for an account of that name elsewhere")
    client.patch(f"{pods}/one/status", nominated())
    assert refused()


def nominated():
    """Give what only Tenure writes, another value each time."""
    return {"metadata": {"annotations": {"tenure.dev/nomination": str(time.monotonic_ns())}}}


def may(client, group, resource, verb, namespace, named=""):
    name, _, subresource = resource.partition("/")
    attributes = {
        "group": group, "resource": name, "subresource": subresource, "verb": verb, "namespace": namespace,
        "name": named,
    }  # fmt: skip
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    return client.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)["status"]["allowed"]


def test_who_edits_a_namespace_edits_its_pod_groups(plane):
    """The roles edit and view, which every cluster has, cover pod groups; queues stay with the administrators."""
    put_printed(plane)
    plane.add_namespace("team")
    for word in ("edit", "view"):
        plane.kubectl("-n", "team", "create", "serviceaccount", word)
        plane.kubectl(
            "-n", "team", "create", "rolebinding", word, f"--clusterrole={word}", f"--serviceaccount=team:{word}"
        )
    edit, view = (plane.client(plane.token_of(word, "team")) for word in ("edit", "view"))
    wait_for(lambda: may(edit, "tenure.dev", "podgroups", "create", "team"), "the aggregation of roles")
    assert may(view, "tenure.dev", "podgroups", "list", "team")
    assert not may(view, "tenure.dev", "podgroups", "create", "team")
    assert not may(edit, "tenure.dev", "podgroups", "create", "default")
    assert not may(edit, "tenure.dev", "queues", "create", None)


def test_yunikorn_config_are_read_from_that_one_config_map(plane):
    """With YuniKorn's ConfigMap named, that one may be read and no other."""
    put_printed(plane, *OPTIONS[Role.SCHEDULER])
    client = plane.client(plane.token_of("tenure", "tenure-system"))
    path = "/api/v1/namespaces/yunikorn/configmaps"
    assert client.get(f"{path}?fieldSelector=metadata.name%3Dyunikorn-configs")["items"] == []
    for refused in (path, f"{path}?fieldSelector=metadata.name%3Dkube-root-ca.crt", f"{path}/kube-root-ca.crt"):
        with pytest.raises(ApiError, match="403"):
            client.get(refused)


def test_settings_go_into_the_config_map(tmp_path):
    """The ConfigMap holds the settings that were given; read-only, every cause is in shadow whatever they say."""
    given = tmp_path / "config.yaml"
    given.write_text(
        "kind: SchedulerConfig\nscheduler: {reclaimMinRuntime: 1h, modes: {reclaim: enforce, requeue: 'off'}}\n"
    )
    for options, modes in (([], {"reclaim": "enforce", "requeue": "off"}), (["--read-only"], "all in shadow")):
        text = printed("--config", str(given), *options)
        written = tmp_path / "written.yaml"
        written.write_text(find(text, "ConfigMap")["data"]["config.yaml"])
        settings = load_file(written)
        assert isinstance(settings, Settings)
        assert settings.reclaim_min_runtime == 3_600_000_000
        if options:
            assert set(settings.modes.values()) == {"shadow"}
            assert len(settings.modes) == 7
        else:
            assert settings.modes == modes


@pytest.mark.parametrize("role", Role)
def test_the_scheduler_takes_the_arguments_of_its_container(role):
    """The container runs ``tenure scheduler`` with options that it has."""
    (container,) = find(printed(*OPTIONS[role]), "Deployment")["spec"]["template"]["spec"]["containers"]
    command, *arguments = container["args"]
    assert command == "scheduler"
    given = scheduler.make_context("scheduler", arguments).params
    assert given["config"] == "/etc/tenure/config.yaml"
    assert given["read_only"] == (role is Role.READ_ONLY)
    assert given["schedulers"] == (("kai-scheduler",) if role is Role.SCHEDULER else ())


def test_the_console_decides_by_what_the_scheduler_decides_by():
    """It has the same settings, queues and schedulers' names, and may read them: else it shows another plan."""
    text = printed("--console", "--kueue-queues", *OPTIONS[Role.SCHEDULER])
    given = {}
    for name, command in (("tenure", scheduler), ("tenure-console", console)):
        spec = find(text, "Deployment", name)["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        given[name] = command.make_context(name, container["args"][1:]).params
        (config,) = (v["configMap"]["name"] for v in spec["volumes"] if v["name"] == "config")
        assert config == "tenure"
        assert {"name": "config", "mountPath": "/etc/tenure", "readOnly": True} in container["volumeMounts"]
    same = ("config", "pool", "yunikorn", "schedulers", "kueue_queues")
    assert [given["tenure"][key] for key in same] == [given["tenure-console"][key] for key in same]
    read, may_read = (
        {
            (group, resource)
            for rule in find(text, "ClusterRole", name)["rules"]
            if "watch" in rule["verbs"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
        for name in ("tenure", "tenure-console")
    )
    assert read == may_read


@pytest.mark.parametrize("pool", ["n", "1e3"])
def test_a_pool_that_looks_like_no_text_is_text_all_the_same(plane, pool):
    """What kubectl reads has more words for truth values and numbers than Python has: each label is text to it."""
    put_printed(plane)
    told = plane.kubectl("apply", "--dry-run=server", "-f", "-", given=printed("--pool", pool))
    assert f"deployment.apps/tenure-{pool} created (server dry run)" in told


EACH = {
    "namespace": ["other"], "pool": ["gpu"], "image": ["r.example/tenure:2"], "replicas": ["3"], "config": ["{config}"],
    "read-only": [], "yunikorn-config": ["yunikorn/configs"], "scheduler-name": ["kai-scheduler"], "console": [],
    "console-host": ["console.example", "--console"], "share-gpus": [], "kueue-queues": [],
    "prometheus": ["http://prometheus:9090"], "history-secret": ["history/url"],
    "history-port": ["6432", "--history-secret=history/url"],
    "history-volume": ["10Gi", "--replicas=1"], "pull-secret": ["registry"], "priority-class": ["high"],
    "no-network-policy": [], "service-monitor": [],
}  # fmt: skip
"""A value for each option, and what it takes beside it."""


def test_each_option_changes_what_is_printed(tmp_path):
    """None is passed over, neither by itself nor beside what it takes."""
    assert {max((*p.opts, *p.secondary_opts), key=len).removeprefix("--") for p in install.params} == EACH.keys()
    config = tmp_path / "config.yaml"
    config.write_text("kind: SchedulerConfig\nscheduler: {reclaimMinRuntime: 1h}\n")
    plain = cache(printed)
    for name, values in EACH.items():
        value, beside = values[:1], values[1:]
        given = [f"--{name}", *(text.format(config=config) for text in value), *beside]
        assert printed(*given) != plain(*beside), name


def test_the_network_policy_opens_the_port_of_the_server_with_the_history():
    """It cannot be read off the address, which is in a Secret of the cluster."""
    for given, port in (((), 5432), (("--history-port=6432",), 6432)):
        text = printed("--history-secret=history/url", *given)
        (policy,) = [o for o in yaml.load_all(text, yaml.CSafeLoader) if o["kind"] == "NetworkPolicy"]
        assert {p["port"] for rule in policy["spec"]["egress"] for p in rule["ports"]} & {5432, 6432} == {port}


def test_no_two_objects_have_one_name():
    """What is applied second would take the place of the first."""
    text = printed("--console", "--share-gpus", "--pool=gpu", *OPTIONS[Role.SCHEDULER])
    names = [
        (o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"])
        for o in yaml.load_all(text, yaml.CSafeLoader)
    ]
    assert len(set(names)) == len(names)


def test_bad_options_are_refused_with_a_remedy(tmp_path):
    """A mistake in the options is told in a sentence; nothing is printed that could be applied."""
    wrong = tmp_path / "config.yaml"
    wrong.write_text("kind: SchedulerConfig\nscheduler: {reclaimMinRuntime: 1}\n")
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("now: 2026-11-20T10:00:00Z\n")
    for options, words in (
        (["--yunikorn-config", "yunikorn"], "NAMESPACE/NAME is expected"),
        (["--config", str(wrong)], "1 has no unit; write 1s"),
        (["--config", str(cluster)], "is no SchedulerConfig"),
        (["--namespace", "Not A Name"], "is no name that Kubernetes takes"),
        (["--image", ""], "is empty"),
        (["--pool", "console"], "named like the console's"),
        (["--pull-secret", "Mine"], "--pull-secret is 'Mine', which is no name that Kubernetes takes"),
        (["--priority-class", ""], "--priority-class is '', which is no name that Kubernetes takes"),
        (["--scheduler-name", "kai-scheduler", "--scheduler-name", "it's"], '--scheduler-name is "it\'s"'),
        (["--console", "--console-host", "https://console.example"], "--console-host is 'https://console.example'"),
        (["--history-secret", "history/an address"], "NAME/KEY is expected, such as tenure-history/url"),
        (["--history-port", "6432"], "add --history-secret, or leave it out"),
        (["--history-port", "6432", "--history-volume", "1Gi", "--replicas", "1"], "add --history-secret"),
        (["--history-port", "0", "--history-secret", "history/url"], "0 is not in the range 1<=x<=65535"),
        (["--yunikorn-config", "yunikorn/Configs"], "NAMESPACE/NAME is expected"),
    ):
        run = tenure("install", *options)
        assert (run.returncode != 0, run.stdout) == (True, ""), options
        assert words in run.stderr, run.stderr
        assert "Traceback" not in run.stderr


@pytest.fixture(scope="module")
def editor(plane):
    """Give the token of an account that edits a namespace, ``plain``."""
    plane.add_namespace("plain")
    plane.kubectl("-n", "plain", "create", "serviceaccount", "edit")
    plane.kubectl("-n", "plain", "create", "rolebinding", "edit", "--clusterrole=edit", "--serviceaccount=plain:edit")
    return plane.token_of("edit", "plain")


def test_definitions_that_go_first_keep_no_pod_from_being_made(plane, editor):
    """Pods are made as before where the definition of queues is deleted before the policies, by every account.

    An API server that starts then has never known the kind. It is the last test here that asks this one for anything.
    """
    put_printed(plane)
    clients = plane.client(), plane.client(editor)
    body = {"metadata": {"name": "one"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    pods, queues = "/api/v1/namespaces/plain/pods?dryRun=All", "/apis/tenure.dev/v1beta1/queues"
    plane.kubectl("delete", "crd", "queues.tenure.dev")
    wait_for(lambda: not plane.client().exists(queues), "the kind to be gone")
    plane.restart_apiserver()
    until = time.monotonic() + 3
    while time.monotonic() < until:
        for client in clients:
            client.create(pods, body)
        time.sleep(0.2)
