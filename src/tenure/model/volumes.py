"""Volumes, the claims by which tasks mount them, and what decides where a claim finds its volume."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from tenure.model.fields.vocabulary import Bytes, FieldKey, NameText, Ordinal, Wrapped
from tenure.model.selectors import LabelSelector, NodeSelector
from tenure.model.values.resources import Labels

AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]
VolumeMode = Literal["Filesystem", "Block"]
BindingMode = Literal["Immediate", "WaitForFirstConsumer"]

ONE_POD: Final = "ReadWriteOncePod"
"""Access mode of a claim that no two pods use at a time."""

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
"""Provisioner of a class whose volumes are made by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A PersistentVolume. ``capacity`` in bytes; ``claim`` is namespace/name of the claim that it is kept for.

    ``node_affinity`` are the nodes that reach it; where it is None, all do. ``driver`` and ``handle`` are those of its
    CSI driver. ``is_available``: it is not bound, and it can be. ``claim_uid`` empty: a claim of that name
    has it, whichever.
    """

    name: NameText
    capacity: Bytes = 0
    storage_class: str = ""
    access_modes: tuple[AccessMode, ...] = ()
    volume_mode: VolumeMode = "Filesystem"
    attributes_class: Annotated[str, FieldKey("volumeAttributesClass")] = ""
    driver: str = ""
    handle: Annotated[str, FieldKey("volumeHandle")] = ""
    labels: Labels = field(default_factory=dict)
    node_affinity: Annotated[NodeSelector | None, Wrapped("required")] = None
    claim: str = ""
    claim_uid: str = ""
    is_available: Annotated[bool, FieldKey("available")] = True
    is_going: Annotated[bool, FieldKey("deleting")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeClaim:
    """A PersistentVolumeClaim. ``requests`` in bytes; ``volume`` is the volume that it names.

    ``is_bound``: its volume is bound to it as well. ``selected_node`` is the node for which its volume is being made.
    """

    name: NameText
    namespace: NameText = "default"
    uid: str = ""
    volume: str = ""
    storage_class: str = ""
    requests: Bytes = 0
    access_modes: tuple[AccessMode, ...] = ()
    volume_mode: VolumeMode = "Filesystem"
    attributes_class: Annotated[str, FieldKey("volumeAttributesClass")] = ""
    selector: LabelSelector | None = None
    selected_node: str = ""
    is_bound: Annotated[bool, FieldKey("bound")] = True
    is_lost: Annotated[bool, FieldKey("lost")] = False
    is_going: Annotated[bool, FieldKey("deleting")] = False

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClass:
    """A StorageClass: who makes volumes of it, when a claim is bound, and on which nodes."""

    name: NameText
    provisioner: str = ""
    binding_mode: Annotated[BindingMode, FieldKey("volumeBindingMode")] = "Immediate"
    allowed_topologies: Annotated[NodeSelector | None, Wrapped("required")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageDriver:
    """A CSIDriver: whether it publishes what storage is left, and whether a node without it takes none of its pods."""

    name: NameText
    storage_capacity: bool = False
    is_needed: Annotated[bool, FieldKey("preventPodSchedulingIfMissing")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageCapacity:
    """A CSIStorageCapacity: the largest volume of a class that nodes can have, in bytes.

    ``nodes`` None: no node.
    """

    storage_class: str
    largest: Annotated[Bytes, FieldKey("maximumVolumeSize")] = 0
    nodes: Annotated[LabelSelector | None, FieldKey("nodeTopology")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDriver:
    """A CSI driver on a node (CSINode): the most volumes that it attaches there, and the labels of their reach."""

    name: str
    limit: Ordinal | None = None
    topology_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeAttachment:
    """A VolumeAttachment: a volume of a CSI driver that is attached to a node, used or not."""

    driver: str
    handle: Annotated[str, FieldKey("volumeHandle")]
    node: NameText


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """All that decides about the volumes of a cluster's tasks."""

    volumes: tuple[Volume, ...] = ()
    claims: tuple[VolumeClaim, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    drivers: tuple[StorageDriver, ...] = ()
    capacities: tuple[StorageCapacity, ...] = ()
