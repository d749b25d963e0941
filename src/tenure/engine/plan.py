"""What a cycle decided: ordered steps, and why what waits still waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tenure.model.queue import QueueStatus


class Step(NamedTuple):
    """One thing to carry out: ``bind``, ``nominate``, ``evict`` or ``notice`` of one task.

    Workloads are namespace/name; ``task_index`` and ``node_index`` are the numbers of task and node. ``cause``,
    ``beneficiary``, ``cost`` (weighted resource-seconds) and ``reason`` belong to evictions.
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


@dataclass(frozen=True, slots=True)
class Reason:
    """One obstacle: a code from a fixed set, a sentence, and the numbers behind it."""

    code: str
    message: str
    numbers: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pending:
    """A workload that waits: why, and when it would start (µs since the epoch) if that can be known."""

    workload: str
    reasons: tuple[Reason, ...]
    estimated_start: int | None = None


@dataclass(slots=True)
class Plan:
    """What one cycle decided at ``now`` (µs since the epoch).

    ``started``: workloads whose core is bound by it; ``expired``: tasks, by workload and number, whose nomination is
    given up; ``queue_status``: what is to be written on queues.
    """

    now: int
    steps: list[Step] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    expired: list[tuple[str, int]] = field(default_factory=list)
    queue_status: dict[str, QueueStatus] = field(default_factory=dict)
