"""The roles that pods of one owner play: who of them starts first and leaves last, and which subgroup each is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.model.manifests.workload_kind import OwnerShape
from tenure.model.workload import SubGroup, Task

OTHERS: Final = 2_000_000
"""Order of pods that play none of the roles."""


def in_roles(pods: list[PodRecord], shape: OwnerShape | None) -> tuple[list[PodRecord], tuple[Task, ...]]:
    """Give pods in the order in which they start, and their tasks.

    Of several roles the first named comes first, and what is needed of each comes before what is not. What pods say of
    their order themselves counts instead.

    Parameters
    ----------
    pods
        The pods in the order of their indices and ages.
    shape
        What their owner says of them.
    """
    tasks = [pod.task for pod in pods]
    if any(task.order is not None for task in tasks):
        return pods, tuple(task if task.order is not None else replace(task, order=0) for task in tasks)
    if shape is None or len(shape.roles) < 2 or len(pods) < 2:  # noqa: PLR2004
        return pods, tuple(tasks)
    orders = _orders(pods, shape)
    ranked = sorted(range(len(pods)), key=lambda number: (orders[number], number))
    return [pods[n] for n in ranked], tuple(replace(tasks[n], order=orders[n]) for n in ranked)


def _orders(pods: Sequence[PodRecord], shape: OwnerShape) -> list[int]:
    seen, found = [0] * len(shape.roles), []
    for pod in pods:
        role = shape.role_of(pod.labels)
        if role is None:
            found.append(OTHERS)
            continue
        found.append(shape.order_of(role, seen[role]))
        seen[role] += 1
    return found


def _is_group(shape: OwnerShape, role: int) -> bool:
    return shape.roles[role].replicas > 0 and shape.roles[role].minimum > 0


def in_sub_groups(
    pods: Sequence[PodRecord], tasks: Sequence[Task], shape: OwnerShape
) -> tuple[tuple[Task, ...], tuple[SubGroup, ...]] | None:
    """Give the tasks in subgroups, one for each role; None where roles are none, or a pod plays none of them."""
    groups = shape.as_sub_groups()
    if not groups:
        return None
    playing = [shape.role_of(pod.labels) for pod in pods]
    if any(role is None or not _is_group(shape, role) for role in playing):
        return None
    grouped = tuple(
        replace(task, sub_group=shape.roles[role].name)
        for task, role in zip(tasks, playing, strict=True)
        if role is not None
    )
    return grouped, groups
