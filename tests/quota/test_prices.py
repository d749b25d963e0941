"""Of sets that are equal otherwise, quota takes the one of the lowest price, which need not be what costs least."""

from __future__ import annotations

import pytest
from tests.builders import NOW, SECOND, cluster, node, queue, spec, workload

from tenure.model.queue import QueueStatus, QuotaStatus
from tenure.model.settings import MinRuntimeSettings, QuotaPreemptionSettings, WorthSettings
from tenure.model.workload import Checkpoint
from tenure.playthrough import play

MINUTE, HOUR = 60, 3600
ON = QuotaPreemptionSettings(enabled=True)


def over(*running, count, by=1, **settings):
    """A queue whose max was lowered to so many GPUs less than it uses, so long ago that it fires."""
    most = {"nvidia.com/gpu": 1000 * (count - by)}
    armed = QuotaStatus(armed_at=NOW - 2 * MINUTE * SECOND, delay=MINUTE * SECOND, deadline=NOW - SECOND, max=most)
    held = queue("q", max={"gpu": count - by}, quota_preemption_delay=MINUTE * SECOND,
                 status=QueueStatus(quota_preemption=armed))  # fmt: skip
    return cluster([node("n", gpu=count)], running, [held], actions=("quota", "allocate"), quota_preemption=ON,
                   **settings)  # fmt: skip


def job(name, ran, *, tasks=1, **fields):
    """A workload of one GPU for each task that has run for so long (s)."""
    return workload(
        name, tasks=tasks, of=spec(cpu=0, gpu=1), on=["n"] * tasks, running=ran, age=ran, queue="q", **fields
    )


def evicted(given):
    return {(s.workload, s.cost) for s in play(given).steps if s.action == "evict"}


SAVED = {"checkpoint": Checkpoint(interval=30 * MINUTE * SECOND)}


@pytest.mark.parametrize(
    ("mode", "gone"),
    [
        ("shield", ("default/saved", 20.0 * MINUTE)),
        ("price", ("default/saved", 20.0 * MINUTE)),
        ({"quota": "price", "reclaim": "price"}, ("default/saved", 20.0 * MINUTE)),
    ],
)
def test_who_has_just_started_is_as_dear_as_its_minimum_runtime(mode, gone):
    """``young`` has run for five minutes of its hour, ``saved`` loses twenty: in no mode ``young`` goes."""
    running = job("young", 5 * MINUTE), job("saved", 110 * MINUTE, **SAVED)
    settings = {"reclaim_min_runtime": HOUR * SECOND, "min_runtime": MinRuntimeSettings(mode=mode)}
    assert evicted(over(*running, count=2, **settings)) == {gone}
    without = over(*running, count=2)
    assert evicted(without) == {("default/young", 5.0 * MINUTE)}


def test_what_was_evicted_before_is_dearer():
    """It would cost ten minutes once more, beside fifteen of another; with each time counted it is worth thirty."""
    again = job("again", 10 * MINUTE, evictions=2, last_evicted_at=NOW - HOUR * SECOND)
    running = again, job("other", 15 * MINUTE)
    assert evicted(over(*running, count=2)) == {("default/again", 10.0 * MINUTE)}
    worth = WorthSettings(repeat_factor=1.0)
    assert evicted(over(*running, count=2, worth=worth)) == {("default/other", 15.0 * MINUTE)}


def test_a_gang_is_priced_as_one():
    """Its price is what the minimum runtime of both tasks is worth; what is recorded is what it loses."""
    running = (
        job("young", 5 * MINUTE, tasks=2),
        *(job(f"saved{i}", 110 * MINUTE, min_member=1, **SAVED) for i in range(2)),
    )
    given = over(*running, count=4, by=2)
    assert evicted(given) == {("default/young", 5.0 * MINUTE)}
    settings = {"reclaim_min_runtime": HOUR * SECOND, "min_runtime": MinRuntimeSettings(mode="price")}
    priced = over(*running, count=4, by=2, **settings)
    assert evicted(priced) == {(f"default/saved{i}", 20.0 * MINUTE) for i in range(2)}
