"""B3: a full cycle of all actions on a large cluster, and the next after a change of one part in a hundred.

100,000 pods, of which 60,000 run, on 5,000 nodes of 8 GPUs; 500 leaf queues in four levels; gangs of 1 to 512 tasks.
Anchor: one pass over the snapshot that does nothing but add up what every task asks for.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import replace

from common import measure, peak_memory, print_memory, print_table
from results import Results, machine_speed
from tenure.cycle import Scheduler
from tenure.engine.plan import Plan
from tenure.engine.snapshot import session_of
from tenure.engine.state.session import Session
from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.workload import Phase, Task, TaskSpec, Workload

GPU = "nvidia.com/gpu"
PER_NODE = 8
NOW = 1_000_000_000_000_000
HOUR = 3_600_000_000
ONE = TaskSpec(requests=(("cpu", 4000), (GPU, 1)))
BARE = TaskSpec(requests=(("cpu", 2000),))
SIZES = (1, 1, 1, 1, 2, 4, 8, 16, 64, 512)
FAN_OUT = (5, 5, 4, 5)


def tree(nodes: int) -> tuple[tuple[Queue, ...], list[str]]:
    """Give 500 leaves in four levels, each guaranteed an equal part of nine tenths of the GPUs."""
    level, queues = [""], []
    for fan in FAN_OUT:
        below = [f"{parent or 'q'}-{n}" for parent in level for n in range(fan)]
        queues += [Queue(name=name, parent=name.rsplit("-", 1)[0] if level != [""] else None) for name in below]
        level = below
    floor = {GPU: max(1, nodes * PER_NODE * 9 // 10 // len(level)) * 1000}
    leaves = set(level)
    return tuple(replace(q, guaranteed=floor) if q.name in leaves else q for q in queues), level


def snapshot(nodes: int, kind: str, seed: int = 1, each: int = 20) -> Cluster:
    """Nodes whose GPUs are nearly all in use, beside pods without GPUs; ``each`` pods for a node, of which 3 in 5 run.

    ``rest``: every leaf holds about what it is due, as a scheduler leaves it behind. ``return``: three leaves in ten,
    which had nothing to run, come back all at once for what they are guaranteed.
    """
    rng = random.Random(seed)
    queues, leaves = tree(nodes)
    owners = leaves if kind == "rest" else leaves[: len(leaves) * 7 // 10]
    cpu = max(96_000, 4_800 * each)
    machines = tuple(Node(name=f"n{i:05}", allocatable={"cpu": cpu, GPU: PER_NODE}) for i in range(nodes))
    slots = [(node, device) for node in range(nodes) for device in range(PER_NODE)]
    placed = [(ONE, slot) for slot in slots[: len(slots) * 99 // 100]]
    running = max(nodes * each * 3 // 5, len(placed))
    placed += [(BARE, (rng.randrange(nodes), -1)) for _ in range(running - len(placed))]
    if kind == "rest":
        rng.shuffle(placed)
    workloads: list[Workload] = []
    at = 0
    while at < len(placed):
        size = min(rng.choice(SIZES[:-2]), len(placed) - at)
        owner = owners[at * len(owners) // len(placed)] if kind == "rest" else rng.choice(owners)
        workloads.append(_running(f"r{at:06}", rng, owner, placed[at : at + size]))
        at += size
    waiting = 0
    while waiting < nodes * each - running:
        size = min(rng.choice(SIZES), nodes * each - running - waiting)
        workloads.append(waits(f"p{waiting:06}", rng, leaves, size))
        waiting += size
    return Cluster(now=NOW, settings=Settings(), nodes=machines, queues=queues, workloads=tuple(workloads))


def _running(name: str, rng: random.Random, leaf: str, places: list[tuple[TaskSpec, tuple[int, int]]]) -> Workload:
    started = NOW - rng.randint(1, 48 * 60) * HOUR // 60
    tasks = tuple(
        Task(name=f"{name}-{i}", spec=spec, phase=Phase.RUNNING, node=f"n{node:05}",
             devices=(device,) if device >= 0 else (), started_at=started)
        for i, (spec, (node, device)) in enumerate(places)
    )  # fmt: skip
    return Workload(name=name, queue=leaf, created_at=started, started_at=started, tasks=tasks)


def waits(name: str, rng: random.Random, leaves: list[str], size: int) -> Workload:
    """A gang that waits."""
    tasks = tuple(Task(name=f"{name}-{i}", spec=ONE) for i in range(size))
    return Workload(name=name, queue=rng.choice(leaves), created_at=NOW - rng.randint(1, 3600) * 1_000_000, tasks=tasks)


def change(session: Session, cluster: Cluster, seed: int = 2, share: float = 0.01) -> None:
    """Let a share of the running workloads end, one in a hundred, and as many arrive."""
    rng = random.Random(seed)
    _, leaves = tree(len(cluster.nodes))
    active = [key for key, w in session.workloads.items() if w.occupied()]
    ended = rng.sample(active, max(1, int(len(active) * share)))
    for key in ended:
        session.remove_workload(key)
    for number in range(len(ended)):
        session.add_workload(waits(f"new{seed}-{number:05}", rng, leaves, rng.choice(SIZES[:4])))


def main() -> None:
    """Print one line for each part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000, help="nodes of 8 GPUs (default and goals: 5000)")
    parser.add_argument("--actions", help="only these, separated by commas")
    parser.add_argument("--kind", choices=("rest", "return"), action="append", help="only this one")
    given = parser.parse_args()
    results = Results("B3")
    for kind in given.kind or ("rest", "return"):
        run(kind, given, results, has_reasons=False)
        if kind == "rest":
            results.add(f"{kind}, {given.nodes:,} nodes: memory at most", peak_memory(), "MiB",
                        at_most=500 if given.nodes == WANTED else None)  # fmt: skip
            run(kind, given, results, has_reasons=True)
    results.write()
    print_memory()


WANTED = 5000
"""Nodes for which there are goals."""
GOALS = {"rest": (2.0, 0.3), "return": (2.0, None)}
"""Seconds that are wanted of 5,000 nodes, by kind: of the full cycle, and of the next."""


def run(kind: str, given: argparse.Namespace, results: Results, *, has_reasons: bool) -> None:
    """Print the lines of one kind of cluster; with why each one waits, as a live scheduler works out, or without."""
    cluster = snapshot(given.nodes, kind)
    if given.actions:
        cluster = replace(cluster, settings=Settings(actions=tuple(given.actions.split(","))))
    pods = [task for workload in cluster.workloads for task in workload.tasks]
    anchor = measure(lambda: sum(amount for task in pods for _, amount in task.spec.requests))
    sessions: list[Session] = []
    taken = measure(lambda: sessions.append(session_of(cluster)))
    scheduler = Scheduler(sessions[0])
    scheduler.context.detailed = has_reasons
    plans: list[Plan] = []
    full = measure(lambda: plans.append(scheduler.cycle(NOW)))
    change(sessions[0], cluster)
    then = measure(lambda: plans.append(scheduler.cycle(NOW + 1_000_000)))
    counts = [f"{sum(s.action == a for s in p.steps)} {a}" for p in plans for a in ("bind", "evict", "nominate")]
    goals = GOALS[kind] if given.nodes == WANTED else (None, None)
    extra = (", with reasons" if has_reasons else "") + (f", {given.actions}" if given.actions else "")
    rows, speed = [], machine_speed()
    for name, t, goal, told in (
        ("taking the snapshot in", taken, None, ""),
        ("full cycle", full, goals[0], ", ".join(counts[:3])),
        ("next cycle, 1% changed", then, goals[1], ", ".join(counts[3:])),
    ):
        allowed = "" if goal is None else f"{goal:g} s"
        rows.append([name, f"{t.wall:.2f} s", f"{t.cpu:.2f} s", allowed, f"{t.cpu / anchor.cpu:,.0f}", told])
        case = f"{kind}, {given.nodes:,} nodes{extra}: {name}"
        results.add(case, t.cpu, "s", anchor=anchor.cpu, against="a pass over the tasks", at_most=goal,
                    machine=speed, note=told)  # fmt: skip
    about = f"{len(pods):,} pods, {given.nodes:,} nodes; one pass over the snapshot takes {anchor.cpu:.3f} s"
    title = f"B3 {kind}{extra}: {about}"
    print_table(title, ["", "wall", "processor", "goal", "anchors", "steps"], rows)


if __name__ == "__main__":
    main()
