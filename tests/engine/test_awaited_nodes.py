"""Nodes that are on their way: their room is there then, and not now, for every kind of task."""

from __future__ import annotations

import random

import pytest
from tests.builders import NOW, SECOND, cluster, node, queue, spec, workload

from tenure.engine.snapshot import session_of
from tenure.engine.state.audit import audit
from tenure.explanation.explain import explain_workload
from tenure.model.file.load import load_cluster
from tenure.playthrough import play
from tenure.simulator.whole_run import setup_of

LATER = NOW + 60 * SECOND


@pytest.mark.parametrize(
    "asked",
    [spec(cpu=4), spec(gpu=2), spec(gpu=1, cpu=0), spec(fraction=500), spec(fraction=500, devices=2), spec(cpu=0)],
    ids=["cores", "devices", "a device", "a part", "parts", "nothing"],
)
def test_whatever_fits_there_is_promised_it_and_not_bound(asked):
    """What asks for nothing but a place among the pods waits as well; once the node is there it is bound."""
    told = cluster(
        [node("new", cpu=8, gpu=2, pods=10, awaited_until=LATER)], [workload("w", of=asked)], [queue("default")]
    )
    played = play(told)
    assert [(s.action, s.node) for s in played.steps] == [("nominate", "new")]
    there = cluster([node("new", cpu=8, gpu=2, pods=10)], played.after.workloads, [queue("default")])
    assert [(s.action, s.node) for s in play(there).steps] == [("bind", "new")]


def test_what_is_there_is_taken_before_what_comes():
    """A core that fits on nodes that are there is bound there, however well the other node would suit."""
    nodes = [node("a-new", cpu=8, awaited_until=LATER), node("b-there", cpu=8)]
    played = play(cluster(nodes, [workload("w", tasks=2, of=spec(cpu=4))], [queue("default")]))
    assert {(s.action, s.node) for s in played.steps} == {("bind", "b-there")}


def test_a_node_that_has_not_come_in_time_counts_no_more():
    """What would only fit there waits, and says that the node is not ready."""
    told = cluster([node("new", cpu=8, awaited_until=NOW)], [workload("w")], [queue("default")])
    played = play(told)
    assert played.steps == []
    assert "not ready" in played.pending[0].reasons[0].message


def test_it_says_which_node_it_waits_for_and_what_helps():
    told = cluster([node("new", cpu=8, awaited_until=LATER)], [workload("w")], [queue("default")])
    played = play(told)
    story = explain_workload(played, told.workloads[0])
    (reason,) = story.reasons
    assert (reason.code, reason.numbers["nodes"]) == ("AwaitsNodes", ["new"])
    assert story.estimated_start is None, "when it comes is not known"
    assert story.helps == ("to wait: it is bound as soon as these nodes are there",)


def test_capacity_to_come_counts_for_no_share():
    """What is not there yet is no queue's fair share."""
    nodes = [node("new", cpu=8, awaited_until=LATER), node("there", cpu=4)]
    assert session_of(cluster(nodes)).occupancy.total()[0] == 4000


def test_a_simulation_leaves_it_out():
    """A file does not say when a node comes, or whether."""
    nodes = [node("new", cpu=8, awaited_until=LATER), node("there", cpu=4)]
    assert [n.name for n in setup_of(cluster(nodes), arrivals_only=False).cluster.nodes] == ["there"]


def test_counts_agree_whatever_is_placed_beside_it():
    """After cycles on random clusters with nodes that come, every count is what a look at all tasks counts."""
    for seed in range(30):
        chance = random.Random(seed)
        nodes = [
            node(f"n{i}", cpu=8, gpu=4, pods=8, awaited_until=chance.choice([None, NOW - 1, LATER]))
            for i in range(chance.randint(1, 4))
        ]
        kinds = [spec(cpu=1, gpu=1), spec(fraction=250), spec(cpu=3), spec(fraction=500, devices=2)]
        waiting = [workload(f"w{i}", tasks=chance.randint(1, 3), of=chance.choice(kinds)) for i in range(8)]
        told = cluster(nodes, waiting, [queue("default")])
        for cycles in (1, 2):
            after = play(told, cycles=cycles).after
            assert audit(session_of(after)) == []
            late = {n.name for n in nodes if n.awaited_until is not None}
            assert not [t for w in after.workloads for t in w.tasks if t.node in late], "bound on a node to come"


FILE = """\
now: 2026-11-20T10:00:00Z
nodes:
  - {name: here, allocatable: {cpu: 4, pods: 10}}
  - {name: coming, allocatable: {cpu: 8, pods: 10}, awaitedUntil: 2026-11-20T10:05:00Z}
queues: [{name: a}, {name: b, guaranteed: {cpu: 4}}]
scheduler: {actions: [allocate, reclaim]}
workloads:
  - {name: old, queue: a, tasks: [{name: old-0, requests: {cpu: 4}, phase: Running, node: here}]}
  - {name: new, queue: b, requests: {cpu: 4}, replicas: 1}
  - {name: asked, queue: b, requests: {cpu: 9}, replicas: 1, awaitsNodesUntil: 2026-11-20T10:07:00Z}
"""


def test_a_file_says_what_is_to_come(tmp_path):
    """Nothing is evicted for what fits a node that comes, nor for what nodes were asked for."""
    path = tmp_path / "cluster.yaml"
    path.write_text(FILE)
    played = play(load_cluster(path).cluster)
    assert [(s.action, s.workload, s.node) for s in played.steps] == [("nominate", "default/new", "coming")]
    late = FILE.replace("10:05:00Z", "09:55:00Z").replace("10:00:00Z", "10:08:00Z")
    path.write_text(late)
    played = play(load_cluster(path).cluster)
    assert sorted((s.action, s.workload) for s in played.steps) == [
        ("evict", "default/old"),
        ("nominate", "default/new"),
    ]


def test_what_runs_on_a_node_to_come_is_an_error_of_the_file(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(FILE.replace("node: here", "node: coming"))
    with pytest.raises(Exception, match=r"tasks\[0\]\.node.*node coming is on its way"):
        load_cluster(path)
