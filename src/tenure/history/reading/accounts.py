"""What evictions lost and gained, set by set, as soon as both are known: from the records of a history."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import Connection

from tenure.history.reading.statement import rows_of
from tenure.history.store import HistoryStore
from tenure.shields.breaker import ClosedAccount


class _Loss(NamedTuple):
    """What one eviction lost, and when (µs since the epoch)."""

    at: int
    cause: str
    lost: int


def closed_accounts(store: HistoryStore, since: int, until: int) -> list[ClosedAccount]:
    """Give the accounts that were closed from ``since`` to before ``until`` (µs since the epoch), the oldest first.

    What was evicted for a workload is closed once it is known what that had of it, or it ends without having run.
    Evictions are looked for back to as long before ``since`` as the time asked for is.

    Raises
    ------
    HistoryError
        The store cannot be read.
    """
    with store.reading() as connection:
        losses = _losses(connection, 2 * since - until, until)
        if not losses:
            return []
        found = [*_with_outcome(connection, losses, since, until), *_in_vain(connection, losses, since, until)]
    return sorted(found)


def _losses(connection: Connection, since: int, until: int) -> dict[str, list[_Loss]]:
    """Give by beneficiary what was evicted for it, in the order of time."""
    found: dict[str, list[_Loss]] = {}
    for row in rows_of(connection, ("evicted",), since, until, payload=False):
        if row.beneficiary:
            found.setdefault(row.beneficiary, []).append(_Loss(row.at, row.cause or "", row.value))
    return found


def _with_outcome(
    connection: Connection, losses: dict[str, list[_Loss]], since: int, until: int
) -> Iterator[ClosedAccount]:
    """Give the accounts of those that started: each takes the losses that belong to its start out of ``losses``."""
    for row in rows_of(connection, ("outcome",), 2 * since - until, until):
        fields = json.loads(row.payload)
        first, start = fields.get("evictedAt", row.at), fields.get("start", row.at)
        all_of_it = losses.get(row.workload or "", [])
        own = [loss for loss in all_of_it if first <= loss.at <= start]
        losses[row.workload or ""] = [loss for loss in all_of_it if not first <= loss.at <= start]
        if own and row.at >= since:
            yield ClosedAccount(row.at, row.cause or "", sum(loss.lost for loss in own), row.value)


def _in_vain(connection: Connection, losses: dict[str, list[_Loss]], since: int, until: int) -> Iterator[ClosedAccount]:
    """Give the accounts of those that ended and never ran, whatever was evicted for them."""
    for row in rows_of(connection, ("ended",), since, until, payload=False):
        own = [loss for loss in losses.get(row.workload or "", ()) if loss.at <= row.at]
        if own and row.value == 0:  # it ran for no time at all
            yield ClosedAccount(row.at, own[0].cause, sum(loss.lost for loss in own), 0)
