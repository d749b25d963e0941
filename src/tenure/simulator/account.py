"""The account of a simulation while it runs: what evictions lost, and what their beneficiaries had of it.

It goes once through the log, event by event, and knows nothing of what is still to come: when a beneficiary would have
started without is estimated at its first eviction, from the ends that are expected then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from tenure.engine.otherwise import RoomOverTime
from tenure.model.amounts import Holder, weighted
from tenure.model.cluster import Cluster, EvictionOutcome
from tenure.model.settings import PATIENT_CAUSES
from tenure.model.workload import Task, Workload
from tenure.shields.breaker import ClosedAccount, gathered
from tenure.simulator.log import BIND, DROP, END, EVICT, NOTICE, Event, EventLog, EvictionDetails, NoticeDetails


@dataclass(slots=True)
class _OpenAccount:
    """What was evicted for a job, as long as it is not known what it has of it; ``lost`` as costs are counted.

    ``evicted``: it was carried out, though it may have lost nothing, and not only announced. ``estimated`` is when the
    job would have started otherwise (µs of the log), None where that is unknown. ``closed``: what was told of it.
    """

    cause: str
    estimated: int | None
    lost: int = 0
    evicted: bool = False
    closed: ClosedAccount | None = None


class _Leaving(NamedTuple):
    """A task that was evicted, and until when (µs of the log) its time counts as lost, on whose account."""

    until: int
    task: int
    node: int
    account: _OpenAccount


@dataclass(slots=True)
class _Run:
    """A run of a job: its tasks on nodes, each with since when, and all that were bound since it ``began``.

    ``since`` is when its core was there; None: it still waits for it. ``account``: what was evicted for that.
    """

    began: int
    active: dict[int, int] = field(default_factory=dict)
    bound: dict[int, int] = field(default_factory=dict)
    since: int | None = None
    account: _OpenAccount | None = None


class RunningAccount:
    """Keeps the account. Times of the log are µs since its start."""

    def __init__(self, cluster: Cluster, log: EventLog) -> None:
        self.log, self.origin = log, cluster.now
        self.window = cluster.settings.worth.breaker.window
        self.prices = cluster.settings.disruption.cost
        specs = [task.spec for workload in log.workloads for task in workload.tasks]
        self.holder = Holder(specs, cluster.nodes, cluster.settings)
        self.room = RoomOverTime(cluster.nodes, self.holder.resources)
        self.runs: dict[int, _Run] = {}
        self.waiting: dict[int, _OpenAccount] = {}
        self.running: dict[int, _OpenAccount] = {}
        self.leaving: dict[int, list[_Leaving]] = {}
        self.closed: list[ClosedAccount] = []
        self._read = 0

    def outcomes(self, now: int) -> tuple[EvictionOutcome, ...]:
        """Give what became known until ``now`` (µs since the epoch), as far as it counts."""
        self._read_on()
        self.closed = [one for one in self.closed if one.at > now - self.window]
        return gathered(self.closed, self.window)

    def _read_on(self) -> None:
        new = self.log.events[self._read :]
        self._read += len(new)
        for (kind, job, at), group in groupby(new, lambda e: (e[0], e[2], e[1])):
            events = list(group)
            if kind == BIND:
                self._bind(job, at, events)
            elif kind == END:
                self._leave(job, at, (event[3] for event in events))
                self._end(job, at)
            elif kind in {EVICT, NOTICE}:
                self._give_way(job, at, events)
            elif kind == DROP and job in self.waiting:
                self._close(job, self.waiting.pop(job), at, 0)

    def _bind(self, job: int, at: int, events: Sequence[Event]) -> None:
        run, model = self.runs.setdefault(job, _Run(at)), self.log.workloads[job]
        for _, _, _, task, node, _ in events:
            run.active[task], run.bound[task] = at, node
            self.room.occupy(job, task, node, self.holder.asked(model.tasks[task].spec, node))
        if run.since is None and len(run.active) >= model.least:
            self._start(job, run, at)

    def _start(self, job: int, run: _Run, at: int) -> None:
        run.since, runtime = at, self.log.workloads[job].expected_runtime
        if runtime:
            self.room.ends[job] = at + runtime
        run.account = account = self.waiting.pop(job, None)
        if account is None:
            return
        if account.estimated is None:
            self.running[job] = account  # it is known when it ends what it had of it
        else:
            self._close(job, account, at, max(0, account.estimated - at))

    def _leave(self, job: int, at: int, tasks: Iterable[int]) -> None:
        run = self.runs[job]
        for task in tasks:
            del run.active[task]
            self.room.leave(job, task)
        if not run.active:
            account = self.running.pop(job, None)
            if account is not None:
                self._close(job, account, at, 0 if run.since is None else at - run.since)
            self.room.ends.pop(job, None)
            del self.runs[job]

    def _give_way(self, job: int, at: int, events: Sequence[Event]) -> None:
        """Tasks of a job are evicted, or told that they will be."""
        model = self.log.workloads[job]
        for _, _, _, task, whom, said in events:
            assert isinstance(said, (EvictionDetails, NoticeDetails))
            account = self._account(whom, said.cause, at)
            if isinstance(said, EvictionDetails):
                if account is not None:
                    _note_carried_out(self.closed, account)
                    run = self.runs[job]
                    time = _lost_time(model, run.began, run.active[task], at, said)
                    _lose(self.closed, account, self._held(model.tasks[task], run.bound[task], time))
                    if said.leaves_at > at:
                        self.leaving.setdefault(job, []).append(
                            _Leaving(said.leaves_at, task, run.bound[task], account)
                        )
                self._leave(job, at, (task,))

    def _end(self, job: int, at: int) -> None:
        """With its job the last evicted task is gone: what it would have lost until it left counts no more."""
        model = self.log.workloads[job]
        for leaving in self.leaving.pop(job, ()):
            less = self._held(model.tasks[leaving.task], leaving.node, max(0, leaving.until - at))
            _lose(self.closed, leaving.account, -less)

    def _account(self, job: int, cause: str, at: int) -> _OpenAccount | None:
        """Give the account of a job that something is taken for; None if it runs, and grows.

        What is taken when it has just started, at that instant, belongs to its start.
        """
        run = self.runs.get(job)
        if job < 0:
            return None
        if run is not None and run.since is not None:
            return run.account if run.since == at else None
        if job not in self.waiting:
            self.waiting[job] = _OpenAccount(cause, self._estimate(job, at))
        return self.waiting[job]

    def _estimate(self, job: int, at: int) -> int | None:
        """Say when a job would start if nothing were evicted; None where that is unknown."""
        model = self.log.workloads[job]
        ask: dict[tuple[int, ...], int] = {}
        for task in model.tasks[: model.least]:
            amounts = tuple(self.holder.asked(task.spec, -1))
            ask[amounts] = ask.get(amounts, 0) + 1
        return self.room.start_without(list(ask.items()), at)

    def _close(self, job: int, account: _OpenAccount, at: int, time: int) -> None:
        """The outcome of what was evicted for a job is known: it had its tasks for ``time`` (µs) longer."""
        if account.cause not in PATIENT_CAUSES:
            return
        run, model = self.runs.get(job), self.log.workloads[job]
        bound = {} if run is None else run.bound
        gained = sum(self._held(model.tasks[task], node, time) for task, node in bound.items())
        account.closed = ClosedAccount(self.origin + at, account.cause, account.lost, gained)
        if account.evicted:
            self.closed.append(account.closed)

    def _held(self, task: Task, node: int, time: int) -> int:
        """Give what a task holds on a node in a time (µs), in millionths of a weighted resource-second."""
        return weighted(self.holder.named(self.holder.held(task.spec, node), time), self.prices) if time else 0


def _note_carried_out(closed: list[ClosedAccount], account: _OpenAccount) -> None:
    """Something was evicted on an account; where it was closed with nothing but announcements, it is told now."""
    if not account.evicted and account.closed is not None:
        closed.append(account.closed)
    account.evicted = True


def _lose(closed: list[ClosedAccount], account: _OpenAccount, lost: int) -> None:
    """So much more was lost, or less; an account that was closed is told anew."""
    account.lost += lost
    if account.closed is not None and account.closed in closed:
        renewed = account.closed._replace(lost=account.lost)
        closed[closed.index(account.closed)] = account.closed = renewed


def _lost_time(model: Workload, began: int, since: int, at: int, said: EvictionDetails) -> int:
    """Give how much of a task's time an eviction destroys until it has left, the overhead of the restart included (µs).

    Its run began at ``began``, the task itself is there since ``since``.
    """
    checkpoint = model.checkpoint
    interval = 0 if checkpoint is None else checkpoint.interval
    saved = began + (at - began) // interval * interval if interval else began
    overhead = 0 if checkpoint is None else checkpoint.restart_overhead
    return max(at, said.leaves_at) - max(saved, since, said.saved_at) + overhead
