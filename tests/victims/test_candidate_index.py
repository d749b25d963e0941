"""What a search chooses from: of which pieces the rules are asked, and in which order."""

from __future__ import annotations

from itertools import product

import pytest
from tests.actions.helpers import cluster, queue, runs
from tests.builders import cluster as cluster_of
from tests.builders import node, spec, workload
from tests.builders import queue as queue_of
from tests.properties.adding_up import drawn
from tests.properties.contention import contended

from tenure.engine.snapshot import session_of
from tenure.engine.state.evictions import evict_all
from tenure.fairness.current import Fairness
from tenure.requeue.rules import OverdueRules
from tenure.shields.plugins import EvictionPlugins
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.candidates.gatherer import CandidateGatherer, VictimCandidates, leaf_memo
from tenure.victims.candidates.index import CandidateIndex, PieceStream
from tenure.victims.candidates.leaf_candidates import LeafCandidates
from tenure.victims.candidates.preemptible_usage import PreemptibleUsage
from tenure.victims.rules.causes import ConsolidateRules, PreemptRules, ReclaimEligibility
from tenure.victims.rules.pieces import piece_memo
from tenure.victims.search.search_scope import SearchScope
from tenure.victims.search.usable import UsablePieces

RULES = {
    "reclaim": ReclaimEligibility,
    "preempt": lambda session, _, contender: PreemptRules(session, contender),
    "consolidate": lambda session, _, contender: ConsolidateRules(session, contender),
    "requeue": OverdueRules,
}


def all_of(session):
    """All that may be taken, leaf by leaf."""
    holdings = PreemptibleUsage(session)
    holdings.catch_up()
    memo = leaf_memo(session, holdings, piece_memo(session))
    return VictimCandidates([memo(leaf) for leaf in sorted(holdings.leaves)])


def usable_for(session, rules):
    """Who the rules refuse, once something is asked, and what is asked."""
    usable = UsablePieces(rules, RoomDemand(session, rules.contender.step), SearchScope())
    return usable.refusals, usable


def test_pieces_on_one_node_are_asked_about_by_name():
    """What the rules say of them is listed in the order in which they are asked: it is the same in every run."""
    names = [f"{letter}{number}" for letter, number in product("zyxwvuts", range(2))]
    running = [runs(name, f"q{number % 2}", ["n0"]) for number, name in enumerate(names)]
    session = session_of(cluster([queue("q0"), queue("q1")], running, gpus=len(running)))
    asked = []
    index = CandidateIndex(session, all_of(session), lambda p: not asked.append(p.workload.key), lambda *_: False)
    assert len(index.at(0)) == len(names)
    assert asked == sorted(f"default/{name}" for name in names)


def test_what_the_rules_have_refused_is_passed_over_and_nothing_else():
    """The pieces, and who is said to be refused, are those that are found if each is asked about."""
    refused = found = 0
    for seed in range(60):
        session = session_of(contended(seed))
        candidates, shares = all_of(session), Fairness(session).now()
        for contender in session.waiting.all():
            rules = ReclaimEligibility(session, shares, contender)
            others = VictimCandidates([c for c in candidates.candidate_leaves if c.leaf != contender.leaf])
            (told, usable), (all_told, asked) = (usable_for(session, rules) for _ in "ab")
            index = CandidateIndex(session, others, usable.could_serve, usable.refused)
            assert list(index.ordered()) == [p for p in others.all() if asked.could_serve(p)]
            assert told == all_told
            stream, passed = PieceStream(index, lambda _: False), []
            stream.add(others.candidate_leaves)
            while (piece := stream.peek()) is not None:
                passed.append(piece)
                stream.take()
            assert sorted(passed, key=id) == sorted((p for p in others.all() if asked.could_serve(p)), key=id)
            refused, found = refused + len(told), found + len(passed)
    assert refused > 20
    assert found > 20


def test_what_holds_nothing_of_what_is_asked_for_is_not_asked_about_where_that_is_not_told():
    """Queues have shares of GPUs alone, and what runs on CPU is the cheapest; what is found is the same."""
    asks = {"cpu": spec(cpu=1), "gpu": spec(cpu=1, gpu=1)}
    running = [
        workload(f"{kind}{n}", of=of, on=["n0"], queue="rich", running=60) for kind, of in asks.items() for n in "abc"
    ]
    waiting = workload("waits", of=spec(cpu=4, gpu=1), queue="poor")
    queues = [queue_of(name, guaranteed={"gpu": 1}) for name in ("rich", "poor")]
    session = session_of(cluster_of([node("n0", cpu=8, gpu=3)], [*running, waiting], queues))
    rules = ReclaimEligibility(session, Fairness(session).now(), session.workloads["default/waits"])
    found = {}
    for told in (True, False):
        refusals, usable = usable_for(session, rules)
        usable.told = told
        index = CandidateIndex(session, all_of(session), usable.could_serve, usable.refused)
        found[told] = [p.workload.key for p in index.ordered()], [key for key, _ in refusals]
    assert found[True][0] == found[False][0]
    assert sorted(found[True][0]) == [f"default/gpu{n}" for n in "abc"]
    assert [key[:-1] for key in found[True][1]] == ["default/cpu"]
    assert found[False][1] == []


def test_what_scenarios_share_of_a_leaf_is_what_a_gatherer_finds_there():
    """For a contender of another queue from which nothing is kept back; in a scenario, and once that is undone."""
    used = []
    for seed in range(40):
        session = session_of(contended(seed))
        holdings, pieces, plugins = PreemptibleUsage(session), piece_memo(session), EvictionPlugins([]).without_times()
        memo = leaf_memo(session, holdings, pieces)

        def compare(session=session, holdings=holdings, pieces=pieces, plugins=plugins, memo=memo):
            shares = Fairness(session).now()
            for contender in session.waiting.all():
                rules = ReclaimEligibility(session, shares, contender)
                alone, sharing = (
                    CandidateGatherer(session, plugins, holdings, detailed=False, known=pieces) for _ in "ab"
                )
                sharing.whole = lambda leaf: used.append(leaf) or memo(leaf)
                found, shared = (g.gather(rules).candidate_leaves for g in (alone, sharing))
                assert list(map(said, found)) == list(map(said, shared))

        compare()
        running = [w for _, w in sorted(session.workloads.items()) if w.leaf >= 0 and w.occupied()]
        with session.scenario():
            evict_all(session, [t for w in running[::2] for t in w.placed() if t.active])
            for workload in running[::2]:
                session.refresh(workload)
            compare()
        compare()
    assert len(used) > 100


@pytest.mark.parametrize("cause", ["reclaim", "preempt", "consolidate", "requeue"])
def test_contenders_share_what_each_of_them_finds_alone(cause):
    """Whoever asked first: queues and priorities decide who may be taken for whom."""
    found = 0
    for seed in range(150):
        session = session_of(drawn(seed))
        holdings, plugins, shares = PreemptibleUsage(session), EvictionPlugins([]), Fairness(session).now()
        shared = CandidateGatherer(session, plugins, holdings, detailed=False)
        for contender in session.waiting.all():
            rules = RULES[cause](session, shares, contender)
            alone = CandidateGatherer(session, plugins, holdings, detailed=False).gather(rules).candidate_leaves
            together = shared.gather(rules).candidate_leaves
            assert [said(leaf)[:3] for leaf in together] == [said(leaf)[:3] for leaf in alone], seed
            found += any(map(len, alone))
    assert found > 50


def said(leaf: LeafCandidates):
    """What is to be had of a leaf, and who is refused there."""
    pieces = [(p.workload.key, p.tasks, p.cost, p.amount) for p in leaf.all()]
    return leaf.leaf, leaf.level, pieces, [(w.key, r) for w, r in leaf.refused], leaf.shielded
