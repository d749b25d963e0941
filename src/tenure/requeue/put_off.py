"""What requeue does not do yet because it does not pay yet: by contender, when and why."""

from __future__ import annotations

from collections.abc import Sequence

from tenure.engine.plan import Reason
from tenure.engine.requeued import RequeueOutcome
from tenure.engine.state.workloads import WorkloadState
from tenure.shields.patience import waits_since
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.pieces import Piece


class PutOffContenders:
    """The contenders whose waiting is not worth what some candidate costs, with the first time at which one pays.

    A candidate may be requeued since it became eligible: before that a contender had to wait in any case.
    """

    def __init__(self, state: EvictionState, outcome: RequeueOutcome) -> None:
        self.state = state
        self._eligible = {n.workload: n.since for n in outcome.nominations if n.since is not None}
        self._pays: dict[str, tuple[int, Reason]] = {}

    def is_worth_it(self, contender: WorkloadState, pieces: Sequence[Piece], *, part: bool = False) -> bool:
        """Whether what a contender has waited is worth what these pieces cost; where it is not, when is noted.

        What a ``part`` of a set costs is no reason: once that pays, the set need not.
        """
        state, since = self.state, waits_since(contender)
        possible = max((self._eligible.get(p.workload.key, 0) for p in pieces), default=0)
        not_yet = state.plugins.patience.not_yet(state.session, "requeue", contender, pieces, since, possible=possible)
        if not_yet is None:
            return True
        state.wake_at(not_yet.again)
        if part:
            return False
        known = self._pays.get(contender.key)
        if known is None or not_yet.pays_at < known[0]:
            self._pays[contender.key] = not_yet.pays_at, not_yet.reason("requeue", pieces)
        return False

    def report(self) -> None:
        """Write the reasons into the plan."""
        for contender, (_, reason) in sorted(self._pays.items()):
            self.state.obstacle(contender, reason)
