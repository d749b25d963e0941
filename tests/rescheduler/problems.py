"""Small random problems, and the answer to them by trying everything."""

from __future__ import annotations

from operator import add, sub

import numpy as np

from tenure.rescheduler.planner import PlannerLimits
from tenure.rescheduler.problem.definition import MoveBound, MoveProblem, PendingMembers

PATIENT = PlannerLimits(time_limit=3600.0)
"""What is found and proven does not depend on how busy the machine is."""


def problem(free, tasks, asks, *, kinds, allowed=None, units=None, bounds=(), domain=None):
    """Make a problem of one or more resources.

    ``free`` lists the room of each node, ``tasks`` are (class, node, cost), ``asks`` are (group, class, count),
    ``kinds`` is what each class takes.
    """
    ask = np.array(kinds, np.int64).reshape(len(kinds), -1)
    room = np.array(free, np.int64).reshape(len(free), -1).T.copy()
    count, size = len(kinds), room.shape[1]
    cls = np.array([t[0] for t in tasks], np.int64)
    groups = 1 + max((a[0] for a in asks), default=-1)
    return MoveProblem(
        free=room,
        ask=ask,
        allowed=np.ones((count, size), bool) if allowed is None else np.array(allowed, bool),
        shapes=tuple((c,) for c in range(count)),
        cls=cls,
        shape=cls.copy(),
        node=np.array([t[1] for t in tasks], np.int64),
        cost=np.array([t[2] for t in tasks], np.int64),
        unit=np.full(len(tasks), -1, np.int64) if units is None else np.array(units, np.int64),
        asks=tuple(PendingMembers(group=g, cls=c, count=n) for g, c, n in asks),
        domain=np.zeros((groups, size), np.int64) if domain is None else np.array(domain, np.int64),
        bounds=tuple(bounds),
        resources=tuple(f"r{i}" for i in range(ask.shape[1])),
        nodes=tuple(f"node-{i}" for i in range(size)),
    )


def random_problem(seed):
    """A tight little cluster: two resources, units, budgets, places that are not allowed, racks."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 5))
    kinds = rng.integers(0, 4, (int(rng.integers(2, 4)), 2)) + np.array([1, 0])
    number = 7 if nodes == 3 else 6
    tasks, units = [], []
    capacity = rng.integers(4, 8, (nodes, 2))
    room = capacity.copy()
    while len(tasks) < number and len(units) < 60:
        cls, node = int(rng.integers(len(kinds))), int(rng.integers(nodes))
        if (room[node] >= kinds[cls]).all():
            room[node] -= kinds[cls]
            tasks.append((cls, node, int(rng.integers(1, 6))))
        units.append(int(rng.choice([-1, -1, -1, 0])))
    units = units[: len(tasks)]
    groups = int(rng.integers(1, 3))
    largest = int(kinds.sum(axis=1).argmax())
    asks = [(g, largest if g == 0 else int(rng.integers(len(kinds))), int(rng.integers(1, 3))) for g in range(groups)]
    bounds = []
    if rng.random() < 0.4 and tasks:
        chosen = {int(t): 1 for t in rng.choice(len(tasks), size=int(rng.integers(1, len(tasks) + 1)), replace=False)}
        bounds.append(MoveBound(name="b", weights=chosen, limit=int(rng.integers(0, 3))))
    allowed = rng.random((len(kinds), nodes)) < 0.93
    domain = rng.integers(0, 2, (groups, nodes)) if rng.random() < 0.3 else np.zeros((groups, nodes), np.int64)
    return problem(room.tolist(), tasks, asks, kinds=kinds.tolist(), allowed=allowed, units=units, bounds=bounds,
                   domain=domain)  # fmt: skip


def fragmented_problem(seed):
    """Room that lies in pieces: a gang of one or two for which there is enough in all, and on no node at once."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 5))
    kinds = [[1], [2], [3]]
    free = rng.integers(5, 8, nodes)
    tasks, units = [], []
    for _ in range(60):
        cls, node = int(rng.integers(3)), int(rng.integers(nodes))
        if len(tasks) < (8 if nodes == 3 else 7) and free[node] > cls:
            free[node] -= cls + 1
            tasks.append((cls, node, int(rng.integers(1, 30))))
            units.append(int(rng.choice([-1, -1, -1, -1, 0])))
    wanted = int(min(free.max() + rng.integers(1, 3), max(free.sum(), free.max() + 1)))
    asks = [(0, 3, 1)] if rng.random() < 0.6 else [(0, 3, 1), (0, int(rng.integers(3)), 1)]
    bounds = []
    if rng.random() < 0.3:
        bounds.append(
            MoveBound(name="b", weights=dict.fromkeys(range(0, len(tasks), 2), 1), limit=int(rng.integers(1, 3)))
        )
    return problem([[int(f)] for f in free], tasks, asks, kinds=[*kinds, [wanted]], units=units, bounds=bounds)


def cheapest_by_force(p):
    """Least cost of any plan, None if there is none: every task on every node, every member on every node.

    Task after task is put on each node. Nothing is gone on with that overfills a node, or costs as much as the best
    plan so far.
    """
    best = None
    members = [(a.cls, a.group) for a in p.asks for _ in range(a.count)]
    asks = [p.ask[p.shape[task]].tolist() for task in range(p.tasks)]
    room = p.free.T.tolist()
    for task, home in enumerate(p.node.tolist()):
        room[home] = list(map(add, room[home], asks[task]))
    open_to = [_open_to(p, task) for task in range(p.tasks)]
    places = []

    def put(so_far):
        nonlocal best
        if best is not None and so_far >= best:
            return
        task = len(places)
        if task == p.tasks:
            cost = _cost(p, places)
            if cost is not None and (best is None or cost < best) and _fits(p, np.array(room).T, members, {}):
                best = cost
            return
        for place, price in open_to[task]:
            had = room[place]
            room[place] = list(map(sub, had, asks[task]))
            places.append(place)
            if min(room[place]) >= 0:
                put(so_far + price)
            places.pop()
            room[place] = had

    put(0)
    return best


def _open_to(p, task):
    """Give where a task may be, its own node first, each with what it costs to bring it there alone."""
    home = int(p.node[task])
    elsewhere = [place for place in range(p.size) if place != home and p.allowed[p.cls[task], place]]
    return [(home, 0), *((place, int(p.cost[task])) for place in elsewhere)]


def _cost(p, places):
    moved = [t for t in range(p.tasks) if places[t] != p.node[t]]
    going = set(moved)
    for unit in {int(p.unit[t]) for t in moved if p.unit[t] >= 0}:
        mates = [t for t in range(p.tasks) if p.unit[t] == unit]
        if sum(t in going for t in mates) > 1:
            going.update(mates)
    if any(not p.allowed[p.cls[t], places[t]] for t in going):
        return None
    if any(sum(b.weights.get(t, 0) for t in going) > b.limit for b in p.bounds):
        return None
    return sum(int(p.cost[t]) for t in going)


def _fits(p, room, members, domains):
    if not members:
        return True
    (cls, group), *rest = members
    for node in range(p.size):
        number = int(p.domain[group, node])
        if not p.allowed[cls, node] or domains.get(group, number) != number:
            continue
        if (room[:, node] >= p.ask[cls]).all():
            room[:, node] -= p.ask[cls]
            found = _fits(p, room, rest, {**domains, group: number})
            room[:, node] += p.ask[cls]
            if found:
                return True
    return False
