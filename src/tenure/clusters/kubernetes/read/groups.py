"""What is said of a workload beside its pods: pod groups of several makers, Jobs, and metadata of other owners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.bounded import LONGEST, MOST_PROBLEMS, brief
from tenure.clusters.kubernetes.read import volcano_groups
from tenure.clusters.kubernetes.read.values import read
from tenure.clusters.kubernetes.read.volcano_groups import VolcanoGroup
from tenure.model.entries import EntryKind
from tenure.model.fields.records import fields_of
from tenure.model.manifests.workload_kind import OwnerShape, WorkloadKind, WorkloadKinds, kind_key, merged, shape_of
from tenure.model.values.problems import shorten
from tenure.model.values.report import BAD
from tenure.model.workload import Checkpoint, Workload

POD_GROUP, KAI_GROUP = "PodGroup", "KAI PodGroup"
NATIVE_GROUP, NATIVE_WORKLOAD = "scheduling.k8s.io PodGroup", "scheduling.k8s.io Workload"

KAI_TOPOLOGIES = "kai topologies"
"""The name of the watch of KAI's topologies."""

_FIELDS = frozenset(
    {
        "queue", "priority", "preemptible", "minMember", "subGroups", "minSubGroup", "topology",
        "stalenessGracePeriod", "expectedRuntime", "requeueDelay", "preemptionDelay", "checkpoint", "allowPreemption",
        "allowPreemptionUntil", "evictionNotice",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GroupDeclaration:
    """The declaration of a workload as a whole, beside its pods. ``values`` are attributes of a `Workload`.

    ``shape`` is what an owner says of the roles of its pods, and how many of them start together.
    ``goes_whole``: what of it runs is evicted together. ``fallback_queue`` is the queue of what names none itself.
    ``volcano`` is what Volcano's group asks beside its minimum.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    priority_class: str = ""
    uid: str = ""
    created_at: int | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    ended: int = 0
    problems: tuple[str, ...] = ()
    kind: str = ""
    shape: OwnerShape | None = None
    goes_whole: bool = False
    fallback_queue: str = ""
    volcano: VolcanoGroup | None = None


_DURATIONS = frozenset(
    {"expected_runtime", "requeue_delay", "preemption_delay", "eviction_notice", "staleness_grace_period"}
)
NOTHING_SAID = GroupDeclaration()
MOST_SUB_GROUPS = 256
"""Subgroups of a group that are read."""

MOST_LEVELS = 16
_LONGEST_NAME = 100
MOST_NESTED = 8
"""Levels of subgroups that are read."""


@cache
def _entry() -> EntryKind:
    return EntryKind(Workload, [f for f in fields_of(Workload) if f.key in _FIELDS], name="PodGroup")


def said(read_one: Callable[[Any], GroupDeclaration], item: Any) -> GroupDeclaration:
    """Give what an object says, whatever stands in it: one that cannot be read says nothing but who it is."""
    try:
        return read_one(item)
    except Exception as error:  # noqa: BLE001  whatever a stranger wrote costs the workload that it is about
        return GroupDeclaration(
            uid=item.metadata.uid,
            created_at=api.micros(item.metadata.creation_timestamp),
            problems=(f"cannot be read: {brief(error)}",),
        )


def pod_group(item: api.ApiObject) -> GroupDeclaration:
    """Give what one of Tenure's own pod groups says."""
    spec = item.spec if isinstance(item.spec, dict) else {}
    plain = {key: value for key, value in spec.items() if key != "priorityClassName"}
    return _said(item, plain, str(spec.get("priorityClassName") or ""), POD_GROUP)


def kai_group(item: api.ApiObject) -> GroupDeclaration:
    """Give what one of KAI's pod groups says."""
    spec = item.spec if isinstance(item.spec, dict) else {}
    plain: dict[str, Any] = {key: spec[key] for key in ("queue", "minMember") if spec.get(key)}
    if spec.get("preemptibility") in ("preemptible", "non-preemptible"):
        plain["preemptible"] = spec["preemptibility"] == "preemptible"
    if (topology := _kai_topology(spec)) is not None:
        plain["topology"] = topology
    listed = spec.get("subGroups")
    groups = [g for g in listed if isinstance(g, dict)] if isinstance(listed, list) else []
    groups = groups[:MOST_SUB_GROUPS]
    tree = _kai_tree(groups, None, MOST_NESTED)
    if tree:
        plain["subGroups"] = tree
        plain.pop("minMember", None)
        if spec.get("minSubGroup"):
            plain["minSubGroup"] = spec["minSubGroup"]
    lost = len(groups) - _count(tree)
    if lost:
        problem = f"spec.subGroups: {lost} are below none that is there, or there twice; they are left out"
        return _said(item, plain, str(spec.get("priorityClassName") or ""), KAI_GROUP, problem)
    return _said(item, plain, str(spec.get("priorityClassName") or ""), KAI_GROUP)


def _kai_topology(said: Mapping[str, Any]) -> dict[str, Any] | None:
    constraint = said.get("topologyConstraint")
    if not isinstance(constraint, dict):
        return None
    levels = {
        "required": constraint.get("requiredTopologyLevel"),
        "preferred": constraint.get("preferredTopologyLevel"),
    }
    return {key: level for key, level in levels.items() if level} or None


def kai_levels(topologies: Mapping[tuple[str, str], Any]) -> dict[str, tuple[str, ...]]:
    """Give by name the node labels that are the levels of KAI's topologies, the widest first."""
    found = {}
    for (_, name), item in topologies.items():
        spec = item.spec if isinstance(item.spec, dict) else {}
        levels = spec.get("levels")
        listed = [level for level in levels if isinstance(level, dict)] if isinstance(levels, list) else []
        found[name] = tuple(str(level.get("nodeLabel")) for level in listed[:MOST_LEVELS])
    return found


def in_topologies(
    about: GroupDeclaration, item: api.ApiObject, levels: Mapping[str, tuple[str, ...]]
) -> GroupDeclaration:  # fmt: skip
    """Give what one of KAI's groups says with what of its topology constraints no topology has."""
    spec = item.spec if isinstance(item.spec, dict) else {}
    listed = spec.get("subGroups")
    groups = [g for g in listed if isinstance(g, dict)] if isinstance(listed, list) else []
    places = [("spec", spec), *((f"spec.subGroups[{n}]", g) for n, g in enumerate(groups[:MOST_SUB_GROUPS]))]
    problems = [line for place, said in places for line in _strange_levels(place, said, levels)]
    return replace(about, problems=(*about.problems, *problems[:MOST_PROBLEMS])) if problems else about


def _strange_levels(place: str, said: Mapping[str, Any], levels: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Say which topology is not there, or which levels it does not have; the labels count all the same."""
    constraint = said.get("topologyConstraint")
    name = constraint.get("topology") if isinstance(constraint, dict) else None
    if not isinstance(constraint, dict) or not isinstance(name, str) or not name:
        return []
    at = f"{place}.topologyConstraint"
    if name not in levels:
        return [f"{at}.topology: there is no Topology {shorten(name, _LONGEST_NAME)}"]
    asked = (constraint.get("requiredTopologyLevel"), constraint.get("preferredTopologyLevel"))
    known = ", ".join(levels[name])
    return [
        f"{at}: Topology {name} has no level {shorten(str(level), _LONGEST_NAME)}, but {known}"
        for level in asked
        if level and level not in levels[name]
    ]


def _kai_tree(groups: list[dict[str, Any]], parent: str | None, levels: int) -> list[dict[str, Any]]:
    """Give the tree of subgroups below one, of which each names the one above it; a name counts once."""
    found = {}
    for group in groups:
        name = str(group.get("name"))
        if (group.get("parent") or None) != parent or name in found:
            continue
        made: dict[str, Any] = {"name": name}
        below = _kai_tree([g for g in groups if g.get("name") != name], name, levels - 1) if levels else []
        if below:
            made["subGroups"] = below
        least = "minSubGroup" if below else "minMember"
        if group.get(least) is not None:
            made[least] = group[least]
        if (topology := _kai_topology(group)) is not None:
            made["topology"] = topology
        found[name] = made
    return list(found.values())


def _count(tree: list[dict[str, Any]]) -> int:
    return sum(1 + _count(node.get("subGroups", [])) for node in tree)


def native_group(item: api.ApiObject) -> GroupDeclaration:
    """Give what a PodGroup of ``scheduling.k8s.io`` says: how many start together, and its priority."""
    return _native(item, item.spec, NATIVE_GROUP)


def native_workload(item: api.ApiObject) -> tuple[tuple[str, str, str], GroupDeclaration] | None:
    """Give which owner (namespace, kind, name) a Workload of ``scheduling.k8s.io`` describes, and what it says.

    None where it names no owner, or has several kinds of groups: then it is said by the PodGroups made of it.
    """
    spec = item.spec if isinstance(item.spec, dict) else {}
    owner, templates = spec.get("controllerRef"), spec.get("podGroupTemplates")
    if not isinstance(owner, dict) or not isinstance(templates, list) or len(templates) != 1:
        return None
    kind = kind_key(str(owner.get("apiGroup") or ""), str(owner.get("kind")))
    whose = item.metadata.namespace, kind, str(owner.get("name"))
    return whose, _native(item, templates[0], NATIVE_WORKLOAD)


def _native(item: api.ApiObject, said: Any, kind: str) -> GroupDeclaration:
    spec = said if isinstance(said, dict) else {}
    policy = spec.get("schedulingPolicy")
    gang = policy.get("gang") if isinstance(policy, dict) else None
    plain: dict[str, Any] = {"minMember": gang.get("minCount") if isinstance(gang, dict) else 1}
    if spec.get("priority") is not None:
        plain["priority"] = spec["priority"]
    mode = spec.get("disruptionMode")
    goes_whole = isinstance(mode, dict) and mode.get("all") is not None
    levels = spec.get("schedulingConstraints")
    topology = levels.get("topology") if isinstance(levels, dict) else None
    if isinstance(topology, list) and len(topology) == 1 and isinstance(topology[0], dict):
        plain["topology"] = {"required": topology[0].get("key")}
    return replace(_said(item, plain, str(spec.get("priorityClassName") or ""), kind), goes_whole=goes_whole)


def described(about: GroupDeclaration | None, by: GroupDeclaration) -> GroupDeclaration:
    """Give what is said of an owner together with what its Workload says of it."""
    base = about or GroupDeclaration()
    return replace(
        base,
        values={**base.values, **by.values},
        priority_class=by.priority_class,
        goes_whole=by.goes_whole,
        problems=(*base.problems, *(f"{by.kind}: {line}" for line in by.problems)),
    )


def _said(item: api.ApiObject, plain: dict[str, Any], priority_class: str, kind: str, *more: str) -> GroupDeclaration:
    values, problems = read(_entry(), plain)
    meta = item.metadata
    return GroupDeclaration(
        values={} if values is BAD else _in_bounds(values.values),
        priority_class=priority_class,
        uid=meta.uid,
        created_at=api.micros(meta.creation_timestamp),
        annotations=meta.annotations or {},
        labels=meta.labels or {},
        problems=(*problems, *more),
        kind=kind,
    )


def _in_bounds(values: Mapping[str, Any]) -> dict[str, Any]:
    """Give what is stated with no duration beyond the longest that a workload may state."""
    found = {key: min(value, LONGEST) if key in _DURATIONS else value for key, value in values.items()}
    base = found.get("checkpoint")
    if isinstance(base, Checkpoint):
        interval = None if base.interval is None else min(base.interval, LONGEST)
        found["checkpoint"] = replace(base, interval=interval, restart_overhead=min(base.restart_overhead, LONGEST))
    return found


def owner(item: api.ApiObject, kind: WorkloadKind, kinds: WorkloadKinds) -> GroupDeclaration:
    """Give what an owner says, by what is known of its kind."""
    meta = item.metadata
    annotations = {k: v for k, v in (meta.annotations or {}).items() if "/last-applied-configuration" not in k}
    about = {"labels": meta.labels or {}, "annotations": annotations}
    shape = shape_of(kind, {"metadata": about, "spec": item.spec, "status": item.status}, kinds)
    if kind.unit in ("pod", "below"):
        shape = replace(shape, roles=(), minimum=1)
    asked = volcano_groups.asked(kind.key, item.spec)
    topology = shape.topology if asked is None or asked.topology is None else asked.topology
    return GroupDeclaration(
        values={} if topology is None else {"topology": topology},
        priority_class=shape.priority_class,
        uid=meta.uid,
        created_at=api.micros(meta.creation_timestamp),
        annotations=annotations,
        labels=meta.labels or {},
        ended=shape.ended,
        problems=(*map(str, shape.problems[:MOST_PROBLEMS]), *(asked.problems if asked is not None else ())),
        kind=kind.kind,
        shape=shape,
        volcano=asked,
    )


def with_group(about: GroupDeclaration, group: GroupDeclaration) -> GroupDeclaration:
    """Give what an owner says, together with what the group of Volcano says that was made of it."""
    values = {**group.values, **about.values}
    return replace(about, values=values, volcano=group.volcano, problems=(*about.problems, *group.problems))


def wrapping(own: GroupDeclaration, below: Iterable[GroupDeclaration]) -> GroupDeclaration:
    """Give what an owner says together with what the owners below it say of their pods."""
    if own.shape is None:
        return own
    shape = merged(own.shape, (about.shape for about in below if about.shape is not None))
    near = {} if shape.topology is None else {"topology": shape.topology}
    return replace(
        own, shape=shape, values={**own.values, **near}, priority_class=shape.priority_class, ended=shape.ended
    )
