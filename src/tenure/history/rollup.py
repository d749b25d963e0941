"""Usage by the hour, made of the records of usage as they are written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from tenure.history.record import encode

MINUTE: Final = 60_000_000
HOUR: Final = 60 * MINUTE

SUMMED: Final = ("held", "within", "capacity")
"""Fields of a record of usage that add up."""


UsageRow: TypeAlias = tuple[int, int, str, int, str]
"""A row of the sums by the hour: source, since, queue, until, payload."""


class Rollup:
    """Sums of usage by source, hour and queue; a record that is longer than an hour stands for itself.

    No record of usage crosses a midnight (UTC), so neither does a row of the sums.
    """

    def __init__(self) -> None:
        self.rows: dict[tuple[int, int, str], tuple[int, dict[str, Any]]] = {}

    def add(self, source: int, at: int, queue: str, span: int, payload: str) -> None:
        """Add one record of usage: from ``at`` on, for ``span`` µs."""
        since, until = row_of(at, span)
        self.sum((source, since, queue), until, json.loads(payload))

    def sum(self, key: tuple[int, int, str], until: int, fields: dict[str, Any]) -> None:
        """Add amounts to the row of a source, begin and queue."""
        known = self.rows.get(key)
        if known is None:
            self.rows[key] = until, {name: dict(fields[name]) for name in SUMMED if fields.get(name)}
            return
        for name in SUMMED:
            sums = known[1].setdefault(name, {}) if fields.get(name) else {}
            for resource, amount in fields.get(name, {}).items():
                sums[resource] = sums.get(resource, 0) + amount
        self.rows[key] = max(until, known[0]), known[1]

    def told(self) -> Iterator[UsageRow]:
        """Give the sums in order."""
        for (source, since, queue), (until, fields) in sorted(self.rows.items()):
            yield source, since, queue, until, encode(fields)


def row_of(at: int, span: int) -> tuple[int, int]:
    """Give the row that a record is summed in: of its hour, or its own one where it lasts beyond that.

    A row of its own never begins with an hour, so that it is not taken for the sum of that.
    """
    hour = at - at % HOUR
    return (hour, hour + HOUR) if at + span <= hour + HOUR else (at if at > hour else at + 1, at + span)
