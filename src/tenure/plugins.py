"""What authors of plugins import: the extension points as protocols, and the types that they are given.

A plugin is any object that has a ``name`` and the method of one of these protocols, or of both. It is registered by an
entry point of the group ``tenure.plugins``, which names the object, or a class or function that makes it without
arguments. It can only say no; what it raises, or answers other than True or False, counts as no.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias, runtime_checkable

from tenure.model.settings import Cause
from tenure.model.workload import Workload

__all__ = ["Cause", "PlanValidator", "TaskName", "VictimFilter", "Workload"]

TaskName: TypeAlias = tuple[str, str]
"""Namespace/name of a workload, and the name of one of its tasks."""


@runtime_checkable
class VictimFilter(Protocol):
    """A rule about single victims."""

    name: str

    def allow_victim(self, contender: Workload | None, victim: Workload, cause: Cause, now: int) -> bool:
        """Say whether a workload may be a victim at all.

        Parameters
        ----------
        contender
            The beneficiary; None where there is none (a quota, a drain).
        victim
            The workload that would lose tasks. The rules of the cause and Tenure's own shields agree already.
        cause
            Why it is proposed.
        now
            The time of the cycle, in µs since the epoch; a plugin that reads a clock makes plans that cannot be
            reproduced.
        """


@runtime_checkable
class PlanValidator(Protocol):
    """A rule about finished sets of victims."""

    name: str

    def allow_plan(
        self,
        contender: Workload | None,
        victims: tuple[Workload, ...],
        tasks: tuple[TaskName, ...],
        cause: Cause,
        now: int,
    ) -> bool:
        """Say whether a set may be evicted as a whole.

        Parameters
        ----------
        contender
            The beneficiary; None where there is none.
        victims
            All that would lose tasks, each once.
        tasks
            The tasks that would go.
        cause
            Why it is proposed.
        now
            The time of the cycle, in µs since the epoch.
        """
