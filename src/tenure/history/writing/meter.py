"""What each queue holds over time, summed without rounding, as records of usage by the minute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tenure.history.record import Draft, encode, made_draft, quoted
from tenure.history.rollup import MINUTE
from tenure.model.values.duration import DAY


@dataclass(slots=True)
class _Gauge:
    """What one queue holds, of it inside the guaranteed (``owed``: there is any), and its sums since ``begun``."""

    level: list[int]
    inside: list[int]
    guaranteed: list[int]
    owed: bool
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
        self.named = [f"{quoted(r)}:" for r in self.resources]
        self.guaranteed = dict(guaranteed)
        self.begin = begin
        self.gauges: dict[str, _Gauge] = {}
        self.records: list[Draft] = []

    def change(self, queue: str, at: int, amounts: Sequence[int], sign: int) -> None:
        """A queue holds so much more (``sign`` 1, or as many times) or less (-1) from ``at`` on."""
        gauge = self.gauges.get(queue)
        if gauge is None:
            gauge = self._gauge(queue)
        if at > gauge.at:
            self._advance(queue, gauge, at)
        gauge.level = [now + sign * amount for now, amount in zip(gauge.level, amounts, strict=True)]
        if gauge.owed:
            gauge.inside = list(map(min, gauge.level, gauge.guaranteed))

    def guarantee(self, queue: str, at: int, due: Mapping[str, int]) -> None:
        """So much is guaranteed to a queue from ``at`` on."""
        if self.guaranteed.get(queue, {}) == due:
            return
        self.guaranteed[queue] = due
        gauge = self.gauges.get(queue)
        if gauge is None:
            return
        if at > gauge.at:
            self._advance(queue, gauge, at)
        gauge.guaranteed = [due.get(r, 0) for r in self.resources]
        gauge.owed = any(gauge.guaranteed)
        gauge.inside = list(map(min, gauge.level, gauge.guaranteed))

    def level(self, queue: str) -> Mapping[str, int]:
        """Give what a queue holds now."""
        gauge = self.gauges.get(queue)
        return dict(zip(self.resources, gauge.level, strict=True)) if gauge is not None else {}

    def within_guaranteed(self, queue: str) -> bool:
        """Whether a queue has something guaranteed, and holds no more of any of it now."""
        due = self.guaranteed.get(queue)
        if not due:
            return False
        level = self.level(queue)
        return all(level.get(resource, 0) <= amount for resource, amount in due.items())

    def close(self, at: int) -> None:
        """Sum up to ``at``, and give everything as records."""
        for queue, gauge in self.gauges.items():
            if at > gauge.at:
                self._integrate(gauge, at)
            self._emit(queue, gauge, at)

    def _gauge(self, queue: str) -> _Gauge:
        due = self.guaranteed.get(queue, {})
        zeros = [0] * len(self.resources)
        guaranteed = [due.get(r, 0) for r in self.resources]
        gauge = _Gauge(list(zeros), list(zeros), guaranteed, any(guaranteed), list(zeros), list(zeros))
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
        gauge.held = [total + now * time for total, now in zip(gauge.held, gauge.level, strict=True)]
        if gauge.owed:
            gauge.within = [total + now * time for total, now in zip(gauge.within, gauge.inside, strict=True)]
        gauge.at = until

    def _emit(self, queue: str, gauge: _Gauge, until: int) -> None:
        """Write what was summed since ``begun``, cut at midnights; all but the first piece is as the level says."""
        begin, held, within = gauge.begun, gauge.held, gauge.within
        gauge.begun = until
        if not any(held):
            return
        zeros = [0] * len(held)
        gauge.held, gauge.within = zeros, zeros.copy()
        inside = gauge.inside
        rows = zip(self.named, gauge.level, inside, strict=True)
        level = ",".join([f"{name}[{now},{within}]" for name, now, within in rows if now])
        midnight = begin - begin % DAY + DAY
        if until <= midnight:
            self._write(queue, (begin, until), held, within, level)
            return
        ends = [*range(midnight, until, DAY), until]
        rest = until - midnight
        held = [total - now * rest for total, now in zip(held, gauge.level, strict=True)]
        within = [total - now * rest for total, now in zip(within, inside, strict=True)]
        self._write(queue, (begin, midnight), held, within, level)
        for start, end in pairwise(ends):
            time = end - start
            self._write(queue, (start, end), [now * time for now in gauge.level], [w * time for w in inside], level)

    def _write(self, queue: str, span: tuple[int, int], held: list[int], within: list[int], level: str) -> None:
        all_held = ",".join([f"{name}{amount}" for name, amount in zip(self.named, held, strict=True) if amount])
        if not all_held:
            return
        inside = ",".join([f"{name}{amount}" for name, amount in zip(self.named, within, strict=True) if amount])
        since, until = span
        payload = f'{{"until":{until},"held":{{{all_held}}},"within":{{{inside}}},"level":{{{level}}}}}'
        self.records.append(made_draft((since, "usage", None, queue, None, None, until - since, payload, "", 0, b"")))


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
