"""The story of one workload that waits is told from what is found out about it alone."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

import pytest
from tests.builders import cluster, node, queue, spec, workload
from tests.properties.adding_up import announced, drawn, guarded, improved, priced

from tenure.actions.context import Context
from tenure.engine.snapshot import session_of
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


DRAWN = (drawn, guarded, announced, improved, priced)


def test_the_session_of_the_cycle_tells_what_one_tells_that_is_made_for_what_came_of_it():
    """Of what waits, runs, is promised room or gives way; what the plan changed is taken in anew."""
    states, others = set(), []
    for seed in range(8):
        for state in (draw(seed) for draw in DRAWN):
            for item in state.workloads[seed % 2 :: 2]:
                played = play(state, about=item.key)
                found = explain_workload(played, item)
                states.add(found.state)
                if found != explain_workload(replace(played, session=None), item):
                    others.append((seed, item.key))
    assert others == []
    assert states >= {"pending", "running", "starts", "gives way"}


def as_it_stands(session):
    """Give what a session says of queues, workloads and tasks, and who waits in which order."""
    queues, names = (
        session.queues,
        attrgetter("key", "started_at", "queued_at", "evictions", "last_evicted_at", "fixed"),
    )
    of_task = attrgetter("phase", "node", "nominated", "leaving", "terminating_since", "stuck", "notice")
    return (
        queues.allocated, queues.pending, queues.fixed, session.nodes.room.tolist(), session.occupancy.total(),
        {k: (names(w), w.step and (w.step.kind, w.step.amount), list(map(of_task, w.tasks)))
         for k, w in session.workloads.items()},
        {leaf: [e[-1].key for e in entries if e[-1].entry is e] for leaf, entries in session.waiting.entries.items()},
    )  # fmt: skip


def test_a_session_is_brought_in_step_with_what_was_carried_out():
    """It holds what one holds that is made anew."""
    others = []
    for seed in range(12):
        for number, state in enumerate(draw(seed) for draw in DRAWN):
            played = play(state, about=state.workloads[0].key)
            if as_it_stands(played.session) != as_it_stands(session_of(played.after)):
                others.append((seed, number))
    assert others == []
