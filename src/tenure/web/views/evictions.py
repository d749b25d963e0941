"""Evictions that happened, or would."""

from __future__ import annotations

from typing import Any

from tenure.model.values.duration import format_time
from tenure.web.sources.source import EvictionLine, EvictionPage, EvictionQuery
from tenure.web.views.look import Looked, Plain, moment


def page(look: Looked, query: EvictionQuery) -> Plain:
    """Evictions that happened, or would: one page, and sums by cause."""
    found = EvictionPage((), 0)
    if look.viewer.sees(query.workload or None) and look.viewer.sees(query.beneficiary or None):
        found = look.evictions(query)  # nobody finds out a name by asking for it
    return {
        **moment(look), "evictions": [eviction(line, look) for line in found.lines], "total": found.total,
        "limit": query.limit, "offset": query.offset, "sums": [cause_sum(one) for one in found.sums],
    }  # fmt: skip


def eviction(line: EvictionLine, look: Looked) -> Plain:
    """One eviction; of two workloads the one that the viewer does not see is not named."""
    viewer = look.viewer
    sees = viewer.sees(line.workload)
    return {
        "at": format_time(line.at), "workload": viewer.named(line.workload), "queue": line.queue,
        "task": line.task if sees else None, "cause": line.cause, "for": viewer.named(line.beneficiary),
        "forQueue": line.beneficiary_queue, "node": line.node if viewer.nodes else None,
        "to": line.to if viewer.nodes else None, "cost": line.cost,
        "lost": None if line.lost is None else dict(line.lost),
        "gained": None if line.gained is None else dict(line.gained),
        "paid": line.paid, "how": line.how, "reason": look.told(line.reason),
    }  # fmt: skip


def cause_sum(one: Any) -> Plain:
    """Give how many evictions a cause had, what they lost and gained, and for how many that paid."""
    return {"cause": one.cause, "evictions": one.count, "paid": one.paid, "unpaid": one.unpaid,
            "lost": dict(one.lost), "gained": dict(one.gained)}  # fmt: skip
