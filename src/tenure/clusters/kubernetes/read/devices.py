"""ResourceClaims, ResourceSlices and DeviceClasses, and what the pods that use them make of that.

Groups of pods are kept in mind by the claims that they use, so that they are made anew where one of these changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from tenure.clusters.kubernetes.bounded import brief
from tenure.clusters.kubernetes.cache.allocations import AssumedAllocations
from tenure.clusters.kubernetes.cache.handlers import GroupKey, ObjectStore, owners_of
from tenure.clusters.kubernetes.cache.owners import Key
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.read.claim_users import ClaimUsers
from tenure.clusters.kubernetes.read.storage import ConvertedObjects
from tenure.model.device_manifests import claim_from, class_from, slice_from, taint_rule_from, tainted
from tenure.model.device_uses import DeviceUseResolver, using_devices
from tenure.model.devices import MOST_USERS, DeviceClaim, DeviceInventory, DeviceUse
from tenure.model.settings import Settings

MOST_DEVICE_CLAIMS: Final = 32
"""Claims on devices of one pod."""

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
        claim = self._known[key]
        if claim.allocation is not None:
            return claim
        allocation = self._assumed.of(key)
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


class DeviceUseReader:
    """The reader of what pods use of devices; ``store`` gives the objects of a watch by its name."""

    def __init__(
        self,
        store: Callable[[str], ObjectStore],
        assumed: AssumedAllocations,
        settings: Callable[[], Settings],
    ) -> None:
        self._store = store
        self._settings = settings
        self._counts: Mapping[str, Mapping[str, int]] = {}
        self._assumed = assumed
        self._claims = ClaimsWithAssumed(ConvertedObjects(lambda: store(CLAIMS), _claim_of), assumed)
        self._slices = ConvertedObjects(lambda: store(SLICES), _slice_of)
        self._classes = ConvertedObjects(lambda: store(CLASSES), _class_of)
        self._users = ClaimUsers()
        self._uses: dict[Key, DeviceUse] = {}
        self._seen: tuple[int, ...] = ()
        self._having: dict[str, DeviceClaim] = {}
        self._listed: tuple[tuple[int, ...], DeviceInventory] = ((), DeviceInventory())

    def _versions(self) -> tuple[int, ...]:
        return (*(self._store(name).version for name in (CLAIMS, SLICES, CLASSES, TAINTS)), self._assumed.version)

    def inventory(self) -> DeviceInventory:
        """Give what decides about devices, of claims those that have some; what did not change is the same object."""
        seen, (before, known) = self._versions(), self._listed
        if seen != before:
            slices, classes, claims = known.slices, known.classes, known.claims
            if not before or (seen[1], seen[3]) != (before[1], before[3]):
                rules = [found for rule in self._store(TAINTS).sorted() if (found := taint_rule_from(_plain(rule)))]
                slices = tuple(tainted(s, rules) for s in self._slices.listed() if s is not None)
            if not before or seen[2] != before[2]:
                classes = self._classes.listed()
            if not before or (seen[0], seen[4]) != (before[0], before[4]):
                claims = self._with_devices(before[0] if before else -1)
            known = DeviceInventory(slices=slices, classes=classes, claims=claims)
            self._listed = seen, known
        return known

    def all_claims(self) -> tuple[DeviceClaim, ...]:
        """Give all claims, whether or not they have devices."""
        return self._claims.listed()

    def _with_devices(self, version: int) -> tuple[DeviceClaim, ...]:
        """Give the claims that have devices; tenants may make many others, which are not looked at each time."""
        recent = self._store(CLAIMS).since(version) if version >= 0 else None
        if recent is None:
            self._having.clear()
        again = self._claims if recent is None else {"/".join(key) for key in recent | self._assumed.pending()}
        for key in list(again):
            claim = self._claims.get(key)
            if claim is not None and claim.allocation is not None:
                self._having[key] = claim
            else:
                self._having.pop(key, None)
        return tuple(claim for _, claim in sorted(self._having.items()))

    def changed(self) -> Iterator[GroupKey]:
        """Give the groups of which a claim is in another state than when they were last asked for."""
        seen = self._versions()
        before, self._seen = self._seen, seen
        counts, self._counts = self._counts, self._settings().device_classes
        if (seen == before and counts == self._counts) or not self._users.of:
            return
        is_of_claims = bool(before) and before[2] == seen[2] and counts == self._counts
        changed = self._store(CLAIMS).since(before[0]) if is_of_claims else None
        used = self._users.of
        keys = used.keys() if changed is None else (changed | self._assumed.changed()) & used.keys()
        for key in sorted(keys):
            found = self._read(key)
            if found != self._uses.get(key):
                self._uses[key] = found
                yield from sorted(used[key])

    def using(self, group: GroupKey, records: Iterable[PodRecord]) -> list[PodRecord]:
        """Give a group's pods with what their claims on devices make of their placement."""
        listed = list(records)
        keys = frozenset((r.namespace, name) for r in listed for _, name, _ in r.device_claims if name)
        self._note(group, keys)
        return [self._with(r) if r.device_claims else r for r in listed]

    def _note(self, group: GroupKey, claims: frozenset[Key]) -> None:
        for key in self._users.note(group, claims):
            self._uses.pop(key, None)

    def _with(self, record: PodRecord) -> PodRecord:
        spec = record.task.spec
        if len(record.device_claims) > MOST_DEVICE_CLAIMS:
            told = f"{len(record.device_claims)} resource claims ({MOST_DEVICE_CLAIMS} at the most)"
            spec = replace(spec, unsupported=(*spec.unsupported, told))
        else:
            uses = {use.claim: use for use in (self._use(record, *entry) for entry in record.device_claims) if use}
            names = tuple(key.partition("/")[2] for key in uses)
            spec = replace(spec, resource_claims=names)
            spec = using_devices(spec, tuple(uses.values()), record.uid)
        return replace(record, task=replace(record.task, spec=spec))

    def _use(self, record: PodRecord, entry: str, name: str, kind: str) -> DeviceUse | None:
        if kind == "none":
            return None
        if not name:
            waits = f"resource claim {entry}, which its controller has not made yet"
            return DeviceUse(claim=f"{record.namespace}/{record.name}.{entry}", awaits=waits)
        key = record.namespace, name
        item = self._store(CLAIMS).items.get(key)
        if kind == "own" and item is not None and record.uid not in owners_of(item.metadata):
            waits = f"resource claim {name}, which was not made for this pod"
            return DeviceUse(claim="/".join(key), awaits=waits)
        claim = self._claims.get("/".join(key))
        if claim is not None and record.uid not in claim.reserved_for and len(claim.reserved_for) >= MOST_USERS:
            waits = f"resource claim {name}, which {MOST_USERS} pods use already"
            return DeviceUse(claim="/".join(key), awaits=waits)
        known = self._uses.get(key)
        if known is None:
            known = self._uses[key] = self._read(key)
        return known

    def _read(self, key: Key) -> DeviceUse:
        text = "/".join(key)
        try:
            return DeviceUseResolver(self._claims, self._classes, self._settings().device_classes).of(text)
        except Exception as error:  # noqa: BLE001  whatever a stranger wrote costs the pods that use it alone
            return DeviceUse(claim=text, unsupported=f"resource claim {key[1]} (cannot be read: {brief(error)})")


def _plain(item: Any) -> dict[str, Any]:
    """Give an object as its manifest would be."""
    meta = item.metadata
    return {
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid,
                     "deletionTimestamp": meta.deletion_timestamp},
        "spec": item.spec if isinstance(item.spec, dict) else {},
        "status": item.status if isinstance(item.status, dict) else {},
    }  # fmt: skip


def _claim_of(item: Any) -> DeviceClaim:
    return claim_from(_plain(item))


def _slice_of(item: Any) -> Any:
    return slice_from(_plain(item))


def _class_of(item: Any) -> Any:
    return class_from(_plain(item))
