"""Small random simulations, and what their logs say when counted by hand: nothing here is Tenure's own bookkeeping."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

from hypothesis import strategies as st

from tenure.history.writing.simulation import PlanListener, SimulationRecords, write_simulation
from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import RecordingSettings, Settings
from tenure.model.values.resources import CPU, GPU
from tenure.model.workload import Checkpoint, Task, TaskSpec, Workload
from tenure.simulator.log import BIND, END, EVICT, REST
from tenure.simulator.outcomes import outcomes_of
from tenure.simulator.run import Simulation, SimulationSetup
from tenure.simulator.traces.records import Trace, TraceJob

SECOND = 1_000_000
MINUTE = 60 * SECOND

ACTIONS = ("allocate", "consolidate", "reclaim", "preempt", "requeue")


@st.composite
def jobs(draw):
    """Draw the jobs of a trace: gangs with priorities, checkpoints and grace periods, over three queues."""
    made = []
    at = 0
    for number in range(draw(st.integers(2, 14))):
        at += draw(st.sampled_from([0, 1, 30, 61, 3_600, 90_000])) * SECOND + draw(st.sampled_from([0, 0, 333_333]))
        requests = {CPU: draw(st.sampled_from([250, 1_000, 3_000]))}
        if draw(st.booleans()):
            requests[GPU] = draw(st.integers(1, 3))
        spec = TaskSpec(requests=tuple(sorted(requests.items())))
        tasks = draw(st.integers(1, 3))
        grace = draw(st.sampled_from([None, 20 * SECOND, 90 * SECOND]))
        runtime = draw(st.sampled_from([10, 100, 4_000, 100_000])) * SECOND + draw(st.sampled_from([0, 1]))
        interval = draw(st.sampled_from([None, 50 * SECOND, 1_000 * SECOND]))
        overhead = draw(st.sampled_from([0, 7 * SECOND]))
        model = Workload(
            name=f"j{number}", queue=draw(st.sampled_from(["a", "b", "c"])), priority=draw(st.sampled_from([0, 0, 50])),
            tasks=tuple(Task(name=f"j{number}-{i}", spec=spec, grace_period=grace) for i in range(tasks)),
            min_member=draw(st.integers(1, tasks)), created_at=at,
            expected_runtime=draw(st.sampled_from([None, runtime, 2 * runtime])),
            checkpoint=draw(st.sampled_from([None, Checkpoint(interval=interval, restart_overhead=overhead)])),
            eviction_notice=draw(st.sampled_from([None, None, 45 * SECOND])),
            labels=draw(st.sampled_from([{}, {"who": "ada", "team": "red"}, {"who": "ben"}])),
        )  # fmt: skip
        made.append(TraceJob(model, runtime, str(number)))
    return Trace("test", tuple(made))


@st.composite
def worlds(draw):
    """Draw a cluster and a trace."""
    nodes = tuple(
        Node(name=f"n{i}", allocatable={CPU: 4_000, GPU: draw(st.integers(0, 4))})
        for i in range(draw(st.integers(1, 3)))
    )
    due = {name: draw(st.sampled_from([{}, {GPU: 2_000}, {CPU: 2_500}])) for name in "ab"}
    queues = (
        Queue(name="top", guaranteed=due["a"]), Queue(name="a", parent="top", guaranteed=due["a"]),
        Queue(name="b", guaranteed=due["b"]), Queue(name="c"),
    )  # fmt: skip
    labels = draw(st.sampled_from([RecordingSettings(), RecordingSettings(team_label="team", user_label="who")]))
    now = draw(st.sampled_from([0, 1_780_271_999_500_000]))  # half a second before a month ends
    return Cluster(now=now, nodes=nodes, queues=queues, settings=Settings(actions=ACTIONS, history=labels)), draw(
        jobs()
    )


def simulated(cluster, trace):
    """Run a simulation; gives its log, its outcomes and what was heard of its plans."""
    simulation = Simulation(SimulationSetup(cluster), trace)
    simulation.heard = listener = PlanListener(cluster.now)
    result = simulation.run()
    assert result.complete
    return result.log, outcomes_of(result.log, trace, cluster.settings), listener


def recorded(store, cluster, trace):
    """Run a simulation and write its history; gives its log."""
    log, outcomes, listener = simulated(cluster, trace)
    write_simulation(store, "trace.csv", cluster, log, outcomes, listener)
    return log


def records_of(cluster, trace):
    """Give the records of a simulation."""
    log, outcomes, listener = simulated(cluster, trace)
    return SimulationRecords(cluster, log, outcomes, listener).records()


def asked(task):
    """What a task holds, GPUs in thousandths."""
    return {name: amount * (1000 if name == GPU else 1) for name, amount in task.spec.requests}


class Counted:
    """What a log says was held and lost from a time on, event by event. Amount times µs, as integers."""

    def __init__(self, cluster, log, since=-(1 << 60)):
        self.since = since
        self.held = defaultdict(int)
        self.held_by_queue = defaultdict(int)
        self.lost = defaultdict(int)
        self.lost_by_cause = defaultdict(int)
        self.lost_by_queue = defaultdict(int)
        self.caused_by_queue = defaultdict(int)
        self.evictions = defaultdict(set)
        self.begin, self.end = log.events[0][1], max(event[1] for event in log.events if event[0] != REST)
        running, starts = {}, {}
        over = {job: at for kind, at, job, *_ in log.events if kind == END}
        for kind, at, job, task, other, extra in log.events:
            model = log.workloads[job]
            if kind == BIND:
                if not any(j == job for j, _ in running):
                    starts[job] = at
                running[job, task] = at
            elif kind == END:
                self._hold(model, task, running.pop((job, task)), at)
            elif kind == EVICT:
                since = running.pop((job, task))
                leaves = max(at, min(extra.leaves_at, over.get(job, 1 << 60)))  # with its job it is gone
                self.end = max(self.end, leaves)
                self._hold(model, task, since, leaves)
                if at >= self.since:
                    self._lose(log, (kind, at, job, task, other, extra), since, starts[job], leaves)
        for (job, task), since in running.items():
            self._hold(log.workloads[job], task, since, self.end)
        span = self.end - self.begin
        self.capacity = {
            name: sum(n.allocatable.get(name, 0) for n in cluster.nodes) * (1000 if name == GPU else 1) * span
            for name in {name for w in log.workloads for t in w.tasks for name, _ in t.spec.requests}
        }

    def _hold(self, model, task, begin, end):
        time = max(0, end - max(begin, self.since))
        for name, amount in asked(model.tasks[task]).items():
            self.held[name] += amount * time
            self.held_by_queue[model.queue, name] += amount * time

    def _lose(self, log, event, since, start, leaves):
        _, at, job, task, other, extra = event
        model = log.workloads[job]
        checkpoint = model.checkpoint
        interval = checkpoint.interval if checkpoint is not None else None
        safe = start + Fraction(at - start) // interval * interval if interval else start
        safe = max(safe, since, extra.saved_at)
        time = leaves - safe + (checkpoint.restart_overhead if checkpoint is not None else 0)
        author = log.workloads[other].queue if other >= 0 else ""
        for name, amount in asked(model.tasks[task]).items():
            self.lost[name] += amount * time
            self.lost_by_cause[extra.cause, name] += amount * time
            self.lost_by_queue[model.queue, name] += amount * time
            self.caused_by_queue[author, name] += amount * time
        self.evictions[extra.cause].add((job, at))


def lone(world, *, silent):
    """Give a world of which each job is one task that goes without a notice, so that gains are easy to count.

    On one node, at which jobs come thirty times as fast, there are many evictions. ``silent``: no job says how long it
    runs.
    """
    cluster, trace = world
    made = []
    for job in trace.jobs:
        model = replace(job.workload, tasks=job.workload.tasks[:1], min_member=1, eviction_notice=None)
        expected = None if silent else model.expected_runtime
        model = replace(model, created_at=model.created_at // 30, expected_runtime=expected)
        made.append(replace(job, workload=model))
    return replace(cluster, nodes=cluster.nodes[:1]), replace(trace, jobs=tuple(made))


class CountedGains:
    """What beneficiaries of one task gained, by cause and resource: how much sooner they started, or how long they ran.

    Without the eviction one would have started at the first expected end of others with which some node has room.
    """

    def __init__(self, cluster, log):
        self.free = [{**n.allocatable, GPU: n.allocatable[GPU] * 1000} for n in cluster.nodes]
        self.gained = defaultdict(int)
        running, owed, unknown = {}, {}, {}
        for kind, at, job, _, other, extra in log.events:
            if kind == EVICT and other >= 0 and other not in running and other not in owed:
                owed[other] = extra.cause, self._otherwise(log, running, log.workloads[other], at)
            if kind == BIND:
                running[job] = other, at
                self._take(log.workloads[job], other, 1)
                cause, otherwise = owed.pop(job, (None, None))
                if otherwise is not None:
                    self._gain(log.workloads[job], cause, max(0, otherwise - at))
                elif cause is not None:
                    unknown[job] = cause
            elif kind in {EVICT, END}:
                where, since = running.pop(job)
                self._take(log.workloads[job], where, -1)
                if job in unknown:
                    self._gain(log.workloads[job], unknown.pop(job), at - since)

    def _take(self, model, where, sign):
        for name, amount in asked(model.tasks[0]).items():
            self.free[where][name] -= sign * amount

    def _gain(self, model, cause, time):
        for name, amount in asked(model.tasks[0]).items():
            self.gained[cause, name] += amount * time

    def _otherwise(self, log, running, model, now):
        """When a node would have had room; None if that is not known."""
        free = [dict(amounts) for amounts in self.free]
        fits = lambda: any(all(f.get(n, 0) >= a for n, a in asked(model.tasks[0]).items()) for f in free)  # noqa: E731
        if fits():
            return now
        said = [(job, where, since, log.workloads[job].expected_runtime) for job, (where, since) in running.items()]
        for end, job, where in sorted(
            (since + expected, job, where) for job, where, since, expected in said if expected
        ):
            for name, amount in asked(log.workloads[job].tasks[0]).items():
                free[where][name] += amount
            if fits():
                return max(now, end)
        return None
