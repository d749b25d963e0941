"""When a queue is armed, and until when: one deadline per queue (spec: quota preemption, arming).

What was decided before stands in the queue's status in the cluster, and nowhere else, so that a restart changes
nothing. A change of configuration is seen by comparing with the max and the delay that the status holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tenure.model.queue import Queue, QuotaStatus
from tenure.model.settings import QuotaPreemptionSettings


def delays(queues: Sequence[Queue], settings: QuotaPreemptionSettings) -> dict[str, int]:
    """Give the delay in µs that holds for each queue; 0 means that it never fires.

    A queue's own delay counts, also an explicit 0; else, unless inheritance is off, that of the nearest queue above
    it that sets one. Dynamic queues cannot trigger.
    """
    known = {queue.name: queue for queue in queues}
    return {queue.name: 0 if queue.dynamic else _delay(queue, known, settings) for queue in queues}


def _delay(queue: Queue, known: Mapping[str, Queue], settings: QuotaPreemptionSettings) -> int:
    current: Queue | None = queue
    while current is not None:
        if current.quota_preemption_delay is not None:
            return current.quota_preemption_delay
        current = known.get(current.parent) if settings.inherit and current.parent is not None else None
    return 0


def over(maximum: Mapping[str, int], usage: Mapping[str, int]) -> dict[str, int]:
    """Give by how much each max is exceeded, in the resources in which it is."""
    return {r: usage.get(r, 0) - most for r, most in maximum.items() if usage.get(r, 0) > most}


def arm(
    queue: Queue, delay: int, usage: Mapping[str, int], now: int, settings: QuotaPreemptionSettings
) -> QuotaStatus | None:
    """Give the status that a queue has from now on; None: it is not armed.

    Parameters
    ----------
    queue
        With its present max, and with the status that was stored, if it was armed.
    delay
        The delay that holds for it, in µs, see `delays`.
    usage
        What it uses, by resource: bound, running, promised, and what has not left yet.
    now
        µs since the epoch.
    settings
        Of quota preemption.

    Notes
    -----
    Lowering the max again while armed keeps the first deadline; a changed delay moves it by the difference; what
    ends a deadline is usage within max in every resource, a delay of 0, or the feature switched off.
    """
    if not settings.enabled or delay <= 0 or not over(queue.max, usage):
        return None
    stored = queue.status.quota_preemption if queue.status is not None else None
    if stored is None:
        return QuotaStatus(armed_at=now, delay=delay, deadline=now + delay, max=dict(queue.max))
    return replace(stored, delay=delay, deadline=stored.deadline + delay - stored.delay, max=dict(queue.max))


def change_of(stored: QuotaStatus | None, status: QuotaStatus | None) -> str | None:
    """Say what becomes of a deadline; None where it stays as it was stored."""
    if status is None:
        return "cleared"
    if stored is None:
        return "armed"
    return "moved" if stored.deadline != status.deadline else None
