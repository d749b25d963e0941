"""ResourceClaims, ResourceSlices and DeviceClasses of a cluster, as the model has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from tenure.clusters.kubernetes.cache.allocations import AssumedAllocations
from tenure.clusters.kubernetes.cache.given_up import GivenUpDevices
from tenure.clusters.kubernetes.cache.handlers import ObjectStore
from tenure.clusters.kubernetes.cache.owners import Key
from tenure.clusters.kubernetes.read.storage import ConvertedObjects
from tenure.model.device_readiness import readiness
from tenure.model.devices import DeviceClaim, DeviceInventory
from tenure.model.manifests.devices import claim_from, class_from, slice_from, taint_rule_from, tainted
from tenure.model.manifests.extended_resources import is_implied
from tenure.model.settings import Settings

CLAIMS: Final = "resourceclaims"
SLICES: Final = "resourceslices"
CLASSES: Final = "deviceclasses"
TAINTS: Final = "devicetaintrules"


class ClaimsWithAssumed(Mapping[str, DeviceClaim]):
    """The claims on devices by namespace/name, with allocations that are being written."""

    def __init__(self, known: ConvertedObjects[DeviceClaim], assumed: AssumedAllocations) -> None:
        self._known = known
        self._assumed = assumed

    def __getitem__(self, key: str) -> DeviceClaim:
        """Give the claim of that key."""
        allocation = self._assumed.of(key)
        if is_implied(key) and allocation is not None:  # until it is known by the name that it gets
            namespace, _, name = key.partition("/")
            return DeviceClaim(name=name, namespace=namespace, allocation=allocation, is_made=True)
        claim = self._known[key]
        if claim.allocation is not None:
            return claim
        return claim if allocation is None else replace(claim, allocation=allocation)

    def __iter__(self) -> Iterator[str]:
        """Give all keys, in their order."""
        return iter(self._known)

    def __len__(self) -> int:
        """Count the claims."""
        return len(self._known)

    def listed(self) -> tuple[DeviceClaim, ...]:
        """Give all claims in the order of their keys; one that goes meanwhile is left out."""
        return tuple(found for key in self if (found := self.get(key)) is not None)


class DeviceInventoryReader:
    """The reader of devices and of the claims that have some; ``store`` gives the objects of a watch by its name."""

    def __init__(
        self,
        store: Callable[[str], ObjectStore],
        assumed: AssumedAllocations,
        given_up: GivenUpDevices,
        settings: Callable[[], Settings],
    ) -> None:
        self._store = store
        self._settings = settings
        self._assumed = assumed
        self._given_up = given_up
        self.claims = ClaimsWithAssumed(ConvertedObjects(lambda: store(CLAIMS), claim_of), assumed)
        self._slices = ConvertedObjects(lambda: store(SLICES), _slice_of)
        self.classes = ConvertedObjects(lambda: store(CLASSES), _class_of)
        self._having: dict[str, DeviceClaim] = {}
        self._prepared: dict[str, DeviceClaim] = {}
        self._listed: tuple[tuple[int, ...], DeviceInventory] = ((), DeviceInventory())

    def prepared(self) -> tuple[DeviceClaim, ...]:
        """Give the claims with devices that their drivers prepare, as the inventory has them."""
        return tuple(claim for _, claim in sorted(self._prepared.items()))

    def wake(self, now: int) -> int | None:
        """Give when the first claim that waits for its devices to be ready gives them up, in µs since the epoch."""
        timeout = self._settings().device_binding_timeout
        waiting = (readiness(claim, now, timeout).until for claim in self.prepared())
        return min((until + 1 for until in waiting if until is not None), default=None)

    def versions(self) -> tuple[int, ...]:
        """Give numbers that grow with each change of what is read."""
        stores = (self._store(name).version for name in (CLAIMS, SLICES, CLASSES, TAINTS))
        return (*stores, self._assumed.version, self._given_up.version)

    def inventory(self) -> DeviceInventory:
        """Give what decides about devices, of claims those that have some; what did not change is the same object."""
        seen, (before, known) = self.versions(), self._listed
        if seen != before:
            slices, classes, claims = known.slices, known.classes, known.claims
            if not before or (seen[1], seen[3], seen[5]) != (before[1], before[3], before[5]):
                rules = [found for rule in self._store(TAINTS).sorted() if (found := taint_rule_from(_plain(rule)))]
                rules += self._given_up.rules()
                slices = tuple(tainted(s, rules) for s in self._slices.listed() if s is not None)
            if not before or seen[2] != before[2]:
                classes = self.classes.listed()
            if not before or (seen[0], seen[4]) != (before[0], before[4]):
                claims = self._with_devices(before[0] if before else -1)
            known = DeviceInventory(slices=slices, classes=classes, claims=claims)
            self._listed = seen, known
        return known

    def written(self) -> set[Key]:
        """Give the claims of which what is being written changed since this was last asked for."""
        return self._assumed.changed()

    def all_claims(self) -> tuple[DeviceClaim, ...]:
        """Give all claims, whether or not they have devices."""
        return self.claims.listed()

    def _with_devices(self, version: int) -> tuple[DeviceClaim, ...]:
        """Give the claims that have devices; tenants may make many others, which are not looked at each time."""
        recent = self._store(CLAIMS).since(version) if version >= 0 else None
        if recent is None:
            self._having.clear()
            self._prepared.clear()
        pending = {"/".join(key) for key in self._assumed.pending()}
        again = (
            {*self.claims, *self._assumed.known()} if recent is None else {"/".join(key) for key in recent} | pending
        )
        for key in list(again):
            claim = self.claims.get(key)
            if claim is not None and claim.allocation is not None:
                self._having[key] = claim
                if any(device.binding_conditions for device in claim.allocation.devices):
                    self._prepared[key] = claim
            else:
                self._having.pop(key, None)
                self._prepared.pop(key, None)
        return tuple(claim for _, claim in sorted(self._having.items()))


def _plain(item: Any) -> dict[str, Any]:
    """Give an object as its manifest would be."""
    meta = item.metadata
    return {
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid,
                     "annotations": meta.annotations, "creationTimestamp": meta.creation_timestamp,
                     "deletionTimestamp": meta.deletion_timestamp},
        "spec": item.spec if isinstance(item.spec, dict) else {},
        "status": item.status if isinstance(item.status, dict) else {},
    }  # fmt: skip


def claim_of(item: Any) -> DeviceClaim:
    """Give a claim as the model has it."""
    return claim_from(_plain(item))


def _slice_of(item: Any) -> Any:
    return slice_from(_plain(item))


def _class_of(item: Any) -> Any:
    return class_from(_plain(item))
