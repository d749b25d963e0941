"""Which set reclaim takes where tasks hold several resources, word for word from the specification.

Every set is tried. Queues and rules are read off the cluster by hand, fair shares and the play-through are those of
`tests.engine.reference`; nothing of the search is shared. Of the orders in which a set may be taken piece by piece it
is one that the search takes: what is nearer the contender first, surplus before cores, the smallest first.
"""

from __future__ import annotations

from collections import defaultdict
from copy import deepcopy
from fractions import Fraction
from itertools import chain, combinations, groupby, permutations, product

from tests.engine.reference import THEN, Reference
from tests.oracles.naive_search import Playing, core, is_whole, pieces

GPU = "nvidia.com/gpu"
MILLI = 1000
EVERYTHING = 1 << 60


def amounts(tasks):
    """What tasks hold together, GPUs in milli-GPU."""
    found = defaultdict(int)
    for task in tasks:
        for name, amount in task.spec.requests:
            found[name] += amount * (MILLI if name == GPU else 1)
    return found


class NaiveReclaim:
    """The rules of reclaim for one contender, which waits with all that it has."""

    def __init__(self, cluster, contender):
        self.cluster, self.contender = cluster, contender
        self.reference = Reference(cluster)
        self.named = {w.key: w for w in cluster.workloads}
        self.step = amounts(contender.tasks)
        self.rows = [r for r in self.reference.compared if self.step[r]]
        self.price = {"cpu": Fraction("0.05") / MILLI, GPU: Fraction(1, MILLI)}

    def path(self, queue):
        return list(self.reference.path(queue))

    def meeting(self, victim):
        """The children of the lowest common ancestor, on the contender's side and on the victim's."""
        mine, theirs = self.path(self.contender.queue), self.path(victim.queue)
        return [q for q in mine if q not in theirs][-1], [q for q in theirs if q not in mine][-1]

    def held(self, places):
        """What each queue holds, of pairs of workload and task."""
        found = defaultdict(lambda: defaultdict(int))
        for workload, task in places:
            for queue in self.path(workload.queue):
                for name, amount in amounts([task]).items():
                    found[queue][name] += amount
        return found

    def within(self, queue, held):
        """Whether a queue is within its guaranteed with the contender's step."""
        floor = self.reference.guaranteed(queue)
        asked = [r for r, amount in self.step.items() if amount and r in floor]
        return bool(asked) and all(held[queue][r] + self.step[r] <= floor[r] for r in asked)

    def parts(self, workload, tasks):
        """What is taken of a workload one after the other: amounts, and whether it is the core.

        Surplus that holds nothing of what is asked for goes with the core.
        """
        if len(tasks) < len(workload.tasks):
            return [(workload, amounts([t]), False) for t in tasks]
        surplus = workload.tasks[core(workload) :]
        alone = [t for t in surplus if any(amounts([t])[r] for r in self.rows)]
        rest = [t for t in workload.tasks if t not in alone]
        return [*((workload, amounts([t]), False) for t in alone), (workload, amounts(rest), True)]

    def order(self, part):
        workload, amount, whole = part
        far = self.path(self.contender.queue).index(self.meeting(workload)[0])
        return far, whole, sum(Fraction(amount[r], self.step[r]) for r in self.rows)

    def allows(self, gone, after):
        """Whether pairs of workload and tasks may be taken; ``after`` is what queues hold in the end."""
        leaf, fair = self.contender.queue, self.reference.fair
        held = self.held((w, t) for w in self.cluster.workloads for t in w.tasks if t.node is not None)
        entitled = self.within(leaf, held)
        if not entitled and not (self.rows and all(held[leaf][r] + self.step[r] <= fair[leaf][r] for r in self.rows)):
            return False
        if any(w.queue == leaf or not w.is_preemptible for w, _ in gone):
            return False
        parts = sorted(chain(*(self.parts(w, tasks) for w, tasks in gone)), key=self.order)
        alike = [list(permutations(group)) for _, group in groupby(parts, key=self.order)]
        orders = (chain(*order) for order in product(*alike))  # of those that are equally small any may be the first
        return any(self.allows_in(order, gone, deepcopy(held), after, entitled=entitled) for order in orders)

    def allows_in(self, order, gone, held, after, *, entitled):
        """Whether parts may be taken one after the other; ``held`` is what queues hold before."""
        for part in order:
            if not self.takes(*part, held, after, entitled=entitled):
                return False
            for queue in self.path(part[0].queue):
                for name, amount in part[1].items():
                    held[queue][name] -= amount
        return not any(self.fuller(w, held) for w, _ in gone)

    def takes(self, victim, amount, whole, held, after, *, entitled):
        """Whether one part may be taken as things stand."""
        mine, theirs = self.meeting(victim)
        rows = [r for r in self.rows if amount[r]]
        floor = self.reference.guaranteed
        limit = floor(theirs) if self.within(mine, held) else self.reference.allocatable[theirs]
        if not any(held[theirs][r] > limit.get(r, 0) for r in rows):
            return False
        for queue in self.path(victim.queue):
            least = floor(queue)
            if not any(held[queue][r] > least.get(r, 0) for r in rows):
                return False
            below = [
                r for r, much in amount.items() if r in least and held[queue][r] >= least[r] > held[queue][r] - much
            ]
            owed = entitled or any(held[mine][r] < floor(mine).get(r, 0) for r in rows)
            if below and not (whole and (owed or all(after[queue][r] >= least[r] for r in below))):
                return False
            if queue == theirs:
                return True
        raise AssertionError(theirs)

    def fuller(self, victim, held):
        """Whether the contender's side would be fuller than the one that it took from."""
        (mine, theirs), fair = self.meeting(victim), self.reference.fair
        for queue in self.path(self.contender.queue):
            for r in self.rows:
                then = held[queue][r] + self.step[r]
                if then > fair[queue][r] and _ratio(then, fair[queue][r]) > _ratio(held[theirs][r], fair[theirs][r]):
                    return True
            if queue == mine:
                return False
        raise AssertionError(mine)

    def pays(self, chosen):
        """Play a set through: the contender has its place, and no victim its own back, but with others of its core."""
        gone = tuple(chain(*chosen))
        played = Playing(self.cluster, gone)
        played.run()
        if any((self.contender.key, i) not in played.places for i in range(len(self.contender.tasks))):
            return False
        for task, (node, _) in played.left.items():
            own = [t for t in played.left if t[0] == task[0]]
            landed = all(t in played.places for t in own)
            moved = any(landed and played.places[t][0] != played.left[t][0] for t in own)
            if task in played.places and played.places[task][0] == node and not moved:
                return False
        there = [
            (played.workloads[k], i) for (k, i), place in played.places.items() if THEN in place[2] and k[0] != "~"
        ]
        after = self.held((w, w.tasks[i]) for w, i in there)
        by = defaultdict(list)
        for key, index in sorted(gone):
            by[key].append(self.named[key].tasks[index])
        return self.allows([(self.named[key], tasks) for key, tasks in by.items()], after)

    def best(self):
        """Give the order and the tasks of the best sets, equal but for age and name; None if no set pays."""
        units = [u for u in pieces(self.cluster, self.contender) if self.named[u[0][0]].queue != self.contender.queue]
        sets = chain.from_iterable(combinations(units, size) for size in range(1, len(units) + 1))
        once = (s for s in sets if len(set(chain(*s))) == sum(map(len, s)))
        valid = [s for s in once if self.pays(s)]
        ranks = {s: self.rank(s) for s in valid if not any(self.refuses(other, s, units) for other in valid)}
        least = min(ranks.values(), default=None)
        return None if least is None else [frozenset(chain(*s)) for s in ranks if ranks[s] == least]

    def rank(self, chosen):
        """Order sets by queue priority, cost, cores and tasks."""
        tasks, priority = list(chain(*chosen)), {q.name: q.priority for q in self.cluster.queues}
        cost = sum(self.weighted([t]) * (self.cluster.now - self.named[t[0]].started_at) for t in tasks)
        level = max(priority[self.named[key].queue] for key, _ in tasks)
        return level, cost, sum(is_whole(self.named, unit) for unit in chosen), len(tasks)

    def weighted(self, tasks):
        held = amounts(self.named[key].tasks[index] for key, index in tasks)
        return sum(self.price[name] * amount for name, amount in held.items())

    def refuses(self, other, one, units):
        """Whether another set differs inside one queue only, and uses lower priorities there."""
        differ = {self.named[unit[0][0]].queue for unit in set(one) ^ set(other)}
        if len(differ) != 1:
            return False
        (queue,) = differ
        lowest = min(self.named[u[0][0]].priority for u in units if self.named[u[0][0]].queue == queue)

        def used(chosen):
            found = defaultdict(Fraction)
            for unit in chosen:
                w = self.named[unit[0][0]]
                if w.queue == queue and w.priority > lowest:
                    found[w.priority] += self.weighted(unit)
            return sorted(((p, a) for p, a in found.items() if a), reverse=True)

        return used(other) < used(one)


def _ratio(held, share):
    return Fraction(held, share) if share else (EVERYTHING if held else 0)
