"""Hot nodes without a metrics server: what nodes and pods use, as a real Prometheus knows it of their kubelets."""

from __future__ import annotations

import time

import pytest
from tests.kubernetes.pods import NOW, node, pod, sealed, thing
from tests.kubernetes.stage import wait_until
from tests.kubernetes.test_gpu_usage import prometheus, served

from tenure.clusters.kubernetes.cache.informers import InformerCache, Options
from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.clusters.kubernetes.read import usage
from tenure.clusters.kubernetes.read.observe import Observer
from tenure.playthrough import play

SECOND = 1_000_000
MIB = 1 << 20
HOT = {"actions": ["allocate", "reschedule"], "rescheduler": {"hotNodes": {"enabled": True, "hot": "80%", "for": "1m"}}}


class WithoutMetrics:
    """The client of an API server that serves no metrics API."""

    def request(self, method, path, *_):
        raise ApiError(404, "NotFound", f"{method} {path}: the server could not find the requested resource")


def exported(cores, began):
    """Give what kubelets say of containers; ``cores`` are in use by node and by pod since a time."""
    passed = time.time() - began
    of_nodes = [
        f'container_cpu_usage_seconds_total{{id="/",node="{name}"}} {passed * used}'
        for name, used in cores["nodes"].items()
    ]
    of_pods = [
        f'container_cpu_usage_seconds_total{{container="{container}",pod="{name}",namespace="default"}} '
        f"{passed * used / 2}"
        for name, used in cores["pods"].items()
        for container in ("main", "side")
    ]
    held = [
        f'container_memory_working_set_bytes{{container="main",pod="{name}",namespace="default"}} {64 * MIB}'
        for name in cores["pods"]
    ]
    counters = ["# TYPE container_cpu_usage_seconds_total counter", *of_nodes, *of_pods]
    return "\n".join([*counters, "# TYPE container_memory_working_set_bytes gauge", *held, ""])


def test_a_node_is_cooled_that_prometheus_says_is_hot(tmp_path, monkeypatch):
    """Without a metrics API what cAdvisor says is asked of Prometheus; a node that stays hot is relieved by a move."""
    monkeypatch.setattr(usage, "RATE_SECONDS", 4)  # here a scrape takes place every second
    informers = InformerCache(WithoutMetrics(), Options(prometheus="http://nowhere"))
    informers._objects("nodepools").put(thing("default", spec={"scheduler": HOT}))
    requests = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
    started = sealed(queue="default", started="2026-11-20T09:00:00Z")
    for name in ("busy", "calm"):
        informers.nodes.put(node(name, cpu="4"))
    for name in ("p-0", "p-1"):
        informers.pods.put(pod(name, owner=("ReplicaSet", name), node="busy", status=started, **requests))
    observer, now = Observer(informers), NOW
    informers.usage._wall = lambda: now
    observer.observe(now)
    cores, began = {"nodes": {"busy": 3.9, "calm": 0.5}, "pods": {"p-0": 2.0, "p-1": 1.5}}, time.time()
    with served(lambda _: exported(cores, began)) as target, prometheus(tmp_path, target) as server:
        informers.usage.prometheus.server = server

        def known():
            informers.usage.read()
            busy = informers.usage.nodes.get("busy")
            return busy is not None and busy.amounts["cpu"] > 3500 and len(informers.usage.pods) == 2

        wait_until(known, lambda: informers.usage.trouble or str(informers.usage.nodes), 60)
        now += 60 * SECOND
        informers.usage.read()
    assert informers.usage.trouble == ""
    cluster = observer.observe(now).cluster
    used = {n.name: (n.usage["cpu"], n.usage_for) for n in cluster.nodes}
    assert used["busy"][0] == pytest.approx(3900, rel=0.1)
    assert used["busy"][1] == 60 * SECOND
    assert used["calm"][0] == pytest.approx(500, rel=0.1)
    (first,) = (w.tasks[0] for w in cluster.workloads if w.name == "p-0")
    assert first.usage["cpu"] == pytest.approx(2000, rel=0.1)
    assert first.usage["memory"] == 64 * MIB
    moves = [(s.node, s.to) for s in play(cluster).steps if s.action == "evict"]
    assert moves == [("busy", "calm")]


def test_neither_of_both_is_told_of():
    """Where neither answers, it is said of both why, and no node is called hot."""
    informers = InformerCache(WithoutMetrics(), Options(prometheus="http://127.0.0.1:9"))
    informers._objects("nodepools").put(thing("default", spec={"scheduler": HOT}))
    Observer(informers).observe(NOW)
    informers.usage._wall = lambda: NOW
    informers.usage.read()
    assert "the metrics API cannot be read" in informers.usage.trouble
    assert "Prometheus at http://127.0.0.1:9 cannot be read" in informers.usage.trouble
    assert informers.usage.nodes == {}
