"""What the log says of trouble that lasts: when it begins and when it ends, not in each cycle."""

from __future__ import annotations

import time
from typing import Final

from tenure.clusters.kubernetes.cluster import KubernetesCluster
from tenure.live.log import Log

DROPS_SECONDS: Final = 60.0
"""So often at most the log says that events were not written."""

WITHOUT_RIGHTS: Final = (
    "the service account may not list and watch what decisions need; apply the manifests of this version"
)


class TroubleLog:
    """The part of the log about a cluster's watches, readings and events, with what it has said already."""

    def __init__(self, log: Log, cluster: KubernetesCluster) -> None:
        self._log = log
        self._cluster = cluster
        self._without_usage = False
        self._dropped, self._dropped_at = 0, -DROPS_SECONDS
        self._broken: list[str] = []

    def tell(self) -> None:
        """Say what has changed."""
        self._tell_of_usage()
        self._tell_of_drops()
        self.tell_of_watches()

    def _tell_of_drops(self) -> None:
        """Say, at most once a minute, that events were not written."""
        dropped, now = self._cluster.events.dropped, time.monotonic()
        if dropped > self._dropped and now - self._dropped_at >= DROPS_SECONDS:
            self._log.warning("events were not written: too many, or refused", events=dropped - self._dropped)
            self._dropped, self._dropped_at = dropped, now

    def _tell_of_usage(self) -> None:
        """Say once that a setting needs to know what is in use, and why that is not known."""
        informers = self._cluster.informers
        trouble = informers.usage.trouble or informers.gpu_usage.trouble
        if trouble and not self._without_usage:
            self._log.warning("no node is hot as long as it is not known what is in use", error=trouble)
        self._without_usage = bool(trouble)

    def tell_of_watches(self) -> None:
        """Say of each watch that does not work that it does not, and again when that changes."""
        broken = self._cluster.informers.broken
        if broken != self._broken:
            for line in broken:
                self._log.error("a watch is broken; what it last said may be out of date", watch=line)
            if self._cluster.informers.forbidden:
                self._log.error(WITHOUT_RIGHTS, paths=self._cluster.informers.forbidden)
            if not broken:
                self._log.info("all watches work again")
        self._broken = broken
