"""Estimated starts: one future for all that wait, in which no room is promised twice."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import NOW, SECOND, cluster, node, queue, spec, workload

from tenure.engine.estimate import estimated_starts
from tenure.engine.snapshot import session_of
from tenure.playthrough import play

CORE = 1000


def starts(found):
    """Estimated start by workload of those that wait."""
    return {p.workload.removeprefix("default/"): p.estimated_start for p in play(found).pending}


def test_the_same_room_is_not_promised_twice():
    """Two that each fit when the running one ends: the second starts when the first of them has ended."""
    work = [
        workload("r", of=spec(cpu=4), on="n", running=60, expected_runtime=100),
        workload("a", of=spec(cpu=4), age=20, expected_runtime=50),
        workload("b", of=spec(cpu=4), age=10, expected_runtime=50),
    ]
    assert starts(cluster([node("n", cpu=4)], work)) == {"a": NOW + 40 * SECOND, "b": NOW + 90 * SECOND}


def test_behind_one_that_never_ends_nobody_knows():
    """Without an expected run time it holds its room for ever."""
    work = [
        workload("r", of=spec(cpu=4), on="n", running=60, expected_runtime=100),
        workload("a", of=spec(cpu=4), age=20),
        workload("b", of=spec(cpu=4), age=10),
    ]
    assert starts(cluster([node("n", cpu=4)], work)) == {"a": NOW + 40 * SECOND, "b": None}


def test_those_who_start_count_against_the_max_of_their_queue():
    """There is room for both at once, but not in the queue."""
    work = [
        workload("r", of=spec(cpu=4), on="n", queue="q", running=60, expected_runtime=100),
        workload("a", of=spec(cpu=3), queue="q", age=20, expected_runtime=50),
        workload("b", of=spec(cpu=3), queue="q", age=10, expected_runtime=50),
    ]
    found = starts(cluster([node("n", cpu=8)], work, [queue("q", max={"cpu": 4})]))
    assert found == {"a": NOW + 40 * SECOND, "b": NOW + 90 * SECOND}


def test_what_still_waits_of_a_workload_that_has_ended_starts_no_more_and_keeps_no_room_from_others():
    """Its surplus would be served first, and take the room that its own end leaves."""
    work = [
        workload("r", tasks=2, of=spec(cpu=4), on=["n"], min_member=1, priority=50, running=60, expected_runtime=100),
        workload("a", of=spec(cpu=4), expected_runtime=50),
    ]
    assert starts(cluster([node("n", cpu=4)], work)) == {"r": None, "a": NOW + 40 * SECOND}


def test_surplus_may_end_when_the_rest_of_its_workload_does():
    """What has started just now ends at the same time as what it would grow by just now."""
    grows = workload("a", tasks=2, of=spec(cpu=2), on=["n"], min_member=1, running=0, expected_runtime=50)
    session = session_of(cluster([node("n", cpu=4)], [grows, workload("b", of=spec(cpu=4))]))
    waiting = [session.workloads[f"default/{name}"] for name in "ab"]
    assert estimated_starts(session, waiting) == {"default/a": NOW, "default/b": NOW + 50 * SECOND}


@st.composite
def futures(draw):
    """Nodes full of what runs, and a few that wait; some say how long they run."""
    lasts = st.sampled_from((None, 20, 50, 100, 400))
    work, nodes = [], []
    for number in range(draw(st.integers(1, 3))):
        size, name = draw(st.integers(2, 6)), f"n{number}"
        nodes.append(node(name, cpu=size))
        left = size
        while left and draw(st.integers(0, 4)):
            cpu = draw(st.integers(1, left))
            left -= cpu
            fields = {"running": draw(st.integers(0, 90)), "expected_runtime": draw(lasts)}
            work.append(workload(f"r{number}-{left}", of=spec(cpu=cpu), on=[name], queue=draw(QUEUES), **fields))
    for number in range(draw(st.integers(1, 5))):
        fields = {"age": draw(st.integers(0, 90)), "expected_runtime": draw(lasts), "tasks": draw(st.integers(1, 2))}
        work.append(workload(f"w{number}", of=spec(cpu=draw(st.integers(1, 4))), queue=draw(QUEUES), **fields))
    most = draw(st.sampled_from((None, 4, 7)))
    return cluster(nodes, work, [queue("a", max=None if most is None else {"cpu": most}), queue("b")])


QUEUES = st.sampled_from("ab")


@settings(max_examples=150, deadline=None)
@given(futures())
def test_played_out_together_nobody_holds_more_than_there_is(found):
    """At every estimated start, what runs then and has started since fits the cluster, and the queue its max."""
    played = play(found)
    known = {w.key: w for w in played.after.workloads}
    held = []  # from, until, amount, queue
    for item in known.values():
        amount = sum(dict(t.spec.requests)["cpu"] for t in item.tasks if t.node is not None)
        if amount and item.started_at is not None:
            held.append((0, end(item, item.started_at), amount, item.queue))
    for pending in played.pending:
        item = known[pending.workload]
        if pending.estimated_start is not None and item.started_at is None:
            assert pending.estimated_start >= found.now
            amount = sum(dict(t.spec.requests)["cpu"] for t in item.tasks)
            held.append((pending.estimated_start, end(item, pending.estimated_start), amount, item.queue))
    total = sum(n.allocatable["cpu"] for n in found.nodes)
    for at, *_ in held:
        now = [(amount, name) for since, until, amount, name in held if since <= at < until]
        assert sum(amount for amount, _ in now) <= total
        for q in found.queues:
            inside = sum(amount for amount, name in now if name == q.name)
            started = [name for since, _, _, name in held if since == at and since]
            assert q.name not in started or inside <= q.max.get("cpu", inside)


def end(item, start):
    """When it ends that starts then; much later where nobody knows."""
    return start + item.expected_runtime if item.expected_runtime else 1 << 62
