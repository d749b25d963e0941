"""Label selectors, affinity, tolerations and spread constraints, as in a pod's spec.

All of them are frozen and hashable, so that tasks that ask for the same can be recognised as one class.
Semantics are those of Kubernetes 1.37.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tenure.model.resources import Pairs

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One expression over labels. ``Gt`` and ``Lt`` compare one integer and are for nodes only."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelector:
    """All of ``match_labels`` and all of ``match_expressions`` hold. An empty selector matches everything."""

    match_labels: Pairs = ()
    match_expressions: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelectorTerm:
    """All expressions over a node's labels and fields (``metadata.name``) hold. An empty term matches nothing."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredNodeTerm:
    """A node term that is worth ``weight`` (1 to 100)."""

    weight: int
    term: NodeSelectorTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAffinity:
    """``required``: one of the terms matches; ``None`` means no requirement."""

    required: tuple[NodeSelectorTerm, ...] | None = None
    preferred: tuple[PreferredNodeTerm, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAffinityTerm:
    """Tasks that match ``selector``, in one value of the node label ``topology_key``.

    Without ``namespaces`` and ``all_namespaces`` the term looks at the namespace of the task that has it.
    ``selector`` ``None`` matches no task. ``match_label_keys`` are the task's own labels added to the selector.
    """

    topology_key: str
    selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    all_namespaces: bool = False
    match_label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredPodTerm:
    """A pod term that is worth ``weight`` (1 to 100)."""

    weight: int
    term: PodAffinityTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAffinity:
    """Terms over tasks that are already placed; used for affinity and for anti-affinity."""

    required: tuple[PodAffinityTerm, ...] = ()
    preferred: tuple[PreferredPodTerm, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Affinity:
    """The three kinds of affinity of a pod's spec."""

    node: NodeAffinity | None = None
    pod: PodAffinity | None = None
    pod_anti: PodAffinity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A node's taint."""

    key: str
    value: str = ""
    effect: Effect = "NoSchedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A task's toleration. An empty ``key`` with ``Exists`` tolerates everything; ``effect`` ``None`` all effects."""

    key: str = ""
    operator: Literal["Exists", "Equal"] = "Equal"
    value: str = ""
    effect: Effect | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadConstraint:
    """A topology spread constraint of a pod's spec."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"
    selector: LabelSelector | None = None
    min_domains: int | None = None
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPort:
    """A port of the node that a task occupies. ``ip`` ``0.0.0.0`` collides with every address."""

    port: int
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    ip: str = "0.0.0.0"  # noqa: S104  the API's own default, nothing listens here


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """All tasks under one value of a node label; both levels may be set."""

    required: str | None = None
    preferred: str | None = None
