"""B18, live: what writing history costs a cycle of the live scheduler.

No server runs: a cluster of so many running pods, in which with each cycle one job comes, one starts and one ends, is
observed, decided about and told of, by the loop, the recorder and the drain of the scheduler. Blocks of cycles with
history, into SQLite, take turns with blocks without. Wanted: nothing measurable.

    python benchmarks/b18_live.py [--pods 10000 50000]
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

from b16_observe import NODES, node, pod
from common import print_table
from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache import pod_records
from tenure.clusters.kubernetes.cache.informers import InformerCache, Options
from tenure.clusters.kubernetes.client.leader import NotLeaderError
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.read.observe import Observed, Observer
from tenure.clusters.kubernetes.seals import Seal, condition_of
from tenure.clusters.kubernetes.write.actor import Outcome
from tenure.engine.plan import Plan
from tenure.history.record import Origin
from tenure.live.drain import HistoryDrain
from tenure.live.loop import CycleOutcome, Loop
from tenure.live.recorder import LiveRecorder
from tenure.model.collector import collector_seldom

BEGIN = 1_795_200_000_000_000
STEP = 200_000
BLOCK, BLOCKS = 50, 12


class ReplayedCluster:
    """A cluster without a server: what is bound runs at once."""

    fenced = NotLeaderError
    has_more_to_explain = False

    def __init__(self, pods: int) -> None:
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
    rows = [row for count in parser.parse_args().pods for row in measured(count)]
    print_table("a live cycle after one arrival, ms", ["pods", "", "loop's thread", "process", "elapsed"], rows)


def measured(count: int) -> list[list[str]]:
    """Run blocks of cycles with and without history."""
    cluster = ReplayedCluster(count)
    recorder = LiveRecorder("default")
    with tempfile.TemporaryDirectory() as folder, collector_seldom():
        drain = HistoryDrain(str(Path(folder) / "history.db"), Origin("bench", "default"))
        drain.start()
        on = [True]
        own: list[float] = []

        def told(cycle: CycleOutcome) -> None:
            if on[0]:
                began = time.thread_time()
                drain.add(recorder.cycle(cycle, 0))
                own.append(time.thread_time() - began)

        clock = [BEGIN]
        loop = Loop(cluster, lambda: 1, told=told, wall=lambda: clock[0])
        drain.add(recorder.begin(BEGIN, "bench"))
        loop.cycle()
        loop.cycle()
        while drain.backlog:
            time.sleep(0.1)
        own.clear()
        took: dict[bool, list[tuple[float, float, float]]] = {True: [], False: []}
        number = 0
        for block in range(2 * BLOCKS):
            on[0] = block % 2 == 0
            for cycle in range(BLOCK):
                cluster.change(number)
                number += 1
                clock[0] += STEP
                began = time.thread_time(), time.process_time(), time.monotonic()
                loop.cycle()
                ended = time.thread_time(), time.process_time(), time.monotonic()
                if cycle:  # the first of a block tells also of what the block before did not
                    took[on[0]].append(tuple(e - b for b, e in zip(began, ended, strict=True)))  # type: ignore[arg-type]
        drain.stop()
        recorder.stop()
        assert not drain.trouble, drain.trouble
    rows = []
    for is_on, name in ((False, "without history"), (True, "with history")):
        middles = (statistics.median(column) * 1000 for column in zip(*took[is_on], strict=True))
        rows.append([f"{count:,}", name, *(f"{middle:.2f}" for middle in middles)])
    rows.append([f"{count:,}", "of that the recorder", f"{statistics.median(own) * 1000:.3f}", "", ""])
    return rows


if __name__ == "__main__":
    main()
