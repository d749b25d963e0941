"""B4: a gang of 80 GPUs that cannot fit into a full cluster of 4,000 GPUs is told so, with the reason.

Anchor: KAI-Scheduler end to end, 249 s.
"""

from __future__ import annotations

from dataclasses import replace

from b02_reclaim import NOW, full_cluster, gang
from common import measure, median, print_table
from results import Results
from tenure.cycle import Scheduler
from tenure.engine.reasons import why_pending
from tenure.engine.serving.reserved_start import NextPass
from tenure.engine.snapshot import session_of
from tenure.engine.state.session import Session
from tenure.fairness.current import Fairness
from tenure.model.cluster import Cluster
from tenure.model.settings import Settings
from tenure.model.workload import Workload


def run(title: str, cluster: Cluster, results: Results) -> list[object]:
    """Time the cycle and the reason; nothing may be evicted."""
    taken, said = [], ""

    def decide(session: Session) -> None:
        nonlocal said
        plan = Scheduler(session).cycle(NOW)
        assert not plan.steps
        gang, following = session.workloads["default/gang"], NextPass(session, Fairness(session).now)
        reasons = [*why_pending(session, gang, following), *plan.obstacles.get("default/gang", ())]
        said = "; ".join(r.code for r in reasons)

    for _ in range(5):
        session = session_of(cluster)
        taken.append(measure(lambda s=session: decide(s)))
    found = median(taken)
    results.add(title, found.cpu, "s", anchor=249, against="KAI end to end", at_most=0.1)
    return [title, f"{found.wall:.3f} s", f"{found.cpu:.3f} s", "0.1 s", "249 s", said]


def main() -> None:
    """Print one line for each obstacle."""
    full, results = full_cluster(500, gang(10)), Results("B4")
    busy, due = full.queues
    settings = Settings()
    shielded = replace(full, settings=replace(settings, reclaim_min_runtime=1 << 40))
    within = replace(
        full, settings=settings, queues=(replace(busy, guaranteed=due.guaranteed), replace(due, guaranteed={}))
    )
    rows = [
        run("all victims in their minimum runtime", shielded, results),
        run("the other queue is within its guaranteed", within, results),
        run("larger than any node", replace(full, workloads=(*full.workloads[:-1], huge())), results),
    ]
    results.write()
    print_table("B4 cannot fit: one cycle", ["", "wall", "processor", "goal", "KAI", "reasons"], rows)


def huge() -> Workload:
    """A gang whose tasks no node can take."""
    (one,) = gang(10)
    spec = replace(one.tasks[0].spec, requests=(("nvidia.com/gpu", 80),))
    return replace(one, tasks=tuple(replace(t, spec=spec) for t in one.tasks))


if __name__ == "__main__":
    main()
