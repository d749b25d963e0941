"""Reading logs in the Standard Workload Format."""

import gzip
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.helpers import BLUE, KTH, SECOND, real_trace

from tenure.model.values.problems import InvalidInputError
from tenure.simulator.trace import read_trace

HEADER = "; Version: 2.2\n; MaxProcs: 100\n;\n"


def record(job=1, submit=0, run=10, allocated=4, requested=4, requested_time=60, status=1):
    fields = [job, submit, 0, run, allocated, -1, -1, requested, requested_time, -1, status, 7, 8, -1, 2]
    return " ".join(map(str, [*fields, -1, -1, -1])) + "\n"


def read(tmp_path, *records, header=HEADER, **options):
    path = tmp_path / "log.swf"
    path.write_text(header + "".join(records))
    return read_trace(path, **options)


def only(trace):
    (job,) = trace.jobs
    return job


def test_a_record_becomes_one_task_with_the_allocated_processors(tmp_path):
    job = only(read(tmp_path, record(job=42, submit=5, run=10, allocated=3, requested=9)))
    assert job.record == "42"
    assert job.runtime == 10 * SECOND
    assert job.workload.created_at == 5 * SECOND
    assert [task.spec.requests for task in job.workload.tasks] == [(("cpu", 3000),)]
    assert job.workload.labels == {"user": "7", "group": "8", "queue": "2"}


def test_requested_processors_count_where_none_were_allocated(tmp_path):
    job = only(read(tmp_path, record(allocated=-1, requested=9)))
    assert job.workload.tasks[0].spec.requests == (("cpu", 9000),)


@pytest.mark.parametrize(("requested_time", "run", "expected"), [(60, 10, 60), (60, 90, 90), (-1, 10, 10)])
def test_expected_runtime_is_the_larger_of_requested_and_actual(tmp_path, requested_time, run, expected):
    job = only(read(tmp_path, record(requested_time=requested_time, run=run)))
    assert job.workload.expected_runtime == expected * SECOND


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (record(allocated=-1, requested=0), "no processors"),
        (record(run=-1), "negative run time"),
        (record(allocated=101), "more processors than the machine"),
        (record(submit=-1), "negative submit time"),
        (record(status=2), "part of an execution"),
    ],
)
def test_a_record_that_cannot_run_is_dropped_and_counted(tmp_path, broken, reason):
    trace = read(tmp_path, record(job=9), broken)
    assert (len(trace.jobs), trace.records, trace.dropped) == (1, 2, 1)
    assert trace.drop_reasons == {reason: 1}


def test_jobs_are_ordered_by_submit_time_and_then_by_number(tmp_path):
    trace = read(tmp_path, record(job=10, submit=5), record(job=9, submit=5), record(job=11, submit=1))
    assert [job.record for job in trace.jobs] == ["11", "9", "10"]


def test_the_machine_is_one_node_with_the_processors_of_the_header_or_of_the_option(tmp_path):
    assert [node.allocatable for node in read(tmp_path, record()).nodes] == [{"cpu": 100_000}]
    assert [node.allocatable for node in read(tmp_path, record(), processors=64).nodes] == [{"cpu": 64_000}]
    assert read(tmp_path, record(), header="; no size\n").nodes == ()


def test_equal_records_share_what_they_ask_for(tmp_path):
    first, second = read(tmp_path, record(job=1), record(job=2)).jobs
    assert first.workload.tasks[0].spec is second.workload.tasks[0].spec
    assert first.workload.tasks[0].name != second.workload.tasks[0].name


def test_fractions_of_seconds_are_kept(tmp_path):
    job = only(read(tmp_path, record(submit="1.25", run="0.000001", requested_time=-1)))
    assert (job.workload.created_at, job.runtime) == (1_250_000, 1)


def test_a_gzipped_log_reads_like_the_plain_one(tmp_path):
    plain = read(tmp_path, record(job=1), record(job=2))
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress((HEADER + record(job=1) + record(job=2)).encode()))
    assert read_trace(packed) == plain


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (record()[:12] + "\n", "", "fields where a record has 18"),
        (record(submit="x12"), "field 2 (submit time)", "'x12' is not a number"),
        (record(run="nan"), "field 4 (run time)", "not a finite number"),
        (record(allocated="1e30"), "field 5 (allocated processors)", "is not between"),
        (record(submit="1_000"), "field 2 (submit time)", "is not a number"),
        (record(submit="1e99"), "field 2 (submit time)", "out of range"),
        (record(job="1.5"), "field 1 (job number)", "not a whole number"),
    ],
)
def test_a_malformed_line_is_reported_with_its_number_and_field(tmp_path, text, path, message):
    with pytest.raises(InvalidInputError) as caught:
        read(tmp_path, record(job=77), text)
    (problem,) = caught.value.problems
    assert (problem.line, problem.path) == (5, path)
    assert message in problem.message
    assert problem.file.endswith("log.swf")


def test_all_malformed_lines_are_reported_and_a_flood_is_cut(tmp_path):
    with pytest.raises(InvalidInputError) as caught:
        read(tmp_path, *["broken line\n"] * 250)
    assert len(caught.value.problems) == 101
    assert "150 more" in caught.value.problems[-1].message


def test_a_job_number_that_stands_twice_is_an_error(tmp_path):
    with pytest.raises(InvalidInputError, match="job number 3 stands in line 4 already"):
        read(tmp_path, record(job=3), record(job=3))


def test_a_log_without_records_is_an_error(tmp_path):
    with pytest.raises(InvalidInputError, match="no records"):
        read(tmp_path)


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(tmp_path_factory, text):
    """Whatever stands in a file, it is read or reported; nothing else is raised."""
    path = tmp_path_factory.mktemp("swf") / "log.swf"
    path.write_text(text, encoding="utf-8", errors="replace")
    with suppress(InvalidInputError):
        trace = read_trace(path, format="swf")
        assert trace.records == len(trace.jobs) + trace.dropped


def test_kth_has_all_its_jobs():
    trace = read_trace(real_trace(KTH))
    assert (trace.records, len(trace.jobs), trace.dropped) == (27_992, 27_992, 0)
    assert trace.nodes[0].allocatable == {"cpu": 100_000}


def test_sdsc_blue_has_all_its_records_and_drops_those_with_a_negative_run_time():
    trace = read_trace(real_trace(BLUE))
    assert (trace.records, len(trace.jobs)) == (243_306, 232_562)
    assert trace.drop_reasons == {"negative run time": 10_744}
    keys = [(job.workload.created_at, int(job.record)) for job in trace.jobs]
    assert keys == sorted(keys)


def test_a_smaller_machine_drops_the_jobs_that_are_too_large_for_it():
    trace = read_trace(real_trace(KTH), processors=50)
    assert trace.drop_reasons == {"more processors than the machine": 27_992 - len(trace.jobs)}
    assert max(job.workload.tasks[0].spec.requests[0][1] for job in trace.jobs) == 50_000
