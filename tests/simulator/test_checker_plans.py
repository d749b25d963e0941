"""What the checker says of plans that contradict themselves, and of jobs that are lost: each fault put in by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.simulator.helpers import SECOND, gang, node, spec

from tenure.model.queue import Queue
from tenure.simulator.checker import check
from tenure.simulator.checks import ends, plans
from tenure.simulator.checks.evictions import NEVER_RAN
from tenure.simulator.log import EventLog

NODES = (node("n0", cpu=4), node("n1", cpu=4))


def told(jobs, *events, close=False, initial=0):
    """A log in which ``("plan",)`` begins a plan; gives the kinds of what is found."""
    log = EventLog([gang(name, 1, spec(4)) for name in jobs], initial=initial)
    for kind, *rest in events:
        if kind == "plan":
            log.plans.begin(len(log))
        else:
            second, *arguments = rest
            getattr(log, kind)(second * SECOND, *arguments)
    if close:
        log.close()
    return check(log, NODES).by_kind


ARRIVE = (("submit", 0, 0), ("submit", 0, 1))
FOR_B = ("evict", 5, 0, 0, "reclaim", 1)


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ((("plan",), ("bind", 5, 0, 0, 0), FOR_B, ("plan",), ("bind", 6, 1, 0, 0)), plans.BOTH),
        (
            (("plan",), ("bind", 1, 0, 0, 0), ("plan",), FOR_B, ("bind", 5, 0, 0, 0), ("plan",), ("bind", 6, 1, 0, 1)),
            plans.RESTARTED,
        ),
        (
            (("plan",), ("bind", 1, 0, 0, 0), ("plan",), FOR_B, ("plan",), ("bind", 6, 1, 0, 1), ("bind", 6, 0, 0, 0)),
            plans.SEATED_AGAIN,
        ),
        (
            (
                ("plan",), ("bind", 1, 0, 0, 0), ("plan",), FOR_B, ("plan",), ("bind", 5, 1, 0, 0),
                ("plan",), ("evict", 5, 1, 0, "quota", -1),
            ),
            plans.NO_TIME,
        ),
    ],
)  # fmt: skip
def test_a_plan_that_contradicts_itself_or_the_one_before(events, kind):
    assert told("ab", *ARRIVE, *events) == {kind: 1}


@pytest.mark.parametrize(
    ("core", "found"),
    [
        (3, {}),  # the core goes whole, and one of its places is needed
        (1, {plans.SEATED_AGAIN: 1}),  # of two surplus tasks one would have done
    ],
)
def test_part_of_a_core_may_be_back_and_surplus_may_not(core, found):
    """Two of three tasks that were evicted are back, or of two surplus tasks one."""
    log = EventLog([gang("a", 3, spec(1), min_member=core), gang("b", 1, spec(2))])
    gone = (1, 2) if core == 1 else (0, 1, 2)
    log.submit(0, 0)
    log.submit(0, 1)
    log.plans.begin(len(log))
    for task in range(3):
        log.bind(SECOND, 0, task, 0)
    log.plans.begin(len(log))
    for task in gone:
        log.evict(5 * SECOND, 0, task, "reclaim", 1)
    log.plans.begin(len(log))
    log.bind(6 * SECOND, 1, 0, 0)
    for task in gone:
        if task == 2 or core > 1:
            log.bind(6 * SECOND, 0, task, 1 if task == 0 else 0)
    assert check(log, NODES).by_kind == found


@pytest.mark.parametrize(
    "between",
    [
        (("end", 6, 1, 0),),
        (("submit", 6, 2),),
        (("plan",), ("evict", 6, 1, 0, "quota", -1)),
    ],
)
def test_a_victim_may_come_back_when_something_has_changed(between):
    """Its beneficiary ended, somebody came, or something else was evicted."""
    events = (
        ("plan",), ("bind", 1, 0, 0, 0), ("plan",), FOR_B, ("plan",), ("bind", 5, 1, 0, 1),
        *between, ("plan",), ("bind", 7, 0, 0, 0),
    )  # fmt: skip
    assert told("abc", *ARRIVE, *events) == {}


def test_a_victim_that_lands_elsewhere_was_moved():
    events = (("plan",), ("bind", 1, 0, 0, 0), ("plan",), FOR_B, ("plan",), ("bind", 6, 1, 0, 0), ("bind", 6, 0, 0, 1))
    assert told("ab", *ARRIVE, *events) == {}


GROWING = (
    ("submit", 0, 0), ("submit", 0, 1), ("plan",), ("bind", 1, 0, 0, 0), ("bind", 1, 1, 0, 1), ("plan",),
)  # fmt: skip


@pytest.mark.parametrize(
    ("after", "excused"),
    [
        ((("end", 7, 1, 0),), True),  # it ran, and ended before its victim had left
        ((("end", 9, 1, 0),), False),  # there was room for a second
        ((), False),
        ((("submit", 6, 2), ("plan",), ("bind", 8, 2, 0, 0)), True),  # somebody who came later was ahead of it
        ((("plan",), ("bind", 8, 0, 0, 0)), False),
    ],
)
def test_a_beneficiary_that_grows_may_end_or_be_beaten_before_there_is_room(after, excused):
    log = EventLog([gang("a", 1, spec(4)), gang("b", 2, spec(2), min_member=1), gang("c", 1, spec(4))])
    for kind, *rest in (*GROWING, ("evict", 5, 0, 0, "reclaim", 1), *after):
        if kind == "plan":
            log.plans.begin(len(log))
        elif kind == "evict":
            second, *arguments = rest
            log.evict(second * SECOND, *arguments, leaves_at=8 * SECOND)
        else:
            second, *arguments = rest
            getattr(log, kind)(second * SECOND, *arguments)
    assert (NEVER_RAN not in check(log, NODES).by_kind) is excused


def test_a_beneficiary_may_be_evicted_at_once_for_whoever_came_later():
    """Here a waits until b is evicted for it, and c arrives before it is bound, or was there before."""
    for late in (True, False):
        events = (
            ("submit", 0, 0), ("submit", 0, 1), *(() if late else (("submit", 0, 2),)),
            ("plan",), ("bind", 1, 1, 0, 0), ("plan",), ("evict", 5, 1, 0, "reclaim", 0),
            *((("submit", 5, 2),) if late else ()),
            ("plan",), ("bind", 5, 0, 0, 0), ("plan",), ("evict", 5, 0, 0, "reclaim", 2), ("bind", 5, 2, 0, 0),
        )  # fmt: skip
        assert (plans.NO_TIME in told("abc", *events)) is not late


@pytest.mark.parametrize(("said", "found"), [("before", {}), ("late", {plans.NO_TIME: 1}), (None, {plans.NO_TIME: 1})])
def test_a_beneficiary_may_be_evicted_at_once_where_an_earlier_plan_said_so(said, found):
    """Here a goes for b, and b at once for c: the plan before said so, or it is said too late, or not at all."""
    log = EventLog([gang(name, 1, spec(4)) for name in "abc"])
    for job in range(3):
        log.submit(0, job)
    log.plans.begin(len(log))
    log.bind(SECOND, 0, 0, 0)
    log.bind(SECOND, 2, 0, 1)
    log.plans.begin(len(log))
    log.evict(5 * SECOND, 0, 0, "reclaim", 1)
    if said == "before":
        log.plans.follow_up(2, 1, 0)
    log.plans.begin(len(log))
    log.bind(5 * SECOND, 1, 0, 0)
    log.evict(5 * SECOND, 2, 0, "quota", -1)
    log.plans.begin(len(log))
    if said == "late":
        log.plans.follow_up(2, 1, 0)
    log.evict(5 * SECOND, 1, 0, "reclaim", 2)
    log.bind(5 * SECOND, 2, 0, 0)
    assert check(log, NODES).by_kind == found


@pytest.mark.parametrize("again", [False, True])
def test_what_ran_when_a_simulation_began_may_go_at_once_and_have_others_evicted_for_it(again):
    """Its first binding is where it stood; where it is bound for others at that instant, it has to stay."""
    events = (
        ("submit", 0, 0), ("submit", 0, 1), ("submit", 0, 2), ("bind", 0, 0, 0, 0), ("bind", 0, 1, 0, 1),
        ("plan",), ("evict", 0, 0, 0, "reclaim", 2), ("bind", 0, 2, 0, 0),
        ("plan",), ("evict", 0, 1, 0, "consolidate", 0), ("plan",), ("bind", 0, 0, 0, 1),
        *((("plan",), ("evict", 0, 0, 0, "reclaim", 1), ("bind", 0, 1, 0, 1)) if again else ()),
    )  # fmt: skip
    assert (plans.NO_TIME in told("abc", *events, initial=2)) is again


@pytest.mark.parametrize(("more", "found"), [(False, 0), (True, 1)])
def test_a_queue_that_stood_over_its_max_must_not_be_given_more(more, found):
    jobs = [replace(gang(name, 1, spec(2)), queue="q") for name in "ab"]
    log = EventLog(jobs, initial=1)
    log.submit(0, 0)
    log.bind(0, 0, 0, 0)
    log.submit(0, 1)
    log.plans.begin(len(log))
    if more:
        log.bind(1, 1, 0, 0)
    assert check(log, NODES, queues=[Queue(name="q", max={"cpu": 1000})]).by_kind.get("queue over max", 0) == found


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ((), {ends.LOST: 1}),
        ((("bind", 1, 0, 0, 0),), {ends.LOST: 1}),
        ((("rest", 9, 0, "it waits in queue a"),), {}),
        ((("drop", 9, 0, "it does not fit"),), {}),
        ((("drop", 9, 0, ""),), {ends.NO_REASON: 1}),
        ((("rest", 9, 0, ""),), {ends.NO_REASON: 1}),
        ((("bind", 1, 0, 0, 0), ("end", 2, 0, 0)), {}),
        ((("bind", 1, 0, 0, 0), ("end", 2, 0, 0), ("end", 3, 0, 0)), None),
        ((("bind", 1, 0, 0, 0), ("end", 2, 0, 0), ("bind", 3, 0, 0, 0), ("end", 4, 0, 0)), None),
    ],
)
def test_every_job_of_a_closed_log_ends_once_waits_or_was_dropped_with_a_reason(events, found):
    """A job about which nothing more is said is lost; one that ends again, or is bound after its end, is told too."""
    kinds = told("a", ("submit", 0, 0), *events, close=True)
    if found is None:
        assert ends.ENDED_TWICE in kinds
    else:
        assert kinds == found


def test_nothing_is_lost_in_a_log_that_is_not_closed():
    """A simulation that was interrupted says nothing of those that still run."""
    assert told("a", ("submit", 0, 0), ("bind", 1, 0, 0, 0)) == {}


def test_what_still_leaves_when_its_workload_ends_is_gone():
    """A surplus task that is being evicted does not hold its node beyond the end of its workload."""
    log = EventLog([gang("a", 2, spec(2), min_member=1), gang("b", 1, spec(4))])
    log.submit(0, 0)
    log.submit(0, 1)
    log.bind(0, 0, 0, 0)
    log.bind(0, 0, 1, 0)
    log.evict(1 * SECOND, 0, 1, "quota", -1, leaves_at=60 * SECOND)
    log.end(2 * SECOND, 0, 0)
    log.bind(2 * SECOND, 1, 0, 0)
    assert check(log, NODES).by_kind == {}
