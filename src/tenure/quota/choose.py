"""Chooses who goes from one queue that is over its max."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from tenure.engine.queues import QueueTree
from tenure.quota.amounts import EnforceableAmounts, Holdings, distribute, holdings
from tenure.quota.exact import QuotaSearch
from tenure.quota.greedy import greedy
from tenure.quota.problem import QuotaProblem
from tenure.quota.units import EvictionUnit, Tier, UnitCandidates, UnitPool


@dataclass(slots=True)
class QuotaChoice:
    """The best set that was found, best to take first; ``left`` is by row what stays over max with all of it gone.

    ``exhausted``: the search hit its bound, so that a better set may exist.
    """

    problem: QuotaProblem
    pool: UnitPool
    takes: list[EvictionUnit]
    left: dict[int, int] = field(default_factory=dict)
    exhausted: bool = False


def leaves_below(queues: QueueTree, top: int) -> list[int]:
    """Give the leaf queues below a queue, itself if it is one."""
    if queues.leaf[top]:
        return [top]
    return [leaf for child in queues.children[top] for leaf in leaves_below(queues, child)]


def choose(
    candidates: UnitCandidates, top: int, need: dict[int, int], share: Sequence[Sequence[int]], *, never: bool
) -> QuotaChoice:
    """Choose from the queue ``top``, of which ``need`` has to go, by row.

    ``share`` is the allocatable share by queue and row; ``never`` forbids to free more than needed.
    """
    session = candidates.session
    queues = session.queues
    rows = tuple(need)
    pool = candidates.pool(leaves_below(queues, top), rows)
    problem = QuotaProblem(candidates, top, need, {}, never=never)
    problem.add_budgets(*candidates.bounds(pool.takes))
    takes = [take for take in pool.takes if problem.possible(take)]
    found = holdings(rows, takes)
    everything = EnforceableAmounts(queues, top, rows, found)
    problem.most = everything.of[top]
    first = EnforceableAmounts(queues, top, rows, {key: held for key, held in found.items() if not key[1][0]})
    problem.target = distribute(queues, top, need, share, (first, everything))
    chosen = greedy(problem, takes, _needed_tier(problem, found, everything)) if takes else []
    search = QuotaSearch(problem, takes, chosen, session.settings.search.max_scenarios)
    chosen = search.run()
    ordered = sorted(sorted(chosen, key=candidates.rank), key=lambda t: t.tier)
    freed = {row: sum(t.amount[row] for t in chosen) for row in rows}
    left = {row: amount - freed[row] for row, amount in need.items() if amount > freed[row]}
    return QuotaChoice(problem, pool, ordered, left, search.exhausted)


def _needed_tier(problem: QuotaProblem, found: Holdings, everything: EnforceableAmounts) -> Tier:
    """Give the lowest tier with which, by amounts alone, there is as much as with all of them."""
    tiers = sorted({tier for _, tier in found})
    most = everything.of[problem.top]

    def enough(tier: Tier) -> bool:
        capacity = EnforceableAmounts(problem.queues, problem.top, problem.rows, found, tier)
        return all(capacity.of[problem.top][row] >= min(need, most[row]) for row, need in problem.need.items())

    return tiers[bisect_left(tiers, x=True, key=enough)]
