"""B24, the processor: what the loop costs for each pod that arrives on a cluster that is in use, without a server.

So many pods of another scheduler run on 1,000 nodes, each a workload of its own. With each cycle others arrive, are
bound, get their record, run, and are removed; watches say so as an API server does, which answers every write at once.
What is measured is processor time of the loop's thread, and of what stores do with the events of watches, for each pod.

    python benchmarks/b24_cycle.py [--running 5000 20000] [--arrivals 1.5] [--cycles 400]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from b16_observe import NODES, node
from common import print_table
from results import Results
from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.informers import Options
from tenure.clusters.kubernetes.client.access import Access
from tenure.clusters.kubernetes.client.requests import JSON, Client
from tenure.clusters.kubernetes.cluster import KubernetesCluster
from tenure.clusters.kubernetes.seals import Seal, condition_of
from tenure.live.loop import Loop
from tenure.live.metrics import LiveMetrics
from tenure.model.documents.collector import collector_seldom

BEGIN = 1_795_200_000_000_000
STEP = 15_000
WARM = 50
STAMP = "2026-11-20T00:00:00Z"
BOUND, READY = ({"type": name, "status": "True", "lastTransitionTime": STAMP} for name in ("PodScheduled", "Ready"))
LATER = {"bound": 1, "recorded": 2, "runs": 6, "gone": 60}
"""So many cycles after its binding was begun a pod is shown to be so."""


class AnsweredClient(Client):
    """A client whose writes are accepted at once."""

    def __init__(self) -> None:
        super().__init__(Access("http://127.0.0.1:9"))

    def request(self, method: str, path: str, body: Any = None, kind: str = JSON, accept: str = "") -> bytes:  # noqa: ARG002
        """Accept."""
        return b'{"metadata":{"resourceVersion":"1"}}'

    def get(self, path: str, **query: str | int) -> bytes:  # noqa: ARG002
        """List nothing."""
        return b'{"resources":[],"items":[]}'


class WatchedCluster:
    """A cluster without a server, and the processor time of its stores."""

    def __init__(self, running: int) -> None:
        self.cluster = KubernetesCluster(AnsweredClient(), Options())
        self.seconds = 0.0
        self._version = 1
        informers = self.cluster.informers
        for number in range(NODES):
            informers.nodes.put(msgspec.json.decode(msgspec.json.encode(node(number)), type=api.ApiNode))
        for number in range(running):
            self.show(f"runs-{number}", "default-scheduler", f"node-{number % NODES}", BOUND, READY)

    def show(self, name: str, scheduler: str, place: str = "", *conditions: dict[str, Any]) -> None:
        """Let the watch of pods show one."""
        self._version += 1
        requests = {"requests": {"cpu": "100m", "memory": "64Mi"}}
        spec = {"schedulerName": scheduler, "containers": [{"name": "main", "resources": requests}], "priority": 0}
        meta = {
            "name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(self._version),
            "creationTimestamp": STAMP,
        }  # fmt: skip
        status = {"phase": "Running" if READY in conditions else "Pending", "conditions": list(conditions)}
        raw = msgspec.json.encode({"metadata": meta, "spec": {**spec, "nodeName": place}, "status": status})
        began = time.thread_time()
        self.cluster.informers.pods.put(msgspec.json.decode(raw, type=api.ApiPod))
        self.seconds += time.thread_time() - began

    def remove(self, name: str) -> None:
        """Let the watch of pods show that one is gone."""
        began = time.thread_time()
        self.cluster.informers.pods.drop(("default", name))
        self.seconds += time.thread_time() - began


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--running", type=int, nargs="+", default=[5_000, 20_000])
    parser.add_argument("--arrivals", type=float, default=1.5)
    parser.add_argument("--cycles", type=int, default=400)
    given = parser.parse_args()
    results = Results("B24")
    rows = [measured(count, given.arrivals, given.cycles, results) for count in given.running]
    results.write()
    title = f"{given.arrivals} arrivals with each cycle, ms of the processor"
    print_table(title, ["running", "loop, each pod", "stores, each pod", "cycle, median", "cycle, p99"], rows)


def measured(running: int, arrivals: float, cycles: int, results: Results) -> list[str]:
    """Let pods arrive; gives a row."""
    watched, metrics, now = WatchedCluster(running), LiveMetrics(), [BEGIN]
    loop = Loop(watched.cluster, lambda: 1, told=metrics.count, wall=lambda: now[0])
    loop.confirmation.done = True
    took: list[float] = []
    due: dict[int, list[Callable[[], None]]] = defaultdict(list)
    record = condition_of(Seal(queue="default", first=True), BEGIN)
    number, left, before = 0, 0.0, 0.0
    with collector_seldom():
        for cycle in range(-WARM, cycles):
            for show in due.pop(cycle, ()):
                show()
            left += arrivals
            while left >= 1:
                number, left = number + 1, left - 1
                watched.show(f"new-{number}", "tenure")
            now[0] += STEP
            before = watched.seconds if cycle == 0 else before
            began = time.thread_time()
            done = loop.cycle()
            took += [time.thread_time() - began] if cycle >= 0 else []
            for step in done.plan.steps:
                show = partial(watched.show, step.task, "tenure", step.node)
                due[cycle + LATER["bound"]].append(partial(show, BOUND))
                due[cycle + LATER["recorded"]].append(partial(show, BOUND, record))
                due[cycle + LATER["runs"]].append(partial(show, BOUND, READY, record))
                due[cycle + LATER["gone"]].append(partial(watched.remove, step.task))
    watched.cluster.actor.close()
    pods = arrivals * cycles
    each = (1_000 * seconds / pods for seconds in (sum(took), watched.seconds - before))
    middle, last = statistics.median(took), sorted(took)[int(0.99 * len(took))]
    case = f"{running:,} pods run, {arrivals:g} arrivals with each cycle, no server: a cycle, median"
    results.add(case, 1_000 * middle, "ms")
    return [f"{running:,}", *(f"{ms:.2f}" for ms in each), f"{1_000 * middle:.2f}", f"{1_000 * last:.2f}"]


if __name__ == "__main__":
    main()
