"""A pass that helped no contender is not made again while nothing has changed: all is decided as if it were."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, seed, settings
from tests.builders import NOW, SECOND
from tests.effort import tries
from tests.shields.test_lost_work import contending
from tests.shields.test_patience import HOUR, contended, patient

from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.settings import LossSettings, WorthSettings
from tenure.simulator.run import Simulation, SimulationSetup
from tenure.victims.passes.no_effect import NoEffect


@seed(3)  # among these are worlds in which an arrival lets an earlier contender be helped
@settings(max_examples=tries(20, 1000), derandomize=False)
@given(world=contending())
def test_a_simulation_is_the_same_where_each_pass_is_made(world):
    """Event by event: also where what was bound on a nomination stayed in the cycle in which nothing was found."""
    cluster, trace = world
    unbounded = WorthSettings(max_lost=LossSettings(workload=0, queue=0))
    setup = SimulationSetup(replace(cluster, settings=replace(cluster.settings, worth=unbounded)))
    found = Simulation(setup, trace).run().log.events
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NoEffect, "holds", lambda _: False)
        assert Simulation(setup, trace).run().log.events == found


@pytest.mark.parametrize("detailed", [False, True])
def test_a_cycle_that_comes_before_says_anew_when_the_pass_is_to_be_made_again(detailed):
    """It would pay after an hour; a minute later something else may ask for a cycle, which does not forget that."""
    given = contended((HOUR, {}), waited=0, **patient())
    scheduler = Scheduler(session_of(given))
    scheduler.context.detailed = detailed
    for at in (NOW, NOW + 60 * SECOND):
        plan = scheduler.cycle(at)
        assert (plan.steps, plan.wake) == ([], NOW + HOUR * SECOND)
    assert [s.workload for s in scheduler.cycle(plan.wake).steps if s.action == "evict"] == ["default/v0"]
