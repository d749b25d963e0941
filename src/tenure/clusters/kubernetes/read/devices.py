"""What the pods that use devices make of claims and classes.

Groups of pods are kept in mind by the claims that they use, so that they are made anew where one of these changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from tenure.clusters.kubernetes.bounded import brief
from tenure.clusters.kubernetes.cache.handlers import GroupKey, ObjectStore, owners_of
from tenure.clusters.kubernetes.cache.owners import Key
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.read.claim_users import ClaimUsers
from tenure.clusters.kubernetes.read.device_inventory import CLAIMS, CLASSES, DeviceInventoryReader
from tenure.model.devices import MOST_USERS, DeviceUse
from tenure.model.manifests.device_uses import DeviceUseResolver, using_devices
from tenure.model.manifests.extended_resources import implied_uses, is_implied, made_claim_name, served_by, serves
from tenure.model.settings import Settings

MOST_DEVICE_CLAIMS: Final = 32
"""Claims on devices of one pod."""


class DeviceUseReader:
    """The reader of what pods use of devices; ``store`` gives the objects of a watch by its name."""

    def __init__(
        self, store: Callable[[str], ObjectStore], inventory: DeviceInventoryReader, settings: Callable[[], Settings]
    ) -> None:
        self._store = store
        self._inventory = inventory
        self._settings = settings
        self._counts: tuple[Mapping[str, Mapping[str, int]], ...] = ()
        self._users = ClaimUsers()
        self._asking: set[GroupKey] = set()
        self._served: dict[str, str] = {}
        self._served_version = -1
        self._uses: dict[Key, DeviceUse] = {}
        self._seen: tuple[int, ...] = ()

    @property
    def served(self) -> frozenset[str]:
        """Give the extended resources that classes serve."""
        return frozenset(self._served)

    def changed(self) -> Iterator[GroupKey]:
        """Give the groups of which a claim is in another state than when they were last asked for."""
        yield from self._served_otherwise()
        seen = self._inventory.versions()
        before, self._seen = self._seen, seen
        settings = self._settings()
        counts, self._counts = self._counts, (settings.device_classes, settings.device_resources)
        if (seen == before and counts == self._counts) or not self._users.of:
            return
        is_of_claims = bool(before) and before[2] == seen[2] and counts == self._counts
        changed = self._store(CLAIMS).since(before[0]) if is_of_claims else None
        used = self._users.of
        keys = used.keys() if changed is None else (changed | self._inventory.written()) & used.keys()
        for key in sorted(keys):
            found = self._read(key)
            if found != self._uses.get(key):
                self._uses[key] = found
                yield from sorted(used[key])

    def _served_otherwise(self) -> Iterator[GroupKey]:
        """Give the groups that ask for extended resources, where these are served by other classes than before."""
        version = self._store(CLASSES).version
        if version == self._served_version:
            return
        before, self._served_version = self._served, version
        self._served = served_by(self._inventory.classes.listed())
        if self._served != before:
            yield from sorted(self._asking)

    def using(self, group: GroupKey, records: Iterable[PodRecord]) -> list[PodRecord]:
        """Give a group's pods with what their claims on devices make of their placement."""
        listed = list(records)
        keys = {(r.namespace, name) for r in listed for _, name, _ in r.device_claims if name}
        asking = [r for r in listed if r.task.spec.extended]
        keys |= {(r.namespace, name) for r in asking if self._is_served(r) for name in _made_claims(r)}
        self._note(group, frozenset(keys))
        (self._asking.add if asking else self._asking.discard)(group)
        return [self._with(r) if r.device_claims or self._is_served(r) else r for r in listed]

    def _is_served(self, record: PodRecord) -> bool:
        """Whether a pod asks for an extended resource that a class serves."""
        served = self._served
        return bool(served) and any(request.resource in served for request in record.task.spec.extended)

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
            if self._is_served(record):
                uses |= {use.claim: use for use in self._for_extended(record)}
            names = tuple(key.partition("/")[2] for key in uses if not is_implied(key))
            spec = replace(spec, resource_claims=names)
            spec = using_devices(spec, tuple(uses.values()), self._resolver(), record.uid)
        return replace(record, task=replace(record.task, spec=spec))

    def _for_extended(self, record: PodRecord) -> Iterable[DeviceUse]:
        """Give what a pod uses for extended resources: the claim that was made for it, else what one would have."""
        for name in _made_claims(record):
            key = f"{record.namespace}/{name}"
            item, claim = self._store(CLAIMS).items.get((record.namespace, name)), self._inventory.claims.get(key)
            is_own = item is not None and record.uid in owners_of(item.metadata)
            if claim is not None and is_own and claim.is_made and claim.allocation is not None:
                return (replace(self._read((record.namespace, name)), resources=serves(claim, record.task.spec)),)
        if record.task.node is not None:
            return ()  # its node has them by itself, or its claim is being written
        return implied_uses(record.namespace, record.name, record.task.spec, self._served)

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
        claim = self._inventory.claims.get("/".join(key))
        if claim is not None and record.uid not in claim.reserved_for and len(claim.reserved_for) >= MOST_USERS:
            waits = f"resource claim {name}, which {MOST_USERS} pods use already"
            return DeviceUse(claim="/".join(key), awaits=waits)
        known = self._uses.get(key)
        if known is None:
            known = self._uses[key] = self._read(key)
        return known

    def _resolver(self) -> DeviceUseResolver:
        return DeviceUseResolver(self._inventory.claims, self._inventory.classes, self._settings(), self._served)

    def _read(self, key: Key) -> DeviceUse:
        text = "/".join(key)
        try:
            return self._resolver().of(text)
        except Exception as error:  # noqa: BLE001  whatever a stranger wrote costs the pods that use it alone
            return DeviceUse(claim=text, unsupported=f"resource claim {key[1]} (cannot be read: {brief(error)})")


def _made_claims(record: PodRecord) -> tuple[str, ...]:
    """Give the names of the claims that may have been made for a pod: what its status says, and what Tenure makes."""
    own = made_claim_name(record.name, record.uid)
    return (own,) if record.made_claim in ("", own) else (record.made_claim, own)
