"""The cluster as the rescheduler sees it beside another scheduler."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import SECOND, cluster, node, spec, task, workload

from tenure.cycle import Scheduler
from tenure.engine.plan import Plan, PlanStep
from tenure.engine.snapshot import session_of
from tenure.model.settings import BackgroundSettings, ReschedulerSettings
from tenure.model.workload import Nomination, Phase
from tenure.rescheduler.problem.external import HOLDING, external

THEIRS = {"scheduler_name": "default-scheduler", "owner_kind": "ReplicaSet"}


def given(*workloads, nodes=2, **settings):
    """Give a cluster in which pods of the default scheduler may be moved."""
    made = cluster([node(f"n{i}", cpu=8) for i in range(nodes)], workloads, [])
    rescheduler = ReschedulerSettings(schedulers=("default-scheduler",), pending_for=SECOND, **settings)
    return replace(made, settings=replace(made.settings, rescheduler=rescheduler))


def planned(told, plan=None, contenders=None):
    """Give the plan beside the other scheduler."""
    seen = external(told, plan or Plan(told.now), contenders)
    return Scheduler(session_of(seen)).cycle(seen.now)


def small(name, on, **more):
    return workload(name, of=spec(cpu=3), on=[on], running=10, age=20, **{**THEIRS, **more})


def large(name="large", age=10, **more):
    return workload(name, of=spec(cpu=8), age=age, **{**THEIRS, **more})


def evicted(plan):
    return [(s.workload, s.node, s.to) for s in plan.steps if s.action == "evict"]


def test_room_is_made_for_a_pod_of_a_named_scheduler_by_moving_another_of_its():
    """One of the small ones moves to the other's node."""
    assert evicted(planned(given(small("a", "n0"), small("b", "n1"), large()))) == [("default/a", "n0", "n1")]


def test_pods_of_schedulers_that_are_not_named_and_tenures_own_only_hold_their_room():
    """Where one of the two is not the named scheduler's, the other one moves; where neither is, nobody does."""
    own = {"scheduler_name": "tenure"}
    assert evicted(planned(given(small("a", "n0", **own), small("b", "n1"), large()))) == [("default/b", "n1", "n0")]
    other = {"scheduler_name": "volcano"}
    assert evicted(planned(given(small("a", "n0", **own), small("b", "n1", **other), large()))) == []


def test_no_room_is_made_in_this_view_for_tenures_own_pods():
    """They have their own plan."""
    assert evicted(planned(given(small("a", "n0"), small("b", "n1"), large(scheduler_name="tenure")))) == []


def test_what_was_bound_or_promised_to_tenures_own_pods_in_the_same_cycle_is_taken():
    """A place that the own plan has just given away, or promised before, is no place to move to."""
    own = workload("own", of=spec(cpu=3), age=10, scheduler_name="tenure")
    told = given(small("a", "n0"), small("b", "n1"), large(), own)
    assert evicted(planned(told))
    bind = PlanStep("bind", "default/own", "own-0", "n1", 0, 1)
    assert evicted(planned(told, Plan(told.now, steps=[bind]))) == []
    waits = task("own-0", spec(cpu=3), nominated=Nomination(node="n1", at=told.now))
    seen = external(given(replace(own, tasks=(waits,))), Plan(told.now))
    (held,) = seen.workloads
    assert held.scheduler_name == HOLDING
    assert (held.tasks[0].phase, held.tasks[0].node) == (Phase.BOUND, "n1")


def test_while_room_is_kept_nothing_else_is_looked_for():
    """Only those for whom it is kept contend, and no layout is improved meanwhile."""
    told = given(small("a", "n0"), small("b", "n1"), large(), large("second", age=5),
                 background=BackgroundSettings(interval=SECOND))  # fmt: skip
    seen = external(told, Plan(told.now), {"default/second"})
    assert seen.settings.rescheduler.background.interval is None
    plan = Scheduler(session_of(seen)).cycle(seen.now)
    assert {s.beneficiary for s in plan.steps if s.action == "evict"} == {"default/second"}


def test_a_view_has_the_same_tasks_in_the_same_places():
    """What is planned on it is carried out by the numbers of its tasks."""
    told = given(small("a", "n0"), workload("many", tasks=4, of=spec(cpu=9), age=5, min_member=1, **THEIRS))
    for contenders in (None, set(), {"default/many"}):
        seen = external(told, Plan(told.now), contenders)
        assert [(w.key, [t.name for t in w.tasks]) for w in seen.workloads] == [
            (w.key, [t.name for t in w.tasks]) for w in told.workloads
        ]
