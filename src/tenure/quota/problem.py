"""What a set of pieces has to obey, and what makes one better than another (spec: quota preemption, firing)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tenure.engine.state.queues import Amount, QueueTree
from tenure.engine.state.weights import resource_weights
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.ledger.entries import LinearBound
from tenure.quota.amounts import Amounts
from tenure.quota.candidates import QuotaCandidates
from tenure.victims.rules.pieces import Piece
from tenure.victims.rules.set_order import Key, Usage, key_of, taken_by_priority

Worth = tuple[int, int, Usage, int]
"""The first parts of the key, see `QuotaProblem.worth`."""

Binding = tuple[tuple[int, int], ...]
"""Number of a bound, and how much of what it leaves is taken."""


class QuotaBounds:
    """The bounds on what may be taken together: guarantees, on the way from each leaf to the top, and budgets.

    ``slack`` is, by number, what a queue holds above a guarantee, or what a disruption budget allows; ``names`` are
    queue and row of the one, or the other. Budgets that cannot bind, of the pieces that there are, are left out.
    """

    def __init__(self, candidates: QuotaCandidates, pieces: Iterable[Piece]) -> None:
        self.queues = candidates.session.queues
        self.slack: list[int] = []
        self.names: list[tuple[int, int] | LinearBound] = []
        self._number: dict[tuple[int, int], int] = {}
        self._guarantees: dict[tuple[int, Amount], Binding] = {}
        self._charges: dict[TaskState, list[tuple[int, int]]] = {}
        budgets = candidates.plugins.budgets
        tasks = list(dict.fromkeys(t for piece in pieces for t in piece.tasks)) if budgets.active else []
        for row in budgets.rows(candidates.session, "quota", None, tasks) if tasks else ():
            if sum(row.weights.values()) > row.bound:
                for task, weight in row.weights.items():
                    self._charges.setdefault(tasks[task], []).append((len(self.slack), weight))
                self.slack.append(row.bound)
                self.names.append(row)

    def charges(self, tasks: Iterable[TaskState]) -> Binding:
        """Give the budgets that taking these tasks counts against."""
        if not self._charges:
            return ()
        found: dict[int, int] = {}
        for task in tasks:
            for number, weight in self._charges.get(task, ()):
                found[number] = found.get(number, 0) + weight
        return tuple(found.items())

    def binding(self, leaf: int, amount: Amount, tasks: Iterable[TaskState]) -> Binding:
        """Give the bounds that taking tasks of a leaf, ``amount`` in all, counts against: guarantees, then budgets."""
        found = self._guarantees.get((leaf, amount))
        if found is None:
            queues = self.queues
            found = self._guarantees[leaf, amount] = tuple(
                (self._slack_of(queue, row), held)
                for queue in queues.path[leaf]
                for row, held in enumerate(amount)
                if held > 0 and 0 < queues.guaranteed[queue][row] <= queues.allocated[queue][row]
            )
        return found + self.charges(tasks)

    def _slack_of(self, queue: int, row: int) -> int:
        number = self._number.get((queue, row))
        if number is None:
            number = self._number[queue, row] = len(self.slack)
            self.slack.append(self.queues.allocated[queue][row] - self.queues.guaranteed[queue][row])
            self.names.append((queue, row))
        return number


class QuotaProblem:
    """A queue that is over its max: ``need`` by row, and the bounds on what may be taken together.

    ``target`` is how much each queue should give up, ``most`` what can be taken at most, by row. ``never``: no set
    frees more than needed.
    """

    def __init__(
        self, candidates: QuotaCandidates, top: int, need: dict[int, int], pieces: Iterable[Piece], *, never: bool
    ) -> None:
        self.candidates = candidates
        self.queues: QueueTree = candidates.session.queues
        self.top = top
        self.need = need
        self.target: Amounts = {}
        self.most = dict(need)
        self.never = never
        self.rows: Sequence[int] = tuple(need)
        common = math.lcm(*need.values())
        self.weight = {row: common // amount for row, amount in need.items()}
        self.bounds = QuotaBounds(candidates, pieces)
        self.cost_weights = resource_weights(candidates.session)

    def possible(self, piece: Piece) -> bool:
        """Whether it could be taken if nothing else were."""
        if self.never and any(piece.amount[row] > need for row, need in self.need.items()):
            return False
        binding = self.bounds.binding(piece.workload.leaf, piece.amount, piece.tasks)
        return all(held <= self.bounds.slack[number] for number, held in binding)

    def key(self, pieces: Iterable[Piece]) -> Key:
        """Give what sets are compared by, in the end the order of all causes; the least is the best."""
        chosen = list(pieces)
        return *self.worth(chosen), self.distance(chosen), *key_of(self.candidates.session.settings, chosen)

    def worth(self, chosen: Sequence[Piece]) -> Worth:
        """Give the first parts of the key: what is left over max, last resorts, what of which priority, what is freed.

        Priorities stand from the highest down, each with the weighted resources that are taken of it.
        """
        freed = self.freed(chosen)
        usage = taken_by_priority(chosen, self.cost_weights)
        return self.left(freed), sum(p.spared for p in chosen), usage, self.weighed(freed)

    def freed(self, chosen: Sequence[Piece]) -> dict[int, int]:
        """Give what a set frees, by row."""
        return {row: sum(p.amount[row] for p in chosen) for row in self.rows}

    def remaining(self, freed: dict[int, int]) -> dict[int, int]:
        """Give what still has to go, by row, where anything has."""
        return {row: amount - freed[row] for row, amount in self.need.items() if amount > freed[row]}

    def left(self, freed: dict[int, int]) -> int:
        """Give what stays over max, each resource in proportion to what had to go."""
        return sum(self.weight[row] * max(0, amount - freed[row]) for row, amount in self.need.items())

    def weighed(self, freed: dict[int, int]) -> int:
        """Give what is freed in the resources that are over max, in the same proportion."""
        return sum(self.weight[row] * freed[row] for row in self.rows)

    def distance(self, chosen: Iterable[Piece]) -> int:
        """Give how far a set is from the amounts of each queue below the top, over all levels."""
        off = {queue: dict(amounts) for queue, amounts in self.target.items() if queue != self.top}
        for piece in chosen:
            for queue in self.below_top(piece.workload.leaf):
                for row in self.rows:
                    off[queue][row] -= piece.amount[row]
        return sum(self.weight[row] * abs(amount) for amounts in off.values() for row, amount in amounts.items())

    def below_top(self, leaf: int) -> list[int]:
        """Give the queues from a leaf up that are below the one that is over its max."""
        path = self.queues.path[leaf]
        return path[: path.index(self.top)]


class QuotaSelection:
    """A set while it is put together; every state of it obeys the problem's rules.

    Of one workload it holds pieces that do not overlap: a compound one replaces those that it contains.
    """

    def __init__(self, problem: QuotaProblem) -> None:
        self.problem = problem
        self.pieces: dict[Piece, None] = {}
        self.freed = dict.fromkeys(problem.rows, 0)
        self.used: dict[int, int] = {}
        self._parts: dict[WorkloadState, list[Piece]] = {}

    def remaining(self) -> dict[int, int]:
        """Give what still has to go, by row, where anything has."""
        return self.problem.remaining(self.freed)

    def within(self) -> dict[int, int]:
        """Give what may go without freeing more than needed, by row."""
        return {row: amount - self.freed[row] for row, amount in self.problem.need.items()}

    def net(self, piece: Piece) -> Amount | None:
        """Give what taking it would free now; None if it is taken, or part of what is."""
        if piece in self.pieces:
            return None
        parts = self._parts.get(piece.workload)
        if not parts:
            return piece.amount
        amount = list(piece.amount)
        tasks = set(piece.tasks)
        for part in parts:
            common = tasks.intersection(part.tasks)
            if len(common) == len(part.tasks) and len(tasks) > len(common):
                amount = [a - b for a, b in zip(amount, part.amount, strict=True)]
            elif common:
                return None
        return tuple(amount)

    def blocked_by(self, piece: Piece, net: Amount) -> int | None:
        """Give the number of the first bound that taking ``net`` more would break."""
        used, slack = self.used, self.problem.bounds.slack
        for number, held in self._binding(piece, net):
            if used.get(number, 0) + held > slack[number]:
                return number
        return None

    def _binding(self, piece: Piece, net: Amount) -> Binding:
        """Give the bounds that a piece counts against, beyond what is taken already."""
        known = {task for part in self._parts.get(piece.workload, ()) for task in part.tasks}
        return self.problem.bounds.binding(piece.workload.leaf, net, (t for t in piece.tasks if t not in known))

    def try_add(self, piece: Piece, within: dict[int, int] | None = None) -> bool:
        """Add a piece if the rules allow it, and if it frees no more than ``within`` by row; False: nothing is done."""
        net = self.net(piece)
        if net is None:
            return False
        if self.problem.never:
            within = self.within()
        if within is not None and any(net[row] > most for row, most in within.items()):
            return False
        if self.blocked_by(piece, net) is not None:
            return False
        self._count(net, self._binding(piece, net), 1)
        parts = self._parts.setdefault(piece.workload, [])
        for part in [p for p in parts if not set(p.tasks).isdisjoint(piece.tasks)]:
            parts.remove(part)
            del self.pieces[part]
        parts.append(piece)
        self.pieces[piece] = None
        return True

    def drop(self, piece: Piece) -> None:
        """Give a piece back, as a whole."""
        self._parts[piece.workload].remove(piece)
        del self.pieces[piece]
        self._count(piece.amount, self.problem.bounds.binding(piece.workload.leaf, piece.amount, piece.tasks), -1)

    def _count(self, amount: Amount, binding: Binding, sign: int) -> None:
        for row in self.freed:
            self.freed[row] += sign * amount[row]
        for number, held in binding:
            self.used[number] = self.used.get(number, 0) + sign * held
