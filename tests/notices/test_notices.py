"""Notices: told first, judged anew each cycle, and evicted in time, or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.actions.helpers import MINUTE, NOW, cluster, play, queue, runs, waits
from tests.actions.test_modes import CASES

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.engine.state.notices import notice_of
from tenure.model.cluster import Eviction
from tenure.model.queue import QueueStatus, QuotaStatus
from tenure.model.settings import CAUSES, BudgetRule, DisruptionSettings, QuotaPreemptionSettings
from tenure.model.values.duration import format_time
from tenure.model.workload import Checkpoint, Nomination, Notice, Phase
from tenure.victims.aftermath.aftermath import Aftermath

GPU = "nvidia.com/gpu"
SECOND = 1_000_000
TREE = [queue("a", guaranteed=2), queue("b", guaranteed=0)]


def told(notice=5, *, victim=None, contender=None, queues=TREE, **settings):
    """A cluster in which a contender reclaims, and victims have so many minutes' notice."""
    work = [victim or runs("x", "b", ["n0"] * 4), contender or waits("c", "a", gpus=2)]
    return cluster(queues, work, eviction_notice=notice * MINUTE, **settings)


def seen(found, action):
    """Cycle and task of the steps of one kind."""
    return [(s.cycle, s.task) for s in found.steps if s.action == action]


def minutes(state, cycles, change=lambda state, _: state, every=MINUTE):
    """Play cycles a minute apart, with a change of the cluster before each; gives the plans and the cluster."""
    embedded, plans = EmbeddedCluster(state), []
    for number in range(cycles):
        if number:
            embedded.advance(state.now + number * every)
        embedded.cluster = change(embedded.observe(), number)
        now = embedded.observe().now
        plans.append(Scheduler(session_of(embedded.observe())).cycle(now))
        embedded.carry_out(plans[-1])
    return plans, embedded.observe()


def actions(plans):
    """What is done in each cycle, without repetitions."""
    return [list(dict.fromkeys(s.action for s in plan.steps)) for plan in plans]


def changed(state, name, **fields):
    return replace(state, workloads=tuple(replace(w, **fields) if w.name == name else w for w in state.workloads))


def test_what_follows_is_looked_at_when_notice_is_given_and_when_it_ends(monkeypatch):
    """While it goes on a plan evicts nothing; to look each time took a third of cycles in which much may follow."""
    asked, plain = [], Aftermath.of_plan
    monkeypatch.setattr(
        Aftermath, "of_plan", lambda self, *given: asked.append(self.session.now) or plain(self, *given)
    )
    plans, _ = minutes(told(3), 5)
    assert actions(plans) == [["notice", "nominate"], [], [], ["evict", "nominate"], ["bind"]]
    assert asked == [plans[0].now, plans[3].now]


# -- how long --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "leaf", "parent", "pool", "caps", "expected"),
    [
        (None, None, None, 3, (None, None), 3),
        (None, None, 4, 3, (None, None), 4),
        (None, 5, 4, 3, (None, None), 5),
        (6, 5, 4, 3, (None, None), 6),
        (0, 5, 4, 3, (None, None), 0),
        (None, 0, 4, 3, (None, None), 0),
        (60, None, None, 0, (None, None), 10),
        (60, None, None, 0, (30, None), 30),
        (60, None, None, 0, (30, 20), 20),
        (60, None, None, 0, (15, 20), 15),
        (60, None, None, 0, (None, 90), 60),
        (60, None, None, 0, (0, 90), 0),
    ],
)
def test_the_notice_is_inherited_and_capped(own, leaf, parent, pool, caps, expected):
    """The first that is set counts, 0 included; the least cap that is set on the way up bounds it, else ten minutes."""
    given = [None if v is None else v * MINUTE for v in (own, leaf, parent, *caps)]
    tree = [
        queue("p", eviction_notice=given[2], max_eviction_notice=given[4]),
        queue("q", "p", eviction_notice=given[1], max_eviction_notice=given[3]),
    ]
    work = runs("x", "q", ["n0"], eviction_notice=given[0])
    session = session_of(cluster(tree, [work], eviction_notice=pool * MINUTE))
    assert notice_of(session, session.workloads["default/x"]) == expected * MINUTE


# -- told, then evicted ----------------------------------------------------------------------------------------------


def test_an_eviction_is_announced_and_takes_place_at_its_deadline():
    """The room is promised at once and taken when the victims have gone; nothing is done in between."""
    found = play(told(), cycles=8, every=MINUTE)
    tasks = [f"x-{i}" for i in range(4)]
    assert seen(found, "notice") == [(0, t) for t in tasks]
    assert seen(found, "evict") == [(5, t) for t in tasks]
    assert seen(found, "nominate") == [(0, "c-0"), (5, "c-0")]
    assert seen(found, "bind") == [(6, "c-0")]


def test_the_cluster_file_says_what_was_announced():
    """The victim runs on, its start and its times as they were."""
    after = play(told()).after
    victim = next(w for w in after.workloads if w.name == "x")
    assert {t.phase for t in victim.tasks} == {"Running"}
    notice = victim.tasks[0].notice
    assert (notice.deadline, notice.cause, notice.beneficiary, notice.at) == (
        NOW + 5 * MINUTE,
        "reclaim",
        "default/c",
        NOW,
    )
    assert (victim.started_at, victim.last_evicted_at) == (NOW - 60 * MINUTE, None)
    assert after.evictions == ()


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_announces_and_evicts_at_the_deadline(cause):
    """Whatever the cause, the same victims go, five minutes later."""
    state = CASES[cause]()
    at_once = [(s.workload, s.task, s.cause, s.beneficiary, s.to) for s in play(state).steps if s.action == "evict"]
    found = play(replace(state, settings=replace(state.settings, eviction_notice=5 * MINUTE)), cycles=6, every=MINUTE)
    for action, cycle in (("notice", 0), ("evict", 5)):
        steps = [s for s in found.steps if s.action == action]
        assert sorted((s.workload, s.task, s.cause, s.beneficiary, s.to) for s in steps) == sorted(at_once)
        assert {s.cycle for s in steps} == {cycle}
    assert not seen(found, "withdraw")


def test_what_saves_goes_as_soon_as_it_has_saved():
    """Whoever makes checkpoints makes one on being told; what it costs is counted from there."""
    victim = runs("x", "b", ["n0"] * 4, checkpoint=Checkpoint(interval=7 * MINUTE))
    plans, _ = minutes(told(victim=victim), 3)
    assert actions(plans) == [["notice", "nominate"], ["evict", "nominate"], ["bind"]]
    assert plans[0].steps[0].cost == 4 * MINUTE / SECOND
    assert plans[1].steps[0].cost == 59.0


def test_what_only_says_what_a_restart_takes_saves_nothing():
    victim = runs("x", "b", ["n0"] * 4, checkpoint=Checkpoint(restart_overhead=MINUTE))
    assert seen(play(told(victim=victim), cycles=6, every=MINUTE), "evict")[0][0] == 5


def test_a_checkpoint_that_is_not_later_than_the_notice_does_not_count():
    def report(at):
        return lambda state, n: changed(state, "x", checkpoint=Checkpoint(last_at=at)) if n == 1 else state

    for at, expected in (
        (NOW, ["nothing"]),
        (NOW - 1, ["nothing"]),
        (NOW + 5 * MINUTE, ["nothing"]),
        (NOW + 1, ["evict"]),
    ):
        plans, _ = minutes(told(), 2, report(at))
        assert [s.action for s in plans[1].steps if s.action == "evict"][:1] == [e for e in expected if e == "evict"]


@pytest.mark.parametrize(
    ("text", "counts"),
    [("true", True), ("", False), ("false", False), (format_time(NOW), True), (format_time(NOW - MINUTE), False)],
)
@pytest.mark.parametrize("whole", [True, False])
def test_a_victim_goes_once_it_acknowledges(text, counts, whole):
    """On the workload or on all its pods; a time acknowledges only what was announced until then."""

    def acknowledge(state, number):
        said = {"tenure.dev/eviction-ack": text}
        if number != 1:
            return state
        if whole:
            return changed(state, "x", annotations=said)
        (victim,) = (w for w in state.workloads if w.name == "x")
        return changed(state, "x", tasks=tuple(replace(t, annotations=said) for t in victim.tasks))

    plans, _ = minutes(told(), 2, acknowledge)
    assert ("evict" in actions(plans)[1]) is counts


def test_a_gang_goes_when_all_its_pods_acknowledge():
    def acknowledge(state, number):
        (victim,) = (w for w in state.workloads if w.name == "x")
        said = [{"tenure.dev/eviction-ack": "true"} if i < number * 2 else {} for i in range(4)]
        tasks = tuple(replace(t, annotations=a) for t, a in zip(victim.tasks, said, strict=True))
        return changed(state, "x", tasks=tasks)

    plans, _ = minutes(told(), 3, acknowledge)
    assert actions(plans) == [["notice", "nominate"], [], ["evict", "nominate"]]


def test_what_is_about_to_end_is_left_to_finish():
    """Its expected end comes before the deadline: saving does not send it away, staying too long does."""
    victim = runs("x", "b", ["n0"] * 4, expected_runtime=63 * MINUTE, checkpoint=Checkpoint(interval=MINUTE))
    plans, _ = minutes(told(victim=victim), 4)
    assert actions(plans)[:3] == [["notice", "nominate"], [], []]
    late = replace(victim, checkpoint=None)
    assert seen(play(told(victim=late), cycles=7, every=MINUTE), "evict")[0][0] == 5
    ends = [w for w in minutes(told(victim=victim), 3)[1].workloads if w.name != "x"]
    done = lambda state, n: replace(state, workloads=tuple(ends)) if n == 3 else state  # noqa: E731
    plans, _ = minutes(told(victim=victim), 4, done)
    assert actions(plans)[3] == ["bind"]


def test_a_clock_that_jumps_makes_it_late_and_not_more():
    """An hour passes between two cycles: the eviction takes place then, with the full time to leave."""
    plans, _ = minutes(told(), 3, every=60 * MINUTE)
    assert actions(plans) == [["notice", "nominate"], ["evict", "nominate"], ["bind"]]
    embedded = EmbeddedCluster(told())
    plan = Scheduler(session_of(embedded.observe())).cycle(NOW)
    embedded.carry_out(plan)
    embedded.advance(NOW - 30 * MINUTE)
    plan = Scheduler(session_of(embedded.observe())).cycle(NOW - 30 * MINUTE)
    assert not plan.steps


def test_a_nomination_waits_for_the_notice_and_then_as_long_as_always():
    """A timeout shorter than the notice does not end it; it runs from the eviction."""
    stays = runs("x", "b", ["n0"] * 4)
    stays = replace(stays, tasks=tuple(replace(t, never_terminates=True, grace_period=MINUTE) for t in stays.tasks))
    plans, _ = minutes(told(9, victim=stays, nomination_timeout=2 * MINUTE), 14)
    assert [n for n, p in enumerate(plans) if p.expired] == [13]
    assert actions(plans)[9] == ["evict", "nominate"]


# -- withdrawn -------------------------------------------------------------------------------------------------------


def gone(state, _):
    return replace(state, workloads=tuple(w for w in state.workloads if w.name != "c"))


def room_elsewhere(state, _):
    return replace(state, nodes=(*state.nodes, replace(state.nodes[0], name="n9")))


def protected(state, _):
    return changed(state, "x", preemptible=False)


def fenced(state, _):
    return replace(
        state, queues=tuple(replace(q, preemption_policy="disabled") if q.name == "b" else q for q in state.queues)
    )


def no_longer_due(state, _):
    return replace(
        state, queues=tuple(replace(q, guaranteed={GPU: 4000} if q.name == "b" else {}) for q in state.queues)
    )


def minimum(state, _):
    return replace(state, queues=tuple(replace(q, reclaim_min_runtime=120 * MINUTE) for q in state.queues))


def switched_off(state, _):
    return replace(state, settings=replace(state.settings, modes={"reclaim": "off"}))


def in_shadow(state, _):
    return replace(state, settings=replace(state.settings, modes={"reclaim": "shadow"}))


@pytest.mark.parametrize(
    "change", [gone, room_elsewhere, protected, fenced, no_longer_due, minimum, switched_off, in_shadow]
)
@pytest.mark.parametrize("when", [2, 5])
def test_a_notice_that_no_longer_pays_is_withdrawn(change, when):
    """As soon as it is seen, at the latest before the eviction; the victim runs on as if nothing had been said."""
    plans, after = minutes(told(), 8, lambda state, n: change(state, n) if n == when else state)
    withdrawn = [s for s in plans[when].steps if s.action == "withdraw"]
    assert [s.task for s in withdrawn] == [f"x-{i}" for i in range(4)]
    assert "no longer pays" in withdrawn[0].reason
    assert not [s for p in plans for s in p.steps if s.action == "evict"]
    victim = next(w for w in after.workloads if w.name == "x")
    assert {(t.phase, t.notice) for t in victim.tasks} == {("Running", None)}
    assert victim.started_at == NOW - 60 * MINUTE
    bound = [s.task for p in plans for s in p.steps if s.action == "bind"]
    assert bound == (["c-0"] if change is room_elsewhere else [])


def limited(state, _):
    return replace(state, queues=tuple(replace(q, max={GPU: 1000}) if q.name == "a" else q for q in state.queues))


def delayed(state, _):
    return changed(state, "c", preemption_delay=120 * MINUTE)


@pytest.mark.parametrize("change", [limited, delayed, lambda state, _: changed(state, "c", preemption_policy="Never")])
def test_a_move_is_withdrawn_if_nothing_is_to_be_moved_any_more_for_who_waits(change):
    """It needs the room as much as before, but its queue's maximum forbids it, or nothing may be evicted for it."""
    work = [runs("x", "b", ["n0"], preemptible=False), runs("y", "b", ["n1"]), waits("c", "a", gpus=2)]
    state = cluster([queue("a"), queue("b")], work, nodes=2, gpus=2, actions=("allocate", "reschedule"),
                    eviction_notice=5 * MINUTE)  # fmt: skip
    plans, _ = minutes(state, 8, lambda state, n: change(state, n) if n == 2 else state)
    assert seen(plans[0], "notice") == [(0, "y-0")]
    assert [s.task for p in plans for s in p.steps if s.action == "evict"] == []
    assert [s.task for s in plans[2].steps if s.action == "withdraw"] == ["y-0"]


def test_only_what_is_still_needed_goes():
    """Room has come up for a part of what the contender asks: one victim is not evicted for nothing."""
    work = [runs("x", "b", ["n0"], gpus=2, minutes=10), runs("y", "b", ["n1"], gpus=2, minutes=20)]
    state = cluster([queue("a", guaranteed=4), queue("b")], [*work, waits("c", "a", gpus=2, tasks=2)], nodes=2, gpus=2,
                    eviction_notice=5 * MINUTE)  # fmt: skip

    def ends(found, number):
        return replace(found, nodes=(*found.nodes, replace(found.nodes[0], name="n9"))) if number == 2 else found

    plans, _ = minutes(state, 8, ends)
    assert len([s for s in plans[0].steps if s.action == "notice"]) == 2
    (kept,) = {s.workload for p in plans for s in p.steps if s.action == "evict"}
    (spared,) = {s.workload for p in plans for s in p.steps if s.action == "withdraw"}
    assert {kept, spared} == {"default/x", "default/y"}
    assert [s.task for p in plans for s in p.steps if s.action == "bind"] == ["c-0", "c-1"]


def test_a_core_stays_while_others_are_under_notice_for_more_of_it():
    """One of its leaf that ranks ahead counted on their room, though their notice would not pay any more."""
    work = [runs("x", "b", ["n0"]), waits("c", "a", tasks=2, min_member=1), runs("y", "a", ["n1"])]
    state = cluster([queue("a", guaranteed=3), queue("b")], work, gpus=2, eviction_notice=3 * MINUTE)
    state = replace(state, nodes=(*state.nodes, replace(state.nodes[0], name="n1", allocatable={GPU: 1})))

    def arrives(found, number):
        later = waits("w", "a", tasks=2, priority=100, min_member=2)
        return replace(found, workloads=(*found.workloads, later)) if number == 1 else found

    plans, _ = minutes(state, 10, arrives)
    told = [(number, s.task) for number, p in enumerate(plans) for s in p.steps if s.action == "notice"]
    assert told == [(0, "x-0"), (5, "c-1"), (5, "c-0")]
    assert not [s for p in plans for s in p.steps if s.action == "withdraw"]
    assert [s.task for s in plans[9].steps if s.action == "bind"] == ["w-0", "w-1"]


def test_one_task_of_a_gang_that_is_to_move_goes_on_as_it_was_planned():
    """It is judged by itself, as it was chosen: nothing else moves, though another would by now come cheaper."""
    work = [
        runs("y", "a", ["n0", "n1"], core=2), runs("z", "a", ["n2"], minutes=1, allow_preemption=False),
        waits("c", "a", gpus=2),
    ]  # fmt: skip
    state = cluster([queue("a")], work, nodes=3, gpus=2, eviction_notice=3 * MINUTE)

    def may_move(found, number):
        return changed(found, "z", allow_preemption=True) if number == 1 else found

    plans, _ = minutes(state, 5, may_move)
    told = {(number, s.task) for number, p in enumerate(plans) for s in p.steps if s.action == "notice"}
    assert len(told) == 1
    assert all(task.startswith("y") for _, task in told)
    assert not [s for p in plans for s in p.steps if s.action == "withdraw"]


def test_who_has_gone_since_asks_as_well_where_a_notice_pays_only_so():
    """``first`` goes at once and comes back before ``large``, so that ``small`` has room beside it under the max."""
    armed = QuotaStatus(armed_at=NOW - 2 * MINUTE, delay=MINUTE, deadline=NOW - MINUTE, max={GPU: 2000})
    tree = [
        queue("a", guaranteed=2, most=2, quota_preemption_delay=MINUTE, status=QueueStatus(quota_preemption=armed)),
    ]
    saves = Checkpoint(interval=10 * MINUTE, restart_overhead=MINUTE)
    work = [
        runs("more", "a", ["n0"] * 2, minutes=7, checkpoint=saves), runs("x", "a", ["n0"] * 2, core=2),
        runs("first", "a", ["n1"], priority=50, checkpoint=saves),
        waits("large", "a", gpus=2, minutes=9, priority=10), waits("small", "a", priority=10),
    ]  # fmt: skip
    state = cluster(tree, work, nodes=2, eviction_notice=3 * MINUTE,
                    quota_preemption=QuotaPreemptionSettings(enabled=True))  # fmt: skip
    plans, _ = minutes(state, 6)
    assert {s.beneficiary for p in plans for s in p.steps if s.workload == "default/x"} == {"default/small"}


def test_a_core_stays_while_a_task_of_it_is_to_move():
    """Taken, it left nothing to move, and who was to have the place of that had to be helped anew."""
    work = [runs("x", "a", ["n0", "n0", "n1"], core=3), waits("c", "a", gpus=2, priority=100)]
    state = cluster([queue("a")], work, nodes=2, gpus=2, eviction_notice=3 * MINUTE)
    state = replace(state, nodes=(*state.nodes, replace(state.nodes[0], name="n2", allocatable={GPU: 1})))

    def arrives(found, number):
        later = waits("w", "a", gpus=2, priority=100, minutes=0)
        return replace(found, workloads=(*found.workloads, later)) if number == 1 else found

    plans, _ = minutes(state, 9, arrives)
    told = [(number, s.cause, s.task) for number, p in enumerate(plans) for s in p.steps if s.action == "notice"]
    assert told == [(0, "consolidate", "x-2"), *((5, "preempt", f"x-{i}") for i in range(3))]
    assert not [s for p in plans for s in p.steps if s.action == "withdraw"]


def cut_short(*, nodes=1, at=NOW - SECOND, log_at=None, core=4):
    """Three of a core of four were evicted for a contender, which has room; the fourth was announced and never went."""
    state = cluster(TREE, [runs("x", "b", ["n0"] * 4, core=core), waits("c", "a", gpus=2)], nodes=nodes, gpus=4)
    notice = Notice(deadline=at, cause="reclaim", beneficiary="default/c", at=at)
    gone = tuple(
        Eviction(at=at if log_at is None else log_at, workload="default/x", task=f"x-{i}", cause="reclaim",
                 beneficiary="default/c", from_node="n0")
        for i in range(3)
    )  # fmt: skip
    victim, contender = state.workloads
    lost = [replace(t, phase=Phase.PENDING, node=None, started_at=None) for t in victim.tasks[:3]]
    left = replace(victim.tasks[3], notice=notice)
    promised = replace(contender.tasks[0], nominated=Nomination(node="n0", at=at))
    work = (replace(victim, tasks=(*lost, left)), replace(contender, tasks=(promised,)))
    return replace(state, workloads=work, evictions=gone)


def test_what_is_left_of_a_core_whose_evictions_were_cut_short_goes_as_well():
    """Nothing of it is bound and evicted later on, though the contender could do without the rest."""
    found = play(cut_short())
    assert seen(found, "evict") == [(0, "x-3")]
    assert seen(found, "bind") == [(0, "c-0")]


@pytest.mark.parametrize(
    "state",
    [
        cut_short(nodes=2),
        cut_short(log_at=NOW - 60 * MINUTE),
        cut_short(core=1),
    ],
    ids=["it becomes whole again", "the others went at another time", "its core is whole"],
)
def test_what_goes_on_is_left_where_evictions_were_cut_short(state):
    """Where the contender can do without it, and it has a core or will have one, its notice is withdrawn."""
    found = play(state)
    assert seen(found, "evict") == []
    assert seen(found, "withdraw") == [(0, "x-3")]


def test_what_is_told_again_at_once_keeps_its_first_deadline():
    """A new contender takes over: no victim is put off for ever by contenders that come and go."""

    def other(state, number):
        if number != 3:
            return state
        later = waits("d", "a", gpus=2, priority=9)
        return replace(state, workloads=(*(w for w in state.workloads if w.name != "c"), later))

    plans, _ = minutes(told(), 7, other)
    assert not [s for s in plans[3].steps if s.action == "withdraw"]  # it never heard that it might stay
    assert {(s.beneficiary, s.deadline) for s in plans[3].steps if s.action == "notice"} == {
        ("default/d", NOW + 5 * MINUTE)
    }
    assert "evict" in actions(plans)[5]


def test_what_has_saved_and_is_evicted_for_another_at_once_was_told_long_ago():
    """Its first contender has left; another takes its place, and it heard never that it might stay."""
    one, other = waits("c", "a", gpus=2), waits("d", "a", gpus=2)
    state = told(contender=one)

    def instead(state, number):
        if number == 1:
            kept = tuple(w for w in state.workloads if w.name != "c")
            state = replace(state, workloads=(*kept, other))
            return changed(state, "x", checkpoint=Checkpoint(last_at=state.now))
        return state

    plans, _ = minutes(state, 2, instead)
    steps = [(s.action, s.beneficiary, s.notice_at) for s in plans[1].steps if s.workload == "default/x"]
    assert steps == [("evict", "default/d", state.now)] * 4


def test_raising_the_max_stops_what_a_quota_announced():
    state = CASES["quota"]()
    state = replace(state, settings=replace(state.settings, eviction_notice=5 * MINUTE))

    def raised(found, number):
        return replace(found, queues=tuple(replace(q, max={GPU: 3000}) for q in found.queues)) if number == 2 else found

    plans, after = minutes(state, 8, raised)
    assert len([s for s in plans[0].steps if s.action == "notice"]) == 2
    assert len([s for s in plans[2].steps if s.action == "withdraw"]) == 1
    assert len([s for p in plans for s in p.steps if s.action == "evict"]) == 1
    assert sum(t.phase == "Running" for t in after.workloads[0].tasks) == 3


def test_what_a_quota_announced_stands_where_a_queue_above_had_less_than_its_guaranteed_before():
    """Nothing is carried below it, so the notices are neither withdrawn nor given again."""
    state = CASES["quota"]()
    tree = (queue("above", guaranteed=20), *(replace(q, parent="above") for q in state.queues))
    found = play(replace(state, queues=tree, settings=replace(state.settings, eviction_notice=5 * MINUTE)), cycles=8,
                 every=MINUTE)  # fmt: skip
    assert [cycle for cycle, _ in seen(found, "notice")] == [0, 0]
    assert [cycle for cycle, _ in seen(found, "evict")] == [5, 5]


def test_the_place_of_one_who_leaves_sooner_is_promised_and_keeps_no_other_where_it_is():
    """``small`` would fit where ``saves`` was, which has gone for ``big``: both notices stand."""
    work = [
        runs("w", "c", ["n1"]), runs("kept", "b", ["n1"], priority=100), runs("stays", "b", ["n0"]),
        runs("saves", "b", ["n0"], checkpoint=Checkpoint(interval=2 * MINUTE)),
        waits("small", "a", priority=5), waits("big", "a", gpus=2),
    ]  # fmt: skip
    tree = [queue("a", guaranteed=3), queue("b", guaranteed=0), queue("c", guaranteed=0, priority=50)]
    found = play(cluster(tree, work, nodes=2, gpus=2, eviction_notice=5 * MINUTE), cycles=8, every=MINUTE)
    assert seen(found, "withdraw") == []
    assert len(seen(found, "notice")) == 3
    assert sorted(seen(found, "evict"))[1:] == [(5, "stays-0"), (5, "w-0")]
    assert sorted(seen(found, "bind")) == [(6, "big-0"), (6, "small-0")]


def test_a_requeue_bars_from_its_eviction_and_not_from_its_notice():
    """Whoever is only told, and then left alone, never notices."""
    state = CASES["requeue"]()
    state = replace(state, settings=replace(state.settings, eviction_notice=5 * MINUTE))
    plans, after = minutes(state, 6)
    assert [bool(p.requeue.not_before) for p in plans] == [False] * 5 + [True]
    victim = next(w for w in after.workloads if w.name == "x")
    assert victim.requeue_not_before == NOW + 15 * MINUTE
    plans, after = minutes(state, 6, lambda found, n: gone(found, n) if n == 3 else found)
    assert next(w for w in after.workloads if w.name == "x").requeue_not_before is None


# -- rules that go on holding ----------------------------------------------------------------------------------------


def test_a_budget_is_charged_once_and_holds_until_the_eviction_counts():
    """One eviction per hour: while one is announced no other is, nor within an hour after it took place."""
    rule = BudgetRule(name="one", max_evictions=1, per=60 * MINUTE)
    work = [runs(n, "b", ["n0"], minutes=9) for n in "xyz"] + [waits("c", "a"), waits("d", "a")]
    state = cluster([queue("a", guaranteed=2), queue("b")], work, gpus=3, eviction_notice=5 * MINUTE,
                    disruption=DisruptionSettings(budgets=(rule,)))  # fmt: skip
    plans, after = minutes(state, 70)
    evictions = [n for n, p in enumerate(plans) for s in p.steps if s.action == "evict"]
    notices = [n for n, p in enumerate(plans) for s in p.steps if s.action == "notice"]
    assert evictions == [5, 65 + 5][: len(evictions)]
    assert notices == [0, 65]
    assert [e.at for e in after.evictions] == [NOW + 5 * MINUTE]


def test_others_cannot_take_what_is_promised_nor_go_over_a_max():
    """A queue at its max: what is told to go still counts until it has gone."""
    tree = [queue("a", most=4)]
    work = [runs("x", "a", ["n0"] * 4), waits("c", "a", gpus=1, priority=50), waits("late", "a", gpus=1)]
    state = cluster(tree, work, nodes=2, eviction_notice=5 * MINUTE, actions=("allocate", "preempt"))
    plans, after = minutes(state, 5)
    assert not [s for p in plans for s in p.steps if s.action == "bind"]
    running = sum(t.phase in ("Running", "Bound") for w in after.workloads for t in w.tasks)
    assert running == 4


def test_what_a_max_keeps_out_until_notices_end_is_promised_its_room():
    """Passed over, it saw that room go to others that come later, and evicted to make it good."""
    work = [
        runs("x", "a", ["n0"] * 2, core=2), runs("y", "a", ["n0"], priority=60),
        waits("c", "a", gpus=1, priority=50),
    ]  # fmt: skip
    tree = [queue("a", most=3), queue("b", priority=50)]
    state = cluster(tree, work, eviction_notice=5 * MINUTE, actions=("allocate", "preempt"))

    def arrive(found, number):
        later = waits("late", "a", gpus=1, minutes=0), waits("other", "b", gpus=2, minutes=0)
        return replace(found, workloads=(*found.workloads, *later)) if number == 1 else found

    plans, _ = minutes(state, 8, arrive)
    of_late = [(n, s.action) for n, p in enumerate(plans) for s in p.steps if s.workload == "default/late"]
    gone = next(n for n, p in enumerate(plans) for s in p.steps if s.action == "evict")
    assert of_late == [(1, "nominate"), (gone + 1, "bind")]
    assert {s.workload for p in plans for s in p.steps if s.cause} == {"default/x"}


def test_a_victim_without_notice_beside_one_with_goes_at_once():
    work = [runs("x", "b", ["n0"] * 2), runs("y", "b", ["n0"] * 2, eviction_notice=5 * MINUTE), waits("c", "a", gpus=4)]
    plans, _ = minutes(cluster([queue("a", guaranteed=4), queue("b")], work), 7)
    assert [(s.action, s.workload) for s in plans[0].steps if s.cause][::2] == [
        ("evict", "default/x"),
        ("notice", "default/y"),
    ]
    assert [s.task for s in plans[6].steps if s.action == "bind"] == ["c-0"]
