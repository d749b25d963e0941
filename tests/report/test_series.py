"""Series over time against sums made event by event, and the busiest stretch against all there are."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.report.simulations import example

from tenure.report.drawing.busiest import busiest
from tenure.report.drawing.gantt import Lanes, joined
from tenure.report.drawing.series import SimulationSeries, binned_means

STEPS = st.lists(st.tuples(st.integers(0, 50), st.integers(-5, 5)), max_size=12)


@given(STEPS, st.integers(1, 8))
def test_bins_hold_the_mean_of_the_step_function(steps, bins):
    edges = np.linspace(0, 48, bins + 1)
    expected = []
    for low, high in pairwise(edges):
        area = 0.0
        for time, amount in steps:  # each change holds from its time to the end of the bin
            area += amount * max(0.0, high - max(low, time))
        expected.append(area / (high - low))
    at, change = (np.array([step[part] for step in steps], dtype=np.int64) for part in (0, 1))
    assert np.allclose(binned_means(at, change, edges), expected, atol=1e-6)


def series_at(series, second):
    index = int(second * 1_000_000 / (series.edges[-1] - series.edges[0]) * series.values.shape[1])
    return dict(zip(series.groups, np.round(series.values[:, index], 6).tolist(), strict=True))


def test_use_and_waiting_follow_the_events():
    history = SimulationSeries(*example()[:2])
    use = {u.resource: u for u in history.uses()}
    assert use["nvidia.com/gpu"].capacity == 8000
    gpus = use["nvidia.com/gpu"].series
    assert series_at(gpus, 5) == {"a": 4000, "<b> & c": 0}
    assert series_at(gpus, 50) == {"a": 4500, "<b> & c": 0}
    assert series_at(gpus, 130) == {"a": 0, "<b> & c": 2000}
    waiting = history.waiting()
    assert series_at(waiting, 50) == {"a": 0, "<b> & c": 0}
    assert series_at(waiting, 80) == {"a": 1, "<b> & c": 0}, "the evicted one waits, the dropped one does not"
    assert series_at(waiting, 130) == {"a": 2, "<b> & c": 0}
    assert series_at(waiting, 200) == {"a": 1, "<b> & c": 0}
    evictions = history.evictions()
    assert evictions.groups == ("reclaim",)
    assert evictions.values.sum() == 2


def test_the_busiest_stretch_of_a_short_simulation_is_all_of_it():
    history = SimulationSeries(*example()[:2])
    stretch = busiest(history)
    assert (stretch.begin, stretch.end) == (0, 260_000_000)
    assert stretch.nodes.tolist() == [0, 1]
    assert len(stretch.holdings) == len(history.outcomes.holdings.task)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9), st.integers(0, 20)), max_size=30), st.integers(1, 24))
def test_lanes_are_never_given_twice_and_never_lost(calls, size):
    lanes = Lanes(size)
    held = []
    for taking, amount, which in calls:
        if taking:
            pieces = lanes.take(amount)
            room = size - sum(high - low for taken in held for low, high in taken)
            assert sum(high - low for low, high in pieces) == min(amount, room)
            held.append(pieces)
        elif held:
            lanes.give_back(held.pop(which % len(held)))
        units = [unit for pieces in [*held, lanes.free] for low, high in pieces for unit in range(low, high)]
        assert sorted(units) == list(range(size))


@given(st.lists(st.integers(0, 30), unique=True))
def test_joined_pieces_cover_the_same_units_and_do_not_touch(units):
    pieces = joined([(unit, unit + 1) for unit in units])
    assert sorted(unit for low, high in pieces for unit in range(low, high)) == sorted(units)
    assert all(before[1] < after[0] for before, after in pairwise(pieces))
