"""Consolidation: room for a contender by moving what runs, every moved task having a place to land (spec: consolidate).

A move restarts what it moves, so it is refused where victims that reclaim or preempt may take come cheaper.
"""

from __future__ import annotations

from operator import ge

from tenure.engine.plan import Reason
from tenure.engine.workloads import WorkloadState
from tenure.model.settings import Cause
from tenure.victims.candidates import Candidates
from tenure.victims.rules import Move, Preempt, Reclaim, Rules
from tenure.victims.search import Budget, Found, Search
from tenure.victims.state import Evicting
from tenure.victims.turns import Turns

CHEAPER = "cheaper-victims"


class Moving(Turns):
    """Contenders take turns as with other causes; what is found may be refused, and is bounded in number."""

    def __init__(self, state: Evicting) -> None:
        super().__init__(state, "consolidate", lambda contender, _: Move(state.session, contender))
        self._free: tuple[int, list[int]] = (-1, [])

    def _turn(self, contender: WorkloadState, steps: int) -> bool:
        """Look for moves only while there is room enough in all: a move frees none."""
        session, step = self.session, contender.step
        if step is None or len(self.state.moved) >= session.settings.max_consolidated_workloads:
            return False
        if self._free[0] != session.epoch:
            nodes = session.nodes
            room = nodes.room[nodes.rows : nodes.rows + nodes.amounts, nodes.ready]
            self._free = session.epoch, room.sum(axis=1).tolist()
        if not all(map(ge, self._free[1], step.amount)):
            return False
        return super()._turn(contender, steps)

    def _accept(
        self,
        contender: WorkloadState,
        candidates: Candidates,  # noqa: ARG002  the same as for other causes
        found: Found,
        budget: Budget,
    ) -> bool:
        """Refuse what is too many, or dearer than what reclaim or preempt would take."""
        pieces = found.pieces or []
        left = self.session.settings.max_consolidated_workloads - len(self.state.moved)
        if len({p.workload.key for p in pieces if not p.fresh}) > left:
            return False
        cost = sum(p.cost for p in pieces)
        off = {cause for cause, mode in self.session.settings.modes.items() if mode == "off"}
        for rules in self._alternatives(contender, off):
            if rules.contender_may() is not None:
                continue
            others = self.gatherer.gather(contender, rules)
            other = Search(self.session, self.trials, contender, rules, others).run(budget).pieces
            if other is not None and sum(p.cost for p in other) < cost:
                names = ", ".join(dict.fromkeys(p.workload.key for p in other))
                text = f"moving others for it would cost more than {rules.cause} from {names}, so nothing is moved"
                self.state.obstacle(contender.key, Reason("CheaperVictims", text, {"cause": self.cause}))
                return False
        return True

    def _alternatives(self, contender: WorkloadState, off: set[Cause]) -> list[Rules]:
        actions = set(self.session.settings.actions) - off
        found: list[Rules] = []
        if "reclaim" in actions:
            found.append(Reclaim(self.session, self.shares, contender))
        if "preempt" in actions:
            found.append(Preempt(self.session, contender))
        return found
