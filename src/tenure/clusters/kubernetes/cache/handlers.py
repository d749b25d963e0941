"""Where watches put what they are told: pods as records by workload, nodes as the model has them, the rest as it is."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.cache.assumed import ASSUMED_SECONDS, AssumedPods, shows
from tenure.clusters.kubernetes.cache.nodes import node_of
from tenure.clusters.kubernetes.cache.owners import Key, OwnerIndex, OwnerLink, controller, link_to
from tenure.clusters.kubernetes.cache.pod_records import TENURE, PodReader, PodRecord, group_below
from tenure.clusters.kubernetes.pool_status import part_of
from tenure.clusters.kubernetes.seals import Seal, seal_of
from tenure.model.manifests.workload_kind import WorkloadKinds
from tenure.model.node import Node
from tenure.model.workload import Phase

GroupKey = tuple[str, str, str, bool, str]
"""Namespace, kind and name of what makes pods one workload, whether they are Tenure's to schedule, and its uid.

The uid is that of the owner that decides: two that have one name, or one that was made anew, are two workloads. A group
by label, and a pod that owns others, has none here.
"""

_BY_NAME = frozenset({"group", "Pod"})

_MOST_CHANGES: Final = 20_000
"""Changes of a kind of objects that are kept in mind."""


class ObjectStore:
    """Objects of one kind by namespace and name.

    ``version`` grows with each change of what ``decides`` gives of an object, for not all that changes in one is a
    reason to decide anew: figures in its status, the renewal of a Lease.

    What this process wrote is known at once: what a watch that lags still tells of the time before is passed over.
    """

    def __init__(
        self,
        decides: Callable[[Any], object] = lambda item: item.metadata.resource_version,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.items: dict[Key, api.ApiObject] = {}
        self.version = 0
        self._decides = decides
        self._changes: deque[tuple[int, Key]] = deque(maxlen=_MOST_CHANGES)
        self._written: dict[Key, tuple[int, float]] = {}
        self._lock = threading.Lock()
        self._clock = clock

    def put(self, item: Any) -> None:
        """Take an object as a watch shows it."""
        key = item.metadata.namespace, item.metadata.name
        with self._lock:
            number, until = self._written.get(key, (0, 0.0))
            if _number(item) < number and self._clock() < until:
                return
            self._written.pop(key, None)
            self._take(key, item)

    def written(self, item: Any, *, is_new: bool = False) -> None:
        """Take an object as the API server answered to a write of this process; one that is gone comes not back."""
        key = item.metadata.namespace, item.metadata.name
        with self._lock:
            known = self.items.get(key)
            if is_new if known is None else _number(known) < _number(item):
                self._written[key] = _number(item), self._clock() + ASSUMED_SECONDS
                self._take(key, item)

    def _take(self, key: Key, item: Any) -> None:
        before = self.items.get(key)
        self.items[key] = item
        if before is None or self._decides(before) != self._decides(item):
            self._changed(key)

    def drop(self, key: Key) -> None:
        """An object is gone."""
        with self._lock:
            self._written.pop(key, None)
            if self.items.pop(key, None) is not None:
                self._changed(key)

    def _changed(self, key: Key) -> None:
        self._changes.append((self.version + 1, key))
        self.version += 1

    def since(self, version: int) -> set[Key] | None:
        """Give whose changes followed a version; None where they are too many to be known."""
        known = self._changes.copy()
        if version < self.version - len(known):
            return None
        return {key for number, key in known if number > version}

    def keys(self) -> list[Key]:
        """Give the keys of all objects."""
        return list(self.items)

    def sorted(self) -> list[api.ApiObject]:
        """Give all objects by namespace and name."""
        return [item for _, item in sorted(self.items.copy().items())]


def _number(item: Any) -> int:
    """Give the version of an object as a number, by which an API server orders what becomes of it; 0 for none."""
    text = item.metadata.resource_version
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else 0


_MOST_DIGITS: Final = 20


def of_meta(item: Any) -> object:
    """Give what an object's metadata decide."""
    meta = item.metadata
    return meta.uid, meta.labels, meta.annotations


def of_claim(item: api.ApiClaim) -> object:
    """Give what a claim decides."""
    said = item.metadata.annotations or {}
    marks = said.get(keys.BIND_COMPLETED), said.get(keys.SELECTED_NODE)
    meta = item.metadata
    return meta.uid, meta.deletion_timestamp, marks, item.spec, item.status.phase, owners_of(meta)


def of_device_claim(item: api.ApiObject) -> object:
    """Give what a claim on devices decides."""
    status, meta = item.status if isinstance(item.status, dict) else {}, item.metadata
    given = status.get("allocation"), status.get("reservedFor"), status.get("devices")
    return meta.uid, meta.deletion_timestamp, item.spec, given, owners_of(meta)


def of_device_object(item: api.ApiObject) -> object:
    """Give what a slice of devices, or a class of them, decides."""
    return item.metadata.uid, item.spec


def owners_of(meta: api.Meta) -> frozenset[str]:
    """Give the uids of an object's owners; one of a claim's is the pod that it was made for."""
    return frozenset(owner.uid for owner in meta.owner_references or ())


def of_volume(item: api.ApiVolume) -> object:
    """Give what a volume decides."""
    meta = item.metadata
    return meta.uid, meta.labels, meta.deletion_timestamp, item.spec, item.status.phase


def of_storage_class(item: api.ApiStorageClass) -> object:
    """Give what a StorageClass decides."""
    return item.metadata.uid, item.provisioner, item.volume_binding_mode, item.allowed_topologies


def of_capacity(item: api.ApiStorageCapacity) -> object:
    """Give what a CSIStorageCapacity decides."""
    return item.storage_class_name, item.capacity, item.maximum_volume_size, item.node_topology


def of_spec(item: api.ApiObject) -> object:
    """Give what an object with a spec decides."""
    return of_meta(item), item.spec, item.data, item.value


def of_queue(item: api.ApiObject, pool: str) -> object:
    """Give what a queue decides in a node pool, and what its scheduler wrote on it for the next one."""
    status = part_of(item.status, pool)
    written = [status.get(key) for key in ("quotaPreemption", "usage", "usageAt")]
    return of_spec(item), written


class NodeStore:
    """Nodes as the model has them; a heartbeat that changes nothing is no change."""

    def __init__(self, report: Callable[[api.Meta, str], None]) -> None:
        self.nodes: dict[str, Node] = {}
        self.uids: dict[str, str] = {}
        self.versions: dict[str, str] = {}
        self.version = 0
        self._report = report

    def put(self, item: api.ApiNode) -> None:
        """Take a node as it is now."""
        node, problems = node_of(item)
        name = item.metadata.name
        self.uids[name], self.versions[name] = item.metadata.uid, item.metadata.resource_version
        for problem in problems:
            self._report(item.metadata, problem)
        if self.nodes.get(name) != node:
            self.nodes[name] = node
            self.version += 1

    def drop(self, key: Key) -> None:
        """A node is gone."""
        if self.nodes.pop(key[1], None) is not None:
            self.version += 1

    def keys(self) -> list[Key]:
        """Give the keys of all nodes."""
        return [("", name) for name in self.nodes]


class PodStore:
    """Records of pods, the groups that they form, and which of those changed since they were last asked for.

    ``dirty`` are groups that changed, ``calm`` those in which nothing changed but what may be looked at a little later:
    a pod that was bound is shown to be so, its record is written, it runs. ``deferred`` is by how much ``version`` grew
    for those.

    ``version`` grows with what decides anything: not with what kubelets say of containers, nor with why a pod waits.

    What this process wrote and the watch has not shown yet is *assumed*: a record is seen as it will be. ``unsealed``
    are pods of Tenure's that run and do not say yet where they are charged; ``seals`` has, by uid, what this process
    knows of those that it bound. ``urgent`` grows with what may call for a decision at once: not with what was assumed,
    nor with pods that were bound and now run.
    """

    def __init__(self, reader: PodReader, clock: Callable[[], float] = time.monotonic) -> None:
        self.lock = threading.RLock()
        self.records: dict[Key, PodRecord] = {}
        self._keys: dict[str, Key] = {}
        self.groups: dict[GroupKey, set[Key]] = {}
        self.dirty: set[GroupKey] = set()
        self.calm: set[GroupKey] = set()
        self.deferred = 0
        self.assumed = AssumedPods(clock)
        self.seals: dict[str, Seal] = {}
        self.unsealed: dict[Key, None] = {}
        self.version = 0
        self.urgent = 0
        self.owners = OwnerIndex(self._controller_of)
        self._reader = reader
        reader.owners_of = self.owners.chain

    def put(self, item: api.ApiPod) -> None:
        """Take a pod as it is now; what a new list shows once more is passed over."""
        meta = item.metadata
        key = meta.namespace, meta.name
        with self.lock:
            before = self.records.get(key)
            if before is not None and (before.uid, before.version) == (meta.uid, meta.resource_version):
                return
            record = self._reader.read(item, self.seals.get(meta.uid))
            if record is None:
                self.drop(key)
                return
            seen = None if before is None else self.seen(key)
            self.assumed.settle(record)
            if before is not None and (old := group_key(before)) != group_key(record):
                self._leave(old, key)
            if before is not None and before.uid != record.uid:
                self._keys.pop(before.uid, None)
            self.records[key], self._keys[record.uid] = record, key
            self._note_seal(key, record, shown=seal_of(item.status.conditions))
            group = group_key(record)
            self.groups.setdefault(group, set()).add(key)
            is_urgent = seen is None or not _is_known(_begun(seen, record), record, own=True)
            is_calm = not is_urgent and record.task.node is not None
            (self.calm if is_calm else self.dirty).add(group)
            if seen is None or not _is_known(seen, record, own=seen is not before):
                self.version += 1
                self.urgent += is_urgent
                self.deferred += is_calm
            if self.owners.is_owner(key):
                self._regroup(self.owners.put("Pod", key, record.uid, record.link))

    def put_owner(self, kind: str, meta: api.Meta) -> None:
        """Take an owner as it is: the pods below it may belong to another workload now."""
        with self.lock:
            above = link_to(controller(meta.owner_references))
            self._regroup(self.owners.put(kind, (meta.namespace, meta.name), meta.uid, above))

    def drop_owner(self, kind: str, key: Key) -> None:
        """An owner is gone."""
        with self.lock:
            self.owners.drop(kind, key)

    def know(self, kinds: WorkloadKinds) -> None:
        """Take other kinds of owners: which pods belong together is found out anew."""
        with self.lock:
            self.owners.learn(kinds)
            self._reader.kinds, self._reader.joined = kinds, kinds.joined
            self._regroup(list(self.records))

    def _regroup(self, changed: Iterable[Key]) -> None:
        """Find out anew to which workloads pods belong."""
        for key in changed:
            before = self.records.get(key)
            if before is None or (record := self._with_owners(before)) == before:
                continue
            self._leave(group_key(before), key)
            self.records[key] = record
            self.groups.setdefault(group_key(record), set()).add(key)
            self._touch(key)

    def _with_owners(self, record: PodRecord) -> PodRecord:
        """Give a record with what follows from its owners."""
        chain = self.owners.chain(record.key, record.link)
        if chain == record.owners:
            return record
        top = chain.top
        told = tuple(line for line in record.problems if line != record.owners.problem)
        if top is None:
            return replace(record, owners=chain, problems=told)
        return replace(
            record,
            owners=chain,
            group=group_below(top, record.name, record.labels, self.owners.kinds),
            owner_uid=top.uid,
            problems=(*told, chain.problem) if chain.problem else told,
        )

    def _controller_of(self, key: Key) -> tuple[str, OwnerLink | None] | None:
        record = self.records.get(key)
        return None if record is None else (record.uid, record.link)

    def _note_seal(self, key: Key, record: PodRecord, shown: Seal | None) -> None:
        """Keep in mind which pods have yet to be sealed."""
        if shown is not None and shown.is_bound:
            self.seals.pop(record.uid, None)
            self.unsealed.pop(key, None)
        elif record.scheduler == TENURE and record.task.node is not None and not record.is_going:
            self.unsealed[key] = None
        else:
            self.unsealed.pop(key, None)

    def drop(self, key: Key) -> None:
        """A pod is gone."""
        with self.lock:
            before = self.records.pop(key, None)
            self.assumed.drop(key)
            self.unsealed.pop(key, None)
            self.owners.forget(key)
            if before is not None:
                self._keys.pop(before.uid, None)
                self.seals.pop(before.uid, None)
                self._leave(group_key(before), key)
                self.version += 1
                self.urgent += 1

    def keys(self) -> list[Key]:
        """Give the keys of all pods that are kept."""
        with self.lock:
            return list(self.records)

    def assume(self, seen: PodRecord, then: PodRecord, *, is_written: bool = True) -> None:
        """Believe that a pod, seen as it was when it was decided about, is now as was written.

        What is not written yet is believed until it was accepted, or is to `retract`.
        """
        with self.lock:
            known = self.records.get(seen.key)
            if known is None or known.uid != seen.uid or shows(known, then):
                return
            self.assumed.add(then, is_written=is_written)
            if then.sealed is not None and then.sealed.is_bound and then.task.phase is Phase.BOUND:
                self.seals[seen.uid] = then.sealed
            self._touch(seen.key, is_urgent=False)

    def retract(self, seen: PodRecord, then: PodRecord) -> None:
        """Believe no more of a pod what was assumed of it: the write was refused, or nothing is known of it."""
        with self.lock:
            if self.assumed.get(seen.key) is not then:
                return
            self.assumed.drop(seen.key)
            if self.seals.get(seen.uid) is then.sealed:
                self.seals.pop(seen.uid, None)
            self._touch(seen.key)

    def seen(self, key: Key) -> PodRecord:
        """Give the record of a pod, as it is or as it is assumed to be."""
        then = self.assumed.get(key)
        return self.records[key] if then is None else then

    def alive(self, uids: Iterable[str]) -> set[str]:
        """Give those of some uids whose pods are there and are not on their way out."""
        with self.lock:
            return {uid for uid in uids if (key := self._keys.get(uid)) is not None and not self.seen(key).is_going}

    def overdue(self) -> list[PodRecord]:
        """Give what was assumed for too long and is believed no more."""
        with self.lock:
            late = self.assumed.late() if self.assumed else []
            found = [self.records[key] for key in late if key in self.records]
            for key in late:
                self.assumed.drop(key)
                self._touch(key)
            return found

    def _leave(self, group: GroupKey, key: Key) -> None:
        members = self.groups[group]
        members.discard(key)
        if not members:
            del self.groups[group]
        self.dirty.add(group)

    def _touch(self, key: Key, *, is_urgent: bool = True) -> None:
        if key in self.records:
            self.dirty.add(group_key(self.records[key]))
            self.version += 1
            self.urgent += is_urgent


def group_key(record: PodRecord) -> GroupKey:
    """Give what makes pods one workload; those of other schedulers never share one with Tenure's."""
    kind, name = record.group
    return record.namespace, kind, name, record.scheduler == TENURE, "" if kind in _BY_NAME else record.owner_uid


def _is_known(seen: PodRecord, record: PodRecord, *, own: bool) -> bool:
    """Whether a state says nothing new that decides anything.

    ``own``: what was seen is what this process wrote; it gave the start of the pod by its own clock.
    """
    task, started = seen.task, seen.started
    if own:
        task, started = replace(task, started_at=record.task.started_at), record.started
    return replace(seen, version=record.version, waits=record.waits, task=task, started=started) == record


def _begun(seen: PodRecord, record: PodRecord) -> PodRecord:
    """Give a pod that was bound as one that runs, and is ready or not as the state says."""
    task, now = seen.task, record.task
    if task.phase is not Phase.BOUND or now.phase is not Phase.RUNNING:
        return seen
    return replace(seen, task=replace(task, phase=now.phase, ready=now.ready))
