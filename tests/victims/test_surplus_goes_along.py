"""Surplus that holds nothing of what is asked for goes with the workload that it belongs to, and keeps none of it."""

from __future__ import annotations

import pytest
from tests.builders import cluster, node, queue, spec, steps, task, workload

from tenure.playthrough import play


def reclaiming(surplus, asked=2):
    """A gang that starts with three tasks stands where a queue that is owed all GPUs asks for whole nodes."""
    nodes = [node(name, cpu=96, gpu=8) for name in ("n0", "n1")]
    queues = [queue("lent"), queue("owed", guaranteed={"gpu": 16})]
    tasks = [task("head", spec(cpu=4), on="n0", order=0)]
    tasks += [task(name, spec(cpu=8, gpu=2), on="n0", order=1) for name in ("w0", "w1")]
    tasks += [task(f"extra-{n}", one, on="n1", order=2_000_000) for n, one in enumerate(surplus)]
    old = workload("old", tasks=tasks, queue="lent", min_member=3, running=600, age=700)
    new = workload("new", tasks=asked, of=spec(cpu=1, gpu=8), queue="owed", age=10)
    return cluster(nodes, [old, new], queues, actions=("allocate", "reclaim"))


@pytest.mark.parametrize("surplus", [[], [spec(cpu=1)], [spec(cpu=1), spec(cpu=2)], [spec(cpu=1), spec(cpu=1, gpu=1)]])
def test_a_gang_whose_surplus_has_no_gpu_goes_whole_for_gpus(surplus):
    """As the pod that submits a job to its cluster: it has no GPU, and goes with those that have."""
    evicted = {name for _, name, _, _ in steps(play(reclaiming(surplus)), "evict")}
    assert evicted == {"head", "w0", "w1", *(f"extra-{n}" for n in range(len(surplus)))}


def test_surplus_that_has_nothing_of_use_does_not_go_alone():
    assert steps(play(reclaiming([spec(cpu=1)], asked=1)), "evict") == []


def test_surplus_that_has_nothing_of_use_does_not_go_where_the_core_keeps_its_place():
    """Beside a free GPU the CPU is held by surplus that has no GPU; the core stands elsewhere, and would stay."""
    nodes = [node("n0", cpu=4, gpu=2), node("n1", cpu=6, gpu=1)]
    tasks = [task("core", spec(cpu=4, gpu=2), on="n0"), task("extra", spec(cpu=4), on="n1")]
    old = workload("old", tasks=tasks, queue="lent", min_member=1, running=600, age=700)
    new = workload("new", of=spec(cpu=4, gpu=1), queue="owed", age=10)
    queues = [queue("lent"), queue("owed", guaranteed={"gpu": 4})]
    assert steps(play(cluster(nodes, [old, new], queues, actions=("allocate", "reclaim")))) == []
