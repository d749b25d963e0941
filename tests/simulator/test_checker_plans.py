"""What the checker says of plans that contradict themselves, and of jobs that are lost: each fault put in by hand."""

from __future__ import annotations

import pytest
from tests.simulator.helpers import SECOND, gang, node, spec

from tenure.simulator.checker import check
from tenure.simulator.checks import ends, plans
from tenure.simulator.log import EventLog

NODES = (node("n0", cpu=4), node("n1", cpu=4))


def told(jobs, *events, close=False):
    """A log in which ``("plan",)`` begins a plan; gives the kinds of what is found."""
    log = EventLog([gang(name, 1, spec(4)) for name in jobs])
    for kind, *rest in events:
        if kind == "plan":
            log.plan()
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
