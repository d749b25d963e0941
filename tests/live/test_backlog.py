"""What is dropped is counted once, whatever happens while the record that says so is written."""

from tests.history.test_store import NOVEMBER
from tests.history.worlds import MINUTE

from tenure.history.record import Draft
from tenure.live.records.backlog import Backlog, HistoryGap


def drafts(numbers):
    return [Draft(NOVEMBER + number * MINUTE, "leader", key=str(number)) for number in numbers]


def gap_of(first, last):
    return HistoryGap(NOVEMBER + first * MINUTE, NOVEMBER + last * MINUTE, last - first + 1)


def test_what_is_dropped_while_a_gap_is_written_is_another_gap():
    backlog = Backlog(10)
    backlog.add(drafts(range(14)))
    assert [draft.key for draft in backlog.take(2)] == ["4", "5"]
    assert backlog.offer_gap() == gap_of(0, 3)
    backlog.add(drafts(range(14, 16)))
    assert backlog.written() == gap_of(0, 3)
    assert [draft.key for draft in backlog.take(2)] == ["8", "9"]
    assert backlog.offer_gap() == gap_of(6, 7)
    assert backlog.written() == gap_of(6, 7)
    assert backlog.offer_gap() is None
    assert backlog.dropped == 6


def test_a_gap_whose_writing_is_in_doubt_stays_as_it_was_offered():
    backlog = Backlog(10)
    backlog.add(drafts(range(14)))
    backlog.take(2)
    assert backlog.offer_gap() == gap_of(0, 3)
    backlog.pause(0)
    backlog.add(drafts(range(14, 16)))
    backlog.take(2)
    assert backlog.offer_gap() == gap_of(0, 3)
    assert backlog.written() == gap_of(0, 3)
    assert backlog.offer_gap() == gap_of(4, 5)


def test_gaps_that_nobody_was_told_of_are_one():
    backlog = Backlog(10)
    for number in range(14):
        backlog.add(drafts([number]))
    assert backlog.offer_gap() == gap_of(0, 3)
