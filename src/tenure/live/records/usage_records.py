"""What the queues of a live cluster hold, by the minute, as records, each with a key of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tenure.engine.state.queues import Amount
from tenure.history.record import Draft, key_of
from tenure.history.rollup import MINUTE
from tenure.history.writing.meter import UsageMeter, capacity_records
from tenure.live.records.queue_levels import QueueLevels
from tenure.model.cluster import Cluster
from tenure.model.device_resources import capacity_of
from tenure.model.queue import Queue
from tenure.model.values.resources import PODS


class UsageRecords:
    """Makes the records. ``pool`` stands in their keys."""

    def __init__(self, pool: str) -> None:
        self.pool = pool
        self._meter: UsageMeter | None = None
        self._levels: dict[str, list[int]] = {}
        self._queues: Sequence[Queue] = ()
        self._allocated: dict[str, Amount] = {}
        self._until = 0

    def begin(self) -> None:
        """Lead from now on: what was known of an earlier term counts no more."""
        self._meter = None

    def records(self, cluster: Cluster, queues: QueueLevels) -> Iterator[Draft]:
        """Count up to the last whole minute; the first minute of a term, which began before it, is not counted."""
        now = cluster.now
        resources = [r for r in queues.resources if r != PODS]
        places = [queues.resources.index(r) for r in resources]
        if self._meter is None or self._meter.resources != resources:
            begin = now - now % MINUTE + MINUTE
            self._meter = UsageMeter(resources, {q.name: q.guaranteed for q in cluster.queues}, begin)
            self._queues, self._levels, self._until = (), {}, begin
        meter = self._meter
        minute = now - now % MINUTE
        while self._until + MINUTE <= minute:
            end = self._until + MINUTE
            meter.close(end)
            yield from self._minute(meter, end, _capacity(cluster, resources))
            self._until = end
        self._tell(meter, max(now, self._until), queues, places)

    def _tell(self, meter: UsageMeter, at: int, queues: QueueLevels, places: Sequence[int]) -> None:
        """Tell the meter of queues that hold, or are guaranteed, something else than before, or are gone."""
        is_other = queues.queues is not self._queues
        if is_other:
            self._queues, self._allocated = queues.queues, {}
        leaves = [number for number, is_leaf in enumerate(queues.leaf) if is_leaf]
        for number in leaves:
            queue, allocated = queues.queues[number], queues.allocated[number]
            if is_other:
                meter.guarantee(queue.name, at, queue.guaranteed)
            if self._allocated.get(queue.name) is not allocated:
                self._allocated[queue.name] = allocated
                self._level(meter, at, queue.name, [allocated[place] for place in places])
        if is_other:
            for name in sorted(self._levels.keys() - {queues.queues[number].name for number in leaves}):
                self._level(meter, at, name, [0] * len(places))

    def _level(self, meter: UsageMeter, at: int, queue: str, level: list[int]) -> None:
        before = self._levels.get(queue, [0] * len(level))
        if level != before:
            meter.change(queue, at, [new - old for new, old in zip(level, before, strict=True)], 1)
            self._levels[queue] = level

    def _minute(self, meter: UsageMeter, end: int, capacity: Mapping[str, int]) -> Iterator[Draft]:
        drafts = [*meter.records, *capacity_records(capacity, end - MINUTE, end)]
        meter.records.clear()
        for draft in drafts:
            key = key_of(self.pool, draft.kind, draft.queue, draft.at // MINUTE)
            yield draft._replace(key=key)


def _capacity(cluster: Cluster, resources: Iterable[str]) -> dict[str, int]:
    there = capacity_of(cluster.nodes, cluster.settings)
    return {r: there.get(r, 0) for r in resources}
