"""What a window used of each disruption budget: what was charged to it, and how full it was when it was fullest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from tenure.engine.state.cost import lost_unit
from tenure.history.configured import configured
from tenure.history.record import Origin
from tenure.history.scope import origins_seen, records_seen
from tenure.history.store import IN_PARTS, months_between
from tenure.ledger.entries import Charge, EvictionRequest
from tenure.ledger.fullest import FullestWindow, WindowFollower
from tenure.ledger.rules import Rule
from tenure.model.cluster import Cluster
from tenure.model.file.load import cluster_of
from tenure.model.settings import BudgetRule


@dataclass(slots=True)
class BudgetUse:
    """What was charged to one budget in a window; the rule is as it was configured at the window's end.

    ``lost`` is in resource-µs by resource: of whole GPUs, cores and GiB. ``is_known`` is false of a rule that chooses
    pods by labels, which no record has: then nothing is counted.
    """

    origin: Origin
    rule: BudgetRule
    evictions: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    fullest: FullestWindow | None = None

    @property
    def is_known(self) -> bool:
        """Whether the history can tell which evictions were charged to it."""
        return self.rule.selector is None


def budget_uses(connection: Connection, since: int, until: int) -> list[BudgetUse]:
    """Give what evictions from ``since`` until before ``until`` (µs) used of each budget of each node pool.

    A budget's window that began earlier counts with what was evicted in it then.
    """
    ledgers: dict[int, _PoolLedger] = {}
    for source, origin in origins_seen(connection):
        cluster = _cluster(configured(connection, source, until))
        if cluster is not None and cluster.settings.disruption.budgets:
            ledgers[source] = _PoolLedger(origin, cluster)
    if ledgers:
        reach = max(ledger.reach for ledger in ledgers.values())
        for row in _evicted(connection, since - reach, until):
            if row.source in ledgers:
                ledgers[row.source].charge(row, since)
    return [use for ledger in ledgers.values() for use in ledger.uses]


class _PoolLedger:
    """The budgets of one node pool, and what is charged to them."""

    def __init__(self, origin: Origin, cluster: Cluster) -> None:
        self.parents = {queue.name: queue.parent for queue in cluster.queues}
        self.uses = [BudgetUse(origin, rule) for rule in cluster.settings.disruption.budgets]
        self.followed = [(use, WindowFollower(Rule(use.rule, (), ()))) for use in self.uses if use.is_known]

    @property
    def reach(self) -> int:
        """For how long before a window (µs) evictions may still count in it."""
        return max(max(use.rule.per or 0, use.rule.duration or 0) for use in self.uses)

    def charge(self, row: Any, since: int) -> None:
        fields = json.loads(row.payload)
        ask = EvictionRequest(
            workload=row.workload or "",
            task=str(fields.get("task", "")),
            cause=row.cause or "",
            queues=self._path(row.queue),
            for_queues=() if row.beneficiary is None else self._path(fields.get("forQueue")),
            lost={name: amount // lost_unit(name) for name, amount in fields.get("lost", {}).items() if amount},
        )
        for use, follower in self.followed:
            if follower.charge(Charge(at=row.at, ask=ask), since) and row.at >= since:
                use.evictions += 1
                for name, time in ask.lost.items():
                    use.lost[name] = use.lost.get(name, 0) + time
                use.fullest = follower.fullest

    def _path(self, queue: str | None) -> tuple[str, ...] | None:
        """Give a queue and those above it; None where it is unknown, which counts as any queue."""
        if queue not in self.parents:
            return None
        path: dict[str, None] = {}
        above: str | None = queue
        while above is not None and above not in path:
            path[above] = None
            above = self.parents.get(above)
        return tuple(path)


def _cluster(plain: Mapping[str, Any] | None) -> Cluster | None:
    """Read a recorded cluster without its nodes, which no budget asks for."""
    return None if plain is None else cluster_of({**plain, "nodes": [], "disruptionBudgets": []}, "history")


def _evicted(connection: Connection, since: int, until: int) -> Iterator[Any]:
    for month in months_between(connection, since, until):
        c = records_seen(connection, month).c
        query = select(c.at, c.source, c.workload, c.queue, c.cause, c.beneficiary, c.payload)
        query = query.where(c.kind == "evicted", c.at >= since, c.at < until).order_by(c.at, c.id)
        for rows in connection.execute(query, execution_options=IN_PARTS).partitions():
            yield from rows
