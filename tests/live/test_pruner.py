"""What is too old goes out of a history while it is written, and nothing that is to be kept goes with it."""

import time
from itertools import pairwise
from types import SimpleNamespace

import pytest
from tests.history.conftest import address, server  # noqa: F401  fixtures
from tests.history.writer import HERE, MINUTE, NOVEMBER, life_of

from tenure.history import open_history, retention
from tenure.history.reading.statement import statement_of
from tenure.history.retention import Retention
from tenure.live.records.drain import HistoryDrain
from tenure.live.records.pruner import Pruner
from tenure.model.values.duration import DAY

JOBS = 200
"""Jobs half an hour apart, five records each: four days and four hours."""

END = NOVEMBER + JOBS * 30 * MINUTE
LIMIT = END - DAY


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(retention, "AT_ONCE", 64)


@pytest.fixture
def filled(address):  # noqa: F811
    with open_history(address, write=True) as store:
        store.append(HERE, [draft for number in range(JOBS) for draft in life_of(number)])
    return address


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def pruner_of(keep, **others):
    clock = SimpleNamespace(now=END)
    told = []
    return Pruner(Retention(keep), lambda: clock.now, told.append, told.append, **others), clock, told


def what_is_left(address):  # noqa: F811
    with open_history(address) as store:
        return [record.at for record in store.records(limit=10_000).records if record.kind != "usage"]


def test_a_drain_takes_out_what_is_too_old_and_goes_on_to_write(filled):
    with open_history(filled) as store:
        before = statement_of(store, LIMIT, END).rows
    pruner, _, told = pruner_of(DAY)
    drain = HistoryDrain(filled, HERE, tends=pruner.step)
    drain.start()
    drain.add(life_of(JOBS))
    until(lambda: told)
    assert drain.written == 5
    drain.add(life_of(JOBS + 1))
    until(lambda: drain.written == 10)
    drain.stop()
    left = what_is_left(filled)
    assert min(left) >= LIMIT, "nothing of it was needed any more"
    assert max(left) > END
    with open_history(filled) as store:
        assert told == [5 * JOBS + 10 - store.info().records]
        assert statement_of(store, LIMIT, END).rows == before


def test_a_look_is_begun_once_a_day_and_parts_are_short(filled):
    pruner, clock, told = pruner_of(DAY, every=3600.0)
    with open_history(filled, write=True) as store:
        records, steps = [store.info().records], 0
        while pruner.step(store):
            steps += 1
            records.append(store.info().records)
        assert max(a - b for a, b in pairwise(records)) <= 64
        assert steps > 10, "all at once"
        assert told == [records[0] - records[-1]]
        clock.now += 30 * DAY
        store.append(HERE, life_of(JOBS + 30 * 48))
        assert not pruner.step(store)
        assert store.info().records == records[-1] + 5, "a second look in the same hour"


def test_a_clock_that_jumps_ahead_makes_nothing_older(filled):
    """Nor does a record of the future that was written meanwhile."""
    pruner, clock, told = pruner_of(5 * DAY, every=0.0)
    with open_history(filled, write=True) as store:
        while pruner.step(store):
            pass
        clock.now += 365 * DAY
        store.append(HERE, life_of(JOBS + 365 * 48))
        while pruner.step(store):
            pass
        assert not told
        assert store.info().records == 5 * JOBS + 5


def test_a_look_goes_on_in_a_store_that_was_opened_again(filled):
    pruner, _, told = pruner_of(DAY)
    with open_history(filled, write=True) as store:
        assert pruner.step(store)
    with open_history(filled, write=True) as store:
        while pruner.step(store):
            pass
    assert told
    assert min(what_is_left(filled)) >= LIMIT


def test_a_store_that_cannot_be_pruned_is_told_of_and_written_all_the_same(filled, monkeypatch):
    """Another look is begun the next day."""
    failure = OSError("the disk is full")
    pruner, _, told = pruner_of(DAY, every=0.2)
    with monkeypatch.context() as patched:
        patched.setattr(retention, "_prune_records", lambda *_: (_ for _ in ()).throw(failure))
        drain = HistoryDrain(filled, HERE, tends=pruner.step)
        drain.start()
        drain.add(life_of(JOBS))
        until(lambda: told)
    number = JOBS
    while told[-1] is failure:
        number += 1
        drain.add(life_of(number))
        time.sleep(0.05)
    drain.stop()
    assert set(told[:-1]) == {failure}
    assert told[-1] > 0
    assert not drain.trouble
    assert min(what_is_left(filled)) >= LIMIT


def test_a_month_that_is_too_old_as_a_whole_goes_at_once_however_much_it_holds(filled):
    """Its table is gone then: nothing is looked for in it again."""
    told = []
    pruner = Pruner(Retention(DAY), lambda: END + 61 * DAY, told.append, told.append)
    with open_history(filled, write=True) as store:
        store.append(HERE, life_of(JOBS + 61 * 48))
        while pruner.step(store):
            pass
        assert told == [5 * JOBS]
        assert store.info().records == 5
