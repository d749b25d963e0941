"""The choice of the eviction pieces that are taken from one queue that is over its max."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tenure.engine.state.workloads import TaskState
from tenure.quota.amounts import Amounts, Holdings, distribute, enforceable, holdings
from tenure.quota.candidates import QuotaCandidates, QuotaPool, Tier, tier_of
from tenure.quota.exact_selection import ExactSelection
from tenure.quota.follow_up_cuts import Follow, FollowUpCut, respects
from tenure.quota.greedy import greedy
from tenure.quota.problem import QuotaProblem
from tenure.quota.selection_program import Solve
from tenure.victims.rules.pieces import Piece

MOST_CUTS = 50
"""Sets that are looked at because others have follow-ups."""


@dataclass(slots=True)
class QuotaChoice:
    """The best set that was found, best to take first; ``left`` is by row what stays over max with all of it gone.

    ``exhausted``: the search hit its bound, so that a better set may exist.
    """

    problem: QuotaProblem
    pool: QuotaPool
    pieces: list[Piece]
    left: dict[int, int] = field(default_factory=dict)
    exhausted: bool = False

    def only(self, pieces: list[Piece]) -> QuotaChoice:
        """Give what is left of it where others than these may not go: there may be a better set."""
        left = self.problem.remaining(self.problem.freed(pieces))
        return replace(self, pieces=pieces, left=left, exhausted=True)


def choose(
    candidates: QuotaCandidates, top: int, need: dict[int, int], share: Sequence[Sequence[int]], *, never: bool,
    solve: Solve | None = None, follow: Follow = lambda _: (),
) -> QuotaChoice:  # fmt: skip
    """Choose from the queue ``top``, of which ``need`` has to go, by row.

    Parameters
    ----------
    candidates
        What may be taken.
    top
        Number of the queue.
    need
        By row, in the resource's own piece.
    share
        Allocatable share by queue and row.
    never
        No set may free more than needed.
    solve
        The solver; without one the set may not be the best.
    follow
        What would follow if tasks were evicted.
    """
    session = candidates.session
    queues = session.queues
    rows = tuple(need)
    pool = candidates.pool(queues.leaves[top], rows)
    problem = QuotaProblem(candidates, top, need, pool.pieces, never=never)
    pieces = [piece for piece in pool.pieces if problem.possible(piece)]
    found = holdings(rows, pieces)
    everything = enforceable(queues, top, rows, found)
    problem.most = everything[top]
    first = enforceable(queues, top, rows, {key: held for key, held in found.items() if not key[1][0]})
    problem.target = distribute(queues, top, need, share, (first, everything))
    chosen = greedy(problem, pieces, _needed_tier(problem, found, everything)) if pieces else []
    chosen, proved = _QuotaSearch(problem, pieces, solve).best(chosen, follow)
    ordered = sorted(sorted(chosen, key=lambda p: p.rank), key=tier_of)
    return QuotaChoice(problem, pool, ordered, problem.remaining(problem.freed(chosen)), not proved)


@dataclass(frozen=True, slots=True)
class _QuotaSearch:
    """The search for the best set among some pieces."""

    problem: QuotaProblem
    pieces: Sequence[Piece]
    solve: Solve | None

    def best(self, known: list[Piece], follow: Follow) -> tuple[list[Piece], bool]:
        """Give the best set, and whether that is proved: nothing follows after it, if that leaves no more over max."""
        problem, cuts = self.problem, list[FollowUpCut]()
        first, first_proved = chosen, proved = self._found(known, cuts)
        for _ in range(MOST_CUTS):
            needless = _needless(problem, chosen)
            if needless:  # it was taken for no other reason than that nothing would follow then
                further = [cut for cut in (cut.without(needless) for cut in cuts) if cut not in cuts]
            else:
                further = [c for c in follow([t for piece in chosen for t in piece.tasks]) if c not in cuts]
            if not further:
                return (first, False) if needless else (chosen, proved)
            cuts += further
            chosen, proved = self._found(known, cuts)
            if problem.worth(chosen)[0] > problem.worth(first)[0]:
                return first, first_proved and proved
        return first, False

    def _found(self, known: list[Piece], cuts: Sequence[FollowUpCut]) -> tuple[list[Piece], bool]:
        """Give the best set that the cuts allow, or without a solver the one that is known, if they allow that."""
        if self.solve is None:
            return known if respects(known, cuts) else [], False
        optimum = ExactSelection(self.problem, self.pieces, known, self.solve, cuts)
        return optimum.run(), optimum.proved


def _needless(problem: QuotaProblem, chosen: Sequence[Piece]) -> frozenset[TaskState]:
    """Give the tasks of a set that it might leave: as little would stay over max without them, one by one."""
    freed = problem.freed(chosen)
    spare = (u for u in chosen if problem.left({r: f - u.amount[r] for r, f in freed.items()}) <= problem.left(freed))
    return frozenset(t for piece in spare for t in piece.tasks)


def _needed_tier(problem: QuotaProblem, found: Holdings, everything: Amounts) -> Tier:
    """Give the lowest tier with which, by amounts alone, there is as much as with all of them."""
    tiers = sorted({tier for _, tier in found})
    most = everything[problem.top]

    def enough(tier: Tier) -> bool:
        capacity = enforceable(problem.queues, problem.top, problem.rows, found, tier)[problem.top]
        return all(capacity[row] >= min(need, most[row]) for row, need in problem.need.items())

    return tiers[bisect_left(tiers, x=True, key=enough)]
