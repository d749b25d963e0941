"""Random small clusters in which much is overdue and much waits."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.builders import NOW, SECOND, cluster, node, queue, spec, task, workload

from tenure.model.settings import RequeueSettings

HOUR = 3600


def random_cluster(seed, *, actions=("allocate", "requeue"), **settings):
    """One of many: up to three nodes, up to three queues, everything measured in GPUs."""
    draw = random.Random(seed)
    nodes = [node(f"n{i}", cpu=64, gpu=draw.choice((2, 4, 8))) for i in range(draw.randint(1, 3))]
    free = {n.name: n.allocatable["nvidia.com/gpu"] for n in nodes}
    tree = [_queue(draw, f"q{i}", sum(free.values())) for i in range(draw.randint(1, 3))]
    floor = sum(q.guaranteed.get("nvidia.com/gpu", 0) for q in tree)
    if floor > 1000 * sum(free.values()):
        tree = [replace(q, guaranteed={}) for q in tree]
    running = []
    for number in range(draw.randint(1, 8)):
        made = _running(draw, f"r{number}", free)
        if made is not None:
            running.append(replace(made, queue=draw.choice(tree).name))
    waiting = [_waiting(draw, f"w{i}", draw.choice(tree).name) for i in range(draw.randint(0, 5))]
    requeue = RequeueSettings(max_candidates=draw.choice((1, 2, 8)))
    return cluster(nodes, [*running, *waiting], tree, actions=actions, **{"requeue": requeue, **settings})


def _queue(draw, name, gpus):
    floor = draw.choice((0, 0, 1, 2, gpus // 2))
    return queue(
        name,
        guaranteed={"gpu": floor} if floor else {},
        max={"gpu": max(floor, draw.randint(1, gpus))} if draw.random() < 0.2 else {},
        priority=draw.choice((100, 100, 100, 200)),
        reclaim_min_runtime=draw.choice((None, None, 0, 2 * HOUR * SECOND)),
        preempt_min_runtime=draw.choice((None, None, 0, 2 * HOUR * SECOND)),
    )


def _running(draw, name, free):
    size, count = draw.choice((1, 1, 2, 3, 4)), draw.choice((1, 1, 1, 2, 3))
    tasks = []
    for number in range(count):
        where = [n for n, left in sorted(free.items()) if left >= size]
        if not where:
            return None if not tasks else _made(draw, name, tasks)
        chosen = draw.choice(where)
        free[chosen] -= size
        tasks.append(task(f"{name}-{number}", spec(cpu=0, gpu=size), on=chosen))
    return _made(draw, name, tasks)


def _made(draw, name, tasks):
    ran = draw.randint(10, 4 * HOUR)
    return workload(
        name,
        tasks=tasks,
        min_member=draw.choice((None, None, 1)),
        priority=draw.choice((0, 0, 10, 50)),
        running=ran,
        age=ran + draw.randint(0, 100),
        expected_runtime=draw.choice((None, HOUR, HOUR, 60)),
        preemptible=draw.choice((None, None, None, False)),
        requeue_not_before=draw.choice((None, None, None, NOW + SECOND)),
    )


def _waiting(draw, name, where):
    size, count = draw.choice((1, 1, 2, 4)), draw.choice((1, 1, 1, 2, 4))
    return workload(
        name,
        tasks=count,
        of=spec(cpu=0, gpu=size),
        queue=where,
        priority=draw.choice((0, 10, 50, 90)),
        age=draw.randint(0, 9000),
        expected_runtime=draw.choice((None, HOUR)),
        preemption_delay=draw.choice((None, None, 0, 100 * SECOND)),
    )
