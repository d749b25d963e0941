"""The statement: what was used, what evictions destroyed and who caused it, what lay idle, and whether it paid.

All sums are exact integers of amount times µs. What a queue held is counted to the minute
(`tenure.history.writing.meter`); what an eviction destroyed is booked when it happened, as is what it gained, although
that is known later. So

* used + lost + idle = capacity x time, and used is what was held and not lost;
* the sum of ``lost`` over the rows is the sum of ``caused``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from sqlalchemy import Connection, select

from tenure.history.reading.budget_use import BudgetUse, budget_uses
from tenure.history.reading.tops import tops_of
from tenure.history.rollup import HOUR, MINUTE, SUMMED, row_of
from tenure.history.scope import records_seen, usage_seen
from tenure.history.store import IN_PARTS, HistoryStore, months_between
from tenure.model.documents.collector import collector_paused
from tenure.model.values.duration import DAY

By = Literal["cause", "queue", "team", "beneficiary", "workload", "user"]
BY: Final[tuple[str, ...]] = get_args(By)

NOBODY: Final = ""
"""Key of the row of what was done for nobody, or whose team or user is not known."""

Sums = dict[str, int]
"""Amount times µs by resource."""

_Owner: TypeAlias = tuple[int, str]
"""A workload, or a queue: the number of its node pool, and its name there."""


@dataclass(slots=True)
class StatementRow:
    """One line: what was used under its key, lost to evictions, caused by it to others, saved and gained.

    ``waits`` are in µs, ``entitled`` those of starts within the guaranteed; ``repeated`` counts workloads evicted more
    than once, ``paid`` evictions that gained what they cost or more.
    """

    key: str
    used: Sums = field(default_factory=dict)
    within: Sums = field(default_factory=dict)
    lost: Sums = field(default_factory=dict)
    caused: Sums = field(default_factory=dict)
    saved: Sums = field(default_factory=dict)
    gained: Sums = field(default_factory=dict)
    evictions: int = 0
    paid: int = 0
    repeated: int = 0
    cost: int = 0
    gain: int = 0
    waits: list[int] = field(default_factory=list)
    entitled: list[int] = field(default_factory=list)

    @property
    def says_something(self) -> bool:
        """Whether anything stands in it but its key."""
        return bool(
            self.used or self.waits or self.evictions or self.within or self.lost or self.caused or self.saved
            or self.gained or self.cost or self.gain
        )  # fmt: skip


@dataclass(slots=True)
class Statement:
    """A statement over a window (µs since the epoch). ``losing``: causes that lost more than they gained."""

    since: int
    until: int
    by: str
    capacity: Sums
    used: Sums
    within: Sums
    lost: Sums
    idle: Sums
    rows: list[StatementRow]
    losing: list[str]
    gaps: list[tuple[int, int]]
    budgets: list[BudgetUse] = field(default_factory=list)


class _Evicted(NamedTuple):
    """A task that was evicted, as a statement needs it; it is not kept. ``source``: number of its node pool."""

    source: int
    at: int
    workload: str
    queue: str
    cause: str
    beneficiary: str
    cost: int
    fields: dict[str, Any]


class _Set(NamedTuple):
    """What was evicted in one node pool at one time, by one cause, for one workload: tells such a set from others."""

    source: int
    at: int
    cause: str
    beneficiary: str


def statement_of(
    store: HistoryStore, since: int | None = None, until: int | None = None, by: str = "cause"
) -> Statement:
    """Make the statement of a window; its ends are taken to whole minutes, and where one is left out, to what there is.

    What happens at ``until`` is not in it, also where that is the last time of all: it is in the window that follows.

    Raises
    ------
    HistoryError
        The store cannot be read.
    """
    first, last = store.span() or (0, 0)
    begin = first if since is None or since <= first else since - since % MINUTE
    if until is None or until > last:
        end, before = max(begin, last), last + 1
    else:
        end = before = max(begin, until - until % MINUTE)
    with store.reading() as connection, collector_paused():  # 100,000 rows of workloads take half the time
        return _Maker(connection, begin, before, by).make(end)


class _Maker:
    """Adds a statement up."""

    def __init__(self, connection: Connection, since: int, until: int, by: str) -> None:
        self.connection, self.since, self.until, self.by = connection, since, until, by
        self.rows: dict[str, StatementRow] = {}
        self.tops = tops_of(connection) if by == "team" else {}
        self.cost_of: Counter[str] = Counter()
        self.gain_of: Counter[str] = Counter()

    def make(self, end: int) -> Statement:
        held, capacity = usage_between(self.connection, self.since, self.until)
        lost = self._losses(self._gains(self._sets()))
        self._used(held)
        self._waits()
        total: Sums = {}
        within: Sums = {}
        for sums, inside in held.values():
            add(total, sums)
            add(within, inside)
        names = [r for r in capacity if capacity[r] or total.get(r)] + [r for r in total if r not in capacity]
        used = {r: total.get(r, 0) - lost.get(r, 0) for r in names}
        idle = {r: capacity.get(r, 0) - total.get(r, 0) for r in names}
        losing = _losing(self.cost_of, self.gain_of)
        told = [row for row in self.rows.values() if row.says_something]
        rows = sorted(told, key=lambda r: (r.key not in losing, -r.cost, r.key))
        return Statement(
            self.since, end, self.by, {r: capacity.get(r, 0) for r in names}, used, within,
            {r: lost.get(r, 0) for r in names}, idle, rows, losing,
            gaps_between(self.connection, self.since, self.until),
            budget_uses(self.connection, self.since, self.until),
        )  # fmt: skip

    def _row(self, key: str) -> StatementRow:
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = StatementRow(key)
        return row

    # -- evictions ----------------------------------------------------------------------------------------------------

    def _evicted(self) -> Iterator[_Evicted]:
        """Give what was evicted, one by one: of millions of evictions none is held longer than it is looked at."""
        for row in rows_of(self.connection, ("evicted",), self.since, self.until):
            yield _Evicted(
                row.source, row.at, row.workload or "", row.queue or "", row.cause or "", row.beneficiary or "",
                row.value, json.loads(row.payload),
            )  # fmt: skip

    def _sets(self) -> dict[_Owner, dict[_Set, int]]:
        """Give what each set cost, by the workload that it was evicted for, and sum up what causes cost."""
        sets: dict[_Owner, dict[_Set, int]] = {}
        for row in rows_of(self.connection, ("evicted",), self.since, self.until, payload=False):
            cause, beneficiary = intern(row.cause or ""), intern(row.beneficiary or "")
            self.cost_of[cause] += row.value
            key, mine = _Set(row.source, row.at, cause, beneficiary), sets.setdefault((row.source, beneficiary), {})
            mine[key] = mine.get(key, 0) + row.value
        return sets

    def _losses(self, paid: set[_Set]) -> Sums:
        """Book what was lost; gives the sum of it."""
        moment, seen = self.since, set[tuple[int, str, str]]()
        times: Counter[tuple[str, _Owner]] = Counter()
        total: Sums = {}
        for one in self._evicted():
            victim, author = self._row(self._victim(one)), self._row(self._author(one))
            lost = one.fields.get("lost", {})
            for sums in (total, victim.lost, author.caused):
                add(sums, lost)
            add(victim.saved, one.fields.get("saved", {}))
            victim.cost += one.cost
            if self.by in {"workload", "user"} or (self.by == "team" and "team" in one.fields):
                add(victim.used, one.fields.get("held", {}))
                add(victim.used, lost, -1)
            if one.at != moment:
                moment, seen = one.at, set()
            if (one.source, one.workload, one.cause) not in seen:
                seen.add((one.source, one.workload, one.cause))
                victim.evictions += 1
                times[victim.key, (one.source, intern(one.workload))] += 1
                victim.paid += _Set(one.source, one.at, one.cause, one.beneficiary) in paid
        for (key, _), count in times.items():
            self.rows[key].repeated += count > 1
        return total

    def _victim(self, one: _Evicted) -> str:
        if self.by == "cause":
            return one.cause
        if self.by == "beneficiary":
            return one.beneficiary
        return self._whose((one.source, one.workload), one.queue, one.fields, "team", "user")

    def _author(self, one: _Evicted) -> str:
        if self.by == "cause":
            return one.cause
        owner = one.source, one.beneficiary
        return self._whose(owner, one.fields.get("forQueue", NOBODY), one.fields, "forTeam", "forUser")

    def _whose(self, owner: _Owner, queue: str, fields: Mapping[str, Any], team: str, user: str) -> str:
        if self.by == "queue":
            return queue
        if self.by == "user":
            return str(fields.get(user, NOBODY))
        if self.by == "team":
            return str(fields.get(team) or _top(self.tops, (owner[0], queue)))
        return owner[1]

    def _gains(self, sets: Mapping[_Owner, Mapping[_Set, int]]) -> set[_Set]:
        """Book what evictions gained, and give those sets that paid."""
        paid: set[_Set] = set()
        for row in rows_of(self.connection, ("outcome",), self.since, None):
            fields = json.loads(row.payload)
            at = fields.get("evictedAt", row.at)
            if not self.since <= at < self.until:
                continue
            cause = row.cause or ""
            self.gain_of[cause] += row.value
            named = {"cause": cause, "beneficiary": row.workload or ""}.get(self.by)
            owner = row.source, row.workload or ""
            whose = self._whose(owner, row.queue or "", fields, "team", "user")
            author = self._row(whose if named is None else named)
            author.gain += row.value
            add(author.gained, fields.get("gained", {}))
            start = fields.get("start", row.at)
            mine = {key: cost for key, cost in sets.get(owner, {}).items() if at <= key.at <= start}
            if mine and row.value >= sum(mine.values()):
                paid.update(mine)
        return paid

    # -- what was held, and who waited --------------------------------------------------------------------------------

    def _used(self, held: Mapping[_Owner, tuple[Sums, Sums]]) -> None:
        if self.by in {"cause", "beneficiary"}:
            return
        if self.by in {"workload", "user"}:
            for row in rows_of(self.connection, ("ended",), self.since, self.until):
                if '"held"' not in row.payload:
                    continue
                fields = json.loads(row.payload)
                if fields.get("held"):
                    key = self._whose((row.source, row.workload or ""), row.queue or "", fields, "team", "user")
                    add(self._row(key).used, fields["held"])
            return
        for (source, queue), (sums, inside) in held.items():
            if not any(sums.values()):
                continue
            row = self._row(_top(self.tops, (source, queue)) if self.by == "team" else queue)
            add(row.used, sums)
            add(row.within, inside)
        for row in self.rows.values():
            add(row.used, row.lost, -1)

    def _waits(self) -> None:
        if self.by in {"cause", "beneficiary"}:
            return
        named = f'"{self.by}":'
        for row in rows_of(self.connection, ("started",), self.since, self.until):
            payload = row.payload
            if '"again":true' in payload:
                continue  # how long it waited is how long it waited at first
            fields = json.loads(payload) if named in payload else {}
            owner = row.source, row.workload or ""
            own = self._row(self._whose(owner, row.queue or "", fields, "team", "user"))
            own.waits.append(row.value)
            if '"entitled":true' in payload:
                own.entitled.append(row.value)


def _top(tops: Mapping[int, Mapping[str, str]], queue: _Owner) -> str:
    """Give the queue at the top above one, as its node pool has them."""
    source, name = queue
    return tops.get(source, {}).get(name, name)


def _losing(cost: Counter[str], gain: Counter[str]) -> list[str]:
    """Name the causes that lost more than they gained, the worst first."""
    losing = [cause for cause in cost if cost[cause] > gain[cause]]
    return sorted(losing, key=lambda cause: (gain[cause] - cost[cause], cause))


def gaps_between(connection: Connection, since: int, until: int) -> list[tuple[int, int]]:
    """Give from when to when records are missing that a window would have had."""
    found = [json.loads(row.payload) for row in rows_of(connection, ("gap",), since, None)]
    return [(gap["since"], gap["until"]) for gap in found if gap["since"] < until]


def add(sums: Sums, more: Mapping[str, int], sign: int = 1) -> None:
    """Add amounts by resource to sums."""
    for resource, amount in more.items():
        sums[resource] = sums.get(resource, 0) + sign * amount


def rows_of(
    connection: Connection, kinds: tuple[str, ...], since: int | None, until: int | None, *, payload: bool = True
) -> Iterator[Any]:
    """Give the columns that statements need of records of some kinds, in the order of time."""
    for month in months_between(connection, since, until):
        c = records_seen(connection, month).c
        columns = (c.source, c.at, c.workload, c.queue, c.cause, c.beneficiary, c.value)
        query = select(*columns, *((c.payload,) if payload else ())).where(c.kind.in_(kinds))
        if since is not None:
            query = query.where(c.at >= since)
        if until is not None:
            query = query.where(c.at < until)
        for rows in connection.execute(query.order_by(c.at, c.id), execution_options=IN_PARTS).partitions():
            yield from rows


def usage_between(connection: Connection, since: int, until: int) -> tuple[dict[_Owner, tuple[Sums, Sums]], Sums]:
    """Sum what each queue of each node pool held, and held within its guaranteed, and what there was: amounts times µs.

    Rows of `tenure_usage` that lie inside the window are taken whole; of the others, their records.
    """
    held: dict[_Owner, tuple[Sums, Sums]] = {}
    capacity: Sums = {}
    c = usage_seen(connection).c
    query = select(c.source, c.since, c.until, c.queue, c.payload).where(c.since > since - DAY - 1, c.since < until)
    partial: dict[tuple[int, int, str], int] = {}
    for row in connection.execute(query):
        if since <= row.since and row.until <= until:
            _count(held, capacity, (row.source, row.queue), json.loads(row.payload))
        elif row.until > since:
            partial[row.source, row.since, row.queue] = row.until
    for record in _records_of(connection, partial):
        _count(held, capacity, (record.source, record.queue), clipped(record, since, until))
    return held, capacity


def _records_of(connection: Connection, rows: Mapping[tuple[int, int, str], int]) -> Iterator[Any]:
    """Give the records of which some rows of `tenure_usage` were made; the rows lie around the two ends of a window."""
    begins = sorted({since for _, since, _ in rows})
    for begin, end in _runs([(since, since + HOUR) for since in begins]):
        for month in months_between(connection, begin - 1, end):
            c = records_seen(connection, month).c
            query = select(c.source, c.at, c.value, c.queue, c.payload)
            query = query.where(c.kind == "usage", c.at >= begin - 1, c.at < end)
            for record in connection.execute(query):
                since, _ = row_of(record.at, record.value)
                if (record.source, since, record.queue) in rows:
                    yield record


def _runs(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join spans that touch or overlap, so that nothing in them is read twice."""
    joined: list[tuple[int, int]] = []
    for begin, end in spans:
        if joined and begin - 1 <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined


def clipped(record: Any, since: int, until: int) -> dict[str, Sums]:
    """Give what one record of usage says of a window that begins and ends with whole minutes.

    What changed, changed in the record's first minute; after it everything was as its level says.
    """
    fields = json.loads(record.payload)
    begin, end = record.at, record.at + record.value
    steady = min(end, begin - begin % MINUTE + MINUTE)
    rest = end - steady
    tail = max(0, min(end, until) - max(steady, since))
    first = since <= begin < until
    found: dict[str, Sums] = {}
    for place, name in enumerate(SUMMED):
        levels = {r: level[place] for r, level in fields["level"].items() if len(level) > place}
        sums = fields.get(name, {})
        found[name] = {
            r: (sums.get(r, 0) - levels.get(r, 0) * rest) * first + levels.get(r, 0) * tail for r in {**sums, **levels}
        }
    return found


def _count(held: dict[_Owner, tuple[Sums, Sums]], capacity: Sums, queue: _Owner, fields: Mapping[str, Any]) -> None:
    if fields.get("capacity"):
        add(capacity, fields["capacity"])
    if fields.get("held"):
        sums, inside = held.setdefault(queue, ({}, {}))
        add(sums, fields["held"])
        add(inside, fields.get("within", {}))
