"""Figures for ``kubectl get``, in the status of objects: of queues, pod groups, disruption budgets and node pools.

Nothing is decided by them, but by what evictions came to (`outcomes`), where this process has not read that off the
history itself. They are a few seconds old, and a write that fails is made good by the next. A thread
of their own makes and writes them, so that no decision waits for that; while nothing changes it does nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.keys import DEFAULT_POOL
from tenure.clusters.kubernetes.pool_status import as_part, part_of
from tenure.clusters.kubernetes.write.writing_thread import WritingThread
from tenure.engine.state.session import Session
from tenure.live.budget_figures import budget_figures
from tenure.model.cluster import Cluster, EvictionOutcome
from tenure.model.values.duration import format_time
from tenure.model.values.quantity import format_queue_quantity
from tenure.model.workload import Phase, Workload
from tenure.playthrough import QueueView, queue_views

LEAST_SECONDS: Final = 5.0
SHARE: Final = 0.01
"""So often at the most, and for no more than this share of the time."""

MOST: Final = 50
"""Objects that are written at a time; the others have their turn next."""

WRITTEN: Final = "Written"
"""What a node pool's status says of a history that is written."""

_RUNNING: Final = frozenset({Phase.BOUND, Phase.RUNNING})
_WAITING: Final = frozenset({Phase.PENDING, Phase.GATED})

_SHARED: Final = frozenset({"queues", "disruptionbudgets"})
"""Kinds of objects that all node pools share, each with a part of their status."""

_NO_PODS: Final = {"phase": "Pending", "running": 0, "pending": 0}

Status = dict[str, Any]
Key = tuple[str, str, str]
"""Plural, namespace and name of an object."""


class FigureBasis(NamedTuple):
    """What figures are made of; what ``version`` stands for has changed since another one.

    ``views`` are the queues as they stood in the cluster, before anything was decided; None if no look was taken.
    ``outcomes`` are None as long as they are not known: what is written of them stays.
    """

    cluster: Cluster
    views: tuple[QueueView, ...] | None
    paused_until: int
    version: int
    history: str | None
    outcomes: tuple[EvictionOutcome, ...] | None = ()

    @property
    def key(self) -> tuple[object, ...]:
        """Tell it from another one of which other figures would be made."""
        fades = (
            self.cluster.evictions and self.cluster.settings.disruption.budgets
        )  # what is used of them ends by itself
        return self.version, self.paused_until, self.history, self.outcomes, self.cluster.now if fades else 0


class Figures:
    """The writer of the figures of Tenure's own objects, where they have changed.

    ``look_again`` is called where a cycle is needed of which the figures are made.
    """

    def __init__(
        self,
        client: Client,
        informers: InformerCache,
        leader: str,
        *,
        look_again: Callable[[], None] = lambda: None,
        failed: Callable[[BaseException], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._look_again = look_again
        self._informers = informers
        self._leader = leader
        self._told: FigureBasis | None = None
        self._views: tuple[QueueView, ...] | None = None
        self._is_due = True
        self._history: str | None = None
        self._outcomes: tuple[EvictionOutcome, ...] | None = ()
        self._last: tuple[object, ...] = ()
        self.thread = WritingThread("figures", self._write_told, failed)

    def look(self, session: Session) -> None:
        """Note how queues stand in a session that holds what was observed, if figures are due."""
        self._views = None
        if self._is_due:
            self._views = tuple(queue_views(session)) if self._keys("queues") else ()

    def tell(self, cluster: Cluster, paused_until: int, version: int) -> None:
        """Say what was observed last.

        ``paused_until`` is in µs since the epoch, or 0; ``version`` is another one whenever something has changed.
        """
        self._told = FigureBasis(cluster, self._views, paused_until, version, self._history, self._outcomes)
        self.thread.wake()

    def tell_of_history(self, history: str) -> None:
        """Say what keeps the history from being written, or that it is."""
        self._history = history
        told = self._told
        if told is not None:
            self._told = told._replace(history=history)
            self.thread.wake()

    def tell_of_outcomes(self, outcomes: tuple[EvictionOutcome, ...] | None) -> None:
        """Say what evictions came to of late; None as long as that is not known."""
        self._outcomes = outcomes
        told = self._told
        if told is not None:
            self._told = told._replace(outcomes=outcomes)
            self.thread.wake()

    def _write_told(self) -> None:
        told = self._told
        if told is None or self._last == told.key:
            return
        if told.views is None:
            self._look_again()
            return
        self._is_due, began = False, time.thread_time()
        self._last = ()
        try:
            if self.write(told, told.views):
                self._last = told.key
            else:
                self.thread.wake()
        finally:
            self.thread.rest(max(LEAST_SECONDS, (time.thread_time() - began) / SHARE))
            self._is_due = True

    def write(self, told: FigureBasis, views: tuple[QueueView, ...]) -> bool:
        """Write what has changed; False if there is more of it."""
        written = 0
        for (plural, namespace, name), wanted in self._wanted(told, views):
            item = self._informers.objects[plural].items.get((namespace, name))
            pool = self._informers.options.pool if plural in _SHARED else DEFAULT_POOL
            known = part_of(None if item is None else item.status, pool)
            changed = {key: _change(known.get(key), value) for key, value in wanted.items() if known.get(key) != value}
            if item is not None and changed:
                if written >= MOST:
                    return False
                written += 1
                self._patch(plural, namespace, name, as_part(changed, pool))
        return True

    def _wanted(self, told: FigureBasis, views: tuple[QueueView, ...]) -> Iterator[tuple[Key, Status]]:
        cluster = told.cluster
        if self._keys("queues"):
            for name, status in queue_figures(cluster, views).items():
                yield ("queues", "", name), status
        if groups := self._keys("podgroups"):
            with self._informers.pods.lock:
                with_pods = {(group[0], group[2]) for group in self._informers.pods.groups}
            for key, status in figures_of_groups(cluster, groups, with_pods):
                yield ("podgroups", *key), status
        if self._keys("disruptionbudgets"):
            for name, status in budget_figures(cluster).items():
                yield ("disruptionbudgets", "", name), status
        if self._keys("nodepools"):
            paused = format_time(told.paused_until) if told.paused_until else None
            nodes = sum(not node.outside for node in cluster.nodes)
            status = {"nodes": nodes, "leader": self._leader, "pausedUntil": paused, "history": told.history}
            if told.outcomes is not None:
                status["outcomes"] = _plain(told.outcomes)
            yield ("nodepools", "", self._informers.options.pool), status

    def _keys(self, plural: str) -> list[tuple[str, str]]:
        """Give the keys of all objects of a kind; none where it is not installed."""
        found = self._informers.objects.get(plural)
        return [] if found is None else found.keys()

    def _patch(self, plural: str, namespace: str, name: str, changed: Status) -> None:
        path = self._informers.status_path(plural, namespace, name)
        try:
            self._client.patch(path, {"status": changed})
        except ApiError:
            return  # the next time is soon


def _plain(outcomes: Iterable[EvictionOutcome]) -> list[dict[str, Any]] | None:
    """Write outcomes; null for none."""
    each = [{"at": format_time(o.at), "cause": o.cause, "lost": o.lost, "gained": o.gained} for o in outcomes]
    return each or None


def _change(known: Any, wanted: Any) -> Any:
    """Give what makes the one the other in a merge patch: what is gone from a mapping has to be named."""
    if isinstance(known, dict) and isinstance(wanted, dict):
        return {**dict.fromkeys(known), **wanted}
    return wanted


def queue_figures(cluster: Cluster, views: Iterable[QueueView]) -> dict[str, Status]:
    """Give by queue what it holds, what it is due, and how many workloads below it run and wait."""
    parents = {queue.name: queue.parent for queue in cluster.queues}
    running, waiting = dict.fromkeys(parents, 0), dict.fromkeys(parents, 0)
    for workload in cluster.workloads:
        if workload.scheduler_name == "tenure":
            phases = {task.phase for task in workload.tasks}
            queue: str | None = workload.queue
            while queue in parents:
                running[queue] += bool(phases & _RUNNING)
                waiting[queue] += bool(phases & _WAITING)
                queue = parents[queue]
    return {
        view.name: {
            "allocated": _amounts(view.allocated),
            "fairShare": _amounts(view.fair_share),
            "runningWorkloads": running[view.name],
            "pendingWorkloads": waiting[view.name],
        }
        for view in views
        if view.name in parents
    }


def figures_of_groups(
    cluster: Cluster, groups: Iterable[tuple[str, str]], with_pods: Container[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], Status]]:
    """Give what is to be said of pod groups (namespace, name); nothing of those that have pods in other pools alone."""
    workloads = {(w.namespace, w.name): w for w in cluster.workloads}
    for key in groups:
        found = workloads.get(key)
        if found is not None:
            yield key, group_figures(found)
        elif key not in with_pods:
            yield key, _NO_PODS


def group_figures(workload: Workload) -> Status:
    """Give how far a pod group is; null for what it has not."""
    phases = [task.phase for task in workload.tasks]
    running, waiting = sum(p in _RUNNING for p in phases), sum(p in _WAITING for p in phases)
    times = {
        "startedAt": workload.started_at,
        "lastEvictedAt": workload.last_evicted_at,
        "staleSince": workload.stale_since,
        "requeueNotBefore": workload.requeue_not_before,
    }
    return {
        "phase": "Running" if running else "Pending" if waiting or not phases else "Ended",
        "running": running,
        "pending": waiting,
        **{key: None if at is None else format_time(at) for key, at in times.items()},
    }


def _amounts(amounts: Mapping[str, int]) -> Status:
    """Write amounts as quantities; text, so that what comes back is what was written."""
    return {resource: format_queue_quantity(amount, resource) for resource, amount in sorted(amounts.items()) if amount}
