"""The image of an API server's objects that is kept in memory: one watch for each kind that is there to be read."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.handlers import (
    NodeStore,
    ObjectStore,
    PodStore,
    of_capacity,
    of_claim,
    of_job,
    of_meta,
    of_spec,
    of_storage_class,
    of_volume,
)
from tenure.clusters.kubernetes.cache.pod_records import PodReader
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.client.watch import BROKEN_SECONDS, Reflector, WatchReports
from tenure.clusters.kubernetes.read import eviction_log
from tenure.clusters.kubernetes.read.usage import UsageCollector

_ALWAYS = {
    "namespaces": "/api/v1/namespaces",
    "priorityclasses": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "poddisruptionbudgets": "/apis/policy/v1/poddisruptionbudgets",
    "jobs": "/apis/batch/v1/jobs",
    "deployments": "/apis/apps/v1/deployments",
    "statefulsets": "/apis/apps/v1/statefulsets",
    "replicasets": "/apis/apps/v1/replicasets",
}
_OF_VOLUMES: dict[str, tuple[str, Any]] = {
    "claims": ("/api/v1/persistentvolumeclaims", api.ApiClaim),
    "volumes": ("/api/v1/persistentvolumes", api.ApiVolume),
    "csinodes": ("/apis/storage.k8s.io/v1/csinodes", api.ApiObject),
    "storageclasses": ("/apis/storage.k8s.io/v1/storageclasses", api.ApiStorageClass),
    "csidrivers": ("/apis/storage.k8s.io/v1/csidrivers", api.ApiObject),
    "storagecapacities": ("/apis/storage.k8s.io/v1/csistoragecapacities", api.ApiStorageCapacity),
    "attachments": ("/apis/storage.k8s.io/v1/volumeattachments", api.ApiObject),
}
_WHERE_INSTALLED = {
    "queues": ("/apis/tenure.dev/v1alpha1", "queues"),
    "podgroups": ("/apis/tenure.dev/v1alpha1", "podgroups"),
    "disruptionbudgets": ("/apis/tenure.dev/v1alpha1", "disruptionbudgets"),
    "nodepools": ("/apis/tenure.dev/v1alpha1", "nodepools"),
    "kai queues": ("/apis/scheduling.run.ai/v2", "queues"),
    "kai podgroups": ("/apis/scheduling.run.ai/v2alpha2", "podgroups"),
    "native podgroups": ("/apis/scheduling.k8s.io/v1beta1", "podgroups"),
    "native workloads": ("/apis/scheduling.k8s.io/v1beta1", "workloads"),
    "jobsets": ("/apis/jobset.x-k8s.io/v1alpha2", "jobsets"),
}
_KINDS = {
    "namespaces": "Namespace",
    "claims": "PersistentVolumeClaim",
    "volumes": "PersistentVolume",
    "csinodes": "CSINode",
    "storageclasses": "StorageClass",
    "csidrivers": "CSIDriver",
    "storagecapacities": "CSIStorageCapacity",
    "attachments": "VolumeAttachment",
    "nodes": "Node",
    "priorityclasses": "PriorityClass",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "jobs": "Job",
    "deployments": "Deployment",
    "statefulsets": "StatefulSet",
    "replicasets": "ReplicaSet",
    "queues": "Queue",
    "podgroups": "PodGroup",
    "disruptionbudgets": "DisruptionBudget",
    "nodepools": "NodePool",
    "kai queues": "KAI Queue",
    "kai podgroups": "KAI PodGroup",
    "native podgroups": "native PodGroup",
    "native workloads": "native Workload",
    "jobsets": "JobSet",
    "eviction log": "ConfigMap",
    "leases": "Lease",
    "yunikorn": "ConfigMap",
}
_OPTIONAL = frozenset({"namespaces", "jobs", "deployments", "statefulsets", "replicasets", "jobsets", "leases"})
"""What only adds to what pods say themselves."""

_NEEDED = frozenset({"pods", "nodes"})
_NOT_THERE = frozenset({403, 404})
_MOST_FINDINGS = 1000
_KEPT = frozenset({"Queue", "DisruptionBudget", "NodePool"})
"""Kinds that say of themselves whether they could be read."""


_DECIDES: dict[str, Callable[[Any], object]] = {
    "jobs": of_job, "claims": of_claim, "volumes": of_volume, "storageclasses": of_storage_class,
    "storagecapacities": of_capacity,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an informer cache: what is read beside the cluster-wide kinds.

    ``yunikorn``: namespace and name of YuniKorn's ConfigMap.

    ``only_reads``: nothing will be decided on for this cluster, so that what may not be read may be left out.
    ``schedulers``: names of schedulers whose pods count as Tenure's.
    """

    namespace: str = "tenure-system"
    pool: str = "default"
    yunikorn: tuple[str, str] | None = None
    only_reads: bool = False
    schedulers: frozenset[str] = frozenset()


@dataclass(slots=True)
class ObjectProblems:
    """The problems of objects that were reported since the last look; the same problem is reported once.

    ``count`` is how often any was reported, ever.
    """

    told: dict[tuple[str, str, str, str], None] = field(default_factory=dict)
    new: deque[tuple[str, api.Meta, str]] = field(default_factory=lambda: deque(maxlen=_MOST_FINDINGS))
    current: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    count: int = 0

    def begin(self, *kinds: str) -> None:
        """Objects of these kinds are read anew: what was wrong with them counts no more."""
        self.current = {key: lines for key, lines in self.current.items() if key[0] not in kinds}

    def tell(self, kind: str, meta: api.Meta, message: str) -> None:
        """Note that something is wrong with an object."""
        if kind in _KEPT:
            self.current.setdefault((kind, meta.namespace, meta.name), []).append(message)
        self.count += 1
        key = (kind, meta.namespace, meta.name, message)
        if key not in self.told:
            if len(self.told) > _MOST_FINDINGS:
                self.told.clear()
            self.told[key] = None
            self.new.append((kind, meta, message))


class InformerCache:
    """The objects of an API server as its watches report them. ``changed`` is set whenever something may have changed.

    ``failed`` is told of what breaks a watch and should not.
    """

    def __init__(
        self,
        client: Client,
        options: Options,
        failed: Callable[[str, BaseException], None] = lambda _path, _error: None,
    ) -> None:
        self.client = client
        self.failed = failed
        self.options = options
        self.findings = ObjectProblems()
        self.changed = threading.Event()
        self.pods = PodStore(PodReader(options.namespace, options.schedulers))
        self.nodes = NodeStore(lambda meta, message: self.findings.tell("Node", meta, message))
        self.objects: dict[str, ObjectStore] = {}
        self.reflectors: dict[str, Reflector[Any]] = {}
        self.missing: dict[str, str] = {}
        self.usage = UsageCollector(client, self.nodes.nodes, self.changed.set)
        self._discovered = -1e9

    def start(self) -> None:
        """Begin to watch."""
        self._watch("pods", "/api/v1/pods", api.ApiPod, self.pods)
        self._watch("nodes", "/api/v1/nodes", api.ApiNode, self.nodes)
        for name, path in _ALWAYS.items():
            self._watch(name, path, api.Job if name == "jobs" else api.ApiObject, self._objects(name))
        for name, (path, kind) in _OF_VOLUMES.items():
            self._watch(name, path, kind, self._objects(name))
        logs = f"/api/v1/namespaces/{self.options.namespace}/configmaps"
        self._watch("eviction log", logs, api.ApiObject, self._objects("eviction log"),
                    labels=f"{eviction_log.LABEL}={self.options.pool}")  # fmt: skip
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{self.options.namespace}/leases"
        self._watch("leases", leases, api.ApiObject, self._objects("leases"))
        if self.options.yunikorn is not None:
            namespace, name = self.options.yunikorn
            self._watch("yunikorn", f"/api/v1/namespaces/{namespace}/configmaps", api.ApiObject,
                        self._objects("yunikorn"), fields=f"metadata.name={name}")  # fmt: skip
        self.usage.start()
        self.discover()

    def discover(self) -> None:
        """Begin to watch kinds that were installed since this was last looked at."""
        self._discovered = time.monotonic()
        served: dict[str, set[str]] = {}
        for name, (group, resource) in _WHERE_INSTALLED.items():
            if name in self.reflectors:
                continue
            if group not in served:
                served[group] = self._served(group)
            if resource in served[group]:
                self._watch(name, f"{group}/{resource}", api.ApiObject, self._objects(name))

    def _served(self, group: str) -> set[str]:
        try:
            listed = msgspec.json.decode(self.client.get(group))
        except ApiError as error:
            if error.status in _NOT_THERE:
                return set()
            raise
        return {entry["name"] for entry in listed.get("resources", ())}

    def discover_at_times(self, every: float = 60.0) -> None:
        """Look for kinds that were installed, unless that was done a short while ago."""
        if time.monotonic() - self._discovered >= every:
            try:
                self.discover()
            except ApiError:
                self._discovered = time.monotonic()

    def stop(self) -> None:
        """End all watches."""
        self.usage.stop()
        for reflector in self.reflectors.values():
            reflector.stop()

    def wait_synced(self, seconds: float) -> bool:
        """Wait until everything was listed once; False if that takes longer than so many seconds."""
        until = time.monotonic() + seconds
        return all(r.synced.wait(max(0.0, until - time.monotonic())) for r in list(self.reflectors.values()))

    @property
    def synced(self) -> bool:
        """Whether everything was listed once."""
        return bool(self.reflectors) and all(r.synced.is_set() for r in list(self.reflectors.values()))

    @property
    def broken(self) -> list[str]:
        """Say which watches have not worked for too long, and why."""
        found = sorted(self.reflectors.items())
        return [f"{name}: {r.error}" for name, r in found if r.broken_for >= BROKEN_SECONDS]

    @property
    def troubles(self) -> list[str]:
        """Say which watches do not work at the moment, and why."""
        return [f"{name}: {r.error}" for name, r in sorted(self.reflectors.items()) if r.error]

    def version(self) -> int:
        """Give a number that grows with each change of anything."""
        own = self.pods.version + self.nodes.version + self.usage.version
        return own + sum(o.version for o in self.objects.values())

    def urgent(self) -> int:
        """Give a number that grows with each change that may call for a decision at once."""
        return self.version() - self.pods.version + self.pods.urgent

    def wrote(self, name: str, answer: bytes, *, is_new: bool = False) -> None:
        """Take what the API server answered to a write: the next cycle knows of it, whenever the watch shows it.

        Else a queue would be armed once more, or evictions on record would not yet count for budgets and cooldowns.
        """
        known = self.objects.get(name)
        if known is not None:
            kind = _OF_VOLUMES[name][1] if name in _OF_VOLUMES else api.ApiObject
            known.written(msgspec.json.decode(answer, type=kind), is_new=is_new)

    def _objects(self, name: str) -> ObjectStore:
        decides = _DECIDES.get(name, of_meta if name in _OPTIONAL else of_spec)
        return self.objects.setdefault(name, ObjectStore(decides))

    def _watch(self, name: str, path: str, kind: Any, sink: Any, *, labels: str = "", fields: str = "") -> None:
        query: dict[str, str | int] = {}
        if labels:
            query["labelSelector"] = labels
        if fields:
            query["fieldSelector"] = fields
        optional = name in _OPTIONAL or self.options.only_reads
        reflector: Reflector[Any] = Reflector(
            self.client, path, kind, sink, self.changed.set, query=query, optional=optional and name not in _NEEDED,
            reports=WatchReports(lambda meta, why: self.findings.tell(_KINDS.get(name, "Pod"), meta, why), self.failed),
        )  # fmt: skip
        self.reflectors[name] = reflector
        reflector.start()
