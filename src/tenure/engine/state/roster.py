"""The workloads of a session that every cycle asks about, so that no cycle has to go through all of them."""

from __future__ import annotations

from collections import Counter

from tenure.engine.state.workloads import WorkloadState


class Roster:
    """The workloads by what a cycle asks of them; it is kept as they come and go.

    Tenure's own are there by name: ``expecting`` have an expected runtime, or one that cannot be told; ``gangs`` have
    several tasks, or need several; ``unstarted`` are all that run without a known start, and perhaps others.
    ``priorities`` counts all workloads, those of other schedulers as well, by priority.
    """

    __slots__ = ("expecting", "gangs", "priorities", "unstarted")

    def __init__(self) -> None:
        self.expecting: dict[str, WorkloadState] = {}
        self.gangs: dict[str, WorkloadState] = {}
        self.unstarted: dict[str, WorkloadState] = {}
        self.priorities: Counter[int] = Counter()

    def add(self, state: WorkloadState) -> None:
        """Take in a workload whose tasks are where they were found."""
        self.priorities[state.priority] += 1
        if state.leaf < 0:
            return
        if state.expected or state.unclear:
            self.expecting[state.key] = state
        if len(state.tasks) > 1 or state.root.size > 1:
            self.gangs[state.key] = state
        if state.started_at is None and state.occupied():
            self.unstarted[state.key] = state

    def remove(self, state: WorkloadState) -> None:
        """Forget a workload."""
        left = self.priorities[state.priority] - 1
        if left:
            self.priorities[state.priority] = left
        else:
            del self.priorities[state.priority]
        for kept in (self.expecting, self.gangs, self.unstarted):
            kept.pop(state.key, None)
