"""The bound by packing: it says that there is no room exactly where no way to put everything has any."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from tests.builders import cluster, node, queue, spec, task, workload
from tests.properties.adding_up import GPU, drawn

from tenure.engine.serving import packing
from tenure.engine.serving.packing import may_pack
from tenure.engine.serving.volume_bound import VolumeBound
from tenure.engine.snapshot import session_of
from tenure.playthrough import play
from tenure.victims.dry_run.joint_placement import JointPlacement

CLUSTERS = 120


def free_room(state, gone):
    """Give, by node, what is free of its CPU and of each device once some tasks are gone."""
    cpu = {n.name: n.allocatable["cpu"] for n in state.nodes}
    free = {n.name: [1000] * n.allocatable[GPU] for n in state.nodes}
    for stays in (t for w in state.workloads for t in w.tasks if t.node is not None and t.name not in gone):
        cpu[stays.node] -= dict(stays.spec.requests).get("cpu", 0)
        for device in stays.devices:
            free[stays.node][device] -= stays.spec.gpu_share.milli if stays.spec.gpu_share else 1000
    return cpu, free


def fit(cpu, free, tasks):
    """Whether there is any way to put tasks, each given as a task and whether it may not land where it stands."""
    if not tasks:
        return True
    (moved, elsewhere), rest = tasks[0], tasks[1:]
    milli = moved.spec.gpu_share.milli if moved.spec.gpu_share else 1000
    count = 1 if moved.spec.gpu_share else dict(moved.spec.requests)[GPU]
    asked = dict(moved.spec.requests).get("cpu", 0)
    for name, devices in free.items():
        own = elsewhere and name == moved.node
        if cpu[name] < asked or (own and not moved.spec.gpu_share):
            continue
        able = [d for d, have in enumerate(devices) if have >= milli and not (own and d in moved.devices)]
        for chosen in combinations(able, count):
            cpu[name] -= asked
            for device in chosen:
                devices[device] -= milli
            found = fit(cpu, free, rest)
            cpu[name] += asked
            for device in chosen:
                devices[device] += milli
            if found:
                return True
    return False


def test_it_says_what_all_ways_say_and_more_than_the_volume():
    """One to three tasks that are evicted, and one that is withdrawn, for a workload that waits."""
    refused = by_volume = 0
    for seed in range(CLUSTERS):
        state = drawn(seed)
        session, rng = session_of(state), random.Random(seed)
        running = [t for w in session.workloads.values() for t in w.tasks if t.node >= 0]
        waiting = [w for w in session.workloads.values() if w.step is not None and not w.occupied()]
        if len(running) < 4 or not waiting:
            continue
        for _ in range(8):
            evicted, step = rng.sample(running, rng.randint(1, 3)), rng.choice(waiting).step
            withdrawn = [t for t in rng.sample(running, rng.randint(0, 1)) if t not in evicted]
            tasks = [*((t.model, True) for t in evicted), *((t.model, False) for t in (*withdrawn, *step.tasks))]
            fits = fit(*free_room(state, {t.name for t, _ in tasks}), tasks)
            assert may_pack(session.nodes, evicted, withdrawn, step.tasks) == fits
            refused += not fits
            by_volume += VolumeBound(session.nodes).shortage([*evicted, *withdrawn], step.tasks) is not None
    assert refused > by_volume > 0, (refused, by_volume)


def asked_about(nodes, running, asked, *, withdrawn=False):
    """Ask whether all that runs, each a task of its own, may be moved for tasks that wait."""
    work = [workload(f"r{n}", tasks=[t]) for n, t in enumerate(running)]
    waits = workload("w", tasks=[task(f"w-{n}", of) for n, of in enumerate(asked)], min_member=len(asked))
    session = session_of(cluster(nodes, [*work, waits], [queue("default")]))
    moved = [session.workloads[w.key].tasks[0] for w in work]
    evicted, fresh = ((), moved) if withdrawn else (moved, ())
    return may_pack(session.nodes, evicted, fresh, session.workloads[waits.key].step.tasks)


def test_what_is_left_of_two_devices_is_no_device():
    """A part of a GPU may move to a device of which there is enough, and that is whole no more then."""
    nodes = [node("n0", gpu=1), node("n1", gpu=2)]
    large = [task("large", spec(fraction=600), on="n0", devices=[0])]
    others = [task(f"other-{n}", spec(fraction=300), on="n1", devices=[n]) for n in range(2)]
    assert asked_about(nodes, large, [spec(gpu=1)])
    assert asked_about(nodes, [*large, *others], [spec(gpu=1)])
    assert not asked_about(nodes, [*large, *others], [spec(gpu=1), spec(gpu=1)])


def test_what_is_evicted_does_not_land_where_it_stands_but_what_is_withdrawn_may():
    """A whole GPU finds no other node, a part of one no other device; neither is asked to make room."""
    for of in (spec(gpu=1), spec(fraction=500)):
        stands = [task("r0-0", of, on="n0", devices=[0])]
        assert not asked_about([node("n0", gpu=1)], stands, [spec()])
        assert asked_about([node("n0", gpu=1)], stands, [spec()], withdrawn=True)
    assert asked_about([node("n0", gpu=2)], [task("r0-0", spec(fraction=500), on="n0", devices=[0])], [spec()])
    assert not asked_about([node("n0", gpu=2)], [task("r0-0", spec(gpu=1), on="n0", devices=[0])], [spec()])


@pytest.mark.parametrize(("limit", "most"), [("MOST_NODES", 0), ("MOST_TASKS", 1), ("MOST_LOOKED_AT", 0)])
def test_beyond_its_bounds_it_refuses_nothing(monkeypatch, limit, most):
    """So many nodes, so many tasks, and so many ways are looked at."""
    monkeypatch.setattr(packing, limit, most)
    stands = [task("r0-0", spec(gpu=1), on="n0", devices=[0])]
    assert asked_about([node("n0", gpu=1), node("n1")], stands, [spec()])


def test_where_the_nodes_cannot_hold_what_moves_no_set_is_carried_out(monkeypatch):
    """A set of moves that cannot be packed is refused as what finds no place to land; nothing is evicted to try it."""
    tried, find = [], JointPlacement.find
    monkeypatch.setattr(JointPlacement, "find", lambda search: tried.append(search) or find(search))
    nodes = [node("n0", cpu=2, gpu=2), node("n1")]
    runs = workload("r", tasks=[task("r-0", spec(gpu=1), on="n0", devices=[0])])
    played = play(cluster(nodes, [runs, workload("w", of=spec(cpu=2, gpu=1))], [queue("default")],
                          actions=("allocate", "consolidate")))  # fmt: skip
    assert (played.steps, tried) == ([], [])
