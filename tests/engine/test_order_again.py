"""An order that is taken up again after a change is the one that would be made anew."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import tries
from tests.properties.contention import contended

from tenure.engine.serving.order import QueueOrder
from tenure.engine.snapshot import session_of
from tenure.engine.state.evictions import evict
from tenure.fairness.current import Fairness


def run(order, placer_says):
    """Go through an order to its end; some get a step."""
    found = []
    while (workload := order.next()) is not None:
        found.append(workload.key)
        (order.served if placer_says(workload) else order.pass_over)(workload)
    return found


@given(st.integers(0, 1 << 32), st.lists(st.integers(0, 30), min_size=1, max_size=4), st.integers(0, 3))
@settings(max_examples=tries(75, 750), deadline=None)
def test_an_order_taken_up_again_is_the_one_made_anew(seed, choices, skipped):
    session = session_of(contended(seed))
    shares = Fairness(session).now()
    before = QueueOrder(session, shares, lambda _, __: False)
    untouched = run(QueueOrder(session, shares, lambda _, __: False), lambda _: False)

    def skip(workload, _):
        return bool(skipped) and workload.created_at // 1_000_000 % 4 == skipped

    for choice in choices:
        running = [
            t for _, w in sorted(session.workloads.items()) for t in w.tasks if t.node >= 0 and t.active and w.leaf >= 0
        ]
        if not running:
            break
        mark, epoch = session.checkpoint(), session.epoch
        task = running[choice % len(running)]
        evict(session, task)
        session.refresh(task.workload)
        again = before.again(skip, {task.workload.leaf})
        if again is not None:
            assert run(again, lambda _: False) == run(QueueOrder(session, shares, skip), lambda _: False)
        session.rollback(mark, epoch=epoch)
    assert run(before, lambda _: False) == untouched


def test_it_can_be_taken_up_again_where_several_queues_wait():
    found = 0
    for seed in range(40):
        session = session_of(contended(seed))
        order = QueueOrder(session, Fairness(session).now(), lambda _, __: False)
        found += order.again(lambda _, __: False, ()) is not None
    assert found >= 10
