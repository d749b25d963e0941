"""What pods use of their GPUs, as a real Prometheus says that scrapes an exporter."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.history.postgres import free_port
from tests.kubernetes.pods import NOW, Nowhere, node, pod, thing
from tests.kubernetes.stage import wait_until

from tenure.clusters.kubernetes.cache.informers import InformerCache, Options
from tenure.clusters.kubernetes.read.gpu_usage import GpuUsageCollector, usage_query
from tenure.clusters.kubernetes.read.observe import Observer

GPU = "nvidia.com/gpu"
SECOND = 1_000_000


@contextmanager
def served(answer):
    """Serve text on loopback, as an exporter does. Gives the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = answer(self.path).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def prometheus(folder, target):
    """Run a Prometheus that scrapes a target every second. Gives its address."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("no Prometheus here")
    port, file = free_port(), folder / "prometheus.yml"
    jobs = [{"job_name": "dcgm", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}]
    file.write_text(json.dumps({"scrape_configs": jobs}))
    options = [
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("w") as log:
        running = subprocess.Popen([program, *options], stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait(10)


class Clock:
    @staticmethod
    def now():
        return NOW


class Client:
    clock = Clock


METRICS = ("DCGM_FI_DEV_GPU_UTIL", "gpu_gfx_activity", "amd_gpu_gfx_activity")
"""What the exporters of NVIDIA and AMD call it, the latter also where an operator puts its name before it."""


def exported(metric, percents):
    """Write readings as an exporter does; a pod may have several devices."""
    lines = [f'{metric}{{gpu="{number}",{labels}}} {percent}' for number, (labels, percent) in enumerate(percents)]
    return "\n".join([f"# TYPE {metric} gauge", *lines, ""])


def of(name, prefix=""):
    return f'{prefix}namespace="default",{prefix}pod="{name}"'


@pytest.mark.parametrize("metric", METRICS)
def test_the_most_that_a_pod_used_is_asked_of_prometheus(tmp_path, metric):
    """Devices of a pod add up; who was busy a moment ago is not idle; who was measured for too short is not known."""
    readings = [(of("two"), 30), (of("two"), 5), (of("idle", "exported_"), 1), (of("busy"), 90)]
    with served(lambda _: exported(metric, readings)) as target, prometheus(tmp_path, target) as server:
        gpus = GpuUsageCollector(Client(), server, lambda: None)
        gpus.want(5 * SECOND)

        def known():
            gpus.read()
            return set(gpus.pods) == {("default", name) for name in ("two", "idle", "busy")}

        wait_until(known, lambda: gpus.trouble or str(gpus.pods))
        assert {name: r.milli for (_, name), r in gpus.pods.items()} == {"two": 350, "idle": 10, "busy": 900}
        readings[3] = (of("busy"), 0)
        readings.append((of("new"), 50))
        wait_until(lambda: now_says(server, metric, of("busy"), 0), "it is not scraped")
        gpus.read()
        assert gpus.pods["default", "busy"].milli == 900
        assert ("default", "new") not in gpus.pods


def now_says(server, metric, labels, percent):
    """Whether Prometheus knows that a pod uses so much now."""
    query = urllib.request.quote(f"{metric}{{{labels}}}")
    with urllib.request.urlopen(f"{server}/api/v1/query?query={query}", timeout=10) as answer:
        found = json.load(answer)["data"]["result"]
    return [float(s["value"][1]) for s in found] == [percent]


def test_what_is_not_measured_for_as_long_is_not_called_idle():
    """A pod that has just started is idle for no longer than it is there; its own word makes it idler alone."""
    informers = InformerCache(Nowhere(), Options(prometheus="http://nowhere"))
    pool = {"scheduler": {"nominators": {"idle": {"enabled": True, "for": "1h"}}}}
    informers._objects("nodepools").put(thing("default", spec=pool))
    informers.nodes.put(node("n", **{GPU: "4"}))
    placed = {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-20T09:50:00Z"}]}
    words = {
        name: {"tenure.dev/gpu-usage": amount, "tenure.dev/gpu-usage-since": f"2026-11-20T09:{since}Z"}
        for name, amount, since in (("busy", "2", "00:00"), ("idler", "10m", "00:00"), ("shorter", "0", "59:59"))
    }
    for name, said in (("asked", {}), ("unknown", {}), *words.items()):
        informers.pods.put(pod(name, node="n", annotations=said, status=placed))
    observer = Observer(informers)
    observer.observe(NOW)
    gpus = informers.gpu_usage
    assert gpus._window == 3600 * SECOND
    answer = {"status": "success", "data": {"result": [
        {"metric": {"namespace": "default", "pod": name}, "value": [1.0, "1.5"]} for name in ("asked", *words)
    ]}}  # fmt: skip
    gpus._client = Client()
    with served(lambda _: json.dumps(answer)) as target:
        gpus.prometheus.server = f"http://{target}"
        gpus.read()
    tasks = {w.name: w.tasks[0] for w in observer.observe(NOW).cluster.workloads}
    assert (tasks["asked"].usage, tasks["asked"].usage_for) == ({GPU: 15}, 600 * SECOND)
    for name in ("busy", "shorter"):
        assert (tasks[name].usage, tasks[name].usage_for) == ({GPU: 15}, 600 * SECOND), name
    assert (tasks["idler"].usage, tasks["idler"].usage_for) == ({GPU: 10}, 3600 * SECOND)
    assert tasks["unknown"].usage is None
    assert observer.observe(NOW + 200 * SECOND).cluster.workloads[0].tasks[0].usage is None


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ('{"status": "error", "error": "parse error"}', "parse error"),
        ("<html>", "cannot be read"),
        ('{"status": "success", "data": {"result": [{"metric": {}, "value": [1, "NaN"]}]}}', ""),
        ('{"status": "success", "data": {"result": [{"metric": {"pod": "p"}, "value": [1, "-3"]}]}}', ""),
    ],
)
def test_an_answer_that_cannot_be_read_leaves_nothing_known(answer, says):
    gpus = GpuUsageCollector(Client(), "", lambda: None)
    gpus.want(60 * SECOND)
    with served(lambda _: answer) as target:
        gpus.prometheus.server = f"http://{target}"
        gpus.read()
    assert says in gpus.trouble
    assert bool(gpus.trouble) == bool(says)
    assert gpus.pods == {}


def test_a_server_that_is_not_there_is_told_of():
    gpus = GpuUsageCollector(Client(), f"http://127.0.0.1:{free_port()}", lambda: None)
    gpus.want(60 * SECOND)
    gpus.read()
    assert "cannot be read" in gpus.trouble


def test_the_question_looks_back_as_far_as_the_nominator():
    assert "[3600s:60s]" in usage_query(3600 * SECOND)
    assert ">= 48" in usage_query(3600 * SECOND)
