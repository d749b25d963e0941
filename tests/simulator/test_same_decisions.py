"""A simulation without arrivals and ends decides what cycles on the same cluster decide, step by step."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import pytest
from tests.effort import tries
from tests.properties.adding_up import drawn, guarded, improved, played, priced

from tenure.simulator.run import Simulation, SimulationSetup
from tenure.simulator.traces.records import Trace

LONG = 1 << 50
CYCLES = 20
SECOND = 1_000_000


def decided(steps):
    """What steps say, but for what depends on the second in which they are decided."""
    return [(s.action, s.workload, s.task, s.node, s.devices, s.cause, s.beneficiary, s.to) for s in steps]


def simulated(state):
    """The steps of each plan of the first seconds of a simulation in which everything runs for ever."""
    plans = []
    forever = Trace(format="tenure", jobs=(), records=0, present={w.key: LONG for w in state.workloads})
    simulation = Simulation(SimulationSetup(state), forever)
    simulation.heard = plans.append

    def look(progress):
        if progress.now >= CYCLES * SECOND:
            raise KeyboardInterrupt

    simulation.run(look, every=1)
    return [decided(plan.steps) for plan in plans if plan.steps and plan.now < state.now + CYCLES * SECOND]


@pytest.mark.parametrize("kind", [drawn, priced, guarded, improved])
def test_a_simulation_decides_what_cycles_decide(kind):
    """Devices, worth, moves, quotas and budgets among them.

    Not notices, as it depends on the clock when they are judged anew, and not the rescheduler: a simulation remembers
    what it found no room for.
    """
    looked = evicting = 0
    for seed in range(tries(25, 600)):
        found = kind(seed)
        actions = tuple(action for action in found.settings.actions if action != "reschedule")
        state = replace(found, settings=replace(found.settings, eviction_notice=0, actions=actions))
        steps = played(state, CYCLES).steps
        assert simulated(state) == [decided(own) for _, own in groupby(steps, lambda s: s.cycle)], seed
        looked, evicting = looked + 1, evicting + any(s.action == "evict" for s in steps)
    assert evicting > looked // 5
