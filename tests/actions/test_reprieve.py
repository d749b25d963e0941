"""What a plan as a whole does not need to evict stays (spec: choosing victims, "reprieve")."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, cluster, node, queue, spec, steps, task, workload
from tests.effort import tries

from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.engine.state.audit import audit
from tenure.model.settings import BudgetRule, DisruptionSettings
from tenure.model.workload import Phase, SubGroup
from tenure.playthrough import play

HOUR = 3600
CAUSES = ("reclaim", "preempt", "requeue")


def old(name, *, priority, size, on="n", tasks=1, gpu=False, **fields):
    """A workload of the queue ``q`` that has run for far longer than expected; ``on`` one, or a node each."""
    of, on = spec(cpu=0, gpu=size) if gpu else spec(cpu=size), [on] * tasks if isinstance(on, str) else on
    return workload(name, tasks=len(on), of=of, on=on, priority=priority, age=10 * HOUR, running=10 * HOUR,
                    expected_runtime=HOUR, queue="q", **fields)  # fmt: skip


def new(name, size, *, age, leaf, gpu=False):
    """A workload that is more urgent than all that runs."""
    return workload(name, of=spec(cpu=0, gpu=size) if gpu else spec(cpu=size), priority=10, age=age, queue=leaf)


def crowded(cause, *running, others=(), gpu=False, **settings):
    """One node that is full: ``first`` asks for 4 and ``second`` for 2 of what is on it."""
    leaf = "g" if cause == "reclaim" else "q"
    size = sum(dict(t.spec.requests)["nvidia.com/gpu" if gpu else "cpu"] for w in running for t in w.tasks)
    where = node("n", cpu=64, gpu=size) if gpu else node("n", cpu=size // 1000)
    queues = [queue("q"), queue("g", guaranteed={"gpu" if gpu else "cpu": 6})] if cause == "reclaim" else [queue("q")]
    asking = [new("first", 4, age=20, leaf=leaf, gpu=gpu), new("second", 2, age=10, leaf=leaf, gpu=gpu)]
    return cluster([where], [*running, *asking, *others], queues, actions=("allocate", cause), **settings)


def two(cause, **more):
    """``small`` goes for the first; ``large``, for the second, makes room for all but itself."""
    gpu = more.get("gpu", False)
    return crowded(cause, old("small", priority=1, size=4, gpu=gpu), old("large", priority=2, size=6, gpu=gpu), **more)


def evicted(played):
    return [(s.task, s.beneficiary) for s in played.steps if s.action in ("evict", "notice")]


@pytest.mark.parametrize("cause", CAUSES)
def test_who_would_have_its_place_back_is_not_evicted(cause):
    """Both contenders run, ``small`` has never stopped, and it is as if nothing had been decided about it."""
    given = two(cause)
    played = play(given, cycles=3)
    assert evicted(played) == [("large-0", "default/second")]
    assert {s.task for s in played.steps if s.action == "bind"} == {"first-0", "second-0"}
    before, after = (next(w for w in c.workloads if w.name == "small") for c in (given, played.after))
    assert before == after


def test_what_is_counted_of_requeue_tells_that_it_stays():
    played = play(two("requeue"))
    assert (played.requeue.committed, played.requeue.rolled_back) == (1, 1)
    assert {n.workload: n.committed for n in played.requeue.nominations} == {
        "default/large": True,
        "default/small": False,
    }
    assert set(played.requeue.not_before) == set(played.requeue.beneficiaries) == {"default/large"}


@pytest.mark.parametrize("cause", CAUSES)
def test_the_session_is_sound_and_goes_on(cause):
    """A session that is kept decides in the next cycle what a new one would decide: nothing."""
    session = session_of(two(cause))
    scheduler = Scheduler(session)
    assert {s.workload for s in scheduler.cycle(NOW).steps if s.action == "evict"} == {"default/large"}
    small = session.workloads["default/small"]
    assert audit(session) == []
    assert (small.started_at, small.last_evicted_at, small.not_before, small.evictions) == (
        NOW - 10 * HOUR * SECOND, None, None, 0,
    )  # fmt: skip
    assert scheduler.cycle(NOW + 1).steps == []


@pytest.mark.parametrize("cause", CAUSES)
def test_it_keeps_its_gpus_and_others_are_promised(cause):
    """``first`` was promised the GPUs of ``small``, and gets others of the same node."""
    session = session_of(two(cause, gpu=True))
    plan = Scheduler(session).cycle(NOW)
    assert audit(session) == []
    small = session.workloads["default/small"].tasks[0]
    promised = {s.workload: s.devices for s in plan.steps if s.action == "nominate"}
    assert {k: len(v) for k, v in promised.items()} == {"default/first": 4, "default/second": 2}
    assert len({*small.devices, *promised["default/first"], *promised["default/second"]}) == 4 + 4 + 2
    assert all(session.workloads[key].tasks[0].nominated_devices == devices for key, devices in promised.items())


@pytest.mark.parametrize("cause", CAUSES)
def test_who_is_served_before_it_gets_the_room(cause):
    """A third that asks for what is left over is ahead of ``small``: that one has gone for something."""
    leaf = "g" if cause == "reclaim" else "q"
    given = two(cause, others=[workload("third", of=spec(cpu=3), priority=5, age=5, queue=leaf)])
    assert {task for task, _ in evicted(play(given))} == {"small-0", "large-0"}


@pytest.mark.parametrize("cause", CAUSES)
def test_part_of_a_core_does_not_stay(cause):
    """There would be room for one of two tasks that run together or not at all."""
    given = crowded(cause, old("small", priority=1, size=2, tasks=2), old("large", priority=2, size=4))
    assert {task for task, _ in evicted(play(given))} == {"small-0", "small-1", "large-0"}


def apart(cause, small, *others, first=4, selector=()):
    """``small`` and ``large`` are on two nodes; ``first`` asks for all of one, ``second`` for 3 of the other."""
    leaf = "g" if cause == "reclaim" else "q"
    nodes = [node("a", cpu=first, labels={"disk": "ssd"}), node("b", cpu=8), *(node(n, cpu=2) for n in "cd")]
    asking = workload("first", of=spec(cpu=first, node_selector=selector), priority=10, age=20, queue=leaf)
    floor = queue("g", guaranteed={"cpu": 7})
    running = [small, old("large", priority=2, size=8, on="b"), *others]
    return cluster(nodes, [*running, asking, new("second", 3, age=10, leaf=leaf)], [queue("q"), floor],
                   actions=("allocate", cause))  # fmt: skip


FULL = (old("c", priority=5, size=2, on="c"), old("d", priority=5, size=2, on="d"))
"""What keeps the two small nodes busy, and is dearer than all else."""


@pytest.mark.parametrize("cause", CAUSES)
def test_who_would_run_again_elsewhere_is_not_evicted(cause):
    """``first`` gets room of ``large``, to which ``small`` would have had to go."""
    given = apart(cause, old("small", priority=1, size=4, on="a"), *FULL)
    played = play(given, cycles=3)
    assert evicted(played) == [("large-0", "default/second")]
    assert {(s.task, s.node) for s in played.steps if s.action == "bind"} == {("first-0", "b"), ("second-0", "b")}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_gang_that_would_be_back_in_part_and_elsewhere_in_part_stays(cause):
    given = apart(cause, old("small", priority=1, size=2, on=["a", "c"]), FULL[1], first=2)
    played = play(given, cycles=3)
    assert [task for task, _ in evicted(played)] == ["large-0"]
    assert {(s.task, s.node) for s in played.steps if s.action == "bind"} == {("first-0", "b"), ("second-0", "b")}


@pytest.mark.parametrize("cause", CAUSES)
def test_who_has_to_go_for_one_that_can_be_nowhere_else_is_evicted(cause):
    """Only one node has the disk that ``first`` asks for, so ``small`` begins again elsewhere."""
    given = apart(cause, old("small", priority=1, size=4, on="a"), *FULL, selector=(("disk", "ssd"),))
    played = play(given, cycles=3)
    assert {task for task, _ in evicted(played)} == {"small-0", "large-0"}
    assert ("first-0", "a") in {(s.task, s.node) for s in played.steps if s.action == "bind"}


@pytest.mark.parametrize("cause", CAUSES)
def test_surplus_that_would_be_back_stays(cause):
    """Of an elastic workload the surplus goes first: all of it for the first, and what is left over lets some stay."""
    small = old("small", priority=1, size=1, tasks=5, min_member=1)
    played = play(crowded(cause, small, old("large", priority=2, size=4)), cycles=3)
    gone = [task for task, _ in evicted(played)]
    assert {t for t in gone if t.startswith("small")} < {"small-1", "small-2", "small-3", "small-4"}
    assert "large-0" in gone
    assert not [s for s in played.steps if s.action == "bind" and s.task in gone]


@pytest.mark.parametrize("cause", ["reclaim", "preempt"])
def test_a_core_stays_without_the_surplus(cause):
    """All of an elastic workload goes for the first, and what the second leaves over is room for its core."""
    small = old("small", priority=1, size=2, tasks=2, min_member=1)
    played = play(crowded(cause, small, old("large", priority=2, size=5)), cycles=3)
    assert {task for task, _ in evicted(played)} == {"small-1", "large-0"}
    assert {s.task for s in played.steps if s.action == "bind"} == {"first-0", "second-0"}


def test_of_a_subgroup_that_goes_no_task_stays_that_could_do_nothing_alone():
    """It is surplus, and its core starts and goes as a whole; one of its tasks is enough for the contender."""
    groups = (SubGroup(name="x", min_member=2), SubGroup(name="y", min_member=2))
    tasks = [task(f"{g}{n}", spec(cpu=2), on="n", sub_group=g) for g in "xy" for n in range(2)]
    gang = workload("gang", tasks=tasks, queue="q", running=HOUR, sub_groups=groups, min_sub_group=1)
    asks = workload("asks", of=spec(cpu=2), priority=10, age=5, queue="q")
    played = play(cluster([node("n", cpu=8)], [gang, asks], [queue("q")], actions=("allocate", "preempt")))
    assert sorted(evicted(played)) == [("y0", "default/asks"), ("y1", "default/asks")]


def test_the_reason_counts_what_is_evicted_without_what_stays():
    """Two surplus tasks go for a gang of two; one of its tasks then finds room that another victim leaves over."""
    elastic = workload("elastic", tasks=4, of=spec(cpu=0, gpu=2), on=["n"] * 4, queue="q", running=HOUR, min_member=2)
    large = workload("large", of=spec(cpu=0, gpu=8), on=["m"], queue="q", running=10 * HOUR)
    gang = workload("gang", tasks=2, of=spec(cpu=0, gpu=2), priority=10, age=5, queue="q")
    last = workload("last", of=spec(cpu=0, gpu=6), priority=9, age=5, queue="q")
    nodes = [node(name, gpu=8) for name in "nm"]
    played = play(cluster(nodes, [elastic, large, gang, last], [queue("q")], actions=("allocate", "preempt")))
    going = [s for s in played.steps if s.action == "evict" and s.workload == "default/elastic"]
    assert [s.cost for s in going] == [2.0 * HOUR]
    assert "the eviction costs 2 weighted hours" in going[0].reason


def test_it_is_not_told_to_go():
    """Nor is a notice given."""
    played = play(two("preempt", eviction_notice=300 * SECOND))
    assert [s[:2] for s in steps(played, "notice", "evict")] == [("notice", "large-0")]


@pytest.mark.parametrize("cause", CAUSES)
def test_it_is_not_told_to_go_where_its_queue_is_at_its_maximum_either(cause):
    """That it is told to go itself does not crowd it out: running on, it takes nothing more."""
    given = two(cause, eviction_notice=60 * SECOND)
    full = tuple(replace(q, max={"cpu": 10_000}) if q.name == "q" else q for q in given.queues)
    assert evicted(play(replace(given, queues=full))) == [("large-0", "default/second")]


def test_it_stays_where_its_queue_is_over_its_maximum_before():
    """The maximum was lowered: who is not needed runs on beyond it, for the queue gets nothing by this plan."""
    given = two("reclaim")
    lowered = tuple(replace(q, max={"cpu": 3000}) if q.name == "q" else q for q in given.queues)
    assert evicted(play(replace(given, queues=lowered), cycles=3)) == [("large-0", "default/second")]


def test_it_counts_in_no_budget_from_the_next_cycle_on():
    """Two may be evicted in an hour: one was, and another may be."""
    rule = BudgetRule(name="two", max_evictions=2, per=HOUR * SECOND)
    session = session_of(two("preempt", disruption=DisruptionSettings(budgets=(rule,))))
    scheduler = Scheduler(session)
    scheduler.cycle(NOW)
    budgets = scheduler.context.evicting().plugins.budgets
    budgets.begin(session)
    small = session.workloads["default/small"].tasks
    assert budgets.validate(session, "preempt", None, small) is None
    budgets.charge(session, "preempt", None, {small[0]: 0})
    assert budgets.validate(session, "preempt", None, small) is not None


def drawn(seed):
    """A few nodes full of jobs of many sizes, of one or two tasks, and a few urgent ones."""
    rng = random.Random(seed)
    cause = rng.choice(CAUSES)
    nodes = [node(f"n{i}", cpu=rng.choice([8, 24])) for i in range(rng.choice([1, 2, 3]))]
    free = {n.name: dict(n.allocatable)["cpu"] // 1000 for n in nodes}
    running = []
    while any(free.values()) and len(running) < 12:
        here = [n for n, left in free.items() if left]
        on = [rng.choice(here) for _ in range(rng.choice([1, 1, 2]))]
        size = min(rng.randint(1, 9), *(free[n] // on.count(n) for n in on))
        if size:
            running.append(old(f"r{len(running)}", priority=rng.randint(0, 4), size=size, on=on))
        for name in on:
            free[name] -= size
    leaf = "g" if cause == "reclaim" else "q"
    asking = [new(f"w{i}", rng.randint(1, 6), age=i, leaf=leaf) for i in range(rng.randint(2, 4))]
    return cluster(nodes, [*running, *asking], [queue("q"), queue("g", guaranteed={"cpu": 72})],
                   actions=("allocate", cause), backfill=rng.choice(["none", "none", "easy"]))  # fmt: skip


def seated_again(played):
    """Give who had its place back by the first plans that evict nothing more, though nothing else happened.

    Of a gang all tasks have: one may have to go because another's place was needed.
    """
    last = max((s.cycle for s in played.steps if s.action == "evict"), default=-1)
    gone = {(s.workload, s.task): s.node for s in played.steps if s.action == "evict" and s.cycle == last}
    back = {(s.workload, s.task): s.node for s in played.steps if s.action == "bind" and s.cycle > last}
    return {
        workload
        for workload in {w for w, _ in gone}
        if all(back.get(task) == node for task, node in gone.items() if task[0] == workload)
    }


def test_nobody_is_evicted_and_has_its_place_back():
    """The later plans say it: on none of many clusters is a victim of the last plan that evicts seated again."""
    assert {
        seed: found for seed in range(tries(100, 4000)) if (found := seated_again(play(drawn(seed), cycles=6)))
    } == {}


def not_needed(given):
    """Give the victims of a plan without which all find a place who find one by it.

    That is tried on the cluster as it is when all the others have gone, by allocation alone. Those are where they land
    who were moved, or were promised room on other nodes than a victim's.
    """
    plan = play(given).steps
    moved = {s.workload: s.to for s in plan if s.to is not None}
    victims = {s.workload for s in plan if s.action == "evict"} - moved.keys()
    promised = {s.workload: s.node for s in plan if s.action == "nominate"} | moved
    served, found = _served(given, victims, promised), []
    for stays in sorted(victims):
        nodes = {t.node for w in given.workloads if w.key == stays for t in w.tasks}
        if not nodes.isdisjoint(moved.values()):
            continue  # a moved task has its place already
        fixed = {w: node for w, node in promised.items() if w != stays and (w in moved or node not in nodes)}
        without = _served(given, victims - {stays}, fixed)
        found += [stays] if served <= without | {stays} else []
    return found


def _served(given, gone, fixed):
    """Give who is placed by allocation once some wait whose tasks are leaving, and some are on the nodes they have."""
    workloads = [_waiting(w) if w.key in gone else _placed(w, fixed[w.key]) if w.key in fixed else w
                 for w in given.workloads]  # fmt: skip
    workloads += [_leaving(w) for w in given.workloads if w.key in gone]
    settings = replace(given.settings, actions=("allocate",))
    played = play(replace(given, workloads=tuple(workloads), settings=settings))
    return {s.workload for s in played.steps if s.action in ("bind", "nominate")} | fixed.keys()


def _placed(given, where):
    tasks = tuple(replace(t, phase=Phase.RUNNING, node=where) for t in given.tasks)
    return replace(given, tasks=tasks, started_at=NOW)


def _waiting(given):
    tasks = tuple(replace(t, phase=Phase.PENDING, node=None, started_at=None) for t in given.tasks)
    return replace(given, tasks=tasks, started_at=None)


def _leaving(given):
    tasks = tuple(replace(t, phase=Phase.TERMINATING, terminating_since=NOW) for t in given.tasks)
    return replace(given, name=f"gone-{given.name}", tasks=tasks)


def test_nobody_is_evicted_who_is_not_needed():
    """Without any one of the victims somebody would not get the place that the plan promises."""
    seeds = [s for s in range(tries(100, 4000)) if drawn(s).settings.backfill == "none"]
    assert {seed: found for seed in seeds if (found := not_needed(drawn(seed)))} == {}
