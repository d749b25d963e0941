"""Pods as their manifests describe them, read into what a task asks for.

Only what decides about placement is read; of the rest a manifest may say what it likes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tenure.model.containers import AmountsKind, ListKind, MapKind, PairsKind, QuantityKind
from tenure.model.entries import EntryKind, EntryValues
from tenure.model.kinds import BooleanKind, IntegerKind, TextKind, ValueKind
from tenure.model.records import RecordField, kind_of, record_of
from tenure.model.report import BAD, ProblemReport, Trail
from tenure.model.resources import GPU, MEMORY
from tenure.model.scalars import resolve_scalar
from tenure.model.selectors import Affinity, HostPort, SpreadConstraint, Toleration
from tenure.model.vocabulary import Count, Ordinal, Priority

_EVALUATED_VOLUMES = frozenset(
    {"name", "configMap", "downwardAPI", "emptyDir", "gitRepo", "hostPath", "image", "projected", "secret"}
)
"""Sources of volumes that every node can serve."""

_NOT_EVALUATED_TERMS = ("namespaceSelector", "mismatchLabelKeys")
"""Keys of a pod affinity term that are not evaluated."""

_ANNOTATIONS: dict[str, tuple[str, ValueKind]] = {
    "tenure.dev/gpu-fraction": ("gpu_fraction", QuantityKind(GPU, milli=True)),
    "tenure.dev/gpu-memory": ("gpu_memory", QuantityKind(MEMORY)),
    "tenure.dev/gpu-devices": ("gpu_devices", IntegerKind(1, 1024)),
    "tenure.dev/min-member": ("min_member", kind_of(Count)),
}

Amounts = dict[str, int]


class AnyKind(ValueKind):
    """A value that is taken as it is."""

    def parse(self, value: Any) -> Any:
        """Take it."""
        return value


class AffinityKind(ValueKind):
    """A pod's affinity, as an `Affinity` and the names of what in it is not evaluated."""

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> tuple[Any, tuple[str, ...]]:
        """Read the affinity without the keys that are not evaluated."""
        found: list[str] = []
        return record_of(Affinity).decode(_without_terms(value, found), at, report), tuple(dict.fromkeys(found))


def _without_terms(value: Any, found: list[str]) -> Any:
    """Copy a value without the keys of `_NOT_EVALUATED_TERMS`, but for an empty namespace selector: all namespaces."""
    if isinstance(value, list):
        return [_without_terms(item, found) for item in value]
    if not isinstance(value, dict) or "matchLabels" in value:
        return value
    kept = {}
    for key, item in value.items():
        if key in _NOT_EVALUATED_TERMS and item:
            found.append(f"affinity with {key}")
        else:
            kept[key] = _without_terms(item, found)
    return kept


def entry_of(title: str, /, **kinds: ValueKind) -> EntryKind:
    """Give an entry of a manifest: of what is not named here it may say what it likes."""
    fields = [RecordField(key, key, kind) for key, kind in kinds.items()]
    return EntryKind(dict, fields, name=title, lenient=True)


@cache
def metadata_entry() -> EntryKind:
    """Give the entry of an object's metadata."""
    return entry_of(
        "metadata",
        name=TextKind(),
        generateName=TextKind(),
        namespace=TextKind(),
        labels=MapKind(TextKind()),
        annotations=MapKind(TextKind()),
    )


@cache
def pod_entry() -> EntryKind:
    """Give the entry of a pod's spec."""
    resources = entry_of("resources", requests=AmountsKind(), limits=AmountsKind())
    port = entry_of(
        "port",
        hostPort=IntegerKind(0, 65_535),
        containerPort=IntegerKind(0, 65_535),
        hostIP=TextKind(),
        protocol=TextKind(),
    )
    container = entry_of(
        "container", name=TextKind(), resources=resources, ports=ListKind(port), restartPolicy=TextKind()
    )
    return entry_of(
        "spec",
        containers=ListKind(container),
        initContainers=ListKind(container),
        overhead=AmountsKind(),
        resources=resources,
        nodeName=TextKind(),
        nodeSelector=PairsKind(),
        affinity=AffinityKind(),
        tolerations=ListKind(record_of(Toleration)),
        topologySpreadConstraints=ListKind(record_of(SpreadConstraint)),
        schedulingGates=ListKind(AnyKind()),
        priority=kind_of(Priority),
        priorityClassName=TextKind(),
        hostNetwork=BooleanKind(),
        terminationGracePeriodSeconds=kind_of(Ordinal),
        volumes=ListKind(MapKind(AnyKind())),
        resourceClaims=ListKind(MapKind(AnyKind())),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFields:
    """The fields of a pod's spec that matter to its task: attributes of a `TaskSpec`, and beside them the task's own.

    ``priority`` is None where the spec gives none, whatever its ``priority_class``.
    """

    asked: dict[str, Any]
    is_gated: bool
    priority: int | None
    priority_class: str | None
    grace_period: int | None


def read_pod(read: EntryValues, metadata: Mapping[str, Any], report: ProblemReport) -> PodFields:
    """Make what a pod asks for of its spec and its metadata."""
    at, spec = read
    affinity, not_evaluated = spec.get("affinity", (None, ()))
    amounts = _pod_requests(spec)
    asked = {
        "requests": tuple(sorted((resource, amount) for resource, amount in amounts.items() if amount)),
        "labels": tuple(sorted(metadata.get("labels", {}).items())),
        "node_selector": spec.get("nodeSelector", ()),
        "affinity": affinity,
        "tolerations": spec.get("tolerations", ()),
        "spread": spec.get("topologySpreadConstraints", ()),
        "host_ports": tuple(_host_ports(spec)),
        "unsupported": (*not_evaluated, *_unsupported(spec)),
    }
    if spec.get("nodeName"):
        report.add((at, "nodeName"), "binds the pod past any scheduler; leave it out")
    if not spec.get("containers"):
        report.add((at, "containers"), "is missing; a pod has at least one container")
    seconds = spec.get("terminationGracePeriodSeconds")
    return PodFields(
        asked=asked,
        is_gated=bool(spec.get("schedulingGates")),
        priority=spec.get("priority"),
        priority_class=spec.get("priorityClassName") or None,
        grace_period=None if seconds is None else seconds * 1_000_000,
    )


def _values(reads: Iterable[EntryValues]) -> list[dict[str, Any]]:
    return [read.values for read in reads]


def _pod_requests(spec: Mapping[str, Any]) -> Amounts:
    """Add a pod's requests up as kube-scheduler does (``k8s.io/component-helpers/resource``, PodRequests).

    The sum of its containers, or what its init containers need at most if that is more: one after the other, each
    beside the sidecars (init containers that are restarted always) before it. Sidecars run on beside the containers.
    Requests of the pod itself replace the sum; overhead is added to either.
    """
    total: Amounts = {}
    for container in _values(spec.get("containers", ())):
        _add(total, _requests(container.get("resources")))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in _values(spec.get("initContainers", ())):
        needed = _requests(container.get("resources"))
        if container.get("restartPolicy") == "Always":
            _add(total, needed)
            _add(sidecars, needed)
            needed = sidecars
        else:
            needed = _sum(needed, sidecars)
        peak = _larger(peak, needed)
    total = {**_larger(total, peak), **_requests(spec.get("resources"))}
    return _sum(total, spec.get("overhead", {}))


def _requests(resources: EntryValues | None) -> Amounts:
    """Give requests; a limit stands in for a request that is missing, as the API server has it."""
    values = resources.values if resources is not None else {}
    return {**values.get("limits", {}), **values.get("requests", {})}


def _add(total: Amounts, amounts: Mapping[str, int]) -> None:
    for resource, amount in amounts.items():
        total[resource] = total.get(resource, 0) + amount


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    total = dict(one)
    _add(total, other)
    return total


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    return {resource: max(one.get(resource, 0), other.get(resource, 0)) for resource in {**one, **other}}


def _host_ports(spec: Mapping[str, Any]) -> Iterable[HostPort]:
    on_host = spec.get("hostNetwork", False)
    sidecars = [c for c in _values(spec.get("initContainers", ())) if c.get("restartPolicy") == "Always"]
    for container in (*_values(spec.get("containers", ())), *sidecars):
        for port in _values(container.get("ports", ())):
            number = port.get("hostPort") or (port.get("containerPort") if on_host else None)
            if number:
                yield HostPort(port=number, protocol=port.get("protocol", "TCP"), ip=port.get("hostIP") or "0.0.0.0")  # noqa: S104


def _unsupported(spec: Mapping[str, Any]) -> Iterable[str]:
    for volume in spec.get("volumes", ()):
        for source in volume:
            if source not in _EVALUATED_VOLUMES:
                yield f"volume {volume.get('name', '')} ({source})"
    for claim in spec.get("resourceClaims", ()):
        yield f"resource claim {claim.get('name', '')}"


def read_annotations(metadata: EntryValues, report: ProblemReport) -> dict[str, Any]:
    """Read the annotations that mean something: by attribute, parts of a GPU as the short forms of cluster files."""
    annotations = metadata.values.get("annotations", {})
    asked = {}
    for key, (attribute, kind) in _ANNOTATIONS.items():
        if key in annotations:
            value = kind.decode(resolve_scalar(annotations[key]), ((metadata.at, "annotations"), key), report)
            if value is not BAD:
                asked[attribute] = value
    return asked
