"""The ledger: one account of disruptions for all causes (spec: disruption SLOs).

An eviction is charged to every rule that it matches, or it does not take place. All rules come down to linear bounds
on the set that is asked for (`LinearBound`), so that the question whether a finished set is allowed and the constraints
that a planner has to obey are the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass

from tenure.ledger.entries import BUDGET, REFUSED, Charge, EvictionRequest, LedgerPod, LinearBound
from tenure.ledger.rules import Rule, of_budget
from tenure.model.cluster import DisruptionBudget, RefusedEviction
from tenure.model.settings import BudgetRule


@dataclass(frozen=True, slots=True)
class Denial:
    """The first rule that does not allow a set, in a sentence, and when all will by themselves (µs since the epoch)."""

    rule: str
    message: str
    until: int | None
    shield: str = BUDGET


class Ledger:
    """The account of what was evicted lately, and of how much more may be.

    What is charged can be taken back to a checkpoint, so that it follows a transaction.

    Parameters
    ----------
    rules
        The configured rules.
    budgets
        PodDisruptionBudgets.
    log
        Evictions carried out so far. What lies ahead of the time that is asked about counts as just now.
    pods
        All pods that there ought to be.
    refused
        Evictions that the API server refused lately.
    """

    def __init__(
        self,
        rules: Sequence[BudgetRule],
        budgets: Sequence[DisruptionBudget] = (),
        log: Iterable[Charge] = (),
        pods: Iterable[LedgerPod] = (),
        refused: Iterable[RefusedEviction] = (),
    ) -> None:
        known, there = list(log), list(pods)
        self.rules = [Rule(r, known, there) for r in rules]
        own = [Rule(of_budget(b), (), there, strict=True, blocked_since=b.blocked_since) for b in budgets]
        self.rules += own
        self._near: dict[str | None, list[Rule]] = {}
        for budget in own:
            self._near.setdefault(budget.model.namespace, []).append(budget)
        self.charged: list[Charge] = []
        self._refused = {(r.workload, r.task): r for r in refused}

    def rows(
        self, asks: Sequence[EvictionRequest], now: int, risen: AbstractSet[tuple[str, str]] = frozenset()
    ) -> list[LinearBound]:
        """Give all bounds on a set of evictions at ``now`` (µs since the epoch), pods having ``risen`` until then."""
        rows = [row for rule in self.rules for row in rule.rows(asks, self.charged, now, risen)]
        return [row for row in (*rows, *self._in_several(asks), *self._refused_lately(asks, now)) if row.weights]

    def _refused_lately(self, asks: Sequence[EvictionRequest], now: int) -> list[LinearBound]:
        """Bar what the API server refused to let go a while ago."""
        if not self._refused:
            return []
        found = []
        for number, ask in enumerate(asks):
            entry = self._refused.get((ask.workload, ask.task))
            if entry is not None and now < entry.until:
                text = f"the API server refused to evict {ask.workload} {ask.task}: {entry.message}"
                found.append(
                    LinearBound(
                        rule=REFUSED,
                        weights={number: 1},
                        bound=0,
                        later=((entry.until, None),),
                        message=text,
                        shield=REFUSED,
                    )
                )
        return found

    def _in_several(self, asks: Sequence[EvictionRequest]) -> list[LinearBound]:
        """Bar pods that several PodDisruptionBudgets cover: the Eviction API refuses them, whatever those say."""
        covering = {
            number: names
            for number, ask in enumerate(asks)
            if len(near := self._near.get(ask.namespace, ())) > 1
            and not (ask.pending or ask.outlasted)
            and len(names := [b.model.name for b in near if b.scope.covers(ask)]) > 1
        }
        groups = sorted({tuple(names) for names in covering.values()})
        return [
            LinearBound(
                rule=" and ".join(names),
                weights={number: 1 for number, found in covering.items() if tuple(found) == names},
                bound=0,
                message="the Eviction API lets no pod go that is in several PodDisruptionBudgets",
            )
            for names in groups
        ]

    def refusal(
        self, asks: Sequence[EvictionRequest], now: int, risen: AbstractSet[tuple[str, str]] = frozenset()
    ) -> Denial | None:
        """Give the first rule that does not allow all of ``asks`` at once; None if all rules do."""
        refusing = [row for row in self.rows(asks, now, risen) if sum(row.weights.values()) > row.bound]
        if not refusing:
            return None
        first, times = refusing[0], [row.allows_from(row.weights) for row in refusing]
        return Denial(first.rule, first.refusal, None if None in times else max(filter(None, times)), first.shield)

    def allows(self, asks: Sequence[EvictionRequest], now: int) -> bool:
        """Whether all rules allow all of ``asks`` at once."""
        return self.refusal(asks, now) is None

    def charge(self, asks: Iterable[EvictionRequest], now: int) -> None:
        """Note evictions that take place at ``now``, whether they were refused or forced."""
        self.charged += [Charge(at=now, ask=ask) for ask in asks]

    @contextmanager
    def tentatively(self) -> Iterator[None]:
        """Take back, at the end of the block, all that was charged in it."""
        mark = len(self.charged)
        try:
            yield
        finally:
            del self.charged[mark:]
