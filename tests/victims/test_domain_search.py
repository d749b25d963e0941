"""Room for what has to stand under one value of a label is made under one value, the one where it costs the least."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.builders import SECOND, cluster, codes, node, queue, spec, task, workload

from tenure.model.selectors import Topology
from tenure.playthrough import play

RACK = Topology(required="rack")


def racks(minutes, *, each=2, cause="preempt", priorities=None, **contender):
    """A cluster full of workloads of one node each; ``minutes``: how long each of them has run, by rack."""
    nodes, work = [], []
    for rack, runs in minutes.items():
        for number, ran in enumerate(runs):
            name = f"{rack}{number}"
            nodes.append(node(name, cpu=4, labels={"rack": rack}))
            fields = {"priority": (priorities or {}).get(name, 0), "queue": "mine" if cause == "preempt" else "theirs"}
            work.append(workload(name, of=spec(cpu=4), on=[name], running=60 * ran, **fields))
    work.append(workload("j", tasks=each, of=spec(cpu=4), queue="mine", priority=50, age=5, topology=RACK, **contender))
    queues = [queue("mine", guaranteed={"cpu": 4 * each}), queue("theirs")]
    return cluster(nodes, work, queues, actions=("allocate", cause))


def evicted(found):
    """Workloads that have to go, by the plan of one cycle."""
    return sorted(s.workload.partition("/")[2] for s in play(found).steps if s.action == "evict")


@pytest.mark.parametrize("cause", ["preempt", "reclaim"])
@pytest.mark.parametrize("seed", range(3))
def test_a_gang_takes_the_rack_that_costs_the_least(cause, seed):
    """More racks than are searched to the end, and in each as many nodes as no search tries all sets of."""
    rng = random.Random(seed)
    minutes = {f"r{r:02}n": [rng.choice([1, 5, 60, 600]) + rng.random() for _ in range(4)] for r in range(12)}
    least = min(minutes, key=lambda rack: sum(sorted(minutes[rack])[:3]))
    cheapest = sorted(range(4), key=lambda number: minutes[least][number])[:3]
    assert evicted(racks(minutes, each=3, cause=cause)) == sorted(f"{least}{number}" for number in cheapest)


def test_of_two_racks_the_one_comes_first_where_lower_priorities_go():
    """What is taken of the higher priority comes before the cost, in whichever rack it stands."""
    minutes = {"a": [1, 1, 90], "b": [60, 60, 90], "c": [500, 500, 900]}
    cheap = dict.fromkeys(("a0", "a1", "a2"), 10)
    assert evicted(racks(minutes)) == ["a0", "a1"]
    assert evicted(racks(minutes, priorities=cheap)) == ["b0", "b1"]


def test_one_rack_that_is_kept_from_it_leaves_the_others():
    """And where no rack has enough that may go, nothing is evicted, and what stands in the way is said."""
    minutes = {"a": [1, 1], "b": [60, 60], "c": [500, 500]}
    assert evicted(racks(minutes, priorities={"a0": 60})) == ["b0", "b1"]
    found = racks(minutes, priorities={"a0": 60, "b0": 60, "c1": 60})
    assert evicted(found) == []
    assert "NoNodeFits" in codes(play(found))["j"]


def test_a_task_that_a_gang_lost_gets_room_where_the_others_stand():
    """Not on the node where it would cost less, of another rack."""
    minutes = {"a": [1, 1], "b": [0.5, 60], "c": [0.25, 60]}
    found = racks(minutes)
    of, waits = spec(cpu=4), found.workloads[-1]
    lost = (task("j-0", of, on="b0"), task("j-1", of))
    runs = replace(waits, tasks=lost, started_at=found.now - 60 * SECOND)
    found = replace(found, workloads=(*(w for w in found.workloads[:-1] if w.name != "b0"), runs))
    assert evicted(found) == ["b1"]


def test_what_moves_makes_room_in_one_rack():
    """The gaps of two racks together are no room for it; what moves leaves one rack for another."""
    nodes = [node(name, cpu=4, labels={"rack": name[0]}) for name in ("a0", "a1", "b0", "b1", "c0", "c1")]
    work = [workload(f"w-{n.name}", of=spec(cpu=2), on=[n.name], running=60) for n in nodes[:5]]
    work.append(workload("j", tasks=2, of=spec(cpu=4), age=5, topology=RACK))
    plan = play(cluster(nodes, work, actions=("allocate", "consolidate"))).steps
    assert [s.workload for s in plan if s.action == "evict"] == ["default/w-c0"]
    assert {s.node for s in plan if s.workload == "default/j"} == {"c0", "c1"}


def test_no_victim_stays_where_a_gang_would_be_torn_apart_for_it():
    """The room on another node is of another rack."""
    nodes = [node("n0", cpu=3, labels={"rack": "b"}), node("n1", cpu=3, labels={"rack": "b"}),
             node("n2", cpu=3, labels={"rack": "a"})]  # fmt: skip
    work = [workload("v", of=spec(cpu=3), on=["n1"], running=60), workload("w", of=spec(cpu=1), on=["n2"], running=900),
            workload("j", tasks=2, of=spec(cpu=2), priority=50, age=5, topology=RACK)]  # fmt: skip
    plan = play(cluster(nodes, work, actions=("allocate", "preempt"))).steps
    assert [s.workload for s in plan if s.action == "evict"] == ["default/v"]
    assert {s.node for s in plan if s.workload == "default/j"} == {"n0", "n1"}
