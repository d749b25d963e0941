"""No work is lost over and over: what has lost as much as `worth.maxLost` allows is protected until that is past.

What was lost is read off the eviction log, as budgets read it, and counts for as long as the window is. A workload is
measured by all that it asks for, and what its first eviction in the window lost does not count, for it repeats nothing;
a leaf queue is measured by what the whole cluster has. What counts is known when a cycle begins: so at most the bound
is lost, and what the evictions of one cycle lose, before which less was. The bounds end for a contender that is owed
its guaranteed, as the one on the number of evictions does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from tenure.engine.refusal import Refusal
from tenure.engine.state.cost import MICRO, in_small_units, lost_amounts
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.ledger.entries import Charge
from tenure.model.amounts import weighted
from tenure.model.cluster import DEFAULT_QUEUE, Eviction
from tenure.model.settings import Cause
from tenure.model.values.duration import format_duration, format_time
from tenure.model.values.readable import weighted_hours
from tenure.model.workload import Workload
from tenure.shields.repeated import BOUNDED, is_owed, owed_from

SHIELD: Final = "lost-much"


class _Loss(NamedTuple):
    """What one eviction lost (millionths of a weighted resource-second), and when (µs since the epoch)."""

    at: int
    workload: str
    queue: str | None
    lost: int


class _Spent(NamedTuple):
    """A bound that is reached: whose, what was lost of how much, as above, and when that is past."""

    whose: str
    setting: str
    lost: int
    most: int
    until: int


class _Protected(NamedTuple):
    """What is protected: workloads by name and leaf queues, each by the bound that is reached, and all these leaves."""

    workloads: dict[str, _Spent]
    queues: dict[int, _Spent]
    leaves: frozenset[int]


NOTHING: Final = _Protected({}, {}, frozenset())


class LossShield:
    """The bounds of one session, as they stand since the cycle began. Most cycles evict nothing, and never ask."""

    def __init__(self) -> None:
        self._own: deque[_Loss] = deque()
        self._losses: list[_Loss] = []
        self._session: Session | None = None
        self._known: _Protected = NOTHING
        self._most: dict[str, tuple[Workload, int]] = {}

    def begin(self, session: Session, carried_out: Sequence[Charge]) -> None:
        """Look at what was lost until now. ``carried_out``: evictions since the last cycle, which no log has."""
        bounds = session.settings.worth.max_lost
        if not (bounds.workload or bounds.queue):
            return
        since = session.now - bounds.window
        self._own.extend(_charged(session, carried_out))
        while self._own and self._own[0].at <= since:
            self._own.popleft()
        self._losses = [*_logged(session, since), *self._own]
        self._session, self._known = session if self._losses else None, NOTHING

    @property
    def leaves(self) -> frozenset[int]:
        """The leaf queues in which something is protected."""
        return self._protected().leaves

    def _protected(self) -> _Protected:
        """Give what is protected; worked out when it is first asked for in a cycle."""
        session, self._session = self._session, None
        if session is not None:
            bounds, losses = session.settings.worth.max_lost, self._losses
            workloads = {s.whose: s for s in self._of_workloads(session, losses)} if bounds.workload else {}
            queues = dict(_of_queues(session, losses)) if bounds.queue else {}
            leaves = frozenset(queues).union(session.workloads[key].leaf for key in workloads)
            self._known = _Protected(workloads, queues, leaves)
        return self._known

    def _of_workloads(self, session: Session, losses: Iterable[_Loss]) -> Iterator[_Spent]:
        """Give the workloads that have lost as much as they may, beyond what their first eviction lost.

        What each may lose is kept for as long as the workload is the same and lost something within the window.
        """
        own: dict[str, list[_Loss]] = {}
        for loss in losses:
            own.setdefault(loss.workload, []).append(loss)
        before, self._most = self._most, {}
        for key, lost in own.items():
            state = session.workloads.get(key)
            times = _by_time(lost)
            if state is None or state.leaf < 0 or len(times) == 1:
                continue
            known = before.get(key)
            if known is None or known[0] is not state.model:
                known = state.model, _most_of(session, state)
            self._most[key] = known
            yield from _spent(session, key, "worth.maxLost.workload", times, known[1], free=1)

    def filter(
        self, session: Session, cause: Cause, contender: WorkloadState | None, victim: WorkloadState
    ) -> Refusal | None:
        """Refuse a victim that has lost as much as it may, or whose queue has."""
        protected = self._protected()
        if victim.leaf not in protected.leaves or cause not in BOUNDED:
            return None
        reached = [protected.workloads.get(victim.key), protected.queues.get(victim.leaf)]
        spent = max(filter(None, reached), key=lambda s: s.until, default=None)
        if spent is None or is_owed(session, cause, contender):
            return None
        owed_at = owed_from(session, cause, contender)
        until = spent.until if owed_at is None else min(spent.until, owed_at)
        window = format_duration(session.settings.worth.max_lost.window)
        lost, most = weighted_hours(spent.lost / MICRO), weighted_hours(spent.most / MICRO)
        text = f"{spent.whose} lost {lost} to evictions within {window}, and {spent.setting} allows {most}"
        return Refusal(SHIELD, f"{text}: protected until {format_time(until)}", until)


def _charged(session: Session, charges: Iterable[Charge]) -> Iterator[_Loss]:
    prices = session.settings.disruption.cost
    for charge in charges:
        lost = weighted(in_small_units(charge.ask.lost), prices)
        if lost:
            yield _Loss(charge.at, charge.ask.workload, next(iter(charge.ask.queues or ()), None), lost)


def _logged(session: Session, since: int) -> Iterator[_Loss]:
    prices = session.settings.disruption.cost
    for entry in session.evictions:
        if entry.lost and entry.at > since and _is_of_its_workload(session, entry):
            lost = weighted(in_small_units(entry.lost), prices)
            yield _Loss(min(entry.at, session.now), entry.workload, _queue_of(session, entry), lost)


def _queue_of(session: Session, entry: Eviction) -> str:
    """Name the queue of a logged eviction: as logged, else that of its workload as it is now."""
    known = session.workloads.get(entry.workload)
    return entry.queue or (known.model.queue if known is not None else None) or DEFAULT_QUEUE


def _is_of_its_workload(session: Session, entry: Eviction) -> bool:
    """Whether a logged eviction is not one of an earlier workload of the same name."""
    known = session.workloads.get(entry.workload)
    return known is None or known.created_at <= entry.at or entry.at <= (known.last_evicted_at or 0)


def _most_of(session: Session, state: WorkloadState) -> int:
    """Give what a workload may lose: all that it asks for, for a share of the window."""
    bounds, settings = session.settings.worth.max_lost, session.settings
    time = round(bounds.workload * bounds.window)
    amounts = (in_small_units(lost_amounts(task.model.spec, time, settings)) for task in state.tasks)
    return sum(weighted(a, settings.disruption.cost) for a in amounts)


def _of_queues(session: Session, losses: Iterable[_Loss]) -> Iterator[tuple[int, _Spent]]:
    """Give the leaf queues whose workloads have lost as much as they may."""
    queues, most = session.queues, _most_of_queues(session)
    own: dict[str, list[_Loss]] = {}
    for loss in losses:
        if loss.queue is not None:
            own.setdefault(loss.queue, []).append(loss)
    for name, lost in own.items():
        if name in queues.index:
            for spent in _spent(session, f"queue {name}", "worth.maxLost.queue", _by_time(lost), most):
                yield queues.index[name], spent


def _most_of_queues(session: Session) -> int:
    """Give what a leaf queue may lose: a share of what the whole cluster can do within the window."""
    bounds = session.settings.worth.max_lost
    time = round(bounds.queue * bounds.window)
    total = zip(session.queues.resources, session.occupancy.total(), strict=True)
    amounts = {name: amount * time for name, amount in total}
    return weighted(amounts, session.settings.disruption.cost)


def _by_time(losses: Iterable[_Loss]) -> list[tuple[int, int]]:
    """Give what was lost by time, the earliest first."""
    sums: dict[int, int] = {}
    for loss in losses:
        sums[loss.at] = sums.get(loss.at, 0) + loss.lost
    return sorted(sums.items())


def _spent(
    session: Session, whose: str, setting: str, times: Sequence[tuple[int, int]], most: int, free: int = 0
) -> Iterator[_Spent]:
    """Give a bound that is reached by what was lost at these times, with when it no longer is.

    What was lost at the first of them, as many as are ``free``, does not count.
    """
    total = sum(lost for _, lost in times[free:])
    if not most or total < most:
        return
    for gone in range(1, len(times) + 1):
        if sum(lost for _, lost in times[gone + free :]) < most:
            yield _Spent(whose, setting, total, most, times[gone - 1][0] + session.settings.worth.max_lost.window)
            return
