"""What the bound by volume rules out, the search rules out as well; and it rules out most of what is impossible."""

from __future__ import annotations

from dataclasses import replace

from tenure.engine.serving.reserved_start import ReservedStart
from tenure.rescheduler.triggers import pending
from tenure.simulator.generate import GeneratorConfig, cluster_for, generate
from tenure.simulator.run import Simulation, SimulationSetup, prepare
from tenure.victims.passes.contender_search import ContenderSearch


def replay(backfill, jobs, seed=1):
    """Replay a generated workload with all default actions on few nodes, and give its events."""
    config = GeneratorConfig(jobs=jobs, load=1.1, capacity=64)
    cluster, trace = cluster_for(config), generate(config, seed=seed)
    cluster = replace(cluster, settings=replace(cluster.settings, backfill=backfill))
    return Simulation(SimulationSetup(prepare(cluster, trace)), trace).run().log.events


def test_the_planner_finds_no_moves_where_the_volume_is_too_little(monkeypatch):
    """On a replay: each answer without a search is one that the exact planner gives as well."""
    ruled_out, planned = [], []
    known = pending._too_little_in_all

    def checked(action, movable, contenders):
        found = known(action, movable, contenders)
        answer = action.plan(movable, contenders)[1]
        (planned if found is None else ruled_out).append(answer)
        return found

    monkeypatch.setattr(pending, "_too_little_in_all", checked)
    replay("easy", 120, seed=2)
    assert len(ruled_out) > 10
    assert {a.certificate.method for a in ruled_out} == {"impossible"}
    assert sum(not a.feasible for a in planned) <= len(ruled_out) // 4, "the bound rules out most"


def test_a_reserved_start_rules_out_no_move_that_the_search_would_make(monkeypatch):
    """With EASY backfilling: the same events whether or not it is asked beforehand who has room beside that start."""
    ruled_out = []
    known = ReservedStart.may_allow

    def noted(self, *asked):
        found = known(self, *asked)
        ruled_out.append(not found)
        return found

    monkeypatch.setattr(ReservedStart, "may_allow", noted)
    asked = replay("easy", 40, seed=2)
    assert sum(ruled_out) > 20
    monkeypatch.setattr(ReservedStart, "may_allow", lambda *_: True)
    assert replay("easy", 40, seed=2) == asked


def test_moves_that_have_no_room_by_volume_are_not_tried(monkeypatch):
    """On a replay: of the sets that are tried, at most half find no place to land."""
    sets = []
    known = ContenderSearch._searching

    def noted(self, rules, *, alone):
        search = known(self, rules, alone=alone)
        if self.cause == "consolidate":
            sets.append(search)
        return search

    monkeypatch.setattr(ContenderSearch, "_searching", noted)
    replay("none", 300, seed=2)
    tried = sum(s.found.tried for s in sets)
    landless = sum(s.trials._without_effect for s in sets)
    assert sets
    assert landless <= tried // 2
