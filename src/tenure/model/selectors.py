"""Label selectors, affinity, tolerations and spread constraints, as in a pod's spec.

All of them are frozen and hashable, so that tasks that ask for the same can be recognised as one class.
Semantics are those of Kubernetes 1.37.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from tenure.model.fields.containers import PairsKind
from tenure.model.fields.kinds import IntegerKind
from tenure.model.fields.vocabulary import Count, FieldKey, Wrapped
from tenure.model.values.resources import Pairs

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
TermWeight = Annotated[int, IntegerKind(1, 100)]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A requirement of a selector: one expression over labels.

    ``Gt`` and ``Lt`` compare one integer and are for nodes only.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelector:
    """A selector of labels: all of ``match_labels`` and all of ``match_expressions`` hold.

    An empty selector matches everything.
    """

    match_labels: Annotated[Pairs, PairsKind()] = ()
    match_expressions: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelectorTerm:
    """A term of a node selector: all expressions over labels and fields (``metadata.name``) hold.

    An empty term matches nothing.
    """

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelector:
    """A selector of nodes: at least one of its terms matches."""

    terms: Annotated[tuple[NodeSelectorTerm, ...], FieldKey("nodeSelectorTerms")] = ()


def common_nodes(selectors: Iterable[NodeSelector | None]) -> NodeSelector | None:
    """Give the nodes that all of some selectors match, each of one term; None where there is no selector."""
    terms = [selector.terms[0] for selector in selectors if selector is not None and selector.terms]
    if not terms:
        return None
    both = NodeSelectorTerm(
        match_expressions=tuple(dict.fromkeys(r for term in terms for r in term.match_expressions)),
        match_fields=tuple(dict.fromkeys(r for term in terms for r in term.match_fields)),
    )
    return NodeSelector(terms=(both,))


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredNodeTerm:
    """A node term that is worth ``weight`` (1 to 100)."""

    weight: TermWeight
    term: Annotated[NodeSelectorTerm, FieldKey("preference")]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAffinity:
    """``required``: one of the terms matches; ``None`` means no requirement."""

    required: Annotated[tuple[NodeSelectorTerm, ...] | None, FieldKey(REQUIRED), Wrapped("nodeSelectorTerms")] = None
    preferred: Annotated[tuple[PreferredNodeTerm, ...], FieldKey(PREFERRED)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAffinityTerm:
    """Tasks that match ``selector``, in one value of the node label ``topology_key``.

    It looks at ``namespaces`` and at those whose labels ``namespace_selector`` matches; without both at the namespace
    of the task that has it. ``selector`` ``None`` matches no task. ``match_label_keys`` are labels in which a task has
    to be like the one that has the term, ``mismatch_label_keys`` those in which it has to differ.
    """

    topology_key: str
    selector: Annotated[LabelSelector | None, FieldKey("labelSelector")] = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredPodTerm:
    """A pod term that is worth ``weight`` (1 to 100)."""

    weight: TermWeight
    term: Annotated[PodAffinityTerm, FieldKey("podAffinityTerm")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAffinity:
    """Terms over tasks that are already placed; used for affinity and for anti-affinity."""

    required: Annotated[tuple[PodAffinityTerm, ...], FieldKey(REQUIRED)] = ()
    preferred: Annotated[tuple[PreferredPodTerm, ...], FieldKey(PREFERRED)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Affinity:
    """The three kinds of affinity of a pod's spec."""

    node: Annotated[NodeAffinity | None, FieldKey("nodeAffinity")] = None
    pod: Annotated[PodAffinity | None, FieldKey("podAffinity")] = None
    pod_anti: Annotated[PodAffinity | None, FieldKey("podAntiAffinity")] = None


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

    max_skew: Count
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"
    selector: Annotated[LabelSelector | None, FieldKey("labelSelector")] = None
    min_domains: Count | None = None
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPort:
    """A port of the node that a task occupies. ``ip`` ``0.0.0.0`` collides with every address."""

    port: Annotated[int, FieldKey("hostPort"), IntegerKind(1, 65_535)]
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    ip: Annotated[str, FieldKey("hostIP")] = "0.0.0.0"  # noqa: S104  the API's own default, nothing listens here


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """A topology constraint: all tasks under one value of a node label; both levels may be set."""

    required: str | None = None
    preferred: str | None = None
