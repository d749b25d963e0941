"""``tenure diff``: what a change of policy does, in words, in figures, and by exit code."""

import json
import re
from pathlib import Path

import pytest

from tenure.report.policy_diff import sentences

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TODAY, PROPOSED = EXAMPLES / "policy" / "today.yaml", EXAMPLES / "policy" / "proposed.yaml"
CLUSTER = EXAMPLES / "cluster.yaml"
OFF = "kind: SchedulerConfig\nscheduler: {actions: [allocate]}\n"
ON = "kind: SchedulerConfig\nscheduler: {actions: [allocate, reclaim]}\n"


@pytest.fixture
def diff(run_command):
    def run(*arguments):
        code, out, err = run_command("diff", *arguments, "--format", "json")
        assert (code, err) in ((0, ""), (4, "")), err
        return json.loads(out)

    return run


def test_the_example_says_in_words_what_the_change_does(run_command):
    code, out, err = run_command("diff", TODAY, PROPOSED, "--cluster", CLUSTER)
    assert (code, err) == (0, "")
    said = " ".join(out.split("\n\n")[0].replace("\N{NO-BREAK SPACE}", " ").split())
    assert said == (
        "1 more eviction (reclaim +1); 16.0 GPU-hours more are lost; 32.0 core-hours more are lost; language holds 16 "
        "GPUs fewer at the end; no start is known of 1 more workload of language; vision holds 4 GPUs more at the end; "
        "default/pretrain waits at the end instead of running"
    )
    assert re.search(r"queues\.language\.guaranteed\.nvidia\.com/gpu +8 +4\n", out)


@pytest.mark.parametrize(
    ("resource", "amount", "words"),
    [("nvidia.com/gpu", 1, "1 GPU more"), ("milliGpu", 500, "0.5 GPUs more"), ("cpu", -1000, "1 core fewer"),
     ("cpu", 12_345_678_000, "12,345,678 cores more")],
)  # fmt: skip
def test_how_much_more_is_held_is_written_out_in_its_number(resource, amount, words):
    nothing = {"old": None, "new": None}
    queue = {"name": "a", "wait_s": nothing, "withoutStart": nothing, "held": {resource: {"old": 0, "new": amount}}}
    same = {"evictions": {"old": 0, "new": 0, "byCause": {}}, "lost": {}, "workloads": [], "differs": True}
    (said,) = sentences({**same, "queues": [queue]})
    assert said.replace("\N{NO-BREAK SPACE}", " ") == f"a holds {words} at the end"


def test_what_queues_hold_is_in_the_units_of_all_other_output(diff, run_command, tmp_path):
    """Millicores, bytes and whole GPUs with a rest in milli-GPU, as in the plans on both sides."""
    parts = tmp_path / "cluster.yaml"
    parts.write_text(
        "apiVersion: tenure.dev/v1beta1\nkind: Cluster\nnow: 2026-11-20T10:00:00Z\n"
        "nodes: [{name: n, allocatable: {cpu: 4, memory: 8Gi, nvidia.com/gpu: 4}}]\n"
        "queues: [{name: a}]\nworkloads:\n"
        "- {name: whole, queue: a, tasks: [{name: w, requests: {cpu: 1500m, memory: 1Gi, nvidia.com/gpu: 1}}]}\n"
        "- {name: half, queue: a, tasks: [{name: h, gpuFraction: 500m}]}\n"
    )
    (tmp_path / "same.yaml").write_text(ON)
    found = diff(tmp_path / "same.yaml", tmp_path / "same.yaml", "--cluster", parts)
    held = {name: pair["new"] for queue in found["queues"] for name, pair in queue["held"].items()}
    code, out, _ = run_command("plan", parts, "--format", "json")
    assert code == 0
    assert held == {name: amount for name, amount in json.loads(out)["queues"][0]["allocated"].items() if amount}
    assert (held["cpu"], held["nvidia.com/gpu"], held["milliGpu"]) == (1500, 1, 500)
    assert all(isinstance(amount, int) for amount in held.values())


def test_the_other_way_round_it_says_the_opposite(diff):
    there, back = (diff(*pair, "--cluster", CLUSTER) for pair in ((TODAY, PROPOSED), (PROPOSED, TODAY)))
    assert there["evictions"]["new"] == back["evictions"]["old"] == 1
    assert there["lost"]["nvidia.com/gpu"] == {"old": 0.0, "new": 16 * 3600.0}
    assert back["lost"]["nvidia.com/gpu"] == {"old": 16 * 3600.0, "new": 0.0}
    assert {(c["path"], c["old"], c["new"]) for c in there["changes"]} == {
        (c["path"], c["new"], c["old"]) for c in back["changes"]
    }
    (moved,) = [w for w in there["workloads"] if w["workload"] == "default/pretrain"]
    assert moved["old"] == {"runs": True, "evicted": False, "start_s": None}
    assert moved["new"]["evicted"]


def test_the_exit_code_says_whether_anything_changes_only_where_it_is_asked(run_command):
    options = ("--cluster", CLUSTER, "--exit-code")
    assert run_command("diff", TODAY, PROPOSED, *options)[0] == 4
    assert run_command("diff", TODAY, PROPOSED, *options[:2])[0] == 0
    code, out, _ = run_command("diff", TODAY, TODAY, *options)
    assert (code, out) == (0, "nothing changes: evictions, losses and waits are the same under both policies\n")


def test_the_queues_of_manifests_are_those_of_the_cluster_file(diff, run_command):
    """Against the file's own queues, only what the manifests set otherwise is a change."""
    found = diff(CLUSTER, TODAY)
    assert [c["path"] for c in found["changes"]] == ["scheduler.reclaimMinRuntime"]
    plan = json.loads(run_command("plan", CLUSTER, "--cycles", "10", "--every", "1m", "--format", "json")[1])
    evicted = {(s["cycle"], s["workload"]) for s in plan["steps"] if s["action"] == "evict"}
    assert found["evictions"]["old"] == len(evicted)


def test_markdown_is_a_table_for_a_pull_request(run_command):
    _, out, _ = run_command("diff", TODAY, PROPOSED, "--cluster", CLUSTER, "--format", "markdown")
    lines = out.splitlines()
    assert lines[0].startswith("**1 more eviction")
    assert "| `scheduler.reclaimMinRuntime` | `4h` | `30m` |" in lines
    assert "| evictions: reclaim | 0 | 1 |" in lines


@pytest.fixture
def trace(tmp_path, run_command):
    paths = [tmp_path / name for name in ("jobs.csv", "cluster.yaml", "off.yaml", "on.yaml")]
    made = run_command("generate", "--jobs", "120", "--gpus", "32", "--load", "1.1", "--seed", "3",
                       "--out", paths[0], "--cluster", paths[1])  # fmt: skip
    assert made[0] == 0
    paths[2].write_text(OFF)
    paths[3].write_text(ON)
    return paths


def test_a_trace_is_replayed_under_both_as_simulate_does(trace, diff, run_command):
    jobs, cluster, off, on = trace
    found = diff(off, on, "--trace", jobs, "--cluster", cluster)
    assert found["mode"] == "simulation"
    for side, settings in (("old", off), ("new", on)):
        code, out, _ = run_command("simulate", jobs, "--cluster", cluster, "--scheduler", settings, "--format", "json")
        assert code == 0
        summary = json.loads(out)
        assert found["evictions"][side] == sum(summary["evictions"].values())
        assert found["lost"].get("nvidia.com/gpu", {side: 0.0})[side] == summary["lost"].get("nvidia.com/gpu", 0.0)
        waits = {q["name"]: q["wait_s"]["mean"] for q in summary["queues"]}
        assert {q["name"]: q["wait_s"][side] for q in found["queues"]} == waits
    assert found["evictions"]["new"] > 0
    assert found["summary"][0].endswith(f"(reclaim +{found['evictions']['new']})")


def test_a_cluster_file_brings_the_nodes_for_a_trace(trace, diff):
    jobs, cluster, _, on = trace
    alone, named = (diff(cluster, on, "--trace", jobs, *more) for more in ((), ("--cluster", cluster)))
    assert alone["evictions"] == named["evictions"]
    assert alone["queues"] == named["queues"]


def test_yunikorns_queues_are_compared_too(diff, tmp_path):
    queues = EXAMPLES / "quota" / "queues.yaml"
    text = queues.read_text()
    lower = tmp_path / "queues.yaml"
    lower.write_text(re.sub(r"(max:\s*\{[^}]*vcore: )\S+?([,}])", r"\g<1>500\2", text))
    found = diff(queues, lower, "--cluster", EXAMPLES / "quota" / "cluster.yaml", "--cycles", "30")
    assert any(c["path"].endswith("max.cpu") for c in found["changes"])
    assert found["evictions"]["byCause"]["quota"]["new"] > found["evictions"]["byCause"]["quota"]["old"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["off.yaml", "on.yaml"], 2, "has no nodes, so it says nothing of a cluster; add --cluster FILE, --trace"),
        (["off.yaml", "on.yaml", "--live", "--cluster", "c.yaml"], 2, "both named; leave one out"),
        (["off.yaml", "on.yaml", "--load", "2"], 2, "--load goes with --trace"),
        (["off.yaml", "gone.yaml"], 1, "gone.yaml: there is no such file"),
        (["bad.yaml", "gone.yaml"], 1, "bad.yaml:2: scheduler.backfill: is 'hard'"),
        (["foreign.yaml", "off.yaml"], 1, "foreign.yaml: holds no policy"),
        (["queues.yaml", "off.yaml", "--cluster", str(CLUSTER)], 1, "there is no queue vision"),
    ],
)
def test_what_is_wrong_is_said(arguments, code, said, run_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {
        "off.yaml": OFF,
        "on.yaml": ON,
        "bad.yaml": OFF.replace("actions: [allocate]", "backfill: hard"),
        "foreign.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n",
        "queues.yaml": "apiVersion: tenure.dev/v1alpha1\nkind: Queue\nmetadata: {name: q}\nspec: {}\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found, out, err = run_command("diff", *arguments)
    assert (found, out) == (code, "")
    assert said in err
