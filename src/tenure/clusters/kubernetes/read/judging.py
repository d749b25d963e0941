"""What of the workloads that were made of pods the engine may be given: the judgement of each, and why it is so.

What is wrong with one costs that one: what runs of it stays charged and evictable, what waits waits and says why. A
judgement holds as long as the workload, the nodes, the queues and the namespaces are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.pod_records import TENURE, PodRecord
from tenure.clusters.kubernetes.read.namespaces import Namespaces
from tenure.clusters.kubernetes.read.resource_bounds import ResourceBounds
from tenure.clusters.kubernetes.read.term_bounds import TermBounds
from tenure.clusters.kubernetes.read.workloads import (
    ObservedWorkload,
    charged,
    held,
    salvaged,
    without_waiting,
)
from tenure.model.checks.findings import ClusterFinding
from tenure.model.checks.placement import check_placement
from tenure.model.checks.workloads import check_workloads
from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.values.resources import GPU
from tenure.model.workload import Nomination, Phase, Task

UNKNOWN: Final = "tenure-unknown"
"""Queue of what runs and belongs to none: it is owed nothing, and everybody may take from it."""

UNKNOWN_QUEUE: Final = Queue(name=UNKNOWN, weight=0.0, priority=0)

_FEW: Final = 1_000
"""Workloads beyond which what is known of such as are not looked at any more is forgotten."""


class LeftOut(NamedTuple):
    """Pods that wait and cannot be decided about: the reason for their condition, and what is wrong."""

    pods: tuple[PodRecord, ...]
    reason: str
    message: str


class _Judgement(NamedTuple):
    """What became of a workload as it was made: what is given of it, and what of it is left out."""

    made: ObservedWorkload
    given: ObservedWorkload
    left_out: tuple[LeftOut, ...]


_LeftOutByName = dict[str, list[LeftOut]]


class WorkloadJudge:
    """The judge of workloads. ``tell`` is told what is wrong with an object of a kind.

    ``left_out`` is what waits and was not given in the last look; ``terms`` are the terms that pods ask for.
    """

    def __init__(self, tell: Callable[[str, api.Meta, str], None]) -> None:
        self.terms = TermBounds()
        self.left_out: list[LeftOut] = []
        self._tell = tell
        self._queues: tuple[Queue, ...] = ()
        self._namespaces = Namespaces((), {})
        self._resources = ResourceBounds()
        self._judged: dict[str, _Judgement] = {}

    def begin(
        self, nodes: Iterable[Node], queues: tuple[Queue, ...], namespaces: Namespaces, served: Collection[str]
    ) -> None:
        """Judge all anew, by these nodes and queues; ``served`` are the resources that devices of claims serve."""
        self._queues, self._namespaces, self._judged = queues, namespaces, {}
        known = {name for node in nodes for name in node.allocatable}.union(served)
        self._resources.known = known | {name for queue in queues for name in (*queue.guaranteed, *queue.max)}

    def are_plain(self, found: list[ObservedWorkload], nodes: Mapping[str, Node]) -> list[bool]:
        """Say of each whether nothing about it is left to be found out."""
        if not found:
            return []
        there = {name for made in found for task in made.workload.tasks if (name := task.node) in nodes}
        wrong = self._wrong(found, tuple(nodes[name] for name in sorted(filter(None, there))))
        return [n not in wrong and self._is_plain(made, nodes) for n, made in enumerate(found)]

    def _is_plain(self, made: ObservedWorkload, nodes: Mapping[str, Node]) -> bool:
        own, tasks = made.workload, made.workload.tasks
        return (
            not made.problems
            and own.queue != UNKNOWN
            and not self.terms.is_looked_at(own)
            and on_nodes(made, nodes) is made
            and all(task.nominated is None and task.notice is None for task in tasks)
            and all(pod.gpu_usage is None and pod.task.nominated is None for pod in made.pods)
            and all(name in self._resources.known for task in tasks for name, _ in task.spec.requests)
            and any(task.phase is not Phase.FAILED for task in tasks)
            and self._is_admitted(made)
        )

    def _is_admitted(self, made: ObservedWorkload) -> bool:
        """Whether a workload is for a queue that its namespace may use."""
        own = made.workload
        return own.scheduler_name != TENURE or self._namespaces.may_use(own.queue, own.namespace)

    def sound(self, found: list[ObservedWorkload], nodes: tuple[Node, ...], *, is_all: bool) -> list[ObservedWorkload]:
        """Leave what the engine must not be given: what runs of it stays charged and evictable, what waits waits.

        Of what has not changed it is known, unless all have to be looked at together.
        """
        known = {} if is_all else self._judged
        fresh = [made for made in found if (one := known.get(made.workload.key)) is None or one.made is not made]
        self._judged = {**known, **self._judgements(fresh, nodes)}
        if len(self._judged) > 2 * len(found) + _FEW:
            self._judged = {made.workload.key: self._judged[made.workload.key] for made in found}
        judged = [self._judged[made.workload.key] for made in found]
        self.left_out = [left for one in judged for left in one.left_out]
        found = self.terms.within(self._resources.within([one.given for one in judged]))
        return [made for made in found if any(t.phase is not Phase.FAILED for t in made.workload.tasks)]

    def _judgements(self, found: list[ObservedWorkload], nodes: tuple[Node, ...]) -> dict[str, _Judgement]:
        """Give by name what becomes of workloads that were not looked at as they are now."""
        if not found:
            return {}
        for made in found:
            for line in made.problems:
                self._complain(made, line)
        left_out: dict[str, list[LeftOut]] = {}
        given = [made if self._is_admitted(made) else self._refused(made, left_out) for made in found]
        wrong = self._wrong(given, nodes)
        if wrong:
            given = [self._mended(made, wrong[n], left_out) if n in wrong else made for n, made in enumerate(given)]
            still = self._wrong(given, nodes)
            given = [held(made, still[n].message) if n in still else made for n, made in enumerate(given)]
        return {
            made.workload.key: _Judgement(made, one, tuple(left_out.get(made.workload.key, ())))
            for made, one in zip(found, given, strict=True)
        }

    def _wrong(self, found: list[ObservedWorkload], nodes: tuple[Node, ...]) -> dict[int, ClusterFinding]:
        """Give by number what is wrong with workloads; of several things the first.

        Of two that say that they hold one device it is the one that has it on record which holds it.
        """
        wrong: dict[int, ClusterFinding] = {}
        order = sorted(range(len(found)), key=lambda n: not _is_on_record(found[n]))
        workloads = [found[n].workload for n in order]
        queues = (*self._queues, UNKNOWN_QUEUE) if self._queues else ()
        for checked in (check_workloads(workloads, queues), check_placement(nodes, workloads)):
            for finding in checked:
                if not finding.is_warning and finding.path[0] == "workloads":
                    wrong.setdefault(order[int(finding.path[1])], finding)
        return wrong

    def _mended(self, made: ObservedWorkload, problem: ClusterFinding, left_out: _LeftOutByName) -> ObservedWorkload:
        """Give what can be decided about of a workload in which something is wrong."""
        reason = "QueueUnknown" if problem.path[-1] == "queue" else "Invalid"
        self._leave_out(made, reason, problem.message, left_out)
        if made.workload.scheduler_name != TENURE:
            return held(made, problem.message)
        return salvaged(made, problem.message, _charged_queue(made, self._queues, self._namespaces))

    def _refused(self, made: ObservedWorkload, left_out: _LeftOutByName) -> ObservedWorkload:
        """Let wait what is for a queue that its namespace may not use; what was bound there stays."""
        own = made.workload
        message = f"namespace {own.namespace} may not use queue {own.queue}: its namespaceSelector does not admit it"
        self._leave_out(made, "QueueRefused", message, left_out)
        if charged(made.pods):
            return without_waiting(made)
        return salvaged(made, message, _charged_queue(made, self._queues, self._namespaces))

    def _complain(self, made: ObservedWorkload, message: str) -> None:
        """Tell of something that is wrong with a workload, on the first of its pods."""
        if made.pods:
            first = made.pods[0]
            self._tell("Pod", api.Meta(first.name, first.namespace, first.uid), message)

    def _leave_out(self, made: ObservedWorkload, reason: str, message: str, left_out: _LeftOutByName) -> None:
        self._complain(made, message)
        waiting = tuple(p for p in made.pods if p.task.phase is Phase.PENDING and p.scheduler == TENURE)
        left_out.setdefault(made.workload.key, []).append(LeftOut(waiting, reason, message))


def _charged_queue(made: ObservedWorkload, queues: Sequence[Queue], namespaces: Namespaces) -> str:
    """Give the leaf queue that what runs of a workload is charged to: the last valid one, else a last resort."""
    if not queues:
        return DEFAULT_QUEUE
    parents = {q.parent for q in queues}
    leaves = {q.name for q in queues} - parents
    own = made.workload
    stated = own.queue if namespaces.may_use(own.queue, own.namespace) else ""
    return next((name for name in (charged(made.pods), stated, DEFAULT_QUEUE) if name in leaves), UNKNOWN)


def _is_on_record(made: ObservedWorkload) -> bool:
    """Whether all pods of a workload that hold devices have them on record."""
    return all(pod.sealed is not None and pod.sealed.is_bound for pod in made.pods if pod.task.devices)


def on_nodes(made: ObservedWorkload, nodes: Mapping[str, Node]) -> ObservedWorkload:
    """Leave out tasks on nodes that are not there, and nominations to such, or to devices that they do not have.

    A task that runs keeps its whole GPUs, by their number alone, where its node has fewer for a while: the plugin of a
    driver that starts anew takes all of them away.
    """
    tasks = made.workload.tasks
    if all((t.node is None or _is_there(t, nodes)) and _can_be(t.nominated, nodes) for t in tasks):
        return made
    kept, pods = [], []
    for number, task in enumerate(tasks):
        if task.node is not None and task.node not in nodes:
            continue
        one = task if _can_be(task.nominated, nodes) else replace(task, nominated=None)
        kept.append(one if task.node is None or _is_there(task, nodes) else replace(one, devices=()))
        if number < len(made.pods):
            pods.append(made.pods[number])
    return ObservedWorkload(replace(made.workload, tasks=tuple(kept)), tuple(pods), made.problems)


def _is_there(task: Task, nodes: Mapping[str, Node]) -> bool:
    """Whether the node of a placed task is there, with the GPUs that it holds as a whole."""
    node = nodes.get(task.node or "")
    if node is None or not task.devices or task.spec.gpu_share is not None:
        return node is not None
    return max(task.devices) < node.allocatable.get(GPU, 0)


def _can_be(nominated_tasks: Nomination | None, nodes: Mapping[str, Node]) -> bool:
    if nominated_tasks is None:
        return True
    node = nodes.get(nominated_tasks.node)
    return node is not None and all(0 <= d < node.allocatable.get(GPU, 0) for d in nominated_tasks.devices)
