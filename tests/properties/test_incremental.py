"""A session that is kept in step with a cluster decides as one that is made anew from it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.builders import SECOND
from tests.properties.strategies import PLAIN_PLACEMENTS, clusters

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.session import Session
from tenure.engine.snapshot import session_of
from tenure.model.workload import Phase


def decided(plan):
    """What a plan says, without the number of its cycle."""
    return [(s.action, s.workload, s.task, s.node, s.devices) for s in plan.steps], plan.started, sorted(plan.expired)


def kept(cluster, everything):
    """Make a session that knows the resources of workloads that are still to come."""
    asked = {name for w in everything for t in w.tasks for name, _ in t.spec.requests}
    session = Session(cluster.nodes, cluster.queues, cluster.settings, extra=asked)
    session.now = cluster.now
    session.add_workloads(cluster.workloads)
    return session


def running(cluster):
    """Keys of workloads that could end."""
    return [w.key for w in cluster.workloads if any(t.phase in (Phase.BOUND, Phase.RUNNING) for t in w.tasks)]


@given(clusters(placements=PLAIN_PLACEMENTS, most=8), st.data())
def test_a_kept_session_decides_as_a_new_one(cluster, data):
    """Workloads come and end, one or several at a time; after each event both make the same plan."""
    later = [
        w
        for w in cluster.workloads
        if w.started_at is None and all(t.node is None and t.nominated is None for t in w.tasks)
    ]
    later = later[: data.draw(st.integers(0, len(later)))]
    first = tuple(w for w in cluster.workloads if w not in later)
    embedded = EmbeddedCluster(replace(cluster, workloads=first))
    session = kept(embedded.observe(), cluster.workloads)
    scheduler = Scheduler(session)
    now = cluster.now
    for _ in range(data.draw(st.integers(1, 6))):
        ends = data.draw(st.lists(st.sampled_from(running(embedded.observe()) or ["nobody"]), max_size=2, unique=True))
        ends = [key for key in ends if key != "nobody"]
        comes = [later.pop() for _ in range(data.draw(st.integers(0, min(2, len(later)))))]
        scheduler.pass_time(now)
        for key in ends:
            scheduler.endings.discard(session.workloads[key])
            session.remove_workload(key)
        for workload in comes:
            session.add_workload(replace(workload, created_at=now))
        seen = embedded.observe()
        left = tuple(w for w in seen.workloads if w.key not in ends)
        came = tuple(replace(w, created_at=now) for w in comes)
        embedded.cluster = replace(seen, now=now, workloads=(*left, *came))
        plan = scheduler.cycle(now)
        fresh = Scheduler(session_of(embedded.observe())).cycle(now)
        assert decided(plan) == decided(fresh)
        embedded.carry_out(plan)
        now += data.draw(st.sampled_from((1, 10, 60))) * SECOND
