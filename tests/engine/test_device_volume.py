"""The bound by the volume of devices: it refuses no set of moves for which there is a way to put everything."""

from __future__ import annotations

import random
from itertools import combinations

from tests.properties.adding_up import GPU, drawn

from tenure.engine.device_volume import devices_may_do
from tenure.engine.snapshot import session_of

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


def test_it_refuses_nothing_that_fits_and_much_that_does_not():
    """Every pair of tasks that moves for a workload that waits, on random clusters with parts of GPUs."""
    refused = asked = 0
    for seed in range(CLUSTERS):
        state = drawn(seed)
        session, rng = session_of(state), random.Random(seed)
        running = [t for w in session.workloads.values() for t in w.tasks if t.node >= 0]
        waiting = [w for w in session.workloads.values() if w.step is not None and not w.occupied()]
        if len(running) < 2 or not waiting:
            continue
        for _ in range(10):
            moved, step = rng.sample(running, rng.randint(1, 2)), rng.choice(waiting).step
            specs = [t.model.spec for t in (*moved, *step.tasks)]
            may = devices_may_do(session, moved, step.tasks)
            fits = fit(free_devices(state, {t.name for t in moved}), specs)
            assert may or not fits
            asked += not fits and any(t.cls.milli is not None for t in moved)
            refused += not may
    assert refused > asked // 2
