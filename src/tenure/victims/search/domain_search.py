"""The search for a step whose tasks have to stand together: in each domain of the topology alone, and the best of all.

A set that frees room for half a gang in each of two racks helps nothing, and the cheapest sets of a cluster are of that
kind. Inside one domain what is free says whether a set will do, as it does for other steps in the whole cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenure.victims.bounds.least_price import PriceBound
from tenure.victims.bounds.room_demand import Mask
from tenure.victims.rules.set_order import key_of, lowest_of, usage
from tenure.victims.search.trials import SearchBudget
from tenure.victims.search.victim_search import VictimSearch

MOST_PAYING = 8
"""Domains in which a set may have been found before the search ends, those first where the least price is lowest."""

MOST_DOMAINS = 64
"""Domains in which is searched at all."""


def search_domains(begin: Callable[..., VictimSearch], domains: Sequence[Mask], budget: SearchBudget) -> VictimSearch:
    """Search everywhere, or in each of some domains where there are any; gives the search that found the best set.

    Where none did, it gives the one in the domain that looked cheapest, with what was refused in the others.
    """
    if not domains:
        search = begin()
        search.run(budget)
        return search
    searches = [begin(within=within) for within in domains]
    if len(searches) > 1:
        searches.sort(key=lambda s: PriceBound(s.need, s.candidates).least())
    best, paying = searches[0], 0
    for number, search in enumerate(searches[:MOST_DOMAINS]):
        search.run(budget)
        if number:
            first, second = (search, best) if _comes_first(search, best) else (best, search)
            best = first
            first.found.join(second.found)
        paying += search.found.pieces is not None
        if budget.hit or paying == MOST_PAYING:
            break
    return best


def _comes_first(one: VictimSearch, other: VictimSearch) -> bool:
    """Whether the set that one search found comes before that of another (spec: choosing victims)."""
    mine, its = one.found.pieces, other.found.pieces
    if mine is None or its is None:
        return its is None and mine is not None
    settings, weights, follows = one.session.settings, one.dry_runs.weights, one.trials.follows(mine)
    keys = key_of(settings, mine, follows), key_of(settings, its, other.trials.follows(its))
    leaves = {p.workload.leaf for p in {*mine} ^ {*its}}
    if len(leaves) == 1 and keys[0][0] == keys[1][0] and bool(follows) == bool(other.trials.follows(its)):
        (leaf,) = leaves
        lowest = lowest_of([*one.few, *other.few, *mine, *its])[leaf]
        taken = usage(mine, leaf, weights, lowest), usage(its, leaf, weights, lowest)
        if taken[0] != taken[1]:
            return taken[0] < taken[1]
    return keys[0] < keys[1]
