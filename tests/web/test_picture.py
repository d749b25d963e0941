"""A picture that is renewed is the one that is made anew, whatever changed."""

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import cluster, node, queue, spec, task, workload

from tenure.model.values.resources import GPU
from tenure.model.workload import Phase
from tenure.web.sources.picture import Picture


def some(rng, number):
    """Make a workload of a few tasks, some of which are somewhere."""
    tasks = []
    for index in range(rng.randint(1, 4)):
        on = rng.choice([None, None, "n0", "n1", "n2"])
        phase = Phase.PENDING if on is None else rng.choice([Phase.BOUND, Phase.RUNNING, Phase.TERMINATING])
        tasks.append(task(f"t{index}", spec(cpu=rng.randint(1, 3), gpu=rng.randint(0, 1)), on=on, phase=phase))
    return workload(f"w{number}", tasks=tasks, queue=rng.choice(["a", "b"]))


def plain(picture):
    """Give everything that a picture tells."""
    used = {name: {k: v for k, v in held.items() if v} for name, held in picture.queues.items()}
    asked = {name: {k: v for k, v in held.items() if v} for name, held in picture.asked.items()}
    placed = {name: sorted((p.workload.key, p.task.name) for p in found) for name, found in picture.on_node.items()}
    return (
        picture.lines, picture.nodes.lines, {k: v for k, v in used.items() if v}, {k: v for k, v in asked.items() if v},
        {k: v for k, v in placed.items() if v}, +picture.states,
    )  # fmt: skip


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_renewed_is_as_made_anew(seed):
    rng = random.Random(seed)
    nodes = [node(f"n{number}", cpu=16, gpu=4) for number in range(3)]
    now = cluster(nodes=nodes, queues=[queue("a"), queue("b")], workloads=[some(rng, i) for i in range(6)])
    picture = Picture.of(now)
    for _ in range(5):
        kept = [w for w in now.workloads if rng.random() < 0.7]
        names = {w.name for w in kept}
        more = [some(rng, i) for i in range(8) if f"w{i}" not in names and rng.random() < 0.6]
        there = [replace(n, unschedulable=rng.random() < 0.5) if rng.random() < 0.5 else n for n in now.nodes]
        now = replace(now, now=now.now + 1, workloads=(*kept, *more), nodes=tuple(there))
        before = plain(picture)
        renewed = picture.after(now)
        assert plain(renewed) == plain(Picture.of(now))
        assert plain(picture) == before
        picture = renewed


def test_what_did_not_change_is_not_worked_out_again():
    nodes = [node(f"n{number}", cpu=64) for number in range(100)]
    many = [workload(f"w{number}", on=[f"n{number % 100}"], queue="a") for number in range(1000)]
    now = cluster(nodes=nodes, queues=[queue("a")], workloads=many)
    picture = Picture.of(now)
    renewed = picture.after(replace(now, workloads=(*now.workloads[:-1], workload("new", on=["n5"], queue="a"))))
    assert renewed.lines.keys() ^ picture.lines.keys() == {many[-1].key, "default/new"}
    assert all(renewed.lines[w.key] is picture.lines[w.key] for w in many[:-1])
    assert {name for name in renewed.nodes.lines if renewed.nodes.lines[name] is not picture.nodes.lines[name]} == {
        "n99",
        "n5",
    }


def test_devices_of_any_vendor_are_drawn_as_gpus():
    """Of a node, of a queue and in all; a setting that changes has all of it worked out anew."""
    nodes = [node("a", cpu=64, extra={"amd.com/gpu": 8})]
    runs = workload("w", of=spec(extra={"amd.com/gpu": 2}), on=["a"], queue="q")
    now = cluster(nodes=nodes, queues=[queue("q")], workloads=[runs])
    picture = Picture.of(now)
    assert (picture.main, picture.nodes.size[GPU], picture.queues["q"][GPU]) == (GPU, 8000, 2000)
    assert picture.nodes.lines["a"].share == 0.25
    apart = replace(now, settings=replace(now.settings, device_resources={"amd.com/gpu": {}}))
    assert plain(picture.after(apart)) == plain(Picture.of(apart))
    assert picture.after(apart).main == "cpu"


def test_devices_of_claims_are_held_by_queues_and_not_by_nodes():
    """A node does not say that it has them."""
    runs = workload("w", of=spec(counted=((GPU, 1000),)), on=["n"], queue="q")
    picture = Picture.of(cluster(nodes=[node("n")], queues=[queue("q")], workloads=[runs]))
    assert picture.queues["q"][GPU] == 1000
    assert not picture.nodes.lines["n"].held[GPU]
