"""Causes whose evictions lost more than was gained by them: they are told of, and pause where that is switched on.

What counts are outcomes (`EvictionOutcome`), as far as they are known; they are part of what is observed. A
pause is over once what is left of them in the window has gained as much as it lost, at the latest when the window has
passed. What a queue is guaranteed it gets all the same: that is owed to it, and need not pay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from tenure.engine.memo import Memo
from tenure.engine.state.cost import MICRO
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.model.cluster import Cluster, EvictionOutcome
from tenure.model.settings import PATIENT_CAUSES, Cause, PatientCause, Settings
from tenure.model.values.duration import format_duration, format_time
from tenure.model.values.readable import weighted_hours


class ClosedAccount(NamedTuple):
    """What was evicted for one start of a workload, once it is known (``at``, µs since the epoch) what that had of it.

    ``lost`` and ``gained`` are in millionths of a weighted resource-second.
    """

    at: int
    cause: str
    lost: int
    gained: int


def gathered(closed: Iterable[ClosedAccount], window: int) -> tuple[EvictionOutcome, ...]:
    """Add accounts up by cause and by the 24th part of a window (µs) in which they were closed, the oldest first."""
    step = max(1, window // 24)
    sums: dict[tuple[int, str], list[int]] = {}
    for one in closed:
        total = sums.setdefault((one.at - one.at % step, one.cause), [0, 0])
        total[0] += one.lost
        total[1] += one.gained
    return tuple(
        EvictionOutcome(at=at, cause=cause, lost=lost // MICRO, gained=gained // MICRO)
        for (at, cause), (lost, gained) in sorted(sums.items())
        if cause in PATIENT_CAUSES
    )


class LosingCause(NamedTuple):
    """A cause that lost more than was gained by it within a window: how much (weighted resource-seconds).

    ``until`` (µs since the epoch) is when that is over if nothing else becomes known; ``window`` is in µs.
    """

    cause: PatientCause
    lost: int
    gained: int
    window: int
    until: int

    @property
    def balance(self) -> str:
        """Say what it lost and gained."""
        return (
            f"evictions by {self.cause} lost {weighted_hours(self.lost)} and gained {weighted_hours(self.gained)} "
            f"in the last {format_duration(self.window)}"
        )


def losing_causes(outcomes: Iterable[EvictionOutcome], window: int, now: int) -> tuple[LosingCause, ...]:
    """Give the causes that lost more than was gained, of what became known within a window (µs) before ``now``.

    What lies ahead of ``now`` counts as if it had become known now.
    """
    known = sorted((replace(o, at=min(o.at, now)) for o in outcomes if o.at > now - window), key=lambda o: o.at)
    found = []
    for cause in PATIENT_CAUSES:
        own = [o for o in known if o.cause == cause]
        lost, gained = sum(o.lost for o in own), sum(o.gained for o in own)
        if lost > gained:
            found.append(LosingCause(cause, lost, gained, window, _over_at(own, lost - gained, window)))
    return tuple(found)


def _over_at(outcomes: list[EvictionOutcome], excess: int, window: int) -> int:
    """Say when so many outcomes, the oldest first, have left a window that what is left gained as much as it lost."""
    for number, outcome in enumerate(outcomes):
        excess -= outcome.lost - outcome.gained
        is_last_of_its_time = number + 1 == len(outcomes) or outcomes[number + 1].at > outcome.at
        if excess <= 0 and is_last_of_its_time:
            return outcome.at + window
    raise AssertionError("outcomes that are left out one by one come to nothing")


class Breaker:
    """The pauses of causes, as they are at the session's time."""

    def __init__(self) -> None:
        self._paused = Memo[Session, Mapping[str, LosingCause]](
            lambda s: {found.cause: found for found in losing_in(s)}, lambda s: (s.now, s.outcomes)
        )

    def pauses(self, session: Session, cause: Cause) -> bool:
        """Whether a cause is paused."""
        return self._of(session, cause) is not None

    def pause(self, session: Session, cause: Cause, contender: WorkloadState) -> LosingCause | None:
        """Give why a cause evicts nothing for a contender at present; None where the cause is not paused.

        Nor is it where reclaim brings the contender's queue no more than it is guaranteed.
        """
        found = self._of(session, cause)
        return None if found is None or (cause == "reclaim" and brings_guaranteed(session, contender)) else found

    def _of(self, session: Session, cause: Cause) -> LosingCause | None:
        return self._paused(session).get(cause) if session.settings.worth.breaker.enabled else None


def losing_in(session: Session | Cluster) -> tuple[LosingCause, ...]:
    """Give the causes that lose more than is gained, whether they pause for it or not."""
    return losing_causes(session.outcomes, session.settings.worth.breaker.window, session.now)


def message(settings: Settings, losing: LosingCause) -> str:
    """Say what a cause lost and gained, and what comes of it."""
    return told(losing) if settings.worth.breaker.enabled else losing.balance


def brings_guaranteed(session: Session, contender: WorkloadState) -> bool:
    """Whether a contender brings its queue no more than that is guaranteed."""
    assert contender.step is not None
    return session.queues.within_guaranteed(contender.leaf, contender.step.amount)


def told(losing: LosingCause) -> str:
    """Say what a cause lost and gained, and until when it is paused for that."""
    owed = ", but for what queues are guaranteed" if losing.cause == "reclaim" else ""
    return f"{losing.balance}: {losing.cause} is paused until {format_time(losing.until)}{owed}"
