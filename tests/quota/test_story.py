"""Quota preemption from the outside: cluster files, YuniKorn's queues, and `tenure plan`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.builders import SECOND, cluster, node, queue, spec, workload

from tenure.cli.main import cli
from tenure.clusters.embedded import EmbeddedCluster
from tenure.model.file.dump import dump_cluster
from tenure.model.file.load import load_cluster
from tenure.model.file.override import apply_overrides
from tenure.model.settings import QuotaPreemptionSettings
from tenure.model.values.duration import format_time
from tenure.model.values.problems import InvalidInputError
from tenure.model.yunikorn.convert import load_queues
from tenure.playthrough import play

MINUTE = 60 * SECOND
ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "tests" / "cases" / "quota").glob("*.yaml"))
ON = QuotaPreemptionSettings(enabled=True)


@pytest.mark.parametrize("path", CASES, ids=[p.stem for p in CASES])
def test_a_case_does_what_it_says(path, tmp_path):
    """Each case is a cluster file, changes made to it, and what is expected of them."""
    case = yaml.safe_load(path.read_text())
    source = tmp_path / "cluster.yaml"
    source.write_text(yaml.safe_dump(case["cluster"]))
    changed = apply_overrides(load_cluster(source).cluster, case.get("set", [])).cluster
    played = play(changed, cycles=case.get("cycles", 1), every=MINUTE)
    gone = [s for s in played.steps if s.action == "evict"]
    assert [[s.cycle, s.workload] for s in gone] == case["evicted"]
    assert all(s.cause == "quota" for s in gone)
    deadlines = {q.queue: q.deadline for q in played.quota}
    assert {name: format_time(at) for name, at in deadlines.items()} == case["deadlines"]


def prod(tmp_path, *, running=12):
    """Give the cluster of the documented example: queue prod, 100 cores each for a few workloads."""
    lines = [
        "now: 2026-11-20T10:00:00Z",
        'nodes: [{name: n, allocatable: {cpu: "4000", memory: 40Ti, pods: 500}}]',
        "workloads:",
    ]
    lines += [
        f"- {{name: w{i}, queue: root.prod, priority: {10 * (i % 3)}, startedAt: 2026-11-20T09:00:00Z, createdAt: "
        f"2026-11-20T09:00:00Z, allowPreemption: {'false' if i == 0 else 'true'}, "
        f'tasks: [{{name: t{i}, node: n, phase: Running, requests: {{cpu: "100"}}}}]}}'
        for i in range(running)
    ]
    path = tmp_path / "prod.yaml"
    path.write_text("\n".join(lines))
    queues = load_queues(ROOT / "examples" / "quota" / "queues.yaml")
    return load_cluster(path, queues.policy).cluster


def test_the_documented_example_waits_a_quarter_of_an_hour_and_takes_the_right_ones(tmp_path):
    """Nothing before 15 minutes; then two of the lowest priority that have not opted out."""
    played = play(prod(tmp_path), cycles=18, every=MINUTE)
    evicted = [(s.cycle, s.workload) for s in played.steps if s.action == "evict" and s.cause == "quota"]
    assert [cycle for cycle, _ in evicted] == [15, 15]
    assert {name for _, name in evicted} < {"default/w3", "default/w6", "default/w9"}
    assert played.quota == []


def test_the_documented_example_does_nothing_if_usage_fell_in_time(tmp_path):
    """What ends by itself within the delay ends the deadline."""
    first = play(prod(tmp_path), cycles=5, every=MINUTE).after
    assert first.queues[1].status.quota_preemption is not None
    fewer = replace(first, workloads=first.workloads[2:], now=first.now + MINUTE)
    played = play(fewer, cycles=20, every=MINUTE)
    assert not [s for s in played.steps if s.action == "evict"]
    assert played.after.queues[1].status.quota_preemption is None


def test_a_deadline_survives_a_restart_between_any_two_steps(tmp_path):
    """The cluster is written to a file and read back before every cycle; the evictions come at the same minute."""
    state, evicted = prod(tmp_path), []
    for minute in range(17):
        path = tmp_path / f"{minute}.yaml"
        with path.open("w") as stream:
            dump_cluster(state, stream)
        state = load_cluster(path).cluster
        played = play(state)
        evicted += [minute for s in played.steps if s.action == "evict" and s.cause == "quota"]
        embedded = EmbeddedCluster(played.after)
        embedded.advance(played.after.now + MINUTE)
        state = embedded.observe()
    assert evicted == [15, 15]


def shared(*, actions=("quota", "allocate")):
    """Two children of equal weight: one uses 4, the other 16; the max of both together is lowered to 12."""
    work = [workload(f"a{i}", of=spec(cpu=1), on=["n"], queue="a", running=600 + i) for i in range(4)]
    work += [workload(f"b{i}", of=spec(cpu=1), on=["n"], queue="b", running=600 + i) for i in range(16)]
    tree = [queue("p", max={"cpu": 12}, quota_preemption_delay=MINUTE), queue("a", "p"), queue("b", "p")]
    return cluster([node("n", cpu=64)], work, tree, quota_preemption=ON, actions=actions)


def test_what_goes_leaves_nothing_for_reclaim_to_give_back():
    """8 units go, all from the child above its share, and nothing is given back afterwards."""
    played = play(shared(actions=("quota", "allocate", "reclaim", "preempt")), cycles=8, every=MINUTE)
    evicted = [s for s in played.steps if s.action == "evict"]
    assert len(evicted) == 8
    assert {s.cause for s in evicted} == {"quota"}
    assert all(s.workload.startswith("default/b") for s in evicted)


def test_raising_the_max_stops_it_at_once():
    """After a first round of one eviction the max goes up, and no other follows."""
    one = replace(
        shared(), settings=replace(shared().settings, quota_preemption=replace(ON, max_evictions_per_cycle=1))
    )
    first = play(one, cycles=3, every=MINUTE)
    assert len([s for s in first.steps if s.action == "evict"]) >= 1
    raised = apply_overrides(first.after, ["queue.p.max.cpu=32"]).cluster
    later = play(replace(raised, now=raised.now + MINUTE), cycles=5, every=MINUTE)
    assert not [s for s in later.steps if s.action == "evict"]
    assert later.quota == []


def test_a_queue_that_was_deleted_while_armed_takes_its_deadline_with_it():
    armed = play(shared()).after
    assert armed.queues[0].status is not None
    left = replace(
        armed,
        queues=tuple(replace(q, parent=None) for q in armed.queues if q.name != "p"),
        now=armed.now + 10 * MINUTE,
    )
    played = play(left)
    assert played.quota == []
    assert not [s for s in played.steps if s.action == "evict"]


def test_a_max_of_0_empties_a_queue_but_for_its_guarantee_and_daemon_sets():
    work = [
        workload("w", of=spec(cpu=2), on=["n"], queue="q", running=60),
        workload("agent", of=spec(cpu=1), on=["n"], queue="q", running=60, owner_kind="DaemonSet"),
    ]
    tree = [queue("q", max={"cpu": 0}, quota_preemption_delay=MINUTE)]
    played = play(cluster([node("n")], work, tree, actions=("quota",), quota_preemption=ON), cycles=4, every=MINUTE)
    assert [s.workload for s in played.steps] == ["default/w"]
    (report,) = played.quota
    assert report.state == "stuck"
    assert report.shortfall == {"cpu": 1000}
    assert [(b.reason, b.workload) for b in report.blockers] == [("daemon-set", "default/agent")]


def test_what_a_guarantee_forbids_is_told_with_the_queue_that_blocks():
    work = [workload(f"w{i}", of=spec(cpu=2), on=["n"], queue="kid", running=60) for i in range(4)]
    tree = [
        queue("top", max={"cpu": 5}, quota_preemption_delay=MINUTE),
        queue("kid", "top", guaranteed={"cpu": 5}),
    ]
    played = play(cluster([node("n")], work, tree, actions=("quota",), quota_preemption=ON), cycles=4, every=MINUTE)
    assert len(played.steps) == 1
    (report,) = played.quota
    assert report.shortfall == {"cpu": 1000}
    assert [(b.queue, b.reason, b.resource) for b in report.blockers] == [("kid", "guaranteed", "cpu")]


def test_a_victim_in_its_minimum_runtime_goes_when_that_ends():
    work = [workload("young", of=spec(cpu=2), on=["n"], queue="q", running=60)]
    tree = [queue("q", max={"cpu": 1}, quota_preemption_delay=MINUTE, reclaim_min_runtime=5 * MINUTE)]
    played = play(cluster([node("n")], work, tree, actions=("quota",), quota_preemption=ON), cycles=8, every=MINUTE)
    assert [s.cycle for s in played.steps] == [4]


def test_a_max_below_guaranteed_is_refused_and_the_old_configuration_stays():
    before = cluster([node("n")], [], [queue("q", guaranteed={"cpu": 4}, max={"cpu": 6})])
    with pytest.raises(InvalidInputError):
        apply_overrides(before, ["queue.q.max.vcore=3"])
    assert before.queues[0].max == {"cpu": 6000}


def test_an_unknown_resource_is_refused():
    before = cluster([node("n")], [], [queue("q", max={"cpu": 6})])
    with pytest.raises(InvalidInputError, match="there is no resource vcores"):
        apply_overrides(before, ["queue.q.max.vcores=3"])


def test_tenure_plan_shows_when_it_fires_and_what_it_costs():
    """The example of the documentation, as it stands there."""
    arguments = [
        "plan", str(ROOT / "examples/quota/cluster.yaml"), "--queues", str(ROOT / "examples/quota/queues.yaml"),
        "--set", "queue.prod.max.vcore=800", "--cycles", "20", "--every", "1m", "--format", "json",
    ]  # fmt: skip
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert result.exception is None
    plan = json.loads(result.stdout)
    gone = [s for s in plan["steps"] if s["cause"] == "quota"] if plan["steps"] else []
    assert {s["cycle"] for s in gone} == {15}
    assert all(s["for"] is None and s["cost"] > 0 for s in gone)
    kinds = [e["event"] for e in plan["quotaEvents"]]
    assert kinds == ["armed", "fired", "cleared"]
    assert plan["quota"] == []
