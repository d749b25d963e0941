"""The objects of a console in the cluster: a Deployment of its own, which may read and ask, and change nothing."""

from __future__ import annotations

from typing import Any, Final

from tenure.clusters.kubernetes.install import history
from tenure.clusters.kubernetes.install.installation import HistorySecret, Installation
from tenure.clusters.kubernetes.install.manifests import CONFIG_FILE, CONFIG_FOLDER, PORT
from tenure.clusters.kubernetes.install.rbac import API as RBAC
from tenure.clusters.kubernetes.install.rbac import (
    CLUSTER_RIGHTS,
    KUEUE_RIGHTS,
    MEASURING_RIGHTS,
    Right,
    Role,
    own_namespace_rights,
    rules,
)

POOL: Final = "console"
"""A pool of this name would have objects of the console's name, so there is none."""

NAME: Final = f"tenure-{POOL}"
_READS: Final = frozenset({"get", "list", "watch"})
_LABELS: Final = {"app.kubernetes.io/name": NAME}

REVIEWS: Final = (
    Right("authentication.k8s.io", ("tokenreviews",), ("create",), "whose a token is"),
    Right("authorization.k8s.io", ("subjectaccessreviews",), ("create",), "what a viewer may see"),
)

Object = dict[str, Any]


def console_rights(pool: str, *, kueue_queues: bool = False) -> tuple[tuple[Right, ...], tuple[Right, ...]]:
    """Give its rights in the whole cluster and in its namespace: what the scheduler reads, and the two reviews."""
    known = (*CLUSTER_RIGHTS, *MEASURING_RIGHTS, *(KUEUE_RIGHTS if kueue_queues else ()))
    reading = tuple(right for right in known if _READS.issuperset(right.verbs))
    own = tuple(
        Right(right.group, right.resources, ("list", "watch"), right.why)
        for right in own_namespace_rights(pool)
        if "watch" in right.verbs
    )
    return (*reading, *REVIEWS), own


def console_objects(asked: Installation, hosts: tuple[str, ...] = ()) -> list[Object]:
    """Give all objects of a console beside an installation. ``hosts``: names under which browsers ask for it."""
    cluster, own = console_rights(asked.pool, kueue_queues=asked.kueue_queues)
    names = (NAME, f"{NAME}.{asked.namespace}", f"{NAME}.{asked.namespace}.svc", *hosts)
    made: list[Object] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(asked)},
        {
            "apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": NAME, "labels": dict(_LABELS)},
            "rules": rules(cluster, Role.READ_ONLY),
        },
        _binding("ClusterRoleBinding", "ClusterRole", {"name": NAME, "labels": dict(_LABELS)}, asked),
        {
            "apiVersion": RBAC, "kind": "Role", "metadata": _metadata(asked), "rules": rules(own, Role.READ_ONLY),
        },
        _binding("RoleBinding", "Role", _metadata(asked), asked),
    ]  # fmt: skip
    if asked.yunikorn is not None:
        made += _yunikorn(asked, *asked.yunikorn)
    return [*made, _deployment(asked, names), _service(asked)]


def _metadata(asked: Installation, name: str = NAME, namespace: str | None = None) -> Object:
    return {"name": name, "namespace": namespace or asked.namespace, "labels": dict(_LABELS)}


def _binding(kind: str, role: str, metadata: Object, asked: Installation) -> Object:
    return {
        "apiVersion": RBAC, "kind": kind, "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": asked.namespace}],
    }  # fmt: skip


def _yunikorn(asked: Installation, namespace: str, name: str) -> list[Object]:
    metadata = _metadata(asked, f"{NAME}-yunikorn-queues", namespace)
    read = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["list", "watch"]}
    return [
        {"apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": [read]},
        _binding("RoleBinding", "Role", metadata, asked),
    ]


def _deployment(asked: Installation, hosts: tuple[str, ...]) -> Object:
    given = ["console", "--live", "--host=0.0.0.0", f"--port={PORT}", *(f"--allow-host={name}" for name in hosts)]
    given += [f"--config={CONFIG_FOLDER}/{CONFIG_FILE}", f"--pool={asked.pool}"]
    if asked.yunikorn is not None:
        given.append(f"--yunikorn-config={'/'.join(asked.yunikorn)}")
    given += [f"--scheduler-name={name}" for name in asked.schedulers]
    if asked.kueue_queues:
        given.append("--kueue-queues")
    past = asked.history if isinstance(asked.history, HistorySecret) else None  # a volume is the scheduler's alone
    if past is not None:
        given.append(f"--history=$({history.VARIABLE})")
    container = {
        "name": "console", **asked.console_pod.image(asked.image), "args": [*given, *asked.console_pod.arguments],
        "env": [
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            *history.variable(past),
            *asked.console_pod.env,
        ],
        "ports": [{"name": "http", "containerPort": PORT}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10, "failureThreshold": 6},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 5},
        "resources": asked.console_pod.resources,
        "securityContext": asked.console_pod.container_security,
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  a volume of the pod's own
        ],
    }  # fmt: skip
    pod = {
        "serviceAccountName": NAME,
        "securityContext": asked.console_pod.pod_security,
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": asked.name}}, {"name": "tmp", "emptyDir": {}}],
    }  # fmt: skip
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": _metadata(asked),
        "spec": {
            "replicas": 1, "selector": {"matchLabels": dict(_LABELS)},
            "template": asked.console_pod.template(dict(_LABELS), pod),
        },
    }  # fmt: skip


def _service(asked: Installation) -> Object:
    spec = {"selector": dict(_LABELS), "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(asked), "spec": spec}
