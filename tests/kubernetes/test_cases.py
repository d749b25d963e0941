"""Cases of the embedded cluster, played on a real API server: the same state before each cycle, and the same steps."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.kubernetes.stage import Stage, can_stage, wait_until
from tools.controlplane.plane import Options as PlaneOptions

from tenure.clusters.embedded import EmbeddedCluster
from tenure.clusters.kubernetes import cluster as kubernetes_cluster
from tenure.clusters.kubernetes.cache.informers import InformerCache, Options
from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.cluster import KubernetesCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.live.loop import Loop
from tenure.model.file.load import load_cluster
from tenure.model.file.override import apply_overrides
from tenure.model.queue import QueueStatus
from tenure.model.values.duration import parse_duration

CASES = Path(__file__).parents[1] / "cases"
FILES = sorted(p for p in CASES.glob("**/*.yaml") if not p.name.endswith(".expected.yaml"))


PLANE = PlaneOptions(controllers=False, nodes=False)
"""Nobody else is at work."""


@pytest.fixture(scope="module")
def stage(plane):
    return Stage(plane)


@pytest.fixture(scope="module")
def informers(plane):
    """Give watches that go on from case to case, as a scheduler's do; in the end none is left."""
    made = InformerCache(Client(find_access(str(plane.kubeconfig))), Options())
    made.start()
    assert made.wait_synced(20), made.troubles
    yield made
    made.stop()
    wait_until(lambda: not watches(), lambda: f"watches are left: {watches()}")


class WatchedCluster(KubernetesCluster):
    """A cluster that is seen by watches which were there before it, and are after it."""

    def __init__(self, informers, client, settings, monkeypatch):
        monkeypatch.setattr(kubernetes_cluster, "InformerCache", lambda *_: informers)
        super().__init__(client, informers.options, settings)

    def start(self):
        self.sealer.thread.start()
        self.explanations.thread.start()

    def close(self):
        self.actor.close()
        self.sealer.thread.stop()
        self.explanations.thread.stop()
        self.events.stop()


def state(cluster, begun):
    """Give what a decision depends on and both clusters have to agree about.

    What a case starts itself, after it has ``begun``, starts by the server's clock.
    """
    tasks = {
        (w.key, t.name): (str(t.phase), t.node, t.devices, t.nominated, t.sub_group)
        for w in cluster.workloads
        for t in w.tasks
    }
    about = {
        w.key: (
            w.queue,
            w.priority,
            w.min_member or (None if w.sub_groups else len(w.tasks)),
            w.started_at if w.started_at is None or w.started_at < begun else "since then",
            w.stale_since,
            [t.name for t in w.tasks],
        )
        for w in cluster.workloads
    }
    queues = {q.name: (q.parent, q.guaranteed, q.max, q.status or QueueStatus()) for q in cluster.queues}
    log = sorted((e.at, e.workload, e.task, e.cause, e.beneficiary or "", e.from_node) for e in cluster.evictions)
    return tasks, about, queues, log


def with_times(observed, told, begun):
    """Put the times that only the server can set as the file has them; see `state`."""
    workloads = {w.key: w for w in told.workloads}

    def timed(workload):
        known = workloads[workload.key]
        tasks = {t.name: t for t in known.tasks}
        own = tuple(
            replace(
                t, created_at=tasks[t.name].created_at, started_at=tasks[t.name].started_at, ready=tasks[t.name].ready,
                terminating_since=tasks[t.name].terminating_since, grace_period=tasks[t.name].grace_period,
                never_terminates=tasks[t.name].never_terminates, order=tasks[t.name].order,
            )
            for t in workload.tasks
        )  # fmt: skip
        started = known.started_at if (workload.started_at or 0) >= begun else workload.started_at
        times = {"created_at": known.created_at, "started_at": started, "last_evicted_at": known.last_evicted_at}
        return replace(workload, tasks=own, **times)

    queues = {q.name: q for q in told.queues}
    return replace(
        observed,
        cluster=replace(
            observed.cluster,
            workloads=tuple(timed(w) for w in observed.cluster.workloads),
            queues=tuple(replace(q, created_at=queues[q.name].created_at) for q in observed.cluster.queues),
            nodes=tuple(replace(n, created_at=None) for n in observed.cluster.nodes),
        ),
    )


def loaded(path, folder):
    """Load a case, with names of queues that an API server takes; those of quotas have more in their files."""
    content = yaml.load(path.read_text(), yaml.CSafeLoader)
    cycles = content.get("cycles", 1)
    if "cluster" in content:
        inner = folder / "cluster.json"
        inner.write_text(json.dumps(content["cluster"], default=str))
        told = apply_overrides(load_cluster(inner).cluster, content.get("set", ())).cluster
    else:
        told = load_cluster(path).cluster
    queues = tuple(replace(q, name=q.name.lower(), parent=q.parent and q.parent.lower()) for q in told.queues)
    workloads = tuple(replace(w, queue=w.queue.lower()) for w in told.workloads)
    return replace(told, queues=queues, workloads=workloads), cycles


def written(step):
    return step._replace(cycle=0, task_index=0, node_index=0, reason="")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_case_on_an_api_server(path, plane, stage, informers, monkeypatch, tmp_path):
    """On an API server a case is seen as its file says, and gives the steps that it gives on the embedded cluster."""
    expected_at = path.with_name(path.stem + ".expected.yaml")
    expected = yaml.load(expected_at.read_text(), yaml.CSafeLoader) if expected_at.exists() else {}
    told, cycles = loaded(path, tmp_path)
    cycles = expected.get("cycles", cycles)
    if not can_stage(told):
        pytest.skip("the file says what an API server cannot say")
    every = parse_duration(expected.get("every", "1s"))
    client = Client(find_access(str(plane.kubeconfig)))
    live = WatchedCluster(informers, client, told.settings, monkeypatch)
    embedded = EmbeddedCluster(told)
    try:
        stage.put(told)
        live.start()
        for number in range(cycles):
            if number:
                before = embedded.observe()
                embedded.advance(told.now + number * every)
                stage.advance(before)
            play_cycle(live, embedded, told.now)
    finally:
        live.close()
        stage.clear()


def watches():
    """Give the watches that go on in this process."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("watch ")]


def play_cycle(live, embedded, begun):
    now = embedded.observe().now
    wanted = state(embedded.observe(), begun)
    wait_until(
        lambda: state(live.observer.observe(now).cluster, begun) == wanted,
        lambda: (
            f"{state(live.observer.observe(now).cluster, begun)}\nis not\n{wanted}\n{list(live.informers.findings.new)}"
        ),
    )
    plan = Scheduler(session_of(embedded.observe())).cycle(now)
    observe = live.observe
    live.observe = lambda now: with_times(observe(now), embedded.observe(), begun)
    loop = Loop(live, lambda: 1, wall=lambda: now)
    loop.confirmation.done = True
    done = loop.cycle()
    live.observe = observe
    assert [written(s) for s in done.plan.steps] == [written(s) for s in plan.steps]
    assert not done.outcome.failures
    assert not done.outcome.skipped
    embedded.carry_out(plan)
