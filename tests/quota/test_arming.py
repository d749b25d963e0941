"""Arming: every row of the documented table as a pure function, inheritance, and who cannot trigger."""

from __future__ import annotations

import pytest

from tenure.model.queue import Queue, QueueStatus, QuotaStatus
from tenure.model.settings import QuotaPreemptionSettings
from tenure.quota.arming import arm, delays

NOW = 1_800_000_000_000_000
MINUTE = 60_000_000
ON = QuotaPreemptionSettings(enabled=True)
OLD = QuotaStatus(armed_at=NOW - 5 * MINUTE, delay=15 * MINUTE, deadline=NOW + 10 * MINUTE, max={"cpu": 10})


def armed(most, uses, *, delay=15 * MINUTE, stored=None, settings=ON):
    queue = Queue(name="q", max=most, status=QueueStatus(quota_preemption=stored))
    return arm(queue, delay, uses, NOW, settings)


FRESH = QuotaStatus(armed_at=NOW, delay=15 * MINUTE, deadline=NOW + 15 * MINUTE, max={"cpu": 8})

ROWS = {
    "a max that is not below usage does nothing": (armed({"cpu": 12}, {"cpu": 12}), None),
    "a max raised above usage clears": (armed({"cpu": 20}, {"cpu": 12}, stored=OLD), None),
    "a max raised that is still below usage keeps the deadline": (
        armed({"cpu": 11}, {"cpu": 12}, stored=OLD).deadline,
        OLD.deadline,
    ),
    "usage within max in one resource of two keeps the deadline": (
        armed({"cpu": 12, "memory": 5}, {"cpu": 12, "memory": 6}, stored=OLD).deadline,
        OLD.deadline,
    ),
    "a max lowered below usage arms": (armed({"cpu": 8}, {"cpu": 12}), FRESH),
    "a max newly set below usage in some other resource keeps the one deadline": (
        armed({"cpu": 10, "memory": 1}, {"cpu": 12, "memory": 6}, stored=OLD).deadline,
        OLD.deadline,
    ),
    "a max lowered again keeps the first deadline, and the new max counts": (
        armed({"cpu": 4}, {"cpu": 12}, stored=OLD),
        QuotaStatus(armed_at=OLD.armed_at, delay=OLD.delay, deadline=OLD.deadline, max={"cpu": 4}),
    ),
    "a longer delay moves the deadline by the difference": (
        armed({"cpu": 10}, {"cpu": 12}, delay=20 * MINUTE, stored=OLD).deadline,
        OLD.deadline + 5 * MINUTE,
    ),
    "a shorter delay may move it into the past": (
        armed({"cpu": 10}, {"cpu": 12}, delay=MINUTE, stored=OLD).deadline,
        OLD.deadline - 14 * MINUTE,
    ),
    "a delay of 0 clears": (armed({"cpu": 10}, {"cpu": 12}, delay=0, stored=OLD), None),
    "a max that is removed clears": (armed({}, {"cpu": 12}, stored=OLD), None),
    "the feature switched off clears": (
        armed({"cpu": 10}, {"cpu": 12}, stored=OLD, settings=QuotaPreemptionSettings()),
        None,
    ),
    "over max with a delay and no deadline arms, for whatever reason": (armed({"cpu": 8}, {"cpu": 9}), FRESH),
    "a max of 0 arms where anything is used": (
        armed({"cpu": 0}, {"cpu": 1}).deadline,
        NOW + 15 * MINUTE,
    ),
    "a max of 0 where nothing is used does nothing": (armed({"cpu": 0}, {}), None),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_the_table_of_arming(row):
    got, expected = row
    assert got == expected


TREE = [
    Queue(name="top", quota_preemption_delay=MINUTE),
    Queue(name="heir", parent="top"),
    Queue(name="grandchild", parent="heir"),
    Queue(name="out", parent="top", quota_preemption_delay=0),
    Queue(name="below-out", parent="out"),
    Queue(name="own", parent="out", quota_preemption_delay=2 * MINUTE),
    Queue(name="made", parent="top", dynamic=True),
]


def test_a_delay_is_inherited_an_explicit_0_opts_out_and_dynamic_queues_never_trigger():
    assert delays(TREE, ON) == {
        "top": MINUTE, "heir": MINUTE, "grandchild": MINUTE, "out": 0, "below-out": 0, "own": 2 * MINUTE, "made": 0,
    }  # fmt: skip


def test_without_inheritance_only_what_a_queue_sets_itself_counts():
    found = delays(TREE, QuotaPreemptionSettings(enabled=True, inherit=False))
    assert {name for name, delay in found.items() if delay} == {"top", "own"}
