"""Which members of what waits have to land under one value of a label: required topology, nested as in the workload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tenure.engine.state.session import Session
from tenure.engine.state.workloads import SubgroupState, TaskState, WorkloadState
from tenure.rescheduler.problem.definition import DomainFamily, Ints


@dataclass(frozen=True, slots=True)
class MemberDomains:
    """Members that ask for the same in one group of the problem, domains of its groups, and what groups share."""

    members: list[tuple[int, list[TaskState]]]
    domains: list[Ints]
    families: list[DomainFamily]


def gathered(session: Session, contenders: Sequence[WorkloadState]) -> MemberDomains:
    """Sort the next steps of workloads into groups of the problem.

    Members of one innermost group that requires a topology are one group of the problem. Groups further out that
    require one, around several of these, are families. What is only preferred is left to the scheduler.
    """
    found = MemberDomains([], [], [])
    for workload in contenders:
        assert workload.step is not None
        number: dict[SubgroupState | None, int] = {}
        by_class: dict[tuple[int, int], list[TaskState]] = {}
        for task in workload.step.tasks:
            inner = next(_requiring(task.group), None)
            if inner not in number:
                number[inner] = len(found.domains)
                found.domains.append(_domain(session, inner))
            by_class.setdefault((number[inner], task.cls.id), []).append(task)
        found.members.extend((group, tasks) for (group, _), tasks in by_class.items())
        found.families.extend(_families(session, number))
    return found


def _requiring(group: SubgroupState | None) -> Iterator[SubgroupState]:
    """Groups from one outward that require a topology."""
    while group is not None:
        if group.topology is not None and group.topology.required is not None:
            yield group
        group = group.parent


def _families(session: Session, number: dict[SubgroupState | None, int]) -> Iterator[DomainFamily]:
    inside: dict[SubgroupState, list[int]] = {}
    for inner, group in number.items():
        for outer in _requiring(inner):
            inside.setdefault(outer, []).append(group)
    for outer, groups in inside.items():
        if len(groups) > 1:
            yield DomainFamily(tuple(groups), _domain(session, outer))


def _domain(session: Session, group: SubgroupState | None) -> Ints:
    """Number the nodes by all that a group and those around it require; -1 where they may not be.

    Where some of their tasks are placed already, that is where the others have to be.
    """
    values = np.zeros((len(session.nodes), 0), np.int64)
    open_ = np.ones(len(session.nodes), bool)
    for outer in _requiring(group):
        assert outer.topology is not None
        assert outer.topology.required is not None
        ids, _ = session.nodes.domains.of(outer.topology.required)
        open_ &= ids >= 0
        placed = {
            n for leaf in outer.leaves() for t in leaf.tasks if (n := t.node if t.node >= 0 else t.nominated) >= 0
        }
        if placed:
            open_ &= np.isin(ids, [int(ids[n]) for n in placed])
        values = np.column_stack([values, ids])
    if not values.shape[1]:
        return np.zeros(len(session.nodes), np.int64)
    numbers = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
    return np.where(open_, numbers, -1).astype(np.int64)
