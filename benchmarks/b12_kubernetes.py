"""B12: 10,000 pods bound on 1,000 simulated nodes of a real control plane, beside kube-scheduler in the same run.

Everything but the nodes is real; client limits are off. The pods are there before the scheduler is started, so what is
measured is its own pace: from its first binding to its last. Anchor: kube-scheduler on the same API server, the same
nodes and the same pods. Wanted: not slower. Needs what ``make controlplane`` builds.

    python benchmarks/b12_kubernetes.py [--nodes 1000] [--pods 10000] [--rounds 1]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
from tools.controlplane.plane import ControlPlane, Options

from common import print_table
from results import Results
from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.client.requests import Client

PODS = "/api/v1/namespaces/default/pods"
LONGEST = 900.0


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    found: dict[str, list[Run]] = {"kube-scheduler": [], "tenure": []}
    with tempfile.TemporaryDirectory(prefix="b12-") as folder, ControlPlane(Path(folder), Options()) as plane:
        plane.install_tenure()
        bench = Bench(plane, given.nodes, given.pods)
        for _ in range(given.rounds):
            found["kube-scheduler"].append(bench.run("default-scheduler", bench.start_kube_scheduler))
            found["tenure"].append(bench.run("tenure", bench.start_tenure))
    rows = []
    for name, runs in found.items():
        seconds = statistics.median(r.seconds for r in runs)
        cpu = statistics.median(r.cpu for r in runs)
        rows.append(
            [name, f"{seconds:.1f}", f"{given.pods / seconds:.0f}", f"{cpu:.1f}", f"{max(r.rss for r in runs):.0f}"]
        )
    print_table(
        f"{given.pods:,} pods bound on {given.nodes:,} nodes", ["scheduler", "seconds", "pods/s", "CPU s", "MiB"], rows
    )
    ratio = statistics.median(r.seconds for r in found["tenure"]) / statistics.median(
        r.seconds for r in found["kube-scheduler"]
    )
    print(f"ratio {ratio:.2f} (at most 1.00 is wanted)")
    report(given, found)
    return 0


def report(given: argparse.Namespace, found: dict[str, list[Run]]) -> None:
    """Report seconds by the clock and of the scheduler's process, and its memory, beside kube-scheduler's."""
    results, case = Results("B12"), f"{given.pods:,} pods on {given.nodes:,} nodes"
    for name, unit, of in (
        ("first to last binding", "s by the clock", lambda r: r.seconds),
        ("the scheduler", "s", lambda r: r.cpu),
        ("memory at most", "MiB", lambda r: r.rss),
    ):
        ours, theirs = (statistics.median(map(of, found[who])) for who in ("tenure", "kube-scheduler"))
        goal = round(theirs, 1) if unit == "s by the clock" else None
        results.add(f"{case}: {name}", ours, unit, anchor=round(theirs, 1), against="kube-scheduler", at_most=goal)
    results.write()


class Run(msgspec.Struct):
    """What one run took: seconds, CPU seconds of the scheduler, MiB of its memory."""

    seconds: float
    cpu: float
    rss: float


class Bench:
    """The cluster, and a way to run a scheduler on it."""

    def __init__(self, plane: ControlPlane, nodes: int, pods: int) -> None:
        self.plane = plane
        self.pods = pods
        self.client = Client(find_access(str(plane.kubeconfig)), connections=16, timeout=600.0)
        amounts = {"cpu": "32", "memory": "256Gi", "pods": "110"}
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: plane_node(self.client, f"node-{n}", amounts), range(nodes)))

    def run(self, scheduler: str, start: Callable[[], subprocess.Popen[bytes]]) -> Run:
        """Create the pods, start a scheduler, wait until all are bound, and remove them."""
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: self.create(f"{scheduler}-{n}", scheduler), range(self.pods)))
        process = start()
        while self.bound_any() == 0:
            time.sleep(0.02)
        began = time.monotonic()
        while self.left():
            assert time.monotonic() - began < LONGEST, "not all pods were bound"
            time.sleep(0.25)
        seconds = time.monotonic() - began
        cpu, rss = usage(process.pid)
        process.terminate()
        process.wait(30)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: self.remove(f"{scheduler}-{n}"), range(self.pods)))
        while self.there():
            time.sleep(0.5)
        return Run(seconds, cpu, rss)

    def create(self, name: str, scheduler: str) -> None:
        """Create one pod."""
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
        spec = {"schedulerName": scheduler, "containers": [container]}
        self.client.create(PODS, {"metadata": {"name": name}, "spec": spec})

    def remove(self, name: str) -> None:
        """Remove one pod at once."""
        self.client.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})

    def bound_any(self) -> int:
        """Tell whether any pod is bound."""
        answer = self.client.get(PODS, fieldSelector="spec.nodeName!=", limit=1)
        return len(msgspec.json.decode(answer)["items"])

    def left(self) -> int:
        """Tell whether any pod is not."""
        return len(msgspec.json.decode(self.client.get(PODS, fieldSelector="spec.nodeName=", limit=1))["items"])

    def there(self) -> int:
        """Tell whether any pod is there."""
        return len(msgspec.json.decode(self.client.get(PODS, limit=1))["items"])

    def start_tenure(self) -> subprocess.Popen[bytes]:
        """Start Tenure, as it is installed."""
        command = [str(Path(sys.executable).parent / "tenure"), "scheduler", "--listen", "127.0.0.1:0"]
        command += ["--kubeconfig", str(self.plane.kubeconfig)]
        with (self.plane.folder / "tenure.log").open("ab") as log:
            return subprocess.Popen(command, stderr=log)

    def start_kube_scheduler(self) -> subprocess.Popen[bytes]:
        """Start kube-scheduler."""
        process = self.plane.scheduler
        process.start()
        assert process._process is not None  # noqa: SLF001  its own `stop` is not what is wanted
        return process._process  # noqa: SLF001


def plane_node(client: Client, name: str, amounts: dict[str, str]) -> None:
    """Create a node; KWOK makes it ready."""
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    client.create("/api/v1/nodes", {"metadata": meta, "status": {"allocatable": amounts, "capacity": amounts}})


def usage(pid: int) -> tuple[float, float]:
    """Give CPU seconds and the most memory (MiB) of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    peak = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return cpu, int(peak.split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())
