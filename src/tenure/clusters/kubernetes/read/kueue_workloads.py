"""Kueue's workloads: what of a cluster Kueue has admitted, and what of that it takes back.

A workload of Kueue's belongs to what it was made for: a Job, a RayCluster, or all pods of a group. While it is evicted,
and until Kueue has taken its quota back, no pod of it is placed: Kueue is about to delete them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, NamedTuple

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.handlers import ObjectStore, owners_of
from tenure.clusters.kubernetes.read.declarations import ObjectPlace
from tenure.model.manifests.workload_kind import kind_key

WATCH: Final = "kueue workloads"
"""The name of the watch of Kueue's workloads."""

EVICTED: Final = "Evicted"
RESERVED: Final = "QuotaReserved"
FINISHED: Final = "Finished"


class KueueAdmission(NamedTuple):
    """The admission of a workload by Kueue. ``since`` is when it got its quota, None where it has none; in µs."""

    namespace: str
    name: str
    since: int | None = None
    is_evicted: bool = False
    is_finished: bool = False


def of_kueue_workload(item: api.ApiKueueWorkload) -> object:
    """Give what a workload of Kueue's decides."""
    return admission_of(item), owners_of(item.metadata)


def admission_of(item: api.ApiKueueWorkload) -> KueueAdmission:
    """Give what the conditions of a workload say."""
    meta, known = item.metadata, {c.type: c for c in item.status.conditions or ()}
    reserved = known.get(RESERVED)
    return KueueAdmission(
        meta.namespace,
        meta.name,
        api.micros(reserved.last_transition_time) if reserved is not None and reserved.status == "True" else None,
        is_evicted=_holds(known.get(EVICTED)),
        is_finished=_holds(known.get(FINISHED)),
    )


def _holds(condition: api.Condition | None) -> bool:
    return condition is not None and condition.status == "True"


class KueueAdmissions:
    """The admissions by namespace and uid of what they are for: what another namespace says of that counts nothing."""

    def __init__(self, store: Callable[[str], ObjectStore]) -> None:
        self._store = store
        self._version = 0
        self._admissions: dict[tuple[str, str], KueueAdmission] = {}
        self._evicted: frozenset[ObjectPlace] = frozenset()

    def __bool__(self) -> bool:
        """Whether Kueue has any workload."""
        return bool(self._admissions)

    def changed(self) -> frozenset[ObjectPlace]:
        """Take what is new; gives what Kueue takes back now and did not, or the other way."""
        store = self._store(WATCH)
        if store.version == self._version:
            return frozenset()
        self._version, before = store.version, self._evicted
        owned = list(_owners_of(store.items.copy().values()))
        self._admissions = {(admission.namespace, owner.uid): admission for owner, admission in owned}
        self._evicted = frozenset(_place(owner, admission) for owner, admission in owned if admission.is_evicted)
        return before ^ self._evicted

    def of(self, namespace: str, uids: Iterable[str]) -> KueueAdmission | None:
        """Give the admission of what one of some uids in a namespace is of."""
        found = (self._admissions.get((namespace, uid)) for uid in uids)
        return next((known for known in found if known is not None), None)

    def is_evicting(self, namespace: str, owners: Collection[str]) -> bool:
        """Whether Kueue takes back what one of some owners in a namespace, by their uids, was admitted for."""
        known = self.of(namespace, owners) if self._evicted else None
        return known is not None and known.is_evicted


def _owners_of(items: Iterable[Any]) -> Iterable[tuple[api.Owner, KueueAdmission]]:
    for item in sorted(items, key=lambda i: (i.metadata.namespace, i.metadata.name)):
        admission = admission_of(item)
        for owner in item.metadata.owner_references or ():
            yield owner, admission


def _place(owner: api.Owner, admission: KueueAdmission) -> ObjectPlace:
    group = owner.api_version.rpartition("/")[0]
    return admission.namespace, kind_key(group, owner.kind), owner.name
