"""What a pod that waits says of itself: reason and message of its condition ``PodScheduled``.

An autoscaler adds nodes for pods that are ``Unschedulable``. So only what more room would help says that; what a queue,
a shield or the workload itself holds back has another reason, and no node is added for it in vain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tenure.engine.plan import Reason

UNSCHEDULABLE: Final = "Unschedulable"

_ROOM: Final = frozenset({"NoNodeFits", "NoRoomTogether", "NeverFits", "AwaitsNodes"})
_OWN: Final = {
    "OverMax": "QueueOverMax",
    "BeyondGuaranteed": "QueueBeyondGuaranteed",
    "NotEnoughTasks": "WaitingForTasks",
    "Gated": "WaitingForTasks",
    "Unsupported": "Unsupported",
    "VolumeNotReady": "VolumeNotReady",
    "DevicesNotReady": "DevicesNotReady",
    "Nominated": "Nominated",
    "Reserved": "Reserved",
    "NextCycle": "NextCycle",
    "AllocateIdle": "AllocateIdle",
    "MovesUnderWay": "MovesUnderWay",
}
HELD_BACK: Final = "HeldBack"
SET_ASIDE: Final = "SetAside"
LEFT_OUT: Final = ("QueueUnknown", "QueueRefused", "Invalid")
"""Reasons of pods that cannot be decided about; the adapter gives them."""

REASONS: Final = frozenset({UNSCHEDULABLE, HELD_BACK, SET_ASIDE, *LEFT_OUT, *_OWN.values()})

MOST = 900
"""Characters of a message."""


def condition(reasons: Sequence[Reason]) -> tuple[str, str]:
    """Give reason and message: the first obstacle that is not for want of room decides, as room would not help it."""
    text = "; ".join(dict.fromkeys(r.message for r in reasons))[:MOST]
    other = next((r for r in reasons if r.code in _OWN), None)
    if other is not None:
        return _OWN[other.code], text
    if any(r.code in _ROOM for r in reasons):
        return UNSCHEDULABLE, text
    return HELD_BACK, text
