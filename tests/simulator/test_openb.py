"""Lists of pods of the openb trace, and the experiment that inflates them."""

import pytest
from tests.simulator.helpers import OPENB_NODES, SECOND, real_trace

from tenure.model.values.problems import InvalidInputError
from tenure.simulator.trace import read_trace
from tenure.simulator.traces import openb
from tenure.simulator.traces.openb import gpu_milli_of, inflate

COLUMNS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
)
CAPACITY = 6_212_000


def read(tmp_path, *rows, columns=COLUMNS):
    path = tmp_path / "pods.csv"
    path.write_text("\n".join([columns, *rows, ""]))
    return read_trace(path)


def spec_of(trace, index=0):
    return trace.jobs[index].workload.tasks[0].spec


def test_a_pod_with_whole_gpus_requests_them(tmp_path):
    trace = read(tmp_path, "a,6000,12288,4,1000,,LS,Running,10,30,10")
    assert spec_of(trace).requests == (("cpu", 6000), ("memory", 12288 << 20), ("nvidia.com/gpu", 4))
    assert spec_of(trace).gpu_share is None
    assert (trace.jobs[0].workload.created_at, trace.jobs[0].runtime) == (10 * SECOND, 20 * SECOND)
    assert trace.jobs[0].workload.labels == {"qos": "LS"}


def test_a_pod_with_a_part_of_gpus_has_a_share_of_each(tmp_path):
    spec = spec_of(read(tmp_path, "a,6000,12288,2,460,,,,1,2,"))
    assert (spec.gpu_share.milli, spec.gpu_share.devices) == (460, 2)
    assert "nvidia.com/gpu" not in dict(spec.requests)


def test_gpu_models_become_a_required_node_affinity(tmp_path):
    spec = spec_of(read(tmp_path, "a,6000,12288,1,1000,V100M32|T4,,,1,2,"))
    (term,) = spec.affinity.node.required
    (requirement,) = term.match_expressions
    assert (requirement.key, requirement.operator, requirement.values) == (
        "nvidia.com/gpu.product", "In", ("T4", "V100M32"),
    )  # fmt: skip


def test_pods_without_times_arrive_one_a_second_and_never_end(tmp_path):
    trace = read(tmp_path, "b,1,1,0,0", "a,1,1,0,0", columns="name,cpu_milli,memory_mib,num_gpu,gpu_milli")
    assert [(job.record, job.workload.created_at, job.runtime) for job in trace.jobs] == [
        ("b", 0, None), ("a", SECOND, None),
    ]  # fmt: skip


def test_a_pod_deleted_before_its_creation_is_dropped(tmp_path):
    assert read(tmp_path, "a,1,1,0,0,,,,9,5,").drop_reasons == {"negative run time": 1}


@pytest.mark.parametrize(
    ("row", "path"),
    [("a,1,1,1,0,,,,,,", "gpu_milli"), ("a,1,1,1,1001,,,,,,", "gpu_milli"), ("a,1,1,x,1,,,,,,", "num_gpu")],
)
def test_an_impossible_gpu_request_names_line_and_column(tmp_path, row, path):
    with pytest.raises(InvalidInputError) as caught:
        read(tmp_path, row)
    assert [(problem.line, problem.path) for problem in caught.value.problems] == [(2, path)]


def test_a_node_list_gives_nodes_labelled_with_their_model(tmp_path):
    pods, nodes = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,0,0\n")
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,P100\nn2,32000,1024,0,\n")
    first, second = read_trace(pods, nodes_file=nodes).nodes
    assert first.allocatable == {"cpu": 64_000, "memory": 262_144 << 20, "nvidia.com/gpu": 2}
    assert (first.labels, second.labels) == ({"nvidia.com/gpu.product": "P100"}, {})
    assert "nvidia.com/gpu" not in second.allocatable


def small_list(tmp_path):
    rows = [f"p{i},1000,1024,{1 + i % 2},{(1000, 500)[i % 2]}" for i in range(20)]
    return read(tmp_path, *rows, columns="name,cpu_milli,memory_mib,num_gpu,gpu_milli")


def test_inflation_keeps_every_pod_and_stops_at_the_first_draw_that_is_enough(tmp_path):
    trace = small_list(tmp_path)
    inflated = inflate(trace, 30_000, 1.3, seed=4)
    names = {job.record for job in inflated.jobs}
    assert {job.record for job in trace.jobs} <= names
    assert len(names) == len(inflated.jobs)
    demand = sum(map(gpu_milli_of, inflated.jobs))
    assert 39_000 <= demand < 40_000
    assert [job.workload.created_at for job in inflated.jobs] == [i * SECOND for i in range(len(inflated.jobs))]
    assert {job.runtime for job in inflated.jobs} == {None}
    assert [job.record for job in inflated.jobs[:20]] != [job.record for job in trace.jobs]


def test_inflation_depends_on_the_seed_and_on_nothing_else(tmp_path):
    trace = small_list(tmp_path)
    assert inflate(trace, 30_000, 1.3, seed=4) == inflate(trace, 30_000, 1.3, seed=4)
    assert inflate(trace, 30_000, 1.3, seed=4) != inflate(trace, 30_000, 1.3, seed=5)


def test_a_list_that_asks_for_enough_is_only_shuffled(tmp_path):
    trace = small_list(tmp_path)
    assert sorted(job.record for job in inflate(trace, 1000, 1.0, seed=0).jobs) == sorted(
        job.record for job in trace.jobs
    )


def test_a_list_without_gpus_cannot_be_inflated(tmp_path):
    trace = read(tmp_path, "a,1,1,0,0", columns="name,cpu_milli,memory_mib,num_gpu,gpu_milli")
    with pytest.raises(ValueError, match="no pod asks for GPUs"):
        inflate(trace, 1000, 1.0, seed=0)


@pytest.mark.parametrize(
    ("name", "records"),
    [("default", 8152), ("cpu050", 7439), ("gpushare40", 8152), ("gpuspec10", 8152), ("multigpu20", 8324)],
)
def test_the_real_lists_have_all_their_pods(name, records):
    path = real_trace(f"openb/openb_pod_list_{name}.csv.gz")
    trace = read_trace(path, nodes_file=real_trace(OPENB_NODES))
    assert (len(trace.jobs), trace.dropped, trace.records) == (records, 0, records)
    assert len(trace.nodes) == 1213
    assert sum(node.allocatable["nvidia.com/gpu"] for node in trace.nodes) * 1000 == CAPACITY
    inflated = inflate(trace, CAPACITY, 1.3, seed=1)
    assert 1.3 * CAPACITY <= sum(map(gpu_milli_of, inflated.jobs)) < 1.3 * CAPACITY + 8000


def test_more_nodes_than_a_cluster_may_have_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(openb, "MAX_NODES", 2)
    path = tmp_path / "nodes.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n{i},8000,1024,1,T4\n" for i in range(3)))
    with pytest.raises(InvalidInputError, match=r"nodes\.csv:4: more than 2 nodes up to here"):
        openb.read_nodes(path)
