"""B20: a generated workload replayed with all default actions, without backfilling and with EASY.

20,000 jobs (214,742 pods) for 1,024 GPUs at a load of 0.9. Each replay is a process of its own and ends after
``--seconds`` of the processor; the rate is that of the jobs that had ended by then, and the row says how many. Rates
are scaled to a machine on which ``sum(range(10**7))`` takes 0.25 s. Anchor: the same with `allocate` alone.

A second table has what one event (a job ends, or arrives) costs while many wait: medians of a cycle each, with the
generated jobs, the processor's time; as in a replay, and with why each one waits, as a live scheduler works out.

    python benchmarks/b20_all_actions.py [--jobs 20000] [--seconds 40] [--backfill easy] [--waiting 1000 10000 50000]
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from typing import NamedTuple

from common import print_table
from results import REFERENCE, Results, machine_speed
from tenure.cycle import Scheduler
from tenure.engine.state.session import Session
from tenure.model.cluster import Cluster
from tenure.simulator.generate import GeneratorConfig, cluster_for, generate
from tenure.simulator.run import Progress, Simulation, SimulationSetup
from tenure.simulator.trace import Trace

GPUS, LOAD, SEED = 1024, 0.9, 1
GOAL = 1_500
SECOND, BEGIN = 1_000_000, 10**12
ACTIONS = ("all", "allocate")
OFTEN = 10
"""Events after which the time is looked at."""


class Replayed(NamedTuple):
    """A replay: jobs that ended, jobs of the trace, seconds of the processor, and what the machine took beside it."""

    done: int
    jobs: int
    seconds: float
    machine: float

    @property
    def scaled(self) -> float:
        """Jobs per second of the processor on the machine of reference."""
        return self.done / self.seconds * self.machine / REFERENCE


class Event(NamedTuple):
    """What one event costs: milliseconds of the processor in the median, and what the machine took beside it."""

    milliseconds: float
    machine: float


def workload(jobs: int) -> tuple[Cluster, Trace]:
    """Give the cluster and the trace."""
    config = GeneratorConfig(jobs=jobs, load=LOAD, capacity=GPUS, unit="gpu", node_size=8)
    return cluster_for(config), generate(config, SEED)


def configured(cluster: Cluster, actions: str, backfill: str) -> Cluster:
    """Give the cluster with all default actions, or with `allocate` alone."""
    settings = replace(cluster.settings, backfill=backfill)  # type: ignore[arg-type]
    return replace(cluster, settings=replace(settings, actions=("allocate",)) if actions == "allocate" else settings)


def replay(actions: str, backfill: str, jobs: int, most: float) -> Replayed:
    """Replay the workload until it ends, or until the processor's time is used up."""
    cluster, trace = workload(jobs)
    simulation = Simulation(SimulationSetup(configured(cluster, actions, backfill)), trace)
    before = machine_speed()
    began = time.process_time()

    def look(_: Progress) -> None:
        if time.process_time() - began > most:
            raise KeyboardInterrupt  # a simulation ends early by it, and says what it knows so far

    simulation.run(look, OFTEN)
    seconds = time.process_time() - began
    return Replayed(simulation.done, len(trace.jobs), seconds, min(before, machine_speed()))


def event(waiting: int, backfill: str, most: float, *, has_reasons: bool) -> Event:
    """Measure events with so many that wait: jobs that run end one after the other, and as many arrive."""
    cluster, trace = workload(waiting + 2_000)
    session = Session(cluster.nodes, cluster.queues, configured(cluster, "all", backfill).settings)
    scheduler = Scheduler(session)
    scheduler.context.detailed = has_reasons
    models = [replace(job.workload, created_at=number) for number, job in enumerate(trace.jobs)]
    session.add_workloads(models[:-1_000])
    now, spare = BEGIN, models[-1_000:]
    scheduler.cycle(now)
    took: list[float] = []
    while spare and sum(took) < most:
        now += SECOND
        if len(took) % 2:
            session.add_workload(replace(spare.pop(), created_at=now))
        else:
            end_one(session)
        began = time.process_time()
        scheduler.pass_time(now)
        scheduler.cycle(now)
        took.append(time.process_time() - began)
    return Event(1000 * statistics.median(took), machine_speed())


def end_one(session: Session) -> None:
    """End one of the workloads that run."""
    running = (key for key, state in session.workloads.items() if state.occupied())
    session.remove_workload(next(running))


def apart(*words: str) -> list[float]:
    """Run a part of the benchmark in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--part", *words], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def replays(given: argparse.Namespace, results: Results) -> list[list[object]]:
    """Measure the replays; gives rows."""
    rows = []
    for backfill in given.backfill:
        found = {
            actions: Replayed(*apart("replay", actions, backfill, str(given.jobs), str(given.seconds)))  # type: ignore[arg-type]
            for actions in reversed(ACTIONS)
        }
        for actions, one in found.items():
            note = "" if one.done == one.jobs else f"the first {one.done:,} of {one.jobs:,} in {one.seconds:.0f} s"
            columns: dict[str, object] = {"machine": one.machine, "note": note}
            if actions == "all":
                alone = round(found["allocate"].scaled, 1)
                columns |= {"anchor": alone, "against": "`allocate` alone", "at_least": GOAL}
            name = "all actions" if actions == "all" else "`allocate` alone"
            results.add(f"backfill: {backfill}, {name}", one.scaled, "jobs/s, scaled", **columns)  # type: ignore[arg-type]
            if actions == "all":
                slower = found["allocate"].scaled / one.scaled
                results.add(f"backfill: {backfill}, all actions beside `allocate` alone", slower, "times as long",
                            at_most=4, machine=one.machine)  # fmt: skip
            rows.append([backfill, actions, f"{one.done:,}", f"{one.seconds:.1f}", f"{one.machine:.3f}",
                         f"{one.scaled:,.1f}"])  # fmt: skip
    return rows


def events(given: argparse.Namespace, results: Results) -> list[list[object]]:
    """Measure events beside long queues; gives rows."""
    rows = []
    for backfill, has_reasons in itertools.product(given.backfill, (False, True)):
        first, how = None, ", with reasons" if has_reasons else ""
        for waiting in sorted(given.waiting):
            found = Event(*apart("event", str(waiting), backfill, str(given.seconds), how))
            first = first or found
            allowed = first.milliseconds * math.log(waiting) / math.log(min(given.waiting))
            goal = None if found is first else float(f"{allowed:.4g}")
            results.add(f"backfill: {backfill}, an event while {waiting:,} jobs wait{how}", found.milliseconds, "ms",
                        at_most=goal, machine=found.machine)  # fmt: skip
            times = found.milliseconds / first.milliseconds
            cells = [f"{found.milliseconds:.2f}", f"{times:.2f}", f"{found.machine:.3f}"]
            rows.append([backfill + how, f"{waiting:,}", *cells])
    return rows


def main() -> None:
    """Measure and print, or measure one part and print it as JSON."""
    if sys.argv[1:2] == ["--part"]:
        part, *words = sys.argv[2:]
        found = (
            replay(words[0], words[1], int(words[2]), float(words[3]))
            if part == "replay"
            else event(int(words[0]), words[1], float(words[2]), has_reasons=bool(words[3]))
        )
        print(json.dumps(found))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=40.0, help="of the processor, the most that a part may take")
    parser.add_argument("--backfill", nargs="+", choices=("none", "easy"), default=["none", "easy"])
    parser.add_argument("--waiting", type=int, nargs="*", default=[1_000, 10_000, 50_000])
    given, results = parser.parse_args(), Results("B20")
    head = ["backfill", "actions", "jobs ended", "cpu s", "machine", "jobs/s, scaled"]
    print_table(f"B20: {given.jobs:,} jobs for {GPUS:,} GPUs at {LOAD:.0%}", head, replays(given, results))
    if given.waiting:
        head = ["backfill", "waiting", "ms an event", "x the first", "machine"]
        print_table("B20: an event, all actions, median", head, events(given, results))
    results.write()


if __name__ == "__main__":
    main()
