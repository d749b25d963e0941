"""What each queue held during a whole simulation, summed at once when it has ended: as `UsageMeter` would sum it.

A meter sums from change to change; here changes are kept, and summed as arrays at the end. For a simulation that takes
less than half of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import gcd
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tenure.history.record import Draft, made_draft, quoted
from tenure.history.rollup import DAY, HOUR, MINUTE, UsageRow

Times: TypeAlias = npt.NDArray[np.int64]
Amounts: TypeAlias = npt.NDArray[Any]
"""Whole numbers: of 64 bits, or Python's own."""

_Summed: TypeAlias = tuple[int, int, int, int, list[int], list[int], list[int], list[int]]
"""Since and until, those of the row that it is summed in, what was held and of it inside the guaranteed, and both as
they were after the first minute."""

_Unit: TypeAlias = tuple[str, int]
"""A resource as it is written, and in what unit it is counted."""


class UsageColumns:
    """What queues held, change by change; ``close`` makes records of it, and the sums by the hour.

    Amounts by resource in the order of ``resources``; times in µs since the epoch, of each queue in their order.
    """

    def __init__(self, resources: Sequence[str], guaranteed: Mapping[str, Mapping[str, int]], begin: int) -> None:
        self.named = [f"{quoted(r)}:" for r in resources]
        self.begin = begin
        self.due = {
            queue: ([amounts.get(r, 0) for r in resources], [i for i, r in enumerate(resources) if r in amounts])
            for queue, amounts in guaranteed.items()
            if amounts
        }
        self.records: list[Draft] = []
        self.nothing = [0] * len(self.named)
        self._told: dict[str, tuple[list[int], list[list[int]]]] = {}
        self._hours: list[tuple[int, str, int, str]] = []

    def change(self, queue: str, at: int, amounts: Sequence[int], times: int) -> None:
        """A queue holds so many times as much more (less, where ``times`` is negative) from ``at`` on."""
        told = self._told.get(queue)
        if told is None:
            told = self._told[queue] = [self.begin], [self.nothing]
        moments, levels = told
        moments.append(at)
        levels.append([now + times * amount for now, amount in zip(levels[-1], amounts, strict=True)])

    def within_guaranteed(self, queue: str) -> bool:
        """Whether a queue has something guaranteed, and holds no more of any of it now."""
        due = self.due.get(queue)
        if due is None:
            return False
        told = self._told.get(queue)
        level = told[1][-1] if told is not None else self.nothing
        amounts, owed = due
        for place in owed:  # noqa: SIM110  twice as fast as all() over a generator
            if level[place] > amounts[place]:
                return False
        return True

    def close(self, end: int) -> None:
        """Sum up to ``end``, and give everything as records and rows."""
        for queue, (moments, levels) in self._told.items():
            self._sum(queue, np.array(moments, dtype=np.int64), levels, end)

    def hours(self, source: int) -> Iterator[UsageRow]:
        """Give the sums by the hour, as `Rollup` would make them of the records."""
        for since, queue, until, payload in self._hours:
            yield source, since, queue, until, payload

    def _sum(self, queue: str, moments: Times, told: Sequence[Sequence[int]], end: int) -> None:
        due = self.due.get(queue)
        levels, units = _counted([*told, self.nothing if due is None else due[0]])
        levels, limit = levels[:-1], levels[-1:]
        starts = _starts(moments, end)
        edges = np.union1d(starts, moments[moments < end])
        spans = np.diff(edges, append=end).astype(levels.dtype)[:, None]
        held = levels[np.searchsorted(moments, edges, side="right") - 1]
        inside = np.minimum(held, limit)
        first = np.searchsorted(edges, starts)
        last = np.append(first[1:], len(edges)) - 1
        sums = np.add.reduceat(held * spans, first), np.add.reduceat(inside * spans, first)
        until = np.append(starts[1:], end)
        columns = (starts, until, *_rows_of(starts, until), *sums, held[last], inside[last])
        self._write(queue, units, zip(*(column.tolist() for column in columns), strict=True))

    def _write(self, queue: str, units: Sequence[int], rows: Iterator[_Summed]) -> None:
        """Write a queue's records, and the sums by the hour beside them: those of one hour come one after the other."""
        named, wrote = list(zip(self.named, units, strict=True)), self.records.append
        hour = _HourRow(named, -1, -1)
        for since, until, begin, end, held, within, level, inside in rows:
            all_held = _amounts(named, held)
            if not all_held:
                continue
            all_within = _amounts(named, within)
            now = ",".join([
                f"{name}[{of_all * unit},{of_it * unit}]"
                for (name, unit), of_all, of_it in zip(named, level, inside) if of_all  # noqa: B905  of one length
            ])  # fmt: skip
            payload = f'{{"until":{until},"held":{{{all_held}}},"within":{{{all_within}}},"level":{{{now}}}}}'
            wrote(made_draft((since, "usage", None, queue, None, None, until - since, payload, "", 0, b"")))
            if begin == hour.since:
                hour.more(held, within)
                continue
            self._end_hour(queue, hour)
            hour = _HourRow(named, begin, end, held, within, all_held, all_within)
        self._end_hour(queue, hour)

    def _end_hour(self, queue: str, hour: _HourRow) -> None:
        if hour.until >= 0:
            self._hours.append((hour.since, queue, hour.until, hour.payload()))


class _HourRow:
    """The sums of one hour; those of a single record are written as they stand in it."""

    __slots__ = ("held", "named", "since", "told", "until", "within")

    def __init__(self, named: Sequence[_Unit], since: int, until: int, *sums: Any) -> None:
        self.named, self.since, self.until = named, since, until
        self.held, self.within, *self.told = sums or ([], [], "", "")

    def more(self, held: Sequence[int], within: Sequence[int]) -> None:
        """Add what another record says."""
        self.held = [before + amount for before, amount in zip(self.held, held, strict=True)]
        self.within = [before + amount for before, amount in zip(self.within, within, strict=True)]
        self.told = []

    def payload(self) -> str:
        """Write the sums."""
        held, within = self.told or (_amounts(self.named, self.held), _amounts(self.named, self.within))
        return f'{{"held":{{{held}}},"within":{{{within}}}}}' if within else f'{{"held":{{{held}}}}}'


def _counted(rows: Sequence[Sequence[int]]) -> tuple[Amounts, list[int]]:
    """Give amounts in units of their own, one for each resource, so that sums over a day are exact; and the units.

    Where not even that fits into 64 bits, Python's own integers are taken, which is slower.
    """
    units = [gcd(*column) or 1 for column in zip(*rows, strict=True)]
    exact = np.array(rows, dtype=object).reshape(len(rows), len(units)) // np.array(units, dtype=object)
    fits = not exact.size or exact.max() < 2**63 // DAY
    return exact.astype(np.int64) if fits else exact, units


def _amounts(named: Sequence[_Unit], amounts: Sequence[int]) -> str:
    return ",".join([f"{name}{amount * unit}" for (name, unit), amount in zip(named, amounts) if amount])  # noqa: B905  of one length


def _starts(moments: Times, end: int) -> Times:
    """Give when records begin: with each minute in which something changed, and at midnights.

    ``moments`` begins with the begin of all.
    """
    begin = moments[:1]
    minutes = np.unique(moments - moments % MINUTE)
    starts = np.concatenate((begin, minutes[(minutes > begin) & (minutes < end)]))
    until = np.append(starts[1:], end)
    crosses = np.flatnonzero(starts // DAY < (until - 1) // DAY)
    cuts = [
        np.arange(since - since % DAY + DAY, stop, DAY)
        for since, stop in zip(starts[crosses], until[crosses], strict=True)
    ]
    return np.sort(np.concatenate((starts, *cuts)))


def _rows_of(since: Times, until: Times) -> tuple[Times, Times]:
    """Give the rows of the sums by the hour that records are summed in, as `row_of` does for one of them."""
    hour = since - since % HOUR
    together = until <= hour + HOUR
    alone = np.where(since > hour, since, since + 1)
    return np.where(together, hour, alone), np.where(together, hour + HOUR, until)
