"""B16: what it takes to observe a live cluster: pods as an API server sends them, to a cluster that is decided about.

No server runs: pages of 1,000 pods, with all that real pods have, are decoded, kept and made into workloads of ten.
Wanted: 10,000 pods in at most a second of the processor, and at most 500 MiB in all at 50,000. Anchor: decoding the
same bytes into plain values. In the last row a third of the pods mounts a claim that is bound to a volume of its own,
and each tenth has a claim on a device, which is given; the memory wanted is the same.

    python benchmarks/b16_observe.py [--pods 10000 50000]
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from typing import Any, cast

import msgspec

from common import peak_memory, print_table
from results import Results, rounded
from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.informers import InformerCache, Options
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.client.watch import Reflector
from tenure.clusters.kubernetes.read.observe import Observer
from tenure.model.documents.collector import collector_paused

NODES = 1_000
PAGE = 1_000
NOW = 1_795_200_000_000_000
CREATED = "2026-11-20T10:00:00Z"


class PodPage(msgspec.Struct):
    """A page of a list of pods."""

    items: list[api.ApiPod]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, nargs="+", default=[10_000, 50_000])
    asked, results = parser.parse_args(), Results("B16")
    rows = [measured(count, results) for count in asked.pods]
    rows.append(measured(asked.pods[-1], results, has_claims=True))
    results.write()
    print_table(
        "observing pods; the last with claims on volumes and on devices",
        ["pods", "listed s", "made s", "again s", "a Job changes s", "plain values s", "MiB at most"],
        rows,
    )


def measured(count: int, results: Results, *, has_claims: bool = False) -> list[str]:
    """Observe so many pods, twice, and then what changes with one Job each time."""
    informers = InformerCache(cast("Client", None), Options())  # nothing is asked of a server
    for number in range(NODES):
        informers.nodes.put(msgspec.json.decode(json.dumps(node(number)), type=api.ApiNode))
    watch = Reflector(cast("Client", None), "/api/v1/pods", api.ApiPod, informers.pods, lambda: None)
    listed = plain = 0.0
    for first in range(0, count, PAGE):
        numbers = range(first, min(count, first + PAGE))
        items = [pod(number) for number in numbers]
        if has_claims:
            list_claims(informers, list(map(with_claims, items, numbers)))
        page = msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": items})
        del items
        began = time.process_time()
        with collector_paused():
            for raw in watch._page(page).items:  # noqa: SLF001  as it does with what a server sends
                watch._put(raw)  # noqa: SLF001
        listed += time.process_time() - began
        began = time.process_time()
        json.loads(page)
        plain += time.process_time() - began
    gc.collect()
    observer = Observer(informers)
    times = []
    for _ in range(2):
        began = time.process_time()
        observed = observer.observe(NOW)
        times.append(time.process_time() - began)
    tasks = [task for workload in observed.cluster.workloads for task in workload.tasks]
    assert len(tasks) == count
    if has_claims:
        assert sum(bool(task.spec.mounts) for task in tasks) == -(-count // 3)
        assert sum(any(use.allocation for use in task.spec.device_uses) for task in tasks) == -(-count // 10)
    changes = []
    for number in range(11):
        informers._objects("jobs").put(job(number))  # noqa: SLF001  what a watch would bring
        began = time.process_time()
        observer.observe(NOW + 1 + number)
        changes.append(time.process_time() - began)
    most = peak_memory()
    wanted = 1 if count == 10_000 and not has_claims else None
    pods = f"{count:,} pods with claims" if has_claims else f"{count:,} pods"
    results.add(f"{pods}: listed and made into workloads", listed + times[0], "s", anchor=rounded(plain),
                against="decoding the bytes into plain values", at_most=wanted)  # fmt: skip
    results.add(f"{pods}: a Job changes", statistics.median(changes), "s")
    results.add(f"{pods}: memory at most", most, "MiB", at_most=500)
    return [f"{count:,}", f"{listed:.2f}", f"{times[0]:.2f}", f"{times[1]:.2f}",
            f"{statistics.median(changes):.4f}", f"{plain:.2f}", f"{most:.0f}"]  # fmt: skip


def with_claims(made: dict[str, Any], number: int) -> tuple[str, list[dict[str, Any]]]:
    """Have a pod mount a claim, or use a claim on a device; gives its name and what there is beside it."""
    beside: list[dict[str, Any]] = []
    if number % 3 == 0:
        made["spec"]["volumes"].append({"name": "data", "persistentVolumeClaim": {"claimName": f"data-{number}"}})
        beside += [volume_claim(number), volume(number)]
    if number % 10 == 0:
        made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": f"gpu-{number}"}]
        beside.append(device_claim(number, made["metadata"]))
    return made["metadata"]["name"], beside


def list_claims(informers: InformerCache, made: list[tuple[str, list[dict[str, Any]]]]) -> None:
    """Put the claims and volumes of some pods where their watches do."""
    kinds: dict[str, tuple[str, Any]] = {
        "PersistentVolumeClaim": ("claims", api.ApiClaim),
        "PersistentVolume": ("volumes", api.ApiVolume),
        "ResourceClaim": ("resourceclaims", api.ApiObject),
    }
    for _, beside in made:
        for item in beside:
            watch, kind = kinds[item["kind"]]
            informers._objects(watch).put(  # noqa: SLF001  what a watch would bring
                msgspec.json.decode(msgspec.json.encode(item), type=kind)
            )


def volume_claim(number: int) -> dict[str, Any]:
    """Give a claim that is bound, as an API server would."""
    spec = {"accessModes": ["ReadWriteOnce"], "volumeName": f"pvc-{number}", "storageClassName": "fast",
            "volumeMode": "Filesystem", "resources": {"requests": {"storage": "100Gi"}}}  # fmt: skip
    said = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes",
            "volume.kubernetes.io/storage-provisioner": "csi.example.com"}  # fmt: skip
    return {"kind": "PersistentVolumeClaim", "metadata": _meta(f"data-{number}", number, annotations=said),
            "spec": spec, "status": {"phase": "Bound", "capacity": {"storage": "100Gi"}}}  # fmt: skip


def volume(number: int) -> dict[str, Any]:
    """Give a volume of a zone, as an API server would."""
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [f"zone-{number % 8}"]}
    spec = {
        "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "100Gi"}, "storageClassName": "fast",
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": f"data-{number}",
                     "uid": f"00000000-0000-0000-0001-{number:012d}"},
        "csi": {"driver": "csi.example.com", "volumeHandle": f"vol-{number:017x}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
    }  # fmt: skip
    metadata = {**_meta(f"pvc-{number}", number), "namespace": ""}
    return {"kind": "PersistentVolume", "metadata": metadata, "spec": spec, "status": {"phase": "Bound"}}


def device_claim(number: int, of: dict[str, Any]) -> dict[str, Any]:
    """Give a claim on a device that is given to a pod, as an API server would."""
    exactly = {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1}
    node = f"node-{number % NODES}"
    given = {"request": "gpu", "driver": "gpu.example.com", "pool": node, "device": f"gpu-{number // NODES}"}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    status = {
        "allocation": {"devices": {"results": [given]}, "nodeSelector": {"nodeSelectorTerms": [term]}},
        "reservedFor": [{"resource": "pods", "name": of["name"], "uid": of["uid"]}],
    }
    return {"kind": "ResourceClaim", "metadata": _meta(f"gpu-{number}", number), "status": status,
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}  # fmt: skip


def _meta(name: str, number: int, **more: Any) -> dict[str, Any]:
    uid = f"00000000-0000-0000-0001-{number:012d}"
    return {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(number + 1),
            "creationTimestamp": CREATED, **more}  # fmt: skip


def node(number: int) -> dict[str, Any]:
    """Give a node as an API server would."""
    amounts = {"cpu": "640", "memory": "4000Gi", "pods": "500", "nvidia.com/gpu": "100"}
    return {
        "metadata": {"name": f"node-{number}", "labels": {"kubernetes.io/hostname": f"node-{number}"}},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def job(number: int) -> api.ApiObject:
    """Give one of the Jobs, as an API server would."""
    metadata = {"name": f"job-{number}", "namespace": "default", "uid": f"uid-{number}", "creationTimestamp": CREATED}
    body = {"metadata": metadata, "spec": {"parallelism": 10, "completions": 10}, "status": {"succeeded": 0}}
    return msgspec.json.decode(msgspec.json.encode(body), type=api.ApiObject)


def pod(number: int) -> dict[str, Any]:
    """Give a pod of an indexed Job of ten, as an API server would."""
    job, index = divmod(number, 10)
    volume = f"kube-api-access-{number:05x}"
    amounts = {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"}
    container = {
        "name": "main", "image": "registry/app:1", "command": ["python", "train.py"],
        "env": [{"name": f"NAME_{n}", "value": "value" * 4} for n in range(10)],
        "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": amounts},
        "volumeMounts": [{"name": volume, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
    }  # fmt: skip
    sources = [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]
    away = [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for what in ("not-ready", "unreachable")
    ]
    conditions = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{job}", "uid": f"uid-{job}", "controller": True}
    return {
        "metadata": {
            "name": f"job-{job}-{index}", "generateName": f"job-{job}-", "namespace": "default",
            "uid": f"00000000-0000-0000-0000-{number:012d}", "resourceVersion": str(1000 + number),
            "creationTimestamp": CREATED, "ownerReferences": [owner],
            "labels": {
                "batch.kubernetes.io/controller-uid": f"uid-{job}", "batch.kubernetes.io/job-name": f"job-{job}",
                "batch.kubernetes.io/job-completion-index": str(index),
            },
            "annotations": {"tenure.dev/last-start-timestamp": CREATED},
            "managedFields": [{"manager": "m", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {}}}}],
        },
        "spec": {
            "volumes": [{"name": volume, "projected": {"sources": sources}}], "containers": [container],
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 30, "nodeName": f"node-{number % NODES}",
            "schedulerName": "tenure", "tolerations": away, "priority": 0,
        },
        "status": {
            "phase": "Running", "startTime": CREATED, "podIP": "10.0.0.1",
            "conditions": [{"type": t, "status": "True", "lastTransitionTime": CREATED} for t in conditions],
            "containerStatuses": [{"name": "main", "ready": True, "state": {"running": {"startedAt": CREATED}}}],
        },
    }  # fmt: skip


if __name__ == "__main__":
    main()
