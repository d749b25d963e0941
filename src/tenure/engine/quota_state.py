"""What a plan says of queues that are over their max (spec: quota preemption)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class QuotaBlocker:
    """A guarantee, shield or bound that keeps a queue from being brought under its max.

    ``queue`` is the one that blocks: whose guarantee it is, or in which a workload is held back. ``reason`` is
    ``guaranteed``, ``overshoot``, ``stuck``, ``search-exhausted`` or the name of a shield; ``until`` (µs since the
    epoch) is when that ends, if time alone ends it.
    """

    queue: str
    reason: str
    resource: str | None = None
    workload: str | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class QuotaState:
    """A queue that is armed. Amounts by resource, GPUs in milli-GPU.

    ``state`` is ``armed`` before its deadline (µs since the epoch), then ``firing`` while victims are leaving,
    ``waiting`` while a queue above it fires, or ``stuck`` where nothing more may be taken. ``over`` is what it uses
    beyond its max, ``shortfall`` what of it cannot be enforced now, and ``blockers`` why not; ``exhausted``: the
    search hit its bound.
    """

    queue: str
    state: str
    deadline: int
    over: dict[str, int]
    shortfall: dict[str, int] = field(default_factory=dict)
    blockers: tuple[QuotaBlocker, ...] = ()
    exhausted: bool = False


@dataclass(frozen=True, slots=True)
class QuotaEvent:
    """An event of quota preemption on a queue in one cycle, at ``at`` (µs since the epoch).

    ``kind``: ``armed``, ``moved`` (its deadline), ``cleared`` or ``fired``, then with the number of tasks that go and
    what that costs, in weighted resource-seconds.
    """

    cycle: int
    at: int
    queue: str
    kind: str
    deadline: int | None = None
    tasks: int = 0
    cost: float = 0.0
