"""The rules of reclaim: which queue may take from which other queue (spec: queues, fair share).

All of them are asked on the session as it is at that moment, in the middle of a transaction: what a set has taken so
far is already subtracted from its queues.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tenure.engine.refusal import Refusal
from tenure.engine.state.queues import Amount, QueueTree
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.model.values.readable import amount_with_unit, bare_quantity

FAIR_SHARE, GUARANTEED, FULLNESS = "fair-share", "guaranteed", "relative-fullness"

Owed = tuple[int, int]
"""Queue and row of a guarantee that has to be served again."""

_HOLDS_NONE: Final = Refusal(FAIR_SHARE, "the victim holds none of the requested resources")


class ReclaimRules:
    """The rules for one contender.

    ``rows`` are the resources that it asks for, among those that shares look at; ``amount`` is its next step.
    """

    def __init__(self, session: Session, shares: CurrentShares, contender: WorkloadState) -> None:
        assert contender.step is not None
        self.session = session
        self.queues: QueueTree = session.queues
        self.leaf = contender.leaf
        self.amount: Amount = contender.step.amount
        self.rows = [r for r in shares.rows if self.amount[r] > 0]
        self.fair = shares.fair_without_history
        self.allocatable = shares.allocatable_without_history
        self.leaf_within = self.queues.within_guaranteed(self.leaf, self.amount)

    def entitled(self) -> bool:
        """Whether the contender's leaf would be within guaranteed, or within its fair share."""
        held, fair = self.queues.allocated[self.leaf], self.fair[self.leaf]
        return self.leaf_within or (bool(self.rows) and all(held[r] + self.amount[r] <= fair[r] for r in self.rows))

    def contender_may(self) -> Refusal | None:
        """Refuse a contender that is not `entitled`."""
        queues = self.queues
        if self.entitled():
            return None
        name = queues.queues[self.leaf].name
        if not self.rows:
            return Refusal(FAIR_SHARE, f"the workload asks for nothing of which queue {name} has a share")
        for row in self.rows:
            held, share = queues.allocated[self.leaf][row], self.fair[self.leaf][row]
            if held + self.amount[row] > share:
                resource = queues.resources[row]
                due, asked = amount_with_unit(share, resource), bare_quantity(self.amount[row], resource)
                text = (
                    f"queue {name} may not take from others beyond its fair share of {due}: "
                    f"it holds {bare_quantity(held, resource)}, and the request is {asked}"
                )
                return Refusal(FAIR_SHARE, text)
        return None

    def meeting(self, victim: int) -> tuple[int, int]:
        """Give the children, towards contender and victim, of the lowest common ancestor of two different leaves."""
        return self.queues.meeting(self.leaf, victim)

    def would_be_within(self, queue: int, allocated: Sequence[float]) -> bool:
        """Whether a queue would be within its guaranteed with the contender's step, if it held ``allocated``."""
        bound = False
        for have, more, floor in zip(allocated, self.amount, self.queues.guaranteed[queue], strict=True):
            if more and floor >= 0:
                if have + more > floor:
                    return False
                bound = True
        return bound

    def may_take(self, victim: int, held: Amount, *, core: bool, owed: list[Owed] | None = None) -> Refusal | None:
        """Refuse to take a piece that holds ``held`` from leaf ``victim``, as things stand before it is taken.

        ``owed``: takes what a core carries below its guarantee although nothing of the contender's allows it; that is
        right only if the play-through serves the guarantee again. Without the list it is refused.
        """
        rows = [r for r in self.rows if held[r] > 0]
        if not rows:
            return _HOLDS_NONE
        mine, theirs = self.meeting(victim)
        queues = self.queues
        within = queues.within_guaranteed(mine, self.amount)
        limit = queues.guaranteed[theirs] if within else self.allocatable[theirs]
        if not any(queues.allocated[theirs][r] > max(0, limit[r]) for r in rows):
            return self._not_over(theirs, rows, limit, within=within)
        return self.floor(victim, held, core=core, owed=owed)

    def floor(self, victim: int, held: Amount, *, core: bool, owed: list[Owed] | None = None) -> Refusal | None:
        """Refuse a piece without which a queue on the victim's side would have less than it is guaranteed.

        The part of `may_take` that holds whatever the eviction is for. A resource in which a queue held less before is
        not touched by it: nothing is carried below there.
        """
        rows = [r for r in self.rows if held[r] > 0]
        mine, theirs = self.meeting(victim)
        queues = self.queues
        for queue in queues.path[victim]:
            floor = queues.guaranteed[queue]
            if rows and not any(queues.allocated[queue][r] > max(0, floor[r]) for r in rows):
                name = queues.queues[queue].name
                text = f"queue {name} holds no more of the requested resources than it is guaranteed"
                return Refusal(GUARANTEED, text, about=name)
            below = [
                r
                for r, (have, goes, keep) in enumerate(zip(queues.allocated[queue], held, floor, strict=True))
                if goes and have >= keep >= 0 and have - goes < keep
            ]
            if below and not (core and (self._entitled(mine, rows) or owed is not None)):
                return self._below(queue, below[0], core=core)
            if below and owed is not None and not self._entitled(mine, rows):
                owed += [(queue, r) for r in below]
            if queue == theirs:
                break
        return None

    def _entitled(self, mine: int, rows: Sequence[int]) -> bool:
        """Whether the contender's side may carry another below its guarantee with a core."""
        allocated, floor = self.queues.allocated[mine], self.queues.guaranteed[mine]
        return self.leaf_within or any(allocated[r] < floor[r] for r in rows)

    def _not_over(self, queue: int, rows: Sequence[int], limit: Sequence[int], *, within: bool) -> Refusal:
        queues, name = self.queues, self.queues.queues[queue].name
        row = rows[0]
        resource = queues.resources[row]
        what = "guaranteed" if within else "allocatable share"
        held, due = queues.allocated[queue][row], max(0, limit[row])
        text = (
            f"queue {name} holds {amount_with_unit(held, resource)} and is not over its {what} "
            f"of {bare_quantity(due, resource)}"
        )
        return Refusal(GUARANTEED if within else FAIR_SHARE, text, about=name)

    def _below(self, queue: int, row: int, *, core: bool) -> Refusal:
        queues = self.queues
        resource = queues.resources[row]
        piece = "its core" if core else "this task"
        floor = amount_with_unit(queues.guaranteed[queue][row], resource)
        return Refusal(
            GUARANTEED,
            f"without {piece} queue {queues.queues[queue].name} would hold less than its guaranteed {floor}",
        )

    def fuller(self, victims: Sequence[int]) -> Refusal | None:
        """Refuse an exchange after which the contender's side is relatively fuller than the siblings it took from.

        Asked when the set is evicted and the contender not yet placed. Levels below the lowest common ancestor count,
        in resources in which they would exceed their fair share.
        """
        queues = self.queues
        for mine, theirs in dict.fromkeys(self.meeting(v) for v in victims):
            for queue in queues.path[self.leaf]:
                for row in self.rows:
                    then, share = queues.allocated[queue][row] + self.amount[row], self.fair[queue][row]
                    other, its_share = queues.allocated[theirs][row], self.fair[theirs][row]
                    if then > share and _ratio_exceeds(then, share, other, its_share):
                        text = (
                            f"queue {queues.queues[queue].name} would be fuller, relative to its fair share of "
                            f"{queues.resources[row]}, than queue {queues.queues[theirs].name} from which it takes"
                        )
                        return Refusal(FULLNESS, text, about=queues.queues[theirs].name)
                if queue == mine:
                    break
        return None

    def repaid(self, owed: Sequence[Owed]) -> bool:
        """Whether every guarantee that was owed is served again."""
        queues = self.queues
        return all(queues.allocated[queue][row] >= queues.guaranteed[queue][row] for queue, row in owed)


def _ratio_exceeds(held: int, share: int, other: int, its_share: int) -> bool:
    """Whether held / share > other / its_share, where nothing over nothing is 0 and something over nothing infinite."""
    if share <= 0:
        return held > 0 and not (its_share <= 0 < other)
    if its_share <= 0:
        return other <= 0 < held
    return held * its_share > other * share
