"""A simulation is woken where the rescheduler has to look at what waits, also if nothing else happens until then."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, cluster, node, queue, spec, steps, workload

from tenure.model.cluster import Eviction
from tenure.model.settings import BudgetRule, DisruptionSettings
from tenure.playthrough import play
from tenure.simulator.log import BIND
from tenure.simulator.run import Simulation, SimulationSetup
from tenure.simulator.traces.records import Trace, TraceJob

MINUTE = 60 * SECOND
HALF, WHOLE = spec(gpu=4), spec(gpu=8)
FEW = DisruptionSettings(budgets=(BudgetRule(name="few", max_evictions=1, per=10 * MINUTE),))


def halves(**settings):
    """Two nodes, of each of which half is used by what has run for a minute: one has to move for a whole node."""
    running = [workload(f"w{n}", of=HALF, on=[f"n{n}"], queue="q", age=60, running=60) for n in (0, 1)]
    nodes = [node(f"n{n}", gpu=8) for n in (0, 1)]
    return cluster(nodes, running, [queue("q")], **{"actions": ("allocate", "reschedule"), **settings})


def simulation_of(state, *jobs):
    """Make a simulation of jobs, each with the second at which it comes."""
    coming = [replace(item, created_at=at * SECOND) for at, item in jobs]
    trace = Trace(format="tenure", jobs=tuple(TraceJob(w, MINUTE, w.name) for w in coming), records=len(coming))
    return Simulation(SimulationSetup(state), trace)


def start_of_last(state, *jobs):
    """Simulate jobs, each with the second at which it comes, and give the second at which the last one starts."""
    log = simulation_of(state, *jobs).run().log
    last = len(log.workloads) - 1
    return next((e[1] // SECOND for e in log.events if e[0] == BIND and e[2] == last), None)


WAITS = workload("waits", of=WHOLE, queue="q")


def test_what_arrives_after_the_last_look_has_its_turn_once_it_has_waited_long_enough():
    """The first asks for both nodes, and gets nothing when it is looked at after a minute."""
    both = workload("both", tasks=2, of=WHOLE, queue="q")
    assert start_of_last(halves(), (10, both), (100, WAITS)) == 160


def test_what_has_not_enough_room_in_all_is_looked_at_in_time_once_it_has():
    """What holds half of the room that is missing ends before it has waited for long enough."""
    assert start_of_last(halves(), (70, workload("ends", of=HALF, queue="q")), (100, WAITS)) == 160


def test_nothing_is_decided_in_between_for_what_has_not_enough_room_in_all():
    """Moves make no room."""
    large, times = workload("large", tasks=3, of=WHOLE, queue="q"), []
    simulation = simulation_of(halves(), (100, large), (1000, workload("later", of=HALF, queue="q")))
    simulation.heard = lambda plan: times.append((plan.now - NOW) // SECOND)
    simulation.run()
    assert times == [0, 100, 1000, 1060]


@pytest.mark.parametrize(
    ("settings", "log", "start"),
    [
        ({}, (), 160),
        ({"preemption_delay": 10 * MINUTE}, (), 700),
        ({"preempt_min_runtime": 10 * MINUTE}, (), 540),
        ({"disruption": FEW}, (), 160),
        ({"disruption": FEW}, ("reclaim",), 600),
        ({}, ("reschedule",), 3600),
    ],
    ids=["nothing", "preemption delay", "minimum runtime", "budget", "budget that is used up", "settle"],
)
def test_what_waits_for_the_end_of_a_rule_gets_room_at_that_instant(settings, log, start):
    """Nothing arrives and nothing ends until then."""
    evictions = [Eviction(at=NOW, workload=f"default/w{n}", task=f"w{n}-0", cause=c) for n in (0, 1) for c in log]
    assert start_of_last(replace(halves(**settings), evictions=tuple(evictions)), (100, WAITS)) == start


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"preemption_policy": "Never"}, "NeverPreempts"), ({"preemption_delay": 20 * MINUTE}, "PreemptionDelay")],
)
def test_what_nothing_is_moved_for_says_so(fields, code):
    """Also where no other cause evicts."""
    state = halves()
    waits = workload("waits", of=WHOLE, queue="q", age=600, **fields)
    played = play(replace(state, workloads=(*state.workloads, waits)))
    assert steps(played) == []
    assert code in [r.code for p in played.pending for r in p.reasons]
