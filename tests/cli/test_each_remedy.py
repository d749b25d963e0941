"""Each sentence of what would help, taken alone, removes what it names: on clusters with a bit of everything."""

from __future__ import annotations

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from tests.builders import SECOND, cluster, node, queue, spec, task, workload
from tests.cli.trying_remedies import try_all
from tests.effort import tries

from tenure.model.checks.cluster import check_cluster
from tenure.model.selectors import (
    Affinity,
    HostPort,
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
    SpreadConstraint,
    Taint,
    Toleration,
)
from tenure.model.settings import DEFAULT_ACTIONS, BudgetRule, DisruptionSettings
from tenure.model.workload import Phase
from tenure.playthrough import play

MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
HERE = LabelSelector(match_labels=(("app", "x"),))

few = st.integers(0, 9)


@st.composite
def machines(draw):
    """Draw one to three nodes; some are tainted, closed or not ready."""
    found = []
    for number in range(draw(st.integers(1, 3))):
        how, gpu = draw(few), draw(st.sampled_from((0, 0, 2)))
        found.append(
            node(
                f"n{number}",
                cpu=draw(st.integers(2, 6)),
                gpu=gpu,
                memory=8,
                pods=draw(st.sampled_from((2, 10))),
                labels={"zone": draw(st.sampled_from("ab"))} if how else {},
                taints=(Taint(key="dedicated", value="gpu"),) if how == 1 else (),
                ready=how != 2,
                unschedulable=how == 3,
            )
        )
    return found


@st.composite
def specs(draw):
    """Draw what a task asks for; sometimes it looks at labels, ports or other tasks."""
    more = {"labels": (("app", draw(st.sampled_from("xy"))),)}
    kind = draw(few)
    if kind == 0:
        more["node_selector"] = (("zone", draw(st.sampled_from("ac"))),)
    elif kind == 1:
        term = PodAffinityTerm(topology_key="zone", selector=HERE)
        more["affinity"] = Affinity(pod_anti=PodAffinity(required=(term,)))
    elif kind == 2:
        more["spread"] = (SpreadConstraint(max_skew=1, topology_key="zone", selector=HERE),)
    elif kind == 3:
        more["host_ports"] = (HostPort(port=80),)
    elif kind == 4 and draw(st.booleans()):
        more["features"] = ("Swap",)
    elif kind == 5:
        more["tolerations"] = (Toleration(key="dedicated", operator="Exists"),)
    return spec(
        cpu=draw(st.sampled_from((0.5, 1, 2, 2, 4, 7))),
        memory=draw(st.sampled_from((0, 0, 1))),
        fraction=draw(st.sampled_from((0, 0, 0, 500))),
        **more,
    )


@st.composite
def running(draw, number, nodes):
    """Draw a workload that runs; whether the nodes have room for it is looked at later."""
    of = spec(cpu=draw(st.sampled_from((1, 2))), labels=(("app", draw(st.sampled_from("xy"))),))
    count = draw(st.integers(1, 2))
    where = [draw(st.sampled_from(nodes)) for _ in range(count)]
    kind = draw(few)
    return workload(
        f"r{number}",
        tasks=[task(f"r{number}-{i}", of, on=n.name) for i, n in enumerate(where)],
        queue=draw(st.sampled_from("abc")),
        priority=draw(st.sampled_from((0, 0, 50, 100))),
        running=draw(st.sampled_from((60, 4000))),
        age=9000,
        min_member=1,
        preemptible={0: False, 1: True}.get(kind),
        allow_preemption=kind != 2,
        owner_kind="DaemonSet" if kind == 3 else None,
        expected_runtime=6000 if kind == 4 else None,
    )


@st.composite
def waiting(draw, number):
    """Draw a workload that waits."""
    of, count, kind = draw(specs()), draw(st.sampled_from((1, 1, 2, 3))), draw(st.integers(0, 14))
    phase = Phase.GATED if kind == 0 else Phase.PENDING
    return workload(
        f"w{number}",
        tasks=[task(f"w{number}-{i}", of, phase=phase) for i in range(count)],
        queue=draw(st.sampled_from("abc")),
        priority=draw(st.sampled_from((0, 10, 50, 100))),
        age=draw(st.sampled_from((30, 5000))),
        min_member=draw(st.integers(1, count)) + (kind == 1),
        preemption_policy="Never" if kind == 2 else None,
        preemption_delay=HOUR if kind == 3 else None,
        owner_kind="DaemonSet" if kind == 4 else None,
    )


@st.composite
def amounts(draw):
    """Draw amounts of a queue: mostly none."""
    found = {"cpu": draw(st.integers(0, 8))} if draw(st.booleans()) else {}
    return found | ({"gpu": draw(st.sampled_from((0, 0.5, 2)))} if draw(few) < 2 else {})


@st.composite
def queues(draw):
    """Draw two queues below one, and one beside it."""
    found = []
    for name, above in (("top", None), ("a", "top"), ("b", "top"), ("c", None)):
        most, floor, kind = draw(amounts()), draw(amounts()), draw(few)
        found.append(
            queue(
                name,
                above,
                max=most,
                guaranteed={r: min(v, most.get(r, v)) for r, v in floor.items()},
                preemption_policy={0: "fence", 1: "disabled"}.get(kind, "default"),
                preempt_min_runtime=2 * HOUR if kind == 2 else None,
                reclaim_min_runtime=2 * HOUR if kind == 3 else None,
            )
        )
    return found


def fits(item, room):
    """Whether there is room for what runs; it is taken."""
    left = {name: dict(free) for name, free in room.items()}
    for one in item.tasks:
        for resource, amount in (*one.spec.requests, ("pods", 1)):
            left[one.node][resource] -= amount
    if any(amount < 0 for free in left.values() for amount in free.values()):
        return False
    room.update(left)
    return True


@st.composite
def crowded(draw):
    """Draw a cluster in which much stands against those who wait."""
    nodes = draw(machines())
    room = {n.name: dict(n.allocatable) for n in nodes}
    drawn = [draw(running(number, nodes)) for number in range(draw(st.integers(1, 5)))]
    work = [w for w in drawn if fits(w, room)]
    work += [draw(waiting(number)) for number in range(draw(st.integers(1, 3)))]
    kind = draw(few)
    actions = tuple(a for a in DEFAULT_ACTIONS if draw(few))
    modes = {draw(st.sampled_from(("preempt", "reclaim", "consolidate"))): "off"} if kind == 0 else {}
    budgets = (BudgetRule(name="none", max_evictions=0, per=HOUR),) if kind == 1 else ()
    found = cluster(
        nodes, work, draw(queues()), actions=actions, modes=modes, disruption=DisruptionSettings(budgets=budgets),
        backfill="easy" if kind == 2 else "none", preemption_delay=MINUTE if kind == 3 else 0,
    )  # fmt: skip
    assume(all(finding.is_warning for finding in check_cluster(found)))
    return found


@settings(max_examples=tries(40, 800), deadline=None)
@given(crowded())
def test_each_remedy_alone_removes_an_obstacle_or_lets_something_start(found):
    """What it names is gone, or it, or another that comes before it, starts."""
    first = play(found)
    for item in found.workloads:
        for said in try_all(found, first, item):
            event(f"{said.split(' ')[0]} … {said.split(' ')[-1]}")
