"""What Tenure's service account may do: no more than the installation needs, each right with its reason.

A read-only installation writes nothing but its own leases, events and the status of its own objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from tenure.clusters.kubernetes.external import admission
from tenure.clusters.kubernetes.install.crds import GROUP, RESOURCES
from tenure.clusters.kubernetes.keys import LOG_PAGES, lease_name, log_page_name
from tenure.model.manifests.workload_kind import POD, built_in_kinds

NAME: Final = "tenure"
API: Final = "rbac.authorization.k8s.io/v1"


class Role(StrEnum):
    """The role of an installation: what it is for."""

    SCHEDULER = "scheduler"
    READ_ONLY = "read-only"


ACTING: Final = frozenset({Role.SCHEDULER})
EVERYBODY: Final = frozenset(Role)
_OBSERVE: Final = ("list", "watch")


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on resources of one API group (empty: the core), for which installations, and what for.

    ``names``: on objects of these names alone.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    roles: frozenset[Role] = EVERYBODY
    names: tuple[str, ...] = ()


_OWN: Final = tuple(resource.plural for resource in RESOURCES)


def _owner_rights() -> Iterator[Right]:
    """Give the rights to see the owners of pods that are known without configuration."""
    groups: dict[str, list[str]] = {}
    for kind in built_in_kinds():
        if kind.key != POD:
            groups.setdefault(kind.group, []).append(kind.resource)
    for group, resources in groups.items():
        yield Right(group, tuple(sorted(resources)), _OBSERVE, "which pods belong together, and how many of them start")


CLUSTER_RIGHTS: Final = (
    Right("", ("nodes", "pods"), _OBSERVE, "what there is, and what runs on it"),
    Right("", ("namespaces",), _OBSERVE, "their labels: which may use which queue, and which terms of pods select"),
    Right("scheduling.k8s.io", ("priorityclasses",), _OBSERVE, "priorities of workloads"),
    Right("policy", ("poddisruptionbudgets",), _OBSERVE, "budgets that evictions have to keep"),
    Right(
        "", ("persistentvolumeclaims", "persistentvolumes"), _OBSERVE, "from which nodes volumes of pods are reached"
    ),
    Right(
        "storage.k8s.io",
        ("csinodes", "volumeattachments"),
        _OBSERVE,
        "how many volumes nodes attach, and which they have",
    ),
    Right(
        "storage.k8s.io",
        ("storageclasses", "csidrivers", "csistoragecapacities"),
        _OBSERVE,
        "where a claim that is not bound yet gets its volume",
    ),
    Right(
        "resource.k8s.io",
        ("resourceclaims", "resourceslices", "deviceclasses", "devicetaintrules"),
        _OBSERVE,
        "which devices there are, and which of them claims ask for and have",
    ),
    Right(GROUP, _OWN, _OBSERVE, "queues, groups, budgets and settings"),
    *_owner_rights(),
    Right("karpenter.sh", ("nodeclaims",), _OBSERVE, "nodes that are on their way"),
    Right("autoscaling.x-k8s.io", ("provisioningrequests",), _OBSERVE, "nodes that were asked for"),
    Right("kueue.x-k8s.io", ("workloads",), _OBSERVE, "what Kueue has admitted, and takes back"),
    Right("scheduling.k8s.io", ("podgroups", "workloads"), _OBSERVE, "Kubernetes' own groups"),
    Right("scheduling.run.ai", ("queues", "podgroups"), _OBSERVE, "KAI's queues and groups"),
    Right("kai.scheduler", ("topologies",), _OBSERVE, "the levels of KAI's topologies"),
    Right("scheduling.volcano.sh", ("queues",), _OBSERVE, "Volcano's queues"),
    Right("topology.volcano.sh", ("hypernodes",), _OBSERVE, "which nodes are near each other, as Volcano has it"),
    Right(GROUP, tuple(f"{name}/status" for name in _OWN), ("patch",), "what Tenure reports about them"),
    Right("events.k8s.io", ("events",), ("create",), "what Tenure did, and why workloads wait"),
    Right("authentication.k8s.io", ("tokenreviews",), ("create",), "identity of clients that ask for its metrics"),
    Right("authorization.k8s.io", ("subjectaccessreviews",), ("create",), "whether these clients may have them"),
    Right("", ("pods/binding",), ("create",), "starting pods", ACTING),
    Right("", ("persistentvolumeclaims",), ("patch",), "for which node a claim's volume is to be made", ACTING),
    Right("", ("persistentvolumes",), ("patch",), "binding a volume that is there to a claim", ACTING),
    Right("resource.k8s.io", ("resourceclaims",), ("patch",), "the finalizer of a claim that gets devices", ACTING),
    Right(
        "resource.k8s.io",
        ("resourceclaims",),
        ("create", "delete"),
        "claims for pods whose extended resources are given out by claims",
        ACTING,
    ),
    Right(
        "resource.k8s.io",
        ("resourceclaims/status", "resourceclaims/binding"),
        ("patch",),
        "giving devices to claims, and back",
        ACTING,
    ),
    Right("", ("pods/eviction",), ("create",), "evicting pods, within PodDisruptionBudgets", ACTING),
    Right("", ("pods",), ("delete",), "pods that budgets have kept for longer than maxOptOut", ACTING),
    Right("kueue.x-k8s.io", ("workloads/status",), ("patch",), "telling Kueue of what was evicted", ACTING),
    Right("", ("pods/status",), ("patch",), "conditions, nominatedNodeName, and the annotations beside them", ACTING),
)

GUIDING_RIGHTS: Final = (
    Right("", ("nodes",), ("get", "patch"), "keeping a node free by a taint", ACTING),
    Right("", ("pods",), ("patch",), "tolerations of pods for which a node is kept", ACTING),
    Right(
        admission.GROUP,
        (admission.BINDINGS,),
        ("get",),
        "whether the admission policy holds",
        ACTING,
        (admission.NAME,),
    ),
)
"""Cluster-wide rights of an installation that moves pods of other schedulers."""

MEASURING_RIGHTS: Final = (
    Right("metrics.k8s.io", ("nodes", "pods"), ("list",), "what is really in use, for the hot-node trigger"),
)
"""Cluster-wide rights of an installation whose settings ask what is really in use."""


KUEUE_RIGHTS: Final = (
    Right("kueue.x-k8s.io", ("clusterqueues", "cohorts", "localqueues"), _OBSERVE, "Kueue's queues"),
)
"""Cluster-wide rights of an installation that reads Kueue's queues."""


def own_namespace_rights(pool: str, *, holds_gpus: bool = False) -> tuple[Right, ...]:
    """Give the rights in the scheduler's own namespace: writing no more than the objects of its pool.

    ``holds_gpus``: of an installation that has GPUs held of which it gives out parts.

    Who creates an object cannot be held to its name by a right; the policy ``tenure-maps`` does that.
    """
    lease = (lease_name(pool),)
    maps = (*(log_page_name(pool, n) for n in range(LOG_PAGES)), f"tenure-queues-{pool}", f"tenure-moves-{pool}")
    return (
        Right("coordination.k8s.io", ("leases",), ("list", "watch", "create"), "one leader per node pool, and pauses"),
        Right("coordination.k8s.io", ("leases",), ("get", "update"), "the same, of its own pool", names=lease),
        Right("", ("configmaps",), ("list", "watch"), "the eviction log"),
        Right("", ("configmaps",), ("create",), "beginning a page of it", ACTING),
        Right("", ("configmaps",), ("update", "patch", "delete"), "writing it", ACTING, maps),
        *((Right("", ("pods",), ("create", "delete"), "holding GPUs of which parts are given out", ACTING),)
          if holds_gpus else ()),
    )  # fmt: skip


def rules(rights: Iterable[Right], role: Role) -> list[dict[str, Any]]:
    """Give the rules for the API server, with the rights of an installation."""
    return [_rule(right) for right in rights if role in right.roles]


def _rule(right: Right) -> dict[str, Any]:
    rule = {"apiGroups": [right.group], "resources": list(right.resources), "verbs": list(right.verbs)}
    return {**rule, "resourceNames": list(right.names)} if right.names else rule


def granted(
    role: Role, *, guides: bool = False, measures: bool = False, pool: str = "default"
) -> Iterator[tuple[str, str, str]]:
    """Give each right of an installation singly: group, resource with subresource, verb.

    ``guides``: of one that moves pods of other schedulers; ``measures``: of one that asks what is really in use.
    """
    further = (*(GUIDING_RIGHTS if guides else ()), *(MEASURING_RIGHTS if measures else ()))
    for right in (*CLUSTER_RIGHTS, *further, *own_namespace_rights(pool)):
        if role in right.roles:
            for resource in right.resources:
                for verb in right.verbs:
                    yield right.group, resource, verb
