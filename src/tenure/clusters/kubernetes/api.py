"""The parts of Kubernetes' objects that are read, as narrow structs: everything else is skipped while decoding."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from tenure.model.entries import API_VERSION, API_VERSIONS
from tenure.model.values.duration import parse_time

POD_GROUP_LABEL = "tenure.dev/pod-group"
POOL_LABEL = "tenure.dev/node-pool"
GROUP_VERSION = API_VERSION
GROUP_PATHS = tuple(f"/apis/{version}" for version in API_VERSIONS)
"""Where Tenure's own kinds are served, the first that is there being asked: a cluster may have older definitions."""


class _Narrow(Struct, rename="camel", gc=False):
    """A struct with Kubernetes' names; what it does not name is skipped."""


class Owner(_Narrow):
    """A reference to an owner."""

    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool = False


class Meta(_Narrow):
    """An object's metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[Owner] | None = None
    finalizers: list[str] | None = None


class Mount(_Narrow, omit_defaults=True):
    """What of a mounted volume decides about a pod's placement."""

    bind_mount_options: list[str] | None = None


class Container(_Narrow, omit_defaults=True):
    """The requests of a container."""

    name: str = ""
    resources: dict[str, Any] | None = None
    ports: list[dict[str, Any]] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[dict[str, Any]] | None = None
    volume_mounts: list[Mount] | None = None


class ApiPodSpec(_Narrow, omit_defaults=True):
    """The part of a pod's spec that decides about its placement."""

    containers: list[Container] = []
    init_containers: list[Container] | None = None
    overhead: dict[str, Any] | None = None
    resources: dict[str, Any] | None = None
    node_selector: dict[str, str] | None = None
    affinity: dict[str, Any] | None = None
    tolerations: list[dict[str, Any]] | None = None
    topology_spread_constraints: list[dict[str, Any]] | None = None
    scheduling_gates: list[dict[str, Any]] | None = None
    host_network: bool = False
    host_users: bool | None = None
    resource_claims: list[dict[str, Any]] | None = None
    volumes: list[dict[str, Any]] | None = None
    node_name: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    scheduler_name: str = ""
    termination_grace_period_seconds: int | None = None
    scheduling_group: dict[str, Any] | None = None
    workload_ref: dict[str, Any] | None = None


class Condition(_Narrow):
    """A condition of an object's status."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class ContainerStatus(_Narrow, omit_defaults=True):
    """What a container has been given on its node."""

    name: str = ""
    allocated_resources: dict[str, Any] | None = None
    resources: dict[str, Any] | None = None


class PodStatus(_Narrow):
    """A pod's status."""

    phase: str = ""
    conditions: list[Condition] | None = None
    nominated_node_name: str | None = None
    start_time: str | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    allocated_resources: dict[str, Any] | None = None
    resources: dict[str, Any] | None = None
    resource_claim_statuses: list[dict[str, Any]] | None = None
    extended_resource_claim_status: dict[str, Any] | None = None


class ApiPod(_Narrow):
    """A pod."""

    metadata: Meta
    spec: ApiPodSpec
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class NodeSpec(_Narrow):
    """A node's spec."""

    unschedulable: bool = False
    taints: list[dict[str, Any]] | None = None


class NodeStatus(_Narrow):
    """A node's status."""

    allocatable: dict[str, Any] | None = None
    conditions: list[Condition] | None = None
    declared_features: list[str] | None = None


class ApiNode(_Narrow):
    """A node."""

    metadata: Meta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class ApiObject(_Narrow):
    """An object of which spec, status and data are taken as they are."""

    metadata: Meta
    api_version: str = ""
    kind: str = ""
    spec: Any = None
    status: Any = None
    data: Any = None
    value: int | None = None
    preemption_policy: str | None = None
    annotations: dict[str, str] | None = None


class ClaimSpec(_Narrow, omit_defaults=True):
    """What of a claim's spec decides about the placement of the pods that mount it."""

    volume_name: str = ""
    access_modes: list[str] | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    selector: dict[str, Any] | None = None
    resources: dict[str, Any] | None = None


class ClaimStatus(_Narrow):
    """The status of a claim."""

    phase: str = ""


class ApiClaim(_Narrow):
    """A PersistentVolumeClaim."""

    metadata: Meta
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)


class CsiSource(_Narrow):
    """The driver of a volume, and what that calls it."""

    driver: str = ""
    volume_handle: str = ""


class VolumeSpec(_Narrow, rename={"node_affinity": "nodeAffinity", "access_modes": "accessModes",
                                  "storage_class": "storageClassName", "volume_mode": "volumeMode",
                                  "attributes_class": "volumeAttributesClassName", "claim_ref": "claimRef",
                                  "gce_disk": "gcePersistentDisk",
                                  "aws_disk": "awsElasticBlockStore", "azure_disk": "azureDisk",
                                  "vsphere": "vsphereVolume"}):  # fmt: skip
    """What of a volume's spec decides about the placement of the pods that mount it."""

    node_affinity: dict[str, Any] | None = None
    capacity: dict[str, Any] | None = None
    access_modes: list[str] | None = None
    storage_class: str = ""
    volume_mode: str | None = None
    attributes_class: str | None = None
    claim_ref: dict[str, Any] | None = None
    csi: CsiSource | None = None
    gce_disk: dict[str, Any] | None = None
    aws_disk: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    vsphere: dict[str, Any] | None = None


class ApiVolume(_Narrow):
    """A PersistentVolume."""

    metadata: Meta
    spec: VolumeSpec = msgspec.field(default_factory=VolumeSpec)
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)


class ApiStorageClass(_Narrow):
    """A StorageClass."""

    metadata: Meta
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[dict[str, Any]] | None = None
    spec: Any = None
    status: Any = None


class ApiStorageCapacity(_Narrow):
    """A CSIStorageCapacity."""

    metadata: Meta
    storage_class_name: str = ""
    capacity: Any = None
    maximum_volume_size: Any = None
    node_topology: dict[str, Any] | None = None
    spec: Any = None
    status: Any = None


class KueueStatus(_Narrow):
    """What of the status of one of Kueue's workloads says whether it is admitted."""

    conditions: list[Condition] | None = None


class ApiKueueWorkload(_Narrow):
    """A workload of Kueue's: what it admits, and evicts, as a whole."""

    metadata: Meta
    status: KueueStatus = msgspec.field(default_factory=KueueStatus)


class ListMeta(_Narrow):
    """Metadata of a list."""

    resource_version: str = ""
    continue_: str | None = msgspec.field(default=None, name="continue")


class WatchError(_Narrow):
    """The content of a watch's error event."""

    code: int = 0
    message: str = ""
    reason: str = ""


class WatchEvent(_Narrow):
    """A line of a watch; the object is decoded when its type is known."""

    type: str
    object: msgspec.Raw


def micros(time: str | None) -> int | None:
    """Give a time of the API (RFC 3339), in µs since the epoch; None where there is none or it cannot be read."""
    if not time:
        return None
    try:
        return parse_time(time)
    except ValueError:
        return None
