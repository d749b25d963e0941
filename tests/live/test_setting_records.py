"""What is set on a live cluster is told change by change."""

import json

from tests.builders import node, queue

from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.write.outcome import Outcome
from tenure.engine.plan import Plan
from tenure.engine.snapshot import session_of
from tenure.live.loop import CycleOutcome
from tenure.live.records.recorded_cycle import recorded
from tenure.live.records.recorder import LiveRecorder
from tenure.model.cluster import Cluster

NOW = 1_795_200_000_000_000


def told(recorder, most):
    """Let a cycle go by at one and the same time, with another maximum of the queue."""
    cluster = Cluster(now=NOW, nodes=(node("a"),), queues=(queue("q", max={"cpu": most}),))
    plan = Plan(NOW)
    cycle = CycleOutcome(plan, Observed(cluster), session_of(cluster), Outcome(), 0.0, 0.0, 0.0)
    return recorder.cycle(recorded(cycle, 0))


def test_what_is_set_there_and_back_while_the_clock_stands_still_is_told_each_time():
    recorder = LiveRecorder("default")
    drafts = [draft for most in (1, 2, 1, 2, 2) for draft in told(recorder, most)]
    recorder.stop()
    kept = {draft.key: draft for draft in drafts}  # as a store keeps one record for each key
    changes = [json.loads(draft.payload) for draft in kept.values() if draft.kind == "setting"]
    assert [(change["from"], change["to"]) for change in changes] == [(1, 2), (2, 1), (1, 2)]
    assert [draft.kind for draft in kept.values()].count("origin") == 4
