"""Deciding, cycle after cycle, with what is kept from one to the next."""

from __future__ import annotations

from collections.abc import Callable

from tenure.cycle import Scheduler
from tenure.engine.kept_session import KeptSession
from tenure.engine.plan import Plan
from tenure.engine.snapshot import session_of
from tenure.engine.state.session import Session
from tenure.model.cluster import Cluster
from tenure.rescheduler.memory import MoveMemory


class CycleDecider:
    """The maker of plans, with what it keeps for the next: the session, what was recorded, and what was moved.

    ``looked`` is called with each session as it was observed, before anything is decided on it.
    """

    def __init__(self, looked: Callable[[Session], object]) -> None:
        self._looked = looked
        self._recorded: set[tuple[str, str, str]] = set()
        self._rescheduling = MoveMemory()
        self._kept = KeptSession()

    def begin(self) -> None:
        """Begin a cycle: what was moved stands in the cluster's log, if it was moved."""
        self._rescheduling.sent.clear()

    def decide(self, cluster: Cluster) -> tuple[Session, Plan]:
        """Decide on a cluster."""
        session = self._kept.take(cluster)
        self._looked(session)
        scheduler = Scheduler(session, self._recorded)
        scheduler.context.rescheduling = self._rescheduling
        plan = scheduler.cycle(cluster.now)
        self._kept.keep(cluster, session, plan)
        return session, plan

    def attempt(self, cluster: Cluster) -> Plan:
        """Decide on a cluster, so that nothing of that is remembered."""
        scheduler = Scheduler(session_of(cluster), set(self._recorded))
        scheduler.context.rescheduling = MoveMemory()
        return scheduler.cycle(cluster.now)
