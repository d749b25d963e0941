"""What ``tenure install`` prints: the objects of an installation, as the API server takes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from tenure.clusters.kubernetes.external import admission
from tenure.clusters.kubernetes.gpus import environment
from tenure.clusters.kubernetes.install import history, tenant_policies
from tenure.clusters.kubernetes.install.crds import GROUP, custom_resource_definitions
from tenure.clusters.kubernetes.install.installation import CONTAINER, Installation
from tenure.clusters.kubernetes.install.rbac import API as RBAC
from tenure.clusters.kubernetes.install.rbac import NAME, Role, own_namespace_rights, rules
from tenure.model.entries import API_VERSION, SETTINGS_KIND
from tenure.model.settings import CAUSES

PORT: Final = 8080
CONFIG_FILE: Final = "config.yaml"
CONFIG_FOLDER: Final = "/etc/tenure"
METRICS_READERS: Final = "tenure.dev/reads-metrics"
"""Label of the namespaces from which metrics may be read: ``"true"``."""

API_PORTS: Final = (443, 6443, 8443)
"""Ports on which API servers listen; a NetworkPolicy cannot name the server itself."""

_LABELS: Final = {"app.kubernetes.io/name": NAME}
_PRIORITY: Final = 1_000_000_000
"""The highest that is not reserved for the system: what schedules everybody else has to run."""

Object = dict[str, Any]


def objects(installation: Installation) -> list[Object]:
    """Give all objects in an order in which they can be created one after the other."""
    namespace, *others = own_objects(installation)
    return [namespace, *custom_resource_definitions(), *others]


def own_objects(asked: Installation) -> list[Object]:
    """Give all objects but the definitions of custom resources, which are the same in every installation."""
    made = [_namespace(asked), *([] if asked.priority_class else [_priority_class()]), _service_account(asked)]
    made += [*_cluster_rights(asked), *_namespace_rights(asked), *_tenants_rights()]
    if asked.guides:
        made += [
            admission.policy(_metadata(admission.NAME)),
            admission.binding(_metadata(admission.NAME), asked.namespace),
        ]
    if asked.holds_gpus:
        own = (NAME, *asked.schedulers)
        made += [environment.policy(_metadata(environment.NAME), own), environment.binding(_metadata(environment.NAME))]
    if asked.role is not Role.READ_ONLY:
        for policy in tenant_policies.policies(asked.namespace, (NAME, *asked.schedulers)):
            made += policy.objects(_metadata)
    made += [_config(asked), *([_network_policy(asked)] if asked.network_policy else [])]
    made += [*history.claims(asked.history, _of_pool(asked)), _deployment(asked)]
    if asked.replicas > 1:
        made.append(_own_budget(asked))
    if asked.service_monitor:
        made += [_service(asked), _service_monitor(asked)]
    return made


class _Dumper(yaml.CSafeDumper):
    """Writes YAML as people do: no aliases, and text of several lines as a block."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _write_text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else "'" if _NO_TEXT_ELSEWHERE.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_NO_TEXT_ELSEWHERE: Final = re.compile(r"[yYnN]|[-+]?(\.\d+|\d+(\.\d*)?)[eE][-+]?\d+|0o[0-7]+")
"""What kubectl reads as a truth value or a number, and Python's writer takes for text."""


_Dumper.add_representer(str, _write_text)


def write(listed: list[Object]) -> str:
    """Write objects as YAML documents."""
    return yaml.dump_all(listed, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, explicit_start=True)


def _metadata(name: str, namespace: str | None = None) -> Object:
    return {"name": name, **({"namespace": namespace} if namespace else {}), "labels": dict(_LABELS)}


def _of_pool(asked: Installation) -> Object:
    return {"name": asked.name, "namespace": asked.namespace, "labels": asked.pods}


def _namespace(asked: Installation) -> Object:
    metadata = _metadata(asked.namespace)
    metadata["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _priority_class() -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": _metadata(NAME),
        "value": _PRIORITY,
        "description": "For Tenure itself.",
    }


def _service_account(asked: Installation) -> Object:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(asked.name, asked.namespace)}


def _cluster_rights(asked: Installation) -> Iterator[Object]:
    yield {
        "apiVersion": RBAC,
        "kind": "ClusterRole",
        "metadata": _metadata(asked.cluster_role),
        "rules": rules(asked.rights, asked.role),
    }
    yield {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": _metadata(asked.cluster_role),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": asked.cluster_role},
        "subjects": _subjects(asked),
    }


def _namespace_rights(asked: Installation) -> Iterator[Object]:
    own = own_namespace_rights(asked.pool, holds_gpus=asked.holds_gpus)
    yield from _role(asked, asked.name, asked.namespace, rules(own, asked.role))
    if asked.yunikorn is not None:
        namespace, name = asked.yunikorn
        read = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["list", "watch"]}
        yield from _role(asked, f"{asked.name}-yunikorn-queues", namespace, [read])


def _role(asked: Installation, name: str, namespace: str, granted: list[Object]) -> Iterator[Object]:
    yield {"apiVersion": RBAC, "kind": "Role", "metadata": _metadata(name, namespace), "rules": granted}
    yield {
        "apiVersion": RBAC,
        "kind": "RoleBinding",
        "metadata": _metadata(name, namespace),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": _subjects(asked),
    }


def _subjects(asked: Installation) -> list[Object]:
    return [{"kind": "ServiceAccount", "name": asked.name, "namespace": asked.namespace}]


def _tenants_rights() -> Iterator[Object]:
    """Let whoever may edit a namespace edit its pod groups, and whoever may view it view them.

    Who is bound to the role for metrics may read them.
    """
    for word, verbs in (("view", ["get", "list", "watch"]), ("edit", ["create", "update", "patch", "delete"])):
        metadata = _metadata(f"{NAME}-{word}")
        metadata["labels"][f"rbac.authorization.k8s.io/aggregate-to-{word}"] = "true"
        granted = [{"apiGroups": [GROUP], "resources": ["podgroups"], "verbs": verbs}]
        yield {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": metadata, "rules": granted}
    pages = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    yield {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": _metadata(f"{NAME}-metrics"), "rules": pages}


def _config(asked: Installation) -> Object:
    settings = dict(asked.config or {})
    if asked.role is Role.READ_ONLY:
        settings["modes"] = dict.fromkeys(CAUSES, "shadow")
    text = yaml.safe_dump(
        {"apiVersion": API_VERSION, "kind": SETTINGS_KIND, "scheduler": settings}, sort_keys=False, allow_unicode=True
    )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _of_pool(asked),
        "data": {CONFIG_FILE: text},
    }


def _deployment(asked: Installation) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _of_pool(asked),
        "spec": {
            "replicas": asked.replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            "selector": {"matchLabels": asked.pods},
            "template": asked.pod.template(asked.pods, _pod(asked)),
        },
    }


def _pod(asked: Installation) -> Object:
    return {
        "serviceAccountName": asked.name,
        "priorityClassName": asked.priority_class or NAME,
        "terminationGracePeriodSeconds": 30,
        "securityContext": asked.pod.pod_security,
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_apart(asked)]}},
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": asked.pods},
            }
        ],
        "containers": [_container(asked)],
        "volumes": [
            {"name": "config", "configMap": {"name": asked.name}},
            {"name": "tmp", "emptyDir": {}},
            *history.volumes(asked.history, asked.name),
        ],
    }


def _apart(asked: Installation) -> Object:
    """Keep replicas on nodes of their own: what takes one of them takes no other."""
    return {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": asked.pods}}


def _network_policy(asked: Installation) -> Object:
    """Let nobody in but who reads metrics (kubelets come from their nodes), and out to the API server and to names."""
    readers = {"namespaceSelector": {"matchLabels": {METRICS_READERS: "true"}}}
    names = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    ports = sorted({*API_PORTS, *asked.ports})
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _of_pool(asked),
        "spec": {
            "podSelector": {"matchLabels": asked.pods},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [readers], "ports": [{"protocol": "TCP", "port": PORT}]}],
            "egress": [
                {"ports": names},
                {"ports": [{"protocol": "TCP", "port": port} for port in ports]},
                *history.egress(asked.history),
            ],
        },
    }


def _container(asked: Installation) -> Object:
    return {
        "name": CONTAINER,
        **asked.pod.image(asked.image),
        "args": arguments(asked),
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            *history.variable(asked.history),
            *asked.pod.env,
        ],
        "ports": [{"name": "http", "containerPort": PORT}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10, "failureThreshold": 6},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
        "resources": asked.pod.resources,
        "securityContext": asked.pod.container_security,
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  a volume of the pod's own
            *history.mounts(asked.history),
        ],
    }


def arguments(asked: Installation) -> list[str]:
    """Give the arguments of ``tenure`` in the container."""
    given = ["scheduler", f"--config={CONFIG_FOLDER}/{CONFIG_FILE}", f"--listen=:{PORT}", "--metrics-access=authorized"]
    given.append(f"--pool={asked.pool}")
    if asked.role is Role.READ_ONLY:
        given.append("--read-only")
    if asked.yunikorn is not None:
        given.append(f"--yunikorn-config={'/'.join(asked.yunikorn)}")
    given += [f"--scheduler-name={name}" for name in asked.schedulers]
    if asked.holds_gpus:
        given.append("--share-gpus")
    if asked.kueue_queues:
        given.append("--kueue-queues")
    if asked.prometheus:
        given.append(f"--prometheus={asked.prometheus}")
    return [*given, *asked.pod.arguments]


def _own_budget(asked: Installation) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _of_pool(asked),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": asked.pods}},
    }


def _service(asked: Installation) -> Object:
    ports = [{"name": "http", "port": PORT, "targetPort": "http"}]
    spec = {"clusterIP": "None", "selector": asked.pods, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _of_pool(asked), "spec": spec}


def _service_monitor(asked: Installation) -> Object:
    token = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105  where Prometheus has its own
    endpoint = {"port": "http", "interval": "30s", "bearerTokenFile": token}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": _of_pool(asked),
        "spec": {"selector": {"matchLabels": asked.pods}, "endpoints": [endpoint]},
    }
