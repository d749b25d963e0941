"""The cluster as the rescheduler sees it beside another scheduler: the other's pods may move, everything else stands.

That scheduler binds them, so what is decided here is who leaves, and where it would land. Tenure's own pods only hold
their room in this view, those under a promise included; the other way round, the other's pods hold theirs in Tenure's.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from tenure.clusters.embedded import EmbeddedCluster
from tenure.engine.plan import Plan
from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.settings import BackgroundSettings, HotNodeSettings, NewNodeSettings, Settings
from tenure.model.workload import Phase, Task, Workload

HOLDING: Final = "tenure-holding"
"""Scheduler of what only holds room in this view."""

_OWN: Final = "tenure"


def external(cluster: Cluster, plan: Plan, contenders: Collection[str] | None = None) -> Cluster:
    """Give the cluster in which pods of `rescheduler.schedulers` are all that may be moved, and all that waits.

    Parameters
    ----------
    cluster
        The cluster.
    plan
        What is done about Tenure's own pods in this cycle: it is taken to have been carried out.
    contenders
        Workloads for which alone room is made, and nothing else is moved; ``None``: all that is due.
    """
    names = frozenset(cluster.settings.rescheduler.schedulers)
    done = EmbeddedCluster(cluster)
    if plan.steps:
        done.carry_out(plan)
    found = done.observe()
    only = contenders is not None
    return replace(
        found,
        now=cluster.now,
        settings=_settings(cluster.settings, only_room=only),
        nodes=tuple(replace(n, drain=False) for n in found.nodes) if only else found.nodes,
        queues=(),
        workloads=tuple(_movable(w, contenders) if w.scheduler_name in names else _holding(w) for w in found.workloads),
    )


def _settings(settings: Settings, *, only_room: bool) -> Settings:
    """Give settings under which only moves are made, at once: the other scheduler knows no promise and no notice."""
    rescheduler = replace(settings.rescheduler, moves="evict-first")
    if only_room:
        rescheduler = replace(
            rescheduler,
            background=BackgroundSettings(),
            hot_nodes=HotNodeSettings(),
            new_nodes=NewNodeSettings(),
        )
    return replace(settings, actions=("reschedule",), eviction_notice=0, rescheduler=rescheduler)


def _movable(workload: Workload, contenders: Collection[str] | None) -> Workload:
    tasks = workload.tasks
    if contenders is not None and workload.key not in contenders:
        tasks = tuple(replace(t, phase=Phase.GATED) if t.phase is Phase.PENDING else t for t in tasks)
    return replace(workload, scheduler_name=_OWN, queue=DEFAULT_QUEUE, eviction_notice=None, tasks=tasks)


def _holding(workload: Workload) -> Workload:
    tasks = tuple(_held(t) for t in workload.tasks)
    return replace(workload, scheduler_name=HOLDING, queue=DEFAULT_QUEUE, tasks=tasks)


def _held(task: Task) -> Task:
    """Let a nominated task hold its place already."""
    if task.phase is not Phase.PENDING or task.nominated is None:
        return task
    return replace(task, phase=Phase.BOUND, node=task.nominated.node, devices=task.nominated.devices, nominated=None)
