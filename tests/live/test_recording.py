"""Cycles are recorded beside the loop: all of them, in their order, and as they were."""

from dataclasses import replace

from tests.builders import cluster, node, queue, spec, workload

from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.write.outcome import Outcome
from tenure.cycle import Scheduler
from tenure.engine.plan import Plan
from tenure.engine.snapshot import session_of
from tenure.live.loop import CycleOutcome
from tenure.live.records.queue_levels import levels_of
from tenure.live.records.recorded_cycle import recorded
from tenure.live.records.recorder import LiveRecorder
from tenure.live.records.recording import MOST, Recording

BEGIN = 1_795_200_000_000_000


def cycles(number):
    """Make cycles, before each of which the maximum of a queue was changed."""
    made = cluster(nodes=[node("n")], queues=[queue("q")])
    for most in range(1, number + 1):
        now = replace(made, now=BEGIN + most * 1_000_000, queues=(queue("q", max={"cpu": most}),))
        done = CycleOutcome(Plan(now.now), Observed(now), session_of(now), Outcome(), 0.0, 0.0, 0.0)
        yield recorded(done, 0)


def test_all_cycles_are_recorded_in_their_order_also_those_that_wait_in_the_end():
    direct = LiveRecorder("default")
    wanted = [*direct.begin(BEGIN, "me"), *(draft for cycle in cycles(2 * MOST) for draft in direct.cycle(cycle))]
    direct.stop()
    made, failed = [], []
    recording = Recording(LiveRecorder("default"), made.extend, failed.append)
    recording.start()
    recording.begin(BEGIN, "me")
    for cycle in cycles(2 * MOST):
        recording.cycle(cycle)
    recording.stop()
    assert (made, failed) == (wanted, [])
    assert [draft.kind for draft in made].count("setting") == 2 * MOST - 1


def test_a_cycle_of_which_no_records_can_be_made_costs_no_other():
    made, failed = [], []
    recording = Recording(LiveRecorder("default"), made.extend, failed.append)
    recording.start()
    first, second = cycles(2)
    recording.cycle(first)
    recording.cycle(replace(first, observed=None))
    recording.cycle(second)
    recording.stop()
    assert [type(error) for error in failed] == [AttributeError]
    assert [draft.kind for draft in made] == ["origin", "origin", "setting"]


def test_records_that_cannot_be_handed_on_hold_up_no_cycle():
    failed = []

    def refuse(_):
        raise OSError("no room")

    recording = Recording(LiveRecorder("default"), refuse, failed.append)
    recording.start()
    for cycle in cycles(2 * MOST):
        recording.cycle(cycle)
    recording.stop()
    assert failed
    assert {str(error) for error in failed} == {"no room"}


def test_what_a_later_decision_changes_does_not_change_the_picture():
    session = session_of(
        cluster(nodes=[node("n")], queues=[queue("q")], workloads=[workload("w", of=spec(), queue="q")])
    )
    before, allocated = levels_of(session.queues), session.queues.allocated.copy()
    Scheduler(session).cycle(BEGIN)
    assert session.queues.allocated != allocated
    assert before.allocated == allocated
