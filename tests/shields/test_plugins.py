"""Extension points: who may say no, and what becomes of a plugin that misbehaves."""

# ruff: noqa: ARG002  plugins answer whatever they are asked

from __future__ import annotations

import pytest
from tests.actions.helpers import MINUTE, cluster, play, queue, runs, shields, steps, waits

from tenure.engine.snapshot import session_of
from tenure.shields import plugins as module
from tenure.shields.plugins import EvictionPlugins

STATE = cluster(
    [queue("a", guaranteed=2), queue("b", guaranteed=0)],
    [runs("x", "b", ["n0"] * 2, minutes=1), runs("y", "b", ["n0"] * 2, minutes=50), waits("contender", "a", gpus=2)],
)


class NeverX:
    """A sample: shields one workload by name."""

    name = "never-x"

    def allow_victim(self, contender, victim, cause, now):
        return victim.name != "x"


class AtMostOneTask:
    """A sample: no plan that takes more than one task."""

    name = "at-most-one"

    def allow_plan(self, contender, victims, tasks, cause, now):
        return len(tasks) <= 1


class Raises:
    name = "raises"

    def allow_victim(self, contender, victim, cause, now):
        raise RuntimeError("the database is away")


class Nonsense:
    name = "nonsense"

    def allow_victim(self, contender, victim, cause, now):
        return "maybe"


class Point:
    """An entry point that loads this plugin."""

    def __init__(self, plugin):
        self.name = getattr(plugin, "name", "broken")
        self.plugin = plugin

    def load(self):
        if self.plugin is None:
            raise ImportError("no such module")
        return self.plugin


def install(monkeypatch, *plugins):
    monkeypatch.setattr(module, "entry_points", lambda **_: [Point(p) for p in plugins])


def test_without_plugins_the_cheaper_one_goes(monkeypatch):
    install(monkeypatch)
    assert {w for w, _ in steps(play(STATE))} == {"x"}


def test_a_victim_filter_shields_a_workload(monkeypatch):
    install(monkeypatch, NeverX)
    found = play(STATE)
    assert {w for w, _ in steps(found)} == {"y"}


def test_a_filter_shields_the_surplus_of_a_workload_in_its_minimum_runtime_as_well(monkeypatch):
    """All must agree: that its core is protected anyway does not make its surplus anybody's."""
    queues = [queue("a", guaranteed=2), queue("b", guaranteed=0, reclaim_min_runtime=30 * MINUTE)]
    work = [runs("x", "b", ["n0"] * 4, core=2, minutes=1), waits("contender", "a", gpus=2)]
    install(monkeypatch)
    assert {w for w, _ in steps(play(cluster(queues, work)))} == {"x"}
    install(monkeypatch, NeverX)
    found = play(cluster(queues, work))
    assert found.steps == []
    assert shields(found) == {("x", "never-x")}


def test_a_plan_validator_refuses_a_finished_set(monkeypatch):
    install(monkeypatch, AtMostOneTask)
    found = play(STATE)
    assert found.steps == []
    assert "at-most-one" in {shield for _, shield in shields(found)}


@pytest.mark.parametrize(("plugin", "said"), [(Raises, "the database is away"), (Nonsense, "'maybe'")])
def test_one_that_misbehaves_is_named_and_counts_as_no(monkeypatch, plugin, said):
    install(monkeypatch, plugin)
    found = play(STATE)
    assert found.steps == []
    (warning,) = found.warnings
    assert plugin.name in warning
    assert said in warning


def test_one_that_cannot_be_loaded_is_named_and_not_asked(monkeypatch):
    install(monkeypatch, None)
    found = play(STATE)
    assert {w for w, _ in steps(found)} == {"x"}
    assert "no such module" in found.warnings[0]


def test_all_must_agree(monkeypatch):
    class NeverY:
        name = "never-y"

        def allow_victim(self, contender, victim, cause, now):
            return victim.name != "y"

    install(monkeypatch, NeverX, NeverY)
    assert play(STATE).steps == []


def test_a_filter_is_asked_only_about_what_the_rules_allow(monkeypatch):
    """Workloads of the contender's own queue, and those that are not preemptible, are never shown to it."""
    asked = []

    class Notes:
        name = "notes"

        def allow_victim(self, contender, victim, cause, now):
            asked.append((contender.name, victim.name, cause))
            return True

    install(monkeypatch, Notes)
    state = cluster(
        [queue("a", guaranteed=3), queue("b", guaranteed=0)],
        [runs("own", "a", ["n0"], priority=5), runs("fixed", "b", ["n0"], preemptible=False),
         runs("x", "b", ["n0"] * 2, minutes=1), waits("contender", "a", gpus=2)],
    )  # fmt: skip
    play(state)
    assert {who for who in asked if who[2] == "reclaim"} == {("contender", "x", "reclaim")}


def test_minimum_runtime_is_one_of_them():
    session = session_of(STATE)
    plugins = EvictionPlugins([])
    young = session.workloads["default/x"]
    session.settings = type(session.settings)(reclaim_min_runtime=10 * MINUTE)
    refusal = plugins.filter(session, "reclaim", session.workloads["default/contender"], young)
    assert (refusal.shield, refusal.core_only, refusal.until) == ("min-runtime", True, session.now + 9 * MINUTE)
    verdict = plugins.validate(session, "reclaim", session.workloads["default/contender"], young.tasks)
    assert verdict.shield == "min-runtime"
