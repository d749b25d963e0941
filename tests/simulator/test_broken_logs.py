"""Logs of random simulations, each with one event taken out, doubled, moved or made into another: the checker tells."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import tries
from tests.simulator.test_nothing_is_lost import busy, with_quotas

from tenure.simulator.checker import check
from tenure.simulator.log import BIND, DROP, END, EVICT, NOTICE, REST, SUBMIT, WITHDRAW, EventLog, EvictionDetails
from tenure.simulator.run import Simulation, SimulationSetup

SEEDS = 40


@cache
def simulated(kind, seed):
    state, trace = kind(seed)
    return state, Simulation(SimulationSetup(state), trace).run().log


def kinds_found(state, log):
    return check(log, state.nodes, queues=state.queues, settings=state.settings).by_kind


def with_events(log, events, plans):
    """The same log, but with other events."""
    other = EventLog(log.workloads, initial=log.initial)
    other.events, other.plans.begins, other.closed = events, plans, log.closed
    return other


def instead(log, index, *events):
    """The log with some events in place of one."""
    plans = [plan if plan <= index else plan + len(events) - 1 for plan in log.plans.begins]
    return with_events(log, [*log.events[:index], *events, *log.events[index + 1 :]], plans)


def taken_out(log, index, _draw):
    return instead(log, index)


def doubled(log, index, _draw):
    return instead(log, index, log.events[index], log.events[index])


def again_in_the_end(log, index, _draw):
    kind, _, *rest = log.events[index]
    return with_events(log, [*log.events, (kind, log.events[-1][1], *rest)], log.plans.begins)


def changed(**fields):
    """Give what changes some fields of an event."""
    places = {"kind": 0, "at": 1, "job": 2, "task": 3, "x": 4, "extra": 5}

    def change(log, index, _draw):
        event = list(log.events[index])
        for name, value in fields.items():
            event[places[name]] = value(event) if callable(value) else value
        return instead(log, index, tuple(event))

    return change


def later(log, index, _draw):
    """The event comes last, at the time of the last."""
    left = instead(log, index)
    left.events.append((log.events[index][0], log.events[-1][1] + 1, *log.events[index][2:]))
    return left


def put_off(log, index, _draw):
    """The notice is given once more, with a later deadline."""
    *rest, extra = log.events[index]
    return instead(log, index, log.events[index], (*rest, extra._replace(deadline=extra.deadline + 1)))


def other_cause(event):
    cause = "preempt" if event[5].cause == "reclaim" else "reclaim"
    return event[5]._replace(cause=cause)


def of_the_trace(log, event):
    """Whether the event is of a job that came: the log alone says what became of it."""
    return event[2] >= log.initial


def ends_later(log, event):
    return any(e[0] == END and e[2] == event[2] for e in log.events)


def for_somebody(_log, event):
    return event[5].cause in {"reclaim", "preempt", "requeue", "consolidate"}


def by_rank(_log, event):
    return event[5].cause in {"reclaim", "preempt"}


def waits(_log, event):
    return "waits" in event[5]


def evicted_in_the_end(log, event):
    after = log.events[log.events.index(event) + 1 :]
    return next((e[0] for e in after if e[2:4] == event[2:4]), None) == EVICT


ALWAYS = lambda _log, _event: True  # noqa: E731  as short as what it stands beside

FAULTS = [
    (SUBMIT, taken_out, of_the_trace),
    (SUBMIT, doubled, ALWAYS),
    (SUBMIT, again_in_the_end, ALWAYS),
    (SUBMIT, later, of_the_trace),
    (BIND, taken_out, ends_later),
    (BIND, doubled, ALWAYS),
    (BIND, again_in_the_end, ALWAYS),
    (BIND, later, ends_later),
    (BIND, changed(x=1 << 20), ALWAYS),
    (BIND, changed(kind=END, x=0, extra=None), ALWAYS),
    (END, taken_out, ALWAYS),
    (END, doubled, ALWAYS),
    (END, again_in_the_end, ALWAYS),
    (END, changed(kind=EVICT, x=-1, extra=EvictionDetails("quota")), of_the_trace),
    (END, changed(kind=DROP, task=0, extra="it does not fit"), ALWAYS),
    (EVICT, taken_out, ALWAYS),
    (EVICT, doubled, ALWAYS),
    (EVICT, again_in_the_end, ALWAYS),
    (EVICT, changed(kind=END, x=0, extra=None), ALWAYS),
    (EVICT, changed(x=-1), for_somebody),
    (EVICT, changed(x=lambda event: event[2]), ALWAYS),
    (EVICT, changed(extra=lambda event: event[5]._replace(cause="boredom")), ALWAYS),
    (EVICT, changed(extra=other_cause), by_rank),
    (EVICT, later, ALWAYS),
    (NOTICE, taken_out, evicted_in_the_end),
    (NOTICE, put_off, ALWAYS),
    (NOTICE, again_in_the_end, ALWAYS),
    (WITHDRAW, doubled, ALWAYS),
    (WITHDRAW, again_in_the_end, ALWAYS),
    (REST, taken_out, ALWAYS),
    (REST, doubled, ALWAYS),
    (REST, changed(extra=""), ALWAYS),
    (REST, changed(kind=END, extra=None), waits),
]


@settings(max_examples=tries(60, 5000), deadline=None)
@given(st.integers(0, SEEDS - 1), st.sampled_from([busy, with_quotas]), st.integers(0, 1 << 32))
def test_each_fault_in_the_log_of_a_simulation_is_found(seed, kind, chosen):
    """The log itself has none; each kind of fault is put into it somewhere."""
    state, log = simulated(kind, seed)
    assert kinds_found(state, log) == {}
    draw = random.Random(chosen)
    for number, (of, fault, where) in enumerate(FAULTS):
        events = [i for i, e in enumerate(log.events) if e[0] == of and where(log, e)]
        broken = fault(log, draw.choice(events), draw) if events else None
        if broken is not None:
            assert kinds_found(state, broken), number


@pytest.mark.parametrize("kind", range(8))
def test_there_are_events_of_every_kind_to_break(kind):
    """Nothing is dropped in these simulations."""
    logs = [simulated(of, seed)[1] for seed in range(SEEDS) for of in (busy, with_quotas)]
    assert any(e[0] == kind for log in logs for e in log.events) is (kind != DROP)
