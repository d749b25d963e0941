"""What a claim makes of the placement of the tasks that mount it.

Semantics are those of Kubernetes 1.37 (plugins VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tenure.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from tenure.model.volumes import (
    NO_PROVISIONER,
    ONE_POD,
    StorageCapacity,
    StorageClass,
    StorageDriver,
    Volume,
    VolumeClaim,
)

MOST_TERMS: Final = 64
MOST_VALUES: Final = 1024
"""Terms of a volume's node affinity, and values in them."""

_ZONES: Final = {
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels of volumes and nodes, and what they are called today."""

_BETWEEN_VALUES: Final = "__"


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailableVolume:
    """A volume that a claim may be bound to, and the nodes that reach it."""

    name: str
    nodes: tuple[NodeSelector, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClaim:
    """A claim that gets its volume where its first pod is placed.

    ``available`` are the volumes that would do, the smallest first; ``provisioner`` makes one on ``nodes`` where none
    of them does (empty: none does). ``selected`` is the node for which one is being made, ``refused`` are those for
    which that failed.
    """

    size: int = 0
    available: tuple[AvailableVolume, ...] = ()
    provisioner: str = ""
    nodes: tuple[NodeSelector, ...] = ()
    selected: str = ""
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimMount:
    """A mount of a claim: what it makes of the placement of its task.

    ``nodes`` are those that reach its volume (all of them have to match), ``awaits`` is why it has to be waited for,
    ``unsupported`` what of it is not evaluated. ``driver`` and ``handle`` name the volume where nodes may limit how
    many they attach; a driver that ``is_needed`` has to be on the node. ``is_exclusive``: no two pods use it at a time.
    """

    claim: str
    nodes: tuple[NodeSelector, ...] = ()
    awaits: str = ""
    unsupported: str = ""
    driver: str = ""
    handle: str = ""
    is_needed: bool = False
    is_exclusive: bool = False
    open: OpenClaim | None = None

    @property
    def is_ready(self) -> bool:
        """Whether a task that mounts it can be placed, given a node that suits."""
        return not self.awaits and not self.unsupported


class MountResolver:
    """The maker of mounts, from the objects of a cluster by their names; claims by namespace/name."""

    def __init__(
        self,
        claims: Mapping[str, VolumeClaim],
        volumes: Mapping[str, Volume],
        classes: Mapping[str, StorageClass],
        drivers: Mapping[str, StorageDriver],
        capacities: Iterable[StorageCapacity] = (),
    ) -> None:
        self._claims = claims
        self._volumes = volumes
        self._classes = classes
        self._drivers = drivers
        self._capacities = tuple(capacities)
        self._of_class: dict[str, list[Volume]] | None = None
        self._found: dict[object, tuple[AvailableVolume, ...]] = {}
        self._reached: dict[tuple[NodeSelector, ...], tuple[NodeSelector, ...]] = {}

    def of(self, key: str, refused: tuple[str, ...] = ()) -> ClaimMount:
        """Give what the claim of that namespace and name makes of placement; ``refused`` as in `OpenClaim`."""
        claim = self._claims.get(key)
        name = key.partition("/")[2]
        if claim is None:
            return ClaimMount(claim=key, awaits=f"claim {name}, which is not there")
        if claim.is_going:
            return ClaimMount(claim=key, awaits=f"claim {name}, which is being deleted")
        if claim.is_lost:
            return ClaimMount(claim=key, awaits=f"claim {name}, which has lost its volume")
        if claim.volume and claim.is_bound:
            return self._bound(key, claim)
        storage_class = self._classes.get(claim.storage_class)
        if claim.volume or storage_class is None or storage_class.binding_mode == "Immediate":
            return ClaimMount(
                claim=key, awaits=f"claim {name}, which is not bound to a volume{_whose(claim, storage_class)}"
            )
        return self._open(key, claim, storage_class, refused)

    def _bound(self, key: str, claim: VolumeClaim) -> ClaimMount:
        volume = self._volumes.get(claim.volume)
        if volume is None:
            return ClaimMount(claim=key, awaits=f"volume {claim.volume} of claim {claim.name}, which is not there")
        nodes = reach(volume)
        if nodes is None:
            return ClaimMount(claim=key, unsupported=f"claim {claim.name} (a node affinity that cannot be read)")
        return ClaimMount(
            claim=key,
            nodes=self._reached.setdefault(nodes, nodes),  # of a zone's volumes one, which is compared at a glance
            is_exclusive=ONE_POD in claim.access_modes,
            driver=volume.driver,
            handle=volume.handle if volume.driver else "",
            is_needed=self._is_needed(volume.driver),
        )

    def _open(self, key: str, claim: VolumeClaim, storage_class: StorageClass, refused: tuple[str, ...]) -> ClaimMount:
        provisioner = "" if storage_class.provisioner == NO_PROVISIONER else storage_class.provisioner
        nodes: tuple[NodeSelector, ...] = ()
        if storage_class.allowed_topologies is not None:
            nodes = (storage_class.allowed_topologies,)
        driver = self._drivers.get(provisioner)
        if claim.requests and driver is not None and driver.storage_capacity:
            nodes += self._with_capacity(claim)
        waiting = OpenClaim(
            size=claim.requests, available=() if claim.selected_node else self._available(key, claim),
            provisioner=provisioner, nodes=nodes, selected=claim.selected_node, refused=refused,
        )  # fmt: skip
        return ClaimMount(claim=key, open=waiting, is_exclusive=ONE_POD in claim.access_modes, driver=provisioner,
                     handle=f"claim {key}" if provisioner else "", is_needed=self._is_needed(provisioner))  # fmt: skip

    def _is_needed(self, driver: str) -> bool:
        known = self._drivers.get(driver) if driver else None
        return known is not None and known.is_needed

    def _with_capacity(self, claim: VolumeClaim) -> tuple[NodeSelector, ...]:
        """Give the nodes that have the storage for a claim; nothing where all do."""
        enough = [c.nodes for c in self._capacities if c.storage_class == claim.storage_class
                  and c.largest >= claim.requests and c.nodes is not None]  # fmt: skip
        if any(nodes == LabelSelector() for nodes in enough):
            return ()
        return (NodeSelector(terms=tuple(_term(nodes) for nodes in enough)),)

    def _available(self, key: str, claim: VolumeClaim) -> tuple[AvailableVolume, ...]:
        if self._of_class is None:
            self._of_class = {}
            for name in self._volumes:
                if (volume := self._volumes.get(name)) is not None:
                    self._of_class.setdefault(volume.storage_class, []).append(volume)
        listed = self._of_class.get(claim.storage_class, ())
        kept = [v for v in listed if v.claim == key and v.claim_uid in ("", claim.uid) and _would_do(v, claim)]
        if kept:
            return _ordered(kept[:1])
        asked = (claim.storage_class, claim.requests, claim.access_modes, claim.volume_mode, claim.attributes_class,
                 claim.selector)  # fmt: skip
        found = self._found.get(asked)
        if found is None:
            found = self._found[asked] = _ordered(v for v in listed if _is_free(v, claim) and _would_do(v, claim))
        return found


def _whose(claim: VolumeClaim, storage_class: StorageClass | None) -> str:
    """Say who has to bind a claim."""
    if claim.volume:
        return f": it names {claim.volume}"
    if storage_class is None:
        return f": there is no class {claim.storage_class}" if claim.storage_class else ""
    return f": {storage_class.provisioner or 'nobody'} binds claims of class {storage_class.name} at once"


def _would_do(volume: Volume, claim: VolumeClaim) -> bool:
    return (
        not volume.is_going
        and volume.capacity >= claim.requests
        and volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
    )


def _is_free(volume: Volume, claim: VolumeClaim) -> bool:
    return (
        not volume.claim
        and volume.is_available
        and set(claim.access_modes) <= set(volume.access_modes)
        and (claim.selector is None or _selects(claim.selector, volume.labels))
    )


def _selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.match_labels) and all(
        _holds(r, labels) for r in selector.match_expressions
    )


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    key, values = requirement.key, requirement.values
    if requirement.operator == "In":
        return labels.get(key) in values
    if requirement.operator == "NotIn":
        return labels.get(key) not in values
    return (key in labels) is (requirement.operator == "Exists")


def _ordered(volumes: Iterable[Volume]) -> tuple[AvailableVolume, ...]:
    """Sort volumes by size; their labels say nothing before they are bound."""
    return tuple(
        AvailableVolume(name=v.name, nodes=() if v.node_affinity is None else (v.node_affinity,))
        for v in sorted(volumes, key=lambda v: (v.capacity, v.name))
        if v.node_affinity is None or _is_bounded(v.node_affinity)
    )


def _term(selector: LabelSelector) -> NodeSelectorTerm:
    """Give a selector of labels as a term over the labels of nodes."""
    same = tuple(Requirement(key=key, operator="In", values=(value,)) for key, value in selector.match_labels)
    return NodeSelectorTerm(match_expressions=(*same, *selector.match_expressions))


def reach(volume: Volume) -> tuple[NodeSelector, ...] | None:
    """Give the nodes that reach a volume, by its affinity and its labels; None if that says nothing or too much."""
    zones = _zones(volume.labels)
    found = tuple(nodes for nodes in (volume.node_affinity, zones) if nodes is not None)
    return found if all(map(_is_bounded, found)) else None


def _is_bounded(selector: NodeSelector) -> bool:
    terms = selector.terms
    values = sum(1 + len(r.values) for t in terms for r in (*t.match_expressions, *t.match_fields))
    return 0 < len(terms) <= MOST_TERMS and values <= MOST_VALUES


def _zones(labels: Mapping[str, str]) -> NodeSelector | None:
    """Give the nodes in the zone and region that a volume is labelled with, and those that say of neither."""
    stated = {_ZONES[key]: text for key, text in sorted(labels.items(), reverse=True) if key in _ZONES}
    if not stated:
        return None
    there = tuple(
        Requirement(key=key, operator="In", values=tuple(sorted(set(text.split(_BETWEEN_VALUES)))))
        for key, text in sorted(stated.items())
    )
    nowhere = tuple(Requirement(key=key, operator="DoesNotExist") for key in sorted(_ZONES))
    return NodeSelector(terms=(NodeSelectorTerm(match_expressions=there), NodeSelectorTerm(match_expressions=nowhere)))
