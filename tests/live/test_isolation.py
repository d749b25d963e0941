"""A fault costs its own workload: whoever makes deciding fail is found and set aside, and the others go on."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import cluster, node, queue, spec, task, workload

from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.live.isolation import FIRST_PAUSE, LONGEST_PAUSE, Isolation, Quarantine, reduced
from tenure.live.refusals import PATIENCE, Refusals
from tenure.model.workload import Phase

MOST = 20


class Engine:
    """Fails as long as one of some workloads is there as it is; counts how often it is asked."""

    def __init__(self, bad, hard=()):
        self.bad, self.hard, self.asked = set(bad), set(hard), 0

    def decide(self, seen):
        self.asked += 1
        for w in seen.workloads:
            waits = any(t.phase is Phase.PENDING for t in w.tasks)
            if (w.name in self.bad and waits) or (w.name in self.hard and w.scheduler_name == "tenure"):
                raise ZeroDivisionError(w.name)
        return [w.name for w in seen.workloads if any(t.phase is Phase.PENDING for t in w.tasks)]


def workloads(count, now=0):
    items = [workload(f"w{n:02}", queue="q") for n in range(count)]
    return replace(cluster([node("n", cpu=8)], items, [queue("q")]), now=now)


@given(st.sets(st.integers(0, MOST - 1), max_size=4))
def test_whoever_makes_deciding_fail_is_found(bad):
    """All of them and nobody else are set aside; the others are decided about, with few trials for each."""
    engine = Engine({f"w{n:02}" for n in bad})
    faults = []
    isolation = Isolation(engine.decide, engine.decide, faults.append)
    found, seen = isolation.decided(workloads(MOST))
    assert found == [f"w{n:02}" for n in range(MOST) if n not in bad]
    assert [f.workload for f in faults] == [f"default/w{n:02}" for n in sorted(bad)]
    assert engine.asked <= 3 + 7 * len(bad)
    assert len(seen.workloads) == MOST
    engine.asked = 0
    isolation.decided(workloads(MOST, now=FIRST_PAUSE - 1))
    assert engine.asked == 1


def test_what_is_set_aside_is_tried_again_ever_less_often():
    """The pause doubles while it fails, and it is forgotten once it has been well for long enough."""
    engine = Engine({"w03"})
    isolation = Isolation(engine.decide, engine.decide)
    now, pauses = 0, []
    for _ in range(12):
        isolation.decided(workloads(5, now=now))
        wake = isolation.quarantine.wake(now)
        pauses.append(wake - now)
        now = wake
    assert pauses[:4] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE, 8 * FIRST_PAUSE]
    assert pauses[-1] == LONGEST_PAUSE
    engine.bad.clear()
    found, _ = isolation.decided(workloads(5, now=now))
    assert "w03" in found
    isolation.decided(workloads(5, now=now + 3 * LONGEST_PAUSE))
    assert isolation.quarantine.count(now) == 0


def test_what_breaks_even_with_what_it_holds_is_taken_for_anothers():
    """A workload whose bare tasks still make deciding fail holds its room, and belongs to no queue."""
    engine = Engine((), hard={"w01"})
    _, seen = Isolation(engine.decide, engine.decide).decided(workloads(4))
    assert {w.name for w in seen.workloads if w.scheduler_name != "tenure"} == {"w01"}


def test_a_fault_that_is_nobodys_is_raised():
    """Where it fails whatever is set aside, nobody is blamed."""

    def fails(_seen):
        raise ZeroDivisionError("the engine's own")

    isolation = Isolation(fails, fails)
    with pytest.raises(ZeroDivisionError):
        isolation.decided(workloads(4))
    assert isolation.quarantine.count(0) == 0


def test_many_culprits_cost_their_namespaces():
    """A namespace with more of them than are looked for in a cycle is set aside whole; others are not."""
    items = [workload(f"b{n}", queue="q", namespace="bad") for n in range(15)]
    items += [workload("fine", queue="q", namespace="good")]
    seen = cluster([node("n", cpu=8)], items, [queue("q")])
    engine = Engine({f"b{n}" for n in range(12)})
    found, _ = Isolation(engine.decide, engine.decide).decided(seen)
    assert found == ["fine"]


def test_a_reduced_workload_keeps_the_numbers_of_its_tasks_and_what_it_holds():
    """Writes find a task's pod by its number; a part of a GPU is held as the whole one."""
    made = workload("w", tasks=(task("a", spec(cpu=2), on="n", phase=Phase.RUNNING), task("b", spec(cpu=1))))
    kept = reduced(made, 1)
    assert [(t.name, t.phase, t.node) for t in kept.tasks] == [
        ("a", Phase.RUNNING, "n"), ("b", Phase.GATED, None)
    ]  # fmt: skip
    assert kept.tasks[0].spec.requests == made.tasks[0].spec.requests


def test_whom_the_api_server_refuses_again_and_again_waits_for_a_while():
    """After some refusals in a row its room is for others; what may pass by itself counts for nothing."""
    quarantine = Quarantine()
    refusals = Refusals(quarantine)
    seen = workloads(2, now=5)

    def outcome(status, action="bind"):
        failure = SimpleNamespace(workload="default/w00", action=action, error=ApiError(status, "No", "no"))
        return SimpleNamespace(done=[], failures=[failure])

    for status in (409, 404, 429, 500):
        for _ in range(PATIENCE):
            refusals.note(outcome(status), seen)
    assert quarantine.count(5) == 0
    for _ in range(PATIENCE):
        refusals.note(outcome(422), seen)
    assert "refuses" in quarantine.why(seen.workloads[0], 5)
    assert not quarantine.why(seen.workloads[1], 5)
