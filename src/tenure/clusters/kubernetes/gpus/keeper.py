"""The keeper of reservations: it has devices held before parts of them are given out, and lets them go afterwards."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Final

from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.gpus.own_pod import HolderOptions, of_own_pod
from tenure.clusters.kubernetes.gpus.reservations import DevicePlace, SharedDevices, reservation_pod
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.engine.plan import Plan, PlanStep

_CONFLICT: Final = 409
_GONE: Final = 404


class ReservationKeeper:
    """The keeper of the reservations of a cluster; a scheduler that holds no GPUs makes none."""

    def __init__(self, client: Client, informers: InformerCache) -> None:
        self.client = client
        self.informers = informers
        self._made_with: HolderOptions | None = None

    @property
    def path(self) -> str:
        """The path of the pods of the scheduler's own namespace."""
        return f"/api/v1/namespaces/{self.informers.options.namespace}/pods"

    def held_back(self, plan: Plan, observed: Observed) -> tuple[Plan, set[DevicePlace]]:
        """Let pods whose devices are not held yet be promised their places, and not bound; gives what is to be held.

        The promise is written first: a device is always held for some task.
        """
        devices = observed.shared_devices
        if devices is None:
            return plan, set()
        wanted: set[DevicePlace] = set()
        steps: list[PlanStep] = []
        for step in plan.steps:
            if step.action != "bind" or not self._is_part(step, observed) or self._told(step, devices) is not None:
                steps.append(step)
                continue
            wanted.update(devices.to_hold(step.node, step.devices))
            promised = observed.pod(step.workload, step.task_index).task.nominated
            if promised is None or (promised.node, promised.devices) != (step.node, step.devices):
                steps.append(step._replace(action="nominate"))
        return replace(plan, steps=steps), wanted

    def names(self, step: PlanStep, observed: Observed) -> str:
        """Give the names of the devices that a pod is bound with; none where it has whole ones or none."""
        devices = observed.shared_devices
        if devices is None or not self._is_part(step, observed):
            return ""
        return self._told(step, devices) or ""

    def hold(self, places: set[DevicePlace]) -> list[tuple[DevicePlace, ApiError]]:
        """Have devices held; gives those for which that was refused. One that is held already is."""
        failed = []
        for place in sorted(places):
            try:
                self.client.create(self.path, reservation_pod(place, self._holders(), self.informers.options.namespace))
            except ApiError as error:
                if error.status != _CONFLICT:
                    failed.append((place, error))
        return failed

    def let_go(self, devices: SharedDevices, kept: set[DevicePlace]) -> None:
        """Let go devices of which no part is in use, but for those to be held; what has ended is deleted as well."""
        for one in devices.unused():
            if one.place in kept and not one.is_going:
                continue
            with suppress(ApiError):  # the next cycle tries again
                self.client.delete(f"{self.path}/{one.name}", {"preconditions": {"uid": one.uid}})

    def _holders(self) -> HolderOptions:
        """Give what the pods are made with; the own pod is asked about once, when the first device is to be held.

        Raises
        ------
        ApiError
            If it cannot be asked about.
        """
        options = self.informers.options
        if self._made_with is None:
            self._made_with = (
                of_own_pod(self.client, options.namespace, options.pod_name, options.reservation_image)
                if options.pod_name
                else HolderOptions(options.reservation_image)
            )
        return self._made_with

    def _is_part(self, step: PlanStep, observed: Observed) -> bool:
        return observed.workloads[step.workload].tasks[step.task_index].spec.gpu_share is not None

    def _told(self, step: PlanStep, devices: SharedDevices) -> str | None:
        return devices.names(step.node, step.devices)
