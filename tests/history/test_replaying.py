"""What is recorded of a simulation is enough to play it again: the same happens, where nothing is changed."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import cluster, node, workload
from tests.effort import tries
from tests.history.worlds import MINUTE, recorded, simulated, worlds
from tests.simulator.helpers import script, spec

from tenure.history import open_history
from tenure.history.reading.replaying import recorded_days
from tenure.history.reading.views import Stay, workload_of
from tenure.history.record import Draft, Origin, payload_of
from tenure.history.who import Who
from tenure.history.writing.simulation import PlanListener, SimulationRecords, numbered, write_simulation
from tenure.history.writing.submissions import submission
from tenure.model.amounts import Holder
from tenure.model.settings import Settings
from tenure.model.values.resources import CPU
from tenure.model.workload import Checkpoint
from tenure.simulator.log import END, EVICT
from tenure.simulator.outcomes import outcomes_of
from tenure.simulator.traces.records import Trace


def evicted(log, origin):
    """Say who was evicted when, why, and for whom."""
    names = [workload.key for workload in log.workloads]
    return [
        (origin + at, names[job], log.workloads[job].tasks[task].name, said.cause, names[other] if other >= 0 else None)
        for kind, at, job, task, other, said in log.events
        if kind == EVICT
    ]


def plainer(there, trace):
    """Give a world without what makes the time of a run ambiguous: all tasks of a gang run together, and go at once."""
    jobs = tuple(
        replace(job, workload=replace(job.workload, min_member=None, eviction_notice=None,
                tasks=tuple(replace(task, grace_period=None) for task in job.workload.tasks)))
        for job in trace.jobs
    )  # fmt: skip
    return there, Trace("test", jobs)


@settings(max_examples=tries(12, 400), deadline=None)
@given(world=worlds())
def test_the_same_is_evicted_where_nothing_is_changed(tmp_path_factory, world):
    there, trace = plainer(*world)
    with open_history(str(tmp_path_factory.mktemp("replays") / "history.db"), write=True) as store:
        log = recorded(store, there, trace)
        first, last = store.span()
        again = recorded_days(store, first, last + 1)
    needs = {job.workload.key: job.runtime for job in again[1].jobs} | dict(again[1].present)
    ended = {log.workloads[event[2]].key for event in log.events if event[0] == END}
    true = {job.workload.key: job.runtime for job in trace.jobs}
    assert {key: needs[key] for key in ended} == {key: true[key] for key in ended}
    assert evicted(simulated(*again)[0], again[0].now) == evicted(log, there.now)


durations = st.none() | st.integers(1, 10**12)
checkpoints = st.builds(Checkpoint, interval=durations, last_at=durations, restart_overhead=st.integers(0, 10**9))


@settings(max_examples=tries(50, 1000), deadline=None)
@given(
    said=st.fixed_dictionaries({
        "preemptible": st.none() | st.booleans(), "eviction_notice": durations, "requeue_delay": durations,
        "preemption_delay": durations, "staleness_grace_period": durations, "checkpoint": st.none() | checkpoints,
    }),
    grace=durations,
)  # fmt: skip
def test_what_a_workload_says_is_read_as_it_said_it(said, grace):
    model = workload("w", tasks=2, **said)
    model = replace(model, tasks=tuple(replace(task, grace_period=grace) for task in model.tasks))
    fields = json.loads(submission(model, Holder([], [], Settings()), Who(cluster(nodes=[]))))
    found = workload_of(Stay(model.key, "default", 0, fields))
    assert {name: getattr(found, name) for name in said} == {name: getattr(model, name) for name in said}
    assert [task.grace_period for task in found.tasks] == [grace, grace]


def test_tasks_stand_in_their_own_order_whichever_was_placed_first():
    fields = {"tasks": 3, "specs": [[1, {CPU: 1000}], [2, {CPU: 2000}]]}
    stay = Stay("default/w", "default", 0, fields, 0, {"w-2": ("n", ()), "w-0": ("m", ())})
    found = [(task.name, task.node, dict(task.spec.requests)[CPU]) for task in workload_of(stay).tasks]
    assert found == [("w-0", "m", 1000), ("w-1", None, 2000), ("w-2", "n", 2000)]


def test_what_is_placed_and_evicted_at_one_time_waits_afterwards():
    """A plan may bind a workload and evict it for another: its story is told in that order, and it does not run on."""
    model, other = workload("w", of=spec(1)), workload("x", of=spec(1))
    here = cluster(nodes=[node("n", cpu=4)], workloads=[])
    log = script(
        [model, other], ("submit", 0, 0), ("submit", 5, 1), ("bind", 5, 0, 0, 0),
        ("evict", 5, 0, 0, "reclaim", 1), ("bind", 5, 1, 0, 0), ("end", 9, 1, 0),
    )  # fmt: skip
    records = SimulationRecords(here, log, outcomes_of(log), PlanListener(here.now)).records()
    told = [(record.kind, record.workload) for record in records if record.kind in {"started", "evicted"}]
    assert told == [("started", model.key), ("evicted", model.key), ("started", other.key)]


@pytest.fixture
def saving(tmp_path, run_command):
    """Give a history in which a gang with checkpoints gives way twice."""
    (tmp_path / "c.yaml").write_text(
        "apiVersion: tenure.dev/v1beta1\nkind: Cluster\nnow: 2026-11-20T10:00:00Z\n"
        "nodes: [{name: n, count: 2, allocatable: {cpu: 4}}]\n"
        "queues: [{name: a, guaranteed: {cpu: 4}}, {name: b, guaranteed: {cpu: 4}}]\n"
    )
    (tmp_path / "jobs.csv").write_text(
        "job,submit_s,runtime_s,expected_runtime_s,queue,pods,cpu_milli,checkpoint_s,restart_s\n"
        "long,0,7200,9000,b,2,4000,500,60\nowed,1600,600,600,a,1,4000,,\nlater,5000,600,900,a,1,4000,,30\n"
    )
    store = tmp_path / "run.db"
    code, _, err = run_command("simulate", tmp_path / "jobs.csv", "--cluster", tmp_path / "c.yaml", "--history", store)
    assert code == 0, err
    return store


def test_a_replay_with_checkpoints_is_what_happened_to_the_last_sum(saving, run_command):
    code, out, err = run_command("replay", "--from", saving, "--format", "json")
    assert (code, err) == (0, "")
    both = json.loads(out)
    assert both["happened"] == both["replayed"]
    assert sum(row["evictions"] for row in both["happened"]["rows"]) == 2
    assert sum(row["saved"].get("cpu", 0) for row in both["happened"]["rows"]) > 0


def test_a_replay_of_what_an_earlier_version_recorded_says_what_is_missing(saving, run_command, tmp_path):
    lines = [json.loads(line) for line in _exported(saving, run_command, tmp_path).read_text().splitlines()]
    for line in lines:
        if line["kind"] == "submitted":
            payload = json.loads(line["payload"]) if isinstance(line["payload"], str) else line["payload"]
            del payload["checkpoint"]
            line["payload"] = json.dumps(payload) if isinstance(line["payload"], str) else payload
    old = tmp_path / "old.jsonl"
    old.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, _, err = run_command("replay", "--from", old)
    assert code == 0
    assert "checkpoints and grace periods of 3 of the 3 workloads are not recorded" in err


def test_a_job_that_comes_and_ends_in_the_first_instant_is_played_again(tmp_path):
    """It was there, so its replay has it as well, beside one that came with it and went on."""
    models = [workload(name, tasks=1) for name in ("short", "long")]
    log = script(
        models, ("submit", 0, 0), ("submit", 0, 1), ("bind", 0, 0, 0, 0), ("bind", 0, 1, 0, 0), ("end", 0, 0, 0),
        ("end", 60, 1, 0),
    )  # fmt: skip
    here = cluster(nodes=[node("n", cpu=4)], workloads=[])
    with open_history(str(tmp_path / "h.db"), write=True) as store:
        write_simulation(store, "test", here, log, outcomes_of(log), PlanListener(here.now))
        first, last = store.span()
        there, trace = recorded_days(store, first, last + 1)
    assert there.workloads == ()
    assert {job.workload.key: job.runtime for job in trace.jobs} == {models[0].key: 1, models[1].key: 60 * 1_000_000}


@pytest.mark.parametrize(("since", "present", "came"), [
    (0, {}, {"default/w": (1, 8), "default/w.2": (20, 5), "default/w.3": (30, 3)}),
    (5, {"default/w": 8}, {"default/w.2": (15, 5), "default/w.3": (25, 3)}),
    (22, {"default/w": 5}, {"default/w.2": (8, 3)}),
])  # fmt: skip
def test_all_that_had_one_name_after_each_other_are_played(tmp_path, since, present, came):
    assert played(tmp_path, [(1, 2, 10), (20, 21, 26), (30, 31, 34)], since) == (present, came)


def test_one_whose_end_is_not_recorded_is_over_when_another_has_its_name(tmp_path):
    came = {"default/w": (1, 8), "default/w.2": (10, 5), "default/w.3": (16, 3)}
    assert played(tmp_path, [(1, 2, None), (10, 11, None), (16, 17, 20)]) == ({}, came)


def played(folder, runs, since=0):
    """Record runs of one name (when they come, start and end) and give what is played: minutes, by name."""
    plain = {"nodes": [{"name": "n", "allocatable": {"cpu": "4"}}], "queues": [{"name": "a"}]}
    drafts = [Draft(0, "origin", payload=payload_of(cluster=plain))]
    said = payload_of(priority=0, tasks=1, ask={"cpu": 1000}, specs=[[1, {"cpu": 1000}]])
    for comes, starts, ends in runs:
        drafts.append(Draft(comes * MINUTE, "submitted", "default/w", "a", payload=said))
        drafts.append(Draft(starts * MINUTE, "started", "default/w", "a", payload='{"tasks":[["w-0","n",[]]]}'))
        if ends is not None:
            drafts.append(Draft(ends * MINUTE, "ended", "default/w", "a", value=(ends - starts) * MINUTE))
    with open_history(str(folder / "h.db"), write=True) as store:
        store.append(Origin("c"), numbered(drafts, b"one name"))
        there, trace = recorded_days(store, since * MINUTE, 40 * MINUTE)
    assert {w.key for w in there.workloads} == set(trace.present)
    present = {key: needs // MINUTE for key, needs in trace.present.items()}
    return present, {job.workload.key: (job.workload.created_at // MINUTE, job.runtime // MINUTE) for job in trace.jobs}


def _exported(store, run_command, folder):
    assert run_command("history", "export", folder / "all.jsonl", "--history", store)[0] == 0
    return folder / "all.jsonl"
