"""Who counts as served before a contender takes the one place that a set makes, where that is no larger than needed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.contention import contended
from tests.victims.test_bounds import contenders

from tenure.cycle import Scheduler
from tenure.engine.serving.order import QueueOrder
from tenure.engine.snapshot import session_of
from tenure.fairness.earlier_contenders import EarlierContenders
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.dry_run.outcome import AcceptedSet


def one_place(seed):
    """Single pieces that hold just what a contender of one task asks for, on nodes that are full, and who counts."""
    cluster, before = contended(seed), None
    session = session_of(replace(cluster, settings=replace(cluster.settings, actions=("allocate",))))
    Scheduler(session).cycle(cluster.now)
    queues, rows = session.queues, session.nodes.rows
    for dry_runs, contender, rules, pieces, _ in contenders(cluster, "reclaim", session):
        if before is None:
            order, found = QueueOrder(session, dry_runs.shares, lambda _, __: False), []
            while (workload := order.next()) is not None:
                found.append(workload)
                order.pass_over(workload)
            before = EarlierContenders(session, dry_runs.shares, found)
        need = RoomDemand(session, contender.step)
        if need.tasks != 1 or not need.exact or not need.parts or need.met(()):
            continue
        asked = [row for row, _ in need.parts[0].asks]
        count = before.count(contender)
        for piece in pieces:
            full = all(session.nodes.room[rows + row, node] == 0 for node, _ in piece.frees for row in asked)
            if full and need.met([piece]) and piece.amount == contender.step.amount:
                yield dry_runs, contender, rules, piece, count[queues.meeting(contender.leaf, piece.workload.leaf)[0]]


@given(st.integers(0, 1 << 32))
@settings(max_examples=100, deadline=None)
def test_one_who_counts_as_before_takes_the_only_place(seed):
    for dry_runs, _, rules, piece, others in one_place(seed):
        if others:
            assert not isinstance(dry_runs.play(rules, [piece]), AcceptedSet)


def test_there_are_such_sets_and_some_pay_where_nobody_counts():
    outcomes = Counter(
        (bool(others), isinstance(dry_runs.play(rules, [piece]), AcceptedSet))
        for seed in range(400)
        for dry_runs, contender, rules, piece, others in one_place(seed)
    )
    assert outcomes[False, True] > 5
    assert outcomes[True, False] > 5
