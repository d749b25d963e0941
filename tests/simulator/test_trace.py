"""Cutting a part out of a trace, and changing its load."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.helpers import SECOND, gang

from tenure.simulator.trace import Trace, TraceJob, scale_load, slice_trace


def trace_at(*seconds):
    jobs = [TraceJob(gang(f"w{i}", created_at=s * SECOND), SECOND, str(i)) for i, s in enumerate(seconds)]
    return Trace(format="tenure", jobs=tuple(jobs), records=len(jobs))


def submits(trace):
    return [job.workload.created_at / SECOND for job in trace.jobs]


def test_a_slice_has_its_start_and_not_its_end():
    trace = trace_at(1, 2, 3, 4)
    assert submits(slice_trace(trace, 2, 4)) == [2, 3]
    assert submits(slice_trace(trace, None, 2)) == [1]
    assert submits(slice_trace(trace, 3)) == [3, 4]


def test_twice_the_load_halves_the_gaps_and_keeps_the_first_arrival():
    assert submits(scale_load(trace_at(10, 14, 20), 2)) == [10, 12, 15]


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=20), st.floats(0.1, 10))
def test_scaling_keeps_the_order_and_the_run_times(seconds, factor):
    scaled = scale_load(trace_at(*sorted(seconds)), factor)
    assert submits(scaled) == sorted(submits(scaled))
    assert {job.runtime for job in scaled.jobs} == {SECOND}


@pytest.mark.parametrize("factor", [0, -1, float("nan"), float("inf")])
def test_a_load_that_is_no_positive_number_is_refused(factor):
    with pytest.raises(ValueError, match="load factor"):
        scale_load(trace_at(1), factor)
