"""What `tenure plan` says of requeue, bad settings included; and when requeue wants to look again."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from tests.builders import NOW, SECOND
from tests.requeue.clusters import ONLY, one_node, overdue, waiting

from tenure.cli.main import main
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

CLUSTER = """\
now: 2026-11-20T10:00:00Z
scheduler: {actions: [allocate, requeue]}
nodes: [{name: n, allocatable: {cpu: 8}}]
queues: [{name: q}]
workloads:
"""

WORKLOAD = """\
  - name: NAME
    queue: q
    priority: PRIORITY
    createdAt: 2026-11-20T06:00:00Z
    startedAt: 2026-11-20T06:00:00Z
    annotations: {tenure.dev/expected-runtime: "EXPECTED", tenure.dev/requeue-not-before: "BEFORE"}
    tasks: [{name: NAME-0, node: n, requests: {cpu: 2}}]
"""

URGENT = "  - {name: urgent, queue: q, priority: 50, createdAt: 2026-11-20T09:00:00Z, requests: {cpu: CPU}}\n"


def runs(name, *, priority=0, expected="2h", before="2026-11-20T07:00:00Z"):
    values = {"NAME": name, "PRIORITY": str(priority), "EXPECTED": expected, "BEFORE": before}
    text = WORKLOAD
    for word, value in values.items():
        text = text.replace(word, value)
    return text


def plan_of(tmp_path, capsys, *workloads, cpu):
    """Everything that `tenure plan` prints."""
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER + "".join(workloads) + URGENT.replace("CPU", str(cpu)), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["plan", str(path)])
    printed = capsys.readouterr()
    assert ended.value.code in (0, None)
    assert "Traceback" not in printed.err
    return " ".join((printed.out + printed.err).split())


def test_a_plan_prints_nominations_skips_with_reasons_and_commits(tmp_path, capsys):
    """One of each: requeued, in its cooldown, with a setting that cannot be read, and within its time."""
    told = plan_of(
        tmp_path, capsys, runs("old"), runs("cooling", before="2026-11-20T12:00:00Z"), runs("odd", expected="2 hours"),
        runs("young", expected="10h"), cpu=2,
    )  # fmt: skip
    assert "default/old is requeued for default/urgent" in told
    assert "default/old committed expected-runtime" in told
    assert "default/cooling skipped expected-runtime: cooldown" in told
    assert "default/odd skipped expected-runtime: invalid_duration" in told
    assert not any(f"default/young {state}" in told for state in ("nominated", "committed", "skipped"))


def test_a_plan_prints_who_was_rolled_back(tmp_path, capsys):
    """Eight processors are asked for, of which the overdue one holds two."""
    told = plan_of(tmp_path, capsys, runs("old"), runs("young", expected="10h"), cpu=8)
    assert "default/old rolled back expected-runtime" in told
    assert "is requeued" not in told


@pytest.mark.parametrize("text", ["2 hours", "-5m", "", "1e400h", "0"])
@pytest.mark.parametrize("before", ["9999-12-31T23:59:59Z", "soon", ""])
def test_whatever_is_written_on_a_workload_a_plan_comes_out_and_nobody_is_evicted_by_mistake(
    tmp_path, capsys, text, before
):
    told = plan_of(tmp_path, capsys, runs("odd", expected=text, before=before), cpu=8)
    assert "is requeued" not in told
    assert ("invalid_duration" in told) is (text != "0")


def test_what_starts_in_a_cycle_is_looked_at_again_when_it_is_due():
    """Nothing else would happen then: the plan says when to look, whoever is still waiting."""
    before = overdue("before", expected=None, priority=90)
    given = one_node(before, waiting("first", expected_runtime=60), waiting("second", priority=10), actions=ONLY)
    session = session_of(given)
    scheduler = Scheduler(session)
    scheduler.cycle(NOW)
    session.remove_workload(before.key)
    plan = scheduler.cycle(NOW)
    assert plan.started == ["default/first"]
    assert plan.wake == NOW + 60 * SECOND


@pytest.mark.parametrize("kind", ["order", "room"])
def test_among_many_nominated_the_only_one_that_can_be_committed_is_found(kind, monkeypatch):
    """The benchmark's cluster, made small."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("b15_requeue", BENCHMARKS / "b15_requeue.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "b15_requeue", module)
    spec.loader.exec_module(module)
    cluster = module.Builder(kind, 500, 500, overdue=True).build()
    found = Scheduler(session_of(cluster)).cycle(cluster.now).requeue
    assert len(found.nominations) == 500
    assert list(found.not_before) == ["default/big"]
    assert found.rolled_back == 499
