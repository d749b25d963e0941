"""New nodes, hot nodes, background: what each moves, what none of them may do, and that all of it dies out."""

import gc
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import NOW, SECOND, cluster, node, queue, spec, task, workload
from tests.effort import tries

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.cluster import Eviction
from tenure.model.selectors import Topology
from tenure.model.settings import (
    BackgroundSettings,
    BudgetRule,
    DisruptionSettings,
    HotNodeSettings,
    NewNodeSettings,
    ReschedulerSettings,
)
from tenure.playthrough import play
from tenure.rescheduler.milp.solver import ProcessSolver
from tenure.rescheduler.problem.utilization import share_of

MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
ACTIONS = ("allocate", "reschedule")
NEW = ReschedulerSettings(new_nodes=NewNodeSettings(enabled=True))
HOT = ReschedulerSettings(hot_nodes=HotNodeSettings(enabled=True))


def packing(least=1e-4, goal="pack"):
    return ReschedulerSettings(background=BackgroundSettings(interval=HOUR, objective=goal, min_gain=least))


def moves(played):
    return sorted((s.task, s.node, s.to) for s in played.steps if s.action == "evict")


def full_nodes(*, new_for=600, **settings):
    """Two nodes full of pods of two cores, and a third that joined lately."""
    pods = [workload(f"w{i}", of=spec(cpu=2), on=["ab"[i % 2]], running=3600 + i, age=5000) for i in range(8)]
    joined = node("new", cpu=8, created_at=NOW - new_for * SECOND)
    return cluster([node("a", cpu=8), node("b", cpu=8), joined], pods, [queue("default")], actions=ACTIONS, **settings)


# -- new nodes -----------------------------------------------------------------------------------------------------


def test_a_new_node_gets_a_fair_part_of_the_load_by_the_cheapest_pods():
    """Sixteen cores on three nodes: two pods move, one from each full node, the ones with least to lose."""
    played = play(full_nodes(rescheduler=NEW), cycles=5, every=MINUTE)
    assert moves(played) == [("w0-0", "a", "new"), ("w1-0", "b", "new")]
    (plan,) = played.moves
    assert plan.trigger == "new-nodes"
    assert plan.gain == pytest.approx(0.05 * (8 + 8 - (36 + 36 + 16) / 8)), "sum of used squared over size, in cores"
    assert plan.bound >= plan.net == plan.gain


def test_a_node_is_new_for_so_long_and_no_longer():
    """`within` is an hour."""
    assert not play(full_nodes(new_for=3600, rescheduler=NEW)).steps
    assert play(full_nodes(new_for=3599, rescheduler=NEW)).steps


def test_new_nodes_follow_the_objective_of_the_background():
    """Who packs does not spread to new nodes, so that the two never undo each other."""
    both = replace(packing(), new_nodes=NewNodeSettings(enabled=True))
    assert not play(full_nodes(rescheduler=both), cycles=3, every=MINUTE).steps


# -- hot nodes -----------------------------------------------------------------------------------------------------


def heated(*, used=(7600, 2500), each=2500, lasts=360, share=0.9, **settings):
    """Node a holds three pods of two cores that use 2.5 each; node b one; c has no reading and no room."""
    pods = [
        workload(
            f"w{i}", tasks=[task(f"w{i}-0", spec(cpu=2), on=n, usage={"cpu": each})], running=600 * (i + 1), age=9000
        )
        for i, n in enumerate("aaab")
    ]
    fixed = workload("c", of=spec(cpu=8), on=["c"], running=100, age=200, preemptible=False)
    nodes = [
        node(n, cpu=8, usage={"cpu": u}, usage_for=lasts * SECOND) for n, u in zip("ab", used, strict=True)
    ]  # fmt: skip
    rescheduler = settings.pop("rescheduler", ReschedulerSettings(hot_nodes=HotNodeSettings(enabled=True, hot=share)))
    return cluster([*nodes, node("c", cpu=8)], [*pods, fixed], [queue("default")], actions=ACTIONS,
                   rescheduler=rescheduler, **settings)  # fmt: skip


def test_a_hot_node_is_cooled_by_the_cheapest_pod_that_suffices_and_no_other_becomes_hot():
    """The youngest pod goes; afterwards nobody is hot, and for an hour nothing moves again."""
    played = play(heated(), cycles=60, every=MINUTE)
    assert moves(played) == [("w0-0", "a", "b")]
    assert {n.name: n.usage["cpu"] for n in played.after.nodes if n.usage} == {"a": 5100, "b": 5000}
    (plan,) = played.moves
    assert (plan.trigger, plan.method, plan.cost) == ("hot-node", "cover", 60)


@pytest.mark.parametrize(
    ("what", "case"),
    [
        ("it is not hot for long enough", {"lasts": 299}),
        ("it is not beyond the limit", {"used": (7200, 2500)}),
        ("no pod on it uses as much as it asked for", {"each": 1999}),
        ("its load would make the other node hot", {"used": (7600, 4800)}),
    ],
)
def test_nobody_moves_off_a_node(what, case):
    """Each condition of the trigger alone, and the one on where to."""
    assert not moves(play(heated(**case))), what


@pytest.mark.parametrize(
    ("seen", "asked", "goes"), [(4700, 1, True), (4701, 1, False), (None, 4.7, True), (None, 5, False)]
)
def test_a_node_without_a_reading_is_in_use_by_what_its_tasks_use_or_else_ask_for(seen, asked, goes):
    """Of 8 cores 7.2 may be in use on b, which nobody has read; what would cool node a uses 2.5."""
    made = heated()
    fixed = [task("d-0", spec(cpu=asked), on="b", usage=None if seen is None else {"cpu": seen})]
    pods = [w for w in made.workloads if w.name not in ("w3", "c")]
    pods.append(workload("d", tasks=fixed, running=100, age=200, preemptible=False))
    a, b, _ = made.nodes
    made = replace(made, nodes=(a, replace(b, usage=None, usage_for=None)), workloads=tuple(pods))
    assert moves(play(made)) == ([("w0-0", "a", "b")] if goes else [])


def test_a_share_that_is_no_binary_fraction_is_as_it_is_written():
    """29% of 100 cores are 29 cores, and what uses as much is not above that."""
    assert share_of(0.29, 100_000) == 29_000
    assert [share_of(p / 100, 96_000) for p in range(1, 100)] == [960 * p for p in range(1, 100)]
    assert share_of(2 / 3, 1000) == 666


def test_what_cannot_be_cooled_enough_is_cooled_as_far_as_it_goes():
    """Two pods would have to leave, one finds a place: that one goes, and the certificate says so."""
    played = play(heated(used=(8000, 4600), share=0.6))
    assert not moves(played), "4.8 cores are the limit there: 2.5 more do not fit"
    played = play(heated(used=(8000, 2000), share=0.6))
    assert len(moves(played)) == 1
    assert not played.moves[0].feasible


def test_a_node_off_which_something_has_just_moved_is_not_hot_until_it_is_read_anew():
    """The reading may be older than the move: for as long as it would have to be hot, it counts for nothing."""
    gone = Eviction(at=NOW - 100 * SECOND, workload="default/x", task="x-0", cause="reschedule", from_node="a")
    assert not moves(play(replace(heated(), evictions=(gone,))))
    assert moves(play(replace(heated(), evictions=(replace(gone, at=NOW - 301 * SECOND),))))


def test_no_other_trigger_makes_a_node_hot():
    """Room is made for what waits by a pod that goes where there is little use, though another node comes first."""
    pods = [workload("old", tasks=[task("old-0", spec(cpu=4), on="a", usage={"cpu": 3000})], running=100, age=200),
            workload("big", of=spec(cpu=8), age=600)]  # fmt: skip
    nodes = [node("a", cpu=8), node("b", cpu=7, usage={"cpu": 6000}, usage_for=0), node("c", cpu=7)]
    made = cluster(nodes, pods, [queue("default")], actions=ACTIONS)
    assert moves(play(made)) == [("old-0", "a", "b")]
    assert moves(play(replace(made, settings=replace(made.settings, rescheduler=HOT)))) == [("old-0", "a", "c")]


@pytest.mark.parametrize(("read", "expected"), [(True, [("old-0", "a", "b"), ("sleeper-0", "b", "c")]), (False, [])])
def test_a_node_is_no_cooler_by_what_leaves_it_unless_that_was_seen_to_use_it(read, expected):
    """The sleeper makes room for `old` on b: 0.9 of 7.2 cores are in use there, and whether by it a reading says."""
    sleeps = task("sleeper-0", spec(cpu=4), on="b", usage={"cpu": 900} if read else None)
    pods = [workload("old", tasks=[task("old-0", spec(cpu=5), on="a", usage={"cpu": 7000})], running=100, age=200),
            workload("sleeper", tasks=[sleeps], running=100, age=200),
            workload("fixed", of=spec(cpu=1), on=["b"], running=100, age=200, preemptible=False),
            workload("big", of=spec(cpu=8), age=600)]  # fmt: skip
    nodes = [node("a", cpu=8), node("b", cpu=8, usage={"cpu": 900}, usage_for=0), node("c", cpu=4)]
    assert moves(play(cluster(nodes, pods, [queue("default")], actions=ACTIONS, rescheduler=HOT))) == expected


# -- background ----------------------------------------------------------------------------------------------------


def scattered(rescheduler, **settings):
    """Three nodes of 8 with 2, 2 and 3 GPUs in use, and one with work that must not move."""
    pods = [workload(n, of=spec(cpu=1, gpu=g), on=[w], running=r, age=8000)
            for n, g, w, r in (("x", 2, "a", 100), ("y", 2, "b", 200), ("z", 3, "c", 300))]  # fmt: skip
    pods.append(workload("f", of=spec(cpu=1, gpu=4), on=["d"], running=100, age=200, preemptible=False))
    return cluster([node(n, cpu=8, gpu=8) for n in "abcd"], pods, [queue("default")], actions=ACTIONS,
                   rescheduler=rescheduler, **settings)  # fmt: skip


def test_packing_empties_nodes_and_proves_that_no_moves_leave_more():
    """Two nodes become free, by the two cheapest pods; a node counts its cores and half of its GPUs beyond them."""
    played = play(scattered(packing()), cycles=150, every=MINUTE)
    assert moves(played) in ([("x-0", "a", "c"), ("y-0", "b", "c")], [("x-0", "a", "d"), ("y-0", "b", "d")])
    (plan,) = played.moves
    assert (plan.method, plan.gap) == ("exact", 0.0)
    assert plan.gain == pytest.approx(2 * (8 * 0.05 + 8 / 2))


def test_cycles_that_follow_each_other_start_one_solver(monkeypatch):
    """Each knows nothing of the one before, whose session may still be there: it leaves the solver all the same."""
    started, launch = [], ProcessSolver._launch

    def launched(solver):
        before = solver._process
        launch(solver)
        started.append(solver._process is not before)

    monkeypatch.setattr(ProcessSolver, "_launch", launched)
    gc.disable()
    try:
        play(scattered(packing()), cycles=9, every=HOUR)
    finally:
        gc.enable()
    assert len(started) > 3
    assert sum(started) <= 1


@pytest.mark.parametrize(("least", "count"), [(0.0214, 1), (0.0107, 2), (0.0215, 0)])
def test_only_what_pays_for_its_disruption_is_moved(least, count):
    """Emptying a node gains 4.4; moving x costs 205 and y 410 weighted resource-seconds."""
    assert len(moves(play(scattered(packing(least))))) == count


def test_beside_parts_of_gpus_whatever_moves_gets_as_many_devices_as_it_asks_for():
    """Where devices are told apart, a class has many shapes; one of another class would be somebody else's devices."""
    asked = {"a": (spec(gpu=2), (1, 4)), "b": (spec(gpu=1), (7,)), "part": (spec(fraction=500), (3,))}
    pods = [workload(name, tasks=[task(f"{name}-0", of, on="a", devices=devices)], running=100, age=8000)
            for name, (of, devices) in asked.items()]  # fmt: skip
    stays = task("f-0", spec(gpu=4), on="d", devices=(4, 5, 6, 7))
    pods.append(workload("f", tasks=[stays], running=100, age=200, preemptible=False))
    played = play(cluster([node(n, cpu=8, gpu=8) for n in "ad"], pods, [queue("default")], actions=ACTIONS,
                          rescheduler=packing()), cycles=150, every=MINUTE)  # fmt: skip
    given = {s.task.removesuffix("-0"): len(s.devices) for s in played.steps if s.action == "nominate"}
    assert given == {"a": 2, "b": 1, "part": 1}


def test_what_others_were_evicted_for_is_not_evicted_itself_for_a_better_layout():
    """It was placed and paid for lately; once `settle` is over it moves like any other."""
    made = scattered(packing())
    gone = Eviction(at=NOW - HOUR + SECOND, workload="default/v", task="v-0", cause="preempt", beneficiary="default/x")
    assert "x-0" not in {name for name, _, _ in moves(play(replace(made, evictions=(gone,))))}
    before = replace(gone, at=NOW - HOUR)
    assert (
        moves(play(replace(made, evictions=(before,)))) == moves(play(made)) == [("x-0", "a", "d"), ("y-0", "b", "d")]
    )


def test_for_whom_others_were_evicted_since_a_session_was_made_is_kept_from_cycle_to_cycle():
    """A simulation has no log of it."""
    contender = workload("p", of=spec(cpu=8), priority=100, age=30)
    full = [workload(f"v{n}", of=spec(cpu=8), on=[n], running=100, age=200) for n in "ab"]
    made = cluster([node("a", cpu=8), node("b", cpu=8)], [*full, contender], [queue("default")],
                   actions=("preempt", "reschedule"), rescheduler=packing())  # fmt: skip
    scheduler = Scheduler(session_of(made))
    assert [s.action for s in scheduler.cycle(NOW).steps] == ["evict", "nominate"]
    scheduler.session.now += HOUR - SECOND
    assert scheduler.context.rescheduling.helped_lately(scheduler.session, HOUR) == {"default/p": NOW + HOUR}
    scheduler.session.now += SECOND
    assert scheduler.context.rescheduling.helped_lately(scheduler.session, HOUR) == {}


def test_the_schedulers_own_placement_is_an_objective():
    """Binpack moves pods to fuller nodes; under spread the same layout is left alone."""
    placement = packing(1e-4, "placement")
    assert {to for _, _, to in moves(play(scattered(placement)))} == {"d"}
    assert not moves(play(scattered(placement, placement="spread")))


def test_the_interval_is_kept_across_restarts():
    """Every cycle here is a new process: the log says when the layout was last improved."""
    made = scattered(packing())
    just = Eviction(at=NOW - MINUTE, workload="default/q", task="q-0", cause="reschedule", from_node="a", to_node="b")
    assert not moves(play(replace(made, evictions=(just,))))
    assert moves(play(replace(made, evictions=(replace(just, at=NOW - HOUR),))))


def test_a_pod_stays_under_the_topology_of_its_gang():
    """The rack of the others has no better place, so it stays; without the gang's rule it moves."""

    def made(topology):
        nodes = [node(f"n{i}", cpu=8, labels={"rack": "ab"[i // 2]}) for i in range(4)]
        gang = workload("g", tasks=2, of=spec(cpu=1), on=["n0", "n1"], running=100, age=200, topology=topology)
        full = workload("full", of=spec(cpu=6), on=["n2"], running=100, age=200, preemptible=False)
        return cluster(nodes, [gang, full], [queue("default")], actions=ACTIONS, rescheduler=packing(1e-6, "placement"))

    assert {to for _, _, to in moves(play(made(None)))} == {"n2"}
    assert {to for _, _, to in moves(play(made(Topology(required="rack"))))} <= {"n0", "n1"}


def test_what_waits_and_would_fit_is_not_shut_out():
    """A workload that only its queue's max holds back keeps its place: the move that would fill it is not made."""
    pods = [workload("x", of=spec(cpu=4), on=["a"], running=100, age=200, queue="one"),
            workload("f", of=spec(cpu=4), on=["b"], running=100, age=200, queue="one", preemptible=False),
            workload("w", of=spec(cpu=4, node_selector=(("big", "y"),)), age=30, queue="two")]  # fmt: skip
    nodes = [node("a", cpu=8), node("b", cpu=8, labels={"big": "y"})]
    closed = [queue("one"), queue("two", max={"cpu": 1})]
    open_ = [queue("one"), queue("two")]
    settings = {"actions": ("reschedule",), "rescheduler": packing(1e-5)}
    assert not moves(play(cluster(nodes, pods, closed, **settings)))
    assert moves(play(cluster(nodes, pods[:2], open_, **settings))) == [("x-0", "a", "b")]


# -- settling ------------------------------------------------------------------------------------------------------


def log(at, origin, target, name="young-0"):
    return Eviction(at=at, workload="default/young", task=name, cause="reschedule", from_node=origin, to_node=target)


def pieces(*evictions, **fields):
    """A pod of 3 would have to move from b to a so that what waits fits."""
    return replace(cluster(
        [node("a", cpu=8), node("b", cpu=8)],
        [workload("old", of=spec(cpu=4), on=["a"], running=7200, age=8000, preemptible=False),
         workload("young", of=spec(cpu=3), on=["b"], running=600, age=8000, **fields),
         workload("big", of=spec(cpu=8), age=600)],
        [queue("default")], actions=ACTIONS,
    ), evictions=evictions)  # fmt: skip


@pytest.mark.parametrize(
    ("what", "evictions", "moved"),
    [
        ("nothing in the log", (), True),
        ("moved here within settle", (log(NOW - HOUR + SECOND, "a", "b"),), False),
        ("moved here longer ago", (log(NOW - HOUR, "a", "b"),), True),
        ("came back to its origin: twice as long", (log(NOW - HOUR, "b", "a"),), False),
        ("came back, and two hours are over", (log(NOW - 2 * HOUR, "b", "a"),), True),
        ("sent away twice from the same node", (log(NOW - 9 * HOUR, "b", "a"), log(NOW - 3 * HOUR, "b", "a")), False),
        ("an entry from the future counts as now", (log(NOW + HOUR, "a", "b"),), False),
    ],
)
def test_what_was_moved_settles_and_backs_off(what, evictions, moved):
    """All of it from the cluster's log."""
    assert bool(moves(play(pieces(*evictions)))) == moved, what


def test_a_replacement_under_another_name_inherits_the_history():
    """The pod that was moved has gone; the one that started on its target since then is its replacement."""
    gone = log(NOW - MINUTE, "a", "b", name="young-xyz")
    heir = [task("young-abc", spec(cpu=3), on="b", started_at=NOW - MINUTE // 2)]
    assert not moves(play(pieces(gone, tasks=heir)))
    older = [task("young-abc", spec(cpu=3), on="b", started_at=NOW - HOUR)]
    assert moves(play(pieces(gone, tasks=older)))


# -- all together, on random clusters ------------------------------------------------------------------------------


@st.composite
def busy(draw):
    """Nodes old and new, with readings and without; pods with and without usage; all triggers, in any combination."""
    count = draw(st.integers(2, 5))
    room = [8] * count
    made = []
    for number in range(draw(st.integers(1, 9))):
        cpu, tasks = draw(st.integers(1, 4)), draw(st.sampled_from([1, 1, 2]))
        places = []
        for _ in range(tasks):
            fits = [n for n in range(count) if room[n] >= cpu]
            if fits:
                places.append(draw(st.sampled_from(fits)))
                room[places[-1]] -= cpu
        if len(places) < tasks:
            for n in places:
                room[n] += cpu
            continue
        running = draw(st.integers(10, 5000))
        pods = [
            task(f"w{number}-{i}", spec(cpu=cpu), on=f"n{n}",
                 usage=draw(st.sampled_from([None, {"cpu": 900 * cpu}, {"cpu": 1200 * cpu}])))
            for i, n in enumerate(places)
        ]  # fmt: skip
        made.append(workload(f"w{number}", tasks=pods, running=running, age=running + 10,
                             preemptible=draw(st.sampled_from([None, None, False]))))  # fmt: skip
    if draw(st.booleans()):
        made.append(workload("big", tasks=draw(st.integers(1, 2)), of=spec(cpu=draw(st.integers(4, 8))), age=600))
    nodes = []
    for n in range(count):
        inside = sum(t.usage["cpu"] if t.usage else 0 for w in made for t in w.tasks if t.node == f"n{n}")
        fields = {"usage": {"cpu": inside}, "usage_for": HOUR} if draw(st.booleans()) else {}
        if draw(st.sampled_from([True, False, False])):
            fields["created_at"] = NOW - 10 * MINUTE
        nodes.append(node(f"n{n}", cpu=8, **fields))
    placement = draw(st.sampled_from(["binpack", "spread", "fragmentation"]))
    goal = draw(st.sampled_from(["placement", "spread" if placement == "spread" else "pack"]))
    every = draw(st.sampled_from([None, 5 * MINUTE]))
    least = draw(st.sampled_from([1e-5, 1e-3]))
    rescheduler = ReschedulerSettings(
        moves=draw(st.sampled_from(["evict-first", "reserve-first"])),
        background=BackgroundSettings(interval=every, objective=goal, min_gain=least),
        hot_nodes=HotNodeSettings(enabled=draw(st.booleans()), hot=0.7),
        new_nodes=NewNodeSettings(enabled=draw(st.booleans())),
    )
    rules = (
        BudgetRule(name="rate", max_evictions=draw(st.integers(0, 8)), per=10 * MINUTE),
        BudgetRule(name="down", max_unavailable=draw(st.integers(1, 4))),
    )
    return cluster(nodes, made, [queue("default")], actions=ACTIONS, placement=placement, rescheduler=rescheduler,
                   disruption=DisruptionSettings(budgets=rules))  # fmt: skip


@settings(deadline=None, max_examples=tries(20, 400))
@given(made=busy())
def test_all_triggers_together_keep_every_rule_at_every_instant_and_die_out(made):
    """Half an hour on the embedded cluster, every cycle a new process; an independent look after each step."""
    embedded = EmbeddedCluster(made)
    rate, down = made.settings.disruption.budgets
    running = {(w.key, t.name) for w in made.workloads for t in w.tasks if t.phase == "Running"}
    fixed = {(w.key, t.name): t.node for w in made.workloads if w.preemptible is False for t in w.tasks}
    hot = made.settings.rescheduler.hot_nodes
    counts = []
    for minute in range(30):
        if minute:
            embedded.advance(NOW + minute * MINUTE)
        before = embedded.observe()
        plan = Scheduler(session_of(before)).cycle(before.now)
        evictions = [s for s in plan.steps if s.action == "evict"]
        counts.append(len(evictions))
        assert all(s.to is not None and s.to != s.node for s in evictions), "every moved task has a place to land"
        if hot.enabled:
            _no_new_hot_node(before, evictions, hot.hot)
        embedded.carry_out(plan)
        _not_over_capacity(embedded.observe())
        assert sum(counts[-10:]) <= rate.max_evictions, "in every window of ten minutes"
        up = {(w.key, t.name) for w in embedded.observe().workloads for t in w.tasks if t.phase == "Running"}
        assert len(running - up) <= down.max_unavailable, "of what ran, so many are down at a time"
    assert not any(counts[-8:]), counts
    after = {(w.key, t.name): t for w in embedded.observe().workloads for t in w.tasks}
    assert all(after[key].phase == "Running" for key in running), "what ran before runs again"
    assert all(after[key].node == place for key, place in fixed.items() if place is not None)
    _nobody_went_back(embedded.observe())


def _not_over_capacity(state):
    used = dict.fromkeys((n.name for n in state.nodes), 0)
    for t in (t for w in state.workloads for t in w.tasks):
        if t.node is not None and t.phase in ("Bound", "Running", "Terminating"):
            used[t.node] += dict(t.spec.requests)["cpu"]
    assert all(used[n.name] <= n.allocatable["cpu"] for n in state.nodes)


def _no_new_hot_node(state, evictions, share):
    """What lands on a node leaves no more in use there than `share`; where nobody read it, its tasks say it."""
    if not any(n.usage for n in state.nodes):
        return
    usage = {(w.key, t.name): (t.usage or dict(t.spec.requests))["cpu"] for w in state.workloads for t in w.tasks}
    for n in state.nodes:
        comes = [usage[s.workload, s.task] for s in evictions if s.to == n.name]
        there = [usage[w.key, t.name] for w in state.workloads for t in w.tasks if t.node == n.name]
        if comes:
            assert (n.usage["cpu"] if n.usage else sum(there)) + sum(comes) <= share * n.allocatable["cpu"]


def _nobody_went_back(state):
    """Within the hour no task is where a move took it away from."""
    last = {(e.workload, e.task): e for e in state.evictions}
    for w in state.workloads:
        for t in w.tasks:
            if (w.key, t.name) in last:
                assert t.node == last[w.key, t.name].to_node != last[w.key, t.name].from_node
