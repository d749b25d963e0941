"""Volumes, claims and what is beside them, as the model has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.bounded import total
from tenure.clusters.kubernetes.cache.handlers import ObjectStore
from tenure.model.fields.records import record_of
from tenure.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from tenure.model.values.quantity import parse_quantity
from tenure.model.values.report import BAD, ProblemReport
from tenure.model.values.resources import MEMORY
from tenure.model.volumes import (
    NodeDriver,
    StorageCapacity,
    StorageClass,
    StorageDriver,
    Volume,
    VolumeAttachment,
    VolumeClaim,
)

T = TypeVar("T")

_CLASS_OF_OLD: Final = "volume.beta.kubernetes.io/storage-class"
_UNREADABLE: Final = NodeSelector()
"""Selector of what cannot be read; no node matches it."""


class ConvertedObjects(Mapping[str, T], Generic[T]):
    """The objects of a watch as the model has them, by the key that it knows them by; each is read once."""

    def __init__(self, store: Callable[[], ObjectStore], convert: Callable[[Any], T]) -> None:
        self._store = store
        self._convert = convert
        self._known: dict[str, tuple[Any, T]] = {}

    def __getitem__(self, key: str) -> T:
        """Give the object of that key."""
        namespace, _, name = key.rpartition("/")
        item = self._store().items[namespace, name]
        known = self._known.get(key)
        if known is None or known[0] is not item:
            known = self._known[key] = item, self._convert(item)
        return known[1]

    def __iter__(self) -> Iterator[str]:
        """Give all keys, in their order."""
        listed = self._store().keys()
        if len(self._known) > 2 * len(listed) + 100:
            self._known.clear()
        return iter(sorted(f"{namespace}/{name}" if namespace else name for namespace, name in listed))

    def __len__(self) -> int:
        """Count the objects."""
        return len(self._store().items)

    def listed(self) -> tuple[T, ...]:
        """Give all objects in the order of their keys; one that goes meanwhile is left out."""
        return tuple(found for key in self if (found := self.get(key)) is not None)


def claim_of(item: api.ApiClaim) -> VolumeClaim:
    """Give a claim."""
    meta, spec = item.metadata, item.spec
    said = meta.annotations or {}
    requests = (spec.resources or {}).get("requests")
    return VolumeClaim(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        volume=spec.volume_name,
        storage_class=said.get(_CLASS_OF_OLD) or spec.storage_class_name or "",
        requests=_bytes((requests or {}).get("storage") if isinstance(requests, dict) else None),
        access_modes=tuple(spec.access_modes or ()),  # type: ignore[arg-type]
        volume_mode=spec.volume_mode or "Filesystem",  # type: ignore[arg-type]
        attributes_class=spec.volume_attributes_class_name or "",
        selector=None if spec.selector is None else _read(LabelSelector, spec.selector),
        selected_node=said.get(keys.SELECTED_NODE, ""),
        is_bound=bool(spec.volume_name) and keys.BIND_COMPLETED in said,
        is_lost=item.status.phase == "Lost",
        is_going=bool(meta.deletion_timestamp),
    )


def volume_of(item: api.ApiVolume) -> Volume:
    """Give a volume."""
    meta, spec = item.metadata, item.spec
    held = spec.claim_ref or {}
    required = (spec.node_affinity or {}).get("required")
    driver, handle = _driver_of(spec, meta.name)
    return Volume(
        name=meta.name,
        capacity=_bytes((spec.capacity or {}).get("storage")),
        storage_class=(meta.annotations or {}).get(_CLASS_OF_OLD) or spec.storage_class,
        access_modes=tuple(spec.access_modes or ()),  # type: ignore[arg-type]
        volume_mode=spec.volume_mode or "Filesystem",  # type: ignore[arg-type]
        attributes_class=spec.attributes_class or "",
        driver=driver,
        handle=handle,
        labels=meta.labels or {},
        node_affinity=None if required is None else _read(NodeSelector, required) or _UNREADABLE,
        claim=f"{held.get('namespace', '')}/{held.get('name', '')}" if held else "",
        claim_uid=str(held.get("uid", "")),
        is_available=item.status.phase == "Available",
        is_going=bool(meta.deletion_timestamp),
    )


def storage_class_of(item: api.ApiStorageClass) -> StorageClass:
    """Give a class of storage."""
    return StorageClass(
        name=item.metadata.name,
        provisioner=item.provisioner,
        binding_mode="WaitForFirstConsumer" if item.volume_binding_mode == "WaitForFirstConsumer" else "Immediate",
        allowed_topologies=_topologies(item.allowed_topologies) if item.allowed_topologies else None,
    )


def driver_of(item: api.ApiObject) -> StorageDriver:
    """Give a CSI driver."""
    spec = item.spec if isinstance(item.spec, dict) else {}
    return StorageDriver(
        name=item.metadata.name,
        storage_capacity=spec.get("storageCapacity") is True,
        is_needed=spec.get("preventPodSchedulingIfMissing") is True,
    )


def capacity_of(item: api.ApiStorageCapacity) -> StorageCapacity:
    """Give what storage of a class is left for some nodes; the largest volume counts where it is known."""
    largest = item.capacity if item.maximum_volume_size is None else item.maximum_volume_size
    return StorageCapacity(
        storage_class=item.storage_class_name,
        largest=-1 if largest is None else _bytes(largest),
        nodes=None if item.node_topology is None else _read(LabelSelector, item.node_topology),
    )


def node_drivers_of(item: api.ApiObject | None) -> tuple[NodeDriver, ...]:
    """Give the CSI drivers of a node, by its CSINode; none where that cannot be read."""
    spec = item.spec if item is not None and isinstance(item.spec, dict) else {}
    listed = spec.get("drivers")
    return total(lambda: tuple(sorted(map(_node_driver, listed or ()), key=lambda d: d.name)), (), lambda _: None)


def _node_driver(driver: dict[str, Any]) -> NodeDriver:
    limit = (driver.get("allocatable") or {}).get("count")
    named = tuple(map(str, driver.get("topologyKeys") or ()))
    return NodeDriver(name=str(driver["name"]), limit=limit if type(limit) is int else None, topology_keys=named)


def attachments_of(items: Iterable[Any], volumes: Mapping[str, Volume]) -> tuple[VolumeAttachment, ...]:
    """Give which volumes of CSI drivers are attached to which nodes."""
    found = set()
    for item in items:
        spec = item.spec if isinstance(item.spec, dict) else {}
        source = spec.get("source")
        name = str(source.get("persistentVolumeName") or "") if isinstance(source, dict) else ""
        volume = volumes.get(name) if name else None
        if volume is not None and volume.handle and spec.get("attacher"):
            found.add((str(spec["attacher"]), volume.handle, str(spec.get("nodeName", ""))))
    return tuple(VolumeAttachment(driver=d, handle=h, node=n) for d, h, n in sorted(found))


def _driver_of(spec: api.VolumeSpec, name: str) -> tuple[str, str]:
    """Give driver and handle of a volume; one of the tree's own drivers counts as one of its successor's."""
    if spec.csi is not None:
        return spec.csi.driver, spec.csi.volume_handle
    of_old = {
        "pd.csi.storage.gke.io": spec.gce_disk, "ebs.csi.aws.com": spec.aws_disk, "disk.csi.azure.com": spec.azure_disk,
        "cinder.csi.openstack.org": spec.cinder, "csi.vsphere.vmware.com": spec.vsphere,
    }  # fmt: skip
    driver = next((driver for driver, source in of_old.items() if source is not None), "")
    return driver, name if driver else ""


def _topologies(terms: list[dict[str, Any]]) -> NodeSelector:
    """Give the nodes of a class's topologies: at least one of them matches; an empty one matches none."""

    def term(value: dict[str, Any]) -> NodeSelectorTerm:
        listed = value.get("matchLabelExpressions") or ()
        return NodeSelectorTerm(
            match_expressions=tuple(
                Requirement(key=str(e["key"]), operator="In", values=tuple(map(str, e.get("values") or ())))
                for e in listed
            )
        )

    return total(lambda: NodeSelector(terms=tuple(map(term, terms))), _UNREADABLE, lambda _: None)


def _read(kind: Any, value: Any) -> Any:
    report = ProblemReport()
    found = record_of(kind).decode(value, None, report)
    return None if found is BAD or report.problems else found


def _bytes(text: Any) -> int:
    return total(lambda: parse_quantity(text, MEMORY), 0, lambda _: None) if text is not None else 0
