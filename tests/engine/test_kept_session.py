"""A session that is kept from cycle to cycle decides what one would decide that is made for each cluster."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.builders import SECOND, cluster, node, queue, spec, workload
from tests.properties.strategies import clusters

from tenure.cycle import Scheduler
from tenure.engine.kept_session import MOST_KINDS, KeptSession
from tenure.engine.plan import Plan, PlanStep
from tenure.engine.snapshot import session_of
from tenure.model.settings import QuotaPreemptionSettings
from tenure.model.workload import Phase


def with_bound(found, plan, done):
    """Carry out what of a plan's bindings is ``done``."""
    bound = {(s.workload, s.task_index): s for s in plan.steps if s.action == "bind" and s.workload in done}
    workloads = []
    for w in found.workloads:
        tasks = tuple(
            replace(t, phase=Phase.BOUND, node=s.node, devices=s.devices, nominated=None, started_at=plan.now)
            if (s := bound.get((w.key, n))) is not None
            else t
            for n, t in enumerate(w.tasks)
        )
        changed = tasks != w.tasks
        started = plan.now if changed and w.started_at is None else w.started_at
        workloads.append(replace(w, tasks=tasks, started_at=started) if changed else w)
    return replace(found, workloads=tuple(workloads))


@st.composite
def stories(draw):
    """Draw a cluster, the workloads that are there at each of some times, and which bindings fail."""
    found = draw(clusters(most=8))
    actions = draw(st.sampled_from((("allocate",), ("allocate", "reclaim", "preempt", "requeue"))))
    found = replace(found, settings=replace(found.settings, actions=actions))
    keys = sorted(w.key for w in found.workloads)
    there = draw(st.lists(st.sets(st.sampled_from(keys)), min_size=2, max_size=5))
    refused = draw(st.lists(st.sets(st.sampled_from(keys), max_size=1), min_size=len(there), max_size=len(there)))
    return found, there, refused


@given(stories())
def test_a_kept_session_decides_as_one_that_is_made_anew(story):
    """Workloads come and go, bindings are carried out or refused, time passes: the plans are the same."""
    found, there, refused = story
    models = {w.key: w for w in found.workloads}
    kept = KeptSession()
    for number, (keys, no) in enumerate(zip(there, refused, strict=True)):
        now = found.now + number * 3 * SECOND
        seen = replace(found, now=now, workloads=tuple(models[key] for key in sorted(keys)))
        fresh = Scheduler(session_of(seen)).cycle(now)
        session = kept.take(seen)
        plan = Scheduler(session).cycle(now)
        kept.keep(seen, session, plan)
        assert plan.steps == fresh.steps
        assert plan.obstacles == fresh.obstacles
        assert plan.wake == fresh.wake
        assert session.workloads.keys() == session_of(seen).workloads.keys()
        models |= {w.key: w for w in with_bound(seen, plan, keys - no).workloads}


def test_a_session_is_kept_while_pods_come_and_are_bound():
    """It is made anew neither for what comes nor for what was bound; it is where a node changes."""
    machines = [node("a"), node("b")]
    found, kept = cluster(machines, [workload("w0")]), KeptSession()
    session = kept.take(found)
    for number in range(1, 4):
        assert kept.take(found) is session or number == 1
        plan = Scheduler(session).cycle(found.now)
        assert [s.action for s in plan.steps] == ["bind"]
        kept.keep(found, session, plan)
        found = with_bound(found, plan, {s.workload for s in plan.steps})
        found = replace(found, workloads=(*found.workloads, workload(f"w{number}")))
        taken = kept.take(found)
        assert taken is session
        assert [w for w, s in taken.workloads.items() if not s.occupied()] == [f"default/w{number}"]
        kept.keep(found, session, Plan(found.now))
    assert kept.take(replace(found, nodes=(node("a", cpu=16), machines[1]))) is not session


def test_a_session_on_which_something_was_promised_or_sent_away_is_not_kept():
    """What follows from such a plan is written on the objects, and read from there."""
    found, kept = cluster([node("a")], [workload("w0")]), KeptSession()
    for action in ("evict", "nominate", "notice"):
        session = kept.take(found)
        kept.keep(found, session, Plan(found.now, steps=[PlanStep(action, "default/w0", "w0-0", "a", 0, 0)]))
        assert kept.take(found) is not session


def test_a_deadline_that_was_not_written_is_armed_again():
    """The write may be refused: what stands on the queue counts, and not what was decided."""
    enabled = QuotaPreemptionSettings(enabled=True)
    limits = [queue("low", max={"cpu": 1}, quota_preemption_delay=3600 * SECOND)]
    runs = workload("w", queue="low", of=spec(cpu=2), on=["a"], running=60)
    found = cluster([node("a")], [runs], limits, actions=("quota",), quota_preemption=enabled)
    kept, written = KeptSession(), []
    for _ in range(2):
        session = kept.take(found)
        plan = Scheduler(session).cycle(found.now)
        kept.keep(found, session, plan)
        written.append(plan.queue_status["low"].quota_preemption)
    assert written[0] == written[1]
    assert written[0].deadline == found.now + 3600 * SECOND


def test_few_changes_among_many_workloads_are_found():
    """Whole stretches that are the same are passed over; what came, went and changed between them is taken in."""
    machines = [node("a", cpu=1_000)]
    models = {w.key: w for w in (workload(f"w{n:03}") for n in range(300))}
    kept = KeptSession()
    session = kept.take(cluster(machines, models.values()))
    kept.keep(cluster(machines, models.values()), session, Plan(0))
    for change in range(20):
        gone, other = f"default/w{7 * change:03}", f"default/w{(11 * change + 150) % 300:03}"
        models.pop(gone, None)
        if other in models:
            models[other] = replace(models[other], priority=change)
        models[f"default/w{change:03}x"] = workload(f"w{change:03}x")
        found = cluster(machines, [models[key] for key in sorted(models)])
        assert kept.take(found) is session
        assert {key: state.model for key, state in session.workloads.items()} == models
        kept.keep(found, session, Plan(found.now))


def test_a_session_that_has_seen_many_kinds_is_made_anew():
    """It keeps a table of each kind of tasks; kinds that are no longer there go with it."""
    machines, kept = [node("a", cpu=10_000)], KeptSession()
    first = kept.take(cluster(machines, [workload("w0")]))
    kept.keep(cluster(machines, [workload("w0")]), first, Plan(0))
    many = cluster(machines, [workload("w0"), *(workload(f"x{n:04}", of=spec(cpu=n + 2)) for n in range(MOST_KINDS))])
    kept.keep(many, kept.take(many), Plan(many.now))
    assert kept.take(cluster(machines, [workload("w0")])) is not first
