"""`tenure plan` from end to end: what it prints is a contract, and what is wrong it says in one line each."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tenure.model.file.load import load_cluster

CLUSTER = """\
apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
scheduler: {actions: [allocate]}
nodes:
  - {name: n, count: 2, gpuMemory: 80Gi, allocatable: {cpu: 8, memory: 16Gi, nvidia.com/gpu: 2}}
queues:
  - {name: top, guaranteed: {nvidia.com/gpu: 2}}
  - {name: q, parent: top, max: {nvidia.com/gpu: 3500m}}
workloads:
  - name: runs
    queue: q
    expectedRuntime: 2h
    startedAt: 2026-11-20T09:00:00Z
    tasks: [{name: runs-0, node: n-0, requests: {nvidia.com/gpu: 2, cpu: 1}, devices: [0, 1]}]
  - {name: half, queue: q, gpuFraction: 500m, createdAt: 2026-11-20T09:00:00Z}
  - {name: two, queue: q, requests: {nvidia.com/gpu: 2}, createdAt: 2026-11-20T09:30:00Z}
"""


WITHOUT_GPU = """\
now: 2026-11-20T10:00:00Z
nodes: [{name: n, allocatable: {cpu: 1}}]
workloads: [{name: x, tasks: [{name: x-0, node: n, gpuFraction: 1, devices: [0]}]}]
"""


@pytest.fixture
def file(tmp_path):
    """Give the path of a cluster file."""
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER)
    return path


@pytest.fixture
def run(run_command):
    """Run the command in this process: exit code, output, errors."""
    return run_command


@pytest.fixture
def plan(run, file):
    """Give what `tenure plan --format json` prints for the file, with further arguments."""

    def planned(*arguments):
        code, out, err = run("plan", file, "--format", "json", *arguments)
        assert code == 0, err
        return json.loads(out)

    return planned


def test_the_documented_fields_are_there(plan):
    found = plan()
    assert found["now"] == "2026-11-20T10:00:00Z"
    assert found["steps"] == [
        {"cycle": 0, "action": "bind", "workload": "default/half", "task": "half-0", "node": "n-1", "devices": [0]}
    ]
    (waits,) = found["pending"]
    assert waits["workload"] == "default/two"
    assert waits["estimatedStart"] == "2026-11-20T11:00:00Z"
    over, room = waits["reasons"]
    numbers = {"queue": "q", "resource": "milliGpu", "allocated": 2500, "asked": 2000, "max": 3500}
    assert over == {"code": "OverMax", "message": over["message"], **numbers}
    assert (room["code"], room["nodes"], room["failed"]) == ("NoNodeFits", 2, {"insufficient nvidia.com/gpu": 2})
    queues = {q.pop("name"): q for q in found["queues"]}
    assert queues["q"]["allocated"] == {"cpu": 1000, "memory": 0, "nvidia.com/gpu": 2, "milliGpu": 500}
    assert queues["q"]["max"] == {"nvidia.com/gpu": 3, "milliGpu": 500}
    assert queues["top"]["guaranteed"] == {"nvidia.com/gpu": 2}
    assert queues["top"]["fairShare"]["nvidia.com/gpu"] == 3
    assert {"refused", "requeue", "quota", "moves"} <= found.keys()


def test_the_text_says_the_same_in_words(run, file):
    code, out, err = run("plan", file)
    assert (code, err) == (0, "")
    assert "bind" in out
    assert "half-0" in out
    assert "queue q may hold at most 3.5 GPUs" in out


def test_a_changed_value_changes_the_plan(plan):
    found = plan("--set", "queue.q.max.nvidia.com/gpu=4", "--set", "workload.default/two.priority=5")
    assert [s["task"] for s in found["steps"]] == ["two-0"]


def test_only_the_named_actions_are_played(plan):
    assert plan("--actions", "quota")["steps"] == []
    assert len(plan("--actions", "allocate,reclaim")["steps"]) == 1


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--actions", "alocate"], "did you mean allocate"),
        (["--actions", ","], "name at least one action"),
        (["--actions", "allocate,allocate"], "allocate is there twice"),
        (["--every", "5"], "--every"),
        (["--cycles", "0"], "--cycles"),
        (["--format", "yaml"], "--format"),
        (["--nothing"], "--nothing"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_is_right(run, file, arguments, hint):
    code, out, err = run("plan", file, *arguments)
    assert (code, out) == (2, "")
    assert hint in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("override", "hint"),
    [
        ("queue.p.max.cpu=1", "there is no queue p"),
        ("scheduler.placment=spread", "did you mean placement"),
        ("queue.q.max.cpu=-1", "queue.q.max.cpu=-1"),
        ("now=yesterday", "now=yesterday"),
        ("half", "no '='"),
    ],
)
def test_a_wrong_override_ends_with_1_and_names_it(run, file, override, hint):
    code, out, err = run("plan", file, "--set", override)
    assert (code, out) == (1, "")
    assert hint in err


def test_would_this_workload_run(plan, tmp_path):
    """A workload that is not submitted yet is planned with all the others."""
    more = tmp_path / "more.yaml"
    more.write_text("workloads: [{name: new, queue: q, replicas: 2, requests: {cpu: 2}}]")
    assert [(s["task"], s["node"]) for s in plan("--add", more)["steps"][1:]] == [("new-0", "n-0"), ("new-1", "n-0")]


def test_would_this_pod_run(plan, tmp_path):
    more = tmp_path / "pod.yaml"
    more.write_text("""\
apiVersion: v1
kind: Pod
metadata: {name: trainer, namespace: ml, labels: {tenure.dev/queue: q}}
spec:
  nodeSelector: {kubernetes.io/arch: arm64}
  containers: [{name: main, image: i, resources: {requests: {cpu: "1"}}}]
""")
    waits = {p["workload"]: p["reasons"] for p in plan("--add", more)["pending"]}
    (reason,) = waits["ml/trainer"]
    assert reason["code"] == "NeverFits"
    assert reason["failed"] == {"node selector": 2}


def test_would_this_job_run(plan, tmp_path):
    """A Job is a gang of as many pods as it runs at a time."""
    more = tmp_path / "job.yaml"
    more.write_text("""\
apiVersion: batch/v1
kind: Job
metadata: {name: sweep, labels: {tenure.dev/queue: q}}
spec:
  parallelism: 3
  completions: 9
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: i, resources: {requests: {cpu: "5"}}}]
""")
    found = plan("--add", more)
    waits = {p["workload"]: p["reasons"] for p in found["pending"]}
    assert [s["workload"] for s in found["steps"]] == ["default/half"]
    assert waits["default/sweep"][0]["roomWhenEmpty"] == 2


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("workloads: [{name: half, queue: q}]", "there twice"),
        ("workloads: [{name: x, queue: r}]", "there is no queue r"),
        ("apiVersion: v1\nkind: Service\nmetadata: {name: s}", "cannot be added"),
        ("", "is empty"),
    ],
)
def test_a_wrong_addition_is_told_with_its_file(run, file, tmp_path, text, hint):
    more = tmp_path / "more.yaml"
    more.write_text(text)
    code, out, err = run("plan", file, "--add", more)
    assert (code, out) == (1, "")
    assert hint in err
    assert err.startswith(str(more))


def test_later_cycles_go_on_from_what_the_earlier_ones_left(plan):
    """Each step says in which cycle it is made, and time moves on between them."""
    found = plan(
        "--cycles", "3", "--every", "1h", "--set", "queue.q.max.nvidia.com/gpu=4", "--set", "scheduler.backfill=easy"
    )
    assert [(s["cycle"], s["task"]) for s in found["steps"]] == [(0, "half-0")]
    assert found["now"] == "2026-11-20T10:00:00Z"


def test_bound_tasks_run_in_the_next_cycle(plan, tmp_path):
    output = tmp_path / "after.yaml"
    plan("--cycles", "2", "--every", "90s", "--output", output)
    after = load_cluster(output).cluster
    half = next(w for w in after.workloads if w.name == "half").tasks[0]
    assert (half.phase, half.node, half.devices) == ("Running", "n-1", (0,))
    assert after.now == load_cluster(output).cluster.now


@pytest.mark.parametrize("name", ["after.yaml", "after.json"])
def test_what_is_written_loads_again_and_has_nothing_left_to_do(run, file, tmp_path, name):
    output = tmp_path / name
    assert run("plan", file, "--output", output)[0] == 0
    code, out, _ = run("plan", output, "--format", "json")
    assert code == 0
    again = json.loads(out)
    assert again["steps"] == []
    assert [p["workload"] for p in again["pending"]] == ["default/two"]


def test_an_output_that_cannot_be_written_leaves_what_was_there(run, file, tmp_path):
    target = tmp_path / "directory"
    target.mkdir()
    code, _, err = run("plan", file, "--output", target)
    assert code == 1
    assert "is a folder; name a file in it" in err
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "empty"),
        ("nodes:\n\t- {name: n}\n", ":2:"),
        ("now: 2026-11-20T10:00:00Z\nnodes: [{name: n, allocatable: {cpu: 1e30}}]\n", "nodes[0].allocatable.cpu"),
        ("now: 2026-11-20T10:00:00Z\nscheduler: {rescheduler: {exact: {enabeld: true}}}\n", "did you mean enabled"),
        (
            WITHOUT_GPU,
            "has no nvidia.com/gpu",
        ),
        ("queues: [{name: a, parent: b}, {name: b, parent: a}]\n", "its own ancestor"),
        ("now: 2026-11-20T10:00:00Z\nworkloads: [{name: x}, {name: x}]\n", "there twice"),
    ],
    ids=["empty", "tab", "huge", "deep unknown key", "fraction without GPU", "cycle of queues", "two of one name"],
)
def test_bad_input_ends_with_1_and_says_where(run, tmp_path, text, hint):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    code, out, err = run("plan", path)
    assert (code, out) == (1, "")
    assert hint in err
    assert all(line.startswith(str(path)) for line in err.splitlines())


def test_a_directory_or_a_missing_file_is_told_in_one_line(run, tmp_path):
    for path in (tmp_path, tmp_path / "missing.yaml"):
        code, out, err = run("plan", path)
        assert (code, out) == (1, "")
        assert len(err.splitlines()) == 1
        assert str(path) in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_told_in_one_line(run, file):
    file.chmod(0)
    code, _, err = run("plan", file)
    assert code == 1
    assert "permission" in err.lower()


def test_the_same_file_gives_the_same_bytes_whatever_the_hash_seed(file):
    """Nothing depends on the order of a set."""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", "from tenure.cli.main import main; main()", "plan", str(file), "--format", "json"],
            capture_output=True,
            check=True,
            timeout=60,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1
