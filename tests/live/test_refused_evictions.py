"""Whose eviction is refused is left alone for ever longer, for each pod anew."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tests.builders import NOW

from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.clusters.record import BROKEN
from tenure.clusters.refusals import read_note
from tenure.live.refused_evictions import FIRST_PAUSE, LONGEST_PAUSE, MOST_TASKS, RefusedEvictions


def outcome(*errors, action="evict"):
    failures = [
        SimpleNamespace(action=action, workload=f"a/w{n}", task="t", error=error) for n, error in enumerate(errors)
    ]
    return SimpleNamespace(failures=failures)


def plan(count):
    return SimpleNamespace(
        steps=[SimpleNamespace(action="evict", workload=f"a/w{n}", task="t", task_index=0) for n in range(count)]
    )


def refuse(spared, now, *errors, uid="u", **more):
    identities = {(f"a/w{n}", 0): uid for n in range(len(errors))}
    return spared.note(outcome(*errors, **more), plan(len(errors)), identities, now)


def test_the_pause_doubles_up_to_a_bound_and_is_forgotten():
    spared, now, pauses = RefusedEvictions(), NOW, []
    for _ in range(12):
        (note,) = refuse(spared, now, ApiError(429, "TooManyRequests", "a budget\nsays no"))
        assert (note.name, note.reason) == ("a/w0", "EvictionRefused")
        assert "a budget says no" in note.message
        pauses.append(spared.wake(now) - now)
        assert [(r.workload, r.task, r.until) for r in spared.at(now)] == [("a/w0", "t", now + pauses[-1])]
        now += pauses[-1]
        assert spared.at(now) == ()
    assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert pauses[-1] == LONGEST_PAUSE
    spared.at(now + 2 * LONGEST_PAUSE)
    refuse(spared, now, ApiError(403, "Forbidden", "no"))
    assert spared.wake(now) - now == FIRST_PAUSE


def test_another_pod_of_that_name_begins_anew():
    spared = RefusedEvictions()
    refuse(spared, NOW, ApiError(500, "InternalError", "no"))
    refuse(spared, NOW, ApiError(500, "InternalError", "no"), uid="other")
    assert spared.wake(NOW) - NOW == FIRST_PAUSE


@pytest.mark.parametrize("status", [0, 404, 409, 503])
def test_what_says_nothing_of_the_eviction_sets_nobody_aside(status):
    spared = RefusedEvictions()
    assert refuse(spared, NOW, ApiError(status, "x", "x")) == []
    assert refuse(spared, NOW, ApiError(403, "x", "x"), action="bind") == []
    assert spared.count(NOW) == 0


def test_a_fault_of_ones_own_counts_and_the_memory_is_bounded():
    spared = RefusedEvictions()
    refuse(spared, NOW, ApiError(0, BROKEN, "x"))
    assert spared.count(NOW) == 1
    refuse(spared, NOW, *[ApiError(403, "x", "x")] * (MOST_TASKS + 5))
    assert spared.count(NOW) == MOST_TASKS


def test_another_process_reads_what_is_told():
    """From the event it knows the task, until when it is left alone, and why."""
    spared = RefusedEvictions()
    (note,) = refuse(spared, NOW, ApiError(429, "TooManyRequests", "a budget; it is tried again never at the earliest"))
    assert (read_note(note.name, note.message),) == spared.at(NOW)
    assert read_note("a/w0", "t is not evicted: no; it is tried again soon at the earliest") is None
    assert read_note("a/w0", "something else") is None
