"""What quota preemption may do and should do, worked out the plain way from the cluster alone: nothing of the engine.

Of one queue that is over its max, `best` tries every set.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from tenure.model.workload import Phase

ANNOTATION = "yunikorn.apache.org/allow-preemption"
OCCUPIES = (Phase.BOUND, Phase.RUNNING)


class Tree:
    """Queues of a cluster by name."""

    def __init__(self, cluster):
        self.queues = {q.name: q for q in cluster.queues}
        self.children = {name: [q.name for q in cluster.queues if q.parent == name] for name in self.queues}

    def path(self, name):
        """From a queue up to the top."""
        found = []
        while name is not None:
            found.append(name)
            name = self.queues[name].parent
        return found

    def below(self, top):
        """The queue and all below it."""
        return [name for name in self.queues if top in self.path(name)]

    def guaranteed(self, name):
        """Own guarantee by resource, else the sum of the children's."""
        found = {}
        for child in self.children[name]:
            for resource, amount in self.guaranteed(child).items():
                found[resource] = found.get(resource, 0) + amount
        return found | dict(self.queues[name].guaranteed)


def held(cluster, name, phases=OCCUPIES):
    """What tasks in some phases hold of each resource in a queue and all below it."""
    tree, found = Tree(cluster), {}
    for workload in cluster.workloads:
        if name in tree.path(workload.queue):
            for task in workload.tasks:
                if task.phase in phases:
                    for resource, amount in task.spec.requests:
                        found[resource] = found.get(resource, 0) + amount
    return found


def over(cluster, name, phases=OCCUPIES):
    """How far a queue is over its max."""
    uses, queue = held(cluster, name, phases), Tree(cluster).queues[name]
    return {r: uses.get(r, 0) - most for r, most in queue.max.items() if uses.get(r, 0) > most}


def spared(cluster, workload, task):
    """Whether a task is a last resort at ``cluster.now``."""
    asked = task.annotations.get(ANNOTATION, workload.annotations.get(ANNOTATION))
    if task.role != "originator" and workload.allow_preemption and asked != "false":
        return False
    until = None if task.role == "originator" else workload.allow_preemption_until
    ends = [] if until is None else [until]
    tree = Tree(cluster)
    limit = next(
        (q.max_opt_out for q in map(tree.queues.get, tree.path(workload.queue)) if q.max_opt_out is not None), None
    )
    if limit is not None:
        start = workload.created_at if workload.started_at is None else workload.started_at
        ends.append(start + limit)
    return all(cluster.now < end for end in ends)


def minimum_runtime(cluster, workload):
    """The minimum runtime that holds for cause quota."""
    tree = Tree(cluster)
    for name in tree.path(workload.queue):
        if tree.queues[name].reclaim_min_runtime is not None:
            return tree.queues[name].reclaim_min_runtime
    return cluster.settings.reclaim_min_runtime


def choices(cluster, workload):
    """Everything that may be taken of a workload: lists of tasks, the empty one included."""
    running = [t for t in workload.tasks if t.phase in OCCUPIES]
    if not running or not workload.is_preemptible or workload.owner_kind == "DaemonSet":
        return [[]]
    core = len(workload.tasks) if workload.min_member is None else workload.min_member
    beyond = max(0, len(running) - core)
    surplus = running[len(running) - beyond :]
    found = [[t for t, taken in zip(surplus, bits, strict=True) if taken] for bits in product((0, 1), repeat=beyond)]
    start = workload.started_at
    if start is None or cluster.now >= start + minimum_runtime(cluster, workload):
        found.append(running)
    return found


def amount(tasks):
    """What tasks hold together."""
    found = {}
    for task in tasks:
        for resource, value in task.spec.requests:
            found[resource] = found.get(resource, 0) + value
    return found


def keeps_guarantees(cluster, taken):
    """Whether no queue at any level is left below its guaranteed in a resource that a victim of it holds.

    ``taken`` is a list of pairs of workload and tasks.
    """
    tree, lost = Tree(cluster), {}
    for workload, tasks in taken:
        for name in tree.path(workload.queue):
            for resource, value in amount(tasks).items():
                own = lost.setdefault(name, {})
                own[resource] = own.get(resource, 0) + value
    for name, own in lost.items():
        uses, floor = held(cluster, name), tree.guaranteed(name)
        if any(value and uses[r] >= floor.get(r, 0) > uses[r] - value for r, value in own.items()):
            return False
    return True


def weighted(cluster, amounts):
    """Amounts as one number: as in the disruption cost, what has no weight there as a part of the cluster's total."""
    units, prices = {"cpu": 1000, "nvidia.com/gpu": 1000}, cluster.settings.disruption.cost
    total = {}
    for node in cluster.nodes:
        for resource, amount in node.allocatable.items():
            total[resource] = total.get(resource, 0) + amount
    return sum(
        Fraction(repr(prices[r])) * a / units.get(r, 1) if r in prices else Fraction(a, total[r])
        for r, a in amounts.items()
    )


def levels(cluster, taken):
    """What is taken of each priority, from the highest down."""
    found = {}
    for workload, tasks in taken:
        found[workload.priority] = found.get(workload.priority, 0) + weighted(cluster, amount(tasks))
    return tuple(sorted(((p, a) for p, a in found.items() if a), reverse=True))


def value(cluster, name, taken):
    """The first four things that sets are compared by, of a queue that is over its max, and nothing to follow apart."""
    need = over(cluster, name)
    freed = amount([t for _, tasks in taken for t in tasks])
    return (
        sum(Fraction(max(0, much - freed.get(r, 0)), much) for r, much in need.items()),
        sum(spared(cluster, w, t) for w, tasks in taken for t in tasks),
        levels(cluster, taken),
        sum(Fraction(freed.get(r, 0), much) for r, much in need.items()),
    )


def later(cluster, taken):
    """What sets of one leaf are compared by after that: cost in weighted resource-µs, cores of workloads, and tasks."""
    units = {"cpu": 1000, "nvidia.com/gpu": 1}
    cost = 0
    for workload, tasks in taken:
        for task in tasks:
            prices = cluster.settings.disruption.cost.items()
            rate = sum(Fraction(repr(p)) * dict(task.spec.requests).get(r, 0) / units[r] for r, p in prices)
            cost += rate * (cluster.now - max(workload.started_at, task.started_at))
    return cost, sum(len(tasks) == len(w.tasks) for w, tasks in taken), sum(len(tasks) for _, tasks in taken)


def within_budgets(cluster, taken):
    """Whether no budget that counts evictions, of a queue or of each workload, is exceeded; nothing went before."""
    tree = Tree(cluster)
    for rule in cluster.settings.disruption.budgets:
        counted = [len(tasks) for w, tasks in taken if rule.queue is None or rule.queue in tree.path(w.queue)]
        if (max(counted, default=0) if rule.each else sum(counted)) > rule.max_evictions:
            return False
    return True


def best(cluster, name):
    """The best value that any set of a queue has."""
    return best_sets(cluster, name)[0]


def best_sets(cluster, name):
    """The best value that any set of a queue has, and the sets that have it."""
    tree = Tree(cluster)
    need = over(cluster, name)
    inside = [w for w in cluster.workloads if name in tree.path(w.queue)]
    found, sets = None, []
    for picked in product(*(choices(cluster, w) for w in inside)):
        taken = [(w, tasks) for w, tasks in zip(inside, picked, strict=True) if tasks]
        if cluster.settings.quota_preemption.overshoot == "never":
            freed = amount([t for _, tasks in taken for t in tasks])
            if any(freed.get(r, 0) > much for r, much in need.items()):
                continue
        now = value(cluster, name, taken)
        if (found is None or now <= found) and keeps_guarantees(cluster, taken) and within_budgets(cluster, taken):
            sets = [*sets, taken] if now == found else [taken]
            found = now
    return found, sets
