"""Who took the room that a workload waited for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from tenure.history.record import HistoryRecord
from tenure.model.values.resources import CPU, GPU

TAKER_WAYS: Final = {
    "evicted": "it was evicted for this one", "overtook": "came later, started earlier",
    "started": "started while it waited", "holds": "ran before",
}  # fmt: skip
"""The ways in which a workload can have had to do with another one's wait, the most telling first, in words."""

TAKER_RANKS: Final = {how: rank for rank, how in enumerate(TAKER_WAYS)}


class Taker(NamedTuple):
    """Who holds or held room while a workload waited. Times in µs since the epoch, ``until`` None: still.

    ``how``: ``evicted`` (it made that workload leave), ``overtook`` (it came later and started earlier), ``started``
    (it came first, and started meanwhile) or ``holds`` (it ran before).
    """

    workload: str
    queue: str
    how: str
    created_at: int
    started_at: int | None
    until: int | None
    held: Mapping[str, int]
    cause: str = ""


@dataclass(slots=True)
class LifeLine:
    """One workload over a history. Times in µs since the epoch, None: not known, or not yet."""

    queue: str
    submitted: int
    started: int | None = None
    ended: int | None = None
    asked: Mapping[str, int] = field(default_factory=dict)

    def as_of(self, at: int) -> LifeLine:
        """Give it as it was known at a moment: what was later had not happened."""
        if (self.started or 0) <= at and (self.ended or 0) <= at:
            return self
        started = None if self.started is None or self.started > at else self.started
        return replace(self, started=started, ended=None if self.ended is None or self.ended > at else self.ended)

    def waited_until(self, last: int) -> int:
        """Give when its first wait was over; ``last`` where it is not."""
        return self.started if self.started is not None else self.ended if self.ended is not None else last


def causes_of(records: list[HistoryRecord], workload: str, since: int) -> dict[str, str]:
    """Give for whom a workload was evicted from a time on, by the records of its story, and by which cause."""
    return {
        record.beneficiary: record.cause or ""
        for record in records
        if record.kind == "evicted" and record.workload == workload and record.beneficiary and record.at >= since
    }


def takers_among(
    lives: Iterable[tuple[str, LifeLine]],
    workload: str,
    own: LifeLine,
    causes: Mapping[str, str],
    last: int,
    limit: int,
) -> list[Taker]:
    """Give who took the room of a workload until its first start, the most telling first.

    Parameters
    ----------
    lives
        Lives with the workload's name, those of one name in their order; at least those that ran while it waited.
    workload
        Whose room it is.
    own
        Its life: it may have had others under that name.
    causes
        For whom it was evicted, and by which cause.
    last
        The end of the history, in µs since the epoch.
    limit
        The most that are given.
    """
    until, main = own.waited_until(last + 1), GPU if own.asked.get(GPU) else CPU
    found = {whom: Taker(whom, "", "evicted", 0, None, None, {}, cause) for whom, cause in causes.items()}
    for other, life in lives:
        how = "evicted" if other in causes else _how(own, life, until)
        if how and other != workload and (life.asked.get(main) or other in causes):
            held = {name: amount for name, amount in life.asked.items() if name in own.asked}
            told = Taker(other, life.queue, how, life.submitted, life.started, life.ended, held, causes.get(other, ""))
            if other not in found or TAKER_RANKS[how] <= TAKER_RANKS[found[other].how]:
                found[other] = told
    ranked = sorted(found.values(), key=lambda t: (TAKER_RANKS[t.how], -t.held.get(main, 0), t.workload))
    return ranked[:limit]


def _how(own: LifeLine, other: LifeLine, until: int) -> str:
    """Say how another workload had to do with the wait of one; empty: not at all."""
    if until <= own.submitted or other.started is None or other.started >= until:
        return ""
    if other.started >= own.submitted:
        return "overtook" if other.submitted > own.submitted else "started"
    return "holds" if other.ended is None or other.ended > own.submitted else ""
