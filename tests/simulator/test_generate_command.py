"""``tenure generate``."""

import subprocess
import sys

import pytest

from tenure.cli.main import main
from tenure.model.file.load import load_cluster
from tenure.simulator.generate import GeneratorConfig, cluster_for, generate
from tenure.simulator.trace import read_trace


def run(*arguments):
    with pytest.raises(SystemExit) as caught:
        main(["generate", *arguments])
    return caught.value.code


def test_it_writes_a_trace_that_is_read_back_as_it_was_made(tmp_path, capsys):
    for name in ("t.csv", "t.parquet"):
        path = tmp_path / name
        assert run("--jobs", "30", "--gpus", "16", "--seed", "5", "--out", str(path)) == 0
        assert read_trace(path).jobs == generate(GeneratorConfig(jobs=30, capacity=16), 5).jobs
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "30 jobs" in captured.err
    assert "16 GPUs" in captured.err


def test_standard_output_has_the_trace_alone():
    code = "from tenure.cli.main import main; main()"
    command = [sys.executable, "-c", code, "generate", "--jobs", "3", "--processors", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("job,submit_s,")
    assert done.stdout.count("\n") == 4
    assert "4 processors" in done.stderr


def test_it_writes_the_matching_cluster_file(tmp_path):
    path = tmp_path / "cluster.yaml"
    assert run("--jobs", "3", "--out", str(tmp_path / "t.csv"), "--cluster", str(path)) == 0
    cluster = load_cluster(path).cluster
    expected = cluster_for(GeneratorConfig())
    assert [node.allocatable for node in cluster.nodes] == [node.allocatable for node in expected.nodes]
    assert [(queue.name, queue.guaranteed) for queue in cluster.queues] == [
        (queue.name, queue.guaranteed) for queue in expected.queues
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--jobs", "1", "--days", "1", "--load", "1"], "any two decide the third"),
        (["--gpus", "4", "--processors", "4"], "one or the other"),
        (["--jobs", "0"], "0 jobs"),
        (["--jobs", "many"], "'many' is not a valid integer"),
        (["--load", "1e300"], "load 1e+300 is not between 0.001 and 100"),
        (["--load", "1e-9"], "load 1e-09 is not between 0.001 and 100"),
        (["--load", "nan"], "load nan is not between"),
        (["--jobs", "5", "--days", "1e12"], "days are not more than 0 and at most 36500"),
        (["--jobs", "5", "--days", "0"], "0.0 days are not more than 0"),
    ],
)
def test_wrong_usage_ends_with_2_and_one_line(arguments, message, capsys):
    assert run(*arguments) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_directory_that_does_not_exist_is_named(tmp_path, capsys):
    assert run("--jobs", "3", "--out", str(tmp_path / "none" / "t.csv")) == 1
    assert "t.csv" in capsys.readouterr().err
