"""The story of one workload that waits is told from what is found out about it alone."""

from __future__ import annotations

import pytest
from tests.builders import cluster, node, queue, spec, workload
from tests.properties.adding_up import announced, drawn, guarded

from tenure.actions.context import Context
from tenure.explanation.explain import explain_workload
from tenure.model.workload import Phase
from tenure.playthrough import play


def story(state, item):
    """Give the story of a workload as plain data."""
    return explain_workload(play(state, about=item.key), item).plain()


@pytest.mark.parametrize("draw", [drawn, guarded, announced], ids=["drawn", "guarded", "under notice"])
def test_it_says_what_it_says_where_all_is_found_out_about_the_others(draw, monkeypatch):
    """Others of its kind, and evictions for others, are in some of these."""
    told = {}
    for seed in range(5):
        state = draw(seed)
        waiting = [w for w in state.workloads if any(t.phase is Phase.PENDING for t in w.tasks)]
        told |= {(seed, item.key): (state, item, story(state, item)) for item in waiting}
    monkeypatch.setattr(Context, "_only_waits", lambda _: None)
    assert [key for key, (state, item, found) in told.items() if story(state, item) != found] == []


def test_why_nothing_is_evicted_for_others_is_not_found_out():
    """That takes searches among all that the rules do not let go."""
    queues = [queue("one", guaranteed={"gpu": 4}), queue("other", guaranteed={"gpu": 4})]
    runs = [workload(f"r{n}", of=spec(gpu=4), on=[f"n{n}"], queue=q) for n, q in enumerate(("one", "other"))]
    waits = [workload(name, of=spec(gpu=size), queue="one") for name, size in (("small", 1), ("large", 2))]
    state = cluster([node(f"n{n}", gpu=4) for n in (0, 1)], [*runs, *waits], queues, actions=("allocate", "reclaim"))
    reasons = {p.workload: bool(p.reasons) for p in play(state, about="default/large").pending}
    assert reasons == {"default/small": False, "default/large": True}
    assert all(p.reasons for p in play(state).pending)


def codes_of(state, name):
    """Give the codes of the reasons for which a workload waits."""
    return [r["code"] for r in story(state, next(w for w in state.workloads if w.name == name))["reasons"]]


def test_what_is_said_of_one_before_it_that_stands_alike_is_said_of_it():
    """What is found out about the first of a kind holds for all."""
    runs = workload("runs", of=spec(gpu=4), on=["n0"], queue="q", running=60)
    twins = [workload(name, of=spec(gpu=4), queue="q", age=age) for name, age in (("first", 2), ("second", 1))]
    state = cluster([node("n0", gpu=4)], [runs, *twins], [queue("q")], actions=("allocate", "preempt"))
    assert codes_of(state, "second") == codes_of(state, "first")
    assert "ShieldedVictims" in codes_of(state, "second")


def test_others_that_were_looked_at_among_fewer_candidates_do_not_hide_a_refusal():
    """For the small one only what may be evicted is gathered, from the same queue."""
    gives = workload("gives", of=spec(gpu=1), on=["n0"], queue="q", running=60)
    stays = workload("stays", of=spec(gpu=4), on=["n1"], queue="q", running=60, preemptible=False)
    waits = [
        workload(name, of=spec(gpu=n), queue="q", priority=5, age=9 - n) for name, n in (("small", 1), ("large", 4))
    ]
    nodes, queues = [node("n0", gpu=1), node("n1", gpu=4)], [queue("q", guaranteed={"gpu": 5})]
    state = cluster(nodes, [gives, stays, *waits], queues, actions=("allocate", "preempt"))
    assert [s.task for s in play(state, about="default/large").steps if s.action == "evict"] == ["gives-0"]
    assert "ShieldedVictims" in codes_of(state, "large")
