"""The worked examples of minimum runtime as cluster files: a second before it ends nothing happens, then it does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tenure.cli.main import cli

CASES = Path(__file__).parents[1] / "cases" / "min-runtime"


def plan_of(path, *options):
    result = CliRunner().invoke(cli, ["plan", str(path), "--format", "json", *options])
    assert not result.exit_code, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("path", sorted(CASES.glob("*-free.yaml")), ids=lambda p: p.stem)
def test_when_it_is_over_the_victim_gives_way(path):
    plan = plan_of(path)
    cause = path.name.split("-")[0]
    first, second = plan["steps"]
    assert (first["action"], first["workload"], first["cause"], first["for"]) == (
        "evict", "default/victim", cause, "default/contender",
    )  # fmt: skip
    assert (second["action"], second["workload"], second["node"]) == ("nominate", "default/contender", "node")
    assert plan["refused"] == []


@pytest.mark.parametrize("path", sorted(CASES.glob("*-protected.yaml")), ids=lambda p: p.stem)
def test_a_second_before_it_is_over_nothing_happens_and_the_plan_says_until_when(path):
    plan = plan_of(path)
    assert plan["steps"] == []
    (refused,) = [r for r in plan["refused"] if r["shield"] == "min-runtime"]
    assert refused["until"] == "2026-11-20T10:00:01Z"
    assert (refused["workload"], refused["for"]) == ("default/victim", "default/contender")
    codes = {p["workload"]: [r["code"] for r in p["reasons"]] for p in plan["pending"]}
    assert "ShieldedVictims" in codes["default/contender"]


@pytest.mark.parametrize("path", sorted(CASES.glob("*-protected.yaml")), ids=lambda p: p.stem)
def test_a_second_later_it_gives_way_in_the_next_cycle(path):
    plan = plan_of(path, "--cycles", "2", "--every", "1s")
    assert [(s["cycle"], s["action"]) for s in plan["steps"]] == [(1, "evict"), (1, "nominate")]


def test_an_explicit_zero_at_the_leaf_ends_inheritance():
    path = CASES / "preempt-in-leaf1-protected.yaml"
    assert plan_of(path, "--set", "queue.leaf1.preemptMinRuntime=0")["steps"]


def test_causes_that_do_not_respect_it_ignore_it():
    path = CASES / "preempt-in-leaf1-protected.yaml"
    assert plan_of(path, "--set", "scheduler.minRuntime.appliesTo=[reclaim]")["steps"]
