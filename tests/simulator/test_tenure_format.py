"""Tenure's own trace format: what is written is read back as it was."""

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.helpers import KTH, SECOND, gang, real_trace, spec

from tenure.model.values.problems import InvalidInputError
from tenure.model.workload import Checkpoint, Task, TaskSpec, Workload
from tenure.simulator.trace import Trace, TraceJob, read_trace
from tenure.simulator.traces.specs import PodRequest, SpecCache
from tenure.simulator.traces.writer import trace_to_csv, trace_to_parquet

names = st.text("abcdefghijklmnopqrstuvwxyz0123456789-.", min_size=1, max_size=12)
times = st.integers(0, 10**9).map(lambda s: s * 1000)
asks = st.builds(
    PodRequest,
    cpu_milli=st.integers(0, 10**6),
    memory_mib=st.integers(0, 10**6),
    gpus=st.integers(0, 16),
    milli=st.sampled_from([1, 250, 999, 1000]),
    models=st.sampled_from([(), ("T4",), ("A100", "T4")]),
).map(lambda ask: ask if ask.gpus else ask._replace(milli=1000))
checkpoints = st.none() | st.builds(
    Checkpoint, interval=st.none() | times, restart_overhead=times.map(lambda t: t + 1000)
)


@st.composite
def jobs(draw, name):
    pods = draw(st.integers(1, 4))
    one = SpecCache().spec(draw(asks))
    workload = Workload(
        name=name,
        queue=draw(names),
        priority=draw(st.integers(-10, 1000)),
        preemptible=draw(st.sampled_from([None, True, False])),
        min_member=draw(st.none() | st.integers(1, pods)),
        tasks=tuple(Task(name=f"{name}-{i}", spec=one) for i in range(pods)),
        created_at=draw(times),
        expected_runtime=draw(st.none() | times),
        checkpoint=draw(checkpoints),
        labels=draw(st.dictionaries(names, names, max_size=2)),
    )
    return TraceJob(workload, draw(st.none() | times), name)


@st.composite
def traces(draw):
    made = [draw(jobs(name)) for name in draw(st.lists(names, unique=True, min_size=1, max_size=4))]
    made.sort(key=lambda job: job.workload.created_at)
    return Trace(format="tenure", jobs=tuple(made), records=len(made))


@given(traces())
def test_csv_round_trip(tmp_path_factory, trace):
    path = tmp_path_factory.mktemp("csv") / "trace.csv"
    path.write_text(trace_to_csv(trace))
    assert read_trace(path) == trace


@given(traces())
def test_parquet_round_trip(tmp_path_factory, trace):
    pytest.importorskip("pyarrow")
    path = tmp_path_factory.mktemp("parquet") / "trace.parquet"
    path.write_bytes(trace_to_parquet(trace))
    assert read_trace(path) == trace


def test_only_job_and_submit_time_are_needed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("submit_s,job\n5,b\n1.5,a\n")
    first, second = read_trace(path).jobs
    assert (first.record, first.workload.created_at, first.runtime) == ("a", 1_500_000, None)
    assert (second.workload.queue, second.workload.tasks) == ("default", (Task(name="b-0", spec=TaskSpec()),))


def test_parquet_of_other_types_is_read_by_value(tmp_path):
    """Whole seconds may stand as integers and missing values as nulls, as other tools write them."""
    arrow, module = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    buffer = io.BytesIO()
    module.write_table(arrow.table({"job": [1, 2], "submit_s": [3, 4], "runtime_s": [None, 7.5]}), buffer)
    path = tmp_path / "other"
    path.write_bytes(buffer.getvalue())
    assert [(job.record, job.runtime) for job in read_trace(path).jobs] == [("1", None), ("2", 7_500_000)]


def test_parquet_text_that_is_stored_as_bytes_is_read(tmp_path):
    arrow, module = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    module.write_table(arrow.table({"job": [b"a", "\u00fc".encode()], "submit_s": [0, 1], "queue": [b"q", b"r"]}), path)
    jobs = read_trace(path).jobs
    assert [(job.record, job.workload.queue) for job in jobs] == [("a", "q"), ("\u00fc", "r")]
    module.write_table(arrow.table({"job": [b"\xff"], "submit_s": [0]}), path)
    with pytest.raises(InvalidInputError, match="UTF-8"):
        read_trace(path)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_header_in_quotes_is_recognised(tmp_path, ends):
    path = tmp_path / "t.csv"
    path.write_bytes(ends.join(['"job","submit_s","labels"', '"a,1","0","k=""v"""', ""]).encode())
    (job,) = read_trace(path).jobs
    assert (job.record, dict(job.workload.labels)) == ("a,1", {"k": '"v"'})


@pytest.mark.parametrize(
    "text",
    [
        "job,submit_s,runtime_s\na,-0.5,10\nb,-1,-1\nc,0,1\n",
        "job_id,submit_s,runtime_s,pods,gpus_per_pod\na,-5,10,1,1\nb,3,-1,1,1\nc,0,1,1,1\n",
    ],
)
def test_what_was_submitted_before_the_time_axis_begins_is_dropped(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    trace = read_trace(path)
    assert [job.record for job in trace.jobs] == ["c"]
    assert (trace.dropped, trace.records) == (2, 3)
    assert trace.drop_reasons == {"negative run time": 1, "negative submit time": 1}


def test_damaged_parquet_is_reported(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1 and then nothing of use")
    with pytest.raises(InvalidInputError, match="no valid Parquet"):
        read_trace(path)


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (Workload(name="w", tasks=(Task(name="a", spec=spec(1)), Task(name="b", spec=spec(2)))), "different things"),
        (Workload(name="w"), "no pods"),
        (gang("w", of=TaskSpec(requests=(("example.com/nic", 1),))), "example.com/nic"),
        (gang("w", of=TaskSpec(requests=(("memory", 1),))), "MiB"),
        (gang("w", of=TaskSpec(node_selector=(("a", "b"),))), "constraints"),
        (gang("w", of=spec(memory=5)), "GPU memory"),
    ],
)
def test_what_the_format_cannot_express_is_refused_by_name(workload, message):
    with pytest.raises(ValueError, match=message):
        trace_to_csv(Trace(format="x", jobs=(TraceJob(workload, None, "w"),)))


def test_a_real_log_survives_conversion(tmp_path):
    trace = read_trace(real_trace(KTH))
    path = tmp_path / "kth.csv"
    path.write_text(trace_to_csv(trace))
    again = read_trace(path)
    assert again == replace(trace, format="tenure", nodes=())
    assert again.jobs[0].workload.created_at == 599_850 * SECOND
