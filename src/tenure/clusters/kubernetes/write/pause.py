"""Pausing evictions: a note on the node pool's Lease, which ends by itself."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.api import micros
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.decoding import decode
from tenure.clusters.kubernetes.keys import lease_name
from tenure.model.values.duration import format_time

_GONE = 404


class Pause(NamedTuple):
    """A pause of evictions: until when (µs since the epoch), and why."""

    until: int
    reason: str = ""


def pause_of(text: str | None) -> Pause | None:
    """Read the note; None where there is none, or it cannot be read."""
    if not text:
        return None
    try:
        note = decode(text, _Note)
    except msgspec.MsgspecError:
        return None
    until = micros(note.until)
    return None if until is None else Pause(until, note.reason)


def write_pause(client: Client, namespace: str, pool: str, pause: Pause | None) -> None:
    """Write the note, or take it away.

    Raises
    ------
    ApiError
        It could not be written.
    """
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    name = lease_name(pool)
    text = None
    if pause is not None:
        text = msgspec.json.encode({"until": format_time(pause.until), "reason": pause.reason}).decode()
    try:
        client.patch(f"{path}/{name}", {"metadata": {"annotations": {keys.PAUSE: text}}})
    except ApiError as error:
        if error.status != _GONE:
            raise
        if text is not None:
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {"name": name, "annotations": {keys.PAUSE: text}}}  # fmt: skip
            client.create(path, body)


class _Note(msgspec.Struct):
    until: str
    reason: str = ""
