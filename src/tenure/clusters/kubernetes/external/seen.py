"""What is there of a node reservation, as the informers show it: its record, the nodes with its taint, and its pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.external import reservations
from tenure.clusters.kubernetes.external.reservations import NodeReservation
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.read.workloads import ACTIVE
from tenure.model.node import Node
from tenure.model.workload import Phase

SECOND: Final = 1_000_000

EFFECT: Final = SECOND
"""µs after its writing from which on a record counts as known to every scheduler and API server."""

WAITING: Final = frozenset({Phase.PENDING, Phase.GATED})


class SeenReservation:
    """The reservation of a pool of nodes as it is seen, which may be none; nothing is written."""

    def __init__(self, informers: InformerCache) -> None:
        self.informers = informers

    def item(self) -> api.ApiObject | None:
        """Give the ConfigMap that has the record."""
        options, logs = self.informers.options, self.informers.objects.get("eviction log")
        return None if logs is None else logs.items.get((options.namespace, reservations.config_map(options.pool)))

    def hole(self) -> NodeReservation | None:
        """Give the record that is there."""
        return reservations.hole_of(self.item())

    def is_needed(self) -> bool:
        """Whether something of a record is there that has to be looked after."""
        nodes = self.informers.nodes.nodes.copy().values()
        return self.item() is not None or any(t.key == reservations.TAINT for n in nodes for t in n.taints)

    def in_effect(self, hole: NodeReservation, now: int) -> bool:
        """Whether everything that a record says is done, and was for long enough that everybody has heard of it."""
        nodes, pods = self.informers.nodes.nodes.copy(), self.pods(hole.pods)
        return (
            now >= hole.written + EFFECT
            and all(n not in nodes or reservations.is_tainted(nodes[n], hole.id) for n in hole.nodes)
            and all(reservations.tolerates(p.task.spec, hole.id) for p in pods)
        )

    def waits(self, hole: NodeReservation) -> bool:
        """Whether any of those for whom room is kept waits for it."""
        return any(p.task.phase in WAITING for p in self.pods(hole.pods))

    def is_filled(self, hole: NodeReservation) -> bool:
        """Whether all of those for whom room is kept that are still there have their places."""
        pods = self.pods(hole.pods)
        return bool(pods) and all(p.task.phase not in WAITING for p in pods)

    def gone(self, hole: NodeReservation) -> list[str]:
        """Give the uids of pods that were to move and have left, or are leaving."""
        staying = {p.uid for p in self.records() if p.task.phase in ACTIVE}
        return [m.pod for m in hole.moves if m.pod not in staying]

    def landed(self, hole: NodeReservation, sent_at: dict[str, int], now: int, patience: int) -> bool:
        """Whether everything that has left has a place again.

        Parameters
        ----------
        hole
            The record.
        sent_at
            By uid of a pod, when it was evicted, in µs since the epoch.
        now
            The time, in µs since the epoch.
        patience
            µs after an eviction for which a replacement that does not come is waited for.
        """
        gone = set(self.gone(hole))
        if not gone:
            return True
        records = self.records()
        if any(p.uid in gone and p.task.phase is Phase.TERMINATING for p in records):
            return False
        for controller in {m.controller for m in hole.moves if m.pod in gone}:
            own = [m.pod for m in hole.moves if m.pod in gone and m.controller == controller]
            since = min(sent_at.get(uid, hole.written) for uid in own)
            new = [p for p in records if p.controller == controller and p.created_at >= since // SECOND * SECOND]
            late = now > since + patience
            if not late and (len(new) < len(own) or any(p.task.phase in WAITING for p in new)):
                return False
        return True

    def tainted(self) -> Iterator[Node]:
        """Give the nodes of this pool that carry any taint of ours."""
        for _, node in sorted(self.informers.nodes.nodes.copy().items()):
            of_pool = node.labels.get(keys.POOL, keys.DEFAULT_POOL) == self.informers.options.pool
            if of_pool and any(t.key == reservations.TAINT for t in node.taints):
                yield node

    def records(self) -> list[PodRecord]:
        """Give all pods."""
        pods = self.informers.pods
        with pods.lock:
            return [pods.seen(key) for key in pods.records]

    def pods(self, uids: Iterable[str]) -> list[PodRecord]:
        """Give the pods that have these uids."""
        wanted = set(uids)
        return [p for p in self.records() if p.uid in wanted] if wanted else []


def pending_pods(observed: Observed, workload: str) -> Iterator[PodRecord]:
    """Give the pods of a workload that wait."""
    return (p for p in observed.pods.get(workload, ()) if p.task.phase is Phase.PENDING)
