"""What a plan wanted of evictions, as records: what was to go, and what stayed after all."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Final

from tenure.clusters.kubernetes.read.eviction_log import EvictionEntry
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.write.outcome import Outcome
from tenure.engine.plan import Plan, PlanStep
from tenure.history.record import Draft, key_of, payload_of
from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.values.duration import parse_time
from tenure.model.workload import Workload

AGAIN: Final = 600_000_000
"""What fails again and again is told once in so long (µs)."""

_CONSIDERED: Final = 8
"""Others that were considered that a record names."""

_MOST: Final = 100_000


class WorkloadsByName:
    """The workloads that have pods, by name; sorted out when they are first asked for: most cycles evict nothing."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._known: Mapping[str, Workload] | None = None

    def get(self, name: str | None) -> Workload | None:
        """Give a workload; None where there is none."""
        if not name:
            return None
        if self._known is None:
            self._known = self._observed.workloads
        return self._known.get(name)


class PlannedRecords:
    """Makes the records; ``pool`` stands in their keys."""

    def __init__(self, pool: str) -> None:
        self.pool = pool
        self._told: dict[tuple[str, str, str], int] = {}

    def planned(
        self, plan: Plan, observed: Observed, workloads: WorkloadsByName, made: Container[str]
    ) -> Iterator[Draft]:
        """What was planned: what was ``made`` of it (uids of pods), and of the rest what is new."""
        for step in plan.steps:
            if step.action != "evict" or not observed.has_pod(step.workload, step.task_index):
                continue
            uid = observed.pod(step.workload, step.task_index).uid
            if not self._is_new(uid, "planned", f"{step.cause} {step.beneficiary}", plan.now) and uid not in made:
                continue
            others = [r for r in plan.refused if r.beneficiary == step.beneficiary and r.cause == step.cause]
            considered = [[r.workload, r.shield] for r in others[:_CONSIDERED]]
            follow_ups = [[f.of, f.cause] for f in plan.follow_ups if f.of == step.workload]
            payload = payload_of(
                task=step.task, node=step.node, to=step.to, reason=step.reason or None, uid=uid,
                considered=considered or None, more=len(others) - len(considered) or None, next=follow_ups or None,
            )  # fmt: skip
            yield self._keyed(self._of_step("planned", plan, step, workloads, payload, step.cost), uid, plan.now)

    def failed(self, outcome: Outcome, plan: Plan, observed: Observed, workloads: WorkloadsByName) -> Iterator[Draft]:
        """Evictions that were refused, and those left alone because another of their set was."""
        steps = {(s.workload, s.task): s for s in plan.steps if s.action == "evict"}
        errors = {(f.workload, f.task): str(f.error) for f in outcome.failures if f.action == "evict"}
        left = {(s.workload, s.task): _SKIPPED for s in outcome.skipped if s.action == "evict"}
        for name, error in (left | errors).items():
            step = steps.get(name)
            if step is None or not observed.has_pod(step.workload, step.task_index):
                continue
            uid = observed.pod(step.workload, step.task_index).uid
            if self._is_new(uid, "failed", error, plan.now):
                payload = payload_of(task=step.task, node=step.node, uid=uid, error=error)
                yield self._keyed(self._of_step("failed", plan, step, workloads, payload, 0.0), uid, plan.now)

    def announced(self, entry: EvictionEntry) -> Draft:
        """What another process planned: all that is left of it stands in the log."""
        at = parse_time(entry.at)
        payload = payload_of(task=entry.task, node=entry.from_node, to=entry.to_node, uid=entry.uid)
        draft = Draft(at, "planned", entry.workload, entry.queue or DEFAULT_QUEUE, entry.cause, entry.beneficiary, 0,
                      payload, str(at))  # fmt: skip
        return self._keyed(draft, entry.uid, at)

    def _of_step(
        self, kind: str, plan: Plan, step: PlanStep, workloads: WorkloadsByName, payload: str, cost: float
    ) -> Draft:
        model = workloads.get(step.workload)
        queue = (model.queue if model is not None else None) or DEFAULT_QUEUE
        return Draft(plan.now, kind, step.workload, queue, step.cause, step.beneficiary, round(cost * 1e6), payload,
                     str(plan.now))  # fmt: skip

    def _is_new(self, uid: str, kind: str, what: str, now: int) -> bool:
        """Whether this was not told of a pod lately."""
        name = uid, kind, what
        last = self._told.get(name)
        if last is not None and now - last < AGAIN:
            return False
        if len(self._told) > _MOST:
            self._told.clear()
        self._told[name] = now
        return True

    def _keyed(self, draft: Draft, *parts: object) -> Draft:
        return draft._replace(key=key_of(self.pool, draft.kind, *parts))


_SKIPPED: Final = "another eviction of its set could not be made"
