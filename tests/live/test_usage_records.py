"""What queues of a live cluster hold is counted by the minute, whatever becomes of the queues meanwhile."""

import json
from dataclasses import replace

from tests.builders import cluster, node, queue, spec, workload

from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.write.outcome import Outcome
from tenure.engine.plan import Plan
from tenure.engine.snapshot import session_of
from tenure.live.loop import CycleOutcome
from tenure.live.records.recorded_cycle import recorded
from tenure.live.records.recorder import LiveRecorder

MINUTE = 60_000_000
BEGIN = 1_795_200_000_000_000
GPU = "nvidia.com/gpu"


def told(*rounds):
    """Let a cycle go by in the middle of each of some minutes; gives by minute and queue what was used, in GPU-minutes.

    A round is the queues, and the queue that four GPUs are held in.
    """
    recorder, found = LiveRecorder("default"), {}
    for number, (queues, at) in enumerate(rounds):
        runs = workload("w", of=spec(cpu=1, gpu=4), on=["n"], queue=at)
        now = replace(cluster(nodes=[node("n", cpu=8, gpu=8)], queues=queues, workloads=[runs]),
                      now=BEGIN + number * MINUTE + MINUTE // 2)  # fmt: skip
        done = CycleOutcome(Plan(now.now), Observed(now), session_of(now), Outcome(), 0.0, 0.0, 0.0)
        for draft in recorder.cycle(recorded(done, 0)):
            if draft.kind == "usage" and draft.queue:
                payload = json.loads(draft.payload)
                used, within = (payload[name].get(GPU, 0) / MINUTE / 1000 for name in ("held", "within"))
                found[(draft.at - BEGIN) // MINUTE, draft.queue] = used, within
    recorder.stop()
    return found


def test_what_is_guaranteed_counts_from_when_it_is():
    """Two of four GPUs are owed at first, then all, then none; each from the middle of a minute on."""
    a = [[queue("a", guaranteed=due)] for due in ({"gpu": 2}, {"gpu": 2}, {"gpu": 4}, {}, {})]
    found = told(*((queues, "a") for queues in a))
    assert found == {(1, "a"): (4.0, 2.0), (2, "a"): (4.0, 3.0), (3, "a"): (4.0, 2.0)}


def test_a_queue_that_is_gone_holds_nothing_any_more():
    """What it held goes on in another queue, and is not counted twice."""
    both, other = [queue("a"), queue("b")], [queue("b")]
    found = told((both, "a"), (both, "a"), (other, "b"), (other, "b"), (both, "a"), (both, "a"), (both, "a"))
    assert {minute: sum(used for (at, _), (used, _) in found.items() if at == minute) for minute in range(1, 6)} == (
        dict.fromkeys(range(1, 6), 4.0))  # fmt: skip
    assert [found.get((minute, "a"), (0, 0))[0] for minute in range(1, 6)] == [4.0, 2.0, 0, 2.0, 4.0]


def test_capacity_counts_devices_of_every_vendor_as_gpus():
    """As the session shares them out: else a statement would tell of more use than there is."""
    now = cluster(nodes=[node("n", cpu=8, gpu=8), node("a", extra={"amd.com/gpu": 4})], queues=[queue("q")])
    recorder, drafts = LiveRecorder("default"), []
    for number in range(3):
        later = replace(now, now=BEGIN + number * MINUTE + MINUTE // 2)
        done = CycleOutcome(Plan(later.now), Observed(later), session_of(later), Outcome(), 0.0, 0.0, 0.0)
        drafts += recorder.cycle(recorded(done, 0))
    recorder.stop()
    told = [json.loads(draft.payload) for draft in drafts if draft.kind == "usage" and not draft.queue]
    assert {found["capacity"][GPU] for found in told} == {12_000 * MINUTE}
