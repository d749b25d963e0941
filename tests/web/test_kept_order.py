"""Orders that are kept are those that sorting gives; what is read off them is what counting gives."""

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import NOW, SECOND, cluster, node, queue, spec, task, workload

from tenure.web.access.viewer import EVERYTHING, Viewer
from tenure.web.sources.kept_order import KeptOrder
from tenure.web.sources.picture import RUNNING, WAITING, Picture
from tenure.web.sources.still import StillSource


@settings(max_examples=200)
@given(st.lists(st.integers(0, 50), unique=True), st.data())
def test_an_order_is_as_sorted_anew(numbers, data):
    order = KeptOrder(lambda one: (one[0] % 7, one), [(number,) for number in numbers])
    for _ in range(3):
        before = list(order.lines)
        gone = data.draw(st.lists(st.sampled_from(order.lines), unique=True)) if order.lines else []
        there = set(order.lines) - set(gone)
        came = [(n,) for n in data.draw(st.lists(st.integers(0, 50), unique=True)) if (n,) not in there]
        later = order.after(gone, came)
        assert later.lines == sorted([*there, *came], key=order.key)
        assert order.lines == before
        order = later


def some(rng, number):
    """Make a workload that runs, partly or wholly, or waits."""
    tasks = [
        task(f"t{index}", spec(cpu=1, gpu=rng.randint(0, 2)), on=rng.choice([None, "n0", "n1"]))
        for index in range(rng.randint(1, 3))
    ]
    age = rng.choice([None, rng.randint(1, 9)])
    running = rng.randint(0, age) if age and any(one.node for one in tasks) else None
    made = workload(f"w{number}", tasks=tasks, queue=rng.choice("ab"), namespace=rng.choice("xy"))
    return replace(made, created_at=0 if age is None else NOW - age * SECOND,
                   started_at=None if running is None else NOW - running * SECOND)  # fmt: skip


def of(rng, count):
    """Make a cluster of so many."""
    nodes = [node(f"n{number}", cpu=16, gpu=8, ready=rng.random() < 0.7) for number in range(3)]
    return cluster(nodes=nodes, queues=[queue("a"), queue("b")], workloads=[some(rng, i) for i in range(count)])


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6))
def test_who_waits_longest_and_what_was_used_are_as_counted(seed):
    rng = random.Random(seed)
    source = StillSource(of(rng, rng.randint(0, 12)), "a file")
    picture = source.picture()
    for viewer in (EVERYTHING, Viewer("x", frozenset("x"))):
        expected = []
        for line in picture.lines.values():
            if line.created_at and line.state in (RUNNING, WAITING, "partly running") and viewer.sees(line.key):
                end = NOW if line.state == WAITING else line.started_at or line.created_at
                if line.state == WAITING or end > line.created_at:
                    expected.append((-(end - line.created_at), line.key))
        found = source.waits(viewer, 5)
        assert [(-one.waited, one.workload) for one in found] == sorted(expected)[:5]
    series = source.series(7)
    if series is not None:
        for index, at in enumerate(series.moments):
            held, waiting = {}, 0
            for line in picture.lines.values():
                start = line.started_at if line.started_at is not None else line.created_at
                if line.held.get(series.resource) and start <= at:
                    held[line.queue] = held.get(line.queue, 0) + line.held[series.resource]
                elif (line.held.get(series.resource) or line.state == WAITING) and line.created_at <= at:
                    waiting += 1
            assert {name: values[index] for name, values in series.queues.items() if values[index]} == held
            assert series.waiting[index] == waiting


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_sums_over_nodes_and_namespaces_are_kept(seed):
    rng = random.Random(seed)
    now = of(rng, 6)
    picture = Picture.of(now)
    picture.in_order("name", lambda line: line.key)
    for _ in range(4):
        kept = [w if rng.random() < 0.5 else replace(some(rng, int(w.name[1:])), namespace=w.namespace)
                for w in now.workloads if rng.random() < 0.8]  # fmt: skip
        nodes = tuple(replace(n, ready=rng.random() < 0.5) for n in now.nodes if rng.random() < 0.8)
        now = replace(now, nodes=nodes, workloads=tuple(kept))
        picture = picture.after(now)
        anew = Picture.of(now)
        assert {k: +v for k, v in picture.by_namespace.items() if +v} == anew.by_namespace
        for kept_sums, sums in ((picture.nodes.size, anew.nodes.size), (picture.nodes.ready, anew.nodes.ready)):
            assert {k: v for k, v in kept_sums.items() if v} == {k: v for k, v in sums.items() if v}
        assert (+picture.nodes.states, +picture.nodes.remarks) == (anew.nodes.states, anew.nodes.remarks)
        assert [line.key for line in picture.in_order("name", lambda line: line.key)] == sorted(picture.lines)
