"""The Philly table of jobs."""

from collections import Counter

import pytest
from tests.simulator.helpers import PHILLY, SECOND, real_trace

from tenure.simulator.trace import read_trace

COLUMNS = (
    "job_id,submit_s,runtime_s,req_time_s,pods,gpus_per_pod,cpu_milli_per_pod,mem_mib_per_pod,"
    "user,group,queue,status,logged_wait_s"
)


def read(tmp_path, *rows):
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join([COLUMNS, *rows, ""]))
    return read_trace(path)


def gpus(workload):
    return [dict(task.spec.requests)["nvidia.com/gpu"] for task in workload.tasks]


def test_a_row_becomes_a_gang_in_the_queue_of_its_virtual_cluster(tmp_path):
    trace = read(tmp_path, "7,5,100,,4,8,1000,1024,ann,,vc1,,")
    (job,) = trace.jobs
    assert (trace.format, job.record, job.runtime) == ("philly", "7", 100 * SECOND)
    assert (job.workload.queue, job.workload.min_member) == ("vc1", None)
    assert gpus(job.workload) == [8, 8, 8, 8]
    assert job.workload.expected_runtime is None
    assert job.workload.labels == {"user": "ann"}
    assert len({id(task.spec) for task in job.workload.tasks}) == 1


@pytest.mark.parametrize(("pods", "each", "parts"), [(1, 16, [8, 8]), (1, 20, [8, 8, 4]), (2, 12, [8, 4, 8, 4])])
def test_pods_of_more_than_eight_gpus_are_split(tmp_path, pods, each, parts):
    (job,) = read(tmp_path, f"7,5,100,,{pods},{each},,,,,vc1,,").jobs
    assert gpus(job.workload) == parts


def test_a_requested_time_is_the_expected_runtime_unless_it_took_longer(tmp_path):
    trace = read(tmp_path, "1,0,100,300,1,1,,,,,q,,", "2,0,400,300,1,1,,,,,q,,")
    assert [job.workload.expected_runtime for job in trace.jobs] == [300 * SECOND, 400 * SECOND]


def test_a_negative_runtime_is_dropped(tmp_path):
    assert read(tmp_path, "1,0,-5,,1,1,,,,,q,,").drop_reasons == {"negative run time": 1}


def test_the_real_trace_has_all_its_jobs():
    trace = read_trace(real_trace(PHILLY))
    assert (len(trace.jobs), trace.dropped) == (82_247, 0)
    assert len({job.workload.queue for job in trace.jobs}) == 15
    shapes = Counter((len(job.workload.tasks), gpus(job.workload)[0]) for job in trace.jobs)
    assert (shapes[1, 1], shapes[4, 8], shapes[16, 8]) == (76_627, 67, 3)
