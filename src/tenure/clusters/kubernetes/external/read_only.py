"""A cluster that is looked at, and on which nothing is done: a supported way to start (spec: on Kubernetes)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.cluster import KubernetesCluster
from tenure.clusters.kubernetes.external.controller import ReservationController
from tenure.clusters.kubernetes.external.reservations import NodeReservation
from tenure.clusters.kubernetes.external.seen import SeenReservation
from tenure.clusters.kubernetes.read.eviction_log import EvictionEntry
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.write.outcome import Outcome
from tenure.engine.plan import Plan
from tenure.model.settings import CAUSES, Cause, Mode, Settings

TOLD: Final = frozenset({"WouldEvict", "InvalidSetting"})
"""Events that say nothing that was done."""


class ReadOnlyCluster(KubernetesCluster):
    """A cluster on which all causes are in shadow, whatever the settings say, and nothing is carried out.

    What it writes is its Lease, events, and what the objects of its own say of themselves.
    """

    explains = False

    def observe(self, now: int) -> Observed:
        """Give the cluster as it is known now, with settings under which nothing is evicted."""
        observed = super().observe(now)
        settings = _in_shadow(observed.cluster.settings)
        return replace(observed, cluster=replace(observed.cluster, settings=settings))

    def carry_out(self, plan: Plan, view: Observed) -> Outcome:  # noqa: ARG002
        """Do nothing of a plan."""
        return Outcome(skipped=list(plan.steps))

    def strike(self, entries: Sequence[EvictionEntry]) -> None:
        """Leave the log as it is: somebody else writes it."""

    def unexplained(self, view: Observed, most: int) -> Iterator[str]:  # noqa: ARG002
        """Give nothing: why a pod waits would have to be written on it."""
        return iter(())

    def tell(
        self, notes: Sequence[tuple[str, str, str, str]], waiting: Sequence[tuple[str, str, str]], view: Observed
    ) -> None:
        """Write the events that say what would have been done, and what is wrong with objects."""
        super().tell([note for note in notes if note[2] in TOLD], waiting, view)


class UnseenReservation(SeenReservation):
    """A reservation that is not looked at: what others keep is theirs."""

    def hole(self) -> None:
        """Give nothing."""

    def is_needed(self) -> bool:
        """Say no."""
        return False


class NoReservations(ReservationController):
    """The reservation controller that reserves nothing and leaves alone what is written down for others."""

    def __init__(self, client: Client, informers: InformerCache) -> None:
        super().__init__(client, informers)
        self.seen = UnseenReservation(informers)

    def tidy(self, hole: NodeReservation | None, outcome: Outcome, now: int) -> None:
        """Do nothing."""


def _in_shadow(settings: Settings) -> Settings:
    modes: dict[Cause, Mode] = {cause: "off" if settings.modes.get(cause) == "off" else "shadow" for cause in CAUSES}
    return replace(settings, modes=modes)
