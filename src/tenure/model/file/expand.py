"""From the entries of a file to nodes, workloads and tasks: ``count``, ``replicas``, inherited requests, defaults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.entries import SHARE_ATTRIBUTES, EntryValues
from tenure.model.node import Node
from tenure.model.values.report import ProblemReport, Trail
from tenure.model.values.resources import GPU, MILLI
from tenure.model.workload import GpuShare, Phase, Task, TaskSpec, Workload

MAX_NODES = 100_000
MAX_TASKS = 300_000
"""So many nodes and tasks may come out of one file: a slip of the finger must not exhaust memory.

Kubernetes itself is made for 5,000 nodes and 150,000 pods.
"""

_SPEC_ATTRIBUTES = frozenset({entry.name for entry in fields(TaskSpec)} | set(SHARE_ATTRIBUTES)) - {
    "gpu_share",
    "mounts",
    "device_uses",
    "counted",
    "extended",
}


@dataclass(slots=True)
class Expanded:
    """The nodes, workloads and tasks that entries became, and for each node and workload where it stood.

    ``task_rows`` has, for workloads whose tasks were put in another order, the place at which each was listed.
    """

    nodes: list[Node] = field(default_factory=list)
    node_trails: list[Trail] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)
    workload_trails: list[Trail] = field(default_factory=list)
    task_rows: dict[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class TaskCount:
    """How many tasks a file has made so far; its documents share one."""

    tasks: int = 0


class Expander:
    """The maker of nodes and workloads.

    Equal specs become one object, so that equal tasks are recognised by identity.
    """

    def __init__(self, report: ProblemReport, now: int, made: TaskCount | None = None) -> None:
        self._report = report
        self._now = now
        self._specs: dict[TaskSpec, TaskSpec] = {}
        self._known: dict[tuple[frozenset[Any], frozenset[Any]], TaskSpec] = {}
        """What came out for what a workload and one of its tasks ask for, where nothing was wrong with that."""
        self._made = made or TaskCount()
        self.result = Expanded()

    def add_nodes(self, entries: Iterable[EntryValues]) -> None:
        """Add nodes; ``count: n`` makes ``name-0`` … ``name-(n-1)``, but 1 keeps the name."""
        result = self.result
        for at, values in entries:
            count = values.pop("count", 1)
            if len(result.nodes) + count > MAX_NODES:
                self._report.add((at, "count"), f"makes more than {MAX_NODES:,} nodes of this file; lower it")
                continue
            node = Node(**values)
            result.nodes += [replace(node, name=f"{node.name}-{i}") for i in range(count)] if count > 1 else [node]
            result.node_trails += [at] * count

    def add_workloads(self, entries: Iterable[EntryValues]) -> None:
        """Add workloads."""
        for entry in entries:
            workload, rows = self._workload(entry)
            if rows is not None:
                self.result.task_rows[len(self.result.workloads)] = rows
            self.result.workloads.append(workload)
            self.result.workload_trails.append(entry.at)

    def _workload(self, entry: EntryValues) -> tuple[Workload, tuple[int, ...] | None]:
        at, values = entry
        listed: tuple[EntryValues, ...] | None = values.pop("tasks", None)
        replicas = values.pop("replicas", 1 if listed is None else len(listed))
        phase = values.pop("phase", Phase.PENDING)
        asked = {name: values.pop(name) for name in _SPEC_ATTRIBUTES & values.keys() if name != "labels"}
        if "labels" in values:
            asked["labels"] = tuple(sorted(values["labels"].items()))
        values.setdefault("created_at", self._now)
        values["queue"] = values.get("queue") or DEFAULT_QUEUE
        tasks = self._tasks(listed or (), asked, at, phase)
        tasks += self._replicas(values["name"], tasks, replicas, asked, at, phase)
        ordered, rows = _in_order(tasks)
        return Workload(**values, tasks=tuple(ordered)), rows

    def _tasks(self, entries: Sequence[EntryValues], asked: dict[str, Any], at: Trail, phase: Phase) -> list[Task]:
        tasks: list[Task] = []
        base = frozenset(asked.items())
        if not self.takes(len(entries), (at, "tasks")):
            return tasks
        for task_at, values in entries:
            own = {name: values.pop(name) for name in _SPEC_ATTRIBUTES & values.keys()}
            key = (base, frozenset(own.items()))
            spec = self._known.get(key)
            if spec is None:
                problems = len(self._report.problems)
                spec = self.spec(_inherit(asked, own), task_at if own else at)
                if len(self._report.problems) == problems:
                    self._known[key] = spec
            if "phase" not in values:
                values["phase"] = Phase.RUNNING if values.get("node") else phase
            tasks.append(Task(**values, spec=spec))
        return tasks

    def _replicas(
        self, name: str, listed: list[Task], replicas: int, asked: dict[str, Any], at: Trail, phase: Phase
    ) -> list[Task]:
        """Make the tasks that are not listed: ``name-i`` for the lowest ``i`` that no listed task has."""
        missing = replicas - len(listed)
        if missing < 0:
            self._report.add(
                (at, "replicas"), f"is {replicas}, but {len(listed)} tasks are listed; raise it or leave it out"
            )
        if missing <= 0:
            return []
        if not self.takes(missing, (at, "replicas")):
            return []
        spec = self.spec(asked, at)
        taken = {task.name for task in listed}
        names = (made for i in range(replicas + len(listed)) if (made := f"{name}-{i}") not in taken)
        return [Task(name=made, spec=spec, phase=phase) for made, _ in zip(names, range(missing), strict=False)]

    def takes(self, more: int, at: Trail) -> bool:
        """Count tasks that an entry makes; it is told, and none is counted, where they would be too many."""
        if self._made.tasks + more > MAX_TASKS:
            self._report.add(at, f"makes more than {MAX_TASKS:,} tasks of this file; lower it")
            return False
        self._made.tasks += more
        return True

    def spec(self, asked: dict[str, Any], at: Trail) -> TaskSpec:
        """Make a spec of what is asked for, or find the equal one that is there already."""
        plain = {name: value for name, value in asked.items() if name not in SHARE_ATTRIBUTES}
        spec = TaskSpec(**plain, gpu_share=self._share(asked, at))
        return self._specs.setdefault(spec, spec)

    def _share(self, asked: dict[str, Any], at: Trail) -> GpuShare | None:
        milli, memory, devices = (asked.get(name) for name in SHARE_ATTRIBUTES)
        if milli is None and memory is None:
            if devices is not None:
                self._report.add(
                    (at, "gpuDevices"), "says of how many GPUs a part is asked; add gpuFraction or gpuMemory"
                )
            return None
        problem = _share_problem(milli, memory, dict(asked.get("requests", ())).get(GPU, 0))
        if problem:
            self._report.add((at, "gpuMemory" if milli is None else "gpuFraction"), problem)
            return None
        return GpuShare(milli=milli or 0, memory=memory or 0, devices=devices or 1)


def _share_problem(milli: int | None, memory: int | None, whole: int) -> str | None:
    if milli is not None and memory is not None:
        return "stands beside gpuMemory; keep one of the two"
    if whole:
        return f"stands beside {GPU} in requests; ask for whole GPUs or for a part, not both"
    if milli is not None and not 0 < milli <= MILLI:
        return (
            f"is {milli}m, but a part of one GPU is 1m to 1000m; for more of them add gpuDevices, or {GPU} to requests"
        )
    if memory == 0:
        return "is 0, but GPU memory of more than 0 is expected"
    return None


def _inherit(asked: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Join what a workload asks for each of its tasks with what one of them asks itself.

    The task's own wins, as a whole, for each field; what it says of GPUs replaces all that the workload says of them.
    """
    joined = {**asked, **own}
    if "gpu_fraction" in own or "gpu_memory" in own:
        for name in SHARE_ATTRIBUTES:
            if name not in own:
                joined.pop(name, None)
        if "requests" not in own and "requests" in asked:
            joined["requests"] = tuple(pair for pair in asked["requests"] if pair[0] != GPU)
    elif any(resource == GPU for resource, _ in own.get("requests", ())):
        for name in SHARE_ATTRIBUTES:
            joined.pop(name, None)
    return joined


def _in_order(tasks: list[Task]) -> tuple[list[Task], tuple[int, ...] | None]:
    """Sort tasks by ``order``. Where some have one, the place in the list becomes the order of the others."""
    if all(task.order is None for task in tasks):
        return tasks, None
    ordered = [task if task.order is not None else replace(task, order=i) for i, task in enumerate(tasks)]
    rows = sorted(range(len(ordered)), key=lambda i: ordered[i].order or 0)
    return [ordered[i] for i in rows], tuple(rows)
