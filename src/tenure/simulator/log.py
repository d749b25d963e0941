"""The event log of a simulation: what happened, in the order in which it happened.

The simulator appends to it in its innermost loop, so an event is one plain tuple of six fields:

``(kind, at, job, task, x, extra)``

========  =================================  ==================================================
kind      ``x``                              ``extra``
========  =================================  ==================================================
SUBMIT    0                                  ``None``
BIND      node                               devices, a tuple of indices on the node
END       0                                  ``None``
EVICT     beneficiary's job, or -1           `EvictionDetails`
DROP      0                                  the reason, as text
NOTICE    beneficiary's job, or -1           `NoticeDetails`
WITHDRAW  0                                  ``None``
REST      0                                  why it has not ended, as text
========  =================================  ==================================================

``at`` is in µs on the simulation's time axis. Jobs, tasks and nodes are indices: ``job`` into the log's
``workloads``, ``task`` into that workload's ``tasks`` and ``node`` into the cluster's nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from tenure.model.workload import Workload

SUBMIT = 0
BIND = 1
END = 2
EVICT = 3
DROP = 4
NOTICE = 5
WITHDRAW = 6
REST = 7

Event: TypeAlias = tuple[int, int, int, int, int, object]
"""``(kind, at, job, task, x, extra)``, as the module describes."""


class EvictionDetails(NamedTuple):
    """The details of an eviction beside job, task and beneficiary. Times and durations in µs, -1 for not given.

    ``leaves_at`` is when the task stops occupying its node (-1: at once). ``lost`` is how much of the task's time
    the eviction destroyed, restart overhead included (-1: derived from the workload's checkpoints).
    ``protected_until`` is the end of the minimum runtime that applied to this cause and beneficiary (-1: none).
    ``saved_at`` is when it made a checkpoint because it had been told that it has to go (-1: it did not).
    """

    cause: str
    leaves_at: int = -1
    lost: int = -1
    protected_until: int = -1
    saved_at: int = -1


class NoticeDetails(NamedTuple):
    """An eviction that is announced: why, and by when (µs)."""

    cause: str
    deadline: int


class LoggedPlans:
    """The plans of which the events of a log came.

    ``begins``: how many events there were when each plan began; those from there on up to the next came of it.
    ``follow_ups``: by beneficiary, job and task the number of the plan that first said that the one would be evicted
    next for the other, which it evicted itself.
    """

    __slots__ = ("begins", "follow_ups")

    def __init__(self) -> None:
        self.begins: list[int] = []
        self.follow_ups: dict[tuple[int, int, int], int] = {}

    def begin(self, event: int) -> None:
        """Record that what follows, from the event of that number on, comes of one plan."""
        self.begins.append(event)

    def follow_up(self, beneficiary: int, job: int, task: int) -> None:
        """Record that the plan says that a task will be evicted next for what it evicts."""
        self.follow_ups.setdefault((beneficiary, job, task), len(self.begins))


class EventLog:
    """Append-only log. At one instant the order of appending is the order of events.

    Parameters
    ----------
    workloads
        What the job indices of the events refer to: first the workloads that the cluster file starts with, then
        those of the trace in its order. The list is kept, not copied, and may be extended with `add`.
    initial
        How many of ``workloads`` come from the cluster file.

    Attributes
    ----------
    plans
        The plans of which the events came.
    closed
        Whether the log says of every job what became of it.
    """

    __slots__ = ("_append", "closed", "events", "initial", "plans", "workloads")

    def __init__(self, workloads: Iterable[Workload] = (), *, initial: int = 0) -> None:
        self.workloads: list[Workload] = workloads if isinstance(workloads, list) else list(workloads)
        self.initial = initial
        self.events: list[Event] = []
        self.plans = LoggedPlans()
        self.closed = False
        self._append = self.events.append

    def __len__(self) -> int:
        """Count the events."""
        return len(self.events)

    def add(self, workload: Workload) -> int:
        """Register one more workload and give its job index."""
        self.workloads.append(workload)
        return len(self.workloads) - 1

    def submit(self, at: int, job: int) -> None:
        """Record that a job arrived."""
        self._append((SUBMIT, at, job, 0, 0, None))

    def bind(self, at: int, job: int, task: int, node: int, devices: tuple[int, ...] = ()) -> None:
        """Record that a task was bound to a node, and to which of its GPUs (always given for a part of a GPU)."""
        self._append((BIND, at, job, task, node, devices))

    def end(self, at: int, job: int, task: int) -> None:
        """Record that a task finished and left its node."""
        self._append((END, at, job, task, 0, None))

    def evict(  # noqa: PLR0913  an eviction has as many
        self,
        at: int,
        job: int,
        task: int,
        cause: str,
        beneficiary: int = -1,
        *,
        leaves_at: int = -1,
        lost: int = -1,
        protected_until: int = -1,
        saved_at: int = -1,
    ) -> None:
        """Record an eviction; `EvictionDetails` describes the keywords. No `end` follows for this run of the task."""
        self._append(
            (EVICT, at, job, task, beneficiary, EvictionDetails(cause, leaves_at, lost, protected_until, saved_at))
        )

    def notice(self, at: int, job: int, task: int, cause: str, beneficiary: int = -1, *, deadline: int) -> None:
        """Record that a task was told that it has to go, at the latest at ``deadline``; it runs on until it does."""
        self._append((NOTICE, at, job, task, beneficiary, NoticeDetails(cause, deadline)))

    def withdraw(self, at: int, job: int, task: int) -> None:
        """Record that a task that was told to go may stay."""
        self._append((WITHDRAW, at, job, task, 0, None))

    def drop(self, at: int, job: int, reason: str) -> None:
        """Record that a job left without ever having started, and why."""
        self._append((DROP, at, job, 0, 0, reason))

    def rest(self, at: int, job: int, reason: str) -> None:
        """Record at the end that a job neither ended nor was dropped, and why."""
        self._append((REST, at, job, 0, 0, reason))

    def close(self) -> None:
        """Say that what became of every job is recorded."""
        self.closed = True
