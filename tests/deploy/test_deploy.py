"""The Helm chart, the kustomize base and ``tenure install``: three ways to the same objects."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tools.controlplane import build
from tools.controlplane.process import SPARING
from tools.deploy import kustomize
from tools.deploy.write import DEPLOY, files

from tenure.clusters.kubernetes.install.console import console_objects
from tenure.clusters.kubernetes.install.installation import HistorySecret, HistoryVolume, Installation, PodOptions
from tenure.clusters.kubernetes.install.manifests import objects
from tenure.clusters.kubernetes.install.rbac import Role

CHART = DEPLOY / "helm" / "tenure"
NAMESPACE = "tenure-system"
VERSION = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
PLAIN = Installation(image=f"tenure:{VERSION}", pod=PodOptions(pull_policy="IfNotPresent"))
MOVES = {"rescheduler": {"schedulers": ["default-scheduler"]}}
MEASURES = {"rescheduler": {"hotNodes": {"enabled": True}}, "reclaimMinRuntime": "1h"}
TOLERATED = [{"key": "a", "operator": "Exists"}]
VARIABLES = [{"name": "TZ", "value": "Europe/Berlin"}]
POD = PodOptions(
    resources={"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"memory": "4Gi"}},
    annotations={"a": "b"}, labels={"team": "infra"}, node_selector={"c": "d"},
    tolerations=TOLERATED, pull_secrets=[{"name": "registry"}], pull_policy="Always", env=VARIABLES,
    arguments=["--log-format=text"],
)  # fmt: skip

CASES = {
    "plain": ({}, PLAIN),
    "one replica": ({"replicas": 1}, replace(PLAIN, replicas=1)),
    "high availability": ({"replicas": 5}, replace(PLAIN, replicas=5)),
    "read-only beside another scheduler": (
        {"readOnly": True, "schedulerNames": ["kai-scheduler", "other"], "scheduler": MOVES},
        replace(PLAIN, role=Role.READ_ONLY, schedulers=("kai-scheduler", "other"), config=MOVES),
    ),
    "moves pods of other schedulers": ({"scheduler": MOVES}, replace(PLAIN, config=MOVES)),
    "asks what is in use": (
        {"scheduler": MEASURES, "readOnly": True}, replace(PLAIN, config=MEASURES, role=Role.READ_ONLY),
    ),
    "parts of GPUs": ({"shareGpus": True}, replace(PLAIN, share_gpus=True)),
    "queues of Kueue": ({"kueueQueues": True}, replace(PLAIN, kueue_queues=True)),
    "asks Prometheus": (
        {"prometheus": "http://prometheus.monitoring:9090"}, replace(PLAIN, prometheus="http://prometheus.monitoring:9090"),
    ),
    "queues of YuniKorn": (
        {"yunikorn": {"namespace": "yk", "configMap": "yk-configs"}, "schedulerNames": ["yunikorn"]},
        replace(PLAIN, yunikorn=("yk", "yk-configs"), schedulers=("yunikorn",)),
    ),
    "a further pool": (
        {"pool": "gpu", "serviceMonitor": {"enabled": True}}, replace(PLAIN, pool="gpu", service_monitor=True),
    ),
    "a history on a server": (
        {"history": {"secret": {"name": "pg", "key": "address", "port": 5433}}},
        replace(PLAIN, history=HistorySecret(name="pg", key="address", port=5433)),
    ),
    "a history on a volume": (
        {"replicas": 1, "history": {"volume": {"enabled": True, "size": "5Gi", "storageClass": "fast"}}},
        replace(PLAIN, replicas=1, history=HistoryVolume(size="5Gi", storage_class="fast")),
    ),
    "no network policy and a priority class of the cluster's": (
        {"networkPolicy": {"enabled": False}, "priorityClass": {"create": False, "name": "high"}},
        replace(PLAIN, network_policy=False, priority_class="high"),
    ),
    "pods as the cluster wants them": (
        {
            "image": {"repository": "r.example/tenure", "digest": "sha256:" + "0" * 64, "pullPolicy": "Always",
                      "pullSecrets": [{"name": "registry"}]},
            "resources": POD.resources, "podAnnotations": POD.annotations, "podLabels": POD.labels,
            "nodeSelector": POD.node_selector, "tolerations": TOLERATED, "extraEnv": VARIABLES,
            "extraArgs": POD.arguments,
        },
        replace(PLAIN, image="r.example/tenure@sha256:" + "0" * 64, pod=POD),
    ),
}  # fmt: skip
"""Values of the chart, and the installation that they ask for."""

CONSOLES = {"plain": (), "queues of YuniKorn": ("console.example",), "a history on a server": ("a", "b")}


@pytest.fixture(scope="session")
def helm():
    if not build.HELM.is_built:
        pytest.skip("no Helm here: run 'make helm' (needs Go 1.26) to have these tests run")
    return build.build(build.HELM) / "helm"


def done(command):
    """Give how a program of Go's ended, which collects garbage rarely."""
    environment = {**SPARING, **os.environ}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def template(helm, tmp_path, values, *options):
    """Give what the chart makes of values, and what Helm says against them."""
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump(values))
    command = [str(helm), "template", "tenure", str(CHART), "--namespace", NAMESPACE, "--values", str(path), *options]
    run = done(command)
    return run.stdout, run.stderr


def documents(text):
    """Read what a chart makes; by libyaml where that is there, as it is long."""
    return yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def compared(listed):
    """Give objects by what they are called, without what only a release of Helm says, and settings as they are read."""
    found = {}
    for item in listed:
        meta = item["metadata"]
        if (meta.get("annotations") or {}).pop("helm.sh/resource-policy", None) and not meta["annotations"]:
            del meta["annotations"]
        if item["kind"] == "ConfigMap":
            item["data"] = {name: yaml.safe_load(text) for name, text in item["data"].items()}
        key = (item["kind"], meta.get("namespace"), meta["name"])
        assert key not in found
        found[key] = item
    return found


def asked_for(installation, hosts=None):
    made = [*objects(installation), *([] if hosts is None else console_objects(installation, hosts))]
    return compared(json.loads(json.dumps(made)))


@pytest.mark.parametrize("case", CASES)
def test_the_chart_makes_what_install_prints(helm, tmp_path, case):
    """For the same choices, the objects are the same, field by field; the namespace is there where it is asked for."""
    values, installation = CASES[case]
    made, said = template(helm, tmp_path, {**values, "namespace": {"create": True}})
    assert compared(documents(made)) == asked_for(installation), said


@pytest.mark.parametrize("case", CONSOLES)
def test_the_chart_adds_the_console_that_install_prints(helm, tmp_path, case):
    values, installation = CASES[case]
    hosts = CONSOLES[case]
    console = replace(installation.console_pod, pull_policy="IfNotPresent")
    asked = {**values, "namespace": {"create": True}, "console": {"enabled": True, "hosts": list(hosts)}}
    made, said = template(helm, tmp_path, asked)
    assert compared(documents(made)) == asked_for(replace(installation, console_pod=console), hosts), said


def test_a_release_for_a_further_pool_has_nothing_that_the_first_one_has(helm, tmp_path):
    """With ``shared=false`` a release has the objects of its pool alone, so that no two releases have one in common."""
    first, _ = template(helm, tmp_path, {"serviceMonitor": {"enabled": True}})
    second, _ = template(helm, tmp_path, {"pool": "gpu", "shared": False, "serviceMonitor": {"enabled": True}})
    one, other = (compared(documents(text)) for text in (first, second))
    assert not one.keys() & other.keys()
    assert {kind for kind, _, _ in other} == {
        "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Role",
        "RoleBinding", "Service", "ServiceAccount", "ServiceMonitor",
    }  # fmt: skip


WRONG = {
    "a value that is not there": ({"replica": 2}, "replica"),
    "replicas that share a volume": ({"history": {"volume": {"enabled": True}}}, "replicas"),
    "a mode that is not there": ({"scheduler": {"modes": {"reclaim": "on"}}}, "reclaim"),
    "a setting that is not there": ({"scheduler": {"reclaimMinRunTime": "1h"}}, "reclaimMinRunTime"),
    "a pool that is called like the console": ({"pool": "console"}, "pool"),
    "a number of replicas as text": ({"replicas": "two"}, "replicas"),
    "a misspelt kind of resources": ({"resources": {"limit": {"memory": "1Gi"}}}, "limit"),
    "a label that is no text": ({"nodeSelector": {"gpu": True}}, "gpu"),
    "a misspelt toleration": ({"console": {"tolerations": [{"keys": "a"}]}}, "keys"),
    "a variable without a name": ({"extraEnv": [{"value": "a"}]}, "name"),
    "a pull secret that is a name alone": ({"image": {"pullSecrets": ["registry"]}}, "pullSecrets"),
    "a volume of no size": ({"replicas": 1, "history": {"volume": {"enabled": True, "size": "0Gi"}}}, "size"),
    "two places for one history": (
        {"replicas": 1, "history": {"volume": {"enabled": True}, "secret": {"name": "pg"}}}, "name",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_values_that_are_wrong_are_refused_by_name(helm, tmp_path, case):
    values, word = WRONG[case]
    made, said = template(helm, tmp_path, values)
    assert made == ""
    assert "schema" in said
    assert word in said


@pytest.mark.parametrize("values", [{"shareGpus": True}, {"scheduler": {"rescheduler": {"schedulers": ["other"]}}}])
def test_what_kubernetes_1_35_has_not_is_refused_with_the_reason(helm, tmp_path, values):
    """Policies that change pods are there from 1.36 on; the rest of the chart is for earlier ones as well."""
    made, said = template(helm, tmp_path, values, "--kube-version=1.35.4")
    assert made == ""
    assert "need Kubernetes 1.36 (MutatingAdmissionPolicy v1); this cluster has v1.35.4" in said
    assert template(helm, tmp_path, values, "--kube-version=1.36.0")[0]
    assert template(helm, tmp_path, {}, "--kube-version=1.35.4")[0]


def test_helm_lint_finds_nothing(helm):
    run = done([str(helm), "lint", "--strict", str(CHART)])
    assert run.returncode == 0, run.stdout + run.stderr
    assert "WARNING" not in run.stdout


def test_what_is_generated_is_as_the_source_says():
    """The files under ``deploy`` are those that ``make deploy`` would write now."""
    there = {}
    for part in ("helm", "kustomize"):
        there |= {str(p.relative_to(DEPLOY)): p.read_text() for p in (DEPLOY / part).rglob("*") if p.is_file()}
    assert there == files(), "run 'make deploy'"


@pytest.fixture(scope="session")
def kubectl():
    if not build.is_built():
        pytest.skip("no kubectl here: run 'make controlplane' (needs Go 1.26) to have these tests run")
    return build.build() / "kubectl"


def kustomized(kubectl, folder):
    run = done([str(kubectl), "kustomize", str(folder)])
    assert run.returncode == 0, run.stderr
    return compared(documents(run.stdout))


def test_the_kustomize_base_is_what_install_prints(kubectl):
    assert kustomized(kubectl, DEPLOY / "kustomize" / "base") == asked_for(kustomize.BASE)


@pytest.mark.parametrize("component", [*kustomize.COMPONENTS, kustomize.CONSOLE])
def test_a_component_makes_of_the_base_what_an_option_does(kubectl, tmp_path, component):
    """Base and component are what ``tenure install`` prints with the option."""
    (tmp_path / "kustomize").symlink_to(DEPLOY / "kustomize")
    overlay = Path(tmp_path / "overlay")
    overlay.mkdir()
    body = {"resources": ["../kustomize/base"], "components": [f"../kustomize/components/{component}"]}
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(body))
    asked = kustomize.COMPONENTS.get(component, kustomize.BASE)
    hosts = () if component == kustomize.CONSOLE else None
    assert kustomized(kubectl, overlay) == asked_for(asked, hosts)
