"""A second reading of who may take from whom: it shares no code with the engine.

It reads clusters and the steps of a plan, replays the evictions one by one on plain dictionaries, and says which
rule of the text each of them broke.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

from tenure.model.workload import Phase

GPU = "nvidia.com/gpu"
HELD = (Phase.BOUND, Phase.RUNNING)


class Tree:
    """Queues by name."""

    def __init__(self, queues):
        self.queue = {q.name: q for q in queues}
        self.children = defaultdict(list)
        for queue in queues:
            self.children[queue.parent].append(queue.name)

    def path(self, name):
        """From a queue up to its top-level queue."""
        found = []
        while name is not None:
            found.append(name)
            name = self.queue[name].parent
        return found

    def guaranteed(self, name):
        """Own guarantee of GPUs, else the sum of the children's, else None."""
        own = self.queue[name].guaranteed.get(GPU)
        if own is not None:
            return own
        below = [g for child in self.children[name] if (g := self.guaranteed(child)) is not None]
        return sum(below) if below else None

    def floor(self, name):
        """The guarantee as a number."""
        return self.guaranteed(name) or 0

    def maximum(self, name):
        """Own maximum, or more than anything."""
        return self.queue[name].max.get(GPU, 1 << 50)

    def meeting(self, mine, theirs):
        """Children of the lowest common ancestor, towards each side."""
        first, second = self.path(mine), self.path(theirs)
        shared = set(first) & set(second)
        return [q for q in first if q not in shared][-1], [q for q in second if q not in shared][-1]


def asked(task):
    """GPUs of a task in milli-GPU."""
    return 1000 * dict(task.spec.requests).get(GPU, 0)


def holdings(cluster, tree):
    """What every queue holds: bound, running, or nominated."""
    found = defaultdict(int)
    for workload in cluster.workloads:
        for task in workload.tasks:
            if task.phase in HELD or task.nominated is not None:
                for queue in tree.path(workload.queue):
                    found[queue] += asked(task)
    return found


def min_runtime(settings, tree, cause, beneficiary, victim):
    """The minimum runtime as the text tells it, walking by hand. ``beneficiary`` None: nobody."""
    if cause not in settings.min_runtime.applies_to:
        return 0
    if cause != "quota" and beneficiary == victim:
        queue = victim
        while queue is not None:
            if tree.queue[queue].preempt_min_runtime is not None:
                return tree.queue[queue].preempt_min_runtime
            queue = tree.queue[queue].parent
        return settings.preempt_min_runtime
    queue = victim
    if settings.min_runtime.method == "lca" and beneficiary is not None and cause != "quota":
        above_beneficiary = [*tree.path(beneficiary), None]
        ancestor = next(q for q in [*tree.path(victim), None] if q in above_beneficiary)
        while tree.queue[queue].parent != ancestor:
            queue = tree.queue[queue].parent
    while queue is not None:
        if tree.queue[queue].reclaim_min_runtime is not None:
            return tree.queue[queue].reclaim_min_runtime
        queue = tree.queue[queue].parent
    return settings.reclaim_min_runtime


def broken(cluster, steps, fair):
    """Say which rules the evictions of one cycle break.

    ``cluster`` is as it was before, ``fair`` the fair share of each queue in milli-GPU.
    """
    tree = Tree(cluster.queues)
    found = []
    evictions = [s for s in steps if s.action == "evict"]
    placed = {s.workload for s in steps if s.action in ("bind", "nominate")}
    workloads = {w.key: w for w in cluster.workloads}
    for step in evictions:
        victim = workloads[step.workload]
        if step.cause != "stale-gang" and step.beneficiary not in placed:
            found.append(f"{step.workload} is evicted for {step.beneficiary}, which gets nothing")
        if victim.priority >= 100 and victim.preemptible is None:
            found.append(f"{step.workload} is not preemptible")
        if any(tree.queue[q].preemption_policy == "disabled" for q in tree.path(victim.queue)):
            found.append(f"{step.workload} is taken from a disabled queue")
        if step.cause not in ("reclaim", "preempt", "consolidate"):
            continue
        contender = workloads[step.beneficiary]
        if step.cause == "preempt" and (contender.queue != victim.queue or victim.priority >= contender.priority):
            found.append(f"{step.workload} is preempted by {step.beneficiary} of no higher priority")
        if step.cause == "reclaim":
            outside = set(tree.path(contender.queue)) - set(tree.path(victim.queue))
            if any(tree.queue[q].preemption_policy == "fence" for q in outside):
                found.append(f"{step.beneficiary} takes {step.workload} from outside its fence")
    found += _protected_cores(cluster, tree, evictions, workloads)
    found += _shares(cluster, tree, steps, workloads, fair)
    return found


def _protected_cores(cluster, tree, evictions, workloads):
    """No core of a workload in its minimum runtime is touched, and cores go whole."""
    found = []
    by_workload = defaultdict(list)
    for step in evictions:
        by_workload[step.workload].append(step)
    for key, own in by_workload.items():
        victim = workloads[key]
        active = [t for t in victim.tasks if t.phase in HELD]
        left = len(active) - len(own)
        minimum = len(victim.tasks) if victim.min_member is None else victim.min_member
        if 0 < left < minimum:
            found.append(f"{key} is left with {left} of {minimum}")
        if left >= minimum or own[0].cause == "stale-gang":
            continue
        left = len(active)
        for beneficiary in dict.fromkeys(s.beneficiary for s in own):  # in the order in which they took
            taken = [s for s in own if s.beneficiary == beneficiary]
            left -= len(taken)
            if left >= minimum:  # its surplus alone, which is never protected
                continue
            protected = min_runtime(cluster.settings, tree, taken[0].cause, workloads[beneficiary].queue, victim.queue)
            if cluster.now < (victim.started_at or 0) + protected:
                found.append(f"the core of {key} is protected from {beneficiary}")
    return found


def _shares(cluster, tree, steps, workloads, fair):
    """Replay what each reclaim takes, piece by piece, in the order in which the rules allow most."""
    found = []
    held = holdings(cluster, tree)
    for step in steps:  # what the cycle placed for nothing is there before it takes
        if step.action == "bind":
            _change(held, tree, workloads[step.workload], asked_of(workloads, step), 1)
    after = dict(held)
    for step in steps:
        if step.action in ("evict", "nominate"):
            sign = -1 if step.action == "evict" else 1
            after.update(_changed(after, tree, workloads[step.workload], sign * asked_of(workloads, step)))
    evictions = [s for s in steps if s.action == "evict"]
    beneficiaries = {s.beneficiary for s in evictions}
    if len(beneficiaries) != 1 or {s.cause for s in evictions} != {"reclaim"}:
        return found
    contender = workloads[beneficiaries.pop()]
    placed = [s for s in steps if s.workload == contender.key and s.action == "nominate"]
    core = len(contender.tasks) if contender.min_member is None else contender.min_member
    if len(placed) != core or any(t.phase in HELD for t in contender.tasks):
        return found  # it grew as well, by other sets
    got = sum(asked_of(workloads, s) for s in placed)
    for amount, victim, is_core in _pieces(tree, contender, evictions, workloads):
        found += _one_piece(tree, held, fair, after, contender, got, victim, amount, is_core=is_core)
        _change(held, tree, victim, amount, -1)
    return found + _fullness(tree, held, fair, contender, got, {workloads[s.workload].queue for s in evictions})


def _pieces(tree, contender, evictions, workloads):
    """Amount, workload and whether it is a core: surplus singly and before cores, of each the smallest first.

    Before that, what is nearer the contender: with it gone, the contender's own side holds less.
    """
    found = []
    for key in {s.workload for s in evictions}:
        victim = workloads[key]
        gone = [asked_of(workloads, s) for s in evictions if s.workload == key]
        active = sum(t.phase in HELD for t in victim.tasks)
        minimum = len(victim.tasks) if victim.min_member is None else victim.min_member
        surplus = min(len(gone), max(0, active - minimum))
        found += [(amount, victim, False) for amount in gone[:surplus]]
        if gone[surplus:]:
            found.append((sum(gone[surplus:]), victim, True))
    path = tree.path(contender.queue)
    near = {w.queue: path.index(tree.meeting(contender.queue, w.queue)[0]) for _, w, _ in found}
    return sorted(found, key=lambda piece: (near[piece[1].queue], piece[2], piece[0], piece[1].key))


def _one_piece(tree, held, fair, after, contender, got, victim, amount, *, is_core):  # noqa: PLR0913
    """Check one piece at the moment it is taken; ``after`` is what queues hold once the plan is carried out."""
    found = []
    mine, theirs = tree.meeting(contender.queue, victim.queue)
    leaf = contender.queue
    within_leaf = tree.guaranteed(leaf) is not None and held[leaf] + got <= tree.floor(leaf)
    if not within_leaf and held[leaf] + got > fair[leaf]:
        found.append(f"{contender.key} takes beyond the fair share of {leaf}")
    within = tree.guaranteed(mine) is not None and held[mine] + got <= tree.floor(mine)
    limit = tree.floor(theirs) if within else min(tree.maximum(theirs), max(tree.floor(theirs), fair[theirs]))
    if held[theirs] <= limit:
        found.append(f"{theirs} holds {held[theirs]}, not over {limit}, when {victim.key} is taken")
    for queue in tree.path(victim.queue):
        if held[queue] <= tree.floor(queue):
            found.append(f"{queue} is not over its guaranteed when {victim.key} is taken")
        if held[queue] - amount < tree.floor(queue):
            entitled = within_leaf or held[mine] < tree.floor(mine) or after[queue] >= tree.floor(queue)
            if not (is_core and entitled):
                found.append(f"{victim.key} carries {queue} below its guaranteed")
        if queue == theirs:
            break
    return found


def _fullness(tree, held, fair, contender, got, leaves):
    """Check the contender's side against what it took from, once all is taken and it has its place."""
    found = []
    for leaf in sorted(leaves):
        mine, theirs = tree.meeting(contender.queue, leaf)
        for queue in tree.path(contender.queue):
            then = held[queue] + got
            if then > fair[queue] and fuller(fair[queue], then, fair[theirs], held[theirs]):
                found.append(f"{queue} is fuller than {theirs} after {contender.key} took from it")
            if queue == mine:
                break
    return found


def fuller(share, held, its_share, other):
    """Whether held/share is more than other/its_share."""
    infinite = float("inf")
    one = Fraction(held, share) if share else (infinite if held else 0)
    two = Fraction(other, its_share) if its_share else (infinite if other else 0)
    return one > two


def asked_of(workloads, step):
    """GPUs of the task of a step."""
    return asked(workloads[step.workload].tasks[step.task_index])


def _change(held, tree, workload, amount, sign):
    held.update(_changed(held, tree, workload, sign * amount))


def _changed(held, tree, workload, amount):
    return {queue: held.get(queue, 0) + amount for queue in tree.path(workload.queue)}
