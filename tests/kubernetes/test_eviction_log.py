"""What the eviction log says that happened."""

from __future__ import annotations

from tests.builders import NOW, spec, workload

from tenure.clusters.kubernetes.read.eviction_log import EvictionEntry, happened, parse, pasts, write
from tenure.clusters.record import times_evicted
from tenure.engine.plan import Plan, PlanStep
from tenure.model.values.duration import DAY, format_time


def entry(uid, at, **fields):
    return EvictionEntry(at=at, workload="default/w", task="w-0", uid=uid, cause="reclaim", **fields)


def test_a_pod_is_evicted_once_however_often_it_was_announced():
    """A scheduler ended between announcing and evicting, and the next one announced it again."""
    first, second = entry("a", "2027-01-15T08:00:01Z"), entry("a", "2027-01-15T08:00:09Z")
    assert happened([first, second], ()) == [second]


def test_the_announcement_that_is_known_to_have_been_carried_out_counts():
    done = entry("a", "2027-01-15T08:00:01Z", done=True)
    assert happened([done, entry("a", "2027-01-15T08:00:09Z")], ()) == [done]


def test_what_is_still_there_was_not_evicted():
    assert happened([entry("a", "2027-01-15T08:00:01Z"), entry("b", "2027-01-15T08:00:01Z")], {"a"}) == [
        entry("b", "2027-01-15T08:00:01Z")
    ]


def test_it_is_remembered_how_often_a_workload_was_evicted():
    """A part of it went last: that is no eviction of the workload, but it was evicted then."""
    entries = [
        entry("a", "2027-01-15T08:00:01Z", times=1),
        entry("b", "2027-01-15T08:10:00Z", times=2),
        entry("c", "2027-01-15T08:20:00Z"),
    ]
    read, bad = parse(write(entries))
    assert (read, bad) == (entries, 0)
    (past,) = pasts(read).values()
    assert (past.evictions, format_time(past.last_evicted_at)) == (2, "2027-01-15T08:20:00Z")


def test_what_had_been_forgotten_is_not_counted_again():
    """An entry of the fourth eviction is there still; the next one was the first of those that were remembered."""
    entries = [entry("b", "2027-02-15T08:00:00Z", times=1), entry("a", "2027-01-15T08:00:00Z", times=4),
               entry("c", "2027-02-15T08:00:01Z")]  # fmt: skip
    (past,) = pasts(entries).values()
    assert (past.evictions, format_time(past.last_evicted_at)) == (1, "2027-02-15T08:00:01Z")
    same = [entry(uid, "2027-02-15T08:00:00Z", times=times) for uid, times in (("a", 0), ("b", 2), ("c", 0))]
    assert [past.evictions for past in pasts(same).values()] == [2]


def test_a_workload_was_evicted_once_more_where_all_that_ran_goes():
    """Of `whole` everything is evicted, of `part` one of two tasks."""
    gpu = spec(cpu=0, gpu=1)
    whole = workload("whole", of=gpu, tasks=1, on=["a"], running=60, evictions=1, last_evicted_at=NOW)
    part = workload("part", of=gpu, tasks=2, on=["a", "b"], running=60)
    steps = [
        PlanStep("evict", w.key, w.tasks[0].name, "a", 0, 0, (), 0, "reclaim", None, 0.0, "", None, None, 0, 0, 0)
        for w in (whole, part)
    ]
    plan = Plan(NOW)
    plan.steps += steps
    assert times_evicted(plan, {w.key: w for w in (whole, part)}, DAY) == {"default/whole": 2}
