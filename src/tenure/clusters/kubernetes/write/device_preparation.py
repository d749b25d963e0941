"""What has to be prepared of devices before their pods are bound, and which devices are given up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.write.devices import DeviceWriter
from tenure.engine.plan import Plan, PlanStep


class DuePreparations(NamedTuple):
    """The bindings of which devices cannot be prepared, with the reason, and those that wait, with what for."""

    failed: tuple[tuple[PlanStep, str], ...]
    due: tuple[tuple[PlanStep, str], ...]


class DevicePreparation:
    """The look at what drivers report of devices, before bindings."""

    def __init__(self, writer: DeviceWriter, informers: InformerCache) -> None:
        self._writer = writer
        self._informers = informers

    def of(self, steps: Sequence[PlanStep], plan: Plan, observed: Observed) -> DuePreparations:
        """Give back devices that are not used or cannot be; say of bindings whether theirs are ready."""
        now, timeout = plan.now, observed.cluster.settings.device_binding_timeout
        failed = self._writer.failed(observed.prepared, now, timeout)
        if failed:
            lost = (claim.allocation for claim in observed.prepared if claim.key in failed)
            self._informers.given_up.add((d.key for found in lost if found is not None for d in found.devices), now)
        self._writer.give_back(observed.cluster.devices.claims, plan.steps, failed)
        broken = [(s, failed[c.claim]) for s in steps for c in s.claims if c.claim in failed]
        gone = {step.workload for step, _ in broken}
        looked = (
            (step, self._writer.awaited(step, observed.pod(step.workload, step.task_index), now, timeout))
            for step in steps
            if step.workload not in gone
        )
        return DuePreparations(tuple(broken), tuple((step, told) for step, told in looked if told))
