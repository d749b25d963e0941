"""A task's life: the named states, the changes between them, and an audit that finds what does not add up."""

from __future__ import annotations

import ast
from itertools import product
from pathlib import Path

import pytest
from tests.actions.helpers import cluster, queue, runs, waits

import tenure
from tenure.engine.snapshot import session_of
from tenure.engine.state import lifecycle
from tenure.engine.state.audit import audit
from tenure.engine.state.evictions import evict
from tenure.engine.state.lifecycle import HOLDINGS, TRANSITIONS, LifeState, life_of
from tenure.engine.state.workloads import TaskState
from tenure.model.workload import Phase

ENGINE = Path(tenure.__file__).parent


def some_session():
    """One that runs a workload on two nodes, evicts one of its tasks, promises room to another and lets one wait."""
    session = session_of(
        cluster([queue("q")], [runs("r", "q", ["n0", "n1"]), waits("p", "q"), waits("w", "q")], nodes=2)
    )
    evict(session, session.workloads["default/r"].tasks[0])
    session.refresh(session.workloads["default/r"])
    session.nominate(session.workloads["default/p"].tasks[0], 0, ())
    return session


def task_of(session, name, index=0):
    return session.workloads[f"default/{name}"].tasks[index]


def test_states_are_told_by_the_fields():
    """Each task of the small session is where it was put."""
    session = some_session()
    found = [life_of(task_of(session, *which)) for which in (("r", 0), ("r", 1), ("p", 0), ("w", 0))]
    assert found == [LifeState.EVICTED, LifeState.PLACED, LifeState.NOMINATED, LifeState.WAITING]
    assert audit(session) == []


def test_what_the_fields_mean_together():
    """Of all products of phase and places, those with a name are the pending four and one for each other phase."""
    task = task_of(some_session(), "w")
    named = {}
    for phase, node, nominated, leaving in product(Phase, (-1, 0), (-1, 0), (-1, 0)):
        task.phase, task.node, task.nominated, task.leaving = phase, node, nominated, leaving
        state = life_of(task)
        if state is not None:
            named.setdefault(state, set()).add((phase, node, nominated, leaving))
    assert set(named) == set(LifeState) == set(HOLDINGS)
    assert {s: len(n) for s, n in named.items() if len(n) > 1} == {LifeState.PLACED: 2, LifeState.ENDED: 2}
    for state, products in named.items():
        for _, *places in products:
            held = {name for name, at in zip(("node", "nominated", "leaving"), places, strict=True) if at >= 0}
            assert held == {h.where for h in HOLDINGS[state]}


def test_every_state_is_reached_and_left_by_the_table():
    """But for what is gated, which only its owner lets go, and what has ended."""
    reached = {to for changes in TRANSITIONS.values() for to in changes.values()}
    left = {state for changes in TRANSITIONS.values() for state, to in changes.items() if to is not state}
    assert set(LifeState) - reached <= {LifeState.GATED, LifeState.TERMINATING}
    assert set(LifeState) - left == {LifeState.ENDED}
    assert all(callable(getattr(lifecycle, name)) for name in TRANSITIONS)


def test_nobody_else_sets_these_fields():
    """Once a task was taken in, its phase and its places are set in one file."""
    fields = {*TaskState.saved} - {"nominated_at"}
    found = set()
    for path in sorted(ENGINE.rglob("*.py")):
        text = path.read_text()
        if not any(f"task.{field}" in text for field in fields):
            continue  # to parse all of them takes seconds
        for node in ast.walk(ast.parse(text)):
            targets = node.targets if isinstance(node, ast.Assign) else ()
            for target in targets:
                each = target.elts if isinstance(target, ast.Tuple) else (target,)
                if any(
                    isinstance(t, ast.Attribute) and t.attr in fields and getattr(t.value, "id", "") == "task"
                    for t in each
                ):
                    found.add(str(path.relative_to(ENGINE)))
    assert found == {"engine/state/lifecycle.py", "engine/state/restore.py", "engine/state/session.py"}


MISTAKES = {
    "room": lambda s: s.nodes.room.__setitem__((0, 1), 5),
    "device": lambda s: s.nodes.device.__setitem__((1, 0, 0), 7),
    "allocated": lambda s: s.queues.allocate(0, (1,) * s.nodes.amounts, fixed=False),
    "fixed": lambda s: s.queues.fixed.__setitem__(0, (1,) * s.nodes.amounts),
    "pending": lambda s: s.queues.unask(0, (1,) * s.nodes.amounts),
    "nominated": lambda s: s.nominated.clear(),
    "leaving": lambda s: s.leaving.clear(),
    "noticed": lambda s: s.noticed.add(task_of(s, "w")),
    "a node's tasks": lambda s: s.on_node[0].clear(),
    "a task that is nowhere": lambda s: s.on_node[1].add(task_of(s, "w")),
    "the count of those that differ": lambda s: s.occupancy.count_differing(1),
    "a place in line": lambda s: s.waiting.entries[s.workloads["default/w"].leaf].clear(),
    "a step": lambda s: setattr(s.workloads["default/w"], "step", None),
    "a stuck task": lambda s: setattr(task_of(s, "r"), "stuck", True),
    "a state without a name": lambda s: setattr(task_of(s, "w"), "node", 0),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_an_audit_finds_what_does_not_add_up(mistake):
    """Whatever is counted beside the tasks, and differs from what they say, is told."""
    session = some_session()
    mistake(session)
    assert audit(session)
