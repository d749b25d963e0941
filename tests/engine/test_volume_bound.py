"""The bound by volume: it refuses no moves for which there is a way to put everything."""

from __future__ import annotations

import random
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from tests.properties.adding_up import GPU, drawn

from tenure.engine.serving.volume_bound import VolumeBound, VolumeShortage
from tenure.engine.snapshot import session_of
from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.values.resources import CPU
from tenure.model.workload import GpuShare, Phase, Task, TaskSpec, Workload

CLUSTERS = 150


def free_devices(state, moved):
    """Count what is free on each device once some tasks are up: milli-GPU by node, device by device."""
    free = {n.name: [1000] * n.allocatable[GPU] for n in state.nodes}
    for workload in state.workloads:
        for task in workload.tasks:
            for device in () if task.name in moved else task.devices:
                free[task.node][device] -= task.spec.gpu_share.milli if task.spec.gpu_share else 1000
    return free


def fit(free, specs):
    """Whether there is any way to put tasks on devices, tried one by one; nothing else of nodes is looked at."""
    if not specs:
        return True
    spec, rest = specs[0], specs[1:]
    milli = spec.gpu_share.milli if spec.gpu_share else 1000
    count = 1 if spec.gpu_share else dict(spec.requests)[GPU]
    for devices in free.values():
        for chosen in combinations(range(len(devices)), count):
            if all(devices[d] >= milli for d in chosen):
                for device in chosen:
                    devices[device] -= milli
                found = fit(free, rest)
                for device in chosen:
                    devices[device] += milli
                if found:
                    return True
    return False


def test_it_refuses_nothing_that_fits_and_most_that_does_not():
    """One to three tasks that move for a workload that waits, on random clusters with parts of GPUs."""
    refused = asked = 0
    for seed in range(CLUSTERS):
        state = drawn(seed)
        session, rng = session_of(state), random.Random(seed)
        running = [t for w in session.workloads.values() for t in w.tasks if t.node >= 0]
        waiting = [w for w in session.workloads.values() if w.step is not None and not w.occupied()]
        if len(running) < 3 or not waiting:
            continue
        for _ in range(10):
            moved, step = rng.sample(running, rng.randint(1, 3)), rng.choice(waiting).step
            specs = [t.model.spec for t in (*moved, *step.tasks)]
            may = VolumeBound(session.nodes).shortage(moved, step.tasks) is None
            fits = fit(free_devices(state, {t.name for t in moved}), specs)
            assert may or not fits
            asked += not fits
            refused += not may
    assert refused > asked * 0.8, (refused, asked)


def asking(cores):
    """Give a task's spec."""
    return TaskSpec(requests=((CPU, cores * 1000),))


def cluster_of(nodes, running, asks):
    """Give a session of nodes with so many cores each, tasks by node and cores, and one workload that waits."""
    held = []
    for number, (node, cores) in enumerate(running):
        task = Task(name=f"r{number}-0", spec=asking(cores), phase=Phase.RUNNING, node=f"n{node}")
        held.append(Workload(name=f"r{number}", queue="q", tasks=(task,)))
    tasks = tuple(Task(name=f"p-{n}", spec=asking(cores)) for n, cores in enumerate(asks))
    waits = Workload(name="p", queue="q", min_member=len(asks), tasks=tasks)
    made = tuple(Node(name=f"n{n}", allocatable={CPU: cores * 1000}) for n, cores in enumerate(nodes))
    return session_of(Cluster(now=0, nodes=made, queues=(Queue(name="q"),), workloads=(*held, waits)))


def packs(room, asks):
    """Whether parts fit into rooms, each way tried."""
    if not asks:
        return True
    return any(
        room[n] >= asks[0] and packs([*room[:n], room[n] - asks[0], *room[n + 1 :]], asks[1:]) for n in range(len(room))
    )


@given(st.data())
def test_more_that_moves_never_makes_it_worse_and_what_packs_is_never_refused(data):
    """Nodes of one resource: for every part of what runs, held against all ways to pack."""
    nodes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    room, running = list(nodes), []
    for node in range(len(nodes)):
        for cores in data.draw(st.lists(st.integers(1, 4), max_size=2)):
            if cores <= room[node]:
                running.append((node, cores))
                room[node] -= cores
    asks = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    session = cluster_of(nodes, running, asks)
    tasks = [session.workloads[f"default/r{n}"].tasks[0] for n in range(len(running))]
    wanted = session.workloads["default/p"].tasks
    everything = VolumeBound(session.nodes).shortage(tasks, wanted) is None
    for size in range(len(tasks) + 1):
        for chosen in combinations(range(len(tasks)), size):
            may = VolumeBound(session.nodes).shortage([tasks[n] for n in chosen], wanted) is None
            left = list(room)
            for n in chosen:
                left[running[n][0]] += running[n][1]
            assert everything or not may
            assert may or not packs(left, [*(running[n][1] for n in chosen), *asks])


def test_a_node_counts_for_as_many_as_it_holds():
    """Two nodes with three cores free hold two tasks of two cores, not three, whatever else moves."""
    session = cluster_of([4, 4, 2], [(0, 1), (1, 1), (2, 2)], [2, 2, 2])
    tasks = [session.workloads[f"default/r{n}"].tasks[0] for n in range(3)]
    wanted = session.workloads["default/p"].tasks
    assert VolumeBound(session.nodes).shortage(tasks[:2], wanted[:2]) is None
    assert VolumeBound(session.nodes).shortage((), wanted) == VolumeShortage("cpu", 2000, 2, 3)
    assert VolumeBound(session.nodes).shortage(tasks, wanted) is None  # the two small ones land together
    assert VolumeBound(session.nodes).shortage(tasks[2:], (*wanted, *wanted)) == VolumeShortage("cpu", 2000, 3, 7)


def test_of_parts_that_stand_on_unknown_devices_nothing_is_said():
    """Half of the only device is in use by what does not say so: the engine takes the device for free."""
    half = Task(name="r-0", spec=TaskSpec(gpu_share=GpuShare(milli=500)), phase=Phase.RUNNING, node="n0")
    runs = Workload(name="r", queue="q", tasks=(half,))
    waits = Workload(name="p", queue="q", tasks=(Task(name="p-0", spec=TaskSpec(requests=((GPU, 1),))),))
    nodes = (Node(name="n0", allocatable={GPU: 1}),)
    session = session_of(Cluster(now=0, nodes=nodes, queues=(Queue(name="q"),), workloads=(runs, waits)))
    wanted = session.workloads["default/p"].tasks
    assert VolumeBound(session.nodes).shortage((), wanted) is None
    assert VolumeBound(session.nodes).shortage(session.workloads["default/r"].tasks, wanted) is None
