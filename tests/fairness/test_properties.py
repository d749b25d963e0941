"""What must hold of fair shares for every tree, and agreement with slow ways to work them out."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import tries

from tenure.fairness.division import divide
from tenure.fairness.history import UsageHistory
from tenure.fairness.shares import fair_shares
from tenure.fairness.tree import TOP, ShareQueue, queue_tree

from . import oracle
from .strategies import EQUAL, Case, cases

MANY = settings(max_examples=tries(75, 3000), deadline=None)


def pools(case, shares):
    """Give, for every sibling set, its members and what they divide."""
    for parent, members in case.sibling_sets().items():
        yield members, case.total if parent == TOP else shares[parent]


@MANY
@given(cases())
def test_shares_follow_the_rules(case):
    """The fast division and the three steps taken word by word give the same."""
    assert case.shares() == oracle.by_the_rules(case)


@MANY
@given(cases(flat=True, weights=EQUAL, whole=True))
def test_equal_weights_hand_out_unit_by_unit(case):
    """Among equal weights each unit goes to the queue that got least so far, the earlier first."""
    assert case.shares() == oracle.unit_by_unit(case)


@MANY
@given(cases())
def test_shares_never_exceed_max_or_request(case):
    """No queue is due more than its max, nor more than what is asked for below it."""
    shares, demand = case.shares(), case.demand()
    assert all(0 <= share <= wanted for share, wanted in zip(shares, demand, strict=True))
    assert all(share <= case.maximum(index) for index, share in enumerate(shares))


@MANY
@given(cases())
def test_nobody_gets_less_than_step_1(case):
    """A queue is always due what is guaranteed to it, as far as it asks for it."""
    assert all(share >= floor for share, floor in zip(case.shares(), case.floors(), strict=True))


@MANY
@given(cases())
def test_sum_never_exceeds_the_total_unless_guarantees_alone_do(case):
    """Siblings add up to what they divide or, where guarantees are more than that, to the guarantees."""
    shares, floors = case.shares(), case.floors()
    for members, pool in pools(case, shares):
        assert sum(shares[i] for i in members) <= max(pool, sum(floors[i] for i in members))


@MANY
@given(cases())
def test_nothing_is_kept_from_an_unsatisfied_queue(case):
    """Siblings get all there is to divide, or all they want."""
    shares, demand, floors = case.shares(), case.demand(), case.floors()
    for members, pool in pools(case, shares):
        wanted = sum(demand[i] for i in members)
        assert sum(shares[i] for i in members) == max(min(pool, wanted), sum(floors[i] for i in members))


@MANY
@given(cases())
def test_an_unsatisfied_queue_leaves_nothing_to_lower_priority_or_weight_0(case):
    """Beyond step 1, whoever comes later in the order of step 2 gets something only when all before are satisfied."""
    shares, demand, floors = case.shares(), case.demand(), case.floors()
    for members, _ in pools(case, shares):
        for i in members:
            if shares[i] < demand[i]:
                first = (case.queues[i].priority, case.queues[i].weight[0] > 0)
                later = [j for j in members if (case.queues[j].priority, case.queues[j].weight[0] > 0) < first]
                assert all(shares[j] == floors[j] for j in later)


@MANY
@given(cases(), st.data())
def test_more_demand_never_raises_the_share_of_another_beyond_its_request(case, data):
    """Whoever is not above the queue that asks for more stays within what was asked for before."""
    more, index = with_more(case, data)
    above = {index}
    while index != TOP:
        index = case.queues[index].parent
        above.add(index)
    demand, after = case.demand(), more.shares()
    assert all(share <= demand[i] for i, share in enumerate(after) if i not in above)


@MANY
@given(cases(flat=True, weights=EQUAL, whole=True), st.data())
def test_among_equal_weights_more_demand_never_raises_the_share_of_another(case, data):
    """In whole units, one queue's demand is only ever served at the expense of the others."""
    more, index = with_more(case, data)
    before, after = case.shares(), more.shares()
    assert all(after[i] <= before[i] for i in range(len(before)) if i != index)


@MANY
@given(cases(flat=True, weights=EQUAL), st.data())
def test_among_equal_weights_parts_of_units_raise_a_share_by_less_than_a_unit(case, data):
    """With parts of units the last single unit may change hands, no more than that."""
    more, index = with_more(case, data)
    before, after = case.shares(), more.shares()
    assert all(after[i] < before[i] + case.unit for i in range(len(before)) if i != index)


def with_more(case, data):
    """Add demand in one leaf."""
    index = data.draw(st.sampled_from(case.leaves()))
    step = 1 if case.request[index] % case.unit else case.unit
    return case.with_request(index, case.request[index] + step * data.draw(st.integers(1, 40))), index


@MANY
@given(cases(), st.randoms(use_true_random=False))
def test_result_does_not_depend_on_input_order(case, chance):
    """Any order that puts parents before children gives each queue the same share."""
    shuffled, position = shuffle(case, chance)
    assert [shuffled.shares()[position[i]] for i in range(len(case.queues))] == case.shares()


def shuffle(case, chance):
    """Put the queues into another order, parents first; give the position of each."""
    position = {TOP: TOP}
    while len(position) <= len(case.queues):
        ready = [i for i, q in enumerate(case.queues) if i not in position and q.parent in position]
        position[chance.choice(ready)] = len(position) - 1
    order = sorted(range(len(case.queues)), key=position.__getitem__)
    queues = tuple(
        ShareQueue(q.name, position[q.parent], q.guaranteed, q.maximum, q.weight, q.priority, q.created)
        for q in (case.queues[i] for i in order)
    )
    return Case(queues, case.total, tuple(case.request[i] for i in order), case.unit), position


@MANY
@given(cases(), st.integers(2, 2**50))
def test_shares_scale(case, factor):
    """All amounts times a factor, units too: shares times that factor, exactly."""
    queues = tuple(
        ShareQueue(
            q.name,
            q.parent,
            [None if a is None else a * factor for a in q.guaranteed],
            [None if a is None else a * factor for a in q.maximum],
            q.weight,
            q.priority,
            q.created,
        )
        for q in case.queues
    )
    large = Case(queues, case.total * factor, tuple(r * factor for r in case.request), case.unit * factor)
    assert large.shares() == [share * factor for share in case.shares()]


@MANY
@given(st.lists(st.tuples(st.integers(0, 2**60), st.integers(1, 9)), min_size=1, max_size=8), st.integers(0, 2**61))
def test_fine_units_come_close_to_the_exact_division(queues, total):
    """In bytes, rounding does not show: each share is within a few units of the exact one."""
    wants, weights = [want for want, _ in queues], tuple(weight for _, weight in queues)
    exact = oracle.water_level(min(total, sum(wants)), wants, [Fraction(weight) for weight in weights])
    for share, ideal in zip(divide(total, wants, weights, 1), exact, strict=True):
        assert math.isclose(share, ideal, rel_tol=0, abs_tol=4 * len(queues))


@MANY
@given(cases() | cases(flat=True, priorities=(100,)), st.data())
def test_history_follows_the_rules_and_touches_no_guarantee(case, data):
    """With past usage the three steps hold as before, with the weights that it leads to."""
    usage = [data.draw(st.floats(0, 1e6) | st.integers(0, 5).map(float)) for _ in case.queues]
    strength = data.draw(st.sampled_from((0, 0.5, 1, 4)))
    shares = case.shares(UsageHistory([[amount] for amount in usage], strength))
    assert shares == oracle.by_the_rules(case, usage, strength)
    assert all(share >= floor for share, floor in zip(shares, case.floors(), strict=True))


@MANY
@given(cases(), st.lists(st.floats(0, 1e9), min_size=12, max_size=12))
def test_history_of_strength_0_changes_nothing(case, usage):
    """Strength 0 is the same as no history."""
    assert case.shares(UsageHistory([[amount] for amount in usage], 0)) == case.shares()


def test_shares_of_random_trees_follow_the_rules():
    """Deep and wide trees of up to 60 queues, several resources at once."""
    chance = random.Random(20)
    for _ in range(tries(500, 10_000)):
        units = [chance.choice((1, 1000)) for _ in range(chance.randint(1, 3))]
        queues, request = random_tree(chance, units)
        total = [chance.randint(0, 300) * unit for unit in units]
        shares = fair_shares(queue_tree(queues, units), total, request)
        for resource, unit in enumerate(units):
            case = one_resource(queues, request, resource, total[resource], unit)
            assert [row[resource] for row in shares] == oracle.by_the_rules(case)


def random_tree(chance, units):
    """Make a tree in at most five levels, and the requests of its leaves."""
    queues, level = [], []
    for index in range(chance.randint(1, 60)):
        parent = chance.choice([TOP, *(i for i in range(index) if level[i] < 4)])
        level.append(0 if parent == TOP else level[parent] + 1)
        queues.append(
            ShareQueue(
                name=f"q{index}",
                parent=parent,
                guaranteed=[chance.choice((None, None, 0, chance.randint(1, 9) * unit)) for unit in units],
                maximum=[chance.choice((None, None, None, chance.randint(0, 40 * unit))) for unit in units],
                weight=[chance.choice((1, 1, 2, 0.1, 0.7, 0)) for _ in units],
                priority=chance.choice((100, 100, 100, 50)),
                created=chance.randint(0, 5),
            )
        )
    parents = {queue.parent for queue in queues}
    request = [[0 if i in parents else chance.randint(0, 40 * unit) for unit in units] for i in range(len(queues))]
    return queues, request


def one_resource(queues, request, resource, total, unit):
    """Cut one resource out of a tree."""
    cut = tuple(
        ShareQueue(
            q.name,
            q.parent,
            [q.guaranteed[resource]],
            [q.maximum[resource]],
            [q.weight[resource]],
            q.priority,
            q.created,
        )
        for q in queues
    )
    return Case(cut, total, tuple(row[resource] for row in request), unit)
