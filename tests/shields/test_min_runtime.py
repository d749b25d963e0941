"""Minimum runtime against a naive reading of the text, on random trees and every pair of leaves."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.taking_checker import Tree, min_runtime

from tenure.engine.journal import Journal
from tenure.engine.snapshot import session_of
from tenure.engine.state.queues import QueueTree
from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import MinRuntimeSettings, Settings
from tenure.model.workload import Phase, Task, TaskSpec, Workload
from tenure.shields.min_runtime import clock, resolve
from tenure.shields.plugins import EvictionPlugins

CAUSES = ["reclaim", "preempt", "requeue", "consolidate", "reschedule", "quota", "stale-gang"]
SECOND = 1_000_000


def random_tree(seed):
    rng = random.Random(seed)
    queues = []
    for number in range(rng.randint(1, 12)):
        queues.append(
            Queue(
                name=f"q{number}",
                parent=rng.choice([None, *(q.name for q in queues)]),
                reclaim_min_runtime=rng.choice([None, None, 0, 60 * SECOND, number * SECOND]),
                preempt_min_runtime=rng.choice([None, None, 0, 90 * SECOND, number * SECOND]),
            )
        )
    applies = tuple(c for c in CAUSES if rng.random() < 0.8)
    chosen = Settings(
        reclaim_min_runtime=rng.choice([0, 7 * SECOND]),
        preempt_min_runtime=rng.choice([0, 5 * SECOND]),
        min_runtime=MinRuntimeSettings(method=rng.choice(["lca", "queue"]), applies_to=applies),
    )
    return queues, chosen


@given(st.integers(0, 1 << 32))
@settings(max_examples=300, deadline=None)
def test_every_pair_of_leaves_is_as_the_text_says(seed):
    """Both settings, both methods, every cause, with and without a beneficiary."""
    queues, chosen = random_tree(seed)
    tree, naive = QueueTree(queues, [], Journal()), Tree(queues)
    leaves = [q for q, leaf in enumerate(tree.leaf) if leaf]
    names = [q.name for q in tree.queues]
    for victim in leaves:
        for beneficiary in [*leaves, -1]:
            for cause in CAUSES:
                if cause == "preempt" and beneficiary != victim:
                    continue
                if cause == "reclaim" and beneficiary in (victim, -1):
                    continue
                whom = names[beneficiary] if beneficiary >= 0 else None
                expected = min_runtime(chosen, naive, cause, whom, names[victim])
                assert resolve(chosen, tree, cause, beneficiary, victim) == expected


def running(started=None, *, task_start=None, starts_at="allocated", now=1000 * SECOND, phases=(Phase.RUNNING,)):
    """A workload on one node; its session and its state."""
    tasks = tuple(
        Task(name=f"t{i}", spec=TaskSpec(requests=(("cpu", 1),)), phase=p, node="n", started_at=task_start)
        for i, p in enumerate(phases)
    )
    session = session_of(
        Cluster(
            now=now,
            settings=Settings(min_runtime=MinRuntimeSettings(starts_at=starts_at)),
            nodes=(Node(name="n", allocatable={"cpu": 100}),),
            workloads=(Workload(name="w", queue="default", started_at=started, tasks=tasks),),
        )
    )
    return session, session.workloads["default/w"]


@pytest.mark.parametrize(
    ("started", "task_start", "expected"),
    [
        (100 * SECOND, None, 100 * SECOND),
        (100 * SECOND, 50 * SECOND, 100 * SECOND),
        (None, 50 * SECOND, 50 * SECOND),
        (None, None, None),
        (2000 * SECOND, None, 1000 * SECOND),
    ],
    ids=["its start", "its start before its tasks'", "earliest start of a task", "unknown", "in the future: now"],
)
def test_the_clock(started, task_start, expected):
    assert clock(*running(started, task_start=task_start)) == expected


def test_the_clock_from_running_waits_until_all_of_the_core_runs():
    session, state = running(100 * SECOND, starts_at="running", phases=(Phase.RUNNING, Phase.BOUND))
    assert clock(session, state) == session.now


def test_the_clock_from_running_counts_from_the_last_task_of_the_core():
    session, state = running(100 * SECOND, task_start=300 * SECOND, starts_at="running", phases=(Phase.RUNNING,) * 2)
    assert clock(session, state) == 300 * SECOND


class Hook:
    """A plugin on both points, or on one, that always says the same."""

    def __init__(self, *, victim=None, plan=None):
        self.name = f"hook-{victim}-{plan}"
        if victim is not None:
            self.allow_victim = lambda *_: victim
        if plan is not None:
            self.allow_plan = lambda *_: plan


HOOKS = [
    [],
    [Hook(victim=True, plan=True)],
    [Hook(victim=False)],
    [Hook(plan=False)],
    [Hook(victim=True), Hook(plan=False)],
]


def inhabited(queues, chosen, rng):
    """A running workload of three tasks, two of them its core, and one that waits in every leaf."""
    parents = {q.parent for q in queues}
    found = []
    for leaf in (q.name for q in queues if q.name not in parents):
        started = rng.choice([None, 5000 * SECOND, *(5000 * SECOND - rng.randint(0, 100) * SECOND for _ in "123")])
        tasks = tuple(
            Task(name=f"{leaf}-{i}", spec=TaskSpec(requests=(("cpu", 1),)), phase=Phase.RUNNING, node="n")
            for i in range(3)
        )
        found.append(Workload(name=f"v-{leaf}", queue=leaf, started_at=started, min_member=2, tasks=tasks))
        found.append(Workload(name=f"c-{leaf}", queue=leaf, tasks=(replace(tasks[0], phase=Phase.PENDING, node=None),)))
    nodes = (Node(name="n", allocatable={"cpu": 1_000_000}),)
    return Cluster(now=5000 * SECOND, settings=chosen, nodes=nodes, queues=tuple(queues), workloads=tuple(found))


@given(st.integers(0, 1 << 32), st.sampled_from(range(len(HOOKS))))
@settings(max_examples=150, deadline=None)
def test_both_hooks_say_what_the_text_says_with_other_plugins_and_without(seed, number):
    """Every pair of leaves, both settings and methods: the filter spares the surplus, the validator holds the core."""
    rng = random.Random(seed)
    queues, chosen = random_tree(seed)
    state, naive = inhabited(queues, chosen, rng), Tree(queues)
    session, plugins = session_of(state), EvictionPlugins(HOOKS[number])
    says = {
        point: all(getattr(h, point, lambda: True)() for h in HOOKS[number]) for point in ("allow_victim", "allow_plan")
    }
    of = {w.model.queue: w for w in session.workloads.values() if w.model.name.startswith("v-")}
    contenders = {w.model.queue: w for w in session.workloads.values() if w.model.name.startswith("c-")}
    for mine, contender in contenders.items():
        for theirs, victim in of.items():
            for cause in ["preempt"] if mine == theirs else ["reclaim", "requeue", "consolidate"]:
                least = min_runtime(chosen, naive, cause, mine, theirs)
                start = victim.started_at
                protected = start is not None and state.now < min(start, state.now) + least
                refusal = plugins.filter(session, cause, contender, victim)
                assert (refusal is None) == (not protected and says["allow_victim"])
                if protected and says["allow_victim"]:
                    assert (refusal.shield, refusal.core_only, refusal.until) == ("min-runtime", True, start + least)
                for taken, core in ((victim.tasks[2:], False), (victim.tasks[1:], True), (victim.tasks, True)):
                    verdict = plugins.validate(session, cause, contender, taken)
                    assert (verdict is None) == (not (protected and core) and says["allow_plan"])
