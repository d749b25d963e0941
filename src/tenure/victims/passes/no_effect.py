"""Passes that helped no contender: as long as nothing has changed since, another would help none either."""

from __future__ import annotations

from tenure.fairness.current import CurrentShares
from tenure.model.settings import Cause
from tenure.shields.budget import has_budgets
from tenure.victims.recording.state import EvictionState, NoEffectPass


class NoEffect:
    """The question whether a pass of a cause, which begins now, would help no contender; from cycle to cycle."""

    def __init__(self, state: EvictionState, cause: Cause, shares: CurrentShares) -> None:
        self.state = state
        self.session = state.session
        self.cause = cause
        self.before = state.memories.get(cause)
        self.now = NoEffectPass(state.session.epoch, shares.fair_without_history, state.plan.wake)

    def holds(self) -> bool:
        """Whether nothing has happened since no contender could be helped.

        Room, queues, shares and shields are as they were, and nothing has arrived: what has may be served before a
        victim, which then has not its place back. With usage in the past the order of queues drifts by itself, and
        other plugins may answer differently.
        """
        before, session = self.before, self.session
        if before is None or self.state.plan.steps or self.state.plugins.others or session.nodes.waiting:
            return False
        if session.added or has_budgets(session):
            return False
        same = before.epoch == self.now.epoch and before.fair == self.now.fair
        return same and (before.wake is None or session.now < before.wake)

    def look_again(self) -> None:
        """Say when it is over that nothing has happened: a cycle that another cause asked for has to say so as well."""
        assert self.before is not None
        self.state.wake_at(self.before.wake)

    def remember(self, *, exhausted: bool) -> None:
        """Remember a pass that helped no contender, looked at all of them to the end, and at everything they may take.

        What was bound on a nomination may be taken from the next cycle on.
        """
        memories, kept = self.state.memories, self.session.settings.fairness.history is None
        if exhausted or self.session.epoch != self.now.epoch or not kept or self.state.settled():
            memories.pop(self.cause, None)
            return
        wakes = [w for w in (self.state.plan.wake, self.now.wake) if w is not None]
        before = self.before
        if before is not None and before.epoch == self.now.epoch and before.wake is not None:
            wakes.append(before.wake)
        memories[self.cause] = self.now._replace(wake=min(wakes, default=None))
