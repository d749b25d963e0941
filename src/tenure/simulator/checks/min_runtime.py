"""What minimum runtime protects a workload, read off settings and queues (spec: minimum runtime)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.workload import Workload
from tenure.simulator.checks.paths import leaf_of, paths_of

MinRuntime: TypeAlias = Callable[[int, str, int], int]
"""Minimum runtime in µs that protects a job from a cause for a beneficiary (job indices; -1: none)."""


def min_runtime_of(settings: Settings, queues: Sequence[Queue], workloads: Sequence[Workload]) -> MinRuntime:
    """Give the minimum runtime of each job, cause and beneficiary; 0 where none holds."""
    path_of, rule = paths_of(queues), settings.min_runtime

    def of(job: int, cause: str, beneficiary: int) -> int:
        path = path_of.get(leaf_of(workloads[job]), ())
        if cause not in rule.applies_to or _mode(settings, path, cause) == "price":
            return 0
        other = None if beneficiary < 0 or cause == "quota" else leaf_of(workloads[beneficiary])
        if other is not None and other == leaf_of(workloads[job]):
            return _first((q.preempt_min_runtime for q in path), settings.preempt_min_runtime)
        if other is not None and rule.method == "lca":
            above = {queue.name for queue in path_of.get(other, ())}
            beside = [number for number, queue in enumerate(path) if queue.name not in above]
            path = path[max(beside, default=0) :]
        return _first((q.reclaim_min_runtime for q in path), settings.reclaim_min_runtime)

    return of


def _mode(settings: Settings, path: Sequence[Queue], cause: str) -> str:
    own, pool = path[0].min_runtime_mode if path else None, settings.min_runtime.mode
    if own is not None:
        return own
    return pool if isinstance(pool, str) else next((mode for of, mode in pool.items() if of == cause), "shield")


def _first(values: Iterable[int | None], otherwise: int) -> int:
    return next((value for value in values if value is not None), otherwise)
