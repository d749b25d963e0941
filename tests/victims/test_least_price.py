"""The least price of any set is a bound: no set that is found costs less."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain, combinations
from operator import lt

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import cluster, node, spec, workload
from tests.effort import tries
from tests.properties.contention import contended

from tenure.engine.snapshot import session_of
from tenure.engine.state.cost import MICRO
from tenure.engine.state.session import Session
from tenure.model.settings import Settings
from tenure.shields.plugins import EvictionPlugins
from tenure.victims.bounds.least_price import PriceBound
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.candidates.gatherer import CandidateGatherer
from tenure.victims.candidates.preemptible_usage import PreemptibleUsage
from tenure.victims.rules.causes import ConsolidateRules


def found_for(session: Session, contender):
    rules = ConsolidateRules(session, contender)
    gatherer = CandidateGatherer(session, EvictionPlugins([]), PreemptibleUsage(session))
    return gatherer.gather(rules)


@given(st.integers(0, 1 << 32))
@settings(max_examples=tries(75, 1500), deadline=None)
def test_no_set_that_makes_room_is_cheaper(seed):
    """All sets of pieces are tried."""
    session = session_of(replace(contended(seed), settings=Settings()))
    for contender in session.workloads.values():
        if contender.step is None or contender.entry is None:
            continue
        need, candidates = RoomDemand(session, contender.step), found_for(session, contender)
        bound = PriceBound(need, candidates)
        pieces = list(candidates.all())[:10]
        prices = sorted({p.cost for p in pieces})
        if need.met(()):
            assert bound.least() == 0
        every = chain.from_iterable(combinations(pieces, n) for n in range(len(pieces) + 1))
        for chosen in every:
            if not need.met(chosen):
                continue
            price = sum(p.cost for p in chosen)
            assert bound.least(max((p.cost + 1 for p in chosen), default=1)) <= price + 1
            for most in prices:
                assert bound.least_if_paid(partial(lt, most)) <= price + 1


def test_the_bound_is_what_the_cheapest_node_costs():
    """Two GPUs are asked for: on one node two victims have run for 1 and 5 minutes, on the other two for 2 and 3."""
    gpu = spec(cpu=0, gpu=1)
    ages = {"a": (60, 300), "b": (120, 180)}
    running = [
        workload(f"{name}{age}", of=gpu, on=[name], age=age, running=age) for name, pair in ages.items() for age in pair
    ]
    waits = workload("waits", of=spec(cpu=0, gpu=2), age=60)
    session = session_of(cluster([node("a", gpu=2), node("b", gpu=2)], [*running, waits]))
    contender = session.workloads["default/waits"]
    assert PriceBound(RoomDemand(session, contender.step), found_for(session, contender)).least() == (120 + 180) * MICRO


def test_half_of_a_piece_that_is_too_dear_pays_nothing():
    """Four GPUs are asked for: half of what ran for 10 minutes on eight of them, or all of two that ran for longer."""
    large, small = spec(cpu=0, gpu=8), spec(cpu=0, gpu=2)
    running = [workload("large", of=large, on=["a"], age=600, running=600)]
    running += [workload(f"small{n}", of=small, on=["b"], age=800, running=800) for n in range(2)]
    waits = workload("waits", of=spec(cpu=0, gpu=4), age=60)
    session = session_of(cluster([node("a", gpu=8), node("b", gpu=4)], [*running, waits]))
    contender = session.workloads["default/waits"]
    bound = PriceBound(RoomDemand(session, contender.step), found_for(session, contender))
    assert bound.least() == 4 * 600 * MICRO
    assert bound.least_if_paid(partial(lt, 2500 * MICRO)) == 2 * 2 * 800 * MICRO


def test_each_task_of_a_gang_costs_room():
    """Three tasks of two GPUs are asked for; three nodes of two are taken by what ran for 1, 2 and 3 minutes."""
    two = spec(cpu=0, gpu=2)
    names = ("a", "b", "c")
    running = [workload(n, of=two, on=[n], age=60 * (1 + i), running=60 * (1 + i)) for i, n in enumerate(names)]
    waits = workload("waits", of=two, tasks=3, age=60)
    session = session_of(cluster([node(n, gpu=2) for n in names], [*running, waits]))
    contender = session.workloads["default/waits"]
    bound = PriceBound(RoomDemand(session, contender.step), found_for(session, contender))
    assert bound.least() == 2 * (60 + 120 + 180) * MICRO
