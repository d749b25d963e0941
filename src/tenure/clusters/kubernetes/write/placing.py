"""Binding pods, and promising room to those that have to wait for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from tenure.clusters.kubernetes.cache import pod_records
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.clusters.kubernetes.gpus.keeper import ReservationKeeper
from tenure.clusters.kubernetes.read.nominations import ReplacementNomination
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.seals import Seal
from tenure.clusters.kubernetes.write import patches
from tenure.clusters.kubernetes.write.bindings import BindingsUnderWay
from tenure.clusters.kubernetes.write.claims import ClaimWriter
from tenure.clusters.kubernetes.write.device_preparation import DevicePreparation
from tenure.clusters.kubernetes.write.devices import DeviceWriter
from tenure.clusters.kubernetes.write.outcome import Failure, Outcome, Preparation
from tenure.clusters.kubernetes.write.pod_writer import CONFLICT, PodWriter
from tenure.engine.plan import EVICTING, Plan, PlanStep
from tenure.model.values.duration import format_time
from tenure.model.workload import Nomination, SubGroup, Workload

_GONE: Final = 404


class PlacementWriter:
    """The writer of bindings and of promises of room, with what has to be written before them."""

    def __init__(self, pods: PodWriter, devices: DeviceWriter, reservations: ReservationKeeper) -> None:
        self._write = pods
        self._informers = pods.informers
        self._claims = ClaimWriter(pods.client, pods.informers)
        self._devices = devices
        self._preparation = DevicePreparation(devices, pods.informers)
        self._reservations = reservations
        self.bindings = BindingsUnderWay(pods.pool, pods.informers)

    def prepare(self, plan: Plan, observed: Observed, outcome: Outcome) -> list[PlanStep]:
        """Write what claims that are not bound need, and devices that are not ready; gives the bindings of the others.

        Pods are bound once all claims of those that are placed with them are: a core lands whole, or not yet.
        """
        steps = [s for s in plan.steps if s.action == "bind"]
        due = [s for s in steps if s.volumes]
        told: set[str] = set()
        once = []
        for step in due:
            once.append(step._replace(volumes=tuple(v for v in step.volumes if v.claim not in told)))
            told.update(v.claim for v in step.volumes)
        self._write.each(self._claims.prepare, once, outcome, notes_done=False)
        for step in due:
            outcome.preparing.setdefault(step.workload, Preparation("VolumeNotReady", _awaited(step)))
        left = [s for s in steps if s.workload not in outcome.preparing]
        devices = self._preparation.of(left, plan, observed)
        for step, why in devices.failed:
            outcome.failures.append(Failure("bind", step.workload, step.task, ApiError(0, "DeviceFailed", why)))
        for step, awaited in devices.due:
            outcome.preparing.setdefault(step.workload, Preparation("DevicesNotReady", f"it waits for {awaited}"))
        pod = observed.pod
        self._write.each(
            lambda step: self._devices.give(step.claims, pod(step.workload, step.task_index), plan.now),
            [step for step, _ in devices.due], outcome, notes_done=False,
        )  # fmt: skip
        late = outcome.preparing.keys() | {step.workload for step, _ in devices.failed}
        outcome.skipped += [s for s in steps if s.workload in late]
        return [s for s in left if s.workload not in late]

    def bind(self, steps: Sequence[PlanStep], plan: Plan, observed: Observed) -> None:
        """Begin bindings of a plan."""
        workloads = observed.workloads
        started, pods = set(plan.started), self._informers.pods
        nodes = self._informers.nodes.nodes
        assumed: dict[tuple[str, int], tuple[PodRecord, PodRecord]] = {}
        starts: dict[str, int | None] = {}
        names = {(s.workload, s.task_index): self._reservations.names(s, observed) for s in steps}
        for step in steps:
            pod, workload = observed.pod(step.workload, step.task_index), workloads[step.workload]
            before = None if step.workload in started else workload.started_at
            start = plan.now if step.workload in started else before
            starts[step.workload] = start
            seal = sealed_at_bind(pod, workload, step.devices, before)
            then = pod_records.bound(pod, step.node, step.devices, plan.now, start, seal)
            assumed[step.workload, step.task_index] = pod, then
            pods.assume(pod, then, is_written=False)
            self._informers.allocations.begin(step.claims)

        def bind(step: PlanStep) -> None:
            pod, _ = assumed[step.workload, step.task_index]
            if step.node not in nodes:
                raise ApiError(_GONE, "NotFound", f"node {step.node} is gone")
            self._devices.give(step.claims, pod, plan.now)
            self._write.client.create(
                patches.pod_path(pod, "binding"),
                patches.binding(pod, step, starts[step.workload], names[step.workload, step.task_index]),
            )

        def attempt(step: PlanStep) -> ApiError | None:
            pod, then = assumed[step.workload, step.task_index]
            is_bound = False
            try:
                error = self._write.attempt(bind, step)
                is_bound = error is None
            finally:
                self._informers.allocations.end(step.claims)
                if is_bound:
                    pods.assumed.accepted(then)
                else:
                    pods.retract(pod, then)
            return error

        self.bindings.begin(attempt, steps)

    def report_bindings(self, outcome: Outcome, urgent: int | None) -> None:
        """Say of bindings what became of them: of all, or of those answered before something ``urgent`` comes."""
        if urgent is None:
            self.bindings.wait()
        else:
            self.bindings.wait_a_little(urgent)
        for step, error in self.bindings.answered():
            outcome.note(step, error)

    def promise(self, plan: Plan, observed: Observed, outcome: Outcome) -> list[PlanStep]:
        """Write nominations; gives the evictions that may follow: not those for whom a promise could not be written."""
        evictions = [s for s in plan.steps if s.action == "evict"]
        moved = {(s.workload, s.task_index) for s in plan.steps if s.action in EVICTING}
        leaving: dict[tuple[str | None, str], list[str]] = {}
        for step in plan.steps:
            if step.action not in EVICTING:
                continue
            pod = observed.pod(step.workload, step.task_index)
            leaving.setdefault((step.beneficiary, step.node), []).append(pod.uid)
        there = self._informers.nodes.nodes  # what fits a node that is on its way is promised that when it is there
        promises = [s for s in plan.steps if s.action == "nominate" and s.node in there]
        promises = [s for s in promises if (s.workload, s.task_index) not in moved]

        def nominate(step: PlanStep) -> None:
            pod = observed.pod(step.workload, step.task_index)
            nominated_tasks = Nomination(node=step.node, devices=step.devices, at=plan.now)
            needs = leaving.get((step.workload, step.node), ())
            body = patches.nomination(pod, nominated_tasks, plan.now, needs=needs)
            try:
                self._write.patch(pod, body)
            except ApiError as error:
                told = _told_meanwhile(pod, self._informers.pods.records.get(pod.key), error)
                if told is None:
                    raise
                self._write.patch(told, patches.at_version(body, told.version))
            self._informers.pods.assume(pod, pod_records.nominated(pod, nominated_tasks))

        before = len(outcome.failures)
        self._write.each(nominate, promises, outcome)
        broken = {f.workload for f in outcome.failures[before:]}
        outcome.skipped += [s for s in evictions if s.beneficiary in broken]
        return [s for s in evictions if s.beneficiary not in broken]

    def keep_promises(self, plan: Plan, observed: Observed, outcome: Outcome) -> None:
        """Hand places on to the replacements of what was moved, and take back promises that cannot be kept."""
        decided = {observed.pod(s.workload, s.task_index).uid for s in plan.steps}
        due = [_Due(p) for p in observed.promises.broken if p.uid not in decided]
        due += [_Due(p.pod, p) for p in observed.promises.landings if p.pod.uid not in decided]

        def settle(due: _Due) -> None:
            pod, landing = due.pod, due.landing
            if landing is None:
                self._write.patch(pod, patches.no_nomination(pod, plan.now))
                self._informers.pods.assume(pod, pod_records.nominated(pod, None))
            else:
                told = landing.nomination
                self._write.patch(pod, patches.nomination(pod, told, plan.now, replaces=landing.replaces))
                self._informers.pods.assume(pod, pod_records.landed(pod, told, landing.replaces))

        steps = [
            PlanStep("promise", f"{d.pod.namespace}/{d.pod.group[1]}", d.pod.name, "", n, -1) for n, d in enumerate(due)
        ]
        self._write.each(lambda step: settle(due[step.task_index]), steps, outcome)

    def expire(self, plan: Plan, observed: Observed, outcome: Outcome) -> None:
        """Take back promises that have waited for too long."""
        again = {(s.workload, s.task_index) for s in plan.steps if s.action in ("nominate", "bind")}

        def give_up(step: PlanStep) -> None:
            pod = observed.pod(step.workload, step.task_index)
            self._write.patch(pod, patches.no_nomination(pod, plan.now))
            self._informers.pods.assume(pod, pod_records.nominated(pod, None))

        given_up = [PlanStep("expire", key, "", "", task, -1) for key, task in plan.expired if (key, task) not in again]
        self._write.each(give_up, given_up, outcome)


class _Due(NamedTuple):
    pod: PodRecord
    landing: ReplacementNomination | None = None


def sealed_at_bind(pod: PodRecord, workload: Workload, devices: tuple[int, ...], start: int | None) -> Seal:
    """Give what is sealed of a pod that is being bound; its workload starts with it where that has no ``start`` yet.

    Then no time is written: the API server's time of the placement is the start, whatever this process's clock says.
    """
    kept = pod.kept if pod.kept in (pod_records.BARE, pod_records.DAEMON) else ""
    started = "" if start is None else format_time(start)
    return Seal(
        queue=workload.queue,
        started=started,
        devices=tuple(devices),
        fixed=not workload.is_preemptible,
        kept=kept,
        first=start is None,
        together=workload.min_member or _needed(workload.sub_groups),
    )


def _needed(groups: Iterable[SubGroup]) -> int:
    """Give how many tasks subgroups have once they run, those included without which the workload starts."""
    return sum(_needed(group.sub_groups) if group.sub_groups else group.min_member or 0 for group in groups)


def _awaited(step: PlanStep) -> str:
    """Say what a pod waits for that has a place."""
    key, volume, node = step.volumes[0]
    name = key.partition("/")[2]
    more = f", and for {len(step.volumes) - 1} more" if len(step.volumes) > 1 else ""
    what = f"is being bound to volume {volume}" if volume else f"gets its volume for node {node}"
    return f"it waits for claim {name}, which {what}{more}"


def _told_meanwhile(pod: PodRecord, now: PodRecord | None, error: ApiError) -> PodRecord | None:
    """Give a pod as it is now, if a conflict is about nothing but what was written on it of why it waits."""
    if error.status != CONFLICT or now is None:
        return None
    return now if replace(now, version=pod.version, waits=pod.waits) == pod else None
