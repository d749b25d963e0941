"""Why a pod waits, in words that do not make an autoscaler add nodes in vain."""

from __future__ import annotations

import pytest

from tenure.engine.plan import Reason
from tenure.live.reasons import REASONS, condition


@pytest.mark.parametrize(
    ("codes", "reason"),
    [
        (["NoNodeFits"], "Unschedulable"),
        (["NoRoomTogether"], "Unschedulable"),
        (["NeverFits"], "Unschedulable"),
        (["OverMax"], "QueueOverMax"),
        (["NoNodeFits", "OverMax"], "QueueOverMax"),
        (["BeyondGuaranteed"], "QueueBeyondGuaranteed"),
        (["Unsupported"], "Unsupported"),
        (["NotEnoughTasks"], "WaitingForTasks"),
        (["Nominated"], "Nominated"),
        (["AllocateIdle"], "AllocateIdle"),
        (["AllocateIdle", "ShieldedVictims"], "AllocateIdle"),
        (["NoNodeFits", "Shielded"], "Unschedulable"),
        (["Shielded"], "HeldBack"),
    ],
)
def test_only_what_more_room_would_help_is_unschedulable(codes, reason):
    """What a queue's max, a promise or the workload itself holds back is not unschedulable."""
    found, message = condition([Reason(code, f"because of {code}") for code in codes])
    assert (found, found in REASONS) == (reason, True)
    assert message == "; ".join(f"because of {code}" for code in codes)
