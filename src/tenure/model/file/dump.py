"""Writing clusters as cluster files: `load_cluster` of what is written gives the same cluster."""

from __future__ import annotations

import json
from functools import cache
from typing import IO, Any, Literal

from tenure.model.cluster import Cluster
from tenure.model.devices import DeviceClaim, DeviceClass, DeviceInventory, DeviceSlice
from tenure.model.entries import API_VERSION, CLUSTER_KIND, SETTINGS_KIND
from tenure.model.fields.kinds import TimeKind
from tenure.model.fields.records import NOT_WRITTEN, RecordField, RecordKind, fields_of, record_of, write_field
from tenure.model.settings import Settings
from tenure.model.values.quantity import format_quantity, format_queue_quantity
from tenure.model.values.resources import GPU, MEMORY, Pairs
from tenure.model.volumes import Storage, StorageCapacity, StorageClass, StorageDriver, Volume, VolumeClaim
from tenure.model.workload import Phase, Task, TaskSpec, Workload

Format = Literal["yaml", "json"]


def dump_cluster(cluster: Cluster, stream: IO[str], *, format: Format = "yaml") -> None:  # noqa: A002  the option's name
    """Write a cluster file, without what is as by default. Equal nodes and tasks are written one by one.

    Parameters
    ----------
    cluster
        What is written. Of a workload's tasks, all or none have an ``order``, by which they are sorted.
    stream
        Where to; to a file that must not be half written by `tenure.model.documents.files.write_atomically`.
    format
        YAML for people, JSON for large clusters: it is read about ten times as fast.

    """
    _write(cluster_to_plain(cluster), stream, format)


def dump_settings(settings: Settings, stream: IO[str], *, format: Format = "yaml") -> None:  # noqa: A002
    """Write settings as the scheduler's own file, without what is as by default."""
    _write({"apiVersion": API_VERSION, "kind": SETTINGS_KIND, "scheduler": settings_to_plain(settings)}, stream, format)


def settings_to_plain(settings: Settings) -> dict[str, Any]:
    """Give settings as plain values, without what is as by default."""
    return record_of(Settings).encode(settings)


def cluster_to_plain(cluster: Cluster) -> dict[str, Any]:
    """Give a cluster as the plain values of its file."""
    plain: dict[str, Any] = {"apiVersion": API_VERSION, "kind": CLUSTER_KIND}
    whole = record_of(Cluster).fields
    plain["now"] = whole["now"].kind.encode(cluster.now)
    plain["scheduler"] = settings_to_plain(cluster.settings)
    for key in ("nodes", "queues"):
        plain[key] = whole[key].kind.encode(getattr(cluster, key))
    plain["workloads"] = [workload_to_plain(workload, cluster.now) for workload in cluster.workloads]
    for key in ("disruptionBudgets", "evictions", "outcomes", "finishedRuns", "namespaces"):
        plain[key] = whole[key].kind.encode(getattr(cluster, whole[key].attribute))
    plain |= storage_to_plain(cluster.storage)
    plain |= devices_to_plain(cluster.devices)
    plain["attachments"] = whole["attachments"].kind.encode(cluster.attachments)
    return {key: value for key, value in plain.items() if value not in ({}, [])}


def storage_to_plain(storage: Storage) -> dict[str, Any]:
    """Give the sections of a cluster's storage."""
    sections: dict[str, tuple[RecordKind, tuple[Any, ...]]] = {
        "volumes": (record_of(Volume), storage.volumes),
        "claims": (record_of(VolumeClaim), storage.claims),
        "storageClasses": (record_of(StorageClass), storage.storage_classes),
        "csiDrivers": (record_of(StorageDriver), storage.drivers),
        "storageCapacities": (record_of(StorageCapacity), storage.capacities),
    }
    return {key: [kind.encode(item) for item in items] for key, (kind, items) in sections.items()}


def devices_to_plain(devices: DeviceInventory) -> dict[str, Any]:
    """Give the sections of a cluster's devices."""
    sections: dict[str, tuple[RecordKind, tuple[Any, ...]]] = {
        "resourceSlices": (record_of(DeviceSlice), devices.slices),
        "deviceClasses": (record_of(DeviceClass), devices.classes),
        "resourceClaims": (record_of(DeviceClaim), devices.claims),
    }
    return {key: [kind.encode(item) for item in items] for key, (kind, items) in sections.items()}


def workload_to_plain(workload: Workload, now: int) -> dict[str, Any]:
    """Give a workload as plain values. What all of its tasks ask for is written once."""
    plain = _encode(_own_fields(Workload), workload)
    if workload.created_at == now:
        plain.pop("createdAt", None)
    else:
        plain["createdAt"] = TimeKind().encode(workload.created_at)
    labels = tuple(sorted(workload.labels.items()))
    specs = {task.spec for task in workload.tasks}
    shared = next(iter(specs)) if len(specs) == 1 else None
    if shared is not None:
        plain |= _spec_to_plain(shared)
    if shared is not None and shared.labels == labels and _are_replicas(workload):
        return plain if len(workload.tasks) == 1 else {**plain, "replicas": len(workload.tasks)}
    plain["tasks"] = [_task_to_plain(task, labels, has_own_spec=shared is None) for task in workload.tasks]
    return plain


def _are_replicas(workload: Workload) -> bool:
    """Tell whether the tasks are those that ``replicas`` makes."""
    spec = workload.tasks[0].spec
    made = (Task(name=f"{workload.name}-{i}", spec=spec) for i in range(len(workload.tasks)))
    return all(task == expected for task, expected in zip(workload.tasks, made, strict=True))


def _task_to_plain(task: Task, inherited: Pairs, *, has_own_spec: bool) -> dict[str, Any]:
    plain = _encode(_own_fields(Task), task)
    if task.phase == (Phase.PENDING if task.node is None else Phase.RUNNING):
        plain.pop("phase", None)
    else:
        plain["phase"] = str(task.phase)
    if has_own_spec:
        plain |= _spec_to_plain(task.spec)
    if task.spec.labels != inherited:
        plain["labels"] = dict(task.spec.labels)
    return plain


def _spec_to_plain(spec: TaskSpec) -> dict[str, Any]:
    plain = _encode(_own_fields(TaskSpec), spec)
    share = spec.gpu_share
    if share is not None:
        if share.milli:
            plain["gpuFraction"] = format_queue_quantity(share.milli, GPU)
        else:
            plain["gpuMemory"] = format_quantity(share.memory, MEMORY)
        if share.devices != 1:
            plain["gpuDevices"] = share.devices
    return plain


@cache
def _own_fields(cls: type) -> tuple[RecordField, ...]:
    """Give the fields that are written as they are; the others have a form of their own in files."""
    left_out = {
        Workload: ("tasks",),
        Task: ("spec",),
        TaskSpec: ("gpu_share", "labels", "mounts", "device_uses", "counted", "extended"),
    }
    return tuple(fields_of(cls, skip=left_out[cls]))


def _encode(fields: tuple[RecordField, ...], value: Any) -> dict[str, Any]:
    written = ((field.key, write_field(field, value)) for field in fields)
    return {key: item for key, item in written if item is not NOT_WRITTEN}


def _write(plain: dict[str, Any], stream: IO[str], format: Format) -> None:  # noqa: A002
    if format == "json":
        _write_json(plain, stream)
    else:
        from tenure.model.documents.yaml_sink import write_yaml  # noqa: PLC0415  PyYAML takes long to import

        write_yaml(plain, stream)


def _write_json(plain: dict[str, Any], stream: IO[str]) -> None:
    """Write one entry of a list per line: readable, and comparable line by line."""
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    before = "{\n"
    for key, value in plain.items():
        stream.write(f"{before}{encode(key)}: ")
        before = ",\n"
        if isinstance(value, list):
            stream.write("[\n" + ",\n".join(map(encode, value)) + "\n]")
        else:
            stream.write(encode(value))
    stream.write("\n}\n")
