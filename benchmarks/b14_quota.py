"""Quota preemption: the root's max cut by half, 1,000 queues in 5 levels, 100,000 allocations; planned in at most 2 s.

Prints what it decided, and how long the cycle took in which it fires: from the choice to the plan with a step for each
eviction. The session, which a scheduler builds once, is built before, and what that takes stands beside it. All times
are of the processor; so that machines and hours can be compared, they are given in units of a fixed loop as well.
"""

from __future__ import annotations

import random
import sys
import time

from results import Results
from tenure.cycle import Scheduler
from tenure.engine.plan import Plan
from tenure.engine.snapshot import session_of
from tenure.engine.state.session import Session
from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue, QueueStatus, QuotaStatus
from tenure.model.settings import QuotaPreemptionSettings, Settings
from tenure.model.workload import Phase, Task, TaskSpec, Workload
from timed_solver import TimedMemory, TimedSolver

NOW = 1_800_000_000_000_000
MINUTE = 60_000_000
ANCHOR = 2.0
"""Seconds."""


def queues(count: int) -> list[Queue]:
    """Make a tree of ``count`` queues in five levels."""
    widths = (1, 6, 5, 5, 10)
    made = [Queue(name="root")]
    level = ["root"]
    for width in widths[1:]:
        following = []
        for parent in level:
            for number in range(width):
                if len(made) < count:
                    made.append(Queue(name=f"{parent}.{number}", parent=parent))
                    following.append(made[-1].name)
        level = following
    return made


def build(allocations: int, count: int, seed: int) -> Cluster:
    """Make the cluster; a tenth of the work has opted out, and every second leaf is guaranteed a little."""
    draw = random.Random(seed)
    tree = queues(count)
    parents = {q.parent for q in tree}
    leaves = [q.name for q in tree if q.name not in parents]
    sizes = [TaskSpec(requests=(("cpu", cores * 1000), ("memory", cores << 32))) for cores in (1, 2, 4, 8)]
    nodes = [Node(name=f"n{i}", allocatable={"cpu": 512_000, "memory": 4 << 40}) for i in range(1000)]
    work, total, held = [], 0, dict.fromkeys(leaves, 0)
    for number in range(allocations):
        spec, leaf = draw.choice(sizes), draw.choice(leaves)
        start = NOW - draw.randrange(1, 10_000) * 1_000_000
        node = nodes[number % len(nodes)].name
        task = Task(name=f"t{number}", spec=spec, phase=Phase.RUNNING, node=node, started_at=start)
        work.append(
            Workload(
                name=f"w{number}", queue=leaf, tasks=(task,), started_at=start, created_at=start,
                priority=draw.choice((0, 10, 50)), allow_preemption=draw.random() > 0.1,
            )
        )  # fmt: skip
        total += spec.requests[0][1]
        held[leaf] += spec.requests[0][1]
    most = {"cpu": total // 2}
    status = QueueStatus(quota_preemption=QuotaStatus(armed_at=NOW - MINUTE, delay=MINUTE, deadline=NOW, max=most))
    made = []
    for index, queue in enumerate(tree):
        if queue.name == "root":
            made.append(Queue(name="root", max=most, quota_preemption_delay=MINUTE, status=status))
        elif queue.name in held and index % 2:
            made.append(Queue(name=queue.name, parent=queue.parent, guaranteed={"cpu": held[queue.name] // 4}))
        else:
            made.append(queue)
    return Cluster(
        now=NOW,
        nodes=tuple(nodes),
        queues=tuple(made),
        workloads=tuple(work),
        settings=Settings(actions=("quota",), quota_preemption=QuotaPreemptionSettings(enabled=True)),
    )


def loop() -> float:
    """Give the seconds that a fixed loop takes on this machine, now."""
    began, total = time.process_time(), 0
    for number in range(10_000_000):
        total += number
    return time.process_time() - began


def plan_once(cluster: Cluster) -> tuple[float, float, float, Session, Plan]:
    """Build a session and plan on it; gives the seconds that each took, those of the solver's process by themselves."""
    with TimedSolver() as solver:
        began = time.process_time()
        session = session_of(cluster)
        scheduler = Scheduler(session)
        scheduler.context.rescheduling = TimedMemory(solver)
        built = time.process_time()
        plan = scheduler.cycle(NOW)
        return built - began, time.process_time() - built, solver.seconds, session, plan


def main() -> None:
    """Measure, as often as the command line says (once), each time on a session of its own."""
    cluster = build(100_000, 1_000, seed=14)
    unit, times = loop(), []
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
        built, took, solved, session, plan = plan_once(cluster)
        times.append((took + solved, took, solved))
        print(f"session {built:.2f} s, plan {took:.2f} s and {solved:.2f} s of the solver; a loop {unit:.2f} s")
    freed = sum(session.workloads[s.workload].tasks[s.task_index].cls.amount[0] for s in plan.steps)
    need = plan.quota[0].over["cpu"]
    print(
        f"quota: {len(cluster.queues)} queues, {len(cluster.workloads)} allocations, {len(plan.steps)} evicted; "
        f"freed {freed / 1000:.0f} of {need / 1000:.0f} cores, shortfall {plan.quota[0].shortfall}"
    )
    (best, own, solved), results = min(times), Results("B14")
    among = f"{len(cluster.workloads):,} allocations in {len(cluster.queues):,} queues"
    case = f"{len(plan.steps):,} evictions among {among}"
    bare = "a bare loop of 10⁷ additions"
    note = f"{own:.1f} s, and {solved:.1f} s of the solver's process"
    results.add(f"plan of {case}", best, "s", anchor=round(unit, 3), against=bare, at_most=ANCHOR, note=note)
    results.add("taking the snapshot in", built, "s", anchor=round(unit, 3), against=bare)
    results.write()
    print(f"planned in {best:.2f} s at best; anchor {ANCHOR} s; ratio {ANCHOR / best:.2f}; a loop: {unit:.2f} s")


if __name__ == "__main__":
    main()
