"""Past usage fades, and moves weights but no guarantees."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.fairness.history import UsageHistory, accrue, decay, history_weight, reweigh, whole_usage
from tenure.fairness.shares import fair_shares
from tenure.fairness.tree import TOP, ShareQueue, queue_tree

HOUR = 3_600_000_000
DAY = 24 * HOUR


def test_half_is_left_after_a_half_life():
    assert decay(80.0, DAY, DAY) == 40.0
    assert decay(80.0, 3 * DAY, DAY) == 10.0
    assert decay(80.0, 0, DAY) == 80.0


def test_a_clock_that_steps_back_adds_no_usage():
    assert decay(80.0, -DAY, DAY) == 80.0
    assert accrue(80.0, 8, -DAY, DAY) == 80.0


def test_a_half_life_of_nothing_is_refused():
    with pytest.raises(ValueError, match="half-life must be more than 0"):
        decay(1.0, 1, 0)
    with pytest.raises(ValueError, match="half-life must be more than 0"):
        accrue(1.0, 1, 1, 0)


def test_short_use_counts_in_full():
    """8 GPUs for a second, at a half-life of a day: 8 GPU-seconds, less what faded in that second."""
    assert accrue(0.0, 8, 1_000_000, DAY) == pytest.approx(8, rel=1e-5)


def test_use_for_ever_approaches_half_life_over_ln_2():
    assert accrue(0.0, 1, 1000 * DAY, DAY) == pytest.approx(86400 / 0.6931471805599453)


@given(st.floats(0, 1e12), st.integers(0, 2**40), st.integers(0, 10 * DAY), st.integers(0, 10 * DAY))
def test_it_does_not_matter_how_often_usage_is_written(usage, allocated, first, second):
    """Two steps give what one step gives."""
    once = accrue(usage, allocated, first + second, DAY)
    twice = accrue(accrue(usage, allocated, first, DAY), allocated, second, DAY)
    assert twice == pytest.approx(once, rel=1e-9)


def test_weight_by_hand():
    """With w 0.5 and u 0.8: 0.5 - 0.3; at strength 3 it would be below 0."""
    assert history_weight(0.5, 0.8, 1) == pytest.approx(0.2)
    assert history_weight(0.5, 0.8, 3) == 0
    assert history_weight(0.5, 0.2, 1) == pytest.approx(0.8)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=6), st.sampled_from([0, 0.5, 1, 3])
)
def test_whole_numbers_stand_in_the_proportion_of_the_formula(queues, strength):
    """They are the weights of the formula, all times one number."""
    weights, usage = zip(*queues, strict=True)
    whole, used = sum(weights), sum(usage) or 1
    expected = [history_weight(w / whole, u / used, strength) for w, u in queues] if sum(usage) else list(weights)
    result = reweigh(weights, usage, Fraction(strength))
    assert [r / sum(result) for r in result] == pytest.approx([e / sum(expected) for e in expected], abs=1e-12)


def test_usage_keeps_its_proportions_exactly():
    assert whole_usage([0.5, 0.25, 3.0]) == [2, 1, 12]
    assert whole_usage([0.0, -1.0]) == [0, 0]
    assert whole_usage([]) == []


def flat(*queues):
    """Make one level of queues of one resource, from (guaranteed, weight)."""
    return queue_tree([ShareQueue(f"q{i}", TOP, [g], [None], [w], created=i) for i, (g, w) in enumerate(queues)], [1])


def test_who_used_more_gets_less_of_what_is_free():
    """Weights of 1/2 each, usage 3/4 and 1/4: 1/4 and 3/4."""
    tree = flat((None, 1), (None, 1))
    assert fair_shares(tree, [8], [[99], [99]], UsageHistory([[75.0], [25.0]], 1)) == [[2], [6]]


def test_guarantees_are_not_touched_by_history():
    """All of the past was the first queue's: it keeps its 4, and gets nothing of the other 4."""
    tree = flat((4, 1), (None, 1))
    assert fair_shares(tree, [8], [[99], [99]], UsageHistory([[75.0], [0.0]], 1)) == [[4], [4]]


def test_usage_as_configured_leaves_the_shares_as_configured():
    """Where the past was divided 3:1 as the weights are, so is the present."""
    tree = flat((None, 3), (None, 1))
    assert fair_shares(tree, [8], [[99], [99]], UsageHistory([[30.0], [10.0]], 2)) == [[6], [2]]


def test_a_queue_that_asks_for_nothing_does_not_count():
    """The third's weight of 8 and its past must not hide how the first two stand to each other."""
    tree = flat((None, 3), (None, 1), (None, 8))
    assert fair_shares(tree, [8], [[99], [99], [0]], UsageHistory([[30.0], [10.0], [500.0]], 1)) == [[6], [2], [0]]


def test_without_any_usage_the_weights_are_as_configured():
    tree = flat((None, 3), (None, 1))
    assert fair_shares(tree, [8], [[99], [99]], UsageHistory([[0.0], [0.0]], 5)) == [[6], [2]]


def test_over_time_the_past_approaches_the_weights():
    """Two queues of weights 1 and 3 take turns until what they used stands about 1:3, from whatever beginning."""
    tree, usage = flat((None, 1), (None, 3)), [5e5, 0.0]
    for _ in range(400):
        held = fair_shares(tree, [10], [[10], [10]], UsageHistory([[u] for u in usage], 1))
        usage = [accrue(u, row[0], HOUR, DAY) for u, row in zip(usage, held, strict=True)]
    assert usage[0] / sum(usage) == pytest.approx(0.25, abs=0.03)
