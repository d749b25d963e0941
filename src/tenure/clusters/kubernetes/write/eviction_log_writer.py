"""Writing the log of evictions."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Sequence

import msgspec

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.read import eviction_log
from tenure.clusters.kubernetes.read.observe import Observed, alive_pods
from tenure.model.cluster import Cluster

HOUR = 3_600_000_000
DAY = 24 * HOUR

UNSURE_SECONDS = 60.0
"""For so long an eviction whose answer was lost may still show in the watch."""


class EvictionLogWriter:
    """The log's ConfigMaps, which only the leader writes."""

    def __init__(self, client: Client, informers: InformerCache, allowed: Callable[[], None]) -> None:
        self.client = client
        self.informers = informers
        self.allowed = allowed
        self._unsure: dict[str, float] = {}

    def add(self, entries: Sequence[eviction_log.EvictionEntry], now: int, observed: Observed) -> None:
        """Write entries before their evictions are asked for; what is too old to matter is dropped on the way.

        Raises
        ------
        ApiError
            They are not written; nothing of them may be carried out.
        """
        since = now - horizon(observed.cluster)
        page = self._newest()
        if page is None:
            self._create(0, entries)
            return
        number, item, known = page
        kept = [e for e in self._done(known) if _matters(e, since, now)]
        text = eviction_log.write([*kept, *entries])
        if len(text) > eviction_log.MOST_BYTES and kept:
            self._create(number + 1, entries)
            self._drop_old(since, now)
        else:
            self._replace(item, text)

    def remove(self, entries: Sequence[eviction_log.EvictionEntry]) -> None:
        """Take back entries of evictions that were refused."""
        gone = {(e.uid, e.at) for e in entries}
        page = self._newest()
        if page is not None:
            _, item, known = page
            self._replace(item, eviction_log.write(e for e in known if (e.uid, e.at) not in gone))

    def forget(self, tasks: Container[tuple[str, str]]) -> None:
        """Take out what was announced of these tasks (by workload and name) and is withdrawn."""
        page = self._newest()
        if page is not None:
            _, item, known = page
            alive = alive_pods(self.informers)
            kept = [e for e in known if e.uid not in alive or (e.workload, e.task) not in tasks]
            if len(kept) < len(known):
                self._replace(item, eviction_log.write(kept))

    def doubt(self, entries: Sequence[eviction_log.EvictionEntry]) -> None:
        """Keep in mind evictions of which nobody knows what came: their entries stay until their pods tell."""
        until = time.monotonic() + UNSURE_SECONDS
        self._unsure |= {entry.uid: until for entry in entries}

    def _done(self, known: list[eviction_log.EvictionEntry]) -> list[eviction_log.EvictionEntry]:
        """Leave out what was announced by somebody who ended before doing it."""
        now = time.monotonic()
        self._unsure = {uid: until for uid, until in self._unsure.items() if until > now}
        alive = alive_pods(self.informers)
        return [e for e in known if e.uid not in alive or e.uid in self._unsure]

    def _pages(self) -> list[api.ApiObject]:
        """Read the log itself, not its image: only what is there now may be added to."""
        namespace, pool = self.informers.options.namespace, self.informers.options.pool
        answer = self.client.get(_path(namespace), labelSelector=f"{eviction_log.LABEL}={pool}")
        pages = msgspec.json.decode(answer, type=_List).items
        return sorted((p for p in pages if _number(p) >= 0), key=_number)

    def _newest(self) -> tuple[int, api.ApiObject, list[eviction_log.EvictionEntry]] | None:
        pages = self._pages()
        return (_number(pages[-1]), pages[-1], _entries(pages[-1])) if pages else None

    def _drop_old(self, since: int, now: int) -> None:
        for item in self._pages()[:-1]:
            if not any(_matters(e, since, now) for e in _entries(item)):
                self.allowed()
                self.client.delete(f"{_path(item.metadata.namespace)}/{item.metadata.name}")

    def _create(self, number: int, entries: Sequence[eviction_log.EvictionEntry]) -> None:
        namespace, pool = self.informers.options.namespace, self.informers.options.pool
        self.allowed()
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"tenure-evictions-{pool}-{number}", "labels": {eviction_log.LABEL: pool}},
            "data": {eviction_log.DATA: eviction_log.write(entries)},
        }
        self.client.create(_path(namespace), body)

    def _replace(self, item: api.ApiObject, text: str) -> None:
        meta = item.metadata
        self.allowed()
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": meta.name, "labels": meta.labels, "resourceVersion": meta.resource_version},
            "data": {eviction_log.DATA: text},
        }
        self.client.replace(f"{_path(meta.namespace)}/{meta.name}", body)


def horizon(cluster: Cluster) -> int:
    """Give how long entries matter, in µs: the longest window of a budget, and at least a day."""
    rules = cluster.settings.disruption.budgets
    windows = [rule.per or 0 for rule in rules] + [rule.duration or 0 for rule in rules]
    return max([DAY, 16 * cluster.settings.rescheduler.settle, *windows]) + HOUR


def _matters(entry: eviction_log.EvictionEntry, since: int, now: int) -> bool:
    return (api.micros(entry.at) or 0) >= since or (api.micros(entry.not_before) or 0) > now


def _entries(item: api.ApiObject) -> list[eviction_log.EvictionEntry]:
    data = item.data if isinstance(item.data, dict) else {}
    return eviction_log.parse(str(data.get(eviction_log.DATA, "")))[0]


def _number(item: api.ApiObject) -> int:
    last = item.metadata.name.rpartition("-")[2]
    return int(last) if item.metadata.name.startswith("tenure-evictions-") and last.isdecimal() else -1


def _path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


class _List(msgspec.Struct):
    items: list[api.ApiObject]
