"""Seals: what the scheduler decided about a pod, where a user who may only write pods cannot change it.

A tenant may change the labels, annotations and owners of its pods at any time, but not their status. So what others
rely on (the queue that is charged, the start, which devices, what spares it, a promise, a notice) is written as a
condition of the status, and is believed from there. The annotations beside it are for people and for the pod itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from tenure.clusters.kubernetes.api import Condition
from tenure.clusters.kubernetes.bounded import MOST_LISTED, MOST_NOTE, decoded
from tenure.clusters.kubernetes.keys import SEAL
from tenure.model.values.duration import format_time

_REASON: Final = "Recorded"


class NominationNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """The note of a nomination: node, time (RFC 3339), the replaced pod, and the uids of pods that have to leave."""

    node: str
    at: str = ""
    devices: tuple[int, ...] = ()
    replaces: str = ""
    needs: tuple[str, ...] = ()


class NoticeNote(msgspec.Struct, rename={"beneficiary": "for"}, frozen=True, omit_defaults=True):
    """An eviction that was announced, and where the pod is to land. Times are RFC 3339."""

    deadline: str
    cause: str
    beneficiary: str | None = None
    at: str | None = None
    to: str | None = None
    devices: tuple[int, ...] = ()


class Seal(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """What was decided about one pod.

    ``queue`` is empty until it is bound. ``fixed``: it was not preemptible then. ``kept``: why it is never moved.
    ``first``: its workload started with it, so that the API server's own time of its placement is the start; else
    ``started`` is its workload's start. ``stale`` is since when that has too few tasks. Times are RFC 3339.
    ``together``: of so many pods that are needed it was one (0: not recorded).
    """

    queue: str = ""
    started: str = ""
    devices: tuple[int, ...] = ()
    fixed: bool = False
    kept: str = ""
    nomination: NominationNote | None = None
    notice: NoticeNote | None = None
    stale: str = ""
    first: bool = False
    together: int = 0

    @property
    def is_bound(self) -> bool:
        """Whether it says where the pod is charged."""
        return bool(self.queue)


NO_SEAL: Final = Seal()


def seal_of(conditions: Iterable[Condition] | None) -> Seal | None:
    """Give the seal among the conditions of a pod; None where there is none, or one that cannot be read."""
    text = next((c.message for c in conditions or () if c.type == SEAL), "")
    if not text or len(text) > MOST_NOTE:
        return None
    found = decoded(text, Seal)
    if isinstance(found, str) or len(found.devices) > MOST_LISTED:
        return None
    return found


def condition_of(seal: Seal, now: int) -> dict[str, Any]:
    """Give the condition that says what a seal does."""
    return {
        "type": SEAL,
        "status": "True",
        "reason": _REASON,
        "message": msgspec.json.encode(seal).decode(),
        "lastTransitionTime": format_time(now // 1_000_000 * 1_000_000),
    }
