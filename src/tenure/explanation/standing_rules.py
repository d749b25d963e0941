"""The rules of evictions as they stand on a cluster after a cycle: what its session, shields and shares say by then."""

from __future__ import annotations

from functools import cached_property

from tenure.actions.context import Context
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.model.cluster import Cluster
from tenure.model.settings import Cause
from tenure.shields.plugins import EvictionPlugins
from tenure.victims.rules.causes import CauseRules


class StandingRules:
    """The rules that stand, made when they are first asked.

    ``given`` is a session that holds what the cluster holds, if one is there that does; nothing changes on it.
    """

    def __init__(self, cluster: Cluster, given: Session | None = None) -> None:
        self.cluster = cluster
        self._given = given

    @cached_property
    def _context(self) -> Context:
        return Scheduler(self._given or session_of(self.cluster)).context

    @cached_property
    def shares(self) -> CurrentShares:
        """Fair shares."""
        return self._context.fairness.now()

    @cached_property
    def session(self) -> Session:
        """The cluster as a session."""
        return self._context.session

    @cached_property
    def plugins(self) -> EvictionPlugins:
        """The shields."""
        return self._context.evicting().plugins

    def of(self, cause: Cause, contender: WorkloadState) -> CauseRules:
        """Give the rules of a cause for a contender."""
        return self._context.causes()[cause](contender, self.shares)
