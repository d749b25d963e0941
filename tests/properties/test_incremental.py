"""A session that is kept in step with a cluster decides as one that is made anew from it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import SECOND
from tests.effort import tries
from tests.properties.strategies import PLAIN_PLACEMENTS, clusters
from tests.simulator.test_easy_gangs import MACHINE, QUEUES, drawn_jobs

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.engine.state.session import Session
from tenure.model.cluster import Cluster
from tenure.model.settings import Settings
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


class Both:
    """A kept session and a cluster, in step; each cycle is decided twice."""

    def __init__(self, cluster, everything):
        self.embedded = EmbeddedCluster(cluster)
        self.session = kept(cluster, everything)
        self.scheduler = Scheduler(self.session)

    def event(self, now, ends, comes):
        """Workloads end and come at an instant; gives the plan once both ways agree."""
        session, seen = self.session, self.embedded.observe()
        comes = [replace(workload, created_at=now) for workload in comes]
        self.scheduler.pass_time(now)
        for key in ends:
            self.scheduler.endings.discard(session.workloads[key])
            session.remove_workload(key)
        for workload in comes:
            session.add_workload(workload)
        left = tuple(w for w in seen.workloads if w.key not in ends)
        self.embedded.cluster = replace(seen, now=now, workloads=(*left, *comes))
        plan = self.scheduler.cycle(now)
        assert decided(plan) == decided(Scheduler(session_of(self.embedded.observe())).cycle(now))
        self.embedded.carry_out(plan)
        return plan


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
    both = Both(replace(cluster, workloads=first), cluster.workloads)
    now = cluster.now
    for _ in range(data.draw(st.integers(1, 6))):
        could = running(both.embedded.observe())
        ends = data.draw(st.lists(st.sampled_from(could), max_size=2, unique=True)) if could else []
        comes = [later.pop() for _ in range(data.draw(st.integers(0, min(2, len(later)))))]
        both.event(now, ends, comes)
        now += data.draw(st.sampled_from((1, 10, 60))) * SECOND


@pytest.mark.parametrize("seed", range(tries(1, 20)))
@pytest.mark.parametrize("backfill", ["none", "easy"])
@pytest.mark.parametrize("queues", QUEUES.values(), ids=QUEUES)
def test_over_many_events_too(queues, backfill, seed):
    """A stream of jobs that arrive singly and in bursts on a crowded machine."""
    jobs = drawn_jobs(seed, 50, estimated=0.9)
    settings = Settings(backfill=backfill, actions=("allocate",))
    both = Both(Cluster(now=0, nodes=MACHINE[:6], queues=queues, settings=settings), [w for w, _ in jobs])
    runtime = {w.key: r for w, r in jobs}
    ends = {}
    while jobs or ends:
        now = min([w.created_at for w, _ in jobs[:1]] + list(ends.values()))
        comes = [w for w, _ in jobs if w.created_at == now]
        jobs = [job for job in jobs if job[0].created_at != now]
        plan = both.event(now, [key for key, at in ends.items() if at == now], comes)
        ends = {key: at for key, at in ends.items() if at != now} | {key: now + runtime[key] for key in plan.started}
