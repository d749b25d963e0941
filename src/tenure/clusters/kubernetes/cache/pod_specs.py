"""What pods ask for: each distinct spec is read once, by the reader of manifests, and then shared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.api import ApiPod, ApiPodSpec
from tenure.clusters.kubernetes.bounded import MOST_PROBLEMS, brief
from tenure.model import rules as _rules  # noqa: F401  registers the checks of single values
from tenure.model.entries import EntryValues
from tenure.model.file.expand import Expander
from tenure.model.manifests.pods import KAI_SHARE, UNBOUND_VOLUMES, pod_entry, read_annotations, read_pod
from tenure.model.values.report import BAD, ProblemReport, path_text
from tenure.model.values.resources import GPU, Pairs
from tenure.model.workload import TaskSpec

MOST_KNOWN = 50_000
"""So many distinct specs are remembered; then all are forgotten, and read again as they come."""

MOST_REMEMBERED: Final = 1 << 26
"""Bytes of distinct specs and labels that are remembered: pods may come and go without end, each with others."""

MOST_BYTES: Final = 65_536
"""A pod's spec that is longer, as JSON and without what decides nothing, is not read but for what it holds."""

MOST_CONTAINERS: Final = 256
_HOLDING = ("containers", "initContainers", "overhead", "resources")

MOST_POD_TERMS: Final = 10
"""Terms of affinity and anti-affinity towards other pods: each is held against every pod that is placed."""

MOST_SPREAD: Final = 10
MOST_TOLERATIONS: Final = 128
MOST_NODE_TERMS: Final = 64
MOST_VALUES: Final = 1024
"""Values and keys in all selectors of a pod together."""

MOST_RESOURCES: Final = 32
MOST_AMOUNT: Final = 2**50
"""The most of one resource that a pod may ask for: a pebibyte. Sums over all pods of a node fit 64 bits."""

MOST_GPUS: Final = 2**20
MOST_LABELS: Final = 128
MOST_PORTS: Final = 256

_ASKED = (
    "tenure.dev/gpu-fraction", "tenure.dev/gpu-memory", "tenure.dev/gpu-devices", keys.MIN_MEMBER, *KAI_SHARE,
)  # fmt: skip
_NOT_READ = UNBOUND_VOLUMES | {"name", "persistentVolumeClaim", "ephemeral"}
"""What a volume may say that does not stand in the pod's demand: claims are looked up (`read/claims.py`)."""


@dataclass(frozen=True, slots=True)
class PodDemand:
    """The demand of a pod: what it asks for. ``problems`` say what of it could not be read; then it is never placed."""

    spec: TaskSpec
    min_member: int | None = None
    problems: tuple[str, ...] = ()


class PodDemandTable:
    """The table of pod demands, by the bytes of what decides about each."""

    def __init__(self) -> None:
        self._by_bytes: dict[bytes, PodDemand] = {}
        self._by_labels: dict[tuple[bytes, Pairs], PodDemand] = {}
        self._size = 0

    def of(self, pod: ApiPod) -> PodDemand:
        """Give what a pod asks for, its labels included."""
        key = _ENCODER.encode(_deciding(pod))
        labels = tuple(sorted((pod.metadata.labels or {}).items()))
        known = self._by_labels.get((key, labels))
        if known is None:
            self._size += sum(len(name) + len(value) for name, value in labels)
            bare = self._by_bytes.get(key)
            if bare is None:
                self._size += len(key)
            if len(self._by_labels) >= MOST_KNOWN or self._size > MOST_REMEMBERED:
                self._by_labels.clear()
                self._by_bytes.clear()
                self._size = 0
            if bare is None:
                bare = self._by_bytes[key] = _total(key)
            known = self._by_labels[key, labels] = _labelled(bare, labels)
        return known


_ENCODER = msgspec.json.Encoder(order="deterministic")


def _deciding(pod: ApiPod) -> dict[str, Any]:
    """Give what of a pod decides about its task's spec; names that differ from pod to pod are left out."""
    spec = pod.spec
    plain: dict[str, Any] = {
        name: value for name in _SPEC_FIELDS if (value := getattr(spec, name)) not in (None, False, [], {})
    }
    volumes = [v for v in spec.volumes or () if not _NOT_READ.issuperset(v)]
    if volumes:
        plain["volumes"] = [dict.fromkeys(v, "") | {"name": v.get("name", "")} for v in volumes]
    if pod.spec.host_users is False and pod.spec.host_network:
        plain["host_users"] = False
    resized = _resized(pod)
    if resized:
        plain["status"] = resized
    annotations = pod.metadata.annotations
    if annotations:
        stated = {key: annotations[key] for key in _ASKED if key in annotations}
        if stated:
            plain["annotations"] = stated
    return plain


def _resized(pod: ApiPod) -> dict[str, Any]:
    """Give what of a status decides about what a pod counts for: nothing where all of it has what it asks for.

    Where a resize was refused for good the spec does not count any more, so that all of the status does.
    """
    status, spec = pod.status, pod.spec
    asked = {c.name: (c.resources or {}).get("requests", {}) for c in (*spec.containers, *(spec.init_containers or ()))}
    pending = [{"type": c.type, "reason": c.reason} for c in status.conditions or () if c.type == _RESIZE_PENDING]
    refused = any(c["reason"] == "Infeasible" for c in pending)
    found: dict[str, Any] = {}
    for name, statuses in (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
    ):
        counted = [
            c for c in statuses or () if refused or _differs(c.allocated_resources, c.resources, asked.get(c.name))
        ]
        if counted:
            found[name] = counted
    whole = (spec.resources or {}).get("requests")
    if refused or _differs(status.allocated_resources, status.resources, whole):
        found["allocatedResources"], found["resources"] = status.allocated_resources, status.resources
    if refused or found:
        found["conditions"] = pending
    return {key: value for key, value in found.items() if value}


_RESIZE_PENDING = "PodResizePending"


def _differs(allocated: dict[str, Any] | None, actual: dict[str, Any] | None, asked: dict[str, Any] | None) -> bool:
    """Whether what a container or pod has differs, at least in writing, from what it asks for."""
    has = (actual or {}).get("requests")
    return (allocated is not None and allocated != asked) or (has is not None and has != asked)


_SPEC_FIELDS = (
    "containers", "init_containers", "overhead", "resources", "node_selector", "affinity", "tolerations",
    "topology_spread_constraints", "host_network",
)  # fmt: skip
_CAMEL = dict(zip(ApiPodSpec.__struct_fields__, ApiPodSpec.__struct_encode_fields__, strict=True))


def _total(key: bytes) -> PodDemand:
    """Read a spec, whatever stands in it."""
    try:
        return _read(key)
    except Exception as error:  # noqa: BLE001  whatever a stranger wrote costs the pods that say it
        return PodDemand(TaskSpec(unsupported=("a spec that cannot be read",)), None, (f"spec: {brief(error)}",))


def _read(key: bytes) -> PodDemand:
    """Read a spec as the manifest of a pod is read; what cannot be read makes it unsupported."""
    plain = {_CAMEL.get(name, name): value for name, value in msgspec.json.decode(key).items()}
    if len(key) > MOST_BYTES:
        return _too_large(plain, len(key))
    metadata = EntryValues((None, "metadata"), {"annotations": plain.pop("annotations", {})})
    report = ProblemReport()
    read = pod_entry().decode(plain, (None, "spec"), report)
    if read is BAD:
        return _unreadable(report, {})
    asked = read_pod(read, metadata.values, report).asked
    extra = read_annotations(metadata, report)
    min_member = extra.pop("min_member", None)
    spec = Expander(report, 0).spec({**asked, **extra}, (None, "annotations"))
    return _unreadable(report, asked) if report.problems else PodDemand(_bounded(spec), min_member)


def _too_large(plain: dict[str, Any], size: int) -> PodDemand:
    """Read of a huge spec no more than what it holds where it runs: reading costs time, which is everybody's."""
    holding = {name: plain[name] for name in _HOLDING if name in plain}
    for name in ("containers", "initContainers"):
        listed = holding.get(name) or []
        holding[name] = [{"name": "c", **_parts(c, "resources", "restartPolicy")} for c in listed[:MOST_CONTAINERS]]
    report = ProblemReport()
    read = pod_entry().decode(holding, (None, "spec"), report)
    asked = {} if read is BAD else {"requests": read_pod(read, {}, ProblemReport()).asked["requests"]}
    spec = _bounded(Expander(ProblemReport(), 0).spec(asked, (None, "spec"))) if asked else TaskSpec()
    told = f"a spec of {size >> 10} KiB ({MOST_BYTES >> 10} KiB are read)"
    return PodDemand(replace(spec, unsupported=(*spec.unsupported, told)))


def _parts(container: Any, *names: str) -> dict[str, Any]:
    return {name: container[name] for name in names if isinstance(container, dict) and container.get(name)}


def _unreadable(report: ProblemReport, asked: dict[str, Any]) -> PodDemand:
    """Keep what could be read: such a pod is not placed, but where it is placed already it holds its room."""
    problems = [f"{path_text(path)}: {message}" for path, message in report.problems[:MOST_PROBLEMS]]
    if len(report.problems) > MOST_PROBLEMS:
        problems.append("more of the spec cannot be read")
    kept = {name: value for name, value in asked.items() if value is not BAD}
    unsupported = (*kept.pop("unsupported", ()), "a spec that cannot be read")
    return PodDemand(_bounded(TaskSpec(**kept, unsupported=unsupported)), None, tuple(problems))


def _labelled(asked: PodDemand, labels: Pairs) -> PodDemand:
    if not labels:
        return asked
    spec = replace(asked.spec, labels=labels)
    if len(labels) > MOST_LABELS:
        spec = replace(spec, unsupported=(*spec.unsupported, _too_many(len(labels), "labels", MOST_LABELS)))
    return PodDemand(spec, asked.min_member, asked.problems)


def _bounded(spec: TaskSpec) -> TaskSpec:
    """Refuse what would cost others: a pod that asks for too much is not placed, and where it is, asks for nothing."""
    found = tuple(_excesses(spec))
    if not found:
        return spec
    share = spec.gpu_share
    amounts = {name: min(amount, _most_of(name)) for name, amount in spec.requests}
    spec = replace(
        spec,
        requests=tuple(sorted(amounts.items())[:MOST_RESOURCES]),
        gpu_share=None if share is None else replace(share, devices=min(share.devices, MOST_GPUS)),
    )
    return replace(
        spec, affinity=None, spread=(), tolerations=spec.tolerations[:MOST_TOLERATIONS],
        host_ports=spec.host_ports[:MOST_PORTS], unsupported=(*spec.unsupported, *found),
    )  # fmt: skip


def _excesses(spec: TaskSpec) -> Iterator[str]:
    affinity = spec.affinity
    node, pods = (affinity.node, (affinity.pod, affinity.pod_anti)) if affinity is not None else (None, ())
    terms = [t for side in pods if side is not None for t in (*side.required, *(p.term for p in side.preferred))]
    node_terms = [*(node.required or ()), *(p.term for p in node.preferred)] if node is not None else []
    values = len(spec.node_selector)
    for node_term in node_terms:
        values += sum(1 + len(r.values) for r in (*node_term.match_expressions, *node_term.match_fields))
    for selector in [t.selector for t in terms] + [c.selector for c in spec.spread]:
        if selector is not None:
            values += len(selector.match_labels) + sum(1 + len(r.values) for r in selector.match_expressions)
    values += sum(len(t.namespaces) + len(t.match_label_keys) for t in terms)
    for name, amount in spec.requests:
        if amount > _most_of(name):
            yield f"{amount} of {name}, more than any node has"
    for count, what, most in (
        (len(spec.requests), "kinds of resources", MOST_RESOURCES),
        (len(terms), "terms of pod affinity and anti-affinity", MOST_POD_TERMS),
        (len(node_terms), "terms of node affinity", MOST_NODE_TERMS),
        (values, "values in its selectors", MOST_VALUES),
        (len(spec.spread), "topology spread constraints", MOST_SPREAD),
        (len(spec.tolerations), "tolerations", MOST_TOLERATIONS),
        (len(spec.host_ports), "host ports", MOST_PORTS),
    ):
        if count > most:
            yield _too_many(count, what, most)


def _most_of(resource: str) -> int:
    return MOST_GPUS if resource == GPU else MOST_AMOUNT


def _too_many(count: int, what: str, most: int) -> str:
    return f"{count} {what} ({most} at the most)"
