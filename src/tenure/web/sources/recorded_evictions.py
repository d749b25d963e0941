"""The evictions of which a history tells, each with what was gained by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tenure.history.query import Query
from tenure.history.record import HistoryRecord
from tenure.history.store import HistoryStore
from tenure.model.values.resources import CPU, GPU
from tenure.web.sources.source import EvictionLine

MOST_EVICTIONS: Final = 50_000
"""Evictions that are sorted and filtered, the newest."""

WEIGHTED: Final = "weighted"
"""Stands for amounts of several resources, added up by their weights."""


def recorded_evictions(store: HistoryStore) -> list[EvictionLine]:
    """Go once through what was evicted and what came of it, from the newest on."""
    evicted: list[HistoryRecord] = []
    outcomes: dict[str, list[HistoryRecord]] = {}
    asked = Query(kinds=("evicted", "shadow", "outcome"))
    with store.reading() as connection:
        for record, _ in store.scan(connection, asked, newest=True):
            if record.kind == "outcome":
                outcomes.setdefault(record.workload or "", []).append(record)
            elif len(evicted) < MOST_EVICTIONS:
                evicted.append(record)
            else:
                break
    return _with_gains(evicted, outcomes)


def _with_gains(
    evicted: Sequence[HistoryRecord], outcomes: Mapping[str, Sequence[HistoryRecord]]
) -> list[EvictionLine]:
    """Say of evictions what was gained by them: what somebody gained by several is shared out by what each cost."""
    gain_of: list[HistoryRecord | None] = []
    made: dict[int, list[HistoryRecord]] = {}
    for record in evicted:
        found = outcomes.get(record.beneficiary or "", ()) if record.kind == "evicted" else ()
        gain = next((one for one in found if one.payload["evictedAt"] <= record.at <= one.payload["start"]), None)
        gain_of.append(gain)
        if gain is not None:
            made.setdefault(id(gain), []).append(record)
    lines = []
    for record, gain in zip(evicted, gain_of, strict=True):
        if gain is None:
            lines.append(_eviction(record, None, None))
            continue
        together = made[id(gain)]
        cost = sum(one.value for one in together)
        part = record.value / cost if cost else 1 / len(together)
        line = _eviction(record, gain.value * part / 1e6, gain.value >= cost)
        lines.append(line._replace(settled_at=gain.at))
    return lines


def _eviction(record: HistoryRecord, gained: float | None, paid: bool | None) -> EvictionLine:
    fields = record.payload
    return EvictionLine(
        record.at, record.workload or "", record.queue or "", str(fields.get("task", "")), record.cause or "",
        record.beneficiary, fields.get("forQueue"), fields.get("node"), fields.get("to"), record.value / 1e6,
        _spent(fields.get("lost") or {}), None if gained is None else {WEIGHTED: gained}, paid,
        "shadow" if record.kind == "shadow" else "done", str(fields.get("reason") or ""),
    )  # fmt: skip


def _spent(sums: Mapping[str, int]) -> dict[str, float]:
    """Give sums over time in resource-seconds, GPUs and cores in whole ones."""
    return {name: amount / (1e9 if name in (GPU, CPU) else 1e6) for name, amount in sums.items()}
