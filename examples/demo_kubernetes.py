"""Tenure on a real Kubernetes, live in the terminal: a minimum runtime, a requeue, a move, and a tenant who tries.

A control plane is started on loopback (API server, etcd, controllers; KWOK plays two nodes of 8 GPUs each), Tenure is
installed by the manifests that it prints, and runs with the rights of its service account and no others.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from demo_view import GPU, View
from tools.controlplane.build import NoGoError
from tools.controlplane.client import ApiError
from tools.controlplane.plane import ControlPlane
from tools.controlplane.process import wait_for

from tenure.cli.terminal.errors import run_program

TENURE = Path(sys.executable).with_name("tenure")
TEAM = "team"
Pods = list[dict[str, Any]]


def main() -> int:
    """Run the four scenes; each says whether what it announced has happened."""
    folder = Path(tempfile.mkdtemp(prefix="tenure-demo-"))
    print("Starting a control plane, and installing Tenure on it …", flush=True)
    try:
        with ControlPlane(folder) as plane, _installed(plane, folder) as scheduler:
            view = View(plane.client(), TEAM, goes_on=lambda: scheduler.poll() is None)
            scenes: tuple[Callable[[ControlPlane, View], bool], ...] = (minimum_runtime, requeue, made_room, tenant)
            for scene in scenes:
                if not scene(plane, view):
                    last = (folder / "tenure.log").read_text().splitlines()[-5:]
                    print("\nThat did not happen. The scheduler's last words:", *last, sep="\n  ", file=sys.stderr)
                    print(f"All logs are in {folder}", file=sys.stderr)
                    return 1
                _clear(plane)
    except NoGoError as missing:
        print(f"{missing}; install Go 1.26, then try again", file=sys.stderr)
        return 1
    print(f"\nThe logs are in {folder}")
    return 0


def minimum_runtime(plane: ControlPlane, view: View) -> bool:
    """Somebody's guarantee is lent out; it comes back, but not before what runs there has had its minimum runtime."""
    plane.apply(_queue("research", guaranteed={GPU: 8}), _queue("vision", guaranteed={GPU: 8}, reclaimMinRuntime="20s"))
    view.title(
        "1. Reclaim, with a minimum runtime",
        "research and vision are guaranteed 8 GPUs each. vision runs on all 16, since nobody else wants them.",
        "Whatever runs in vision runs for at least 20 s before others may take its place.",
    )
    plane.apply(_job("vision-a", "vision", pods=2, gpus=4), _job("vision-b", "vision", pods=2, gpus=4))
    if not view.watch(_runs("vision-a", "vision-b"), 30):
        return False
    begun = time.monotonic()
    view.linger(3)
    print("\n  Now research wants what it is guaranteed:\n")
    plane.apply(_job("training", "research", pods=2, gpus=4))
    if not view.watch(_runs("training"), 60):
        return False
    waited = time.monotonic() - begun
    view.linger(2)
    print(f"\n  vision had its 20 s: its place was taken {waited:.0f} s after it began, and not before.")
    return waited >= 18.0  # noqa: PLR2004  the start counts from the binding, a moment before it is seen to run


def requeue(plane: ControlPlane, view: View) -> bool:
    """Two equal workloads want the whole cluster; past its expected runtime one makes way for the other."""
    pool = {"scheduler": {"requeueDelay": "30s", "requeue": {"contenders": "any"}}}
    plane.apply(_object("NodePool", "default", pool), _queue("shared", expectedRuntime="10s"))
    view.title(
        "2. Requeue",
        "first and second each want all 16 GPUs, in a queue where 10 s of runtime are expected.",
        "No minimum runtime or priority helps second. But past its expected runtime first is requeued,",
        "because another job waits that then runs; if none waited, it would run on.",
    )
    plane.apply(_job("first", "shared", pods=4, gpus=4))
    if not view.watch(_runs("first"), 30):
        return False
    plane.apply(_job("second", "shared", pods=4, gpus=4))
    happened = view.watch(_runs("second"), 60)
    view.linger(3)
    plane.kubectl("delete", "nodepools.tenure.dev", "default")
    return happened


def made_room(plane: ControlPlane, view: View) -> bool:
    """Free GPUs that lie apart are of no use to a pod that needs a whole node; one small workload moves."""
    view.title(
        "3. Room made by a move",
        "Two notebooks of 4 GPUs each have come to lie on different nodes: 8 GPUs are free, but no node is.",
    )
    plane.apply(_queue("notebooks"))
    plane.apply(_job("notebook-1", "notebooks", gpus=4), _job("filler", "notebooks", gpus=4))
    if not view.watch(_runs("notebook-1", "filler"), 30):
        return False
    plane.apply(_job("notebook-2", "notebooks", gpus=4))
    if not view.watch(_runs("notebook-2"), 30):
        return False
    plane.kubectl("-n", TEAM, "delete", "job", "filler", "--wait=false")
    if not view.watch(lambda pods: not any("filler" in pod["metadata"]["name"] for pod in pods), 30):
        return False
    print("\n  Now somebody needs a whole node:\n")
    plane.apply(_job("whole-node", "notebooks", gpus=8))
    happened = view.watch(_runs("whole-node", "notebook-1", "notebook-2"), 90)
    view.linger(2)
    return happened


def tenant(plane: ControlPlane, view: View) -> bool:
    """Somebody with the rights of one namespace tries to keep what is another's; the owner gets it all the same."""
    view.title(
        "4. A tenant who tries",
        "vision runs on all 16 GPUs, of which research is guaranteed 16. Its owner may write pods, Jobs and PodGroups",
        "of one namespace, and tries to keep them: on what runs, and with new objects.",
    )
    plane.apply(_queue("research", guaranteed={GPU: 16}, namespaceSelector={"matchLabels": {"research": "true"}}))
    plane.apply(
        _queue("vision"), _job("vision-a", "vision", pods=2, gpus=4), _job("vision-b", "vision", pods=2, gpus=4)
    )
    if not view.watch(_runs("vision-a", "vision-b"), 30):
        return False
    plane.kubectl("-n", TEAM, "create", "serviceaccount", "tenant")
    plane.kubectl(
        "-n", TEAM, "create", "rolebinding", "tenant", "--clusterrole=edit", f"--serviceaccount={TEAM}:tenant"
    )
    client = plane.client(plane.token_of("tenant", TEAM))
    pods = f"/api/v1/namespaces/{TEAM}/pods"
    victim = f"{pods}/{client.get(pods)['items'][0]['metadata']['name']}"
    print()
    refused = 0
    for what, change in _FORGERIES.items():
        refused += _tries(what, lambda: client.patch(victim, {"metadata": change}))  # noqa: B023
    intruder = _job("intruder", "research", gpus=1)["spec"]["template"]
    intruder["metadata"]["name"] = "intruder"
    refused += _tries("a pod in research's queue", lambda: client.create(pods, intruder))
    deep = _job("deep", "vision", gpus=1)["spec"]["template"]
    deep["metadata"] |= {
        "name": "deep",
        "annotations": {"tenure.dev/min-member": "9" * 5000, "pod-group-name": "[" * 100_000},
    }
    _tries("numbers and text without end", lambda: client.create(pods, deep))
    view.linger(2)
    print("\n  Now research wants what it is guaranteed:\n")
    plane.kubectl("label", "namespace", TEAM, "research=true")
    plane.apply(_job("training", "research", pods=4, gpus=4))
    happened = view.watch(_runs("training"), 60)
    view.linger(2)
    plane.kubectl("-n", TEAM, "delete", "pods", "intruder", "deep", "--ignore-not-found", "--grace-period=0", "--force")
    if happened:
        print(
            f"\n  {refused} tries were refused as they were made, and the rest was not believed: research has its GPUs."
        )
    return happened and refused > len(_FORGERIES)


def _tries(what: str, act: Callable[[], object]) -> int:
    """Let the tenant try something, and show the answer; 1 where it was refused."""
    try:
        act()
    except ApiError as error:
        said = str(error).partition("denied request: ")[2] or str(error)
        print(f"  {what:32} refused: {said.strip()[:84]}")
        return 1
    print(f"  {what:32} taken, and not believed")
    return 0


_FORGERIES: dict[str, dict[str, Any]] = {
    "another queue": {"labels": {"tenure.dev/queue": "research"}},
    "not preemptible": {"annotations": {"tenure.dev/preemptible": "false"}},
    "a start that moves on": {"annotations": {"tenure.dev/last-start-timestamp": "2999-01-01T00:00:00Z"}},
    "an eviction notice of its own": {
        "annotations": {"tenure.dev/eviction-notice": '{"deadline": "2999-01-01T00:00:00Z"}'}
    },
    "devices that are not there": {"annotations": {"tenure.dev/devices": "17,99"}},
}


@contextmanager
def _installed(plane: ControlPlane, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Install Tenure, and run it as its service account until the end."""
    printed = subprocess.run([str(TENURE), "install"], check=True, capture_output=True, text=True).stdout
    plane.kubectl("apply", "-f", "-", given=printed)
    plane.kubectl("wait", "--for=condition=Established", "crd", "queues.tenure.dev", "nodepools.tenure.dev")
    plane.add_namespace(TEAM)
    for number in range(2):
        plane.add_node(f"node-{number}", {"cpu": "64", "memory": "512Gi", GPU: "8"})
    account = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "tenure")
    command = [str(TENURE), "scheduler", f"--kubeconfig={account}", "--listen=127.0.0.1:0", "--log-format=text"]
    with (folder / "tenure.log").open("w") as log:
        scheduler = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield scheduler
        finally:
            scheduler.terminate()
            scheduler.wait(30)


def _clear(plane: ControlPlane) -> None:
    """Take everything away that a scene has made."""
    plane.kubectl("-n", TEAM, "delete", "jobs", "--all", "--wait=true")
    client = plane.client()
    wait_for(lambda: not client.get(f"/api/v1/namespaces/{TEAM}/pods")["items"], "the pods to go")
    plane.kubectl("delete", "queues.tenure.dev", "--all")


def _runs(*workloads: str) -> Callable[[Pods], bool]:
    """Give a test of whether all pods of some workloads run."""

    def test(pods: Pods) -> bool:
        for name in workloads:
            own = [pod for pod in pods if pod["metadata"].get("labels", {}).get("job-name") == name]
            alive = [pod for pod in own if "deletionTimestamp" not in pod["metadata"]]
            if not alive or any(pod["status"]["phase"] != "Running" for pod in alive):
                return False
        return True

    return test


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "tenure.dev/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _queue(name: str, **spec: Any) -> dict[str, Any]:
    return _object("Queue", name, spec)


def _job(name: str, queue: str, *, pods: int = 1, gpus: int) -> dict[str, Any]:
    """Give a Job whose pods start together, and are recreated at once where they are evicted."""
    amounts = {"requests": {"cpu": "1", GPU: str(gpus)}, "limits": {GPU: str(gpus)}}
    container = {"name": "main", "image": "example/training", "resources": amounts}
    template = {
        "metadata": {"labels": {"tenure.dev/queue": queue}},
        "spec": {"schedulerName": "tenure", "restartPolicy": "Never", "containers": [container]},
    }
    evicted_is_no_failure = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    spec = {
        "parallelism": pods,
        "completions": pods,
        "podFailurePolicy": {"rules": evicted_is_no_failure},
        "template": template,
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": TEAM}, "spec": spec}


if __name__ == "__main__":
    run_program(main)
