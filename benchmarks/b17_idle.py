"""B17: what the scheduler takes of the processor while nothing changes on a real control plane.

Gangs of ten run in ten queues, a tenth of them waits, and nobody does anything for a minute. Wanted: at most 2% of one
core. Needs what ``make controlplane`` builds.

    python benchmarks/b17_idle.py [--pods 1000] [--seconds 60] [--settle 20] [--threads]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.controlplane.plane import ControlPlane, Options
from tools.controlplane.process import wait_for

from common import print_table
from results import Results

GPU = "nvidia.com/gpu"
PODS = "/api/v1/namespaces/default/pods"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
GANG, QUEUES = 10, 10
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--settle", type=float, default=20.0, help="seconds after the last binding that do not count")
    parser.add_argument("--threads", action="store_true", help="also print the seconds of each thread")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="b17-") as folder, ControlPlane(Path(folder), Options()) as plane:
        plane.install_tenure()
        fill(plane, given.pods)
        process = start(plane)
        try:
            client = plane.client()
            wanted = f"{PODS}?fieldSelector=spec.nodeName%3D"
            waiting = given.pods - bound(given.pods)
            wait_for(lambda: len(client.get(wanted)["items"]) == waiting, "the pods to be bound", 300)
            time.sleep(given.settle)
            before, cycles = seconds_of(process.pid), cycles_of(plane)
            began = time.monotonic()
            time.sleep(given.seconds)
            lasted = time.monotonic() - began
            after = seconds_of(process.pid)
            share = (sum(after.values()) - sum(before.values())) / lasted
            print_table("an unchanged cluster", ["pods", "cycles", "% of a core"],
                        [[f"{given.pods:,}", f"{cycles_of(plane) - cycles:.0f}", f"{share:.2%}"]])  # fmt: skip
            results = Results("B17")
            results.add(f"{given.pods:,} pods, nothing happens", 100 * share, "% of a core", at_most=2)
            results.write()
            if given.threads:
                names = threads_of(process.pid)
                for number in sorted(after, key=lambda n: before.get(n, 0.0) - after[n])[:8]:
                    print(f"{after[number] - before.get(number, 0.0):6.2f} s  {names.get(number, '?')} {number}")
        finally:
            process.terminate()
            process.wait(30)
    return 0


def bound(pods: int) -> int:
    """Give how many of the pods there is room for."""
    return pods // GANG * 9 // 10 * GANG


def fill(plane: ControlPlane, pods: int) -> None:
    """Create nodes for nine tenths of the pods, queues, and gangs."""
    for number in range(-(-bound(pods) // 8)):
        plane.add_node(f"node-{number}", {"cpu": "64", "memory": "512Gi", GPU: "8"})
    client = plane.client()
    for number in range(QUEUES):
        body = {"apiVersion": "tenure.dev/v1alpha1", "kind": "Queue", "metadata": {"name": f"queue-{number}"}}
        client.create("/apis/tenure.dev/v1alpha1/queues", {**body, "spec": {"guaranteed": {GPU: pods // QUEUES}}})
    for number in range(pods // GANG):
        client.create(SETS, gang(f"gang-{number}", f"queue-{number % QUEUES}"))
    wait_for(lambda: len(client.get(PODS)["items"]) == pods, "the pods to be there", 300)


def gang(name: str, queue: str) -> dict[str, Any]:
    """Give a gang of pods with a GPU each."""
    container = {"name": "main", "image": "none", "resources": {"limits": {GPU: "1"}, "requests": {"cpu": "1"}}}
    labels = {"app": name, "tenure.dev/queue": queue}
    template = {
        "metadata": {"labels": labels, "annotations": {"tenure.dev/min-member": str(GANG)}},
        "spec": {"schedulerName": "tenure", "containers": [container]},
    }
    spec = {"replicas": GANG, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def start(plane: ControlPlane) -> subprocess.Popen[bytes]:
    """Start the scheduler as it is installed."""
    account = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "tenure")
    command = [sys.executable, "-c", "from tenure.cli.main import main; main()", "scheduler"]
    with (plane.folder / "tenure.log").open("ab") as log:
        return subprocess.Popen([*command, "--listen", "127.0.0.1:0", "--kubeconfig", str(account)], stderr=log)


def cycles_of(plane: ControlPlane) -> float:
    """Give how many cycles the scheduler has made."""
    lines = [json.loads(line) for line in (plane.folder / "tenure.log").read_text().splitlines()]
    port = next(line["port"] for line in lines if "port" in line)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    return float(next(line for line in text.splitlines() if line.startswith("tenure_cycle_seconds_count")).split()[1])


def seconds_of(pid: int) -> dict[int, float]:
    """Give the seconds of the processor of each thread."""
    found = {}
    for folder in Path(f"/proc/{pid}/task").iterdir():
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        found[int(folder.name)] = (int(fields[11]) + int(fields[12])) / _TICKS
    return found


def threads_of(pid: int) -> dict[int, str]:
    """Give the names of the threads."""
    return {int(f.name): (f / "comm").read_text().strip() for f in Path(f"/proc/{pid}/task").iterdir()}


if __name__ == "__main__":
    sys.exit(main())
