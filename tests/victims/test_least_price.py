"""The least price of any set is a bound: no set that is found costs less."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import cluster, node, spec, workload
from tests.effort import tries
from tests.properties.contention import contended

from tenure.engine.cost import MICRO
from tenure.engine.session import Session
from tenure.engine.snapshot import session_of
from tenure.model.settings import Settings
from tenure.shields.plugins import EvictionPlugins
from tenure.victims.candidates import CandidateGatherer
from tenure.victims.least_price import least_price
from tenure.victims.preemptible_usage import PreemptibleUsage
from tenure.victims.room_bounds import RoomDemand
from tenure.victims.rules import ConsolidateRules


def found_for(session: Session, contender):
    rules = ConsolidateRules(session, contender)
    gatherer = CandidateGatherer(session, EvictionPlugins([]), PreemptibleUsage(session))
    return gatherer.gather(contender, rules)


@given(st.integers(0, 1 << 32))
@settings(max_examples=tries(150, 1500), deadline=None)
def test_no_set_that_makes_room_is_cheaper(seed):
    """All sets of pieces are tried."""
    session = session_of(replace(contended(seed), settings=Settings()))
    for contender in session.workloads.values():
        if contender.step is None or contender.entry is None:
            continue
        need, candidates = RoomDemand(session, contender.step), found_for(session, contender)
        bound = least_price(need, candidates)
        pieces = list(candidates.all())[:10]
        if need.met(()):
            assert bound == 0
        every = chain.from_iterable(combinations(pieces, n) for n in range(len(pieces) + 1))
        for chosen in every:
            if need.met(chosen):
                assert bound <= sum(p.cost for p in chosen) + 1


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
    assert least_price(RoomDemand(session, contender.step), found_for(session, contender)) == (120 + 180) * MICRO
