"""The summary and the table of jobs, against figures worked out by hand."""

import json

import pytest
from tests.simulator.helpers import SECOND, gang, node, script, spec

from tenure.model.workload import Checkpoint, TaskSpec
from tenure.simulator.jobs_csv import jobs_csv, write_jobs_csv
from tenure.simulator.log import EventLog
from tenure.simulator.metrics import summarize
from tenure.simulator.outcomes import outcomes_of
from tenure.simulator.trace import Trace, TraceJob

NODES = (node("n0", cpu=4, gpus=2), node("n1", cpu=4, gpus=2))


def trace_of(*jobs):
    made = tuple(
        TraceJob(workload, None if run is None else run * SECOND, f"#{i}") for i, (workload, run) in enumerate(jobs)
    )
    return Trace(format="tenure", jobs=made, records=len(made))


def replay(trace, *events):
    return script([job.workload for job in trace.jobs], *events)


def summary(log, trace, nodes=NODES):
    return summarize(outcomes_of(log, trace), trace, nodes, violations=0, wall_s=0.5)


@pytest.fixture
def plain():
    """Two queues on eight cores: a runs 100 s on 4 cores at once, b 40 s on 8 after 60 s, c is too large."""
    trace = trace_of(
        (gang("a", of=spec(4), queue="left"), 100),
        (gang("b", 2, spec(4), queue="right"), 40),
        (gang("c", of=spec(64), queue="right"), 5),
        (gang("d", of=spec(4), queue="left"), 2),
    )
    log = replay(
        trace,
        ("submit", 0, 0), ("bind", 0, 0, 0, 0), ("submit", 40, 1), ("submit", 50, 2), ("drop", 50, 2, "too large"),
        ("end", 100, 0, 0), ("bind", 100, 1, 0, 0), ("bind", 100, 1, 1, 1), ("submit", 135, 3),
        ("end", 140, 1, 0), ("end", 140, 1, 1), ("bind", 140, 3, 0, 0), ("end", 142, 3, 0),
    )  # fmt: skip
    return log, trace


def test_jobs_waits_and_slowdowns(plain):
    result = summary(*plain)
    assert (result["jobs"], result["finished"], result["dropped"]) == (4, 3, 1)
    assert result["dropReasons"] == {"too large": 1}
    assert result["makespan_s"] == 142
    assert result["wait_s"] == pytest.approx({"mean": 65 / 3, "median": 5, "p95": 54.5, "max": 60})
    # a: 100/100, b: 100/40, d: 7 s in the system and 2 s of run, of which 10 s count: at least 1
    assert result["boundedSlowdown"] == pytest.approx({"tau_s": 10, "mean": (1 + 2.5 + 1) / 3, "p95": 2.35})


def test_how_jobs_stand_at_the_end_is_no_event(plain):
    """A rule may ask to be looked at again long after the last event; nothing happens then, and no time is counted."""
    log, trace = plain
    before = summary(log, trace)
    log.rest(900 * SECOND, 2, "it waits in queue right")
    assert summary(log, trace) == before


def test_use_of_the_capacity(plain):
    result = summary(*plain)
    used = (4 * 100 + 8 * 40 + 4 * 2) / (8 * 142)
    assert result["utilization"]["cpu"] == pytest.approx(used)
    assert result["goodput"]["cpu"] == pytest.approx(used)
    assert result["allocated"] == {"milliGpu": 0.0, "cpu": 0.0}
    assert result["evictions"] == {}


def test_queues_and_their_fairness(plain):
    result = summary(*plain)
    left, right = result["queues"]
    assert (left["name"], left["jobs"], left["wait_s"]["mean"]) == ("left", 2, 2.5)
    assert (right["name"], right["finished"], right["wait_s"]["max"]) == ("right", 1, 60)
    served = [(400 + 8) / (400 + 28), 320 / 800]
    assert result["jain"] == pytest.approx(sum(served) ** 2 / (2 * sum(x * x for x in served)))


def test_the_summary_is_plain_json(plain):
    assert json.loads(json.dumps(summary(*plain)))["wall_s"] == 0.5


def test_the_table_of_jobs(plain, tmp_path):
    log, trace = plain
    text = jobs_csv(outcomes_of(log, trace))
    assert text.splitlines() == [
        "job,queue,submit_s,first_start_s,start_s,end_s,evictions,lost_s,state",
        "#0,left,0,0,0,100,0,0,finished",
        "#1,right,40,100,100,140,0,0,finished",
        "#2,right,50,,,,0,0,dropped",
        "#3,left,135,140,140,142,0,0,finished",
    ]
    path = tmp_path / "jobs.csv"
    write_jobs_csv(outcomes_of(log, trace), path)
    assert path.read_text() == text


def test_times_of_the_table_have_decimals_only_where_they_need_them():
    trace = trace_of((gang("a", queue=None), 1))
    log = EventLog([trace.jobs[0].workload])
    log.submit(1_500_000, 0)
    log.bind(2_000_001, 0, 0, 0)
    assert jobs_csv(outcomes_of(log, trace)).splitlines()[1] == "#0,default,1.5,2.000001,2.000001,,0,0,running"


def evicted(checkpoint=None, **recorded):
    """A gang of two with two GPUs each runs 100 s, is evicted for another, waits, and runs to its end."""
    trace = trace_of((gang("a", 2, spec(1, gpus=2), checkpoint=checkpoint), 200), (gang("b", of=spec(1, gpus=2)), 50))
    log = replay(
        trace,
        ("submit", 0, 0), ("bind", 0, 0, 0, 0), ("bind", 0, 0, 1, 1), ("submit", 100, 1),
        ("evict", 100, 0, 0, "reclaim", 1, recorded), ("evict", 100, 0, 1, "reclaim", 1, recorded),
        ("bind", 100, 1, 0, 0), ("end", 150, 1, 0),
        ("bind", 150, 0, 0, 0), ("bind", 150, 0, 1, 1), ("end", 400, 0, 0), ("end", 400, 0, 1),
    )  # fmt: skip
    return log, trace


def test_goodput_is_what_work_was_worth_however_often_it_restarted():
    """A restart that is broken off, or never comes, takes no more than it held: of 480 s, 120 did work that counts."""
    slow = Checkpoint(restart_overhead=300 * SECOND)
    trace = trace_of(
        *((gang(name, of=spec(4, gpus=2), queue="q", checkpoint=made), run)
          for name, made, run in (("a", slow, 100), ("b", None, 10), ("c", None, 10))),
    )  # fmt: skip
    events = (
        ("submit", 0, 0), ("bind", 0, 0, 0, 0), ("submit", 50, 1), ("evict", 50, 0, 0, "preempt", 1),
        ("bind", 50, 1, 0, 0), ("end", 60, 1, 0), ("bind", 60, 0, 0, 0), ("submit", 70, 2),
        ("evict", 70, 0, 0, "preempt", 2), ("bind", 70, 2, 0, 0), ("end", 80, 2, 0),
    )  # fmt: skip
    ended = summary(replay(trace, *events, ("bind", 80, 0, 0, 0), ("end", 480, 0, 0)), trace, NODES[:1])
    assert ended["lost"]["cpu"] == 4 * (50 + 300 + 10 + 300)
    assert ended["utilization"]["cpu"] == 1
    assert ended["goodput"]["cpu"] == pytest.approx(120 / 480)
    assert ended["jain"] == 1
    waiting = summary(replay(trace, *events), trace, NODES[:1])
    assert waiting["goodput"]["cpu"] == pytest.approx(20 / 80)


@pytest.mark.parametrize(
    ("checkpoint", "recorded", "lost"),
    [
        (None, {}, 100),
        (Checkpoint(interval=30 * SECOND), {}, 10),
        (Checkpoint(interval=30 * SECOND, restart_overhead=5 * SECOND), {}, 15),
        (Checkpoint(restart_overhead=5 * SECOND), {}, 105),
        (Checkpoint(interval=30 * SECOND), {"lost": 42}, 42),
        (None, {"leaves_at": 103}, 103),
    ],
)
def test_what_an_eviction_destroys(checkpoint, recorded, lost):
    log, trace = evicted(checkpoint, **recorded)
    result = summary(log, trace)
    assert result["lost"]["nvidia.com/gpu"] == 4 * lost
    assert result["lost"]["cpu"] == 2 * lost
    assert (result["evictions"], result["evictedTasks"]) == ({"reclaim": 1}, {"reclaim": 2})
    held = 4 * (100 + (3 if "leaves_at" in recorded else 0)) + 4 * 250 + 2 * 50
    assert result["utilization"]["nvidia.com/gpu"] == pytest.approx(held / 1600)
    assert result["goodput"]["nvidia.com/gpu"] == pytest.approx((held - 4 * lost) / 1600)
    row = jobs_csv(outcomes_of(log, trace)).splitlines()[1].split(",")
    assert row[2:] == ["0", "0", "150", "400", "1", str(lost), "finished"]


def test_an_evicted_job_waits_until_its_first_start_and_is_slowed_down_until_its_end():
    result = summary(*evicted())
    assert result["wait_s"]["max"] == 0
    assert result["boundedSlowdown"]["mean"] == pytest.approx((400 / 200 + 1) / 2)


def test_what_is_held_in_the_end_counts_parts_of_gpus():
    trace = trace_of((gang("a", of=spec(1, milli=500, devices=2)), None), (gang("b", of=spec(2, gpus=1)), None))
    log = replay(trace, ("submit", 0, 0), ("submit", 1, 1), ("bind", 1, 0, 0, 0, (0, 1)), ("bind", 1, 1, 0, 1, (0,)))
    result = summary(log, trace)
    assert result["allocated"] == {"milliGpu": 0.5, "cpu": 3 / 8}
    assert (result["finished"], result["boundedSlowdown"]["mean"]) == (0, None)


def test_workloads_of_the_cluster_file_hold_room_and_are_no_jobs():
    trace = trace_of((gang("a", of=spec(4)), 10))
    log = EventLog([gang("old", of=spec(4)), trace.jobs[0].workload], initial=1)
    log.bind(0, 0, 0, 0)
    log.submit(0, 1)
    log.bind(0, 1, 0, 1)
    log.end(10 * SECOND, 1, 0)
    result = summary(log, trace)
    assert (result["jobs"], result["finished"], result["utilization"]["cpu"]) == (1, 1, 1.0)
    assert jobs_csv(outcomes_of(log, trace)).count("\n") == 2


def test_a_simulation_in_which_nothing_happens_has_no_means():
    trace = trace_of()
    result = summary(EventLog(), trace)
    assert result["wait_s"] == {"mean": None, "median": None, "p95": None, "max": None}
    assert (result["jain"], result["makespan_s"], result["queues"]) == (1.0, 0, [])
    assert json.dumps(result)


def test_resource_time_beyond_64_bits_is_summed():
    """Bytes times µs of a year on a large machine are more than a 64-bit integer holds."""
    year = 365 * 86_400
    machine = (node("n0", extra={"memory": 1 << 40}),)
    trace = trace_of((gang("a", of=TaskSpec(requests=(("memory", 1 << 40),))), year))
    log = replay(trace, ("submit", 0, 0), ("bind", 0, 0, 0, 0), ("end", year, 0, 0))
    assert summary(log, trace, machine)["utilization"]["memory"] == pytest.approx(1.0)
