"""Writing the eviction log."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.read import eviction_log
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.write.eviction_log_pages import (
    EvictionLogPages,
    entries_of,
    free_numbers,
    last_written,
)
from tenure.model.cluster import Cluster
from tenure.model.values.duration import DAY

HOUR = 3_600_000_000

UNSURE_SECONDS = 60.0
"""For so long an eviction whose answer was lost may still show in the watch."""

UNSURE = 60_000_000
"""The same in µs."""


class EvictionLogWriter:
    """The writer of the eviction log, which is the leader: what is entered, taken out again, and dropped as too old."""

    def __init__(self, client: Client, informers: InformerCache, allowed: Callable[[], None]) -> None:
        self._pages = EvictionLogPages(client, informers, allowed)
        self._pods = informers.pods
        self._unsure: dict[str, float] = {}
        self._granted: set[tuple[str, str]] = set()

    def add(self, entries: Sequence[eviction_log.EvictionEntry], now: int, observed: Observed) -> dict[str, ApiError]:
        """Write entries before their evictions are asked for; what is too old to matter is dropped on the way.

        They are divided over as many ConfigMaps as it takes. Where there are not as many, it is forgotten sooner how
        often workloads were evicted. Gives, by uid of the pod, the entries that could not be written, and why: nothing
        of those may be carried out.
        """
        relevance = _Relevance.to(observed, now)
        try:
            listed = self._pages.read()
        except ApiError as error:
            return {entry.uid: error for entry in entries}
        failed: dict[str, ApiError] = {}
        current = max(listed, key=last_written, default=None)
        kept = [] if current is None else [e for e in self._done(entries_of(current), now) if relevance.matters(e)]
        held = eviction_log.write(self._confirmed(kept))
        parts = eviction_log.pages(
            entries, max(1, eviction_log.MOST_BYTES - len(held.encode())) if kept else eviction_log.MOST_BYTES
        )
        if current is not None:
            first, text = next(parts)
            if first:
                self._attempt(first, failed, lambda: self._pages.replace(current, held + text))
        rest = [(part, text) for part, text in parts if part]
        free = free_numbers(listed)
        if len(free) < len(rest):
            with suppress(ApiError):
                free = free_numbers(self._drop_old(relevance._replace(workloads=())))
        for part, text in rest:
            number = free.pop(0) if free else -1
            self._attempt(part, failed, lambda: self._pages.create(number, text))  # noqa: B023
        if rest:
            with suppress(ApiError):
                self._drop_old(relevance)
        return failed

    def _attempt(
        self, part: Sequence[eviction_log.EvictionEntry], failed: dict[str, ApiError], write: Callable[[], None]
    ) -> None:
        """Write one page; where that fails, its entries are the only ones that are not written."""
        try:
            write()
        except ApiError as error:
            failed.update((entry.uid, error) for entry in part)

    def remove(self, entries: Sequence[eviction_log.EvictionEntry]) -> None:
        """Take back entries of evictions that were refused."""
        gone = {(e.uid, e.at) for e in entries}
        self._keep(lambda e: (e.uid, e.at) not in gone)

    def forget(self, tasks: Container[tuple[str, str]]) -> None:
        """Take out what was announced of these tasks (by workload and name) and is withdrawn."""
        alive = self._pods.alive
        self._keep(lambda e: (e.workload, e.task) not in tasks or not alive((e.uid,)))

    def _keep(self, wanted: Callable[[eviction_log.EvictionEntry], bool]) -> None:
        """Leave out of each page what is not wanted there; a page that cannot be written stays as it is.

        An entry that stays although nothing came of it counts for nothing: its pod is still there.
        """
        for page in self._pages.read():
            known = entries_of(page)
            kept = [e for e in known if wanted(e)]
            if len(kept) < len(known):
                with suppress(ApiError):
                    self._pages.replace(page, eviction_log.write(kept))

    def doubt(self, entries: Sequence[eviction_log.EvictionEntry]) -> None:
        """Keep in mind evictions of which nobody knows what came: their entries stay until their pods tell."""
        until = time.monotonic() + UNSURE_SECONDS
        self._unsure |= {entry.uid: until for entry in entries}

    def confirm(self, entries: Iterable[eviction_log.EvictionEntry]) -> None:
        """Keep in mind that these were carried out; it is written with what is written next."""
        if len(self._granted) > _MOST_KEPT_IN_MIND:
            self._granted.clear()
        self._granted.update((entry.uid, entry.at) for entry in entries)

    def _confirmed(self, known: list[eviction_log.EvictionEntry]) -> list[eviction_log.EvictionEntry]:
        """Say of entries that they were carried out, and leave out what was announced of the same pods besides."""
        gone = {uid for uid, _ in self._granted}
        told = []
        for entry in known:
            if (entry.uid, entry.at) in self._granted:
                told.append(msgspec.structs.replace(entry, done=True))
            elif entry.done or entry.uid not in gone:
                told.append(entry)
        return told

    def _done(self, known: list[eviction_log.EvictionEntry], now: int) -> list[eviction_log.EvictionEntry]:
        """Leave out what was announced by somebody who ended before doing it.

        What was asked for a moment ago may still be carried out, whoever asked.
        """
        clock = time.monotonic()
        self._unsure = {uid: until for uid, until in self._unsure.items() if until > clock}
        alive, since = self._pods.alive(e.uid for e in known), now - UNSURE
        return [e for e in known if e.uid not in alive or e.uid in self._unsure or (api.micros(e.at) or 0) > since]

    def _drop_old(self, relevance: _Relevance) -> list[api.ApiObject]:
        """Delete pages that no bound asks about; what is to be remembered of them goes to the page written last.

        Gives the pages that stay; one that cannot be deleted has another chance with the next page.

        Raises
        ------
        ApiError
            If pages cannot be read, or what is to be remembered not written; nothing is deleted then.
        """
        pages = self._pages.read()
        stay = [page for page in pages if any(map(relevance.bounds, entries_of(page)))]
        old = [page for page in pages if page not in stay]
        lasting: dict[tuple[str, str], eviction_log.EvictionEntry] = {}
        told = self._done([e for page in old for e in entries_of(page)], relevance.now)
        for entry in sorted(filter(relevance.matters, told), key=lambda e: api.micros(e.at) or 0):
            lasting[entry.workload, entry.workload_uid] = entry
        if lasting:
            if not stay:
                return pages
            last = max(stay, key=last_written)
            self._pages.replace(last, eviction_log.write([*entries_of(last), *lasting.values()]))
        return [*stay, *(page for page in old if not self._pages.delete(page))]


_MOST_KEPT_IN_MIND = 100_000


def horizon(cluster: Cluster) -> int:
    """Give how long entries matter to bounds, in µs: the longest window of one, and at least a day."""
    settings = cluster.settings
    rules = settings.disruption.budgets
    windows = [rule.per or 0 for rule in rules] + [rule.duration or 0 for rule in rules]
    return max([DAY, 16 * settings.rescheduler.settle, settings.worth.max_lost.window, *windows]) + HOUR


class _Relevance(NamedTuple):
    """What makes entries matter: bounds ask about what is ``since`` a time, and about cooldowns that are not over.

    How often a workload was evicted matters ``back_to`` a time, while it is among the ``workloads`` that are there.
    """

    since: int
    back_to: int
    now: int
    workloads: Container[str]

    @classmethod
    def to(cls, observed: Observed, now: int) -> _Relevance:
        """Give what matters as things are."""
        remembered = observed.cluster.settings.worth.forgotten_after + HOUR
        return cls(now - horizon(observed.cluster), now - remembered, now, observed.made)

    def bounds(self, entry: eviction_log.EvictionEntry) -> bool:
        """Whether a bound may ask about it."""
        return (api.micros(entry.at) or 0) >= self.since or (api.micros(entry.not_before) or 0) > self.now

    def matters(self, entry: eviction_log.EvictionEntry) -> bool:
        """Whether anything may ask about it."""
        if self.bounds(entry):
            return True
        return bool(entry.times) and (api.micros(entry.at) or 0) >= self.back_to and entry.workload in self.workloads
