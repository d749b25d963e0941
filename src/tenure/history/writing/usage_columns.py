"""What each queue held during a whole simulation, summed at once when it has ended: as `UsageMeter` would sum it.

A meter sums from change to change; here changes are kept, and summed as arrays at the end. For a simulation that takes
less than half of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tenure.history.record import Draft, made_draft, quoted
from tenure.history.rollup import HOUR, MINUTE, UsageRow
from tenure.model.values.duration import DAY

Times: TypeAlias = npt.NDArray[np.int64]
Amounts: TypeAlias = npt.NDArray[Any]
"""Whole numbers: of 64 bits, or Python's own."""


class UsageColumns:
    """What queues held, change by change; ``close`` makes records of it, and the sums by the hour.

    Amounts by resource in the order of ``resources``; times in µs since the epoch, of each queue in their order.
    """

    def __init__(self, resources: Sequence[str], guaranteed: Mapping[str, Mapping[str, int]], begin: int) -> None:
        self.named = [f"{quoted(r)}:" for r in resources]
        self.forms = [name.replace("%", "%%") for name in self.named]
        self.begin = begin
        self.due = {
            queue: ([amounts.get(r, 0) for r in resources], [i for i, r in enumerate(resources) if r in amounts])
            for queue, amounts in guaranteed.items()
            if amounts
        }
        self.records: list[Draft] = []
        self.nothing = [0] * len(self.named)
        self._told: dict[str, _Changes] = {}
        self._hours: list[tuple[int, str, int, str]] = []

    def change(self, queue: str, at: int, amounts: Sequence[int], times: int) -> None:
        """A queue holds so many times as much more (less, where ``times`` is negative) from ``at`` on."""
        told = self._told.get(queue)
        if told is None:
            owed = self.due[queue][1] if queue in self.due else []
            told = self._told[queue] = _Changes(owed, list(self.nothing))
        told.moments.append(at)
        told.amounts.append(amounts)
        told.times.append(times)
        for place in told.owed:
            told.level[place] += times * amounts[place]

    def within_guaranteed(self, queue: str) -> bool:
        """Whether a queue has something guaranteed, and holds no more of any of it now."""
        due = self.due.get(queue)
        if due is None:
            return False
        told = self._told.get(queue)
        level = self.nothing if told is None else told.level
        amounts, owed = due
        for place in owed:  # noqa: SIM110  twice as fast as all() over a generator
            if level[place] > amounts[place]:
                return False
        return True

    def close(self, end: int) -> None:
        """Sum up to ``end``, and give everything as records and rows."""
        for queue, told in self._told.items():
            self._sum(queue, told, end)

    def hours(self, source: int) -> Iterator[UsageRow]:
        """Give the sums by the hour, as `Rollup` would make them of the records."""
        for since, queue, until, payload in self._hours:
            yield source, since, queue, until, payload

    def _sum(self, queue: str, told: _Changes, end: int) -> None:
        due = self.due.get(queue)
        levels, limit, units = _counted(told, self.nothing if due is None else due[0])
        moments = np.array([self.begin, *told.moments], dtype=np.int64)
        starts = _starts(moments, end)
        edges = np.union1d(starts, moments[moments < end])
        spans = np.diff(edges, append=end).astype(levels.dtype)[:, None]
        held = levels[np.searchsorted(moments, edges, side="right") - 1]
        inside = np.minimum(held, limit)
        first = np.searchsorted(edges, starts)
        last = np.append(first[1:], len(edges)) - 1
        sums = np.add.reduceat(held * spans, first), np.add.reduceat(inside * spans, first)
        kept = (sums[0] != 0).any(axis=1)
        until = np.append(starts[1:], end)
        rows = _Rows(starts[kept], until[kept], sums[0][kept], sums[1][kept], held[last][kept], inside[last][kept])
        if kept.any():
            self._write(queue, units, rows)

    def _write(self, queue: str, units: Sequence[int], rows: _Rows) -> None:
        """Write a queue's records, and the sums by the hour: of records that come one after the other."""
        levels = _texts([f"{name}[%d,%d]" for name in self.forms], units, rows.level, rows.inside)
        told = zip(rows.since.tolist(), rows.until.tolist(), self._amounts(units, rows.held, rows.within), levels,
                   strict=True)  # fmt: skip
        self.records += [
            made_draft((since, "usage", None, queue, None, None, until - since,
                        f'{{"until":{until},{amounts},"level":{{{level}}}}}', "", 0, b""))
            for since, until, amounts, level in told
        ]  # fmt: skip
        begin, end = _rows_of(rows.since, rows.until)
        first = np.flatnonzero(np.diff(begin, prepend=begin[0] - 1))
        sums = self._amounts(units, np.add.reduceat(rows.held, first), np.add.reduceat(rows.within, first))
        hours = zip(begin[first].tolist(), end[first].tolist(), sums, strict=True)
        nothing = ',"within":{}'
        self._hours += [(since, queue, until, f"{{{told.removesuffix(nothing)}}}") for since, until, told in hours]

    def _amounts(self, units: Sequence[int], held: Amounts, within: Amounts) -> Iterator[str]:
        """Write what was held, and what of it inside the guaranteed, row by row."""
        forms = [f"{name}%d" for name in self.forms]
        both = zip(_texts(forms, units, held), _texts(forms, units, within), strict=True)
        return (f'"held":{{{held}}},"within":{{{within}}}' for held, within in both)


class _Rows(NamedTuple):
    """Records of one queue in their order: from when until when, what was held and of it inside the guaranteed.

    ``level`` and ``inside`` are both as they were after the first minute.
    """

    since: Times
    until: Times
    held: Amounts
    within: Amounts
    level: Amounts
    inside: Amounts


@dataclass(slots=True)
class _Changes:
    """The changes of one queue: when, how much of each resource, and how many times that.

    ``level`` is what the queue holds now of the resources of which it has something guaranteed, ``owed``.
    """

    owed: list[int]
    level: list[int]
    moments: list[int] = field(default_factory=list)
    amounts: list[Sequence[int]] = field(default_factory=list)
    times: list[int] = field(default_factory=list)


def _counted(told: _Changes, due: Sequence[int]) -> tuple[Amounts, Amounts, list[int]]:
    """Give what was held before the first change and after each, what is due, and the units in which both are counted.

    Each resource has a unit of its own, so that sums over a day are exact. Where not even those fit into 64 bits,
    Python's own integers are taken, which is slower.
    """
    rows: dict[tuple[int, ...], int] = {tuple(due): 0}
    numbers = [rows.setdefault(amounts, len(rows)) for amounts in map(tuple, told.amounts)]
    units = [gcd(*column) or 1 for column in zip(*rows, strict=True)]
    exact = np.array(list(rows), dtype=object).reshape(len(rows), len(units)) // np.array(units, dtype=object)
    times = np.array(told.times, dtype=np.int64)[:, None]
    largest = max((int(amount) for amount in exact.flat), default=0)
    if largest * max(1, int(np.abs(times).sum())) < 2**63:
        exact = exact.astype(np.int64)
    levels = np.zeros((len(numbers) + 1, len(units)), dtype=exact.dtype)
    np.cumsum(exact[numbers] * times, axis=0, out=levels[1:])
    if max(levels.max(initial=0), exact[0].max(initial=0)) >= 2**63 // DAY:
        levels, exact = levels.astype(object), exact.astype(object)
    return levels, exact[:1], units


def _texts(forms: Sequence[str], units: Sequence[int], *amounts: Amounts) -> list[str]:
    """Write amounts row by row: of each resource of which there is some, in its form.

    A form takes as many numbers as there are kinds of ``amounts``. Rows in which the same resources stand have a
    format in common: where one does not stand, its numbers are taken and none of their digits written.
    """
    shown = np.packbits(amounts[0] != 0, axis=1)
    codes = shown.view(f"V{shown.shape[1]}").ravel().tolist()
    formats = {code: _format(forms, code, len(amounts)) for code in set(codes)}
    columns = [_times(kind[:, place], unit) for place, unit in enumerate(units) for kind in amounts]
    return [formats[code] % row for code, row in zip(codes, zip(*columns, strict=True), strict=True)]


def _format(forms: Sequence[str], code: bytes, numbers: int) -> str:
    """Give the format of rows in which the resources of a code stand: a bit each, in their order."""
    bits = np.unpackbits(np.frombuffer(code, dtype=np.uint8), count=len(forms)).tolist()
    first = bits.index(1) if 1 in bits else 0
    parts = [f"{',' if place > first else ''}{form}" if bit else "%.0s" * numbers
             for place, (form, bit) in enumerate(zip(forms, bits, strict=True))]  # fmt: skip
    return "".join(parts)


def _times(amounts: Amounts, unit: int) -> list[int]:
    """Give amounts in units as whole ones; they may not fit into 64 bits."""
    fits = amounts.dtype != object and int(amounts.max()) * unit < 2**63
    return (amounts * unit).tolist() if fits else [amount * unit for amount in amounts.tolist()]


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
