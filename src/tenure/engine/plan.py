"""What a cycle decided: ordered steps, and why what waits still waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tenure.engine.moves import MovePlan
from tenure.engine.quota_state import QuotaEvent, QuotaState
from tenure.engine.requeued import RequeueOutcome
from tenure.model.devices import DeviceAllocation
from tenure.model.queue import QueueStatus
from tenure.model.values.resources import GPU, MILLI, MILLI_GPU

EVICTING = ("evict", "notice")
"""Actions of steps that take something from a workload, at once or announced."""


class ClaimedVolume(NamedTuple):
    """What a claim (namespace/name) will be bound to: a volume; where that is empty, one that is made for a node."""

    claim: str
    volume: str
    node: str


class ClaimedDevices(NamedTuple):
    """The devices that a claim of a placed task has, or gets."""

    claim: str
    allocation: DeviceAllocation


class PlanStep(NamedTuple):
    """A step of a plan: ``bind``, ``nominate``, ``evict``, ``notice`` or ``withdraw`` (a notice) of one task.

    Workloads are namespace/name; ``task_index`` and ``node_index`` are the numbers of task and node. ``cause``,
    ``beneficiary``, ``cost`` (weighted resource-seconds) and ``reason`` belong to evictions, and so do ``to`` (where
    the task lands), ``wave``, ``leaves_at`` (when it should be gone, µs since the epoch), ``lost`` (µs of its time)
    and ``protected_until`` (end of its minimum runtime, -1 if it had none). ``deadline`` (µs since the epoch) is when
    the eviction that a notice announces takes place at the latest, and ``notice_at`` when it was announced first (-1:
    it was not). ``volumes`` are what its claims that are not bound yet will be bound to, ``claims`` what its claims on
    devices have, or get.
    """

    action: str
    workload: str
    task: str
    node: str
    task_index: int
    node_index: int
    devices: tuple[int, ...] = ()
    cycle: int = 0
    cause: str | None = None
    beneficiary: str | None = None
    cost: float = 0.0
    reason: str = ""
    to: str | None = None
    wave: int | None = None
    leaves_at: int = 0
    lost: int = -1
    protected_until: int = -1
    deadline: int = -1
    notice_at: int = -1
    volumes: tuple[ClaimedVolume, ...] = ()
    claims: tuple[ClaimedDevices, ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """An obstacle: a code from a fixed set, a sentence, and the numbers behind it."""

    code: str
    message: str
    numbers: dict[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Give it as plain data for JSON: of GPUs whole ones where all numbers are whole, else milli-GPU."""
        numbers = self.numbers
        if numbers.get("resource") == GPU:
            held = {name: number for name, number in numbers.items() if isinstance(number, int)}
            is_whole = not any(number % MILLI for number in held.values())
            numbers = numbers | ({k: n // MILLI for k, n in held.items()} if is_whole else {"resource": MILLI_GPU})
        return {"code": self.code, "message": self.message, **numbers}


@dataclass(frozen=True, slots=True)
class Refused:
    """A candidate that was not taken: for which contender, by which shield, and its end, if any, in µs."""

    workload: str
    cause: str
    beneficiary: str | None
    shield: str
    until: int | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class NextEviction:
    """A follow-up of the plan: what a cause would do next for a workload that the plan evicts.

    ``evict`` are the tasks that would go, by workload (namespace/name) and name; ``cost`` is in weighted
    resource-seconds.
    """

    of: str
    cause: str
    evict: tuple[tuple[str, str], ...]
    cost: float


@dataclass(frozen=True, slots=True)
class Pending:
    """A workload that waits: why, and when it would start (µs since the epoch) if that can be known."""

    workload: str
    reasons: tuple[Reason, ...]
    estimated_start: int | None = None


@dataclass(slots=True)
class Plan:
    """The decisions of one cycle at ``now`` (µs since the epoch).

    ``started``: workloads whose core is bound by it; ``expired``: tasks, by workload and number, whose nomination is
    given up; ``queue_status``: what is to be written on queues. ``refused``: candidates that were not taken;
    ``obstacles``: by workload, why nothing was evicted for it; ``stale``: by workload, since when it is stale (None:
    no longer), to be written on it; ``moves``: plans of the rescheduler; ``wake``: the earliest time (µs since the
    epoch) at which a rule that refused something now will have ended. ``quota``: queues that are armed because they
    use more than their max; ``quota_events``: what happened to such queues in this cycle. ``requeue``: who could give
    way, and who does; its ``not_before`` is to be written before the steps are carried out. ``shadow``: evictions that
    causes in shadow would have made, each victim once for a contender. ``follow_ups`` are what enabled causes would do
    next for those that the plan evicts. ``unsaved``: queues whose workloads a minimum runtime shields although they do
    not say that they save their work. ``losing``: causes that lost more than was gained, each with a sentence.
    """

    now: int
    steps: list[PlanStep] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    expired: list[tuple[str, int]] = field(default_factory=list)
    queue_status: dict[str, QueueStatus] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    obstacles: dict[str, list[Reason]] = field(default_factory=dict)
    stale: dict[str, int | None] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    wake: int | None = None
    quota: list[QuotaState] = field(default_factory=list)
    moves: list[MovePlan] = field(default_factory=list)
    quota_events: list[QuotaEvent] = field(default_factory=list)
    requeue: RequeueOutcome = field(default_factory=RequeueOutcome)
    shadow: list[PlanStep] = field(default_factory=list)
    follow_ups: list[NextEviction] = field(default_factory=list)
    unsaved: list[str] = field(default_factory=list)
    losing: list[tuple[str, str]] = field(default_factory=list)

    def wake_at(self, time: int | None) -> None:
        """Note that something may be due at a later ``time`` (µs since the epoch), if there is one."""
        if time is not None and time > self.now and (self.wake is None or time < self.wake):
            self.wake = time

    def give_up(self, places: Sequence[tuple[str, int]]) -> None:
        """Give nominations up, by workload and number of the task; those of this plan are no steps of it any more."""
        gone, known = set(places), set(self.expired)
        self.steps[:] = [s for s in self.steps if s.action != "nominate" or (s.workload, s.task_index) not in gone]
        self.expired += [place for place in places if place not in known]
