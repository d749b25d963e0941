"""A simulation is woken where the rescheduler has to look again, also if nothing else happens until then."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, cluster, node, queue, spec, steps, workload

from tenure.model.cluster import Eviction
from tenure.model.settings import (
    BackgroundSettings,
    BudgetRule,
    DisruptionSettings,
    NewNodeSettings,
    ReschedulerSettings,
)
from tenure.model.workload import Checkpoint
from tenure.playthrough import play
from tenure.simulator.log import BIND, EVICT
from tenure.simulator.run import Simulation, SimulationSetup
from tenure.simulator.traces.records import Trace, TraceJob

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
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


def moves(state):
    """Simulate a cluster to which nothing comes, and give the seconds at which something is moved."""
    return [e[1] // SECOND for e in simulation_of(state).run().log.events if e[0] == EVICT]


SETTLING = tuple(Eviction(at=NOW, workload=f"default/w{n}", task=f"w{n}-0", cause="reschedule") for n in (0, 1))
SERVED = tuple(
    Eviction(at=NOW, workload="default/gone", task="gone-0", cause="reclaim", beneficiary=f"default/w{n}")
    for n in (0, 1)
)
PROTECTED = {"reclaim_min_runtime": 91 * MINUTE}
WINDOW = BudgetRule(name="night", causes=("reschedule",), max_evictions=0, schedule="0 0 * * *", duration=12 * HOUR)


@pytest.mark.parametrize(
    ("log", "settings", "moved"),
    [((), {}, [0]), (SETTLING, {}, [3600]), (SERVED, {}, [3600]), ((), PROTECTED, [5400])],
    ids=["nothing", "settle", "others were evicted for it", "minimum runtime"],
)
def test_the_layout_is_improved_once_a_rule_ends_that_held_back_what_would_move(log, settings, moved):
    """And not by the first arrival after that, if there is any."""
    often = BackgroundSettings(interval=MINUTE, objective="pack", min_gain=1e-6)
    state = halves(rescheduler=ReschedulerSettings(background=often), **settings)
    assert moves(replace(state, evictions=log)) == moved


def test_the_layout_is_improved_when_the_interval_has_passed_since_something_happened():
    """A whole node's work ends after a minute; until then no move would have left a node free."""
    hourly = BackgroundSettings(interval=HOUR, objective="pack", min_gain=1e-6)
    full = workload("full", tasks=2, of=HALF, queue="q", on=["n0", "n1"], age=60, running=60, expected_runtime=120)
    state = halves(rescheduler=ReschedulerSettings(background=hourly))
    assert moves(replace(state, workloads=(*state.workloads, full))) == [3600]


def test_the_layout_is_looked_at_every_interval_while_work_makes_checkpoints():
    """It makes one every ten minutes, and has just made one after 49 minutes: then nothing is lost by a move."""
    often = BackgroundSettings(interval=7 * MINUTE, objective="pack", min_gain=1.0)
    state = halves(rescheduler=ReschedulerSettings(background=often))
    saving = [replace(w, checkpoint=Checkpoint(interval=10 * MINUTE)) for w in state.workloads]
    assert moves(replace(state, workloads=tuple(saving))) == [49 * 60]


@pytest.mark.parametrize(
    ("settings", "moved"),
    [({}, [0]), (PROTECTED, [5400]), ({"disruption": DisruptionSettings(budgets=(WINDOW,))}, [4 * 3600])],
    ids=["nothing", "minimum runtime", "window of a budget"],
)
def test_a_node_is_emptied_once_a_rule_ends_that_kept_what_is_there(settings, moved):
    state = halves(**settings)
    assert moves(replace(state, nodes=(replace(state.nodes[0], drain=True), state.nodes[1]))) == moved


@pytest.mark.parametrize(("minutes", "moved"), [(0, [0]), (31, [1800]), (91, [])])
def test_a_new_node_is_used_once_a_rule_ends_that_held_back_what_would_move_to_it(minutes, moved):
    """As long as it is new: it joined five minutes ago."""
    state = halves(
        rescheduler=ReschedulerSettings(new_nodes=NewNodeSettings(enabled=True)),
        reclaim_min_runtime=minutes * MINUTE,
    )
    together = [replace(w, tasks=tuple(replace(t, node="n0") for t in w.tasks)) for w in state.workloads]
    nodes = (state.nodes[0], replace(state.nodes[1], created_at=NOW - 5 * MINUTE))
    assert moves(replace(state, nodes=nodes, workloads=tuple(together))) == moved
