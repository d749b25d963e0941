"""B2: reclaim over full nodes of 8 GPUs: one gang that takes them all, and thousands of single reclaims.

Anchor: KAI-Scheduler's reclaim in memory, as measured on two virtual CPUs: 500 nodes 8.97 s, 1,000 nodes 76 s for the
gang; 165 s for 4,000 reclaims of one GPU at 500 nodes.
"""

from __future__ import annotations

from common import measure, median, print_memory, print_table
from results import Results
from tenure.cycle import Scheduler
from tenure.engine.plan import Plan
from tenure.engine.snapshot import session_of
from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.workload import Phase, Task, TaskSpec, Workload

GPU = "nvidia.com/gpu"
PER_NODE = 8
NOW = 1_000_000_000_000_000
ONE = TaskSpec(requests=(("cpu", 1000), (GPU, 1)))
ALL = TaskSpec(requests=(("cpu", 8000), (GPU, PER_NODE)))


def full_cluster(count: int, pending: list[Workload]) -> Cluster:
    """Nodes that one-GPU jobs of queue ``busy`` fill, for queue ``due`` to take back."""
    nodes = tuple(Node(name=f"node-{i:04}", allocatable={"cpu": 96_000, GPU: PER_NODE}) for i in range(count))
    running = [
        Workload(
            name=f"run-{i:05}",
            queue="busy",
            created_at=NOW - 7_200_000_000,
            started_at=NOW - 3_600_000_000 - i * 1000,
            tasks=(
                Task(
                    name=f"run-{i:05}-0",
                    spec=ONE,
                    phase=Phase.RUNNING,
                    node=f"node-{i // PER_NODE:04}",
                    devices=(i % PER_NODE,),
                ),
            ),
        )
        for i in range(count * PER_NODE)
    ]
    queues = (
        Queue(name="busy", guaranteed={GPU: 0}),
        Queue(name="due", guaranteed={GPU: 1000 * PER_NODE * count}),
    )
    settings = Settings(actions=("allocate", "reclaim"))
    return Cluster(now=NOW, settings=settings, nodes=nodes, queues=queues, workloads=tuple(running + pending))


def gang(pods: int) -> list[Workload]:
    """One workload that needs whole nodes."""
    tasks = tuple(Task(name=f"gang-{i}", spec=ALL) for i in range(pods))
    return [Workload(name="gang", queue="due", tasks=tasks, created_at=NOW)]


def singles(count: int) -> list[Workload]:
    """Workloads of one GPU each."""
    return [
        Workload(name=f"one-{i:05}", queue="due", tasks=(Task(name=f"one-{i:05}-0", spec=ONE),), created_at=NOW)
        for i in range(count)
    ]


def run(
    results: Results, title: str, cluster: Cluster, expected: int, goal: float | None = None,
    anchor: float | None = None, times: int = 3,
) -> list[object]:  # fmt: skip
    """Time one cycle, and check that everybody got what it is due."""
    taken = []
    for _ in range(times):
        scheduler = Scheduler(session_of(cluster))
        plans: list[Plan] = []
        taken.append(measure(lambda s=scheduler, p=plans: p.append(s.cycle(NOW))))
        evicted = sum(s.action == "evict" for s in plans[0].steps)
        assert evicted == expected, (title, evicted)
    found = median(taken)
    results.add(title, found.cpu, "s", anchor=anchor, against="KAI" if anchor else "", at_most=goal)
    limits = ("" if limit is None else f"{limit:g} s" for limit in (goal, anchor))
    return [title, f"{found.wall:.2f} s", f"{found.cpu:.2f} s", *limits]


def main() -> None:
    """Print one line for each size."""
    results = Results("B2")
    rows = [
        run(results, f"gang of {n:,}, {n:,} nodes", full_cluster(n, gang(n)), n * PER_NODE, goal, anchor)
        for n, goal, anchor in ((10, None, None), (100, None, None), (500, 1, 8.97), (1000, 1, 76))
    ]
    rows += [
        run(results, "gang of 500, 1,000 nodes", full_cluster(1000, gang(500)), 500 * PER_NODE, 1),
        run(results, "500 reclaims, 500 nodes", full_cluster(500, singles(500)), 500),
        run(results, "4,000 reclaims, 500 nodes", full_cluster(500, singles(4000)), 4000, 3, 165, times=1),
    ]
    results.write()
    print_table("B2 reclaim: one cycle", ["", "wall", "processor", "goal", "KAI"], rows)
    print_memory()


if __name__ == "__main__":
    main()
