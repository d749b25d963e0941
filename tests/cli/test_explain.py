"""`tenure explain` from end to end: the story of one workload."""

from __future__ import annotations

import json

import pytest

from tenure.cli.main import main

CLUSTER = """\
apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
scheduler: {actions: [allocate]}
nodes: [{name: n, allocatable: {cpu: 4}}]
queues: [{name: q, max: {cpu: 4}}]
workloads:
  - name: runs
    queue: q
    expectedRuntime: 2h
    startedAt: 2026-11-20T09:00:00Z
    tasks: [{name: runs-0, node: n, requests: {cpu: 3}}]
  - {name: waits, queue: q, requests: {cpu: 2}, createdAt: 2026-11-20T08:00:00Z}
  - {name: starts, queue: q, requests: {cpu: 1}}
  - {name: huge, queue: q, requests: {cpu: 5}}
  - {name: twin, namespace: a, queue: q, requests: {cpu: 4}}
  - {name: twin, namespace: b, queue: q, requests: {cpu: 4}}
evictions:
  - {at: 2026-11-20T09:30:00Z, workload: default/waits, task: waits-0, cause: reclaim, for: default/runs, from: n}
"""


@pytest.fixture
def run(capsys, tmp_path):
    """Run `tenure explain` on the cluster: exit code, output, errors."""
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER)

    def command(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["explain", str(path), *arguments])
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return command


def story(run, *arguments):
    """Give the story as data."""
    code, out, err = run(*arguments, "--format", "json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_what_waits_says_why_until_when_and_what_it_would_take(run):
    found = story(run, "default/waits")
    assert found["state"] == "pending"
    assert {r["code"] for r in found["reasons"]} == {"OverMax", "NoNodeFits"}
    assert found["estimatedStart"] == "2026-11-20T11:00:00Z"
    assert any("less used in queue q" in h for h in found["whatItTakes"])
    assert found["evictions"] == [
        {
            "at": "2026-11-20T09:30:00Z",
            "task": "waits-0",
            "cause": "reclaim",
            "for": "default/runs",
            "from": "n",
            "to": None,
        }
    ]


def test_what_would_start_says_where(run):
    found = story(run, "starts")
    assert (found["state"], found["placement"]) == ("starts", {"starts-0": "n"})


def test_what_runs_says_since_when(run):
    assert story(run, "runs")["state"] == "running"
    assert "since 2026-11-20T09:00:00Z" in run("runs")[1]


def test_what_never_fits_says_that_waiting_does_not_help(run):
    found = story(run, "huge")
    assert found["estimatedStart"] is None
    assert any("no waiting helps" in h for h in found["whatItTakes"])


def test_the_text_tells_the_eviction_too(run):
    code, out, _ = run("waits")
    assert code == 0
    assert "Evicted 2026-11-20T09:30:00Z: waits-0 from n, reclaim for default/runs" in out


def test_what_is_not_submitted_yet_can_be_explained(run, tmp_path):
    more = tmp_path / "more.yaml"
    more.write_text("workloads: [{name: new, queue: q, requests: {cpu: 2}}]")
    assert story(run, "new", "--add", str(more))["state"] == "pending"


def test_a_changed_value_changes_the_story(run):
    assert (
        story(run, "waits", "--set", "workload.default/waits.priority=1", "--set", "queue.q.max.cpu=9")["state"]
        == "pending"
    )


@pytest.mark.parametrize(
    ("name", "hint"), [("wait", "did you mean"), ("twin", "a/twin, b/twin"), ("x/waits", "there is no")]
)
def test_a_name_that_is_not_clear_ends_with_1(run, name, hint):
    code, out, err = run(name)
    assert (code, out) == (1, "")
    assert hint in err


def test_a_missing_argument_is_wrong_usage(run):
    code, _, err = run()
    assert code == 2
    assert "WORKLOAD" in err


BEYOND = """\
apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
nodes: [{name: n, allocatable: {cpu: 8}}]
queues: [{name: p, guaranteed: {cpu: 2}}, {name: q, parent: p, guaranteed: {cpu: 1}}]
workloads: [{name: fixed, queue: q, preemptible: false, requests: {cpu: 3}}]
"""


def test_every_guarantee_that_is_too_small_is_named_and_raising_all_of_them_helps(capsys, tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(BEYOND)

    def explained(*arguments):
        with pytest.raises(SystemExit):
            main(["explain", str(path), "fixed", "--format", "json", *arguments])
        return json.loads(capsys.readouterr().out)

    short = [(r["queue"], r["guaranteed"]) for r in explained()["reasons"] if r["code"] == "BeyondGuaranteed"]
    assert short == [("q", 1000), ("p", 2000)]
    raised = explained("--set", "queue.q.guaranteed.cpu=3", "--set", "queue.p.guaranteed.cpu=3")
    assert raised["state"] != "pending"
