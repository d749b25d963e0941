"""B18, live: what writing history costs a cycle of the live scheduler.

No server runs: a cluster of so many running pods, in which with each cycle one job comes, one starts and one ends, is
observed, decided about and told of, by the loop, the recorder and the drain of the scheduler. Blocks of cycles with
history, into SQLite, take turns with blocks without; for each kind the median of its blocks is given, and from where to
where they went. Wanted: nothing measurable, which is a difference below that of the blocks without.

    python benchmarks/b18_live.py [--pods 10000 50000] [--evictions 0]

`--evictions`: so many evictions stand in the cluster's log of the last day.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import structs

from b16_observe import NODES, node, pod
from common import print_table
from results import Results, rounded
from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache import pod_records
from tenure.clusters.kubernetes.cache.informers import InformerCache, Options
from tenure.clusters.kubernetes.client.leader import NotLeaderError
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.read.eviction_log import DATA, entry_of, write
from tenure.clusters.kubernetes.read.observe import Observed, Observer
from tenure.clusters.kubernetes.seals import Seal, condition_of
from tenure.clusters.kubernetes.write.outcome import Outcome
from tenure.engine.plan import Plan
from tenure.history.record import Origin
from tenure.live.loop import CycleOutcome, Loop
from tenure.live.records.drain import HistoryDrain
from tenure.live.records.recorded_cycle import recorded
from tenure.live.records.recorder import LiveRecorder
from tenure.live.records.recording import Recording
from tenure.model.cluster import Eviction
from tenure.model.documents.collector import collector_seldom

BEGIN = 1_795_200_000_000_000
STEP = 200_000
BLOCK, BLOCKS = 50, 12
REST = 3
"""The loop rests for so many times as long as a cycle took."""


class ReplayedCluster:
    """A cluster without a server: what is bound runs at once."""

    fenced = NotLeaderError
    has_more_to_explain = False

    def __init__(self, pods: int, evictions: int) -> None:
        self.informers = InformerCache(cast("Client", None), Options())  # nothing is asked of a server
        self.observer = Observer(self.informers)
        self.pods = pods
        for number in range(NODES):
            self.informers.nodes.put(msgspec.json.decode(json.dumps(node(number)), type=api.ApiNode))
        for number in range(pods):
            item = pod(number)
            seal = Seal(queue="default", devices=(number // NODES,), first=True)  # as Tenure writes where it binds
            item["status"]["conditions"].append(condition_of(seal, BEGIN - STEP))
            self.put(item)
        past = [Eviction(at=BEGIN - number * STEP, workload=f"default/past-{number}", task="t", cause="reclaim",
                         beneficiary="default/job-0", lost={"cpu": 1}) for number in range(evictions)]  # fmt: skip
        entries = [entry_of(one, f"uid-{n}", f"uid-of-{n}", None) for n, one in enumerate(past)]
        meta = api.Meta(name="log", namespace="tenure-system")
        log = api.ApiObject(metadata=meta, data={DATA: write(structs.replace(one, done=True) for one in entries)})
        self.informers._objects("eviction log").put(log)  # noqa: SLF001  as its watch does

    def put(self, item: dict[str, Any]) -> None:
        """Take in a pod."""
        self.informers.pods.put(msgspec.json.decode(msgspec.json.encode(item), type=api.ApiPod))

    def change(self, number: int) -> None:
        """One job comes, one goes."""
        item = pod(self.pods + 10 * number)
        del item["spec"]["nodeName"], item["metadata"]["annotations"], item["status"]["conditions"]
        item["status"]["phase"] = "Pending"
        self.put(item)
        for index in range(10):
            self.informers.pods.drop(("default", f"job-{number}-{index}"))

    def ready(self) -> bool:
        """Say yes."""
        return True

    def wait(self, seconds: float) -> bool:  # noqa: ARG002
        """Wait for nothing."""
        return True

    def wake(self) -> None:
        """Nobody waits."""

    def observe(self, now: int) -> Observed:
        """Give the cluster."""
        return self.observer.observe(now)

    def stands(self, plan: Plan) -> bool:  # noqa: ARG002
        """Say yes."""
        return True

    def carry_out(self, plan: Plan, view: Observed) -> Outcome:
        """Bind."""
        for step in plan.steps:
            if step.action == "bind":
                found = view.pod(step.workload, step.task_index)
                bound = pod_records.bound(found, step.node, step.devices, plan.now, plan.now)
                self.informers.pods.assume(found, bound)
        return Outcome(done=list(plan.steps))

    def unexplained(self, view: Observed, most: int) -> list[str]:  # noqa: ARG002
        """Explain nothing."""
        return []

    def tell(self, *_: object) -> None:
        """Tell nobody."""


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--evictions", type=int, default=0)
    asked = parser.parse_args()
    results = Results("B18")
    rows = [row for count in asked.pods for row in measured(count, results, asked.evictions)]
    results.write()
    heads = ["pods", "", "loop's thread", "in its blocks", "process", "elapsed"]
    print_table("a live cycle after one arrival, ms", heads, rows)


def measured(count: int, results: Results, evictions: int = 0) -> list[list[str]]:
    """Run blocks of cycles with and without history."""
    cluster = ReplayedCluster(count, evictions)
    with tempfile.TemporaryDirectory() as folder, collector_seldom():
        drain = HistoryDrain(str(Path(folder) / "history.db"), Origin("bench", "default"))
        drain.start()
        on = [True]
        own: list[float] = []
        recording = Recording(LiveRecorder("default"), drain.add, lambda error: print(repr(error)))
        recording.start()

        def told(cycle: CycleOutcome) -> None:
            if on[0]:
                began = time.thread_time()
                recording.cycle(recorded(cycle, 0))
                own.append(time.thread_time() - began)

        clock = [BEGIN]
        loop = Loop(cluster, lambda: 1, told=told, wall=lambda: clock[0])
        recording.begin(BEGIN, "bench")
        loop.cycle()
        loop.cycle()
        time.sleep(1)
        while drain.backlog:
            time.sleep(0.1)
        own.clear()
        took: dict[bool, list[list[tuple[float, float, float]]]] = {True: [], False: []}
        number = 0
        for block in range(2 * BLOCKS):
            on[0] = block % 2 == 0
            took[on[0]].append([])
            for cycle in range(BLOCK):
                cluster.change(number)
                number += 1
                clock[0] += STEP
                began = time.thread_time(), time.monotonic(), time.process_time()
                done = loop.cycle()
                own_thread, elapsed = time.thread_time() - began[0], time.monotonic() - began[1]
                time.sleep(REST * done.processor)  # in which records are made and written
                if cycle:  # the first of a block tells also of what the block before did not
                    took[on[0]][-1].append((own_thread, time.process_time() - began[2], elapsed))
        recording.stop()
        drain.stop()
        assert not drain.trouble, drain.trouble
    return told_of(count, took, own, results)


def told_of(count: int, took: dict[bool, list[list[tuple[float, float, float]]]], own: list[float],
            results: Results) -> list[list[str]]:  # fmt: skip
    """Report the cycles of all blocks, by whether there was a history; gives rows."""
    rows: list[list[str]] = []
    mine: dict[bool, float] = {}
    spans: dict[bool, float] = {}
    for is_on, name in ((False, "without history"), (True, "with history")):
        blocks = [[statistics.median(column) * 1000 for column in zip(*block, strict=True)] for block in took[is_on]]
        mine[is_on], process, elapsed = (statistics.median(column) for column in zip(*blocks, strict=True))
        least, most = min(block[0] for block in blocks), max(block[0] for block in blocks)
        spans[is_on] = most - least
        span = f"{least:.2f} to {most:.2f}"
        rows.append([f"{count:,}", name, f"{mine[is_on]:.2f}", span, f"{process:.2f}", f"{elapsed:.2f}"])
    handing = statistics.median(own) * 1000
    rows.append([f"{count:,}", "of that handing on what is recorded", f"{handing:.3f}", "", "", ""])
    allowed = rounded(mine[False] + spans[False])
    note = f"handing on what is recorded {handing:.3f} ms; blocks without went over {spans[False]:.2f} ms"
    results.add(f"{count:,} pods, live: a cycle of the loop's thread with a history", mine[True], "ms",
                anchor=rounded(mine[False]), against="without", at_most=allowed, note=note)  # fmt: skip
    return rows


if __name__ == "__main__":
    main()
