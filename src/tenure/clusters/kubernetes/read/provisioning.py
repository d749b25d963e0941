"""Capacity that is asked of an autoscaler for the pods of a workload: by a ProvisioningRequest that they name.

While the request is under way nothing is evicted for them, for nodes come anyway. One that no autoscaler has accepted
within a minute, that has failed, or whose capacity was taken back, counts no more; nor does one whose nodes have not
come within a quarter of an hour, or whose pods have not been placed ten minutes after they had come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.handlers import GroupKey, ObjectStore
from tenure.clusters.kubernetes.cache.pod_records import PodRecord

WATCH: Final = "provisioningrequests"
"""The name of the watch of ProvisioningRequests."""

PATHS: Final = ("/apis/autoscaling.x-k8s.io/v1", "/apis/autoscaling.x-k8s.io/v1beta1")
"""Where these are read: in the first of these versions that is served."""

CONSUMES: Final = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
"""Annotations of pods that name the request by which capacity is asked for them; the second is the older."""

UNHEARD: Final = 60_000_000
COMING: Final = 900_000_000
BOOKED: Final = 600_000_000
"""µs for which a request is waited for: from its creation, its acceptance, and from when its capacity was there."""

_OVER: Final = ("Failed", "BookingExpired", "CapacityRevoked")
_Key = tuple[str, str]


def awaited_until(item: Any) -> int | None:
    """Give until when a request is waited for, in µs since the epoch; None where it is waited for no more."""
    status = item.status if isinstance(item.status, dict) else {}
    listed = [c for c in status.get("conditions") or () if isinstance(c, dict)]
    since = {str(c.get("type")): _time(c) for c in listed if c.get("status") == "True"}
    if any(kind in since for kind in _OVER) or item.metadata.deletion_timestamp:
        return None
    steps = (("Provisioned", BOOKED), ("Accepted", COMING))
    found = next((at + wait for kind, wait in steps if (at := since.get(kind)) is not None), None)
    made = api.micros(item.metadata.creation_timestamp)
    return found if found is not None or made is None else made + UNHEARD


def _time(condition: Mapping[str, Any]) -> int | None:
    at = condition.get("lastTransitionTime")
    return api.micros(at) if isinstance(at, str) else None


class ProvisioningReader:
    """The reader of ProvisioningRequests; it keeps in mind which groups of pods name which of them."""

    def __init__(self, store: Callable[[str], ObjectStore]) -> None:
        self._store = store
        self._version = 0
        self._groups: dict[_Key, set[GroupKey]] = {}
        self._named: dict[GroupKey, frozenset[_Key]] = {}

    def changed(self) -> set[GroupKey]:
        """Give the groups of pods whose requests changed since this was last asked."""
        store = self._store(WATCH)
        before, self._version = self._version, store.version
        if before == self._version:
            return set()
        keys = store.since(before)
        named = self._groups if keys is None else keys & self._groups.keys()
        return {group for key in named for group in self._groups[key]}

    def until(self, group: GroupKey, pods: Iterable[PodRecord]) -> int | None:
        """Give until when capacity is on its way for a group of pods; None where none is. Its requests are noted."""
        self.forget(group)
        keys = frozenset((pod.namespace, name) for pod in pods if (name := _consumed(pod.annotations)))
        if not keys:
            return None
        self._named[group] = keys
        for key in keys:
            self._groups.setdefault(key, set()).add(group)
        items = self._store(WATCH).items
        found = (awaited_until(item) for key in keys if (item := items.get(key)) is not None)
        return max((until for until in found if until is not None), default=None)

    def forget(self, group: GroupKey) -> None:
        """A group is gone."""
        for key in self._named.pop(group, ()):
            self._groups[key].discard(group)
            if not self._groups[key]:
                del self._groups[key]


def _consumed(annotations: Mapping[str, str]) -> str:
    return next((name for key in CONSUMES if (name := annotations.get(key))), "")
