"""A source that is one cluster: a file, or the newest look at a live cluster."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from heapq import merge, nsmallest
from itertools import accumulate, islice, takewhile

from tenure.history.reading.takers import TAKER_RANKS, Taker
from tenure.model.cluster import DEFAULT_QUEUE, Cluster, Eviction
from tenure.model.values.resources import CPU, GPU
from tenure.model.workload import Phase, Task, Workload
from tenure.web.access.viewer import EVERYTHING, Viewer
from tenure.web.sources.picture import PARTLY, RUNNING, WAITING, Held, Picture, WorkloadLine
from tenure.web.sources.source import (
    EvictionLine,
    StoryLine,
    Trouble,
    UseSeries,
    WaitLine,
)

_HOUR = 3_600_000_000
_RUNS = frozenset({Phase.BOUND, Phase.RUNNING, Phase.TERMINATING})


class StillSource:
    """One cluster, as it is in a file: it knows of the past what its workloads and its eviction log tell."""

    is_live = False
    kind = "file"
    note = "A cluster file knows of the past only what its workloads and its eviction log tell."

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self._picture = Picture.of(cluster)
        self._begin: int | None = None
        self._earlier: tuple[Picture, Picture] | None = None

    @property
    def version(self) -> int:
        """Number of the present state, which stays what it is."""
        return 1

    def picture(self, at: int | None = None) -> Picture:
        """Give the cluster, at an earlier moment without what came or started later."""
        now, known = self._picture, self._earlier
        if at is None or at >= now.now:
            return now
        if known is None or known[0] is not now or known[1].now != at:
            known = self._earlier = now, Picture.of(rewound(now.cluster, at))
        return known[1]

    def span(self) -> tuple[int, int]:
        """Give the first moment of which anything is told, and the cluster's own."""
        if self._begin is None:
            self._begin = _first_told(self._picture.cluster)
        return self._begin, self._picture.now

    def namespaces(self) -> set[str]:
        """Give the namespaces of those that are there, were evicted, or were the reason for it."""
        picture = self._picture
        told = {key for entry in picture.cluster.evictions for key in (entry.workload, entry.beneficiary) if key}
        return {key.partition("/")[0] for key in told} | {
            name for name, states in picture.by_namespace.items() if +states
        }

    def log(self) -> Iterable[EvictionLine]:
        """Give the evictions of the cluster's log."""
        picture = self._picture
        for entry in picture.cluster.evictions:
            yield line_of(entry, picture)

    def story(self, key: str, limit: int, at: int | None = None, viewer: Viewer = EVERYTHING) -> list[StoryLine]:
        """Tell what the cluster knows of a workload's past."""
        picture = self.picture(at)
        workload = picture.workloads.get(key)
        found = [] if workload is None else list(_own(workload))
        for entry in picture.cluster.evictions:
            if entry.workload == key:
                whom = f" for {entry.beneficiary}" if entry.beneficiary else ""
                found.append(StoryLine(entry.at, "evicted", f"{entry.task} was evicted{whom}",
                                       entry.cause, entry.beneficiary))  # fmt: skip
            elif entry.beneficiary == key:
                task = entry.task if viewer.sees(entry.workload) else "a task"
                found.append(StoryLine(entry.at, "made room", f"{task} of {entry.workload} was evicted for it",
                                       entry.cause, entry.workload))  # fmt: skip
        return sorted(found, key=lambda line: line.at)[-limit:]

    def takers(self, key: str, limit: int, at: int | None = None) -> list[Taker]:
        """Give for whom it was evicted, then those that started while it waits, then those that hold most."""
        picture = self.picture(at)
        line = picture.lines.get(key)
        if line is None:
            return []
        evicted = {e.beneficiary: e.cause for e in picture.cluster.evictions if e.workload == key and e.beneficiary}
        wants = line.asked or line.held
        main = GPU if wants.get(GPU) else CPU
        first = nsmallest(limit, (
            (TAKER_RANKS[how], -other.held.get(main, 0), other.key)
            for other in picture.lines.values()
            if other.key != key and (other.held.get(main) or other.key in evicted)
            and (how := _how(line, other, evicted))
        ))  # fmt: skip
        gone = [_gone(whom, cause) for whom, cause in evicted.items() if whom not in picture.lines]
        found = [_taker(line, picture.lines[other], wants, evicted) for *_, other in first]
        return [*gone, *found][:limit]

    def waits(self, viewer: Viewer, limit: int, at: int | None = None) -> list[WaitLine]:
        """Give those that wait or waited longest for their start."""
        picture = self.picture(at)
        now = picture.now
        waiting = takewhile(_waits, picture.in_order("waits", _by_arrival))
        started = takewhile(_started, picture.in_order("started", _by_wait))
        first = merge(
            ((min(0, line.created_at - now), line.key, line) for line in waiting),
            ((-_waited(line), line.key, line) for line in started),
        )
        seen = ((waited, line) for waited, _, line in first if viewer.sees(line.key))
        return [
            WaitLine(line.key, line.queue, line.created_at, None if line.state == WAITING else line.started_at, -waited)
            for waited, line in islice(seen, limit)
        ]

    def series(self, points: int) -> UseSeries | None:
        """Give what those that run now have held since they started; what ended before is not known."""
        picture, (begin, end) = self._picture, self.span()
        main = picture.main
        capacity = picture.nodes.size.get(main, 0)
        if end <= begin or not capacity:
            return None
        moments = [begin + (end - begin) * index // (points - 1) for index in range(points)]
        queues: dict[str, list[int]] = {}
        waiting = [0] * points
        for line in picture.lines.values():
            held = line.held.get(main, 0)
            if not held and line.state != WAITING:
                continue
            start = line.started_at if line.started_at is not None else line.created_at
            came, began = bisect_left(moments, line.created_at), bisect_left(moments, start) if held else points
            _from(waiting, came, 1 if came < began else 0)
            _from(waiting, began, -1 if came < began else 0)
            if began < points:
                _from(queues.setdefault(line.queue, [0] * points), began, held)
        values = {name: _summed(changes) for name, changes in sorted(queues.items())}
        return UseSeries(main, capacity, moments, values, _summed(waiting))

    def troubles(self, at: int | None = None) -> list[Trouble]:  # noqa: ARG002  a file says the same at any time
        """Nothing is wrong with a file that could be read."""
        return []

    def close(self) -> None:
        """Nothing is held."""


def _first_told(cluster: Cluster) -> int:
    """Give the first moment of which a cluster tells anything, an hour before its own where there is none."""
    told = [w.created_at for w in cluster.workloads] + [e.at for e in cluster.evictions]
    told += [w.started_at for w in cluster.workloads if w.started_at is not None]
    known = [at for at in told if 0 < at <= cluster.now]
    return min(known, default=cluster.now - _HOUR)


def _from(changes: list[int], index: int, amount: int) -> None:
    """Note that there is so much more from a moment on."""
    if index < len(changes):
        changes[index] += amount


def _summed(changes: list[int]) -> list[float]:
    return [float(amount) for amount in accumulate(changes)]


def _waits(line: WorkloadLine) -> bool:
    return line.state == WAITING and line.created_at > 0


def _started(line: WorkloadLine) -> bool:
    """Whether one that runs is known to have waited."""
    return line.state in (RUNNING, PARTLY) and line.created_at > 0 and _waited(line) > 0


def _waited(line: WorkloadLine) -> int:
    """Give for how long one that runs has waited, in µs; nothing where nobody knows when it started."""
    return max(0, (line.started_at or line.created_at) - line.created_at)


def _by_arrival(line: WorkloadLine) -> tuple[bool, int, str]:
    return not _waits(line), line.created_at, line.key


def _by_wait(line: WorkloadLine) -> tuple[bool, int, str]:
    return not _started(line), -_waited(line), line.key


def line_of(entry: Eviction, picture: Picture) -> EvictionLine:
    """Give an entry of the eviction log."""
    victim, winner = picture.lines.get(entry.workload), picture.lines.get(entry.beneficiary or "")
    lost = None if entry.lost is None else {name: amount / 1e6 for name, amount in entry.lost.items()}
    return EvictionLine(
        entry.at, entry.workload, entry.queue or (victim.queue if victim else ""), entry.task, entry.cause,
        entry.beneficiary, entry.beneficiary_queue or (winner.queue if winner else None), entry.from_node,
        entry.to_node, lost=lost,
    )  # fmt: skip


def rewound(cluster: Cluster, at: int) -> Cluster:
    """Give a cluster at an earlier moment, as far as it knows: what came later is gone, what started later waits."""
    workloads = tuple(_rewound(w, at) for w in cluster.workloads if w.created_at <= at)
    evictions = tuple(e for e in cluster.evictions if e.at <= at)
    outcomes = tuple(o for o in cluster.outcomes if o.at <= at)
    return replace(cluster, now=at, workloads=workloads, evictions=evictions, outcomes=outcomes)


def _rewound(workload: Workload, at: int) -> Workload:
    tasks = tuple(_back(task, workload.started_at, at) for task in workload.tasks)
    started = workload.started_at if workload.started_at is None or workload.started_at <= at else None
    if started == workload.started_at and all(new is old for new, old in zip(tasks, workload.tasks, strict=True)):
        return workload
    return replace(workload, tasks=tasks, started_at=started, stale_since=None)


def _back(task: Task, workload_start: int | None, at: int) -> Task:
    started = task.started_at if task.started_at is not None else workload_start
    if task.phase not in _RUNS or started is None or started <= at:
        return _untold(task, at)
    return replace(task, phase=Phase.PENDING, node=None, devices=(), nominated=None, notice=None, started_at=None,
                   terminating_since=None)  # fmt: skip


def _untold(task: Task, at: int) -> Task:
    """Give a task that is where it was, without what it was told or promised later, and as long as it did not leave."""
    if task.notice is not None and task.notice.at is not None and task.notice.at > at:
        task = replace(task, notice=None)
    if task.nominated is not None and task.nominated.at and task.nominated.at > at:
        task = replace(task, nominated=None)
    if task.phase is Phase.TERMINATING and task.terminating_since is not None and task.terminating_since > at:
        task = replace(task, phase=Phase.RUNNING, terminating_since=None)
    return task


def _started_with(tasks: int) -> str:
    """Say of how many tasks a workload consists that started; how many of them started at once is not known."""
    return "started" if tasks == 1 else f"started with at most {tasks} tasks"


def _own(workload: Workload) -> Iterable[StoryLine]:
    if workload.created_at:
        yield StoryLine(workload.created_at, "submitted", f"submitted to queue {workload.queue or DEFAULT_QUEUE}")
    if workload.started_at is not None:
        yield StoryLine(workload.started_at, "started", _started_with(len(workload.tasks)))
    for task in workload.tasks:
        if task.notice is not None and task.notice.at is not None:
            yield StoryLine(task.notice.at, "noticed", f"{task.name} was told that it has to go: {task.notice.cause}",
                            task.notice.cause, task.notice.beneficiary)  # fmt: skip
        if task.nominated is not None and task.nominated.at:
            yield StoryLine(
                task.nominated.at, "nominated", f"room on {task.nominated.node} was promised to {task.name}"
            )


def _how(line: WorkloadLine, other: WorkloadLine, evicted: dict[str, str]) -> str:
    """Say how another workload had to do with the wait of one; empty: not at all."""
    if other.key in evicted:
        return "evicted"
    until = None if line.state == WAITING else line.started_at
    if until is not None and (until <= line.created_at or (other.started_at or 0) >= until):
        return ""
    if other.started_at is not None and line.created_at and other.started_at > line.created_at:
        return "overtook" if other.created_at > line.created_at else "started"
    return "holds"


def _taker(line: WorkloadLine, other: WorkloadLine, wants: Held, evicted: dict[str, str]) -> Taker:
    held = {name: amount for name, amount in other.held.items() if name in wants and amount}
    return Taker(other.key, other.queue, _how(line, other, evicted), other.created_at, other.started_at, None, held,
                 evicted.get(other.key, ""))  # fmt: skip


def _gone(whom: str, cause: str) -> Taker:
    return Taker(whom, "", "evicted", 0, None, None, {}, cause)
