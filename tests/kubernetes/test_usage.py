"""What nodes and pods use: read from a metrics API behind the API server, and from annotations."""

from __future__ import annotations

from tests.kubernetes.metrics_server import announce, metrics_server
from tests.kubernetes.pods import NOW, node, observed, pod
from tests.kubernetes.running import MEASURING, queue
from tests.kubernetes.stage import wait_until

from tenure.clusters.kubernetes.cache.informers import InformerCache, Options
from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.read.observe import Observer
from tenure.clusters.kubernetes.read.usage import FRESH, METRICS

TENURE = "/apis/tenure.dev/v1alpha1"
SECOND = 1_000_000


def answers(readings):
    """What the metrics API says; ``readings`` are the CPUs by node."""

    def answer(path):
        if path.startswith(f"{METRICS}/nodes"):
            return [{"metadata": {"name": n}, "usage": {"cpu": c, "memory": "1Gi"}} for n, c in readings.items()]
        if path.startswith(f"{METRICS}/pods"):
            usage = [{"name": c, "usage": {"cpu": "1500000001n", "memory": "1Mi"}} for c in ("main", "side")]
            return [{"metadata": {"name": "p", "namespace": "default"}, "containers": usage}]
        return None

    return answer


def test_what_is_in_use_is_read_where_the_metrics_api_is_served_and_a_setting_needs_it(plane, token):
    """Without the setting nobody asks, without the API nothing is known; with both it is known since when it is hot."""
    plane.install_tenure(MEASURING)
    client = plane.client()
    for name in ("cool", "hot"):
        plane.add_node(name, {"cpu": "4", "memory": "8Gi"})
    client.create(f"{TENURE}/queues", queue("team"))
    informers = InformerCache(Client(find_access(str(plane.kubeconfig_for(token, "usage")))), Options())
    observer, now = Observer(informers), NOW
    informers.usage._wall = lambda: now
    informers.start()
    try:
        wait_until(lambda: informers.synced, "nothing is listed")
        assert all(n.usage is None for n in observer.observe(now).cluster.nodes)
        assert not informers.usage._reads._wanted.is_set()
        pool = {"scheduler": {"rescheduler": {"hotNodes": {"enabled": True, "hot": "50%", "for": "1m"}}}}
        body = {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": pool}
        client.create(f"{TENURE}/nodepools", body)
        wait_until(lambda: observer.observe(now) and informers.usage.trouble, "nobody asks")
        assert "cannot be read" in informers.usage.trouble
        readings = {"cool": "1200m", "hot": "3900000000n"}
        with metrics_server(plane.credentials, answers(readings)) as port:
            announce(client, port)
            wait_until(
                lambda: informers.usage.read() or not informers.usage.trouble, lambda: informers.usage.trouble, 60
            )
            version = informers.version()
            now += 60 * SECOND
            informers.usage.read()
            assert informers.version() > version, "a node that is hot for long is a reason to decide"
            used = {n.name: (n.usage["cpu"], n.usage_for) for n in observer.observe(now).cluster.nodes}
            assert used["cool"][0] == 1200
            assert used["hot"] == (3900, 60 * SECOND)
            assert informers.usage.pods["default", "p"].amounts == {"cpu": 3002, "memory": 2 << 20}
            readings["hot"] = "1"
            now += SECOND
            informers.usage.read()
            (cooled,) = (n for n in observer.observe(now).cluster.nodes if n.name == "hot")
            assert (cooled.usage["cpu"], cooled.usage_for) == (1000, 0)
        informers.usage.read()
        assert informers.usage.trouble
        now += FRESH + SECOND
        assert all(n.usage is None for n in observer.observe(now).cluster.nodes), "old readings say nothing"
    finally:
        informers.stop()


def test_an_annotation_says_how_much_of_its_gpus_a_pod_uses():
    """Whoever measures GPUs writes it on the pod; what cannot be read is told of, and is no figure."""
    idle = {"tenure.dev/gpu-usage": "20m", "tenure.dev/gpu-usage-since": "2026-11-20T09:30:00Z"}
    pods = [
        pod("idle", node="n", annotations=idle),
        pod("odd", node="n", annotations={"tenure.dev/gpu-usage": "little"}),
        pod("unknown", node="n"),
    ]
    seen = {w.name: w.tasks[0] for w in observed(node("n"), *pods).cluster.workloads}
    assert (seen["idle"].usage, seen["idle"].usage_for) == ({"nvidia.com/gpu": 20}, 1800 * SECOND)
    assert (seen["odd"].usage, seen["unknown"].usage) == (None, None)
