"""Plans that hold under all of the scheduler's rules: parts of GPUs by force, and constraints between tasks."""

from itertools import combinations, product

import numpy as np
import pytest
from tests.builders import NOW, cluster, node, queue, spec, task, workload

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.engine.state.cost import MICRO, cost
from tenure.model.selectors import Affinity, LabelSelector, PodAffinity, PodAffinityTerm
from tenure.model.settings import ExactSettings, ReschedulerSettings

MILLI = 1000


def parts(seed):
    """Two or three nodes of two GPUs with parts of them taken, and somebody who wants a whole one or a large part."""
    rng = np.random.default_rng(seed)
    nodes = 2 if rng.random() < 0.7 else 3
    free = np.full((nodes, 2), MILLI)
    made = []
    while len(made) < 5:
        number = len(made)
        milli, at, device = int(rng.choice([300, 400, 500, 700])), int(rng.integers(nodes)), int(rng.integers(2))
        if free[at, device] >= milli and (number >= 2 * nodes or free[at, device] == MILLI):
            free[at, device] -= milli
            running = int(rng.integers(100, 5000))
            of = spec(cpu=1, fraction=milli)
            made.append(workload(f"w{number}", tasks=(task("t", of, on=f"n{at}", devices=(device,)),),
                                 running=running, age=running + 10))  # fmt: skip
    big = spec(cpu=1, gpu=int(rng.integers(1, 3))) if rng.random() < 0.6 else spec(cpu=1, fraction=800)
    made.append(workload("big", of=big, age=600))
    return cluster([node(f"n{i}", cpu=32, gpu=2) for i in range(nodes)], made, [queue("default")],
                   actions=("allocate", "reschedule"))  # fmt: skip


def by_force(made):
    """Least cost after which the one that waits has its devices: every running task on every device there is."""
    session = session_of(made)
    running = [t for key in sorted(session.workloads) for t in session.workloads[key].tasks if t.node >= 0]
    (waiting,) = (t for key in session.workloads for t in session.workloads[key].tasks if t.node < 0)
    nodes = len(session.nodes)
    part = [int(t.cls.milli[0]) for t in running]
    price = [cost(session, t) for t in running]
    wanted = [MILLI] * waiting.cls.whole or [int(waiting.cls.milli[0])]
    best = None
    for where in product(range(2 * nodes), repeat=len(running)):
        moved = [n for n, t in enumerate(running) if where[n] // 2 != t.node]
        restacked = [n for n, t in enumerate(running) if where[n] // 2 == t.node and where[n] % 2 != t.devices[0]]
        free = np.full(2 * nodes, MILLI)
        for place, milli in zip(where, part, strict=True):
            free[place] -= milli
        total = sum(price[n] for n in moved)
        if restacked or (free < 0).any() or (best is not None and total >= best):
            continue
        if any(
            all(free[2 * n + d] >= w for d, w in zip(chosen, wanted, strict=True))
            for n in range(nodes)
            for chosen in combinations(range(2), len(wanted))
        ):
            best = total
    return best


@pytest.mark.parametrize("seed", range(40))
def test_parts_of_gpus_are_planned_exactly(seed):
    """The cost is the optimum over all devices of all nodes, and there is no plan exactly where there is none."""
    made = parts(seed)
    least = by_force(made)
    plan = Scheduler(session_of(made)).cycle(NOW)
    if least == 0:
        assert not plan.moves, "it fits as it is"
        return
    if least is None:
        assert all(m.cost is None and m.method != "unknown" for m in plan.moves)
        return
    (found,) = plan.moves
    assert round(found.cost * MICRO) == least
    assert found.method in {"exact", "cover"}
    embedded = EmbeddedCluster(made)
    embedded.carry_out(plan)
    for minute in range(1, 4):
        embedded.advance(NOW + minute * 60 * MICRO)
        embedded.carry_out(Scheduler(session_of(embedded.observe())).cycle(embedded.observe().now))
    assert all(t.phase == "Running" for w in embedded.observe().workloads for t in w.tasks)


def test_the_greedy_plan_knows_devices_as_well():
    """With the exact planner off, no plan is refused by the scheduler, and none is below the optimum."""
    found = 0
    for seed in range(40):
        made = parts(seed)
        settings = ReschedulerSettings(exact=ExactSettings(enabled=False))
        plan = Scheduler(session_of(cluster(made.nodes, made.workloads, made.queues, rescheduler=settings,
                                            actions=("allocate", "reschedule")))).cycle(NOW)  # fmt: skip
        least = by_force(made)
        for move in plan.moves:
            assert move.cost is None or (least is not None and round(move.cost * MICRO) >= least)
            found += move.cost is not None
    assert found


def app(name):
    return (("app", name),)


def apart(name):
    """Never on one node with another of that app."""
    term = PodAffinityTerm(topology_key="host", selector=LabelSelector(match_labels=app(name)))
    return Affinity(pod_anti=PodAffinity(required=(term,)))


def near(name):
    term = PodAffinityTerm(topology_key="host", selector=LabelSelector(match_labels=app(name)))
    return Affinity(pod=PodAffinity(required=(term,)))


def hosts(*cpus):
    return [node(f"n{i}", cpu=c, labels={"host": str(i)}) for i, c in enumerate(cpus)]


def reschedule(nodes, *workloads):
    return Scheduler(
        session_of(cluster(nodes, workloads, [queue("default")], actions=("allocate", "reschedule")))
    ).cycle(NOW)


def test_a_plan_that_anti_affinity_refuses_is_made_anew():
    """The cheap pod would have to go to where its like runs, so the dear one moves: dearer than the bound, and told."""
    lone = spec(cpu=4, labels=app("x"), affinity=apart("x"))
    plan = reschedule(
        hosts(8, 8, 4),
        workload("cheap", of=lone, on=["n0"], running=100, age=200),
        workload("other", of=lone, on=["n2"], running=9000, age=9100, preemptible=False),
        workload("like", of=spec(cpu=1, labels=app("x")), on=["n1"], running=9000, age=9100, preemptible=False),
        workload("dear", of=spec(cpu=3), on=["n1"], running=2000, age=2100),
        workload("big", of=spec(cpu=5), age=600),
    )
    (found,) = plan.moves
    assert [s.workload for wave in found.waves for s in wave] == ["default/dear"]
    assert found.method == "greedy"
    assert found.lower_bound < found.cost


def test_who_has_to_be_near_another_that_moves_lands_after_it():
    """Leader and follower leave together, the follower listed first."""
    lead = spec(cpu=2, labels=app("lead"))
    plan = reschedule(
        hosts(8, 8),
        workload("a-follower", of=spec(cpu=2, affinity=near("lead")), on=["n0"], running=100, age=200),
        workload("lead", of=lead, on=["n0"], running=100, age=200),
        workload("stays", of=spec(cpu=4), on=["n1"], running=900, age=1000, preemptible=False),
        workload("big", of=spec(cpu=8), age=600),
    )
    (found,) = plan.moves
    assert {(s.workload, s.target) for wave in found.waves for s in wave} == {
        ("default/a-follower", "n1"), ("default/lead", "n1"),
    }  # fmt: skip


def test_what_affinity_alone_makes_impossible_is_not_called_proven():
    """The bound of the problem without it stands, and nothing is ruled out."""
    lone = spec(cpu=4, labels=app("x"), affinity=apart("x"))
    plan = reschedule(
        hosts(8, 8),
        workload("one", of=lone, on=["n0"], running=100, age=200),
        workload("two", of=lone, on=["n1"], running=100, age=200),
        workload("big", of=spec(cpu=8), age=600),
    )
    (found,) = plan.moves
    assert (found.cost, found.method) == (None, "unknown")
    assert not [s for s in plan.steps if s.action == "evict"]
