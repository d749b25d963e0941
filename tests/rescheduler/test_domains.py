"""Required topology in plans: groups under one value, groups of groups, and what is placed already."""

from itertools import product

import numpy as np
import pytest
from tests.builders import NOW, cluster, node, queue, spec, task, workload

from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.selectors import Topology
from tenure.model.settings import ExactSettings, ReschedulerSettings
from tenure.model.workload import SubGroup
from tenure.rescheduler.check.plan import check
from tenure.rescheduler.milp.solver import ProcessSolver
from tenure.rescheduler.planner import make_room
from tenure.rescheduler.problem.definition import DomainFamily

from .problems import PATIENT, problem

RACK, ZONE = Topology(required="rack"), Topology(required="zone", preferred="row")


def racks():
    """Two zones of two racks with one node of 4 each, and a node elsewhere where only small pods fit."""
    made = [node(f"n{i}", cpu=4, labels={"rack": f"r{i}", "zone": f"z{i // 2}"}) for i in range(4)]
    return [*made, node("spare", cpu=3, labels={"rack": "s", "zone": "s"})]


def in_groups(topology):
    subs = tuple(SubGroup(name=g, topology=RACK) for g in "ab")
    tasks = [task(f"big-{g}{i}", spec(cpu=2), sub_group=g) for g in "ab" for i in range(2)]
    return workload("big", tasks=tasks, sub_groups=subs, topology=topology, age=600)


def small(ages):
    return [workload(f"p{i}", of=spec(cpu=1), on=[f"n{i}"], running=age, age=age + 10) for i, age in enumerate(ages)]


def moved(topology, *, exact):
    settings = ReschedulerSettings(exact=ExactSettings(enabled=exact))
    made = cluster(racks(), [*small([100, 3000, 100, 2000]), in_groups(topology)], [queue("default")],
                   actions=("allocate", "reschedule"), rescheduler=settings)  # fmt: skip
    plan = Scheduler(session_of(made)).cycle(NOW)
    (found,) = plan.moves
    assert found.cost is not None
    nominated_to = {s.task: s.node for s in plan.steps if s.action == "nominate" and s.workload == "default/big"}
    return {s.workload for wave in found.waves for s in wave}, nominated_to


@pytest.mark.parametrize("exact", [True, False])
def test_each_subgroup_lands_in_one_rack_and_all_of_them_in_one_zone(exact):
    """The two cheapest racks are in different zones: with a required zone the dearer pair is cleared."""
    freely, nominated_to = moved(None, exact=exact)
    assert freely == {"default/p0", "default/p2"}
    under_one, nominated_to = moved(ZONE, exact=exact)
    assert under_one == {"default/p2", "default/p3"}
    assert nominated_to["big-a0"] == nominated_to["big-a1"] != nominated_to["big-b0"] == nominated_to["big-b1"]


def families(seed):
    """Two asks of one member each that need a node of their own, racks within zones, in one zone together."""
    rng = np.random.default_rng(seed)
    free = [[int(f)] for f in rng.integers(0, 3, 6)]
    tasks = [(0, n, int(rng.integers(1, 20))) for n in range(6) for _ in range(int(rng.integers(1, 3)))]
    asked = problem(free, tasks, [(0, 1, 1), (1, 2, 1)], kinds=[[1], [3], [2]],
                    domain=[[0, 0, 1, 1, 2, 3], [0, 0, 1, 1, 2, 3]])  # fmt: skip
    object.__setattr__(asked, "families", (DomainFamily((0, 1), np.array([0, 0, 0, 1, 1, -1])),))
    return asked


def least_by_force(asked):
    """Two nodes of one zone, and every set of tasks that leaves, into whatever room there is in all."""
    best, zones = None, asked.families[0].domain
    for a, b in product(range(6), repeat=2):
        if zones[a] != zones[b] or zones[a] < 0:
            continue
        need = np.zeros(6, np.int64)
        need[a] += 3
        need[b] += 2
        short = np.maximum(0, need - asked.free[0])
        left = np.maximum(0, asked.free[0] - need)
        prices = [sorted(asked.cost[asked.node == n].tolist()) for n in range(6)]
        if any(short[n] > len(prices[n]) for n in range(6)) or short.sum() > left.sum():
            continue
        cost = sum(sum(prices[n][: short[n]]) for n in range(6))
        best = cost if best is None else min(best, cost)
    return best


def test_families_are_planned_exactly():
    """Against all pairs of nodes of one zone; with tasks of one size, room in all decides what lands."""
    outcomes = set()
    with ProcessSolver() as solver:
        for seed in range(40):
            asked = families(seed)
            answer = make_room(asked, solver, PATIENT)
            assert answer.certificate.cost == least_by_force(asked), seed
            assert not check(asked, answer)
            outcomes.add(answer.certificate.method)
            quick = make_room(asked, None)
            assert not check(asked, quick)
            if quick.feasible:
                assert quick.certificate.cost >= answer.certificate.cost
    assert "exact" in outcomes
