"""Which running tasks have to move for a contender, word for word from the specification: every set is tried.

Every set of tasks, every way to place them and the contender jointly; it shares no code with the search. GPUs alone,
whole, so that a place is a node.
"""

from __future__ import annotations

from itertools import chain, combinations, product

from tests.oracles.naive_search import _rank, _refused, core
from tests.properties.taking_checker import GPU, HELD, Tree, asked, min_runtime


class NaiveConsolidation:
    """The sets of tasks that may move for the one contender that waits."""

    def __init__(self, cluster, contender):
        self.cluster = cluster
        self.contender = contender
        self.tree = Tree(cluster.queues)
        self.names = {w.key: w for w in cluster.workloads}
        self.nodes = [n.name for n in cluster.nodes]
        self.free = {n.name: n.allocatable[GPU] * 1000 for n in cluster.nodes}
        for workload in cluster.workloads:
            for task in workload.tasks:
                if task.phase in HELD:
                    self.free[task.node] -= asked(task)

    def units(self):
        """Each task that may move, as a set of one: no shield holds its workload, or it is surplus."""
        found = []
        for workload in self.cluster.workloads:
            held = [i for i, t in enumerate(workload.tasks) if t.phase in HELD]
            if workload is self.contender or not held or not self._may_move(workload, held):
                continue
            protected = core(workload) if self._is_protected(workload) else 0
            found += [((workload.key, i),) for i in held[protected:]]
        return found

    def _may_move(self, workload, held):
        """What is not preemptible, or taken from nobody, or would not start again, stays."""
        closed = any(self.tree.queue[q].preemption_policy == "disabled" for q in self.tree.path(workload.queue))
        return workload.is_preemptible and not closed and len(held) >= core(workload)

    def _is_protected(self, workload):
        least = min_runtime(self.cluster.settings, self.tree, "consolidate", self.contender.queue, workload.queue)
        return self.cluster.now < workload.started_at + least

    def fits(self, moved):
        """Whether the contender's core and all that moved have room together, nothing of it where it stood."""
        free, origins = dict(self.free), []
        for key, index in moved:
            task = self.names[key].tasks[index]
            free[task.node] += asked(task)
            origins.append((asked(task), task.node))
        placed = [(asked(t), None) for t in self.contender.tasks[: core(self.contender)]] + origins
        for nodes in product(self.nodes, repeat=len(placed)):
            if any(node == origin for node, (_, origin) in zip(nodes, placed, strict=True)):
                continue
            left = dict(free)
            for node, (amount, _) in zip(nodes, placed, strict=True):
                left[node] -= amount
            if min(left.values()) >= 0:
                return True
        return False

    def best(self):
        """Order and sets of the best that may move; None where nobody has to, or nothing does."""
        units = self.units()
        if self._over_max() or self.fits(()):
            return None
        valid = {}
        for chosen in chain.from_iterable(combinations(units, size) for size in range(1, len(units) + 1)):
            moved = tuple(chain(*chosen))
            if self.fits(moved):
                valid[chosen] = moved
        lowest = {}
        for unit in units:
            workload = self.names[unit[0][0]]
            lowest[workload.queue] = min(workload.priority, lowest.get(workload.queue, workload.priority))
        smallest = [c for c in valid if not any(set(o) < set(c) for o in valid)]
        ranks = {
            c: _rank(self.cluster, self.names, c)[:2] for c in smallest if not _refused(self.names, lowest, c, smallest)
        }
        least = min(ranks.values(), default=None)
        return None if least is None else (least, [frozenset(valid[c]) for c in ranks if ranks[c] == least])

    def _over_max(self):
        """Whether the contender's queues may not hold what it asks for, or what is not preemptible borrows."""
        got = sum(map(asked, self.contender.tasks[: core(self.contender)]))
        for queue in self.tree.path(self.contender.queue):
            below = [w for w in self.cluster.workloads if queue in self.tree.path(w.queue)]
            held = sum(asked(t) for w in below for t in w.tasks if t.phase in HELD)
            fixed = sum(asked(t) for w in below if not w.is_preemptible for t in w.tasks if t.phase in HELD)
            floor = self.tree.guaranteed(queue)
            borrows = not self.contender.is_preemptible and floor is not None and fixed + got > floor
            if held + got > self.tree.maximum(queue) or borrows:
                return True
        return False
