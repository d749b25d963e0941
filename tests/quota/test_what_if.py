"""What a change would do, as somebody at a terminal asks for it."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import pytest

from tenure.cli.main import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "quota"
DELAYS = {"15": "no unit", "-1m": "negative", "15 m": "not a duration", "1y": "not a duration"}


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command; gives its exit code, and what it printed to both streams."""
    monkeypatch.setenv("COLUMNS", "80")

    def do(*arguments):
        with pytest.raises(SystemExit) as caught:
            main([str(a) for a in arguments])
        printed = capsys.readouterr()
        return caught.value.code, printed.out + printed.err

    return do


@pytest.fixture
def plan(run):
    """Run `tenure plan` on the documented example."""

    def do(*arguments, code=0):
        found, told = run("plan", EXAMPLE / "cluster.yaml", "--queues", EXAMPLE / "queues.yaml", *arguments)
        assert found == code, told
        return told

    return do


def test_several_changes_hold_together_whatever_their_order(plan):
    """A lower max, another delay and another granularity: the same plan, with all of them in it."""
    changes = (
        "queue.prod.max.vcore=750",
        "queue.prod.quotaPreemptionDelay=2m",
        "scheduler.quotaPreemption.overshoot=never",
    )
    found = set()
    for order in permutations(changes):
        options = [part for change in order for part in ("--set", change)]
        found.add(plan(*options, "--cycles", "6", "--every", "1m", "--actions", "quota", "--format", "json"))
    (text,) = found
    result = json.loads(text)
    assert [s["cycle"] for s in result["steps"]] == [2, 2]
    (report,) = result["quota"]
    assert report["shortfall"] == {"cpu": 50_000}
    assert {b["reason"] for b in report["blockers"]} == {"overshoot"}


def test_the_full_name_and_its_last_part_mean_the_same_queue(plan):
    short, full = (plan("--set", f"queue.{name}.max.vcore=800") for name in ("prod", "root.prod"))
    assert short == full


def test_a_name_that_two_queues_end_in_is_refused_with_both(tmp_path, run):
    queues = tmp_path / "queues.yaml"
    queues.write_text(
        "partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n"
        "    - {name: a, queues: [{name: batch}]}\n    - {name: b, queues: [{name: batch}]}\n"
    )
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("now: 2026-11-20T10:00:00Z\nnodes: [{name: n}]\n")
    code, told = run("plan", cluster, "--queues", queues, "--set", "queue.batch.max.vcore=1")
    assert code == 1
    assert "root.a.batch or root.b.batch" in told


@pytest.mark.parametrize("delay", DELAYS)
def test_a_delay_that_is_none_is_refused_in_a_cluster_file_and_on_the_command_line(tmp_path, run, plan, delay):
    """With line and path in the one, with what was given in the other."""
    path = tmp_path / "cluster.yaml"
    path.write_text(
        f"now: 2026-11-20T10:00:00Z\nqueues:\n- name: q\n  max: {{cpu: 1}}\n  quotaPreemptionDelay: {delay}\n"
    )
    code, told = run("validate", path)
    assert code == 1
    assert "cluster.yaml:5: queues[0].quotaPreemptionDelay" in told
    assert DELAYS[delay] in told
    assert DELAYS[delay] in plan("--set", f"queue.prod.quotaPreemptionDelay={delay}", code=1)


def test_a_max_below_guaranteed_is_refused_and_nothing_is_planned(plan):
    told = plan("--set", "queue.prod.guaranteed.vcore=200", "--set", "queue.prod.max.vcore=100", code=1)
    assert "200 is more than the queue's max of 100" in told


def test_everything_a_plan_says_of_quotas_fits_80_columns(plan):
    told = plan("--set", "queue.prod.max.vcore=250", "--cycles", "18", "--every", "1m")
    assert max(map(len, told.splitlines())) <= 80
    assert "QUOTAS" in told
    assert "settled" in told


def test_validate_knows_queues_yaml_and_counts_what_is_in_it(run):
    code, told = run("validate", EXAMPLE / "queues.yaml")
    assert code == 0
    assert "valid, YuniKorn's queues, 1 partition, 2 queues" in told
