"""Nominations: handed on to the pods that replace moved pods, and given up where they do not hold any more.

A pod that is evicted to land elsewhere comes back under another name, if it comes back. Until then a task stands in
for it that has no pod, so that nobody takes its place; once the replacement is there, the promise is written on it. One
that is newer than the move and runs where that led is the replacement, whether or not a promise was written on it.
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
    moves = [e for e in log if e.to_node in nodes and now <= (micros(e.at) or 0) + timeout + DEFAULT_GRACE]
    made = _all_landed(found, moves, now, promises) if moves else list(found)
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


def _all_landed(
    found: Sequence[ObservedWorkload], moves: Iterable[EvictionEntry], now: int, promises: NominationUpdates
) -> list[ObservedWorkload]:
    """Hand the moves of each workload on; where each pod of an owner is one, those of all its pods together."""
    made, entries = list(found), dict[tuple[str, ...], list[EvictionEntry]]()
    for entry in moves:
        namespace = entry.workload.partition("/")[0]
        places: tuple[tuple[str, ...], ...] = ((entry.workload,), (namespace, entry.workload_uid))
        for whose in places:
            entries.setdefault(whose, []).append(entry)
    returning: dict[tuple[str, ...], list[int]] = {}
    for number, one in enumerate(found):
        whose = _returns_as(one)
        if whose in entries and _is_own(one):
            returning.setdefault(whose, []).append(number)
    for whose, numbers in returning.items():
        landed = _landed([made[n] for n in numbers], entries[whose], now, promises)
        for number, one in zip(numbers, landed, strict=True):
            made[number] = one
    return made


def _returns_as(made: ObservedWorkload) -> tuple[str, ...]:
    """Give by what the replacements of a workload's pods are known: its name, or its owner where pods are workloads."""
    pod = made.pods[0] if made.pods else None
    if pod is not None and pod.owners.links and pod.group[1] == pod.name and made.workload.uid:
        return made.workload.namespace, made.workload.uid
    return (made.workload.key,)


def _landed(
    found: Sequence[ObservedWorkload], entries: list[EvictionEntry], now: int, promises: NominationUpdates
) -> list[ObservedWorkload]:
    pods = {(w, n): pod for w, made in enumerate(found) for n, pod in enumerate(made.pods)}
    tasks = [list(made.workload.tasks) for made in found]
    taken = {pod.replaces for pod in pods.values() if pod.replaces}
    leaving = {pod.uid: at for at, pod in pods.items() if pod.task.phase is Phase.TERMINATING}
    waiting = [(w, n) for w, n in pods if tasks[w][n].phase is Phase.PENDING and tasks[w][n].nominated is None]
    landed = [(w, n) for (w, n), pod in pods.items() if tasks[w][n].phase in ACTIVE and not pod.replaces]
    for entry in sorted(entries, key=lambda e: (e.at, e.uid)):
        if entry.uid in taken:
            continue
        at = micros(entry.at) or 0
        there = [(w, n) for w, n in landed if tasks[w][n].node == entry.to_node and _is_newer(tasks[w][n], at)]
        if there:
            landed.remove(there[0])
            continue
        nomination = Nomination(node=entry.to_node or "", at=at)
        newer = [(w, n) for w, n in waiting if _is_newer(tasks[w][n], at)]
        if newer:
            waiting.remove(newer[0])
            _nominate(tasks, newer[0], nomination)
            promises.landings.append(ReplacementNomination(pods[newer[0]], nomination, entry.uid))
        elif entry.uid in leaving:
            _nominate(tasks, leaving[entry.uid], nomination)
        elif pods and found[0].pods[0].kept != BARE and now <= at + DEFAULT_GRACE + RETURN_WITHIN:
            tasks[0].append(_stand_in(tasks[0], entry, nomination))
    return [
        replace(made, workload=replace(made.workload, tasks=tuple(now_so)))
        for made, now_so in zip(found, tasks, strict=True)
    ]


def _is_newer(task: Task, at: int) -> bool:
    """Whether a pod was created after a move, by a clock of whole seconds."""
    return (task.created_at or 0) >= at // 1_000_000 * 1_000_000


def _nominate(tasks: list[list[Task]], at: tuple[int, int], nomination: Nomination) -> None:
    workload, number = at
    tasks[workload][number] = replace(tasks[workload][number], nominated=nomination)


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
