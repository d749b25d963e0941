"""A node that is not ready: who is placed there, and what is not done for it."""

from __future__ import annotations

import pytest
from tests.builders import bound, cluster, codes, node, queue, spec, steps, workload

from tenure.model.selectors import Taint, Toleration
from tenure.playthrough import play

TAINTS = tuple(Taint(key=f"node.kubernetes.io/{name}", effect="NoSchedule") for name in ("not-ready", "unreachable"))
TOLERATING = (
    Toleration(key="", operator="Exists"),
    Toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoSchedule"),
)
DOWN = node("a", cpu=8, ready=False, taints=TAINTS[:1])
TOLERANT = spec(cpu=4, tolerations=TOLERATING[:1])


@pytest.mark.parametrize("tolerated", TOLERATING)
def test_who_tolerates_its_taint_is_placed_there(tolerated):
    """As kube-scheduler would; who tolerates only that it is not evicted from there waits."""
    short = Toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute")
    waiting = [workload("up", of=spec(tolerations=(tolerated,))), workload("kept", of=spec(tolerations=(short,)))]
    played = play(cluster([DOWN], waiting))
    assert bound(played) == {"up-0": "a"}
    assert codes(played) == {"kept": ["NeverFits"]}
    assert "not ready" in played.pending[0].reasons[0].message


def test_nobody_is_placed_there_before_it_has_its_taint():
    """The controller of nodes has not said yet what is wrong with it."""
    assert bound(play(cluster([node("a", ready=False)], [workload("w", of=TOLERANT)]))) == {}


def test_its_room_is_none_for_those_who_do_not_tolerate_it():
    """A gang is not begun with the room there, whatever else is larger there."""
    nodes = [node("a", cpu=64, ready=False, taints=TAINTS), node("b", cpu=8)]
    gang = workload("w", tasks=3, of=spec(cpu=4), min_member=3)
    assert bound(play(cluster(nodes, [gang]))) == {}


@pytest.mark.parametrize("policy", ["binpack", "spread"])
def test_ready_nodes_are_taken_first(policy):
    """Also where it is the fuller one, or the emptier one."""
    nodes = [DOWN, node("b", cpu=8)]
    for on in ("a", "b"):
        waiting = workload("w", of=spec(cpu=2, tolerations=TOLERATING[:1]))
        played = play(cluster(nodes, [workload("r", of=TOLERANT, on=[on]), waiting], placement=policy))
        assert bound(played) == {"w-0": "b"}


def test_nobody_is_evicted_for_room_there():
    """What is evicted there would not end while its kubelet is silent."""
    queues = [queue("q")]
    low = workload("low", tasks=2, of=TOLERANT, on=["a", "a"], queue="q", priority=1)
    high = workload("high", of=TOLERANT, queue="q", priority=9)
    for nodes, evicted in (([DOWN], []), ([node("a", cpu=8)], ["low-0", "low-1"])):
        played = play(cluster(nodes, [low, high], queues, actions=("allocate", "preempt")))
        assert {s[1] for s in steps(played, "evict")} <= set(evicted)
        assert bool(steps(played, "evict")) is bool(evicted)


def test_nobody_is_moved_there():
    """A move ends where its pod starts again."""
    far, empty = node("b", cpu=8, labels={"disk": "ssd"}), node("c", cpu=4)
    asked = spec(cpu=4, tolerations=TOLERATING[:1], node_selector=(("disk", "ssd"),))
    running = [workload("small", of=asked, on=["b"]), workload("large", of=spec(cpu=8))]
    down = node("a", cpu=4, ready=False, taints=TAINTS, labels={"disk": "ssd"})
    for other, moved in ((down, []), (node("a", cpu=4, labels={"disk": "ssd"}), ["small-0"])):
        played = play(cluster([far, other, empty], running, actions=("allocate", "consolidate")))
        assert [s[1] for s in steps(played, "evict")] == moved
