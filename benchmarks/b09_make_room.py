"""B9: make room for gangs. Cost of the greedy plan against the proven optimum, and how long the proof takes.

Nodes have 8 GPUs, 96 CPUs and 768 GB. Tasks of 1, 2 and 4 GPUs with few or many CPUs are placed at random until the
wanted share of the GPUs is held; a gang asks for whole nodes or halves. *greedy* is the plan that stands where the
exact planner is off. Run: python benchmarks/b09_make_room.py
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np

from results import Results
from tenure.rescheduler.check.plan import check
from tenure.rescheduler.planner import PlannerLimits, make_room, most_room
from tenure.rescheduler.problem.definition import MoveProblem, PendingMembers
from timed_solver import TimedSolver

KINDS = np.array(
    [[1000, 1, 8_000, 64], [1000, 1, 16_000, 32], [2000, 2, 16_000, 128], [4000, 4, 32_000, 256], [0, 0, 8_000, 64],
     [8000, 8, 64_000, 512], [4000, 4, 48_000, 384]], np.int64,
)  # fmt: skip
NODE = np.array([8000, 8, 96_000, 768], np.int64)
SMALL, WHOLE, HALF = 5, 5, 6


def cluster(nodes: int, held: float, gang: int, cls: int, seed: int) -> MoveProblem:
    """Make a cluster of which the share ``held`` of the GPUs is taken, and a gang of a class that waits."""
    rng = np.random.default_rng(seed)
    room = np.repeat(NODE[:, None], nodes, axis=1)
    tasks: list[tuple[int, int, int]] = []
    taken, wanted, failed = 0, held * nodes * 8000, 0
    while taken < wanted and failed < 20 * nodes:
        kind, node = int(rng.choice(SMALL, p=[0.35, 0.2, 0.25, 0.15, 0.05])), int(rng.integers(nodes))
        if (room[:, node] >= KINDS[kind]).all():
            room[:, node] -= KINDS[kind]
            tasks.append((kind, node, int(rng.integers(1, 100))))
            taken += int(KINDS[kind][0])
        else:
            failed += 1
    table = np.array(tasks, np.int64)
    return MoveProblem(
        free=room, ask=KINDS, allowed=np.ones((len(KINDS), nodes), bool),
        shapes=tuple((c,) for c in range(len(KINDS))), cls=table[:, 0], shape=table[:, 0].copy(), node=table[:, 1],
        cost=table[:, 2], unit=np.full(len(table), -1), asks=(PendingMembers(group=0, cls=cls, count=gang),),
        domain=np.zeros((1, nodes), np.int64), resources=("nvidia.com/gpu", "free devices", "cpu", "memory"),
        nodes=tuple(f"node-{i}" for i in range(nodes)),
    )  # fmt: skip


CASES = [
    ("16 nodes, 88%, gang of 1", 16, 0.88, 1, WHOLE, 20),
    ("32 nodes, 92%, gang of 2", 32, 0.92, 2, WHOLE, 20),
    ("32 nodes, 94%, gang of 2 halves", 32, 0.94, 2, HALF, 20),
    ("64 nodes, 94%, gang of 3", 64, 0.94, 3, WHOLE, 20),
    ("64 nodes, 96%, gang of 4 halves", 64, 0.96, 4, HALF, 20),
    ("64 nodes, 96%, gang of 4", 64, 0.96, 4, WHOLE, 20),
    ("1,000 nodes, 90%, gang of 8", 1000, 0.90, 8, WHOLE, 3),
    ("1,000 nodes, 97%, gang of 1", 1000, 0.97, 1, WHOLE, 3),
    ("1,000 nodes, 97%, gang of 8", 1000, 0.97, 8, WHOLE, 3),
    ("1,000 nodes, 97%, gang of 16", 1000, 0.97, 16, WHOLE, 3),
    ("1,800 nodes, 97%, gang of 16", 1800, 0.97, 16, WHOLE, 3),
    ("3,000 nodes, 97%, gang of 32", 3000, 0.97, 32, WHOLE, 1),
]


def main() -> None:
    """Run all cases and print one line for each: seconds are those of the processor, in both processes."""
    print(f"{'case':36} {'tasks':>6} {'plans':>5} {'none':>5} {'proven':>6} {'greedy/optimum':>15} {'missed':>6} "
          f"{'median s':>9} {'worst s':>8} {'greedy s':>9}")  # fmt: skip
    results = Results("B9")
    with TimedSolver() as solver:
        most_room(cluster(4, 0.8, 1, HALF, 0), 1, solver)  # starts it: what is measured is a scheduler that runs
        for name, nodes, held, gang, cls, seeds in CASES:
            if len(sys.argv) > 1 and sys.argv[1] not in name:
                continue
            _run(name, [cluster(nodes, held, gang, cls, seed) for seed in range(seeds)], solver, results)
    results.write()


def _run(name: str, problems: list[MoveProblem], solver: TimedSolver, results: Results) -> None:
    times, alone, ratios, proven, none, missed = [], [], [], 0, 0, 0
    for problem in problems:
        begin = time.process_time()
        quick = make_room(problem, None)
        alone.append(time.process_time() - begin)
        begin, solver.seconds = time.process_time(), 0.0
        answer = make_room(problem, solver, PlannerLimits(time_limit=300.0))  # nothing that the clock decides
        times.append(time.process_time() - begin + solver.seconds)
        faults = check(problem, answer)
        assert not faults, faults
        certificate = answer.certificate
        proven += certificate.method in ("exact", "cover", "impossible")
        none += certificate.cost is None
        if certificate.cost:
            missed += quick.certificate.cost is None
            if quick.certificate.cost is not None:
                ratios.append(quick.certificate.cost / certificate.cost)
    goal = None if len(problems[0].nodes) > 2000 else 0.1 if len(problems[0].nodes) < 1000 else 2
    note = f"{proven} of {len(problems)} proven, {none} without a plan"
    results.add(f"{name}: exact plan, median", statistics.median(times), "s", at_most=goal, note=note)
    if ratios:
        results.add(f"{name}: greedy cost, mean", statistics.mean(ratios), "of the optimum", at_most=1.1,
                    note=f"worst {max(ratios):.2f}, {missed} missed")  # fmt: skip
    ratio = f"{statistics.mean(ratios):.3f} / {max(ratios):.2f}" if ratios else "-"
    tasks = round(statistics.mean(p.tasks for p in problems))
    print(f"{name:36} {tasks:6} {len(problems):5} {none:5} {proven:6} {ratio:>15} {missed:6} "
          f"{statistics.median(times):9.3f} {max(times):8.3f} {statistics.median(alone):9.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
