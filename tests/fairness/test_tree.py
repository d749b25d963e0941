"""The queue tree is checked, and prepared from the model's queues."""

from __future__ import annotations

import pytest

from tenure.fairness.shares import fair_shares
from tenure.fairness.tree import TOP, ShareQueue, queue_tree, share_resources, tree_of, whole_unit
from tenure.model.queue import Queue

GPU = "nvidia.com/gpu"


def test_a_gpu_is_a_whole_unit_and_other_resources_go_by_one():
    assert whole_unit(GPU) == 1000
    assert whole_unit("memory") == whole_unit("cpu") == whole_unit("pods") == 1


def test_shares_look_at_resources_that_some_queue_names():
    queues = [Queue(name="a", guaranteed={"memory": 1}), Queue(name="b", max={"example.com/fpga": 0})]
    assert share_resources(queues) == ("example.com/fpga", "memory")


def test_shares_look_at_gpu_cpu_and_memory_when_no_queue_names_any():
    assert share_resources([Queue(name="a")]) == ("cpu", "memory", GPU)


def test_tree_of_the_models_queues():
    """7 GPUs: p's 4 are guaranteed to x; of the 3 others p gets 2 by weight."""
    queues = [
        Queue(name="p", weight={GPU: 2.0}),
        Queue(name="o", max={GPU: 9000}, created_at=5),
        Queue(name="x", parent="p", guaranteed={GPU: 4000}),
        Queue(name="y", parent="p", priority=500),
    ]
    tree = tree_of(queues, [GPU])
    assert fair_shares(tree, [7000], [[0], [50_000], [50_000], [50_000]]) == [[6000], [1000], [4000], [2000]]


def test_a_queue_without_time_of_creation_comes_last():
    tree = tree_of([Queue(name="a"), Queue(name="b", created_at=2**55)], ["cpu"])
    assert fair_shares(tree, [3], [[9], [9]]) == [[1], [2]]


@pytest.mark.parametrize("parent", [1, 2, -2])
def test_parents_must_come_first(parent):
    queues = [ShareQueue("a", TOP, [None], [None], [1]), ShareQueue("b", parent, [None], [None], [1])]
    with pytest.raises(ValueError, match="'b': its parent must come before it"):
        queue_tree(queues, [1])


@pytest.mark.parametrize("weight", [-1, float("inf"), float("nan")])
def test_weights_must_be_numbers_from_0(weight):
    with pytest.raises(ValueError, match="'a': weights must be finite and not negative"):
        queue_tree([ShareQueue("a", TOP, [None], [None], [weight])], [1])


def test_every_resource_needs_its_amounts():
    with pytest.raises(ValueError, match="'a': one guaranteed, maximum and weight is needed for each resource"):
        queue_tree([ShareQueue("a", TOP, [None], [None], [1])], [1, 1])
