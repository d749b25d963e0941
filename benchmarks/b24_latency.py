"""B24: how long pods that arrive one by one wait for their binding on a cluster that is in use, beside kube-scheduler.

Pods run on 1,000 simulated nodes of a real control plane; others are created at a steady rate, come what may.
What is measured is from the request that creates a pod to the moment at which a watch shows it bound. Both schedulers
meet the same API server and the same nodes, and take turns. Wanted: median and p99 not above kube-scheduler's in
the same run by more than half. Needs what ``make controlplane`` builds.

    python benchmarks/b24_latency.py [--nodes 1000] [--running 5000] [--rate 20 100] [--seconds 20] [--terms 0]
        [--rounds 1]

``--terms N``: 500 of the pods that run have so many anti-affinity terms each, as a tenant's might.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
from tools.controlplane.plane import ControlPlane, Options

from b12_kubernetes import PODS, Bench, usage
from common import print_table
from results import Results, rounded
from tenure.clusters.kubernetes.client.requests import ApiError

HOSTILE = 500
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LONGEST = 180.0


class WatchedPods:
    """The moments at which pods were seen bound, by name. A watch that the server ends is taken up where it ended."""

    def __init__(self, bench: Bench) -> None:
        self.bound: dict[str, float] = {}
        self._client = bench.client
        self._stopped = False
        listed = msgspec.json.decode(self._client.get(PODS, limit=1))
        self._version = listed["metadata"]["resourceVersion"]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped:
            query: dict[str, str | int] = {"watch": "true", "resourceVersion": self._version}
            with suppress(ApiError):
                for line in self._client.stream(PODS, query, LONGEST):
                    self._take(msgspec.json.decode(line, type=_Event).object)
                    if self._stopped:
                        return

    def _take(self, pod: _Pod) -> None:
        self._version = pod.metadata.resource_version
        if pod.spec.node_name:
            self.bound.setdefault(pod.metadata.name, time.monotonic())

    def stop(self) -> None:
        """Look no more."""
        self._stopped = True


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Event(msgspec.Struct):
    object: _Pod


@dataclass
class Measured:
    """What one scheduler did at one rate, over all turns: waits and the median of each turn in seconds, CPU seconds."""

    waits: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    cpu: float = 0.0


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--running", type=int, default=5_000)
    parser.add_argument("--rate", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--terms", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=1, help="how often the two take turns")
    given = parser.parse_args()
    found: dict[tuple[int, str], Measured] = {}
    with tempfile.TemporaryDirectory(prefix="b24-") as folder, ControlPlane(Path(folder), Options()) as plane:
        plane.install_tenure()
        bench = Bench(plane, given.nodes, 0)
        fill(bench, given.nodes, given.running, given.terms)
        starts: dict[str, tuple[str, Callable[[], subprocess.Popen[bytes]]]] = {
            "kube-scheduler": ("default-scheduler", bench.start_kube_scheduler),
            "tenure": ("tenure", bench.start_tenure),
        }
        for turn in range(given.rounds):
            for name, (scheduler, start) in starts.items():
                process = start()
                warm_up(bench, scheduler, turn)
                for rate in given.rate:
                    before = usage(process.pid)[0]
                    waits = arrive(bench, scheduler, f"{turn}-{rate}", rate, given.seconds)
                    measured = found.setdefault((rate, name), Measured())
                    measured.waits += waits
                    measured.medians.append(statistics.median(waits))
                    measured.cpu += usage(process.pid)[0] - before
                process.terminate()
                process.wait(30)
    rows = [[name, rate, *figures(m.waits), " ".join(f"{x:.3f}" for x in m.medians), f"{m.cpu:.1f}"]
            for (rate, name), m in sorted(found.items())]  # fmt: skip
    report(given, found)
    title = f"created to bound, {given.running:,} pods running on {given.nodes:,} nodes, {given.terms} terms"
    print_table(title, ["scheduler", "pods/s", "median s", "p99 s", "most s", "median of each turn", "CPU s"], rows)
    return 0


def report(given: argparse.Namespace, found: dict[tuple[int, str], Measured]) -> None:
    """Give the results: what a pod waits, in the median and of a hundred but one, beside kube-scheduler's."""
    results = Results("B24")
    terms = f" with {given.terms} terms" if given.terms else ""
    for rate in given.rate:
        ours, theirs = (figures(found[rate, who].waits) for who in ("tenure", "kube-scheduler"))
        for name, mine, other in zip(("median", "p99"), map(float, ours), map(float, theirs), strict=False):
            case = f"{given.running:,} pods{terms} on {given.nodes:,} nodes, {rate} pods/s: created to bound, {name}"
            results.add(case, mine, "s by the clock", anchor=other, against="kube-scheduler",
                        at_most=rounded(1.5 * other), note=f"{given.rounds} turns of {given.seconds} s")  # fmt: skip
    results.write()


def figures(waits: list[float]) -> list[str]:
    """Give median, p99 and the longest."""
    ordered = sorted(waits)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return [f"{statistics.median(ordered):.3f}", f"{p99:.3f}", f"{ordered[-1]:.3f}"]


def fill(bench: Bench, nodes: int, running: int, terms: int) -> None:
    """Let pods run: they are bound as they are created."""

    def add(number: int) -> None:
        spec = pod_spec("default-scheduler")
        spec["nodeName"] = f"node-{number % nodes}"
        if number < HOSTILE and terms:
            spec["affinity"] = {"podAntiAffinity": {REQUIRED: [hostile_term(f"{number}-{n}") for n in range(terms)]}}
        bench.client.create(PODS, {"metadata": {"name": f"runs-{number}"}, "spec": spec})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(running)))


def hostile_term(value: str) -> dict[str, Any]:
    """Give an anti-affinity term that is like no other."""
    return {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"hostile": value}}}


def pod_spec(scheduler: str) -> dict[str, Any]:
    """Give the spec of a small pod."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {"schedulerName": scheduler, "containers": [container]}


def warm_up(bench: Bench, scheduler: str, turn: int) -> None:
    """Wait until the scheduler binds."""
    watched = WatchedPods(bench)
    name = f"first-{scheduler}-{turn}"
    bench.client.create(PODS, {"metadata": {"name": name}, "spec": pod_spec(scheduler)})
    until = time.monotonic() + LONGEST
    while name not in watched.bound:
        assert time.monotonic() < until, "the scheduler binds nothing"
        time.sleep(0.05)
    watched.stop()
    time.sleep(3.0)


def arrive(bench: Bench, scheduler: str, label: str, rate: int, seconds: int) -> list[float]:
    """Create pods at a steady rate; gives how many seconds each of them waited."""
    watched = WatchedPods(bench)
    created: dict[str, float] = {}

    def add(name: str) -> None:
        created[name] = time.monotonic()
        bench.client.create(PODS, {"metadata": {"name": name}, "spec": pod_spec(scheduler)})

    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        for number in range(rate * seconds):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            pool.submit(add, f"{scheduler}-{label}-{number}")
    until = time.monotonic() + LONGEST
    while len(watched.bound.keys() & created.keys()) < rate * seconds:
        assert time.monotonic() < until, "not all pods were bound"
        time.sleep(0.1)
    watched.stop()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(bench.remove, created))
    return [watched.bound[name] - at for name, at in created.items()]


if __name__ == "__main__":
    sys.exit(main())
