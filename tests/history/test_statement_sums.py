"""The sums of a statement close, and equal what is counted over the log by hand."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import cluster, node, workload
from tests.effort import tries
from tests.history.worlds import MINUTE, Counted, CountedGains, lone, recorded, worlds

from tenure.history import open_history
from tenure.history.reading.statement import BY, statement_of
from tenure.history.writing.simulation import PlanListener, write_simulation
from tenure.simulator.log import EventLog
from tenure.simulator.outcomes import outcomes_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("histories")


def opened(folder):
    path = folder / "history.db"
    for file in folder.iterdir():
        file.unlink()
    return open_history(str(path), write=True)


def summed(rows, name):
    total = Counter()
    for row in rows:
        total.update(getattr(row, name))
    return {resource: value for resource, value in total.items() if value}


def told(sums):
    return {key: value for key, value in sums.items() if value}


@settings(max_examples=tries(8, 150), deadline=None)
@given(world=worlds())
def test_a_statement_says_what_the_log_says(folder, world):
    """Over all of a simulation every figure is that of an independent count, to the last µs."""
    with opened(folder) as store:
        log = recorded(store, *world)
        counted = Counted(world[0], log)
        for by in BY:
            found = statement_of(store, by=by)
            assert told(found.lost) == told(counted.lost)
            assert {r: found.used[r] + found.lost[r] for r in found.used} == {r: counted.held[r] for r in found.used}
            assert told(found.capacity) == told(counted.capacity)
            assert all(found.used[r] + found.lost[r] + found.idle[r] == found.capacity[r] for r in found.capacity)
            assert summed(found.rows, "lost") == summed(found.rows, "caused") == told(found.lost)
        causes = {row.key: row for row in statement_of(store, by="cause").rows}
        assert {c: row.evictions for c, row in causes.items() if row.evictions} == {
            c: len(e) for c, e in counted.evictions.items()
        }
        for row in statement_of(store, by="queue").rows:
            for resource in found.capacity:
                held = counted.held_by_queue[row.key, resource]
                assert row.used.get(resource, 0) + row.lost.get(resource, 0) == held
                assert row.lost.get(resource, 0) == counted.lost_by_queue[row.key, resource]
                assert row.caused.get(resource, 0) == counted.caused_by_queue[row.key, resource]
                assert row.within.get(resource, 0) <= held


@pytest.mark.parametrize("silent", [False, True])
@settings(max_examples=tries(6, 200), deadline=None)
@given(world=worlds())
def test_a_statement_says_what_was_gained(folder, world, silent):
    """Held to an independent count: how much sooner beneficiaries started than otherwise, or how long they ran."""
    world = lone(world, silent=silent)
    with opened(folder) as store:
        log = recorded(store, *world)
        counted = told(CountedGains(world[0], log).gained)
        rows = statement_of(store, by="cause").rows
    assert {(row.key, name): amount for row in rows for name, amount in told(row.gained).items()} == counted


@settings(max_examples=tries(8, 75), deadline=None)
@given(world=worlds(), seed=st.integers(0, 1 << 30))
def test_windows_that_meet_add_up_to_the_whole(folder, world, seed):
    """However time is cut, the statements of the pieces add up to that of the whole."""
    chance = random.Random(seed)
    with opened(folder) as store:
        recorded(store, *world)
        first, last = store.span()
        cuts = sorted(chance.randrange(first, last + 1) for _ in range(3))
        windows = list(zip([None, *cuts], [*cuts, None], strict=True))
        parts = [statement_of(store, begin, end) for begin, end in windows]
        whole = statement_of(store)
        for name in ("capacity", "used", "within", "lost", "idle"):
            total = Counter()
            for part in parts:
                total.update(getattr(part, name))
            assert told(total) == told(getattr(whole, name))
        for part in parts[1:]:
            assert part.since % MINUTE == 0 or part.since == first


@pytest.mark.parametrize("last", [4 * MINUTE, 4 * MINUTE + 1])
def test_what_happens_at_the_end_of_a_window_is_in_the_next_alone(folder, last):
    """Also where that is the last time that the history has."""
    here = cluster(nodes=[node("n", cpu=4)], workloads=[])
    models = [workload(name, tasks=1) for name in ("early", "late")]
    log = EventLog(models)
    for number in range(2):
        log.submit(0, number)
    for number in range(2):
        log.bind(0, number, 0, 0)
    for number, end in enumerate((MINUTE, last)):
        log.end(end, number, 0)
    with opened(folder) as store:
        write_simulation(store, "test", here, log, outcomes_of(log), PlanListener(here.now))
        at = store.span()[1]
        before, after, whole = (statement_of(store, *ends, by="workload") for ends in ((None, at), (at, None), ()))
    assert [row.key for row in before.rows if row.used] == ["default/early"]
    assert [row.key for row in after.rows if row.used] == ["default/late"]
    assert before.capacity["cpu"] + after.capacity.get("cpu", 0) == whole.capacity["cpu"]


@settings(max_examples=tries(8, 150), deadline=None)
@given(world=worlds())
def test_what_is_written_twice_is_there_once(folder, world):
    """The same simulation again adds no record, and changes no sum."""
    with opened(folder) as store:
        recorded(store, *world)
        before, count = statement_of(store, by="queue"), store.info().records
        recorded(store, *world)
        assert store.info().records == count
        assert statement_of(store, by="queue") == before
