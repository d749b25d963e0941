"""What plans tell that no log of events does: reasons, nominations, refusals that last, quota, and shadow."""

from __future__ import annotations

from collections.abc import Iterator

from tenure.engine.plan import EVICTING, Plan, Refused
from tenure.history.record import Draft, payload_of

HELD_LONG = 600_000_000
"""A refusal that holds somebody for so long (µs) is worth a record."""


class PlanChronicle:
    """Makes records of plans, cycle by cycle. It remembers who was refused since when, and what was promised."""

    def __init__(self) -> None:
        self.refused: dict[tuple[str, str, str], int] = {}
        self.told: set[tuple[str, str, str]] = set()
        self.nominated_tasks: dict[tuple[str, int], str] = {}

    def silent(self, plan: Plan) -> bool:
        """Whether a plan has nothing to tell but its steps, and they take nothing back that was promised."""
        told = plan.refused or plan.shadow or plan.quota_events or plan.expired
        return not (told or self.nominated_tasks or self.refused)

    def records(self, plan: Plan) -> Iterator[Draft]:
        """Give the records of a cycle other than those of starts and evictions."""
        name = str(plan.now)
        yield from self._nominations(plan)
        for step in plan.shadow:
            yield Draft(
                plan.now, "shadow", step.workload, None, step.cause, step.beneficiary, round(step.cost * 1e6),
                payload_of(task=step.task, node=step.node, to=step.to, reason=step.reason), name,
            )  # fmt: skip
        for event in plan.quota_events:
            payload = payload_of(deadline=event.deadline, tasks=event.tasks or None)
            yield Draft(
                plan.now, f"quota-{event.kind}", None, event.queue, "quota", None, round(event.cost * 1e6), payload,
                name,
            )  # fmt: skip
        yield from self._held(plan)

    def _nominations(self, plan: Plan) -> Iterator[Draft]:
        nominated_tasks: dict[str, list[list[object]]] = {}
        for step in plan.steps:
            place = step.workload, step.task_index
            if step.action == "nominate":
                if self.nominated_tasks.get(place) != step.node:
                    self.nominated_tasks[place] = step.node
                    nominated_tasks.setdefault(step.workload, []).append([step.task, step.node, list(step.devices)])
            elif step.action == "bind" and self.nominated_tasks:
                self.nominated_tasks.pop(place, None)
        for workload, tasks in nominated_tasks.items():
            yield Draft(plan.now, "nominated", workload, payload=payload_of(tasks=tasks), plan=str(plan.now))
        for key in sorted({key for key, _ in plan.expired}):
            for place in [p for p in self.nominated_tasks if p[0] == key]:
                del self.nominated_tasks[place]
            yield Draft(plan.now, "nomination-ended", key, payload=payload_of(how="expired"), plan=str(plan.now))

    def _held(self, plan: Plan) -> Iterator[Draft]:
        if not plan.refused and not self.refused:
            return
        there: dict[tuple[str, str, str], Refused] = {}
        for refusal in plan.refused:
            there.setdefault((refusal.beneficiary or "", refusal.workload, refusal.shield), refusal)
        self.refused = {key: self.refused.get(key, plan.now) for key in there}
        self.told &= self.refused.keys()
        for key, since in self.refused.items():
            if plan.now - since >= HELD_LONG and key not in self.told:
                self.told.add(key)
                refusal = there[key]
                payload = payload_of(
                    victim=refusal.workload, shield=refusal.shield, until=refusal.until, since=since,
                    message=refusal.message or None,
                )  # fmt: skip
                yield Draft(
                    plan.now, "held", refusal.beneficiary, None, refusal.cause, refusal.beneficiary, 0, payload,
                    str(plan.now),
                )  # fmt: skip


def reasons_of(plan: Plan) -> dict[tuple[str, int, str], tuple[str, float, str | None]]:
    """Give by workload, number of the task and action what a plan says of evictions: reason, cost, landing place."""
    return {(s.workload, s.task_index, s.action): (s.reason, s.cost, s.to) for s in plan.steps if s.action in EVICTING}
