"""The image of an API server's objects that is kept in memory: one watch for each kind that is there to be read."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.cache.allocations import AssumedAllocations
from tenure.clusters.kubernetes.cache.claim_store import ClaimStore
from tenure.clusters.kubernetes.cache.given_up import GivenUpDevices
from tenure.clusters.kubernetes.cache.handlers import (
    NodeStore,
    ObjectStore,
    PodStore,
    of_capacity,
    of_device_claim,
    of_device_object,
    of_meta,
    of_queue,
    of_spec,
    of_storage_class,
    of_volume,
)
from tenure.clusters.kubernetes.cache.owner_store import OwnerStore
from tenure.clusters.kubernetes.cache.pod_records import PodReader
from tenure.clusters.kubernetes.client.discovery import ServedResources
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.client.watch import Reflector, WatchReports
from tenure.clusters.kubernetes.client.watch_health import BROKEN_SECONDS
from tenure.clusters.kubernetes.decoding import decode
from tenure.clusters.kubernetes.read import eviction_log, hyper_nodes, kueue, kueue_workloads, provisioning, volcano
from tenure.clusters.kubernetes.read.gpu_usage import GpuUsageCollector
from tenure.clusters.kubernetes.read.groups import KAI_TOPOLOGIES
from tenure.clusters.kubernetes.read.kinds import kind_of
from tenure.clusters.kubernetes.read.usage import UsageCollector
from tenure.model.manifests.workload_kind import POD, api_path, built_in_kinds

NODE_CLAIMS: Final = "nodeclaims"
"""The name of the watch of nodes that Karpenter has asked for."""

DEVICE_OBJECTS: Final = ("resourceclaims", "resourceslices", "deviceclasses", "devicetaintrules")
"""The names of the watches of claims on devices, and of what these are met with."""

WORKLOAD_KINDS: Final = "workloadkinds"
"""The name of the watch of kinds of owners."""

RESERVATIONS: Final = "gpu reservations"
"""The name of the watch of pods that hold shared GPUs."""

METADATA: Final = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1,application/json"
"""What is asked for where an object's metadata are all that is looked at: of a list, or of single objects."""

_GRANTED_SECONDS: Final = 3.0
"""Within so long an API server knows a right that was given just now."""

_RIGHTS: Final = "this takes the rights to list and watch that the ClusterRole tenure has"

_ALWAYS = {
    "namespaces": "/api/v1/namespaces",
    "priorityclasses": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "poddisruptionbudgets": "/apis/policy/v1/poddisruptionbudgets",
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
    "queues": (api.GROUP_PATHS, "queues"),
    "podgroups": (api.GROUP_PATHS, "podgroups"),
    "disruptionbudgets": (api.GROUP_PATHS, "disruptionbudgets"),
    "nodepools": (api.GROUP_PATHS, "nodepools"),
    WORKLOAD_KINDS: (api.GROUP_PATHS, WORKLOAD_KINDS),
    "kai queues": (("/apis/scheduling.run.ai/v2",), "queues"),
    "kai podgroups": (("/apis/scheduling.run.ai/v2alpha2",), "podgroups"),
    KAI_TOPOLOGIES: (("/apis/kai.scheduler/v1alpha1",), "topologies"),
    NODE_CLAIMS: (("/apis/karpenter.sh/v1",), NODE_CLAIMS),
    **{name: (("/apis/resource.k8s.io/v1",), name) for name in DEVICE_OBJECTS},
    "native podgroups": (("/apis/scheduling.k8s.io/v1beta1",), "podgroups"),
    "native workloads": (("/apis/scheduling.k8s.io/v1beta1",), "workloads"),
    volcano.WATCH: (volcano.PATHS, "queues"),
    hyper_nodes.WATCH: (hyper_nodes.PATHS, hyper_nodes.WATCH),
    kueue_workloads.WATCH: (kueue.PATHS, "workloads"),
    provisioning.WATCH: (provisioning.PATHS, "provisioningrequests"),
}
_KUEUE = {name: (kueue.PATHS, name) for name in (kueue.CLUSTER_QUEUES, kueue.COHORTS, kueue.LOCAL_QUEUES)}
"""Kueue's queues, where they are read: in the first of their versions that is served."""

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
    "queues": "Queue",
    "podgroups": "PodGroup",
    "disruptionbudgets": "DisruptionBudget",
    "nodepools": "NodePool",
    WORKLOAD_KINDS: "WorkloadKind",
    "kai queues": "KAI Queue",
    "kai podgroups": "KAI PodGroup",
    volcano.WATCH: "Volcano Queue",
    hyper_nodes.WATCH: "HyperNode",
    "native podgroups": "native PodGroup",
    "native workloads": "native Workload",
    "eviction log": "ConfigMap",
    "leases": "Lease",
    KAI_TOPOLOGIES: "Topology",
    NODE_CLAIMS: "NodeClaim",
    provisioning.WATCH: "ProvisioningRequest",
    "resourceclaims": "ResourceClaim",
    "resourceslices": "ResourceSlice",
    "deviceclasses": "DeviceClass",
    "devicetaintrules": "DeviceTaintRule",
    kueue.CLUSTER_QUEUES: "ClusterQueue",
    kueue.COHORTS: "Cohort",
    kueue.LOCAL_QUEUES: "LocalQueue",
    kueue_workloads.WATCH: "Kueue Workload",
    RESERVATIONS: "Pod",
    "yunikorn": "ConfigMap",
}
_OPTIONAL = frozenset(
    {
        "namespaces", "leases", KAI_TOPOLOGIES, NODE_CLAIMS, kueue_workloads.WATCH, provisioning.WATCH,
        hyper_nodes.WATCH, *DEVICE_OBJECTS,
    }
)  # fmt: skip
"""What only adds to what pods say themselves."""

_NEEDED = frozenset({"pods", "nodes"})
_MOST_FINDINGS = 1000
_KEPT = frozenset({"Queue", "DisruptionBudget", "NodePool", "WorkloadKind"})
"""Kinds that say of themselves whether they could be read."""


_DECIDES: dict[str, Callable[[Any], object]] = {
    "volumes": of_volume, "storageclasses": of_storage_class, "storagecapacities": of_capacity,
    KAI_TOPOLOGIES: of_spec, hyper_nodes.WATCH: of_spec, NODE_CLAIMS: lambda item: item.metadata.resource_version,
    "resourceclaims": of_device_claim, "resourceslices": of_device_object, "deviceclasses": of_device_object,
    "devicetaintrules": of_device_object,
    kueue_workloads.WATCH: kueue_workloads.of_kueue_workload, provisioning.WATCH: provisioning.awaited_until,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an informer cache: what is read beside the cluster-wide kinds.

    ``yunikorn``: namespace and name of YuniKorn's ConfigMap.

    ``only_reads``: nothing will be decided on for this cluster, so that what may not be read may be left out.
    ``schedulers``: names of schedulers whose pods count as Tenure's.
    ``holds_gpus``: GPUs of which parts are given out are held by pods; else the parts are only counted.
    ``pod_name``: the pod in which the scheduler runs, like which those are made; ``reservation_image``: another image.
    ``prometheus``: the address of a Prometheus that knows what pods use of their GPUs. ``kueue``: its queues are read.
    """

    namespace: str = "tenure-system"
    pool: str = "default"
    yunikorn: tuple[str, str] | None = None
    only_reads: bool = False
    schedulers: frozenset[str] = frozenset()
    holds_gpus: bool = False
    pod_name: str = ""
    reservation_image: str = ""
    prometheus: str = ""
    kueue: bool = False


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
        self.allocations = AssumedAllocations()
        self.given_up = GivenUpDevices()
        self.reflectors: dict[str, Reflector[Any]] = {}
        self.usage = UsageCollector(client, self.nodes.nodes, self.changed.set, options.prometheus)
        self.gpu_usage = GpuUsageCollector(client, options.prometheus, self.changed.set)
        self.kinds = built_in_kinds()
        self._kinds_version = 0
        self._discovered = -1e9
        self._groups: dict[str, str] = {}
        self.pods.know(self.kinds)

    def start(self) -> None:
        """Begin to watch. Where the API server cannot be asked what it serves, this may be called again.

        Raises
        ------
        OSError
            It cannot be asked; what every API server serves is watched as soon as it answers.
        """
        if not self.reflectors:
            self._start_always()
        self.discover()

    def _start_always(self) -> None:
        """Begin to watch what every API server serves, and to take readings."""
        self._watch("pods", "/api/v1/pods", api.ApiPod, self.pods)
        self._watch("nodes", "/api/v1/nodes", api.ApiNode, self.nodes)
        for name, path in _ALWAYS.items():
            self._watch(name, path, api.ApiObject, self._objects(name))
        for name, (path, kind) in _OF_VOLUMES.items():
            self._watch(name, path, kind, self._objects(name))
        logs = f"/api/v1/namespaces/{self.options.namespace}/configmaps"
        self._watch("eviction log", logs, api.ApiObject, self._objects("eviction log"),
                    labels=f"{eviction_log.LABEL}={self.options.pool}")  # fmt: skip
        own = f"/api/v1/namespaces/{self.options.namespace}/pods"
        self._watch(RESERVATIONS, own, api.ApiObject, self._objects(RESERVATIONS), labels=keys.GPU_RESERVATION)
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{self.options.namespace}/leases"
        self._watch("leases", leases, api.ApiObject, self._objects("leases"))
        if self.options.yunikorn is not None:
            namespace, name = self.options.yunikorn
            self._watch("yunikorn", f"/api/v1/namespaces/{namespace}/configmaps", api.ApiObject,
                        self._objects("yunikorn"), fields=f"metadata.name={name}")  # fmt: skip
        self.usage.start()
        self.gpu_usage.start()

    def discover(self) -> None:
        """Begin to watch kinds that were installed since this was last looked at."""
        self._discovered = time.monotonic()
        served = ServedResources(self.client)
        installed = _WHERE_INSTALLED | (_KUEUE if self.options.kueue else {})
        for name, (groups, resource) in installed.items():
            if name in self.reflectors:
                continue
            group = next((group for group in groups if served.serves(group, resource)), None)
            if group is not None:
                self._groups[name] = group
                self._watch(name, f"{group}/{resource}", _struct_of(name), self._objects(name))
        for kind in self.kinds:
            if kind.source in self.reflectors or kind.key == POD:
                continue
            if served.serves(api_path(kind.group, kind.version), kind.resource):
                self._watch(kind.source, kind.path, api.ApiObject, self._objects(kind.source),
                            only_metadata=kind.reads_only_metadata)  # fmt: skip
                self.pods.owners.watch(kind.key)

    def renew_kinds(self) -> None:
        """Take the kinds of owners as they are described now; objects of a kind that changed are read anew."""
        store = self._objects(WORKLOAD_KINDS)
        if store.version == self._kinds_version:
            return
        self._kinds_version = store.version
        self.findings.begin("WorkloadKind")
        found = [kind_of(item, self.findings.tell) for item in store.sorted()]
        before, self.kinds = self.kinds, built_in_kinds().with_others(kind for kind in found if kind is not None)
        changed = [kind for kind in before if self.kinds.by_key.get(kind.key) != kind]
        for kind in changed:
            self.pods.owners.watch(kind.key, is_watched=False)
            self.objects.pop(kind.source, None)
            reflector = self.reflectors.pop(kind.source, None)
            if reflector is not None:
                reflector.stop()
        self.pods.know(self.kinds)
        self._discovered = -1e9

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
        self.gpu_usage.stop()
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
        return [f"{name}: {r.health.error}" for name, r in found if r.health.broken_for >= BROKEN_SECONDS]

    @property
    def forbidden(self) -> list[str]:
        """Give the paths of what has to be read and may not be."""
        return sorted(r.path for r in list(self.reflectors.values()) if r.health.is_forbidden)

    @property
    def lacks_rights(self) -> bool:
        """Whether something that has to be read may not be, for longer than a right needs to become known."""
        known = [reflector.health for reflector in list(self.reflectors.values())]
        return any(health.is_forbidden and health.broken_for >= _GRANTED_SECONDS for health in known)

    @property
    def troubles(self) -> list[str]:
        """Say which watches do not work at the moment, and why."""
        return [f"{name}: {r.health.error}" for name, r in sorted(self.reflectors.items()) if r.health.error]

    def version(self) -> int:
        """Give a number that grows with each change of anything."""
        own = self.pods.version + self.nodes.version + self.usage.version + self.gpu_usage.version
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
            known.written(decode(answer, _struct_of(name)), is_new=is_new)

    def status_path(self, watch: str, namespace: str, name: str) -> str:
        """Give where the status of an object is written that a watch of what is installed shows, in its version."""
        inside = f"namespaces/{namespace}/" if namespace else ""
        return f"{self._groups[watch]}/{inside}{_WHERE_INSTALLED[watch][1]}/{name}/status"

    def _objects(self, name: str) -> ObjectStore:
        kind = next((kind for kind in self.kinds if kind.source == name), None)
        if kind is not None and name not in self.objects:
            self.objects[name] = OwnerStore(kind, self.pods)
        decides = _DECIDES.get(name, of_meta if name in _OPTIONAL else of_spec)
        decides = partial(of_queue, pool=self.options.pool) if name == "queues" else decides
        return self.objects.setdefault(name, ClaimStore() if name == "claims" else ObjectStore(decides))

    def _watch(
        self, name: str, path: str, kind: Any, sink: Any, *, labels: str = "", fields: str = "",
        only_metadata: bool = False,
    ) -> None:  # fmt: skip
        query: dict[str, str | int] = {}
        if labels:
            query["labelSelector"] = labels
        if fields:
            query["fieldSelector"] = fields
        optional = name in _OPTIONAL or self.options.only_reads or isinstance(sink, OwnerStore)
        reflector: Reflector[Any] = Reflector(
            self.client, path, kind, sink, self.changed.set, query=query, optional=optional and name not in _NEEDED,
            reports=WatchReports(lambda meta, why: self.findings.tell(_KINDS.get(name, "Pod"), meta, why), self.failed),
        )  # fmt: skip
        reflector.accept = METADATA if only_metadata else ""
        self.reflectors[name] = reflector
        reflector.start()


def _struct_of(name: str) -> Any:
    """Give as what the objects of a watch are read."""
    if name == kueue_workloads.WATCH:
        return api.ApiKueueWorkload
    return _OF_VOLUMES[name][1] if name in _OF_VOLUMES else api.ApiObject


def start_synced(informers: InformerCache, seconds: float) -> None:
    """Begin to watch, and wait until everything was listed; where that fails, all watches end.

    Raises
    ------
    OSError
        The API server cannot be reached, or not everything was listed within so many seconds; or rights are wanting,
        which is not waited for.
    """
    until = time.monotonic() + seconds
    with ExitStack() as undone:
        undone.callback(informers.stop)
        informers.start()
        while not informers.wait_synced(min(1.0, until - time.monotonic())):
            troubles = "; ".join(informers.troubles)
            if informers.lacks_rights:
                raise ConnectionError(f"{troubles}; {_RIGHTS}")
            if time.monotonic() >= until:
                raise ConnectionError(troubles or f"not everything was listed within {seconds:.0f}s")
        undone.pop_all()
