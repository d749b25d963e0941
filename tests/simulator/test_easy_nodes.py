"""EASY on many nodes, with jobs of several tasks in two queues, against a brute-force reading of its definition."""

from __future__ import annotations

import random
from math import inf

import pytest

from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.workload import Task, TaskSpec, Workload
from tenure.simulator.log import BIND
from tenure.simulator.run import Simulation, SimulationSetup
from tenure.simulator.traces.records import Trace, TraceJob

NODES, CPUS = 13, 8
SECOND = 1_000_000
QUEUES = ("a", "b")


class Reference:
    """Plain counts of CPUs by node, and every rule written out; no code of the engine."""

    def __init__(self, jobs):
        self.jobs = jobs
        self.free = [CPUS] * NODES
        self.running = {}
        self.waiting = {q: [] for q in QUEUES}
        self.starts = {}

    def run(self):
        times = sorted({j["submit"] for j in self.jobs})
        while times:
            now = times.pop(0)
            for job in [j for j in self.running.values() if j["end"] == now]:
                self.end(job)
            for job in self.jobs:
                if job["submit"] == now:
                    self.waiting[job["queue"]].append(job)
            for job in self.one_pass(now):
                times = sorted({*times, job["end"]})
        return self.starts

    def end(self, job):
        for node in job["nodes"]:
            self.free[node] += job["cpus"]
        del self.running[job["name"]]

    def one_pass(self, now):
        fair, started, passed, promise, blocked = self.fair(), [], dict.fromkeys(QUEUES, 0), None, None
        while heads := {q: w[passed[q]] for q, w in self.waiting.items() if passed[q] < len(w)}:
            queue = min(heads, key=lambda q: self.order(q, heads[q], fair))
            job = heads[queue]
            nodes = fit(self.free, job)
            if blocked is None:
                blocked = None if nodes else job
            elif nodes:
                promise = promise or self.promise(blocked, now)
                at, extra = promise
                if now + job["estimate"] > at:
                    nodes = fit(self.free, job, extra)
            if not nodes:
                passed[queue] += 1
                continue
            self.start(job, nodes, now)
            self.waiting[queue].remove(job)
            started.append(job)
        return started

    def start(self, job, nodes, now):
        for node in nodes:
            self.free[node] -= job["cpus"]
        job |= {"nodes": nodes, "end": now + job["runtime"], "expected": now + job["estimate"]}
        self.running[job["name"]] = job
        self.starts[job["name"]] = now, nodes

    def promise(self, job, now):
        free = list(self.free)
        ends = sorted(
            self.running.values(), key=lambda r: (r["expected"], r["cpus"] * r["tasks"], "default/" + r["name"])
        )
        for running in ends:
            for node in running["nodes"]:
                free[node] += running["cpus"]
            if nodes := fit(free, job):
                for node in nodes:
                    free[node] -= job["cpus"]
                return max(running["expected"], now), free
        raise AssertionError("every job fits the empty machine")

    def held(self, queue):
        return sum(j["cpus"] * j["tasks"] for j in self.running.values() if j["queue"] == queue)

    def fair(self):
        """Two queues of equal weight: half each in millicores, what one does not want going to the other."""
        want = {q: self.held(q) + sum(j["cpus"] * j["tasks"] for j in self.waiting[q]) for q in QUEUES}
        total = NODES * CPUS
        half = total / 2
        return {
            q: min(want[q], max(half, total - want[other])) for q, other in zip(QUEUES, reversed(QUEUES), strict=True)
        }

    def order(self, queue, job, fair):
        held, share = self.held(queue), fair[queue]
        after = held + job["cpus"] * job["tasks"]
        now = held / share if held and share else inf if held else 0
        return held > share, after / share if share else inf, now, share, queue


def fit(free, job, extra=None):
    """Place the tasks one by one, each on the fullest node that has room, there and in ``extra``; all or none."""
    free, nodes = list(free), []
    for _ in range(job["tasks"]):
        room = [n for n in range(NODES) if free[n] >= job["cpus"] and (extra is None or extra[n] >= job["cpus"])]
        if not room:
            if extra is not None:
                for node in nodes:
                    extra[node] += job["cpus"]
            return []
        node = min(room, key=lambda n: (free[n], n))
        free[node] -= job["cpus"]
        if extra is not None:
            extra[node] -= job["cpus"]
        nodes.append(node)
    return nodes


def random_jobs(seed):
    rng = random.Random(seed)
    at, jobs = 0, []
    for number in range(60):
        at += rng.choice([0, 0, 1, 5, 20])
        runtime = rng.randint(1, 120)
        jobs.append({
            "name": f"j{number:02}", "queue": rng.choice(QUEUES), "submit": at, "runtime": runtime,
            "estimate": runtime * rng.choice([1, 1, 2, 5]), "cpus": rng.choice([1, 2, 3, 4, 8]),
            "tasks": rng.choice([1, 1, 2, 4, 9]),
        })  # fmt: skip
    return jobs


def replay(jobs):
    nodes = tuple(Node(name=f"n{n:02}", allocatable={"cpu": CPUS * 1000}) for n in range(NODES))
    cluster = Cluster(
        now=0, settings=Settings(actions=("allocate",), backfill="easy"), nodes=nodes,
        queues=tuple(Queue(name=q) for q in QUEUES),
    )  # fmt: skip
    records = []
    for job in jobs:
        spec = TaskSpec(requests=(("cpu", job["cpus"] * 1000),))
        tasks = tuple(Task(name=f"t{n}", spec=spec) for n in range(job["tasks"]))
        workload = Workload(
            name=job["name"], queue=job["queue"], created_at=job["submit"] * SECOND, tasks=tasks,
            expected_runtime=job["estimate"] * SECOND,
        )  # fmt: skip
        records.append(TraceJob(workload, job["runtime"] * SECOND, job["name"]))
    trace = Trace("tenure", tuple(records), 0, {}, (), len(records))
    log = Simulation(SimulationSetup(cluster), trace).run().log
    starts = {}
    for kind, at, job, _, node, _ in log.events:
        if kind == BIND:
            starts.setdefault(jobs[job]["name"], (at // SECOND, []))[1].append(node)
    return starts


@pytest.mark.parametrize("seed", range(40))
def test_every_start_and_place_is_that_of_the_reference(seed):
    assert replay(random_jobs(seed)) == Reference(random_jobs(seed)).run()
