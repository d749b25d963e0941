"""Plans found part by part: right, no dearer than the greedy ones, the same each time, and honest about the bound."""

import pytest
from tests.effort import THOROUGH, tries

from tenure.rescheduler import planner
from tenure.rescheduler.check.plan import check
from tenure.rescheduler.heuristic.greedy import greedy
from tenure.rescheduler.milp import decompose
from tenure.rescheduler.milp.cover_bounds import CoverBounds
from tenure.rescheduler.milp.decompose import Decomposition, part_of
from tenure.rescheduler.planner import make_room

from .problems import PATIENT, cheapest_by_force, random_problem
from .test_planner import large


@pytest.fixture
def by_parts(monkeypatch):
    monkeypatch.setattr(planner, "LARGE", 0)
    monkeypatch.setattr(planner, "MOST_COLUMNS", 0)
    monkeypatch.setattr(planner, "greedy", lambda problem, covers, _: greedy(problem, covers, 1))
    monkeypatch.setattr(decompose, "PART", 50)


@pytest.mark.usefixtures("by_parts")
def test_large_plans_by_parts_lie_between_bound_and_greedy(solver):
    """200 nodes in parts of 50: never below the optimum, never above the greedy plan, checked, twice the same."""
    improved = 0
    for seed in range(tries(3, 6)):
        asked = large(seed)
        quick = greedy(asked, [CoverBounds(asked, a) for a in asked.asks], 1)
        answer = make_room(asked, solver, PATIENT)
        if not seed or THOROUGH:
            again = make_room(asked, solver, PATIENT)
            assert (answer.moves, answer.certificate) == (again.moves, again.certificate)
        assert not check(asked, answer)
        certificate = answer.certificate
        assert certificate.lower_bound <= certificate.cost
        assert (certificate.method == "decomposed") == (certificate.lower_bound < certificate.cost)
        if quick is not None:
            assert certificate.cost <= quick[0]
            improved += certificate.cost < quick[0]
    assert improved


@pytest.mark.usefixtures("by_parts")
def test_small_plans_by_parts_are_right(solver):
    """Cores, budgets and racks: what is found is a plan, and none is found where there is none."""
    found = 0
    for seed in range(60):
        asked = random_problem(seed)
        answer = make_room(asked, solver, PATIENT)
        assert not check(asked, answer), seed
        least = cheapest_by_force(asked)
        if least is None:
            assert not answer.feasible
        elif answer.feasible:
            found += 1
            assert answer.certificate.lower_bound <= least <= answer.certificate.cost
    assert found > 10


def test_members_are_dealt_out_where_the_greedy_plan_found_nothing(solver, monkeypatch):
    """Parts of 50 nodes, each with some of the gang: a plan of the whole."""
    monkeypatch.setattr(decompose, "PART", 50)
    asked = large(1)
    covers = [CoverBounds(asked, a) for a in asked.asks]
    found = Decomposition(asked, covers, solver, 60.0).run(None)
    assert found is not None
    assert len(found[2]) == 8
    assert found[0] >= int(covers[0].total[-1])


def test_a_core_that_reaches_beyond_a_part_stays():
    """Half of it must not be moved as if it were all."""
    for seed in range(30):
        asked = random_problem(seed)
        part = part_of(asked, asked.node[:1], [0] * len(asked.asks), [0] * len(asked.bounds), asked.domain)
        for unit in set(part.problem.unit.tolist()) - {-1}:
            assert (part.problem.unit == unit).sum() == (asked.unit == unit).sum()
