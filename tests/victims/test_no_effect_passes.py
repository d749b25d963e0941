"""A pass that helped no contender is not made again while nothing has changed: all is decided as if it were."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, seed, settings
from tests.effort import tries
from tests.shields.test_lost_work import contending

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
