"""The choices of an installation: what ``tenure install``, the Helm chart and the kustomize base are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from tenure.clusters.kubernetes.install.rbac import (
    CLUSTER_RIGHTS,
    GUIDING_RIGHTS,
    KUEUE_RIGHTS,
    MEASURING_RIGHTS,
    NAME,
    Right,
    Role,
)
from tenure.clusters.kubernetes.keys import DEFAULT_POOL

USER: Final = 65_532
"""The user and group that the containers run as, also by the image itself."""

POSTGRESQL_PORT: Final = 5432

CONTAINER: Final = "scheduler"
"""The container of a pod in which the scheduler runs; others may have been put beside it."""

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySecret:
    """The key of a Secret of the installation's namespace that holds the address of a PostgreSQL history.

    ``port`` is the server's, to which the NetworkPolicy lets the scheduler.
    """

    name: str
    key: str = "url"
    port: int = POSTGRESQL_PORT


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryVolume:
    """A volume for a history in SQLite: it is mounted by one pod, so there is one replica.

    ``storage_class``: that of the volume, or None for the cluster's default.
    """

    size: str
    storage_class: str | None = None


def _pod_security() -> Object:
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _container_security() -> Object:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def _resources() -> Object:
    return {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOptions:
    """The part of a pod's spec that depends on the cluster rather than on what runs in it.

    What it may use, what it may do, where it may be placed, how its image is had. Values are as the API server takes
    them; None and nothing are left out.
    """

    resources: Any = field(default_factory=_resources)
    pod_security: Any = field(default_factory=_pod_security)
    container_security: Any = field(default_factory=_container_security)
    annotations: Any = None
    labels: Mapping[str, Any] = field(default_factory=dict)
    node_selector: Any = None
    tolerations: Any = None
    pull_secrets: Any = None
    pull_policy: str | None = None
    env: Sequence[Any] = ()
    arguments: Sequence[Any] = ()

    def template(self, labels: Object, spec: Object) -> Object:
        """Give a pod template with these labels and this spec, and what is asked beside them."""
        metadata: Object = {"labels": {**labels, **self.labels}}
        if self.annotations:
            metadata["annotations"] = self.annotations
        further = {
            "nodeSelector": self.node_selector,
            "tolerations": self.tolerations,
            "imagePullSecrets": self.pull_secrets,
        }
        return {"metadata": metadata, "spec": {**spec, **{key: value for key, value in further.items() if value}}}

    def image(self, image: str) -> Object:
        """Give the fields of a container that say which image it runs."""
        return {"image": image, **({"imagePullPolicy": self.pull_policy} if self.pull_policy else {})}


def _console_resources() -> Object:
    return {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}}


def _console_pod() -> PodOptions:
    security = _pod_security()
    del security["fsGroup"]
    return PodOptions(resources=_console_resources(), pod_security=security)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The choices of an installation. ``config`` is what stands under ``scheduler:``, as plain values.

    ``yunikorn`` is namespace and name of the ConfigMap that YuniKorn's queues are read from; ``schedulers`` are names
    of schedulers whose pods count as Tenure's. ``share_gpus``: devices of which parts are given out are held by pods.
    ``kueue_queues``: Kueue's queues are read where there are no others. ``prometheus`` is the address at which it asks
    what pods use of their GPUs. ``priority_class`` names one that is there already; without it one is installed.
    """

    image: str
    namespace: str = "tenure-system"
    pool: str = DEFAULT_POOL
    replicas: int = 2
    role: Role = Role.SCHEDULER
    config: Object | None = None
    yunikorn: tuple[str, str] | None = None
    schedulers: tuple[str, ...] = ()
    service_monitor: bool = False
    share_gpus: bool = False
    prometheus: str = ""
    kueue_queues: bool = False
    network_policy: bool = True
    priority_class: str | None = None
    history: HistorySecret | HistoryVolume | None = None
    pod: PodOptions = field(default_factory=PodOptions)
    console_pod: PodOptions = field(default_factory=_console_pod)

    @property
    def name(self) -> str:
        """The name of what there is of each pool; what all pools share is called `NAME`."""
        return NAME if self.pool == DEFAULT_POOL else f"{NAME}-{self.pool}"

    @property
    def cluster_role(self) -> str:
        """The name of the pool's rights in the whole cluster: like none that all pools share, whatever it is called."""
        return NAME if self.pool == DEFAULT_POOL else f"{NAME}:{self.pool}"

    @property
    def guides(self) -> bool:
        """Whether it moves pods of other schedulers, which takes further rights and an admission policy."""
        moved = (self.config or {}).get("rescheduler", {}).get("schedulers")
        return bool(moved) and self.role is not Role.READ_ONLY

    @property
    def holds_gpus(self) -> bool:
        """Whether it holds the devices of which it gives out parts, which takes rights in its own namespace."""
        return self.share_gpus and self.role is not Role.READ_ONLY

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports beside the API server's that it has to reach."""
        if not self.prometheus:
            return ()
        address = urlsplit(self.prometheus)
        return (address.port or (443 if address.scheme == "https" else 80),)

    @property
    def measures(self) -> bool:
        """Whether it asks what nodes and pods really use, which takes a further right."""
        hot = (self.config or {}).get("rescheduler", {}).get("hotNodes", {})
        return bool(hot.get("enabled"))

    @property
    def rights(self) -> tuple[Right, ...]:
        """The rights that it needs all over the cluster."""
        return (
            *CLUSTER_RIGHTS,
            *(GUIDING_RIGHTS if self.guides else ()),
            *(MEASURING_RIGHTS if self.measures else ()),
            *(KUEUE_RIGHTS if self.kueue_queues else ()),
        )

    @property
    def pods(self) -> dict[str, str]:
        """The labels of this pool's replicas."""
        return {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": self.pool}
