"""What stands on pods besides where they run: that they are to go, and that room is promised to them, as records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.engine.plan import Plan, PlanStep
from tenure.history.record import Draft, key_of, payload_of
from tenure.model.workload import Phase

HELD: Final = (Phase.BOUND, Phase.RUNNING)
_MOST: Final = 100_000

Pods = tuple[PodRecord, ...]


class PodNotes:
    """Makes the records; ``pool`` stands in their keys."""

    def __init__(self, pool: str) -> None:
        self.pool = pool
        self._steps: dict[tuple[str, str], PlanStep] = {}

    def hear(self, plan: Plan) -> None:
        """Keep what plans say of notices until the pods show them."""
        for step in plan.steps:
            if step.action == "notice":
                self._steps[step.workload, step.task] = step
        if len(self._steps) > _MOST:
            self._steps.clear()

    def notices(self, key: str, queue: str, old: Mapping[str, PodRecord], pods: Pods, now: int) -> Iterator[Draft]:
        """Give who was told to go, and who may stay."""
        for pod in pods:
            told, before = pod.task.notice, old.get(pod.uid)
            was = None if before is None else before.task.notice
            if was is not None and (told is None or told.at != was.at) and not pod.is_going:
                at = now
                payload = payload_of(task=pod.name, noticedAt=was.at, uid=pod.uid)
                gone = Draft(at, "withdrawn", key, queue, was.cause, was.beneficiary, 0, payload, str(at))
                yield self._keyed(gone, pod.uid, was.at)
            if told is not None and (was is None or told.at != was.at):
                step = self._steps.pop((key, pod.name), None)
                at = now if told.at is None else told.at
                payload = payload_of(
                    task=pod.name, node=pod.task.node, deadline=told.deadline, uid=pod.uid,
                    reason=None if step is None else step.reason,
                )  # fmt: skip
                cost = 0 if step is None else round(step.cost * 1e6)
                draft = Draft(at, "noticed", key, queue, told.cause, told.beneficiary, cost, payload, str(at))
                yield self._keyed(draft, pod.uid, at)

    def promises(
        self, whose: tuple[str, str, str], old: Mapping[str, PodRecord], pods: Pods, now: int
    ) -> Iterator[Draft]:
        """Give nominations that came, and those that went: bound there, or given up. ``whose``: name, uid, queue."""
        key, uid, queue = whose
        new: dict[int, list[PodRecord]] = {}
        ends: dict[tuple[int, str], list[PodRecord]] = {}
        for pod in pods:
            before = old.get(pod.uid)
            was = before.task.nominated if before is not None and before.task.phase is Phase.PENDING else None
            told = pod.task.nominated if pod.task.phase is Phase.PENDING else None
            if told is not None and (was is None or was.at != told.at):
                new.setdefault(told.at, []).append(pod)
            if was is not None and (told is None or was.at != told.at):
                how = "bound" if pod.task.phase in HELD else "moved" if told is not None else "expired"
                ends.setdefault((was.at, how), []).append(pod)
        for (at, how), some in ends.items():
            payload = payload_of(how=how, tasks=[pod.name for pod in some])
            yield self._keyed(Draft(now, "nomination-ended", key, queue, payload=payload, plan=str(at)), uid, at, how)
        for at, some in new.items():
            tasks = [[p.name, p.task.nominated.node, list(p.task.nominated.devices)] for p in some if p.task.nominated]
            draft = Draft(at, "nominated", key, queue, payload=payload_of(tasks=tasks), plan=str(at))
            yield self._keyed(draft, uid, at)

    def _keyed(self, draft: Draft, *parts: object) -> Draft:
        return draft._replace(key=key_of(self.pool, draft.kind, *parts))
