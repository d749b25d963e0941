"""The options by which commands read traces, from the command line: same trace, same figures; and what is told."""

import json
import os

import pytest
from tests import preloaded
from tests.simulator.trace_samples import SAMPLES

CLUSTER = """\
apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
nodes: [{name: n, count: 4, allocatable: {cpu: 128, memory: 512Gi, nvidia.com/gpu: 8}}]
"""
TABLE = "id,arrived,seconds,team,cards\na,0,60,vision,2\nb,5,30,speech,1\n"
MAPPED = ("--columns", "id=job,arrived=submit_s,seconds=runtime_s,cards=gpus", "--queue-from", "team")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "table.csv").write_text(TABLE)
    return tmp_path


@pytest.mark.parametrize("name", SAMPLES)
def test_every_published_trace_is_simulated(folder, run_command, name):
    """All jobs that the log has end, no invariant is broken, and what became no job is told with its reasons."""
    path, options = SAMPLES[name].write(folder)
    words = ["--trace-format", options["format"]] if "format" in options else []
    words += [word for table in options["beside"] for word in ("--beside", table)]
    code, out, err = run_command("simulate", path, "--cluster", "cluster.yaml", *words, "--format", "json")
    assert code == 0, err
    summary = json.loads(out)
    assert (summary["finished"], summary["violations"]) == (summary["jobs"], 0), summary
    assert ("still running" in err) == (not name.startswith("azure"))


@pytest.mark.usefixtures("folder")
def test_all_commands_read_a_mapped_table_alike(run_command):
    code, out, err = run_command("simulate", "table.csv", "--cluster", "cluster.yaml", *MAPPED, "--format", "json")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert sorted(queue["name"] for queue in summary["queues"]) == ["speech", "vision"]
    code, out, _ = run_command(
        "sweep", "table.csv", "--cluster", "cluster.yaml", *MAPPED, "--format", "json", "--processes", "1"
    )
    (point,) = json.loads(out)["points"]
    assert (code, point["finished"]) == (0, summary["finished"])
    code, out, err = run_command(
        "diff", "cluster.yaml", "cluster.yaml", "--trace", "table.csv", *MAPPED, "--format", "json"
    )
    assert (code, err) == (0, "")
    assert sorted(queue["name"] for queue in json.loads(out)["queues"]) == ["speech", "vision"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--columns", "id"), "--columns: 'id' is not COLUMN=FIELD"),
        (("--queue-from", "{"), "--queue-from: '{' is neither a column"),
        (("--columns", "x=job"), "--columns names 'x', which the file does not have; there are id, arrived"),
        (("--beside", "none.csv", *MAPPED), "--beside goes with a trace of format pai or google"),
    ],
)
def test_what_is_wrong_with_an_option_is_told_in_a_line(run_command, words, message):
    code, out, err = run_command("simulate", "table.csv", "--cluster", "cluster.yaml", *words)
    assert (code in {1, 2}, out) == (True, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("folder")
def test_options_of_traces_go_with_one(run_command):
    code, _, err = run_command("diff", "cluster.yaml", "cluster.yaml", "--queue-from", "team")
    assert (code, "--queue-from goes with --trace" in err) == (2, True)


def completed(folder, *words):
    """Ask for completions of the last word, as bash does."""
    environment = {
        **os.environ, "_TENURE_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(["tenure", *words]),
        "COMP_CWORD": str(len(words)),
    }  # fmt: skip
    done = preloaded.run([], env=environment, cwd=folder, capture_output=True, text=True)
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_completion_knows_formats_and_the_columns_of_the_file(folder):
    assert "helios" in completed(folder, "simulate", "table.csv", "--trace-format", "h")
    assert completed(folder, "simulate", "table.csv", "--queue-from", "t") == ["team"]
    assert completed(folder, "simulate", "table.csv", "--columns", "a") == ["arrived="]
    assert completed(folder, "simulate", "table.csv", "--columns", "id=job,arrived=sub") == ["id=job,arrived=submit_s"]
    assert completed(folder, "sweep", "table.csv", "--queue-from", "s") == ["seconds"]
    assert completed(folder, "diff", "--trace", "table.csv", "--queue-from", "t") == ["team"]
    assert completed(folder, "simulate", "none.csv", "--queue-from", "t") == []
