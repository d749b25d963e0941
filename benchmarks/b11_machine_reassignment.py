"""B11: machine reassignment (ROADEF/EURO challenge 2012, set A), part by part with the product's solver.

Anchors: the optimum of a1_1 and lower bounds of the others, as published. The number of parts is fixed, so the same run
gives the same layout.
Run: python benchmarks/b11_machine_reassignment.py [a1_1 ...] [--parts N] [--most NODES] [--seed N]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from common import measure, print_memory, print_table, traces_or_skip
from reassignment import Balance, Ints, Reassignment
from reassignment_check import cost_of, faults_of
from reassignment_guided import Guided
from reassignment_search import Reassigned, Search
from results import Results
from tenure.rescheduler.milp.solver import ProcessSolver

ANCHORS = {"a1_1": 44_306_501, "a1_2": 777_530_730, "a1_3": 583_005_700, "a1_4": 242_387_530, "a1_5": 727_578_290}
PARTS = {"a1_1": 20, "a1_2": 1_500, "a1_3": 50, "a1_4": 330, "a1_5": 20}
MOST = {"a1_4": 4}
AGAINST, GOAL = {"a1_1": "optimum"}, {"a1_4": 2.5}
"""What the anchor is where it is no lower bound, and percent above it where more than one is allowed."""

GUIDED = {"a1_4"}


class Numbers:
    """Whole numbers of a file, one after the other."""

    def __init__(self, path: Path) -> None:
        self.all = np.array(path.read_text().split(), np.int64)
        self.next = 0

    def take(self, *shape: int) -> Ints:
        """Give as many as fill an array."""
        begin, self.next = self.next, self.next + int(np.prod(shape))
        return self.all[begin : self.next].reshape(shape)

    def one(self) -> int:
        """Give one."""
        return int(self.take(1)[0])


def read(folder: Path, name: str) -> Reassignment:
    """Read an instance: machines are nodes, processes tasks, services groups."""
    file = Numbers(folder / f"model_{name}.txt")
    resources = file.take(file.one(), 2)
    kinds = len(resources)
    count = file.one()
    machines = file.take(count, 2 + 2 * kinds + count)
    least, needs = [], []
    for _ in range(file.one()):
        least.append(file.one())
        needs.append(tuple(file.take(file.one()).tolist()))
    processes = file.take(file.one(), 2 + kinds)
    balances = tuple(Balance(*file.take(4).tolist()) for _ in range(file.one()))
    process, service, machine = file.take(3).tolist()
    assert file.next == len(file.all)
    return Reassignment(
        capacity=machines[:, 2 : 2 + kinds], limit=machines[:, 2 + kinds : 2 + 2 * kinds],
        transient=resources[:, 0] > 0, over=resources[:, 1], takes=processes[:, 1 : 1 + kinds],
        origin=Numbers(folder / f"assignment_{name}.txt").all, group=processes[:, 0], domain=machines[:, 1],
        least=np.array(least), near=machines[:, 0], needs=tuple(needs), balances=balances,
        cost=process * processes[:, 1 + kinds], distance=machine * machines[:, 2 + 2 * kinds :], most_of_group=service,
    )  # fmt: skip


def main() -> None:
    """Improve, check and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(ANCHORS))
    parser.add_argument("--parts", type=int)
    parser.add_argument("--most", type=int, help="nodes of the largest parts")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    folder = traces_or_skip("roadef2012")
    rows, results = [], Results("B11")
    for name in arguments.names:
        problem = read(folder, name)
        with ProcessSolver() as solver:
            parts, most = arguments.parts or PARTS[name], arguments.most or MOST.get(name, 8)
            kind = Guided if name in GUIDED else Search
            search = kind(problem, solver, parts, most, arguments.seed)
            made: list[Reassigned] = []
            took = measure(lambda s=search, m=made: m.append(s.run()))  # type: ignore[misc]
        (found,) = made
        faults = faults_of(problem, found.place)
        assert not faults, faults[:3]
        cost = cost_of(problem, found.place)
        assert cost == found.cost
        above = 100 * (cost / ANCHORS[name] - 1)
        seed = f", seed {arguments.seed}" if arguments.seed else ""
        results.add(f"{name}{seed}: cost", int(cost), "", anchor=ANCHORS[name], against=AGAINST.get(name, "bound"))
        results.add(f"{name}{seed}: above the anchor", above, "%", at_most=GOAL.get(name, 1.0))
        results.add(f"{name}{seed}: search", took.cpu + found.seconds, "s", at_most=60)
        rows.append([name, problem.nodes, problem.tasks, f"{found.before:,}", f"{cost:,}", f"{ANCHORS[name]:,}",
                     f"{cost / ANCHORS[name] - 1:.4%}", f"{took.cpu + found.seconds:.1f}",
                     f"{took.wall:.1f}"])  # fmt: skip
    results.write()
    head = ["instance", "nodes", "tasks", "before", "cost", "anchor", "above", "cpu s", "wall s"]
    print_table("B11: anchors are the optimum of a1_1 and lower bounds of the others", head, rows)
    print_memory()


if __name__ == "__main__":
    main()
