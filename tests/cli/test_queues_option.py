"""``--queues``: every command that reads a cluster file takes the queues of a ``queues.yaml`` instead of its own."""

import json
from pathlib import Path

import pytest

QUOTA = Path(__file__).resolve().parents[2] / "examples" / "quota"
CLUSTER, QUEUES = QUOTA / "cluster.yaml", QUOTA / "queues.yaml"
TRACE = "job,submit_s,runtime_s,queue,pods,cpu_milli\nj,0,10,root.prod,1,100\n"


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TRACE)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("plan", CLUSTER), ("explain", CLUSTER, "training"), ("reschedule", CLUSTER), ("diff", CLUSTER, CLUSTER),
        ("simulate", "TRACE", "--cluster", CLUSTER), ("diff", CLUSTER, CLUSTER, "--trace", "TRACE"),
    ],
    ids=lambda words: " ".join(map(str, words[:1])),
)  # fmt: skip
def test_a_cluster_file_whose_queues_stand_elsewhere_is_read_with_them(run_command, trace, words):
    given = [trace if word == "TRACE" else word for word in words]
    code, out, err = run_command(*given, "--queues", QUEUES)
    assert (code, err) == (0, "")
    assert out
    code, _, err = run_command(*given)
    assert code == 1
    assert "there is no queue root.prod" in err
    assert "--queues FILE" in err


def test_settings_are_compared_under_the_queues_that_are_named(run_command, tmp_path):
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    for path, backfill in ((old, "none"), (new, "easy")):
        path.write_text(f"kind: SchedulerConfig\nscheduler: {{backfill: {backfill}}}\n")
    code, out, err = run_command("diff", old, new, "--cluster", CLUSTER, "--queues", QUEUES, "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["changes"]


def test_a_sweep_takes_them_as_well(run_command, trace, tmp_path):
    words = ["sweep", trace, "--cluster", CLUSTER, "--processes", "1", "--out", tmp_path / "out"]
    assert run_command(*words, "--queues", QUEUES)[0] == 0
    assert run_command(*words)[0] == 1


def test_the_console_takes_them_with_a_file(run_command):
    assert "--queues goes with --file" in run_command("console", "--queues", QUEUES, "--history", "h.db")[2]


def test_validate_checks_a_cluster_file_without_queues_together_with_a_queues_yaml(run_command, tmp_path):
    assert run_command("validate", CLUSTER, QUEUES)[0] == 0
    assert run_command("validate", QUEUES, CLUSTER)[0] == 0
    code, _, err = run_command("validate", CLUSTER)
    assert code == 1
    assert "the queues of a YuniKorn queues.yaml are taken by --queues FILE" in err
    own = tmp_path / "own.yaml"
    own.write_text("kind: Cluster\nnow: 2026-11-20T10:00:00Z\nqueues: [{name: a}]\nworkloads: [{name: w, queue: b}]\n")
    assert "there is no queue b" in run_command("validate", own, QUEUES)[2]
