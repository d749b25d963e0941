"""What became of a plan: the steps that were carried out, and those that were refused or left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.clusters.kubernetes.read import eviction_log
from tenure.engine.plan import PlanStep


@dataclass(frozen=True, slots=True)
class Failure:
    """A write that was refused: what, of which workload and task, and why."""

    action: str
    workload: str
    task: str
    error: ApiError


class Preparation(NamedTuple):
    """What the pods of a workload wait for before they are bound, with the reason for their condition."""

    reason: str
    message: str


@dataclass(slots=True)
class Outcome:
    """The outcome of a plan: the steps that were carried out, and those that were not.

    ``evicted``: entries of the log of those evictions that the API server granted. ``preparing``: by workload, what
    its pods wait for before they are bound.
    """

    done: list[PlanStep] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    skipped: list[PlanStep] = field(default_factory=list)
    evicted: list[eviction_log.EvictionEntry] = field(default_factory=list)
    preparing: dict[str, Preparation] = field(default_factory=dict)

    def note(self, step: PlanStep, error: ApiError | None) -> None:
        """Note what became of a step: it was refused with an error, or carried out."""
        if error is None:
            self.done.append(step)
        else:
            self.failures.append(Failure(step.action, step.workload, step.task, error))
