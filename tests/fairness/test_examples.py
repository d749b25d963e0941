"""Fair shares worked out by hand."""

from __future__ import annotations

import pytest

from tenure.fairness.shares import allocatable_share, fair_shares
from tenure.fairness.tree import TOP, ShareQueue, effective_guaranteed, queue_tree

GPU = 1000


def queue(name="q", *, parent=TOP, guaranteed=None, maximum=None, weight=1.0, priority=100, created=0):
    """Describe one queue for one resource."""
    return ShareQueue(name, parent, [guaranteed], [maximum], [weight], priority, created)


def shares(total, queues, requests, unit=1):
    """Give the fair shares of one resource."""
    tree = queue_tree(queues, [unit])
    return [row[0] for row in fair_shares(tree, [total], [[request] for request in requests])]


def test_everybody_gets_what_they_ask_for_when_there_is_enough():
    assert shares(10, [queue("a"), queue("b")], [3, 7]) == [3, 7]


def test_no_queues_have_no_shares():
    assert fair_shares(queue_tree([], [1]), [5], []) == []


def test_guarantees_come_before_weights():
    """a: 6 guaranteed, and 1 of the 2 that are left; b: 1."""
    assert shares(8, [queue("a", guaranteed=6), queue("b")], [20, 20]) == [7, 1]


def test_a_guarantee_that_is_not_asked_for_goes_to_the_others():
    assert shares(8, [queue("a", guaranteed=6), queue("b")], [2, 20]) == [2, 6]


def test_guarantees_alone_may_exceed_the_total():
    queues = [queue("a", guaranteed=6), queue("b", guaranteed=6), queue("c")]
    assert shares(8, queues, [20, 20, 20]) == [6, 6, 0]


def test_weight_decides_about_what_is_left():
    """12 left: 3 to 1, after 4 and 0 guaranteed."""
    assert shares(16, [queue("a", guaranteed=4, weight=3), queue("b")], [50, 50]) == [13, 3]


def test_max_binds_and_its_surplus_goes_round_again():
    """Portions of 4: a takes 1; of the 3 it leaves b and c get 1 each, and the one made first the last."""
    queues = [queue("a", maximum=1), queue("b", created=2), queue("c", created=1)]
    assert shares(12, queues, [9, 9, 9]) == [1, 5, 6]


def test_a_max_of_0_means_none():
    assert shares(12, [queue("a", maximum=0), queue("b")], [9, 20]) == [0, 12]


def test_a_max_below_the_guarantee_binds():
    assert shares(12, [queue("a", guaranteed=5, maximum=2), queue("b")], [9, 20]) == [2, 10]


def test_single_units_go_by_largest_remainder():
    """Portions of 10 by 5:3:2 over 7 units: 3.5, 2.1, 1.4; the unit left goes to the .5."""
    queues = [queue("a", weight=5), queue("b", weight=3), queue("c", weight=2)]
    assert shares(7, queues, [99, 99, 99]) == [4, 2, 1]


def test_equal_remainders_go_to_the_queue_that_was_made_first_then_by_name():
    queues = [queue("c", created=5), queue("b", created=5), queue("a", created=9)]
    assert shares(4, queues, [9, 9, 9]) == [1, 2, 1]
    assert shares(5, queues, [9, 9, 9]) == [2, 2, 1]


def test_weights_in_tenths_tie_as_they_do_on_paper():
    """0.1 and 0.3 of 2 units: 0.5 and 1.5; the remainders are equal, so the earlier gets the unit."""
    queues = [queue("a", weight=0.3, created=1), queue("b", weight=0.1, created=0)]
    assert shares(2, queues, [9, 9]) == [1, 1]
    queues = [queue("a", weight=0.3, created=0), queue("b", weight=0.1, created=1)]
    assert shares(2, queues, [9, 9]) == [2, 0]


def test_gpus_are_divided_in_whole_devices():
    assert shares(3 * GPU, [queue("a"), queue("b")], [9 * GPU, 9 * GPU], GPU) == [2 * GPU, GPU]


def test_a_queue_that_needs_part_of_a_device_gets_that_part():
    """Portions of 1.5 devices: a needs 0.5; the 2.5 left go to b."""
    assert shares(3 * GPU, [queue("a"), queue("b")], [500, 9 * GPU], GPU) == [500, 2500]


def test_a_queue_that_needs_just_its_portion_gets_it_though_it_is_no_whole_unit():
    """Portions of 1.5 devices: a needs 1.5; b gets 1 whole, and then the half that is left."""
    assert shares(3 * GPU, [queue("a"), queue("b")], [1500, 9 * GPU], GPU) == [1500, 1500]
    assert shares(3 * GPU, [queue("a"), queue("b", weight=2)], [1 * GPU, 9 * GPU], GPU) == [1 * GPU, 2 * GPU]


def test_the_last_single_unit_may_be_part_of_a_device():
    """2.5 devices, portions of 1.25: 1 each; half a device is left for the first of two equal remainders."""
    assert shares(2500, [queue("a"), queue("b")], [9 * GPU, 9 * GPU], GPU) == [1500, 1000]


def test_a_single_unit_is_not_more_than_the_queue_wants():
    """3 devices, portions of 1.5, and a wants 1.6: 1 each, then 0.6 for a and the 0.4 left for b."""
    assert shares(3 * GPU, [queue("a"), queue("b")], [1600, 9 * GPU], GPU) == [1600, 1400]


def test_higher_priority_is_served_first():
    queues = [queue("a", priority=50), queue("b", priority=200), queue("c", priority=200)]
    assert shares(9, queues, [9, 3, 4]) == [2, 3, 4]
    assert shares(9, queues, [9, 9, 9]) == [0, 5, 4]


def test_guarantees_come_before_priority():
    queues = [queue("a", priority=50, guaranteed=3), queue("b", priority=200)]
    assert shares(9, queues, [9, 9]) == [3, 6]


def test_weight_0_gets_what_the_others_leave_in_equal_portions():
    queues = [queue("a"), queue("b", weight=0), queue("c", weight=0, created=1)]
    assert shares(12, queues, [20, 20, 20]) == [12, 0, 0]
    assert shares(12, queues, [5, 20, 20]) == [5, 4, 3]
    assert shares(12, queues, [5, 2, 20]) == [5, 2, 5]


def test_weight_0_comes_before_lower_priority():
    queues = [queue("a", weight=0), queue("b", priority=1)]
    assert shares(12, queues, [7, 20]) == [7, 5]


def test_children_divide_their_parents_share():
    """12 to 8 and 4 by weight; p's 8 to its children by 3:1."""
    queues = [queue("p", weight=2), queue("o"), queue("x", parent=0, weight=3), queue("y", parent=0)]
    assert shares(12, queues, [0, 90, 90, 90]) == [8, 4, 6, 2]


def test_a_parent_without_guarantee_is_guaranteed_the_sum_of_its_childrens():
    queues = [queue("p"), queue("o"), queue("x", parent=0, guaranteed=5), queue("y", parent=0, guaranteed=3)]
    assert shares(10, queues, [0, 90, 90, 90]) == [9, 1, 6, 3]


def test_effective_guarantees_by_hand():
    """The top sums a middle queue of its own 4 (not 9), and a leaf of 2; an explicit 0 stays 0."""
    parent = [TOP, 0, 0, 1, TOP, 4]
    rows = [[None, 0], [4, None], [2, 1], [9, 3], [None, None], [None, 7]]
    assert effective_guaranteed(parent, rows) == [[6, 0], [4, 3], [2, 1], [9, 3], [0, 7], [0, 7]]


def test_childrens_guarantees_are_given_even_beyond_their_parents_share():
    queues = [queue("p", guaranteed=2), queue("o"), queue("x", parent=0, guaranteed=5), queue("y", parent=0)]
    assert shares(6, queues, [0, 90, 90, 90]) == [4, 2, 5, 0]


def test_a_parent_is_not_given_what_its_children_may_not_use():
    """Where x may hold 2, p wants no more, and o gets the rest."""
    queues = [queue("p"), queue("o"), queue("x", parent=0, maximum=2)]
    assert shares(10, queues, [0, 90, 90]) == [2, 8, 2]


def test_a_parents_max_binds_its_children():
    queues = [queue("p", maximum=4), queue("o"), queue("x", parent=0), queue("y", parent=0)]
    assert shares(20, queues, [0, 9, 9, 9]) == [4, 9, 2, 2]


def test_rows_of_inner_queues_are_not_read():
    queues = [queue("p"), queue("x", parent=0)]
    assert shares(20, queues, [77, 9]) == [9, 9]


def test_huge_amounts_are_exact():
    """2**60 + 1 by 1:2 is no whole number of bytes: the byte left goes to the larger remainder."""
    total = 2**60 + 1
    assert total % 3 == 2
    assert shares(total, [queue("a"), queue("b", weight=2)], [2**62, 2**62]) == [total // 3 + 1, 2 * total // 3]


def test_each_resource_is_divided_for_itself():
    tree = queue_tree(
        [ShareQueue("a", TOP, [None, 2], [None, None], [1, 1]), ShareQueue("b", TOP, [None, None], [3, None], [1, 3])],
        [1, 1],
    )
    assert fair_shares(tree, [10, 10], [[50, 50], [50, 50]]) == [[7, 4], [3, 6]]


@pytest.mark.parametrize(
    ("maximum", "guaranteed", "fair", "expected"), [(10, 4, 6, 6), (10, 8, 6, 8), (5, 4, 6, 5), (5, 8, 2, 5)]
)
def test_allocatable_share(maximum, guaranteed, fair, expected):
    assert allocatable_share(maximum, guaranteed, fair) == expected
