"""Whether an eviction that was announced was carried out: what the API server itself says of the pod.

The Eviction API writes its own reason into the pod's condition ``DisruptionTarget`` before it deletes the pod; then
Tenure writes its own again, in other words than before. Of a pod that is gone, the API server's watch still tells the
last state for some minutes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.decoding import decoder_of
from tenure.clusters.kubernetes.read.eviction_log import EvictionEntry
from tenure.clusters.kubernetes.write.patches import EVICTED, PREEMPTION

BY_API: Final = "EvictionByEvictionAPI"
"""Reason that the Eviction API gives."""

SECONDS: Final = (5, 15, 40)
"""So long the watch is listened to for the end of a pod that is gone: an API server that is busy tells it late."""

_TOO_MANY: Final = 429
_SECOND: Final = 1_000_000


class EvictionProof(StrEnum):
    """What is known of an eviction that was announced: it was carried out, it was not, not yet, or that is unknown."""

    DONE = "done"
    NEVER = "never"
    OPEN = "open"
    UNKNOWN = "unknown"


def proof_of(client: Client, entry: EvictionEntry) -> EvictionProof:
    """Say what came of an announced eviction.

    Raises
    ------
    ApiError
        The API server cannot be asked now.
    """
    try:
        return _found(client, entry)
    except ApiError as error:
        if not error.is_refusal or error.status == _TOO_MANY:
            raise
        return EvictionProof.UNKNOWN  # asked again, it would say the same


def _found(client: Client, entry: EvictionEntry) -> EvictionProof:
    pods = f"/api/v1/namespaces/{entry.workload.partition('/')[0]}/pods"
    listed = _LISTED(client.get(pods, fieldSelector=f"metadata.name={entry.task}")).items
    there = next((pod for pod in listed if pod.metadata.uid == entry.uid), None)
    if there is not None:
        return _judged(there, entry) if there.metadata.deletion_timestamp else EvictionProof.OPEN
    return _last_seen(client, pods, entry) if entry.version else EvictionProof.UNKNOWN


def _last_seen(client: Client, pods: str, entry: EvictionEntry) -> EvictionProof:
    """Look at the end of a pod that is gone; its end is unknown where the API server has forgotten it."""
    for seconds in SECONDS:
        query: dict[str, str | int] = {
            "watch": 1, "fieldSelector": f"metadata.name={entry.task}", "resourceVersion": entry.version,
            "timeoutSeconds": seconds,
        }  # fmt: skip
        for line in client.stream(pods, query, 2.0 * seconds):
            event = _EVENT(line)
            if event.type == "ERROR":  # the version is too old
                return EvictionProof.UNKNOWN
            if event.type == "DELETED":
                pod = _DECODE(event.object)
                if pod.metadata.uid == entry.uid:
                    return _judged(pod, entry)
    return EvictionProof.UNKNOWN


def _judged(pod: _Pod, entry: EvictionEntry) -> EvictionProof:
    """Judge a pod that goes by its condition, which has the second at which it was marked."""
    found = next((c for c in pod.status.conditions or () if c.type == "DisruptionTarget" and c.status == "True"), None)
    if found is None or not (
        found.reason == BY_API or (found.reason == PREEMPTION and found.message.startswith(EVICTED))
    ):
        return EvictionProof.NEVER
    marked = api.micros(found.last_transition_time)
    if marked is None or marked == (api.micros(entry.at) or 0) // _SECOND * _SECOND:
        return EvictionProof.DONE
    return EvictionProof.NEVER  # another one was carried out


class _Status(msgspec.Struct):
    conditions: list[api.Condition] | None = None


class _Pod(msgspec.Struct):
    metadata: api.Meta
    status: _Status = msgspec.field(default_factory=_Status)


class _Pods(msgspec.Struct):
    items: list[_Pod] = []


_LISTED: Final = decoder_of(_Pods).decode
_DECODE: Final = decoder_of(_Pod).decode
_EVENT: Final = decoder_of(api.WatchEvent).decode
