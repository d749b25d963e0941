"""Bounds of the search: what they rule out never pays, and a search that was cut off goes on where it stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import NOW, cluster, node, spec, workload
from tests.requeue.clusters import ONLY, one_node, overdue, requeued, waiting
from tests.requeue.random_clusters import random_cluster

import tenure.requeue.transactions as module
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.settings import RequeueSettings, SearchSettings
from tenure.playthrough import play

SEEDS = st.integers(0, 100_000)


class Everybody:
    """A prefilter that rules nobody out."""

    def alone(self):
        return [module.CandidateMatch(c, list(self.classes)) for c in self.candidates]

    def together(self, cls):  # noqa: ARG002
        return list(self.candidates)


def unbounded(monkeypatch):
    """Let every candidate be tried for everybody who waits."""

    class Open(module.CandidatePrefilter):
        def __init__(self, session, shares, candidates, contenders):
            super().__init__(session, shares, candidates, contenders)
            self.candidates = list(candidates)
            self.classes = module_in_order(session, shares, contenders)

        alone, together = Everybody.alone, Everybody.together

    monkeypatch.setattr(module, "CandidatePrefilter", Open)


def module_in_order(session, shares, classes):
    from tenure.requeue.pending_index import in_order  # noqa: PLC0415  beside its only use

    return in_order(session, shares, classes)


def committed(cluster):
    played = play(cluster)
    return sorted(played.requeue.not_before), [(s.action, s.workload, s.task_index, s.node) for s in played.steps]


@given(SEEDS)
def test_whom_the_bounds_rule_out_could_serve_nobody_alone(seed):
    """With every single candidate tried for every contender the plan is the same: bounds only save time."""
    cluster = random_cluster(seed, requeue=RequeueSettings(max_candidates=1))
    bounded = committed(cluster)
    with pytest.MonkeyPatch.context() as patch:
        unbounded(patch)
        assert committed(cluster) == bounded


# -- going on ---------------------------------------------------------------------------------------------------------


def many(count=6):
    """Six candidates, each alone on a node, any of which would do for the one that waits."""
    nodes = [node(f"n{i}", cpu=64, gpu=1) for i in range(count)]
    old = [overdue(f"o{i}", gpu=1, on=f"n{i}", ran=9000 - i, priority=10) for i in range(count)]
    return cluster(nodes, [*old, waiting(gpu=1)], actions=ONLY, requeue=RequeueSettings(max_candidates=1))


class Refusing:
    """A plugin that lets nothing go but one workload, and notes what it was asked."""

    name = "refusing"

    def __init__(self, but):
        self.but = but
        self.asked = []

    def allow_plan(self, contender, victims, tasks, cause, now):  # noqa: ARG002
        self.asked.append(victims[0].name)
        return all(v.name == self.but for v in victims)


def cycles(given, plugin, count):
    """Some cycles of one scheduler at one moment, so that nothing but its memory changes; what each asked."""
    scheduler = Scheduler(session_of(given))
    scheduler.context.evicting().plugins.others.append(plugin)
    found = []
    for _ in range(count):
        plugin.asked.clear()
        plan = scheduler.cycle(NOW)
        found.append((list(plugin.asked), sorted(plan.requeue.not_before), plan.warnings))
    return found


def test_a_search_that_is_cut_off_goes_on_where_it_stopped():
    """Two steps a cycle: each goes on behind the last, and so even the last candidate is found."""
    given = replace(many(), settings=replace(many().settings, search=SearchSettings(max_scenarios=2)))
    seen = cycles(given, Refusing("o5"), 3)
    assert [asked for asked, _, _ in seen][:2] == [["o0", "o1"], ["o2", "o3"]]
    assert seen[2][0][:2] == ["o4", "o5"]
    assert [done for _, done, _ in seen] == [[], [], ["default/o5"]]
    assert all(any("search-exhausted" in w for w in warnings) for _, _, warnings in seen[:2])


def test_after_a_restart_the_search_begins_at_its_beginning():
    """What was remembered is lost with the process, and nothing else depends on it."""
    given = replace(many(), settings=replace(many().settings, search=SearchSettings(max_scenarios=2)))
    assert cycles(given, Refusing("o5"), 2)[0] == cycles(given, Refusing("o5"), 1)[0]


def test_room_that_came_free_in_the_meantime_is_taken_instead():
    """Where the search was to go on nobody runs any more: who waited starts there, and nobody gives way."""
    given = replace(many(), settings=replace(many().settings, search=SearchSettings(max_scenarios=2)))
    scheduler = Scheduler(session_of(given))
    plugin = Refusing("nobody")
    scheduler.context.evicting().plugins.others.append(plugin)
    scheduler.cycle(NOW)
    scheduler.session.remove_workload("default/o2")
    plugin.asked.clear()
    plan = scheduler.cycle(NOW)
    assert plugin.asked == []
    assert [s.workload for s in plan.steps] == ["default/new"]


def test_sets_go_on_as_well():
    """A gang that needs two nodes: the sets of two, three and so on are tried one per cycle."""
    nodes = [node(f"n{i}", cpu=64, gpu=1) for i in range(4)]
    old = [overdue(f"o{i}", gpu=1, on=f"n{i}", ran=9000 - i, priority=10) for i in range(4)]
    gang = workload("gang", tasks=2, of=spec(gpu=1), priority=50, age=60)
    given = cluster(nodes, [*old, gang], actions=ONLY, search=SearchSettings(max_scenarios=1))

    class Large(Refusing):
        def allow_plan(self, contender, victims, tasks, cause, now):  # noqa: ARG002
            self.asked.append(len(victims))
            return {v.name for v in victims} != {"o0", "o1"}

    seen = cycles(given, Large(""), 3)
    assert [asked[0] for asked, _, _ in seen if asked][:2] == [2, 3]
    assert any(done for _, done, _ in seen)


def test_without_a_bound_in_the_way_one_cycle_finds_it():
    assert cycles(many(), Refusing("o5"), 1)[0][1] == ["default/o5"]


def test_a_set_is_reprieved_however_few_steps_are_left():
    """The step that finds a set is the last one: even then nobody goes in vain."""
    first = overdue("a", gpu=1, ran=9500, on="m")
    nodes = [node("n", cpu=64, gpu=4), node("m", cpu=64, gpu=4)]
    fixed = overdue("fixed", gpu=3, on="m", preemptible=False, expected=None)
    late = [overdue(f"b{i}", gpu=2) for i in range(2)]
    for steps in range(1, 8):
        given = cluster(nodes, [first, fixed, *late, waiting(gpu=4)], actions=ONLY,
                        search=SearchSettings(max_scenarios=steps))  # fmt: skip
        assert set(requeued(play(given))) in (set(), {"b0", "b1"})
    assert requeued(play(one_node(*[overdue(f"o{i}", gpu=1) for i in range(4)], waiting(gpu=3)))) != {}
