"""Rules that workloads obey by themselves and towards queues (spec: workload fields)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from tenure.model.checks.findings import ClusterFinding, Findings
from tenure.model.cluster import DEFAULT_QUEUE, DisruptionBudget
from tenure.model.queue import Queue
from tenure.model.values.problems import NearestNames
from tenure.model.values.report import Path
from tenure.model.workload import Phase, SubGroup, Task, Workload

OWN_SCHEDULER = "tenure"
MOST_LISTED = 8
PLACED = frozenset({Phase.BOUND, Phase.RUNNING, Phase.TERMINATING})
"""Phases in which a task occupies its node."""

_ENDED = frozenset({Phase.SUCCEEDED, Phase.FAILED})


def check_workloads(workloads: Sequence[Workload], queues: Sequence[Queue]) -> Findings:
    """Check names, queues, subgroups and phases."""
    places: dict[str, int] = {}
    parents = {queue.parent for queue in queues}
    known = {queue.name: queue.name not in parents for queue in queues} or {DEFAULT_QUEUE: True}
    leaves = NearestNames([name for name, leaf in known.items() if leaf])
    for index, workload in enumerate(workloads):
        at: Path = ("workloads", index)
        first = places.setdefault(workload.key, index)
        if first != index:
            message = f"workload {workload.key} is there twice, first as workloads[{first}]; give each its own name"
            yield ClusterFinding((*at, "name"), message)
        if workload.scheduler_name == OWN_SCHEDULER:
            yield from _check_queue(workload, at, known, leaves, configured=bool(queues))
        yield from _check_groups(workload, at)
        yield from _check_tasks(workload, at)


def check_budgets(budgets: Sequence[DisruptionBudget]) -> Findings:
    """Check names and bounds of disruption budgets."""
    seen: set[tuple[str, str]] = set()
    for index, budget in enumerate(budgets):
        at: Path = ("disruptionBudgets", index)
        if (budget.namespace, budget.name) in seen:
            yield ClusterFinding(
                (*at, "name"), f"budget {budget.namespace}/{budget.name} is there twice; give each its own name"
            )
        seen.add((budget.namespace, budget.name))
        if (budget.min_available is None) == (budget.max_unavailable is None):
            yield ClusterFinding(at, "needs one of minAvailable and maxUnavailable, and not both")


def _check_queue(
    workload: Workload, at: Path, known: dict[str, bool], names: NearestNames, *, configured: bool
) -> Findings:
    is_leaf = known.get(workload.queue)
    if is_leaf:
        return
    if is_leaf is not None:
        message = f"queue {workload.queue} has queues below it; workloads live in leaf queues only, name one of those"
    elif workload.queue == DEFAULT_QUEUE and configured:
        message = f"names no queue, and there is no leaf queue {DEFAULT_QUEUE}; name one of the leaf queues"
        message += f": {', '.join(islice((name for name, leaf in known.items() if leaf), 5))}"
    else:
        hint = names.hint(workload.queue)
        message = f"there is no queue {workload.queue}{hint or '; add it to queues, or name another'}"
        if not configured:
            message += "; the queues of a YuniKorn queues.yaml are taken by --queues FILE"
    yield ClusterFinding((*at, "queue"), message)


def _check_groups(workload: Workload, at: Path) -> Findings:
    if workload.min_sub_group is not None and workload.min_sub_group > len(workload.sub_groups):
        yield ClusterFinding((*at, "minSubGroup"), _too_few_groups(workload.min_sub_group, len(workload.sub_groups)))
    names: set[str] = set()
    leaves: set[str] = set()
    for group, group_at in _walk(workload.sub_groups, (*at, "subGroups")):
        if group.name in names:
            yield ClusterFinding((*group_at, "name"), f"subgroup {group.name} is there twice; give each its own name")
        names.add(group.name)
        yield from _check_group(group, group_at)
        if not group.sub_groups:
            leaves.add(group.name)
    known, some = NearestNames(leaves), ""
    for index, task in enumerate(workload.tasks):
        if (task.sub_group is None and not names) or task.sub_group in leaves:
            continue
        some = some or _some(leaves)
        yield ClusterFinding((*at, "tasks", index, "subGroup"), _group_message(task, names, known, some))


def _group_message(task: Task, names: set[str], known: NearestNames, some: str) -> str:
    if task.sub_group is None:
        return f"task {task.name} names no subGroup, but its workload has some; name one of {some}"
    if task.sub_group in names:
        return f"subgroup {task.sub_group} has subgroups itself; name one of {some}"
    return f"there is no subgroup {task.sub_group}{known.hint(task.sub_group) or '; add it to subGroups'}"


def _some(names: set[str]) -> str:
    """List names for a message, at most `MOST_LISTED` of them."""
    listed = sorted(names)[:MOST_LISTED]
    return ", ".join(listed) + (", …" if len(names) > MOST_LISTED else "")


def _check_group(group: SubGroup, at: Path) -> Findings:
    if group.sub_groups and group.min_member is not None:
        yield ClusterFinding(
            (*at, "minMember"), "stands beside subGroups; a subgroup has one of the two (and minSubGroup)"
        )
    if group.min_sub_group is not None and group.min_sub_group > len(group.sub_groups):
        yield ClusterFinding((*at, "minSubGroup"), _too_few_groups(group.min_sub_group, len(group.sub_groups)))


def _too_few_groups(wanted: int, there: int) -> str:
    return f"is {wanted}, but there are {there} subGroups; lower it or add some"


def _walk(groups: Sequence[SubGroup], at: Path) -> Iterator[tuple[SubGroup, Path]]:
    for index, group in enumerate(groups):
        yield group, (*at, index)
        yield from _walk(group.sub_groups, (*at, index, "subGroups"))


def _check_tasks(workload: Workload, at: Path) -> Findings:
    names: set[str] = set()
    for index, task in enumerate(workload.tasks):
        if task.name in names:
            yield ClusterFinding(
                (*at, "tasks", index, "name"), f"task {task.name} is there twice; give each its own name"
            )
        names.add(task.name)
        message = _phase_message(task)
        if message:
            yield ClusterFinding((*at, "tasks", index, "phase" if task.node is None else "node"), message)
    members = len(workload.tasks)
    if workload.min_member is not None and workload.min_member > members and not workload.sub_groups:
        there = "is 1 task" if members == 1 else f"are {members} tasks"
        message = f"is {workload.min_member}, but there {there}: it cannot start before more of them exist"
        yield ClusterFinding((*at, "minMember"), message, is_warning=True)


def _phase_message(task: Task) -> str | None:
    if task.phase in _ENDED:
        return None
    if task.phase in PLACED:
        return None if task.node is not None else f"task {task.name} is {task.phase}, but names no node; add node"
    if task.node is not None:
        return (
            f"task {task.name} is {task.phase}, but has a node; leave it out, or promise it as nominated: {{node: …}}"
        )
    return None
