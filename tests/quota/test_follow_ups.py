"""What the quota takes is not what another cause would then bring back at somebody's cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.builders import NOW, cluster, node, queue, spec, workload
from tests.quota.strategies import MINUTE
from tests.quota.test_best_set import taken_in

from tenure.cli.main import main
from tenure.model.queue import QueueStatus, QuotaStatus
from tenure.model.settings import QuotaPreemptionSettings
from tenure.playthrough import play

EXAMPLE = Path(__file__).parents[2] / "examples" / "quota"


def over_max(work, *, most, cpu=20):
    """One queue whose deadline is now, with every cause on that could follow."""
    status = QueueStatus(
        quota_preemption=QuotaStatus(armed_at=NOW - MINUTE, delay=MINUTE, deadline=NOW, max={"cpu": most * 1000})
    )
    return cluster(
        [node("n", cpu=cpu)],
        work,
        [queue("q", max={"cpu": most}, quota_preemption_delay=MINUTE, status=status)],
        actions=("quota", "allocate", "reclaim", "preempt"),
        quota_preemption=QuotaPreemptionSettings(enabled=True),
    )


def runs(name, cpu, **fields):
    return workload(name, of=spec(cpu=cpu), on="n", queue="q", **fields)


def names(found, played):
    return sorted(t.name for _, tasks in taken_in(found, played) for t in tasks)


def test_lower_priorities_go_though_they_free_more():
    """The exact fit of priority 50 would be brought back by preempt at the cost of what has priority 0."""
    found = over_max([runs("high", 4, priority=50, running=60), runs("low", 6, priority=0, running=6000)], most=6)
    assert names(found, play(found)) == ["low-0"]


def test_nothing_is_evicted_in_any_later_cycle():
    """Twenty cycles: what the quota evicts stays the whole price."""
    work = [runs(f"w{i}", 1 + i % 3, priority=10 * (i % 4), running=60 + i) for i in range(8)]
    found = over_max(work, most=8)
    played = play(found, cycles=20, every=MINUTE)
    evicted = [s for s in played.steps if s.action == "evict"]
    assert evicted
    assert {(s.cycle, s.cause) for s in evicted} == {(0, "quota")}


def test_the_example_of_the_readme_evicts_five_tasks_and_none_later(capsys):
    """``tenure plan`` as the README shows it: what it costs is said once, and nothing is brought back."""
    files = [str(EXAMPLE / "cluster.yaml"), "--queues", str(EXAMPLE / "queues.yaml")]
    change = ["--set", "queue.prod.max.vcore=500", "--cycles", "20", "--every", "1m", "--format", "json"]
    with pytest.raises(SystemExit, match="0"):
        main(["plan", *files, *change])
    evicted = [s for s in json.loads(capsys.readouterr().out)["steps"] if s["action"] == "evict"]
    assert len(evicted) == 5
    assert sum(s["cost"] for s in evicted) == 175_500
    assert {(s["cycle"], s["cause"]) for s in evicted} == {(15, "quota")}
