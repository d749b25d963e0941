"""The claims that pods mount: what they make of their placement, kept in mind by the groups of pods that mount them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from tenure.clusters.kubernetes.bounded import brief
from tenure.clusters.kubernetes.cache.claim_store import refused_nodes
from tenure.clusters.kubernetes.cache.handlers import GroupKey, ObjectStore, owners_of
from tenure.clusters.kubernetes.cache.owners import Key
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.read import storage
from tenure.clusters.kubernetes.read.claim_users import ClaimUsers
from tenure.clusters.kubernetes.read.storage import ConvertedObjects
from tenure.model.mounts import ClaimMount, MountResolver
from tenure.model.node import Node
from tenure.model.volumes import Storage, VolumeAttachment

MOST_CLAIMS: Final = 32
"""Claims of one pod: each is held against every node."""

_NOBODY: Final = frozenset({""})
"""Owner of a claim that has none."""

_STORES: Final = ("claims", "volumes", "storageclasses", "csidrivers", "storagecapacities")


class ClaimReader:
    """The reader of what pods mount; ``store`` gives the objects of a watch by its name.

    It keeps in mind which groups of pods mount which claims, so that those can be made anew of which one changed.
    """

    def __init__(self, store: Callable[[str], ObjectStore]) -> None:
        self._store = store
        self._claims = ConvertedObjects(lambda: store("claims"), storage.claim_of)
        self._volumes = ConvertedObjects(lambda: store("volumes"), storage.volume_of)
        self._classes = ConvertedObjects(lambda: store("storageclasses"), storage.storage_class_of)
        self._drivers = ConvertedObjects(lambda: store("csidrivers"), storage.driver_of)
        self._capacities = ConvertedObjects(lambda: store("storagecapacities"), storage.capacity_of)
        self._users = ClaimUsers()
        self._mounts: dict[Key, ClaimMount] = {}
        self._owners: dict[Key, frozenset[str]] = {}
        self._seen: tuple[int, ...] = ()
        self._resolver = self._make_resolver()
        self._attached: tuple[tuple[int, int], tuple[VolumeAttachment, ...]] = ((-1, -1), ())

    def storage(self) -> Storage:
        """Give all that decides about what is mounted."""
        return Storage(
            volumes=self._volumes.listed(),
            claims=self._claims.listed(),
            storage_classes=self._classes.listed(),
            drivers=self._drivers.listed(),
            capacities=self._capacities.listed(),
        )

    def attachments(self, nodes: Iterable[Node]) -> tuple[VolumeAttachment, ...]:
        """Give which volumes are attached where; nothing where no node limits how many."""
        if not any(driver.limit is not None for node in nodes for driver in node.drivers):
            return ()
        seen = self._store("attachments").version, self._store("volumes").version
        if seen != self._attached[0]:
            items = self._store("attachments").sorted()
            self._attached = seen, storage.attachments_of(items, self._volumes)
        return self._attached[1]

    def changed(self) -> Iterator[GroupKey]:
        """Give the groups of which a claim is in another state than when they were last asked for."""
        seen = tuple(self._store(name).version for name in _STORES)
        if seen == self._seen:
            return
        before, self._seen = self._seen, seen
        self._resolver = self._make_resolver()
        is_other = self._concerned(before)
        for key, groups in self._users.of.items():
            known = self._mounts.get(key)
            if known is None or is_other(key, known):
                found, owners = self._read(key), self._owners.get(key)
                if known != found or (owners is not None and owners != self._owners_of(key)):
                    self._mounts[key] = found
                    yield from groups

    def _concerned(self, before: tuple[int, ...]) -> Callable[[Key, ClaimMount], bool]:
        """Give what says of a claim whether anything that was changed since may concern it."""
        if not before or before[2:] != self._seen[2:]:
            return lambda _, __: True
        claims, volumes = (self._store(name).since(before[n]) for n, name in enumerate(("claims", "volumes")))
        if claims is None or volumes is None:
            return lambda _, __: True
        names = {name for _, name in volumes}

        def is_other(key: Key, known: ClaimMount) -> bool:
            if key in claims or (names and (known.open is not None or known.awaits)):
                return True
            claim = self._claims.get("/".join(key)) if names else None
            return claim is not None and claim.volume in names

        return is_other

    def _make_resolver(self) -> MountResolver:
        capacities = self._capacities.listed()
        return MountResolver(self._claims, self._volumes, self._classes, self._drivers, capacities)

    def mounting(self, group: GroupKey, records: Iterable[PodRecord]) -> list[PodRecord]:
        """Give a group's pods with what their claims make of their placement."""
        listed = list(records)
        keys_of = {r.key: [(r.namespace, name) for name in (*r.claims, *r.own_claims)] for r in listed}
        self._note(group, frozenset(key for found in keys_of.values() for key in found))
        return [self._with(r, keys_of[r.key]) if keys_of[r.key] else r for r in listed]

    def _note(self, group: GroupKey, claims: frozenset[Key]) -> None:
        for key in self._users.note(group, claims):
            self._mounts.pop(key, None)
            self._owners.pop(key, None)

    def _with(self, record: PodRecord, claims: list[Key]) -> PodRecord:
        spec = record.task.spec
        if len(claims) > MOST_CLAIMS:
            told = f"{len(claims)} claims ({MOST_CLAIMS} at the most)"
            spec = replace(spec, unsupported=(*spec.unsupported, told))
        else:
            mounts = tuple(self._mount(key, record) for key in claims)
            spec = replace(spec, claims=tuple(name for _, name in claims), mounts=mounts)
        return replace(record, task=replace(record.task, spec=spec))

    def _mount(self, key: Key, record: PodRecord) -> ClaimMount:
        name = key[1]
        if name in record.own_claims:
            owners = self._owners[key] = self._owners_of(key)
            if owners and record.uid not in owners:
                return ClaimMount(claim="/".join(key), awaits=f"claim {name}, which was not made for this pod")
        known = self._mounts.get(key)
        if known is None:
            known = self._mounts[key] = self._read(key)
        return known

    def _owners_of(self, key: Key) -> frozenset[str]:
        """Give the uids of who owns a claim; nothing for one that is not there."""
        item = self._store("claims").items.get(key)
        return frozenset() if item is None else owners_of(item.metadata) or _NOBODY

    def _read(self, key: Key) -> ClaimMount:
        text = "/".join(key)
        try:
            return self._resolver.of(text, refused_nodes(self._store("claims"), key))
        except Exception as error:  # noqa: BLE001  whatever a stranger wrote costs the pods that mount it alone
            return ClaimMount(claim=text, unsupported=f"claim {key[1]} (cannot be read: {brief(error)})")
