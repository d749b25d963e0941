"""Pods as their manifests describe them, read into what a task asks for.

Only what decides about placement is read; of the rest a manifest may say what it likes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from tenure.model.entries import EntryKind, EntryValues
from tenure.model.fields.containers import ExactAmountsKind, ListKind, MapKind, PairsKind, QuantityKind
from tenure.model.fields.kinds import BooleanKind, ChoiceKind, IntegerKind, TextKind, ValueKind
from tenure.model.fields.records import RecordField, kind_of, record_of
from tenure.model.fields.vocabulary import Count, Ordinal, Priority
from tenure.model.manifests.devices import OF_TEMPLATE
from tenure.model.manifests.extended_resources import extended_requests
from tenure.model.manifests.pod_requests import pod_requests, values_of
from tenure.model.selectors import Affinity, HostPort, SpreadConstraint, Toleration
from tenure.model.values.report import BAD, ProblemReport, Trail
from tenure.model.values.resources import GPU, MEMORY
from tenure.model.values.scalars import resolve_scalar
from tenure.model.workload import ContenderPolicy

UNBOUND_VOLUMES = frozenset(
    {
        "cephfs", "configMap", "csi", "downwardAPI", "emptyDir", "fc", "flexVolume", "flocker", "gitRepo", "glusterfs",
        "hostPath", "image", "nfs", "photonPersistentDisk", "projected", "quobyte", "scaleIO", "secret", "storageos",
    }
)  # fmt: skip
"""Sources of volumes that bind a pod to no node: kube-scheduler looks at none of them."""

_CLAIMS = ("name", "persistentVolumeClaim", "ephemeral")
"""What a volume has that is a claim, or that becomes one."""

_ANNOTATIONS: dict[str, tuple[str, ValueKind]] = {
    "tenure.dev/gpu-fraction": ("gpu_fraction", QuantityKind(GPU, milli=True)),
    "tenure.dev/gpu-memory": ("gpu_memory", QuantityKind(MEMORY)),
    "tenure.dev/gpu-devices": ("gpu_devices", IntegerKind(1, 1024)),
    "tenure.dev/min-member": ("min_member", kind_of(Count)),
}

KAI_SHARE: Final = ("gpu-fraction", "gpu-memory", "gpu-fraction-num-devices")
"""Annotations of KAI that ask for a part of a GPU; its memory is in MiB. They count where none of Tenure's own does."""

_SHARE: Final = ("tenure.dev/gpu-fraction", "tenure.dev/gpu-memory", "tenure.dev/gpu-devices")

SHARE_ANNOTATIONS: Final = (*_SHARE[:2], *KAI_SHARE[:2])
"""Annotations by which a pod asks for a part of a GPU."""


class MebibytesKind(IntegerKind):
    """An amount of memory as a whole number of MiB, kept in bytes."""

    def parse(self, value: Any) -> int:
        """Read a number of MiB."""
        return super().parse(value) << 20


class AnyKind(ValueKind):
    """A value that is taken as it is."""

    def parse(self, value: Any) -> Any:
        """Take it."""
        return value


class AffinityKind(ValueKind):
    """A pod's affinity, with the keys of its terms as they are before the API server merges them into selectors."""

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> Any:
        """Read the affinity."""
        return record_of(Affinity).decode(_unmerged(value), at, report)


class SpreadKind(ValueKind):
    """A topology spread constraint, with its keys as they are before the API server merges them into its selector."""

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> Any:
        """Read the constraint."""
        return record_of(SpreadConstraint).decode(_unmerged(value), at, report)


_MERGED = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))


def _unmerged(value: Any) -> Any:
    """Copy a value without those label keys of terms that the API server has merged into their selectors.

    No other client may name a key in both; what it made of a key at the pod's creation holds, whatever its labels are
    now.
    """
    if isinstance(value, list):
        return [_unmerged(item) for item in value]
    if not isinstance(value, dict):
        return value
    selector = value.get("labelSelector")
    if "topologyKey" not in value or not isinstance(selector, dict):
        return {key: _unmerged(item) for key, item in value.items()}
    listed = selector.get("matchExpressions")
    stated = [e for e in listed if isinstance(e, dict)] if isinstance(listed, list) else []
    kept = dict(value)
    for name, operator in _MERGED:
        if isinstance(value.get(name), list):
            done = [e.get("key") for e in stated if e.get("operator") == operator]
            kept[name] = [key for key in value[name] if key not in done]
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
    exact = ExactAmountsKind()
    resources = entry_of("resources", requests=exact, limits=exact)
    port = entry_of(
        "port",
        hostPort=IntegerKind(0, 65_535),
        containerPort=IntegerKind(0, 65_535),
        hostIP=TextKind(),
        protocol=TextKind(),
    )
    container = entry_of(
        "container",
        name=TextKind(),
        resources=resources,
        ports=ListKind(port),
        restartPolicy=TextKind(),
        restartPolicyRules=ListKind(entry_of("rule", action=TextKind())),
        volumeMounts=ListKind(entry_of("mount", bindMountOptions=ListKind(AnyKind()))),
    )
    conditions = ListKind(entry_of("condition", type=TextKind(), status=TextKind(), reason=TextKind()))
    running = ListKind(entry_of("container status", name=TextKind(), allocatedResources=exact, resources=resources))
    status = entry_of(
        "status",
        conditions=conditions,
        containerStatuses=running,
        initContainerStatuses=running,
        allocatedResources=exact,
        resources=resources,
    )
    return entry_of(
        "spec",
        containers=ListKind(container),
        initContainers=ListKind(container),
        overhead=exact,
        resources=resources,
        nodeName=TextKind(),
        nodeSelector=PairsKind(),
        affinity=AffinityKind(),
        tolerations=ListKind(record_of(Toleration)),
        topologySpreadConstraints=ListKind(SpreadKind()),
        schedulingGates=ListKind(AnyKind()),
        priority=kind_of(Priority),
        priorityClassName=TextKind(),
        runtimeClassName=TextKind(),
        preemptionPolicy=ChoiceKind(("PreemptLowerPriority", "Never")),
        hostNetwork=BooleanKind(),
        hostUsers=BooleanKind(),
        status=status,
        terminationGracePeriodSeconds=kind_of(Ordinal),
        volumes=ListKind(MapKind(AnyKind())),
        resourceClaims=ListKind(MapKind(AnyKind())),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFields:
    """The fields of a pod's spec that matter to its task: attributes of a `TaskSpec`, and beside them the task's own.

    ``priority`` is None where the spec gives none, whatever its ``priority_class``. ``own_claims`` are its volumes for
    each of which a claim is made: number and name of each, and the template of the claim.
    """

    asked: dict[str, Any]
    is_gated: bool
    priority: int | None
    priority_class: str | None
    preemption_policy: ContenderPolicy | None
    grace_period: int | None
    own_claims: tuple[tuple[int, str, Any], ...] = ()


def read_pod(read: EntryValues, metadata: Mapping[str, Any], report: ProblemReport) -> PodFields:
    """Make what a pod asks for of its spec and its metadata."""
    at, spec = read
    amounts = pod_requests(spec)
    asked = {
        "requests": tuple(sorted((resource, amount) for resource, amount in amounts.items() if amount)),
        "labels": tuple(sorted(metadata.get("labels", {}).items())),
        "node_selector": spec.get("nodeSelector", ()),
        "affinity": spec.get("affinity"),
        "tolerations": spec.get("tolerations", ()),
        "spread": spec.get("topologySpreadConstraints", ()),
        "host_ports": tuple(_host_ports(spec)),
        "unsupported": tuple(_unsupported(spec)),
        "features": tuple(_features(spec)),
        "claims": tuple(_claims(spec)),
        "resource_claims": tuple(dict.fromkeys(_device_claims(spec))),
        "extended": tuple(extended_requests(spec)),
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
        preemption_policy=spec.get("preemptionPolicy"),
        grace_period=None if seconds is None else seconds * 1_000_000,
        own_claims=tuple(
            (number, str(volume.get("name", "")), source.get("volumeClaimTemplate"))
            for number, volume in enumerate(spec.get("volumes", ()))
            if isinstance(source := volume.get("ephemeral"), dict)
        ),
    )


def _host_ports(spec: Mapping[str, Any]) -> Iterable[HostPort]:
    on_host = spec.get("hostNetwork", False)
    sidecars = [c for c in values_of(spec.get("initContainers", ())) if c.get("restartPolicy") == "Always"]
    for container in (*values_of(spec.get("containers", ())), *sidecars):
        for port in values_of(container.get("ports", ())):
            number = port.get("hostPort") or (port.get("containerPort") if on_host else None)
            if number:
                yield HostPort(port=number, protocol=port.get("protocol", "TCP"), ip=port.get("hostIP") or "0.0.0.0")  # noqa: S104


def _features(spec: Mapping[str, Any]) -> Iterable[str]:
    """Give what the kubelet of its node has to declare (``k8s.io/component-helpers/nodedeclaredfeatures``)."""
    containers = values_of((*spec.get("containers", ()), *spec.get("initContainers", ())))
    rules = (rule for container in containers for rule in values_of(container.get("restartPolicyRules", ())))
    if any(rule.get("action") == "RestartAllContainers" for rule in rules):
        yield "RestartAllContainersOnContainerExits"
    if spec.get("hostNetwork") and spec.get("hostUsers") is False:
        yield "UserNamespacesHostNetworkSupport"
    mounts = (mount for container in containers for mount in values_of(container.get("volumeMounts", ())))
    if any(mount.get("bindMountOptions") for mount in mounts):
        yield "VolumeBindMountOptions"


def _claims(spec: Mapping[str, Any]) -> Iterable[str]:
    """Give the claims that a pod mounts, each once."""
    named = (volume.get("persistentVolumeClaim") for volume in spec.get("volumes", ()))
    return dict.fromkeys(str(claim.get("claimName", "")) for claim in named if isinstance(claim, dict))


def _device_claims(spec: Mapping[str, Any]) -> Iterable[str]:
    """Give the claims on devices that a pod uses, each once; one of a template by what stands for the template."""
    for claim in spec.get("resourceClaims", ()):
        if claim.get("resourceClaimName"):
            yield str(claim["resourceClaimName"])
        elif claim.get("resourceClaimTemplateName"):
            yield f"{OF_TEMPLATE}{claim['resourceClaimTemplateName']}/{claim.get('name', '')}"


def _unsupported(spec: Mapping[str, Any]) -> Iterable[str]:
    for claim in spec.get("resourceClaims", ()):
        if not (claim.get("resourceClaimName") or claim.get("resourceClaimTemplateName")):
            yield f"resource claim {claim.get('name', '')}"
    for volume in spec.get("volumes", ()):
        for source in volume:
            if source not in _CLAIMS and source not in UNBOUND_VOLUMES:
                yield f"volume {volume.get('name', '')} ({source})"


@cache
def _of_kai() -> dict[str, tuple[str, ValueKind]]:
    fraction, memory, devices = KAI_SHARE
    return {
        fraction: _ANNOTATIONS["tenure.dev/gpu-fraction"],
        memory: ("gpu_memory", MebibytesKind(1, 2**40)),
        devices: _ANNOTATIONS["tenure.dev/gpu-devices"],
    }


def read_annotations(metadata: EntryValues, report: ProblemReport) -> dict[str, Any]:
    """Read the annotations that mean something: by attribute, parts of a GPU as the short forms of cluster files."""
    annotations = metadata.values.get("annotations", {})
    asked = {}
    left_out = KAI_SHARE if any(key in annotations for key in _SHARE) else ()
    for key, (attribute, kind) in {**_ANNOTATIONS, **_of_kai()}.items():
        if key in annotations and key not in left_out:
            value = kind.decode(resolve_scalar(annotations[key]), ((metadata.at, "annotations"), key), report)
            if value is not BAD:
                asked[attribute] = value
    return asked
