"""What is said of a workload beside its pods: pod groups of several makers, Jobs, and metadata of other owners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.reading import read
from tenure.model.entries import Entry
from tenure.model.records import fields_of
from tenure.model.report import BAD
from tenure.model.workload import Workload

POD_GROUP, KAI_GROUP, NATIVE_GROUP = "PodGroup", "KAI PodGroup", "scheduling.k8s.io PodGroup"

_FIELDS = frozenset(
    {
        "queue", "priority", "preemptible", "minMember", "subGroups", "minSubGroup", "topology",
        "stalenessGracePeriod", "expectedRuntime", "requeueDelay", "preemptionDelay", "checkpoint", "allowPreemption",
        "allowPreemptionUntil", "evictionNotice",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Said:
    """What is said of a workload as a whole. ``values`` are attributes of a `Workload`."""

    values: Mapping[str, Any] = field(default_factory=dict)
    priority_class: str = ""
    uid: str = ""
    created_at: int | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    succeeded: int = 0
    problems: tuple[str, ...] = ()
    kind: str = ""


@cache
def _entry() -> Entry:
    return Entry(Workload, [f for f in fields_of(Workload) if f.key in _FIELDS], name="PodGroup")


def pod_group(item: api.Anything) -> Said:
    """Give what one of Tenure's own pod groups says."""
    spec = item.spec if isinstance(item.spec, dict) else {}
    plain = {key: value for key, value in spec.items() if key != "priorityClassName"}
    return _said(item, plain, str(spec.get("priorityClassName") or ""), POD_GROUP)


def kai_group(item: api.Anything) -> Said:
    """Give what one of KAI's pod groups says."""
    spec = item.spec if isinstance(item.spec, dict) else {}
    plain: dict[str, Any] = {key: spec[key] for key in ("queue", "minMember") if spec.get(key)}
    if spec.get("preemptibility") in ("preemptible", "non-preemptible"):
        plain["preemptible"] = spec["preemptibility"] == "preemptible"
    constraint = spec.get("topologyConstraint")
    if isinstance(constraint, dict):
        levels = {
            "required": constraint.get("requiredTopologyLevel"),
            "preferred": constraint.get("preferredTopologyLevel"),
        }
        plain["topology"] = {key: level for key, level in levels.items() if level} or None
    groups = [g for g in spec.get("subGroups") or () if isinstance(g, dict)]
    if groups and not any(g.get("parent") for g in groups):
        plain["subGroups"] = [{k: g[k] for k in ("name", "minMember") if k in g} for g in groups]
        plain.pop("minMember", None)
    return _said(item, plain, str(spec.get("priorityClassName") or ""), KAI_GROUP)


def native_group(item: api.Anything) -> Said:
    """Give what a PodGroup of ``scheduling.k8s.io`` says: how many start together, and its priority."""
    spec = item.spec if isinstance(item.spec, dict) else {}
    policy = spec.get("schedulingPolicy")
    gang = policy.get("gang") if isinstance(policy, dict) else None
    plain: dict[str, Any] = {"minMember": gang.get("minCount") if isinstance(gang, dict) else 1}
    if spec.get("priority") is not None:
        plain["priority"] = spec["priority"]
    levels = spec.get("schedulingConstraints")
    topology = levels.get("topology") if isinstance(levels, dict) else None
    if isinstance(topology, list) and len(topology) == 1 and isinstance(topology[0], dict):
        plain["topology"] = {"required": topology[0].get("key")}
    return _said(item, plain, str(spec.get("priorityClassName") or ""), NATIVE_GROUP)


def _said(item: api.Anything, plain: dict[str, Any], priority_class: str, kind: str) -> Said:
    values, problems = read(_entry(), plain)
    meta = item.metadata
    return Said(
        values={} if values is BAD else values.values,
        priority_class=priority_class,
        uid=meta.uid,
        created_at=api.micros(meta.creation_timestamp),
        annotations=meta.annotations or {},
        labels=meta.labels or {},
        problems=tuple(problems),
        kind=kind,
    )


def job(item: api.Job) -> Said:
    """Give what a Job says: as many as run in parallel start together."""
    parallel = 1 if item.spec.parallelism is None else item.spec.parallelism
    together = min(parallel, item.spec.completions or parallel)
    return _owner(item.metadata, {"min_member": max(1, together)}, item.status.succeeded)


def owner(item: api.Anything) -> Said:
    """Give what the metadata of an owner says; its pods start one by one."""
    return _owner(item.metadata, {}, 0)


def _owner(meta: api.Meta, values: dict[str, Any], succeeded: int) -> Said:
    return Said(
        values=values,
        uid=meta.uid,
        created_at=api.micros(meta.creation_timestamp),
        annotations={k: v for k, v in (meta.annotations or {}).items() if "/last-applied-configuration" not in k},
        labels=meta.labels or {},
        succeeded=succeeded,
    )
