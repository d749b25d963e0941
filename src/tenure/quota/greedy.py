"""A good set quickly, whatever the size: fill the amounts, cover what is left, give back what is not needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenure.quota.amounts import Amounts
from tenure.quota.candidates import Tier, tier_of
from tenure.quota.problem import QuotaProblem, QuotaSelection, Worth
from tenure.victims.rules.pieces import Piece

MOST_TIERS = 8
"""Attempts with one more tier each, before everything is allowed at once."""


def greedy(problem: QuotaProblem, pieces: Sequence[Piece], first: Tier) -> list[Piece]:
    """Give a set that obeys the rules, and is short of the need only where no such attempt found more.

    ``first``: the tier (see `tier_of`) without which there is not enough, by amounts alone; lower ones are always
    allowed. What no attempt allows is not put in order.
    """
    tiers = sorted({tier_of(p) for p in pieces if tier_of(p) >= first})
    attempts = tiers if len(tiers) <= MOST_TIERS else [*tiers[: MOST_TIERS - 1], tiers[-1]]
    ranked: list[Piece] = []
    rest = list(pieces)
    best: list[Piece] = []
    least: Worth | None = None
    for tier in attempts:
        ranked += [p for p in rest if tier_of(p) <= tier]
        ranked.sort(key=lambda p: p.rank)
        rest = [p for p in rest if tier_of(p) > tier]
        found = _attempt(problem, ranked)
        value = problem.worth(found)
        if least is None or value < least:
            best, least = found, value
        if not value[0]:
            break
    return best


def _attempt(problem: QuotaProblem, ranked: Sequence[Piece]) -> list[Piece]:
    selection = QuotaSelection(problem)
    _fill_targets(problem, ranked, selection)
    _fill(ranked, selection)
    if not problem.never:
        _cover(ranked, selection)
    _give_back(problem, selection)
    return list(selection.pieces)


def _fill_targets(problem: QuotaProblem, ranked: Iterable[Piece], selection: QuotaSelection) -> None:
    """Take what stays within the amounts of every leaf, and so within those of every queue above."""
    room: Amounts = {queue: dict(amounts) for queue, amounts in problem.target.items()}
    rows = problem.rows
    for piece in ranked:
        own, amount = room[piece.workload.leaf], piece.amount
        if not piece.compound and selection.try_add(piece, own):
            for row in rows:
                own[row] -= amount[row]


def _fill(ranked: Sequence[Piece], selection: QuotaSelection) -> None:
    """Take what fits into the need as a whole."""
    within = selection.within()
    for piece in sorted(ranked, key=tier_of):
        if not selection.remaining():
            return
        if selection.try_add(piece, within):
            within = selection.within()


def _cover(ranked: Sequence[Piece], selection: QuotaSelection) -> None:
    """Cover what is left, each time with what leaves least and frees least beyond it."""
    problem = selection.problem
    while selection.remaining():
        best: Piece | None = None
        least: tuple[int, int] | None = None
        for piece in ranked:
            net = selection.net(piece)
            if net is None or selection.blocked_by(piece, net) is not None:
                continue
            after = {row: selection.freed[row] + net[row] for row in problem.rows}
            value = problem.left(after), problem.weighed(after)
            if (least is None or value < least) and value[0] < problem.left(selection.freed):
                best, least = piece, value
        if best is None or not selection.try_add(best):
            return


def _give_back(problem: QuotaProblem, selection: QuotaSelection) -> None:
    """Give back whatever is not needed: last resorts first, then what has the highest priority and costs most."""
    left = problem.left(selection.freed)
    if all(selection.freed[row] <= most for row, most in problem.need.items()):
        return  # all that is there counts
    order = sorted(selection.pieces, key=lambda p: p.rank, reverse=True)
    for piece in sorted(order, key=tier_of, reverse=True):
        after = {row: selection.freed[row] - piece.amount[row] for row in problem.rows}
        if problem.left(after) == left:
            selection.drop(piece)
