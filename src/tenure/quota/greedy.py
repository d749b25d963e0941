"""A good set quickly, whatever the size: fill the amounts, cover what is left, give back what is not needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenure.quota.amounts import Amounts
from tenure.quota.problem import QuotaProblem, QuotaSelection, Worth
from tenure.quota.units import EvictionUnit, Tier

MOST_TIERS = 8
"""Attempts with one more tier each, before everything is allowed at once."""


def greedy(problem: QuotaProblem, units: Sequence[EvictionUnit], first: Tier) -> list[EvictionUnit]:
    """Give a set that obeys the rules, and is short of the need only where no such attempt found more.

    ``first``: the tier (see `EvictionUnit`) without which there is not enough, by amounts alone; lower ones are always
    allowed. What no attempt allows is neither costed nor put in order.
    """
    tiers = sorted({t.tier for t in units if t.tier >= first})
    attempts = tiers if len(tiers) <= MOST_TIERS else [*tiers[: MOST_TIERS - 1], tiers[-1]]
    ranked: list[EvictionUnit] = []
    rest = list(units)
    best: list[EvictionUnit] = []
    least: Worth | None = None
    for tier in attempts:
        ranked += [t for t in rest if t.tier <= tier]
        ranked.sort(key=problem.candidates.rank)
        rest = [t for t in rest if t.tier > tier]
        found = _attempt(problem, ranked)
        value = problem.worth(found)
        if least is None or value < least:
            best, least = found, value
        if not value[0]:
            break
    return best


def _attempt(problem: QuotaProblem, ranked: Sequence[EvictionUnit]) -> list[EvictionUnit]:
    selection = QuotaSelection(problem)
    _fill_targets(problem, ranked, selection)
    _fill(ranked, selection)
    if not problem.never:
        _cover(ranked, selection)
    _give_back(problem, selection)
    return list(selection.units)


def _fill_targets(problem: QuotaProblem, ranked: Iterable[EvictionUnit], selection: QuotaSelection) -> None:
    """Take what stays within the amounts of every leaf, and so within those of every queue above."""
    room: Amounts = {queue: dict(amounts) for queue, amounts in problem.target.items()}
    rows = problem.rows
    for unit in ranked:
        own, amount = room[unit.workload.leaf], unit.amount
        if not unit.compound and selection.try_add(unit, own):
            for row in rows:
                own[row] -= amount[row]


def _fill(ranked: Sequence[EvictionUnit], selection: QuotaSelection) -> None:
    """Take what fits into the need as a whole."""
    within = selection.within()
    for unit in sorted(ranked, key=lambda t: t.tier):
        if not selection.remaining():
            return
        if selection.try_add(unit, within):
            within = selection.within()


def _cover(ranked: Sequence[EvictionUnit], selection: QuotaSelection) -> None:
    """Cover what is left, each time with what leaves least and frees least beyond it."""
    problem = selection.problem
    while selection.remaining():
        best: EvictionUnit | None = None
        least: tuple[int, int] | None = None
        for unit in ranked:
            net = selection.net(unit)
            if net is None or selection.blocked_by(unit, net) is not None:
                continue
            after = {row: selection.freed[row] + net[row] for row in problem.rows}
            value = problem.left(after), problem.weighed(after)
            if (least is None or value < least) and value[0] < problem.left(selection.freed):
                best, least = unit, value
        if best is None or not selection.try_add(best):
            return


def _give_back(problem: QuotaProblem, selection: QuotaSelection) -> None:
    """Give back whatever is not needed: last resorts first, then what has the highest priority and costs most."""
    left = problem.left(selection.freed)
    if all(selection.freed[row] <= most for row, most in problem.need.items()):
        return  # all that is there counts
    order = sorted(selection.units, key=problem.candidates.rank, reverse=True)
    for unit in sorted(order, key=lambda t: t.tier, reverse=True):
        after = {row: selection.freed[row] - unit.amount[row] for row in problem.rows}
        if problem.left(after) == left:
            selection.drop(unit)
