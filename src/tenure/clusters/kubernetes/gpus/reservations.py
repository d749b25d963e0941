"""Reservations: pods of the scheduler's own, each of which holds a device of a node so that its parts can be given out.

Numbers of devices in a plan are numbers, and which device a kubelet gives to a pod is its own choice. So a device of
which parts are given out is held by a pod that asks its kubelet for a whole one. Its first container tells which it
got, by the message of its end; then pods that have a part of that number are bound, with the name of the device in an
annotation from which their containers read it. While any of them is there the reservation stays, so that one number is
one device for all of them; when the last has gone it goes, and until it is gone no other pod is given that device.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.gpus import holder
from tenure.clusters.kubernetes.gpus.own_pod import HolderOptions
from tenure.clusters.kubernetes.read.workloads import HELD, PLACED
from tenure.model.values.resources import GPU
from tenure.model.workload import Phase, Task, TaskSpec, Workload

DevicePlace = tuple[str, int]
"""A node, and the number of one of its devices."""

MOST_TOLD: Final = 128
"""Characters of a device's name."""


@dataclass(frozen=True, slots=True)
class GpuReservation:
    """A pod that holds a device. ``device`` is the device's name, where it was told; ``is_going``: it will not stay."""

    place: DevicePlace
    name: str
    uid: str
    device: str
    is_going: bool


def reservation_name(place: DevicePlace) -> str:
    """Give the name of the pod that holds a device: one for each, so that none is held twice."""
    return f"tenure-gpu-{hashlib.sha256(place[0].encode()).hexdigest()[:16]}-{place[1]}"


def reservation_of(item: api.ApiObject) -> GpuReservation | None:
    """Read a reservation; None for what is none."""
    meta, spec = item.metadata, item.spec if isinstance(item.spec, dict) else {}
    number, node = (meta.labels or {}).get(keys.GPU_RESERVATION, ""), spec.get("nodeName")
    if not (isinstance(node, str) and node and number.isdecimal() and len(number) <= _MOST_DIGITS):
        return None
    place = node, int(number)
    if meta.name != reservation_name(place):
        return None
    status = item.status if isinstance(item.status, dict) else {}
    is_going = bool(meta.deletion_timestamp) or status.get("phase") in ("Failed", "Succeeded")
    return GpuReservation(place, meta.name, meta.uid, _told(status), is_going)


_MOST_DIGITS: Final = 6


def _told(status: Mapping[str, Any]) -> str:
    """Give the name of the device that the first container told when it ended well."""
    for container in status.get("initContainerStatuses") or ():
        state = container.get("state") if isinstance(container, dict) else None
        ended = state.get("terminated") if isinstance(state, dict) else None
        if isinstance(ended, dict) and ended.get("exitCode") == 0:
            text = str(ended.get("message") or "").strip()
            if text and len(text) <= MOST_TOLD and text.isprintable() and "," not in text and " " not in text:
                return text
    return ""


def reservation_pod(place: DevicePlace, asked: HolderOptions, namespace: str) -> dict[str, Any]:
    """Give the pod that holds a device of a node: it is bound by its spec, so that no scheduler looks at it.

    Its image is the one in which this process runs. It asks for no CPU and no memory: a node of which all is given out
    would refuse it, and the pods that were promised parts would wait for ever.
    """
    secure = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
    image = {"image": asked.image, **({"imagePullPolicy": asked.pull_policy} if asked.pull_policy else {})}
    one = {**image, "resources": {"limits": {GPU: "1"}}, "securityContext": secure}
    user = {"runAsNonRoot": True, "runAsUser": 65_532, "seccompProfile": {"type": "RuntimeDefault"}}
    further = {"priorityClassName": asked.priority_class, "imagePullSecrets": list(asked.pull_secrets)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": reservation_name(place),
            "namespace": namespace,
            "labels": {"app.kubernetes.io/name": "tenure", keys.GPU_RESERVATION: str(place[1])},
        },
        "spec": {
            "nodeName": place[0],
            "schedulerName": "tenure",
            "restartPolicy": "Always",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 5,
            "tolerations": [{"operator": "Exists"}],
            "securityContext": user,
            "initContainers": [{"name": "tell", "command": holder.command(holder.TELL), **one}],
            "containers": [{"name": "hold", "command": holder.command(holder.HOLD), **one}],
            **{key: value for key, value in further.items() if value},
        },
    }


class SharedDevices:
    """The devices of which parts are given out: who has a part of each, and which are reserved."""

    def __init__(self, reservations: Iterable[GpuReservation], workloads: Iterable[Workload]) -> None:
        self.reservations = {one.place: one for one in reservations}
        self.placed: set[DevicePlace] = set()
        self.promised: set[DevicePlace] = set()
        for workload in workloads:
            for task in workload.tasks:
                if task.spec.gpu_share is None:
                    continue
                if task.phase in PLACED and task.node:
                    self.placed.update((task.node, d) for d in task.devices)
                elif task.nominated is not None:
                    self.promised.update((task.nominated.node, d) for d in task.nominated.devices)

    def names(self, node: str, devices: Sequence[int]) -> str | None:
        """Give the names of devices as a container is told them; None where one of them is not held yet."""
        found = [self.reservations.get((node, d)) for d in devices]
        told = [one.device for one in found if one is not None and not one.is_going and one.device]
        return ",".join(told) if len(told) == len(devices) else None

    def to_hold(self, node: str, devices: Sequence[int]) -> list[DevicePlace]:
        """Give the devices that have to be held before parts of them are given out.

        One that is not held although a part of it is in use is left alone: which device that is cannot be known.
        """
        places = [(node, d) for d in devices]
        return [place for place in places if place not in self.reservations and place not in self.placed]

    def unused(self) -> list[GpuReservation]:
        """Give the reservations of which no part is in use or nominated; what goes already is left out."""
        used = self.placed | self.promised
        found = (one for _, one in sorted(self.reservations.items()))
        return [one for one in found if one.place not in used or (one.is_going and one.place not in self.placed)]


def without_reservations(workloads: Sequence[Workload], devices: SharedDevices, namespace: str) -> list[Workload]:
    """Give workloads in which a reservation holds its device as long as no part of it is in use, and nothing else.

    Where one is in use, the parts count, and not the whole device once more.
    """
    names = {one.name: one for one in devices.reservations.values()}
    used = devices.placed | devices.promised
    found = []
    for workload in workloads:
        one = names.get(workload.name) if workload.namespace == namespace else None
        if one is None or workload.scheduler_name != HELD:
            found.append(workload)
        elif one.place not in used:
            tasks = tuple(_holding(task, one.place[1]) for task in workload.tasks)
            found.append(replace(workload, tasks=tasks))
    return found


def _holding(task: Task, device: int) -> Task:
    if task.phase not in PLACED:
        return task
    return replace(task, spec=TaskSpec(requests=((GPU, 1),)), devices=(device,))


def shares(pod: PodRecord) -> bool:
    """Whether a pod asks for a part of a GPU."""
    return pod.task.spec.gpu_share is not None and pod.task.phase is Phase.PENDING
