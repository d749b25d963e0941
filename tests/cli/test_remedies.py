"""What ``tenure explain`` says would help is done, and helps."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from tests.builders import NOW, cluster, node, queue, spec, task, workload
from tests.effort import tries

from tenure.engine.plan import Reason
from tenure.engine.serving.reserved_start import RESERVED
from tenure.explanation.explain import explain_workload
from tenure.explanation.remedies import what_helps
from tenure.fairness import reclaiming
from tenure.model.selectors import (
    Affinity,
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
    SpreadConstraint,
    Taint,
    Topology,
)
from tenure.model.values.duration import parse_time
from tenure.model.values.quantity import parse_quantity
from tenure.model.workload import Phase, Workload
from tenure.playthrough import play
from tenure.requeue.rules import DESERVING
from tenure.shields import opt_out, policy, preemptibility, recreated, short
from tenure.victims.dry_run import outcome as dry_run
from tenure.victims.rules.causes import PRIORITY

MAX = re.compile(r"a max of (\S+) (cores?) or more for queue (\S+?)(?:,|$)")
LESS = re.compile(r"(\S+) (cores?) less used in queue (\S+), or a max that is higher by as much")
NODE = re.compile(
    r"one node that admits it(?: \(.+?\))? and has (.+?) free(?:, and as much for each of the (\d+) tasks)?"
)
UNTIL = re.compile(r"to wait: from (\S+) on,|to wait until (\S+): until then")
CORES = {"core": "cpu", "cores": "cpu"}


def helps(found, name):
    """What is said of one workload."""
    played = play(found)
    item = next(w for w in found.workloads if w.name == name)
    return played, explain_workload(played, item).helps


def applied(found, said):
    """The cluster with all of it done; how many sentences were understood."""
    queues, nodes, done = {q.name: q for q in found.queues}, list(found.nodes), 0
    for text in said:
        if match := MAX.search(text):
            most, unit, name = match.groups()
            resource = CORES[unit]
            wanted = {**queues[name].max, resource: parse_quantity(most, resource)}
        elif match := LESS.search(text):
            amount, unit, name = match.groups()
            resource = CORES[unit]
            more = parse_quantity(amount, resource)
            wanted = {**queues[name].max, resource: queues[name].max[resource] + more}
        elif match := NODE.search(text):
            free, tasks = match.groups()
            has = {CORES[unit]: amount for amount, unit in (part.split(" ") for part in free.split(" and "))}
            nodes += [
                node(f"new{len(nodes)}", cpu=0, extra={r: parse_quantity(a, r) for r, a in has.items()})
                for _ in range(int(tasks or 1))
            ]
            done += 1
            continue
        else:
            continue
        queues[name] = replace(queues[name], max=wanted)
        done += 1
    return replace(found, queues=tuple(queues.values()), nodes=tuple(nodes)), done


@st.composite
def crowded(draw):
    """A few queues with a max, nodes that are partly full, and some that wait."""
    work, nodes = [], []
    for number in range(draw(st.integers(1, 2))):
        size, name = draw(st.integers(2, 6)), f"n{number}"
        nodes.append(node(name, cpu=size))
        taken = draw(st.integers(0, size))
        if taken:
            work.append(workload(f"r{number}", of=spec(cpu=taken), on=[name], queue=draw(LEAVES), running=60))
    for number in range(draw(st.integers(1, 3))):
        tasks = draw(st.sampled_from((1, 1, 2)))
        of = spec(cpu=draw(st.integers(1, 6)))
        work.append(workload(f"w{number}", tasks=tasks, of=of, queue=draw(LEAVES), age=draw(st.integers(0, 9))))
    top = draw(st.sampled_from((None, 4, 8)))
    below = draw(st.sampled_from((None, 2, 3)))
    queues = [
        queue("top", max=None if top is None else {"cpu": top}),
        queue("a", "top", max=None if below is None else {"cpu": below}),
        queue("b", "top"),
    ]
    return cluster(nodes, work, queues)


LEAVES = st.sampled_from("ab")


@settings(max_examples=tries(100, 2000), deadline=None)
@given(crowded())
def test_with_all_that_is_said_done_it_starts_unless_another_comes_before_it(found):
    """Each maximum raised as it says, each node added as it says: nothing of it was too little."""
    waiting = [w.name for w in found.workloads if w.started_at is None]
    before = {s.workload for s in play(found).steps if s.action == "bind"}
    name = waiting[-1]
    assume(f"default/{name}" not in before)
    _, said = helps(found, name)
    changed, done = applied(found, said)
    assume(done == len(said))
    event("tried")
    played = play(changed)
    starts = {s.workload for s in played.steps if s.action == "bind"}
    others = starts - before - {f"default/{name}"}
    assert f"default/{name}" in starts or others, said


def test_a_max_counts_what_the_queue_holds():
    """Not the request alone: with that it would still wait."""
    work = [workload("r", of=spec(cpu=3), on="n", queue="q", running=60), workload("w", of=spec(cpu=5), queue="q")]
    found = cluster([node("n", cpu=9)], work, [queue("q", max={"cpu": 4})])
    _, said = helps(found, "w")
    assert said == (
        "a max of 8 cores or more for queue q, which holds 3, and that no workload before it takes the room",
    )
    changed, _ = applied(found, said)
    assert [s.workload for s in play(changed).steps] == ["default/w"]


@pytest.mark.parametrize(
    ("cause", "said"),
    [("preempt", "a higher priority, or less usage"), ("consolidate", "reschedule among the actions")],
)
def test_of_a_search_that_gave_up_it_is_said_what_else_than_waiting_helps(cause, said):
    """And that the bound which there is a setting for is not the one that was hit."""
    helps = what_helps([Reason("SearchGaveUp", "", {"cause": cause, "tried": 33})], Workload(name="w"))
    assert said in helps[0]
    assert "to wait" in helps[-1]
    assert "search.maxScenarios does not" in helps[-1]


def test_waiting_until_then_lifts_what_it_names():
    """A minimum runtime and a preemption delay end when they say."""
    work = [
        workload("r", of=spec(cpu=4), on="n", queue="q", running=60),
        workload("w", of=spec(cpu=4), queue="q", priority=50, preemption_delay=90_000_000),
    ]
    found = cluster(
        [node("n", cpu=4)], work, [queue("q", preempt_min_runtime=300_000_000)], actions=("allocate", "preempt")
    )
    for _ in range(2):
        _, said = helps(found, "w")
        times = [t for text in said for match in UNTIL.finditer(text) for t in match.groups() if t]
        assert times, said
        found = replace(found, now=max(parse_time(t) for t in times))
    assert found.now == NOW + 240 * 1_000_000
    assert {s.workload for s in play(found).steps if s.action == "evict"} == {"default/r"}


NO_END = (
    dry_run.IN_VAIN, dry_run.NO_LANDING, dry_run.NO_ROOM, dry_run.TAKES_BACK, dry_run.TAKEN_AGAIN, RESERVED, DESERVING,
    PRIORITY, preemptibility.SHIELD, preemptibility.NODE_OWNED, short.SHIELD, recreated.SHIELD, opt_out.SHIELD,
    policy.FENCE, policy.DISABLED, reclaiming.GUARANTEED, reclaiming.FAIR_SHARE, reclaiming.FULLNESS,
)  # fmt: skip
"""What Tenure itself refuses a victim for, with no time at which that ends."""


@pytest.mark.parametrize("shield", NO_END)
def test_of_each_shield_of_its_own_it_is_said_what_would_lift_it(shield):
    entry = {"shield": shield, "workload": "default/victim", "until": None}
    reason = Reason("ShieldedVictims", "…", {"cause": "reclaim", "shields": [entry]})
    (said,) = what_helps((reason,), Workload(name="w", queue="q"))
    assert said.startswith("for reclaim, ")
    assert "plugin" not in said


def codes(found, name):
    """Codes of the reasons of one workload."""
    played = play(found)
    return {r.code for r in explain_workload(played, next(w for w in found.workloads if w.name == name)).reasons}


def with_node(found, **fields):
    """The cluster with one more node."""
    return replace(found, nodes=(*found.nodes, node("new", **fields)))


def test_a_part_of_a_gpu_is_asked_of_a_node_also_where_others_fail_for_something_else():
    """What the nodes lack that are there is not all that a node has to have."""
    work = [workload("r", of=spec(cpu=3), on="n", running=60), workload("w", of=spec(cpu=3, fraction=300))]
    found = cluster([node("n", cpu=4, gpu=1)], work)
    _, said = helps(found, "w")
    first = "and that no workload before it takes the room"
    assert said[0] == f"one node that admits it and has 3 cores and room for its part of 1 GPU free, {first}"
    assert "NoNodeFits" in codes(with_node(found, cpu=3), "w")
    assert not codes(with_node(found, cpu=3, gpu=1), "w")


APART = Affinity(pod_anti=PodAffinity(required=(PodAffinityTerm(topology_key="zone", selector=LabelSelector()),)))


def test_the_obstacle_that_is_named_is_one_without_which_the_node_would_do():
    """Most nodes have a taint, but without it they would be refused for their zone."""
    tainted = {"taints": (Taint(key="dedicated", value="gpu"),), "labels": {"zone": "a"}}
    nodes = [node("n", labels={"zone": "a"}), node("t0", **tainted), node("t1", **tainted)]
    found = cluster(nodes, [workload("r", of=spec(), on="n", running=60), workload("w", of=spec(affinity=APART))])
    said = helps(found, "w")[1][0]
    assert "(without this obstacle: affinity to other tasks, spread or host ports) and has 1 core free" in said
    assert "NoNodeFits" in codes(with_node(found, labels={"zone": "a"}), "w")
    assert not codes(with_node(found, labels={"zone": "b"}), "w")


def test_a_node_that_is_full_is_not_the_only_thing_that_a_task_looks_at():
    """With room on a node in the same zone it would still be refused."""
    apart = workload("w", of=spec(cpu=2, affinity=APART))
    found = cluster([node("n", cpu=2, labels={"zone": "a"})], [workload("r", of=spec(), on="n", running=60), apart])
    assert "without this obstacle: affinity to other tasks" in helps(found, "w")[1][0]
    assert "NoNodeFits" in codes(with_node(found, cpu=2, labels={"zone": "a"}), "w")


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (spec(cpu=9), "one node that admits it and has 9 cores free, or a smaller request: no waiting helps"),
        (
            spec(features=("Swap",)),
            "one node that admits it (without this obstacle: no Swap) and has 1 core free: no waiting helps",
        ),
        (
            spec(spread=(SpreadConstraint(max_skew=1, topology_key="zone", selector=LabelSelector()),)),
            (
                "one node that admits it (without these obstacles: no label zone; affinity to other tasks, "
                "spread or host ports) and has 1 core free: no waiting helps"
            ),
        ),
    ],
)
def test_of_what_never_fits_it_is_said_what_a_node_would_need(of, said):
    """A smaller request only where one would do, and more nodes of the same kind not at all."""
    assert helps(cluster([node("n", cpu=8)], [workload("w", of=of)]), "w")[1] == (said,)


def test_a_gang_that_is_too_large_for_the_cluster_is_told_by_how_many_tasks():
    found = cluster([node("n", cpu=4)], [workload("w", tasks=5, of=spec(cpu=2))])
    more = "larger or more nodes, with room for 3 more tasks of it, or fewer or smaller tasks: no waiting helps"
    assert helps(found, "w")[1] == (more,)
    assert not codes(with_node(found, cpu=6), "w")


def test_what_belongs_to_its_node_is_not_told_to_be_preemptible():
    """A DaemonSet's pods are not, whatever they say."""
    found = cluster(
        [node("n", cpu=4)],
        [workload("w", of=spec(cpu=2), queue="q", owner_kind="DaemonSet")],
        [queue("q", guaranteed={"cpu": 1})],
    )
    assert helps(found, "w")[1] == ("a guarantee of 2 cores or more for queue q",)


def test_no_victim_makes_room_where_only_a_guarantee_would():
    """Room on nodes is not what it waits for then; where its queue is full as well, that is said."""
    shields = [{"shield": "no-room", "workload": key, "until": None} for key in ("default/a", "default/b, default/c")]
    victims = Reason("ShieldedVictims", "…", {"cause": "preempt", "shields": shields})
    waiting = Workload(name="w", queue="q")
    said = "without default/a or default/b and default/c it would still not fit, or other workloads would take the room"
    assert what_helps((victims,), waiting) == (f"for preempt, more room: {said} first",)
    amounts = {"queue": "q", "resource": "cpu", "allocated": 1000, "asked": 1000, "max": 1000, "guaranteed": 1000}
    full, beyond = (Reason(code, "…", amounts) for code in ("OverMax", "BeyondGuaranteed"))
    more = f"for preempt, more room on nodes, or below the max of its queues: {said} first"
    assert what_helps((full, victims), waiting)[1:] == (more,)
    assert not [h for h in what_helps((beyond, victims), waiting) if "room" in h]


def test_who_would_lose_its_being_preemptible_by_a_higher_priority_is_told():
    """A priority of 100 or more makes what does not say otherwise not preemptible, and a guarantee binds it then."""
    work = [
        workload("r", of=spec(cpu=4), on="n", queue="q", running=60, priority=100, preemptible=True),
        workload("w", of=spec(cpu=4), queue="q", priority=50),
    ]
    found = cluster([node("n", cpu=4)], work, [queue("q", guaranteed={"cpu": 1})], actions=("allocate", "preempt"))
    text = "for preempt, a priority above that of default/r"
    assert f"{text}, and preemptible: true on itself, which that priority would end otherwise" in helps(found, "w")[1]
    higher = [work[0], replace(work[1], priority=101)]
    assert "BeyondGuaranteed" in codes(replace(found, workloads=tuple(higher)), "w")
    both = replace(found, workloads=(work[0], replace(work[1], priority=101, preemptible=True)))
    assert codes(both, "w") == {"Nominated", "MadeRoom"}
    own = replace(found, workloads=(work[0], replace(work[1], preemptible=True)))
    assert text in helps(own, "w")[1]


def test_what_fits_is_told_nothing_of_victims():
    """Only that the action which would place it is missing."""
    work = [workload("r", of=spec(cpu=1), on="n", running=60, owner_kind="DaemonSet"), workload("w", queue="q")]
    found = cluster([node("n", cpu=4)], work, [queue("q"), queue("default")], actions=("reclaim",), backfill="easy")
    assert helps(found, "w")[1] == ("allocate among the actions (scheduler.actions)",)


def test_what_has_to_stand_where_its_other_tasks_do_is_told_so():
    """It is one task, and only a node in the same zone helps."""
    of = spec(cpu=2)
    work = [
        workload("w", tasks=2, of=of, on=["a"], min_member=1, running=60, topology=Topology(required="zone")),
        workload("r", of=of, on="a", running=60),
    ]
    nodes = [node("a", cpu=4, labels={"zone": "a"}), node("b", cpu=4, labels={"zone": "b"})]
    found = cluster(nodes, work)
    (reason,) = next(p.reasons for p in play(found).pending)
    assert reason.message == "0 of 2 nodes fit: 1 another zone than that of its group, 1 insufficient cpu"
    said = helps(found, "w")[1][0]
    assert "one node that admits it (without this obstacle: another zone than that of its group)" in said
    assert "NoNodeFits" in codes(with_node(found, cpu=4, labels={"zone": "b"}), "w")
    assert not codes(with_node(found, cpu=4, labels={"zone": "a"}), "w") - {"UnknownStart"}


def test_what_is_asked_of_a_queue_that_gives_nothing_is_asked_only_where_it_would_give_then():
    """Behind the policy stands a guarantee, and reclaim takes nothing that it covers."""
    work = [
        workload("r", of=spec(cpu=4), on="n", queue="b", running=60),
        workload("w", of=spec(cpu=4), queue="a"),
    ]
    closed = queue("b", guaranteed={"cpu": 4}, preemption_policy="disabled")
    found = cluster([node("n", cpu=4)], work, [queue("a"), closed], actions=("allocate", "reclaim"))
    policy = "for reclaim, another preemptionPolicy for the queue of default/r"
    assert policy not in helps(found, "w")[1]
    idle = replace(found, queues=(queue("a", guaranteed={"cpu": 4}), replace(closed, guaranteed={})))
    assert policy in helps(idle, "w")[1]
    opened = replace(idle, queues=(idle.queues[0], replace(closed, guaranteed={}, preemption_policy="default")))
    assert codes(opened, "w") == {"Nominated", "MadeRoom"}


def test_one_task_is_spoken_of_as_one():
    one = workload("w", tasks=[task("w-0", phase=Phase.GATED), task("w-1")], min_member=2)
    (gated,) = play(cluster([node("n")], [one])).pending[0].reasons
    assert gated.message == "1 of its tasks is held by scheduling gates"
    (few,) = play(cluster([node("n")], [workload("w", min_member=2)])).pending[0].reasons
    assert few.message == "it starts with 2 tasks, but only 1 exists"
