"""Cycle after cycle on random trees: what must hold at every step, and how it ends."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import NOW, SECOND
from tests.effort import tries
from tests.quota.oracle import OCCUPIES, Tree, best, choices, keeps_guarantees, over, spared
from tests.quota.strategies import clusters

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.workload import Phase

EVERY = 20 * SECOND
HOLDS = (*OCCUPIES, Phase.TERMINATING)


def cycles(cluster, number, *, every=EVERY):
    """Yield the cluster before each cycle, the plan, and the cluster after it; nothing else is kept in between."""
    for step in range(number):
        embedded = EmbeddedCluster(cluster)
        if step:
            embedded.advance(NOW + step * every)
        before = embedded.observe()
        plan = Scheduler(session_of(before)).cycle(before.now)
        embedded.carry_out(plan)
        cluster = embedded.observe()
        yield before, plan, cluster


def taken(before, plan):
    """Pairs of workload and tasks that a plan evicts."""
    gone = {(s.workload, s.task_index) for s in plan.steps if s.action == "evict"}
    pairs = [(w, [t for i, t in enumerate(w.tasks) if (w.key, i) in gone]) for w in before.workloads]
    return [(w, tasks) for w, tasks in pairs if tasks]


def fired(plan):
    """Names of the queues that evicted something."""
    return [e.queue for e in plan.quota_events if e.kind == "fired"]


def delay_of(cluster, name):
    """The delay that holds, worked out the plain way."""
    tree = Tree(cluster)
    if tree.queues[name].dynamic:
        return 0
    path = tree.path(name) if cluster.settings.quota_preemption.inherit else [name]
    return next((d for d in (tree.queues[n].quota_preemption_delay for n in path) if d is not None), 0)


@settings(max_examples=25)
@given(clusters(levels=5, most=12, work=7))
def test_every_step_obeys_the_rules(cluster):  # noqa: C901  one rule after the other, step by step
    """Guarantees, shields, whole gangs, deadlines, parent before child, overshoot, and what is spared."""
    armed = {}
    for before, plan, _ in cycles(cluster, 14):
        tree = Tree(before)
        for queue in before.queues:  # deadlines, kept beside the scheduler's own
            delay = delay_of(before, queue.name)
            if delay and over(before, queue.name, HOLDS):
                armed.setdefault(queue.name, before.now + delay)
            else:
                armed.pop(queue.name, None)
        assert {q.queue: q.deadline for q in plan.quota} == armed
        victims = taken(before, plan)
        assert keeps_guarantees(before, victims)
        for workload, tasks in victims:
            assert any(sorted(t.name for t in tasks) == sorted(t.name for t in c) for c in choices(before, workload))
        for name in fired(plan):
            assert armed[name] <= before.now
            for above in tree.path(name)[1:]:
                leaving = any(
                    t.phase is Phase.TERMINATING and before.now < t.terminating_since + (t.grace_period or 0)
                    for w in before.workloads if above in tree.path(w.queue) for t in w.tasks
                )  # fmt: skip
                if above in armed and armed[above] <= before.now:
                    assert above not in fired(plan)
                    assert not leaving
        for workload, tasks in victims:
            assert set(tree.path(workload.queue)) & set(fired(plan)), (workload.key, tasks)
        if before.settings.quota_preemption.overshoot == "never":
            for name in fired(plan):
                uses = _left(before, plan, name)
                for resource in over(before, name):
                    assert uses[resource] >= tree.queues[name].max[resource]


def _left(before, plan, name):
    gone = {(s.workload, s.task_index) for s in plan.steps if s.action == "evict"}
    tree, found = Tree(before), {}
    for workload in before.workloads:
        if name in tree.path(workload.queue):
            for index, task in enumerate(workload.tasks):
                if task.phase in OCCUPIES and (workload.key, index) not in gone:
                    for resource, amount in task.spec.requests:
                        found[resource] = found.get(resource, 0) + amount
    return {r: found.get(r, 0) for r in ("cpu", "memory")}


@settings(max_examples=tries(10, 200))
@given(clusters(levels=3, most=6, work=4, delays=(60 * SECOND,)), st.sampled_from((None, 1, 2)))
def test_it_ends_under_max_or_where_nothing_more_may_be_taken(cluster, cap):
    """Within a bounded number of rounds; then nothing more happens, and what is left over no set could take."""
    quota = replace(cluster.settings.quota_preemption, max_evictions_per_cycle=cap, overshoot="minimal")
    cluster = replace(cluster, settings=replace(cluster.settings, quota_preemption=quota))
    tasks = sum(len(w.tasks) for w in cluster.workloads)
    evicted, last = 0, None
    for before, plan, after in cycles(cluster, 2 * tasks + 8, every=120 * SECOND):
        here = sum(s.action == "evict" for s in plan.steps)
        assert cap is None or here <= cap
        evicted += here
        last = before, plan, after
    before, plan, after = last
    assert not [s for s in plan.steps if s.action == "evict"]
    assert evicted <= 3 * tasks
    if cap is None:
        for report in plan.quota:
            if not over(before, report.queue):
                continue  # what holds it over its max does not leave
            assert report.state == "stuck"
            assert best(before, report.queue)[3] == 0, "something could still be taken"


@settings(max_examples=20)
@given(clusters(levels=3, most=6, work=5, delays=(60 * SECOND,)))
def test_opted_out_work_goes_only_where_no_other_would_do(cluster):
    """No last resort goes in a round in which another set would leave as little over max without it."""
    for before, plan, _ in cycles(cluster, 8):
        if len(fired(plan)) != 1:
            continue
        (name,) = fired(plan)
        if any(t.phase is Phase.TERMINATING for w in before.workloads for t in w.tasks):
            continue
        spares = sum(spared(before, w, t) for w, tasks in taken(before, plan) for t in tasks)
        assert spares == best(before, name)[1]
