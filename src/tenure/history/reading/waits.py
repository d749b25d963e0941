"""When a workload waited for room, read off the records of its story."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tenure.history.reading.views import LIFE, Stay, live_on
from tenure.history.record import HistoryRecord


class StoryWait(NamedTuple):
    """A time in which a workload had no room: from when until when (µs); ``until`` None: it still has none."""

    since: int
    until: int | None

    def length(self, last: int) -> int:
        """Give how long it was, in µs; ``last`` is the end of the records."""
        return (last if self.until is None else self.until) - self.since


def waits_of(records: Iterable[HistoryRecord], workload: str) -> list[StoryWait]:
    """Give the times in which a workload waited, in order: before its start, and after it was evicted as a whole."""
    there: dict[str, Stay] = {}
    waits: list[StoryWait] = []
    since: int | None = None
    for record in records:
        if record.workload != workload or record.kind not in LIFE:
            continue
        live_on(there, record)
        is_waiting = workload in there and there[workload].started is None
        if is_waiting and since is None:
            since = record.at
        elif not is_waiting and since is not None:
            waits.append(StoryWait(since, record.at))
            since = None
    if since is not None:
        waits.append(StoryWait(since, None))
    return [wait for wait in waits if wait.since != wait.until]
