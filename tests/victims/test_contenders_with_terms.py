"""Contenders that look at other tasks share one search where they stand alike; all is decided as if they did not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import cluster, node, queue, spec, workload
from tests.effort import tries
from tests.properties.contention import contended, in_groups, with_terms

from tenure.engine.serving import placement
from tenure.engine.snapshot import session_of
from tenure.engine.state.steps import Steps
from tenure.engine.terms.admission import TermAdmission
from tenure.model.selectors import Affinity, LabelSelector, PodAffinity, PodAffinityTerm, Requirement
from tenure.playthrough import play
from tenure.victims.dry_run.dry_runs import DryRuns
from tenure.victims.search.victim_search import VictimSearch

CAUSES = ("consolidate", "reclaim", "preempt", "requeue")
MANY = 24


@settings(max_examples=tries(30, 1500))
@given(st.integers(0, 1 << 32), st.sets(st.sampled_from(CAUSES), min_size=1), st.sampled_from(["none", "easy"]))
def test_what_is_shared_by_contenders_is_what_each_would_find_alone(seed, causes, backfill):
    """Plan and reasons of three cycles, against steps none of which with terms has a shape."""
    state = contended(seed, crowd=10)
    state = with_terms(in_groups(state, seed) if seed % 4 == 1 else state, seed)
    actions = ("allocate", *(cause for cause in CAUSES if cause in causes))
    state = replace(state, settings=replace(state.settings, actions=actions, backfill=backfill))
    found = play(state, cycles=3)
    shape = Steps._shape
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Steps, "_shape", lambda self, of, tasks, kind: (
            None if any(t.terms is not None for t in tasks) else shape(self, of, tasks, kind)
        ))  # fmt: skip
        patch.setattr(placement, "FEW", -1)
        alone = play(state, cycles=3)
    assert found.steps == alone.steps
    assert [(p.workload, p.reasons) for p in found.pending] == [(p.workload, p.reasons) for p in alone.pending]


def crowd(*, of_its_own, key):
    """Full nodes of which each holds two that may be reclaimed, and many that want to be near no pod at all."""
    nodes = [node(f"n{i:02}", labels={"host": f"n{i:02}", "zone": "ab"[i % 2]}) for i in range(MANY)]
    there = spec(cpu=4, labels=(("app", "there"),))
    runs = [workload(f"r{i}", of=there, on=[f"n{i // 2:02}"], queue="b", running=500) for i in range(2 * MANY)]
    waits = [
        workload(f"w{i}", of=spec(cpu=4, labels=(("app", "w"),), affinity=away(key, i if of_its_own else 0)), queue="a")
        for i in range(MANY)
    ]
    halves = [queue(name, guaranteed={"cpu": 4 * MANY}) for name in "ab"]
    return cluster(nodes, [*runs, *waits], halves, actions=("allocate", "reclaim"))


def away(key, number):
    """A term about all pods, said in as many ways as there are numbers."""
    other = Requirement(key="app", operator="NotIn", values=(f"x{number}",))
    term = PodAffinityTerm(topology_key=key, selector=LabelSelector(match_expressions=(other,)))
    return Affinity(pod_anti=PodAffinity(required=(term,)))


def counted(patch, owner, name):
    """Count the calls of a method."""
    calls, method = [], getattr(owner, name)
    patch.setattr(owner, name, lambda *args, **kwargs: calls.append(None) or method(*args, **kwargs))
    return calls


def test_one_search_tells_of_all_whose_terms_and_labels_come_to_the_same(monkeypatch):
    """Of pods each of which would need a whole zone to itself, the first is searched for, and no other tried."""
    searches, plays = counted(monkeypatch, VictimSearch, "run"), counted(monkeypatch, DryRuns, "play")
    tries_ = counted(monkeypatch, placement.Placer, "find")
    assert play(crowd(of_its_own=False, key="zone")).steps == []
    assert len(searches) == 1
    assert len(tries_) <= 2 * len(plays) + 2


@pytest.mark.parametrize("of_its_own", [False, True])
def test_where_few_nodes_have_room_the_others_are_not_looked_at(monkeypatch, of_its_own):
    """A pod for which a set makes room on one node is held against what is near that node, and no other."""
    plays, looks = counted(monkeypatch, DryRuns, "play"), counted(monkeypatch, TermAdmission, "masks")
    session = session_of(crowd(of_its_own=of_its_own, key="zone"))
    assert len(session.waiting.all()) == MANY
    play(crowd(of_its_own=of_its_own, key="zone"))
    assert plays
    assert len(looks) <= MANY  # the reasons why each waits


def test_one_that_may_be_near_what_was_placed_since_is_tried_though_its_like_was_not_placed():
    """Of two equal pods that want to be near a third, the one before it finds nothing, and the one behind it does."""
    near = PodAffinityTerm(topology_key="host", selector=LabelSelector(match_labels=(("app", "x"),)))
    wants = spec(labels=(("app", "y"),), affinity=Affinity(pod=PodAffinity(required=(near,))))
    waits = [workload("first", of=wants, age=3), workload("x", of=spec(labels=(("app", "x"),)), age=2)]
    waits.append(workload("last", of=wants, age=1))
    played = play(cluster([node("a", labels={"host": "a"})], waits))
    assert [s.task for s in played.steps] == ["x-0", "last-0"]
