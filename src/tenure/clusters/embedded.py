"""The embedded cluster: a cluster file that plans are carried out on.

It has no memory of its own beside the cluster's data, so what the next cycle sees is only what was written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tenure.clusters.readings import readings
from tenure.clusters.record import logged
from tenure.engine.expectation import NOT_BEFORE, WRITTEN, stated
from tenure.engine.plan import Plan, PlanStep
from tenure.model.cluster import Cluster
from tenure.model.devices import DeviceClaim, DeviceInventory
from tenure.model.manifests.extended_resources import is_implied
from tenure.model.values.duration import format_time
from tenure.model.workload import SAVING, Checkpoint, Nomination, Notice, Phase, Task, Workload


class EmbeddedCluster:
    """A cluster that changes only by plans that are carried out and by time that passes."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def observe(self) -> Cluster:
        """Give the cluster as it is now."""
        return self.cluster

    def carry_out(self, plan: Plan) -> None:
        """Carry out all steps of a plan, in order; before them, write until when what goes is not requeued again."""
        self.write_not_before(plan)
        steps: dict[str, list[PlanStep]] = {}
        for step in plan.steps:
            steps.setdefault(step.workload, []).append(step)
        started, span = set(plan.started), self.cluster.settings.worth.forgotten_after
        workloads = self.cluster.workloads
        if plan.expired:  # first: what is given up may be promised anew by a step
            expired = set(plan.expired)
            workloads = tuple(_without_nominations(w, expired) for w in workloads)
        workloads = tuple(
            _carried_out(w, steps.get(w.key, []), plan.now if w.key in started else w.started_at, plan.now, span)
            if w.key in steps or w.key in started
            else w
            for w in workloads
        )
        if plan.stale:
            workloads = tuple(
                replace(w, stale_since=plan.stale[w.key]) if w.key in plan.stale else w for w in workloads
            )
        queues = tuple(
            replace(q, status=plan.queue_status[q.name]) if q.name in plan.queue_status else q
            for q in self.cluster.queues
        )
        by_key = {w.key: w for w in workloads}
        log = tuple(logged(s, by_key, plan.now, self.cluster.settings) for s in plan.steps if s.action == "evict")
        self.cluster = replace(
            self.cluster, now=plan.now, workloads=workloads, queues=queues, evictions=(*self.cluster.evictions, *log),
            devices=_with_devices(self.cluster.devices, plan.steps),
        )  # fmt: skip

    def write_not_before(self, plan: Plan) -> None:
        """Write on workloads the time before which they are not requeued again; nothing is evicted by that."""
        times = plan.requeue.not_before
        if times:
            workloads = (_barred(w, times[w.key]) if w.key in times else w for w in self.cluster.workloads)
            self.cluster = replace(self.cluster, workloads=tuple(workloads))

    def advance(self, now: int) -> None:
        """Let time pass until ``now`` (µs since the epoch): bound tasks run, evicted ones are pending again.

        What makes checkpoints makes one as soon as it is told that it will be evicted.
        """
        workloads = tuple(
            replace(w, tasks=tuple(_later(t, now) for t in w.tasks), checkpoint=_saved(w, now))
            for w in self.cluster.workloads
        )
        nodes = readings(self.cluster, workloads, now)
        devices = _given_back(self.cluster.devices, self.cluster.workloads, workloads)
        self.cluster = replace(self.cluster, now=now, workloads=workloads, nodes=nodes, devices=devices)


def _with_devices(devices: DeviceInventory, steps: Iterable[PlanStep]) -> DeviceInventory:
    """Give the claims of tasks that are bound the devices that the plan has for them."""
    given = {c.claim: c.allocation for step in steps if step.action == "bind" for c in step.claims}
    if not given:
        return devices
    known = {claim.key: claim for claim in devices.claims}
    for key, allocation in given.items():
        namespace, _, name = key.partition("/")
        claim = known.get(key) or DeviceClaim(name=name, namespace=namespace, is_made=is_implied(name))
        known[key] = replace(claim, allocation=allocation)
    return replace(devices, claims=tuple(known.values()))


def _given_back(devices: DeviceInventory, before: Iterable[Workload], now: Iterable[Workload]) -> DeviceInventory:
    """Take the devices from claims that were used, and that no task uses any more."""
    left = _used(before) - _used(now)
    if not left:
        return devices
    kept = (c for c in devices.claims if c.key not in left or not c.is_made)
    return replace(devices, claims=tuple(replace(c, allocation=None) if c.key in left else c for c in kept))


def _used(workloads: Iterable[Workload]) -> set[str]:
    return {use.claim for w in workloads for task in w.tasks if task.node is not None for use in task.spec.device_uses}


def _barred(workload: Workload, until: int) -> Workload:
    """Write a not-before into the field, and where an annotation would win over it, into that as well."""
    if stated(workload, NOT_BEFORE) is None:
        return replace(workload, requeue_not_before=until)
    annotations = {**workload.annotations, WRITTEN: format_time(until)}
    return replace(workload, requeue_not_before=until, annotations=annotations)


def _carried_out(workload: Workload, steps: list[PlanStep], started_at: int | None, now: int, span: int) -> Workload:
    tasks = list(workload.tasks)
    for step in steps:
        tasks[step.task_index] = _apply(tasks[step.task_index], step, now)
    if any(s.action == "evict" for s in steps):
        gone = not any(t.phase in (Phase.BOUND, Phase.RUNNING) for t in tasks)
        held = replace(workload, tasks=tuple(tasks), started_at=None if gone else started_at, last_evicted_at=now)
        return replace(held, evictions=workload.times_evicted(now, span) + 1) if gone else held
    return replace(workload, tasks=tuple(tasks), started_at=started_at)


def _apply(task: Task, step: PlanStep, now: int) -> Task:
    if step.action == "bind":
        return replace(task, phase=Phase.BOUND, node=step.node, devices=step.devices, nominated=None)
    if step.action == "nominate":
        return replace(task, nominated=Nomination(node=step.node, devices=step.devices, at=now))
    if step.action == "notice":
        notice = Notice(deadline=step.deadline, cause=step.cause or "", beneficiary=step.beneficiary, at=step.notice_at)
        return replace(task, notice=notice, devices=step.devices, nominated=None)
    if step.action == "withdraw":
        return replace(task, notice=None, nominated=None)
    if step.action == "evict":
        return replace(task, phase=Phase.TERMINATING, devices=step.devices, terminating_since=now, notice=None)
    raise ValueError(f"the embedded cluster cannot carry out {step.action!r}")


def _without_nominations(workload: Workload, expired: set[tuple[str, int]]) -> Workload:
    if not any((workload.key, i) in expired for i in range(len(workload.tasks))):
        return workload
    tasks = (replace(t, nominated=None) if (workload.key, i) in expired else t for i, t in enumerate(workload.tasks))
    return replace(workload, tasks=tuple(tasks))


def _saved(workload: Workload, now: int) -> Checkpoint | None:
    """What a workload says of its checkpoints by now."""
    checkpoint = workload.checkpoint
    told = [t.notice.at for t in workload.tasks if t.notice is not None and t.notice.at is not None]
    if not told or checkpoint is None or not checkpoint.made:
        return checkpoint
    at = max(told) + SAVING
    return checkpoint if at > now or at <= (checkpoint.last_at or 0) else replace(checkpoint, last_at=at)


def _later(task: Task, now: int) -> Task:
    if task.phase is Phase.BOUND:
        return replace(task, phase=Phase.RUNNING, started_at=now if task.started_at is None else task.started_at)
    if task.phase is Phase.TERMINATING and not task.never_terminates:
        return replace(
            task, phase=Phase.PENDING, node=None, devices=(), terminating_since=None, started_at=None, created_at=now
        )
    return task
