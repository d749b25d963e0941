"""Which workload has to go back to the queue for what waits, word for word from the specification.

It stands on the naive allocator of `tests.engine.reference` and shares no code with the action. Whole GPUs, flat
queues, workloads that go and come as a whole, no shield but those that are written out here.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations
from math import inf

from tests.oracles.naive_search import Playing
from tests.properties.taking_checker import HELD, Tree, asked, min_runtime

GPU = "nvidia.com/gpu"


class NaiveRequeue:
    """The sets of overdue workloads that pay, by the workload that would run for them."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.tree = Tree(cluster.queues)
        self.names = {w.key: w for w in cluster.workloads}
        self.waiting = [w for w in cluster.workloads if not any(t.phase in HELD for t in w.tasks)]
        self.overdue = [w for w in cluster.workloads if self._is_overdue(w)]
        self._served = {}

    def _is_overdue(self, workload):
        now = self.cluster.now
        return (
            any(t.phase in HELD for t in workload.tasks)
            and workload.is_preemptible
            and bool(workload.expected_runtime)
            and now - workload.started_at >= workload.expected_runtime
            and not (workload.requeue_not_before and now < workload.requeue_not_before)
        )

    def pays(self, contender, victims):
        """Whether the contender may send these back, and then runs, and none of them wins its place back."""
        if not all(self.may(contender, v) for v in victims):
            return False
        played, own_places = self.played(victims)
        if any((contender.key, i) not in played.places for i in range(len(contender.tasks))) or own_places:
            return False
        return self._deserves(contender, victims) and self._keeps_guarantees(contender, victims, played)

    def played(self, victims):
        """The ordinary order with all tasks of some workloads evicted, and whether one of them lands where it stood."""
        key = frozenset(v.key for v in victims)
        if key not in self._served:
            gone = [(v.key, i) for v in victims for i, t in enumerate(v.tasks) if t.phase in HELD]
            played = Playing(self.cluster, gone)
            played.run()
            self._served[key] = played, any(self._is_back(played, v) for v in victims)
        return self._served[key]

    @staticmethod
    def _is_back(played, victim):
        """Whether each task of a victim lands on its node: else those that land elsewhere were moved."""
        own = [(t, node) for t, (node, _) in played.left.items() if t[0] == victim.key]
        return all(played.places.get(t, (None,))[0] == node for t, node in own)

    def may(self, contender, victim):
        """What does not depend on what else goes: delays, minimum runtimes, priorities inside one queue."""
        now = self.cluster.now
        if contender.preemption_delay and now < contender.created_at + contender.preemption_delay:
            return False
        if contender.queue == victim.queue and contender.priority <= victim.priority:
            return False
        fence = self.tree.queue[contender.queue].preemption_policy == "fence" and contender.queue != victim.queue
        if fence or self.tree.queue[victim.queue].preemption_policy == "disabled":
            return False
        least = min_runtime(self.cluster.settings, self.tree, "requeue", contender.queue, victim.queue)
        return now >= victim.started_at + least

    def _deserves(self, contender, victims):
        """Of another queue: the contender's queue comes before the victim's, with the set gone, and with it alone."""
        return all(
            self._ahead(contender, v, gone) for v in victims if v.queue != contender.queue for gone in (victims, [v])
        )

    def _ahead(self, contender, victim, gone):
        before = Playing(self.cluster, [(v.key, i) for v in gone for i, t in enumerate(v.tasks) if t.phase in HELD])
        mine = before.key(contender.queue, before.asked(contender, range(len(contender.tasks))))
        return mine < before.key(victim.queue, before.asked(victim, range(len(victim.tasks))))

    def _keeps_guarantees(self, contender, victims, played):
        """A core carries its queue below its guarantee only for what is guaranteed itself, or if that is served again.

        The smallest goes first, as no other order allows more; a queue that holds no more than its guarantee gives
        nothing.
        """
        held = {q.name: self._allocated(q.name) for q in self.cluster.queues}
        got = sum(map(asked, contender.tasks))
        mine = contender.queue
        guaranteed = self.tree.guaranteed(mine)
        for victim in sorted(victims, key=lambda v: (sum(asked(t) for t in v.tasks if t.phase in HELD), v.key)):
            queue, goes = victim.queue, sum(asked(t) for t in victim.tasks if t.phase in HELD)
            if queue != mine:
                within = guaranteed is not None and held[mine] + got <= guaranteed
                entitled = within or held[mine] < self.tree.floor(mine)
                floor = self.tree.floor(queue)
                again = played.allocated(queue)[GPU] >= floor
                if held[queue] <= floor or (held[queue] - goes < floor and not entitled and not again):
                    return False
            held[queue] -= goes
        return True

    def _allocated(self, queue):
        return sum(asked(t) for w in self.cluster.workloads if w.queue == queue for t in w.tasks if t.phase in HELD)

    def in_order(self):
        """Candidates: furthest over fair share first, then lower priority, longest past its expectation, name."""
        now, as_it_is = self.cluster.now, Playing(self.cluster, ())

        def rank(workload):
            held, fair = self._allocated(workload.queue), as_it_is.fair[workload.queue][GPU]
            over = max(0, Fraction(held - fair, fair) if fair else inf if held else 0)
            past = now - workload.started_at - workload.expected_runtime
            return -over, workload.priority, -past, workload.key

        return sorted(self.overdue, key=rank)

    def singles(self):
        """Pairs of contender and candidate, of which the candidate alone would do, in the order of candidates."""
        return [(w, v) for v in self.in_order() for w in self.waiting if self.pays(w, [v])]

    def is_minimal(self, contender, victims):
        """Whether no part of a set pays as well."""
        parts = chain.from_iterable(combinations(victims, n) for n in range(1, len(victims)))
        return not any(self.pays(contender, part) for part in parts)
