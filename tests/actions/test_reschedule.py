"""The rescheduler on clusters: room for what waits, nodes emptied, nobody moved twice, budgets kept."""

from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, cluster, node, queue, spec, task, workload

from tenure.explanation.explain import explain_workload
from tenure.model.cluster import Eviction
from tenure.model.node import Node
from tenure.model.selectors import LabelSelector
from tenure.model.settings import BudgetRule, DisruptionSettings, ReschedulerSettings
from tenure.playthrough import play

HOUR = 3600 * SECOND
ACTIONS = ("allocate", "reschedule")


def moves(played):
    return sorted((s.task, s.node, s.to) for s in played.steps if s.action == "evict")


def nominated(played):
    return {s.task: s.node for s in played.steps if s.action == "nominate"}


def pieces(*, waits=120, **settings):
    """Two nodes of 8, each half full of work of 4 and 3 cores; a job of 8 waits."""
    return cluster(
        [node("a", cpu=8), node("b", cpu=8)],
        [workload("old", of=spec(cpu=4), on=["a"], running=7200, age=8000),
         workload("young", of=spec(cpu=3), on=["b"], running=600, age=8000),
         workload("big", of=spec(cpu=8), age=waits)],
        [queue("default")], actions=ACTIONS, **settings,
    )  # fmt: skip


def test_the_cheapest_pod_moves_and_both_land():
    """The younger pod has less to lose; the contender is promised the hole, the moved pod its place."""
    played = play(pieces())
    assert moves(played) == [("young-0", "b", "a")]
    assert nominated(played) == {"big-0": "b", "young-0": "a"}
    (plan,) = played.moves
    assert plan.feasible
    assert plan.method in {"exact", "cover"}
    assert plan.cost == plan.lower_bound == 90, "3 cores at 0.05 for 600 s"


def test_what_has_not_waited_long_enough_moves_nobody():
    """`pendingFor` is a minute."""
    assert not play(pieces(waits=59)).steps
    assert play(pieces(waits=60)).steps


@pytest.mark.parametrize(("pending_for", "wait"), [(0, 60), (60, 60), (300, 300)])
def test_what_was_evicted_is_left_alone_for_a_minute_or_for_as_long_as_others_wait(pending_for, wait):
    """Moves that would follow from its eviction were looked for then, by a search that is no exact program."""
    made = pieces(waits=3600, rescheduler=ReschedulerSettings(pending_for=pending_for * SECOND))
    evicted = (replace(w, last_evicted_at=NOW - (wait - 1) * SECOND) if w.name == "big" else w for w in made.workloads)
    made = replace(made, workloads=tuple(evicted))
    assert not play(made).steps
    assert moves(play(made, cycles=2, every=SECOND)) == [("young-0", "b", "a")]


@pytest.mark.parametrize("pending_for", [0, 60, 300])
def test_what_others_were_evicted_for_stays_where_it_is_for_a_minute(pending_for):
    """When it was judged whether that pays, moves that would follow were looked for by the same search."""
    made = pieces(waits=3600, rescheduler=ReschedulerSettings(pending_for=pending_for * SECOND))
    gone = Eviction(
        at=NOW - 59 * SECOND,
        workload="default/gone",
        task="gone-0",
        cause="preempt",
        beneficiary="default/young",
    )
    made = replace(made, evictions=(gone,))
    assert moves(play(made)) == [("old-0", "a", "b")], "the dearer one moves instead"
    assert moves(play(replace(made, now=NOW + SECOND))) == [("young-0", "b", "a")]


def test_it_lands_and_nobody_moves_again():
    """After the moves have landed a second run plans nothing, and no pod is back at its origin."""
    played = play(pieces(), cycles=6, every=60 * SECOND)
    where = {t.name: t.node for w in played.after.workloads for t in w.tasks}
    assert where == {"old-0": "a", "young-0": "a", "big-0": "b"}
    assert len(moves(played)) == 1


def test_what_no_move_can_help_says_how_large_the_largest_hole_is():
    """The fixed pod stays: at most 5 cores can be freed on its node, and 8 minus nothing on no other."""
    made = pieces()
    fixed = [replace(w, preemptible=False) if w.name != "big" else w for w in made.workloads]
    played = play(replace(made, workloads=tuple(fixed)))
    assert not played.steps
    (plan,) = played.moves
    assert not plan.feasible
    assert plan.reason == "even if every movable pod moved, the largest hole is 5 cores on b"
    (reason,) = [r for p in played.pending for r in p.reasons if r.code == "NoMoveHelps"]
    assert "the largest hole is 5 cores on b" in reason.message


def test_the_second_of_two_is_told_that_room_is_kept_for_the_first():
    """Either job of 8 would fit once a pod has moved, and both do not: the reason is that of both together."""
    made = pieces()
    later = workload("later", of=spec(cpu=8), age=100)
    played = play(replace(made, workloads=(*made.workloads, later)))
    assert moves(played) == [("young-0", "b", "a")]
    reasons = {p.workload: [r.message for r in p.reasons if r.code == "NoMoveHelps"] for p in played.pending}
    (told,) = reasons["default/later"]
    assert told.startswith("no moves make room: ")
    kept = "; room is kept for 1 workload served before"
    assert told.endswith(kept)
    (failed,) = [m for m in played.moves if not m.feasible]
    assert failed.reason.endswith(kept), "where the plan is read alone as well"


def reasons(played, name):
    return [(r.code, r.message) for p in played.pending if p.workload == f"default/{name}" for r in p.reasons]


def starts(played, name):
    return next(p.estimated_start for p in played.pending if p.workload == f"default/{name}")


def test_what_moves_to_free_room_waits_for_its_own_end_and_who_takes_its_place_for_that_room():
    """Both start once the pod has ended, after its grace period."""
    played = play(pieces())
    assert reasons(played, "young") == [("Nominated", "it is nominated to a; it has not ended on b yet")]
    assert reasons(played, "big") == [("Nominated", "it is nominated to b; the room there is not free yet")]
    assert starts(played, "young") == starts(played, "big") == NOW + 30 * SECOND
    later = play(played.after)
    told = explain_workload(later, next(w for w in later.after.workloads if w.name == "young"))
    assert told.helps == ("to wait: what of it moves has to leave first",)


def test_what_fits_is_not_told_that_the_next_cycle_places_it_where_none_does():
    """`tenure reschedule` plays no allocate."""
    made = pieces()
    alone = replace(made, settings=replace(made.settings, actions=("reschedule",)))
    small = replace(alone, workloads=(*alone.workloads[:2], workload("small", of=spec(cpu=1))))
    ((code, text),) = reasons(play(small), "small")
    assert (code, "the next cycle" in text) == ("AllocateIdle", False)
    assert "allocate, which places all in order, is not among the actions" in text


@pytest.mark.parametrize(
    "rule",
    [
        BudgetRule(name="none", max_evictions=0),
        BudgetRule(name="none", max_evictions=0, causes=("reschedule",)),
        BudgetRule(name="none", max_unavailable=0, selector=LabelSelector()),
        BudgetRule(name="none", max_lost={"cpu": 3 * 599 * SECOND}, per=HOUR),
    ],
)
def test_no_budget_no_move(rule):
    """Every kind of budget holds; the reason is told."""
    played = play(pieces(disruption=DisruptionSettings(budgets=(rule,))))
    assert not moves(played)


def test_a_budget_that_spares_the_cheapest_makes_the_dearer_one_move():
    """The plan goes round what may not be evicted."""
    made = pieces(disruption=DisruptionSettings(budgets=(
        BudgetRule(name="young", max_evictions=0, selector=LabelSelector(match_labels=(("a", "b"),))),
    )))  # fmt: skip
    labelled = [
        replace(w, tasks=tuple(replace(t, spec=replace(t.spec, labels=(("a", "b"),))) for t in w.tasks))
        if w.name == "young" else w for w in made.workloads
    ]  # fmt: skip
    assert moves(play(replace(made, workloads=tuple(labelled)))) == [("old-0", "a", "b")]


def test_a_gang_gets_room_on_several_nodes_at_once():
    """Two members of 6 on nodes of 8: two pods move to the third node, together."""
    made = cluster(
        [node(n, cpu=8) for n in "abc"],
        [workload("x", of=spec(cpu=3), on=["a"], running=100, age=200),
         workload("y", of=spec(cpu=3), on=["b"], running=100, age=200),
         workload("z", of=spec(cpu=2), on=["c"], running=100, age=200),
         workload("gang", tasks=2, of=spec(cpu=6), age=200)],
        [queue("default")], actions=ACTIONS,
    )  # fmt: skip
    played = play(made)
    (plan,) = played.moves
    assert plan.feasible
    assert len({s.node for s in played.steps if s.action == "nominate" and s.workload == "default/gang"}) == 2
    after = play(made, cycles=5, every=60 * SECOND).after
    assert all(t.phase == "Running" for w in after.workloads for t in w.tasks)


def test_several_workloads_are_helped_together():
    """One plan for both."""
    made = pieces()
    second = workload("other", of=spec(cpu=1), age=100)
    played = play(replace(made, workloads=(*made.workloads, second), settings=replace(
        made.settings, actions=("reschedule",))))  # fmt: skip
    (plan,) = played.moves
    assert set(plan.beneficiaries) == {"default/big", "default/other"}


def test_a_node_is_drained():
    """Everything that may move leaves; what may not is told."""
    made = cluster(
        [node("a", cpu=8, drain=True), node("b", cpu=8)],
        [workload("x", of=spec(cpu=3), on=["a"], running=100, age=200),
         workload("daemon", of=spec(cpu=1), on=["a"], running=100, age=200, owner_kind="DaemonSet")],
        [queue("default")], actions=ACTIONS,
    )  # fmt: skip
    played = play(made)
    assert moves(played) == [("x-0", "a", "b")]
    assert played.moves[0].trigger == "drain"
    stays = "the pods of default/daemon belong to their nodes, by a DaemonSet"
    assert played.warnings == [f"drain of a leaves default/daemon daemon-0 there: {stays}"]


def test_a_node_that_cannot_be_emptied_is_emptied_as_far_as_it_goes():
    """Two of 5 do not both fit on the other node."""
    made = cluster(
        [node("a", cpu=12, drain=True), node("b", cpu=8)],
        [workload("x", of=spec(cpu=5), on=["a"], running=100, age=200),
         workload("y", of=spec(cpu=5), on=["a"], running=50, age=200)],
        [queue("default")], actions=ACTIONS,
    )  # fmt: skip
    played = play(made)
    assert moves(played) == [("y-0", "a", "b")]
    assert not played.moves[0].feasible


def test_two_replicas_of_which_one_may_be_down_move_one_after_the_other():
    """The second wave waits until the first has landed, and is planned anew then."""
    rule = BudgetRule(name="web", max_unavailable=1, selector=LabelSelector(match_labels=(("app", "web"),)))
    web = spec(cpu=2, labels=(("app", "web"),))
    made = cluster(
        [node("a", cpu=8), node("b", cpu=8)],
        [workload("web", tasks=2, of=web, on=["a", "a"], running=600, age=700, min_member=1),
         workload("fixed", of=spec(cpu=4), on=["b"], running=600, age=700, preemptible=False),
         workload("big", of=spec(cpu=8), age=300)],
        [queue("default")], actions=ACTIONS, disruption=DisruptionSettings(budgets=(rule,)),
    )  # fmt: skip
    first = play(made)
    assert len(moves(first)) == 1
    assert [len(wave) for wave in first.moves[0].waves] == [1, 1]
    whole = play(made, cycles=8, every=60 * SECOND)
    assert {t.name: t.node for w in whole.after.workloads for t in w.tasks} == {
        "web-0": "b", "web-1": "b", "fixed-0": "b", "big-0": "a",
    }  # fmt: skip


def test_reserve_first_holds_the_place_before_the_pod_leaves():
    """One wave at a time; in the end all run."""
    made = pieces(rescheduler=ReschedulerSettings(moves="reserve-first"))
    played = play(made, cycles=6, every=60 * SECOND)
    assert {s.mode for p in played.moves for wave in p.waves for s in wave} == {"reserve-first"}
    assert {t.name: t.node for w in played.after.workloads for t in w.tasks}["big-0"] == "b"


def test_parts_of_gpus_are_tried_on_the_session():
    """Two halves on different GPUs: one moves beside the other, and a whole GPU is free."""
    half = spec(cpu=1, fraction=500)
    made = cluster(
        [node("a", cpu=8, gpu=1), node("b", cpu=8, gpu=1)],
        [workload("x", tasks=[_placed("x-0", half, "a")], running=100, age=200),
         workload("y", tasks=[_placed("y-0", half, "b")], running=50, age=200),
         workload("whole", of=spec(cpu=1, gpu=1), age=200)],
        [queue("default")], actions=ACTIONS,
    )  # fmt: skip
    assert moves(play(made)) == [("y-0", "b", "a")]


def _placed(name, of, on):
    return task(name, of, on=on, devices=[0])


def test_a_node_that_disappears_between_two_cycles_is_planned_around():
    """The promise to land there is void; the next cycle decides on what is there."""
    made = pieces()
    after = play(made).after
    lost = replace(
        after, now=NOW + 60 * SECOND, nodes=(*after.nodes[1:], Node(name="c", allocatable=after.nodes[0].allocatable)),
        workloads=tuple(w for w in after.workloads if w.name != "old"),
    )  # fmt: skip
    played = play(lost, cycles=8, every=120 * SECOND)
    running = {t.name: t.node for w in played.after.workloads for t in w.tasks if t.phase == "Running"}
    assert running.keys() == {"young-0", "big-0"}
    assert running["young-0"] != running["big-0"]


def test_the_same_file_gives_the_same_plan():
    """Byte for byte."""
    assert play(pieces()).steps == play(pieces()).steps


def test_shadow_plans_and_moves_nobody():
    """The plan is shown, the cluster is left alone."""
    played = play(pieces(modes={"reschedule": "shadow"}))
    assert not played.steps
    assert played.moves[0].feasible
    assert not play(pieces(modes={"reschedule": "off"})).moves
