"""Nominations: handed on to the pods that replace moved pods, and given up where they do not hold any more.

A pod that is evicted to land elsewhere comes back under another name, if it comes back. Until then a task stands in
for it that has no pod, so that nobody takes its place; once the replacement is there, the promise is written on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tenure.clusters.kubernetes.api import micros
from tenure.clusters.kubernetes.cache.pod_records import BARE, TENURE, PodRecord
from tenure.clusters.kubernetes.read.eviction_log import EvictionEntry
from tenure.clusters.kubernetes.read.workloads import ACTIVE, ObservedWorkload
from tenure.model.workload import Nomination, Notice, Phase, Task

RETURN_WITHIN = 60_000_000
"""µs after the end of its grace period within which a moved pod's replacement is waited for."""

DEFAULT_GRACE = 30_000_000


@dataclass(frozen=True, slots=True)
class ReplacementNomination:
    """A promise to write on the replacement of a pod that was moved."""

    pod: PodRecord
    nomination: Nomination
    replaces: str


@dataclass(slots=True)
class NominationUpdates:
    """The changes of nominations to write beside the plan."""

    landings: list[ReplacementNomination] = field(default_factory=list)
    broken: list[PodRecord] = field(default_factory=list)


def with_promises(
    found: Sequence[ObservedWorkload],
    log: Iterable[EvictionEntry],
    announced: Iterable[EvictionEntry],
    nodes: Collection[str],
    now: int,
    timeout: int,
) -> tuple[list[ObservedWorkload], NominationUpdates]:
    """Let replacements, and what stands in for them, hold the places that were promised when their pods were moved.

    Pods of other schedulers are promised nothing.

    What was announced and never done is under notice whose time is over: it is judged anew before it goes, and until
    then the promise that it is to go for holds.

    Parameters
    ----------
    found
        The workloads.
    log
        The eviction log; those that say where the pod is to land are moves.
    announced
        What stands in the log although its pod is still there.
    nodes
        The names of all nodes.
    now, timeout
        The time, and for how long a promise holds, in µs.
    """
    promises = NominationUpdates()
    moves: dict[str, list[EvictionEntry]] = {}
    for entry in log:
        if entry.to_node in nodes and now <= (micros(entry.at) or 0) + timeout + DEFAULT_GRACE:
            moves.setdefault(entry.workload, []).append(entry)
    made = [
        _landed(m, moves[m.workload.key], now, promises) if m.workload.key in moves and _is_own(m) else m for m in found
    ]
    due = {entry.uid: entry for entry in announced if now <= (micros(entry.at) or 0) + timeout}
    if due:
        made = [_under_notice(m, due, nodes) if _is_own(m) and any(p.uid in due for p in m.pods) else m for m in made]
    return _kept(made, promises, due), promises


def _is_own(made: ObservedWorkload) -> bool:
    return made.workload.scheduler_name == TENURE


def _under_notice(made: ObservedWorkload, due: Mapping[str, EvictionEntry], nodes: Collection[str]) -> ObservedWorkload:
    tasks = list(made.workload.tasks)
    for number, pod in enumerate(made.pods):
        entry = due.get(pod.uid)
        if entry is None or tasks[number].phase not in ACTIVE or tasks[number].notice is not None:
            continue
        at = micros(entry.at) or 0
        notice = Notice(deadline=at, cause=entry.cause, beneficiary=entry.beneficiary, at=at)
        place = Nomination(node=entry.to_node, at=at) if entry.to_node in nodes and entry.to_node else None
        tasks[number] = replace(tasks[number], notice=notice, nominated=place)
    return replace(made, workload=replace(made.workload, tasks=tuple(tasks)))


def _landed(
    made: ObservedWorkload, entries: list[EvictionEntry], now: int, promises: NominationUpdates
) -> ObservedWorkload:
    taken = {pod.replaces for pod in made.pods if pod.replaces}
    leaving = {pod.uid: number for number, pod in enumerate(made.pods) if pod.task.phase is Phase.TERMINATING}
    open_moves = [e for e in sorted(entries, key=lambda e: (e.at, e.uid)) if e.uid not in taken]
    tasks = list(made.workload.tasks)
    waiting = [
        number
        for number, task in enumerate(tasks[: len(made.pods)])
        if task.phase is Phase.PENDING and task.nominated is None
    ]
    extra: list[Task] = []
    for entry in open_moves:
        at = micros(entry.at) or 0
        nomination = Nomination(node=entry.to_node or "", at=at)
        newer = [n for n in waiting if (tasks[n].created_at or 0) >= at // 1_000_000 * 1_000_000]
        if newer:
            number = newer[0]
            waiting.remove(number)
            tasks[number] = replace(tasks[number], nominated=nomination)
            promises.landings.append(ReplacementNomination(made.pods[number], nomination, entry.uid))
        elif entry.uid in leaving:
            number = leaving[entry.uid]
            tasks[number] = replace(tasks[number], nominated=nomination)
        elif made.pods and made.pods[0].kept != BARE and now <= at + DEFAULT_GRACE + RETURN_WITHIN:
            extra.append(_stand_in(tasks, entry, nomination))
    return replace(made, workload=replace(made.workload, tasks=(*tasks, *extra)))


def _stand_in(tasks: Sequence[Task], entry: EvictionEntry, nomination: Nomination) -> Task:
    like = tasks[0]
    order = 0 if like.order is not None else None
    return Task(name=f"{entry.task}.moving", spec=like.spec, phase=Phase.PENDING, nominated=nomination,
                created_at=nomination.at, order=order, sub_group=like.sub_group)  # fmt: skip


def _kept(
    found: Sequence[ObservedWorkload], promises: NominationUpdates, due: Mapping[str, EvictionEntry]
) -> list[ObservedWorkload]:
    """Give up promises for which somebody was to go who has not been sent away after all.

    A promise is written before what goes for it is evicted. Where that did not happen (it was refused, or the process
    ended in between), the place is none, and its workload is planned anew.
    """
    needed = {uid for made in found for pod in made.pods if pod.task.nominated is not None for uid in pod.needs}
    if not needed:
        return list(found)
    staying = {
        pod.uid
        for made in found
        for pod in made.pods
        if pod.uid in needed and pod.uid not in due and pod.task.phase in ACTIVE and pod.task.notice is None
    }
    return [
        _without_promises(m, promises)
        if any(p.task.nominated is not None and not staying.isdisjoint(p.needs) for p in m.pods)
        else m
        for m in found
    ]


def _without_promises(made: ObservedWorkload, promises: NominationUpdates) -> ObservedWorkload:
    """Let a workload wait without a promise: a core is promised whole or not at all."""
    tasks = made.workload.tasks
    for pod, task in zip(made.pods, tasks, strict=False):
        if task.nominated is not None and pod.task.nominated is not None:
            promises.broken.append(pod)
    kept = tuple(replace(t, nominated=None) if t.nominated is not None else t for t in tasks)
    return replace(made, workload=replace(made.workload, tasks=kept))
