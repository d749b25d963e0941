"""The rescheduler on random clusters, cycle after cycle: it lands what it moves, keeps budgets, and dies out."""

from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import NOW, SECOND, cluster, node, queue, spec, workload
from tests.effort import tries

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.file.load import load_cluster
from tenure.model.settings import BudgetRule, DisruptionSettings, ReschedulerSettings
from tenure.playthrough import play
from tenure.rescheduler.problem.cooldown import rest

MINUTE = 60 * SECOND
PLACED = ("Bound", "Running", "Terminating")


@st.composite
def crowded(draw):
    """A few nodes of 8 cores with pods of 1 to 4, some of them in gangs, and one or two that wait."""
    count = draw(st.integers(2, 4))
    room = [8] * count
    made = []
    for number in range(draw(st.integers(1, 7))):
        cpu, tasks = draw(st.integers(1, 4)), draw(st.sampled_from([1, 1, 2]))
        nodes = []
        for _ in range(tasks):
            fits = [n for n in range(count) if room[n] >= cpu]
            if fits:
                nodes.append(draw(st.sampled_from(fits)))
                room[nodes[-1]] -= cpu
        if len(nodes) == tasks:
            running = draw(st.integers(10, 5000))
            made.append(workload(f"w{number}", tasks=tasks, of=spec(cpu=cpu), on=[f"n{n}" for n in nodes],
                                 running=running, age=running + 10))  # fmt: skip
        else:
            for n in nodes:
                room[n] += cpu
    made += [
        workload(f"big{number}", tasks=draw(st.integers(1, 2)), of=spec(cpu=draw(st.integers(4, 8))), age=600)
        for number in range(draw(st.integers(1, 2)))
    ]
    most = draw(st.integers(0, 6))
    rule = BudgetRule(name="rate", max_evictions=most, per=30 * MINUTE)
    mode = draw(st.sampled_from(["evict-first", "reserve-first"]))
    base = cluster(
        [node(f"n{i}", cpu=8) for i in range(count)], made, [queue("default")], actions=("allocate", "reschedule"),
        disruption=DisruptionSettings(budgets=(rule,)), rescheduler=ReschedulerSettings(moves=mode),
    )  # fmt: skip
    return base, most


@settings(deadline=None, max_examples=tries(20, 200))
@given(made=crowded())
def test_it_lands_what_it_moves_keeps_the_budget_and_dies_out(made):
    """Twelve minutes on the embedded cluster: each instant is looked at, and in the end nothing moves any more."""
    base, most = made
    embedded = EmbeddedCluster(base)
    running = {(w.key, t.name) for w in base.workloads for t in w.tasks if t.phase == "Running"}
    moved = []
    for minute in range(12):
        if minute:
            embedded.advance(NOW + minute * MINUTE)
        plan = Scheduler(session_of(embedded.observe())).cycle(embedded.observe().now)
        evictions = [s for s in plan.steps if s.action == "evict"]
        assert all(s.to is not None for s in evictions), "every moved task has a place to land"
        moved.append(len(evictions))
        embedded.carry_out(plan)
        _not_over_capacity(embedded.observe())
    assert sum(moved) <= most, "all of it happens within one window"
    assert not any(moved[-4:]), moved
    after = {(w.key, t.name): t for w in embedded.observe().workloads for t in w.tasks}
    assert all(after[key].phase == "Running" for key in running), "what ran before runs again"


def _not_over_capacity(state):
    used = dict.fromkeys((n.name for n in state.nodes), 0)
    for task in (t for w in state.workloads for t in w.tasks):
        if task.node is not None and task.phase in PLACED:
            used[task.node] += dict(task.spec.requests)["cpu"]
    assert all(used[n.name] <= n.allocatable["cpu"] for n in state.nodes)


def test_a_log_of_moves_keeps_a_pod_where_it_is():
    """Moved half an hour ago: it rests for an hour, and twice as long after a second move within two hours."""
    hour = 3600 * SECOND
    assert rest([0], hour) == hour
    assert rest([0, hour], hour) == 2 * hour
    assert rest([0, hour, 4 * hour], hour) == 4 * hour
    assert rest([0, 3 * hour], hour) == hour


def test_a_second_wave_waits_until_the_first_has_landed():
    """The plan is kept to: what was planned for the second wave goes then, and nothing dearer in its place."""
    made = load_cluster(Path(__file__).parents[2] / "examples/rescheduler/make-room.yaml").cluster
    made = replace(made, settings=replace(made.settings, actions=("allocate", "reschedule")))
    played = play(made, cycles=7, every=MINUTE)
    first = [s.task for wave in played.moves[0].waves for s in wave]
    assert [s.task for s in played.steps if s.action == "evict"] == first
    assert all(t.phase == "Running" for w in played.after.workloads for t in w.tasks)


def test_nothing_is_left_of_a_plan_that_the_budget_forbids():
    """A set that needs two and may have one is not started."""
    made = cluster(
        [node("a", cpu=8), node("b", cpu=8)],
        [workload("x", of=spec(cpu=2), on=["a"], running=100, age=200),
         workload("y", of=spec(cpu=2), on=["a"], running=100, age=200),
         workload("z", of=spec(cpu=3), on=["b"], running=100, age=200, preemptible=False),
         workload("big", of=spec(cpu=8), age=600)],
        [queue("default")], actions=("allocate", "reschedule"),
    )  # fmt: skip

    def evictions(most):
        rules = (BudgetRule(name="r", max_evictions=most, per=MINUTE),)
        changed = replace(made, settings=replace(made.settings, disruption=DisruptionSettings(budgets=rules)))
        plan = Scheduler(session_of(changed)).cycle(NOW)
        return sum(s.action == "evict" for s in plan.steps)

    assert evictions(1) == 0
    assert evictions(2) == 2
