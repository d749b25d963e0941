"""What each queue holds over time, summed without rounding, as records of usage by the minute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tenure.history.record import Draft, encode
from tenure.history.rollup import DAY, MINUTE


@dataclass(slots=True)
class _Gauge:
    """What one queue holds, and its sums since ``begun``; from ``settled`` on nothing has changed."""

    level: list[int]
    guaranteed: list[int]
    held: list[int] = field(default_factory=list)
    within: list[int] = field(default_factory=list)
    begun: int = 0
    at: int = 0


class UsageMeter:
    """Adds up what queues hold. Amounts by resource in the order of ``resources``; times in µs since the epoch.

    A record covers the minute in which something changed, and what came after it until the next change: as it was at
    the end of that minute. None crosses a midnight (UTC). So any window of whole minutes can be summed exactly.
    """

    def __init__(self, resources: Sequence[str], guaranteed: Mapping[str, Mapping[str, int]], begin: int) -> None:
        self.resources = list(resources)
        self.guaranteed = guaranteed
        self.begin = begin
        self.gauges: dict[str, _Gauge] = {}
        self.records: list[Draft] = []

    def change(self, queue: str, at: int, amounts: Sequence[int], sign: int) -> None:
        """A queue holds so much more (``sign`` 1) or less (-1) from ``at`` on."""
        gauge = self.gauges.get(queue)
        if gauge is None:
            gauge = self._gauge(queue)
        if at > gauge.at:
            self._advance(queue, gauge, at)
        level = gauge.level
        for index, amount in enumerate(amounts):
            if amount:
                level[index] += sign * amount

    def level(self, queue: str) -> Mapping[str, int]:
        """Give what a queue holds now."""
        gauge = self.gauges.get(queue)
        return dict(zip(self.resources, gauge.level, strict=True)) if gauge is not None else {}

    def close(self, at: int) -> None:
        """Sum up to ``at``, and give everything as records."""
        for queue, gauge in self.gauges.items():
            if at > gauge.at:
                self._integrate(gauge, at)
            self._emit(queue, gauge, at)

    def _gauge(self, queue: str) -> _Gauge:
        due = self.guaranteed.get(queue, {})
        zeros = [0] * len(self.resources)
        gauge = _Gauge(list(zeros), [due.get(r, 0) for r in self.resources], list(zeros), list(zeros))
        gauge.begun = gauge.at = self.begin
        self.gauges[queue] = gauge
        return gauge

    def _advance(self, queue: str, gauge: _Gauge, at: int) -> None:
        minute = at - at % MINUTE
        if minute > gauge.begun:
            if minute > gauge.at:
                self._integrate(gauge, minute)
            self._emit(queue, gauge, minute)
        if at > gauge.at:
            self._integrate(gauge, at)

    def _integrate(self, gauge: _Gauge, until: int) -> None:
        time = until - gauge.at
        held, within, due = gauge.held, gauge.within, gauge.guaranteed
        for index, level in enumerate(gauge.level):
            if level:
                held[index] += level * time
                within[index] += min(level, due[index]) * time
        gauge.at = until

    def _emit(self, queue: str, gauge: _Gauge, until: int) -> None:
        """Write what was summed since ``begun``, cut at midnights; all but the first piece is as the level says."""
        if any(gauge.held):
            inside = [min(now, due) for now, due in zip(gauge.level, gauge.guaranteed, strict=True)]
            begin = gauge.begun
            ends = [*range(begin - begin % DAY + DAY, until, DAY), until]
            rest = until - ends[0]
            first = (
                [total - now * rest for total, now in zip(gauge.held, gauge.level, strict=True)],
                [total - now * rest for total, now in zip(gauge.within, inside, strict=True)],
            )
            level = {
                r: [now, within] for r, now, within in zip(self.resources, gauge.level, inside, strict=True) if now
            }
            self._write(queue, begin, ends[0], first, level)
            for start, end in pairwise(ends):
                time = end - start
                self._write(queue, start, end, ([now * time for now in gauge.level], [w * time for w in inside]), level)
        gauge.begun = until
        gauge.held = [0] * len(self.resources)
        gauge.within = [0] * len(self.resources)

    def _write(
        self, queue: str, since: int, until: int, sums: tuple[list[int], list[int]], level: dict[str, list[int]]
    ) -> None:
        held, within = ({r: v for r, v in zip(self.resources, s, strict=True) if v} for s in sums)
        if not held:
            return
        payload = {"until": until, "held": held, "within": within, "level": level}
        self.records.append(Draft(since, "usage", queue=queue, value=until - since, payload=encode(payload)))


def capacity_records(capacity: Mapping[str, int], since: int, until: int) -> list[Draft]:
    """Give what there was to hold, by resource, as records of the queue without a name; cut at midnights."""
    found = []
    begin = since
    while begin < until:
        end = min(until, begin - begin % DAY + DAY)
        sums = {r: amount * (end - begin) for r, amount in capacity.items() if amount}
        level = {r: [0, 0, amount] for r, amount in capacity.items() if amount}
        payload = {"until": end, "held": {}, "within": {}, "capacity": sums, "level": level}
        found.append(Draft(begin, "usage", queue="", value=end - begin, payload=encode(payload)))
        begin = end
    return found
