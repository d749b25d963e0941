"""A large plan: a summary first, and the rest on demand."""

import re

import pytest
import yaml

from tenure.report.plans.plan_summary import LARGE, TOP, is_large, of_some, summary

NODES, GANGS = 1000, 120


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A thousand nodes, a tenth of which are taken, and gangs of which most do not fit."""
    gpus = {"cpu": "8", "nvidia.com/gpu": 1}
    nodes = [{"name": "node", "count": NODES, "allocatable": gpus}]
    queues = [{"name": "all"}, {"name": "a", "parent": "all"}, {"name": "b", "parent": "all"}]
    workloads = [
        {"name": f"gang-{n}", "namespace": "team", "queue": "ab"[n % 2], "replicas": 10, "priority": 50,
         "createdAt": f"2026-11-20T09:{n % 60:02}:00Z", "requests": {"cpu": "1", "nvidia.com/gpu": 1}}
        for n in range(GANGS)
    ]  # fmt: skip
    plain = {"apiVersion": "tenure.dev/v1alpha1", "kind": "Cluster", "now": "2026-11-20T10:00:00Z", "nodes": nodes,
             "queues": queues, "workloads": workloads}  # fmt: skip
    path = tmp_path_factory.mktemp("large") / "cluster.yaml"
    path.write_text(yaml.safe_dump(plain))
    return path


def test_a_large_plan_is_summed_up_before_it_is_told(run_command, file, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    code, out, _ = run_command("plan", file)
    assert code == 0
    assert out.index("WHAT IS DONE") < out.index("WHY WORKLOADS WAIT") < out.index("STEPS")
    assert re.search(r"bind +1,000 +100", out)
    assert f"the first {TOP} of 1,000" in out.lower()
    assert "--workload" in out
    assert len(out.splitlines()) < 200
    named = [word.strip("(.,;") for word in out.split() if "gang" in word]
    assert not [word for word in named if not re.fullmatch(r"team/gang-[0-9]+|gang-[0-9]+-[0-9]+", word)]
    assert max(map(len, out.splitlines())) <= 60
    assert LARGE < 1000


def test_all_of_it_is_told_on_demand(run_command, file):
    _, out, _ = run_command("plan", file, "--top", "0")
    assert out.count("gang-") > 1000
    _, some, _ = run_command("plan", file, "--top", "3")
    assert "the first 3 of 1,000" in some.lower()


def test_one_workload_or_one_queue_is_told_of_alone(run_command, file):
    _, out, _ = run_command("plan", file, "--workload", "team/gang-3", "--top", "0")
    assert set(re.findall(r"bind +(team/gang-[0-9]+)", out)) == {"team/gang-3"}
    assert "10 bindings" in out
    _, out, _ = run_command("plan", file, "--queue", "b", "--top", "0")
    assert {int(n) % 2 for n in re.findall(r"bind +team/gang-([0-9]+)", out)} == {1}
    _, whole, _ = run_command("plan", file, "--queue", "all", "--top", "0")
    assert {int(n) % 2 for n in re.findall(r"bind +team/gang-([0-9]+)", whole)} == {0, 1}


@pytest.mark.parametrize(("option", "value", "code"), [("--queue", "bb", 2), ("--workload", "team/gang", 1)])
def test_what_is_not_there_is_told(run_command, file, option, value, code):
    ended, _, err = run_command("plan", file, option, value)
    assert ended == code
    assert value in err


@pytest.mark.parametrize(("color", "colored"), [("always", True), ("never", False), ("auto", False)])
def test_a_pipe_is_coloured_only_where_that_is_said(run_command, file, color, colored):
    _, out, _ = run_command("plan", file, "--top", "3", "--color", color)
    assert ("\x1b[32mbind" in out) is colored


def test_what_waits_is_counted_at_each_of_its_reasons():
    """The first reason is the same of all; what differs are the others."""
    codes = {"a": ["NoNodeFits"], "b": ["NoNodeFits", "NoRight"], "c": ["NoNodeFits", "NoRight", "NoRight"], "d": []}
    pending = [
        {"workload": name, "reasons": [{"code": code, "message": f"{code} of {name}"} for code in of]}
        for name, of in codes.items()
    ]
    (table,) = summary({"steps": [], "pending": pending})
    assert table.rows == [
        ("NoNodeFits", "3", "a", "NoNodeFits of a"), ("NoRight", "2", "b", "NoRight of b"), ("", "1", "d", "")
    ]  # fmt: skip


def test_pods_of_other_schedulers_count_as_well():
    """What is planned for them makes a plan large, and is told of one workload alone."""
    steps = [
        {"action": "evict", "cause": "reschedule", "workload": f"team/w{n}", "task": "t"} for n in range(LARGE + 1)
    ]
    inner = {"schedulers": ["other"], "steps": steps, "pending": []}
    plan = {"steps": [], "pending": [], "queues": [], "external": inner}
    assert is_large(plan)
    assert not is_large({**plan, "external": {**inner, "steps": steps[:LARGE]}})
    assert [s["workload"] for s in of_some(plan, {"team/w7"}, set())["external"]["steps"]] == ["team/w7"]
