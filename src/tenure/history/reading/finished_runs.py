"""For how long workloads ran that have finished, by queue and user: from the records of a history."""

from __future__ import annotations

import json
from typing import Final

from tenure.engine.run_times import RunTimes
from tenure.history.reading.statement import rows_of
from tenure.history.store import HistoryStore
from tenure.model.cluster import DEFAULT_QUEUE, FinishedRuns
from tenure.model.values.duration import DAY

RUNS_SINCE: Final = 7 * DAY
"""How far back finished runs are looked for (µs)."""


def latest_runs(store: HistoryStore, now: int) -> tuple[FinishedRuns, ...]:
    """Give the last runs that finished before ``now`` (µs since the epoch), as many as estimates look at.

    Raises
    ------
    HistoryError
        The store cannot be read.
    """
    return RunTimes(finished_runs(store, now - RUNS_SINCE, now)).plain()


def finished_runs(store: HistoryStore, since: int, until: int) -> tuple[FinishedRuns, ...]:
    """Give the runs that finished from ``since`` to before ``until`` (µs since the epoch), the oldest first.

    Those of each queue, and after them those of each user in it, as far as users were recorded.

    Raises
    ------
    HistoryError
        The store cannot be read.
    """
    found: dict[tuple[str, str], list[int]] = {}
    if since < until:
        with store.reading() as connection:
            for row in rows_of(connection, ("ended",), since, until):
                if row.value:  # what never ran tells of nothing
                    user = json.loads(row.payload).get("user", "") if '"user"' in row.payload else ""
                    for whose in dict.fromkeys(("", user)):
                        found.setdefault((row.queue or DEFAULT_QUEUE, whose), []).append(row.value)
    return tuple(
        FinishedRuns(queue=queue, user=user or None, ran=tuple(ran)) for (queue, user), ran in sorted(found.items())
    )
