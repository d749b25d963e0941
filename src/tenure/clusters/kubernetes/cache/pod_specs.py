"""What pods ask for: each distinct spec is read once, by the reader of manifests, and then shared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.api import ApiPod, ApiPodSpec
from tenure.model import rules as _rules  # noqa: F401  registers the checks of single values
from tenure.model.entries import EntryValues
from tenure.model.expand import Expander
from tenure.model.pods import pod_entry, read_annotations, read_pod
from tenure.model.report import BAD, ProblemReport, path_text
from tenure.model.resources import Pairs
from tenure.model.workload import TaskSpec

MOST_KNOWN = 50_000
"""So many distinct specs are remembered; then all are forgotten, and read again as they come."""

_ASKED = ("tenure.dev/gpu-fraction", "tenure.dev/gpu-memory", "tenure.dev/gpu-devices", keys.MIN_MEMBER)
_LOCAL = frozenset(
    {"configMap", "downwardAPI", "emptyDir", "gitRepo", "hostPath", "image", "projected", "secret", "name"}
)


@dataclass(frozen=True, slots=True)
class PodDemand:
    """What a pod asks for. ``problems`` say what of it could not be read; then it is never placed."""

    spec: TaskSpec
    min_member: int | None = None
    problems: tuple[str, ...] = ()


class PodDemandTable:
    """What was asked for so far, by the bytes of what decides about it."""

    def __init__(self) -> None:
        self._by_bytes: dict[bytes, PodDemand] = {}
        self._by_labels: dict[tuple[bytes, Pairs], PodDemand] = {}
        self._labels: dict[Pairs, Pairs] = {}

    def of(self, pod: ApiPod) -> PodDemand:
        """Give what a pod asks for, its labels included."""
        key = _ENCODER.encode(_deciding(pod))
        labels = tuple(sorted((pod.metadata.labels or {}).items()))
        known = self._by_labels.get((key, labels))
        if known is None:
            if len(self._by_labels) >= MOST_KNOWN:
                self._by_labels.clear()
                self._by_bytes.clear()
            bare = self._by_bytes.get(key)
            if bare is None:
                bare = self._by_bytes[key] = _read(key)
            known = self._by_labels[key, labels] = _labelled(bare, labels)
        return known


_ENCODER = msgspec.json.Encoder(order="deterministic")


def _deciding(pod: ApiPod) -> dict[str, Any]:
    """Give what of a pod decides about its task's spec; names that differ from pod to pod are left out."""
    spec = pod.spec
    plain: dict[str, Any] = {
        name: value for name in _SPEC_FIELDS if (value := getattr(spec, name)) not in (None, False, [], {})
    }
    volumes = [v for v in spec.volumes or () if not _LOCAL.issuperset(v)]
    if volumes:
        plain["volumes"] = [dict.fromkeys(v, "") | {"name": v.get("name", "")} for v in volumes]
    annotations = pod.metadata.annotations
    if annotations:
        stated = {key: annotations[key] for key in _ASKED if key in annotations}
        if stated:
            plain["annotations"] = stated
    return plain


_SPEC_FIELDS = (
    "containers", "init_containers", "overhead", "resources", "node_selector", "affinity", "tolerations",
    "topology_spread_constraints", "host_network", "resource_claims",
)  # fmt: skip
_CAMEL = dict(zip(ApiPodSpec.__struct_fields__, ApiPodSpec.__struct_encode_fields__, strict=True))


def _read(key: bytes) -> PodDemand:
    """Read a spec as the manifest of a pod is read; what cannot be read makes it unsupported."""
    plain = {_CAMEL.get(name, name): value for name, value in msgspec.json.decode(key).items()}
    metadata = EntryValues((None, "metadata"), {"annotations": plain.pop("annotations", {})})
    report = ProblemReport()
    read = pod_entry().decode(plain, (None, "spec"), report)
    if read is BAD:
        return _unreadable(report, {})
    asked = read_pod(read, metadata.values, report).asked
    extra = read_annotations(metadata, report)
    min_member = extra.pop("min_member", None)
    spec = Expander(report, 0).spec({**asked, **extra}, (None, "annotations"))
    return _unreadable(report, asked) if report.problems else PodDemand(spec, min_member)


def _unreadable(report: ProblemReport, asked: dict[str, Any]) -> PodDemand:
    """Keep what could be read: such a pod is not placed, but where it is placed already it holds its room."""
    problems = tuple(f"{path_text(path)}: {message}" for path, message in report.problems)
    kept = {name: value for name, value in asked.items() if value is not BAD}
    unsupported = (*kept.pop("unsupported", ()), "a spec that cannot be read")
    return PodDemand(TaskSpec(**kept, unsupported=unsupported), None, problems)


def _labelled(asked: PodDemand, labels: Pairs) -> PodDemand:
    if not labels:
        return asked
    return PodDemand(replace(asked.spec, labels=labels), asked.min_member, asked.problems)
