"""What a set of takes has to obey, and what makes one better than another (spec: quota preemption, firing)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tenure.engine.queues import Amount, QueueTree
from tenure.engine.workloads import WorkloadState
from tenure.quota.amounts import Amounts
from tenure.quota.takes import Candidates, Take

NOBODY = -(2**40)
"""The highest priority of an empty set: below any."""

Key = tuple[object, ...]
Binding = tuple[tuple[int, int], ...]
"""Number of a guarantee that binds, and the amount that is taken from what is above it."""


class Problem:
    """One queue that is over its max: ``need`` by row, and the guarantees on the way from each leaf to the top.

    ``slack`` is, by number, what a queue holds above a guarantee, ``names`` are queue and row of each. ``target`` is
    how much each queue should give up, ``most`` what can be taken at most, by row. ``never``: no set frees more than
    needed.
    """

    def __init__(self, candidates: Candidates, top: int, need: dict[int, int], target: Amounts, *, never: bool) -> None:
        self.candidates = candidates
        self.queues: QueueTree = candidates.session.queues
        self.top = top
        self.need = need
        self.target = target
        self.most = dict(need)
        self.never = never
        self.rows: Sequence[int] = tuple(need)
        common = math.lcm(*need.values())
        self.weight = {row: common // amount for row, amount in need.items()}
        self.slack: list[int] = []
        self.names: list[tuple[int, int]] = []
        self._number: dict[tuple[int, int], int] = {}
        self._bindings: dict[tuple[int, Amount], Binding] = {}

    def binding(self, leaf: int, amount: Amount) -> Binding:
        """Give the guarantees that a take of ``amount`` from a leaf counts against."""
        found = self._bindings.get((leaf, amount))
        if found is None:
            queues = self.queues
            found = self._bindings[leaf, amount] = tuple(
                (self._slack_of(queue, row), held)
                for queue in queues.path[leaf]
                for row, held in enumerate(amount)
                if held > 0 and queues.guaranteed[queue][row] > 0
            )
        return found

    def _slack_of(self, queue: int, row: int) -> int:
        number = self._number.get((queue, row))
        if number is None:
            number = self._number[queue, row] = len(self.slack)
            self.slack.append(self.queues.allocated[queue][row] - self.queues.guaranteed[queue][row])
            self.names.append((queue, row))
        return number

    def possible(self, take: Take) -> bool:
        """Whether it could be taken if nothing else were."""
        if self.never and any(take.amount[row] > amount for row, amount in self.need.items()):
            return False
        return all(held <= self.slack[number] for number, held in self.binding(take.workload.leaf, take.amount))

    def key(self, takes: Iterable[Take]) -> Key:
        """Give what sets are compared by; the least is the best."""
        chosen = list(takes)
        return (
            *self.worth(chosen),
            self.distance(chosen),
            max((self.leaf_priority(t) for t in chosen), default=NOBODY),
            tuple(sorted((t.workload.priority for t in chosen), reverse=True)),
            *self.last_words(chosen),
        )

    def worth(self, chosen: Sequence[Take]) -> tuple[int, int, int, int]:
        """Give the first parts of the key: what is left over max, last resorts, highest priority, what is freed."""
        freed = {row: sum(t.amount[row] for t in chosen) for row in self.rows}
        highest = max((t.workload.priority for t in chosen), default=NOBODY)
        return self.left(freed), sum(t.last for t in chosen), highest, self.weighed(freed)

    def last_words(self, chosen: Sequence[Take]) -> Key:
        """Give the order of section 2: cost, cores, tasks, younger, name."""
        price = sum(map(self.candidates.price, chosen))
        mode = self.candidates.session.settings.victims
        ages = tuple(sorted(t.age for t in chosen))
        first: Key = (price,)
        if mode != "cost":
            starts = tuple(sorted(a[0] if mode == "youngest" else -a[0] for a in ages))
            first = (starts, price)
        return (*first, sum(t.whole for t in chosen), sum(len(t.tasks) for t in chosen), ages)

    def left(self, freed: dict[int, int]) -> int:
        """Give what stays over max, each resource in proportion to what had to go."""
        return sum(self.weight[row] * max(0, amount - freed[row]) for row, amount in self.need.items())

    def weighed(self, freed: dict[int, int]) -> int:
        """Give what is freed in the resources that are over max, in the same proportion."""
        return sum(self.weight[row] * freed[row] for row in self.rows)

    def distance(self, chosen: Iterable[Take]) -> int:
        """Give how far a set is from the amounts of each queue below the top, over all levels."""
        given = self.given(chosen)
        zero = dict.fromkeys(self.rows, 0)
        return sum(
            self.weight[row] * abs(given.get(queue, zero)[row] - wanted.get(row, 0))
            for queue, wanted in self.target.items()
            if queue != self.top
            for row in self.rows
        )

    def given(self, chosen: Iterable[Take]) -> Amounts:
        """Give what a set takes from each queue below the top, by row."""
        given: Amounts = {}
        for take in chosen:
            for queue in self.queues.path[take.workload.leaf]:
                if queue == self.top:
                    break
                own = given.setdefault(queue, dict.fromkeys(self.rows, 0))
                for row in self.rows:
                    own[row] += take.amount[row]
        return given

    def leaf_priority(self, take: Take) -> int:
        """Give the priority of the queue that it is taken from."""
        return self.queues.queues[take.workload.leaf].priority


class Selection:
    """A set while it is put together; every state of it obeys the problem's rules.

    Of one workload it holds takes that do not overlap: a compound take replaces those that it contains.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.takes: dict[Take, None] = {}
        self.freed = dict.fromkeys(problem.rows, 0)
        self.used: dict[int, int] = {}
        self._parts: dict[WorkloadState, list[Take]] = {}

    def remaining(self) -> dict[int, int]:
        """Give what still has to go, by row, where anything has."""
        return {row: amount - self.freed[row] for row, amount in self.problem.need.items() if amount > self.freed[row]}

    def net(self, take: Take) -> Amount | None:
        """Give what taking it would free now; None if it is taken, or part of what is."""
        if take in self.takes:
            return None
        parts = self._parts.get(take.workload)
        if not parts:
            return take.amount
        amount = list(take.amount)
        tasks = set(take.tasks)
        for part in parts:
            common = tasks.intersection(part.tasks)
            if len(common) == len(part.tasks) and len(tasks) > len(common):
                amount = [a - b for a, b in zip(amount, part.amount, strict=True)]
            elif common:
                return None
        return tuple(amount)

    def blocked_by(self, take: Take, net: Amount) -> int | None:
        """Give the number of the first guarantee that taking ``net`` more would break."""
        problem = self.problem
        for number, held in problem.binding(take.workload.leaf, net):
            if self.used.get(number, 0) + held > problem.slack[number]:
                return number
        return None

    def try_add(self, take: Take, within: dict[int, int] | None = None) -> bool:
        """Add a take if the rules allow it, and if it frees no more than ``within`` by row; False: nothing is done."""
        net = self.net(take)
        if net is None:
            return False
        if self.problem.never:
            within = {row: amount - self.freed[row] for row, amount in self.problem.need.items()}
        if within is not None and any(net[row] > most for row, most in within.items()):
            return False
        if self.blocked_by(take, net) is not None:
            return False
        parts = self._parts.setdefault(take.workload, [])
        if parts:
            for part in [p for p in parts if not set(p.tasks).isdisjoint(take.tasks)]:
                parts.remove(part)
                del self.takes[part]
        parts.append(take)
        self._count(take, net, 1)
        self.takes[take] = None
        return True

    def drop(self, take: Take) -> None:
        """Give a take back, as a whole."""
        self._parts[take.workload].remove(take)
        del self.takes[take]
        self._count(take, take.amount, -1)

    def _count(self, take: Take, amount: Amount, sign: int) -> None:
        for row in self.freed:
            self.freed[row] += sign * amount[row]
        for number, held in self.problem.binding(take.workload.leaf, amount):
            self.used[number] = self.used.get(number, 0) + sign * held
