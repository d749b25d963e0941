"""The best set of few pieces, proved by branch and bound: quicker than to start a solver for it.

Pieces of one leaf that are alike are one item: the best of them go first, and only their number is to be decided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, product

from tenure.engine.state.queues import Amount
from tenure.quota.candidates import tier_of
from tenure.quota.follow_up_cuts import FollowUpCut, respects
from tenure.quota.problem import NO_QUEUE, Binding, Key, Levels, QuotaProblem, ordered
from tenure.victims.rules.pieces import Piece

MOST_ITEMS = 60
"""Items beyond which it is not tried."""

MOST_UNITS = 120
"""Pieces beyond which it is not tried."""

MOST_STEPS = 4000
"""Steps after which it is given up."""

_MOST_COMBINATIONS = 64


@dataclass(frozen=True, slots=True)
class _Option:
    """Pieces that go together, what they come to, and which bounds they count against."""

    pieces: tuple[Piece, ...]
    amount: Amount
    binding: Binding
    last: int
    levels: Levels
    leaf_priority: int
    cost: int


@dataclass(frozen=True, slots=True)
class _Item:
    """A decision; its first option is to take nothing."""

    leaf: int
    tier: tuple[bool, int]
    options: tuple[_Option, ...]


@dataclass(slots=True)
class _State:
    """What has been decided so far."""

    freed: dict[int, int]
    levels: Levels
    last: int = 0
    leaf_priority: int = NO_QUEUE
    cost: int = 0


class BranchAndBound:
    """A search that starts from a set which is known, and gives the best that it has found.

    ``cuts`` say which sets do not count. What it ``finished`` is proved to be the best.
    """

    def __init__(
        self,
        problem: QuotaProblem,
        pieces: Sequence[Piece],
        known: Sequence[Piece],
        limit: int,
        cuts: Sequence[FollowUpCut] = (),
    ) -> None:
        self.problem = problem
        self.best = list(known)
        self.cuts = cuts
        self.tried = len(pieces) <= MOST_UNITS and not _has_several_groups(pieces)
        found = _items(problem, sorted(pieces, key=lambda p: p.rank), cuts) if self.tried else iter(())
        self.items = sorted(found, key=lambda i: i.tier, reverse=True)
        self.value = problem.key(known) if self.tried else ()
        self.limit = min(limit, MOST_STEPS)
        self.steps = 0
        self.by_cost = problem.candidates.session.settings.victims == "cost"
        self._chosen: list[_Option] = []
        self._used: dict[int, int] = {}
        self._given: dict[int, dict[int, int]] = {q: dict.fromkeys(problem.rows, 0) for q in problem.target}
        most = [{row: max(o.amount[row] for o in item.options) for row in problem.rows} for item in self.items]
        self._rest = list(accumulate(reversed(most), _sum, initial=dict.fromkeys(problem.rows, 0)))[::-1]

    @property
    def finished(self) -> bool:
        """Whether nothing better exists."""
        return self.steps < self.limit

    def run(self) -> list[Piece]:
        """Search, and give the best set."""
        if not self.tried or len(self.items) > MOST_ITEMS:
            self.steps = self.limit
        else:
            self._decide(0, _State(dict.fromkeys(self.problem.rows, 0), Counter()))
        return self.best

    def _decide(self, number: int, state: _State) -> None:
        if not self.finished:
            return
        self.steps += 1
        bound = self._bound(number, state)
        if bound > self.value[: len(bound)]:
            return
        if number == len(self.items):
            self._judge()
            return
        item = self.items[number]
        for option in item.options:
            self._try(number, item, option, state)

    def _try(self, number: int, item: _Item, option: _Option, state: _State) -> None:
        problem = self.problem
        freed = {row: state.freed[row] + option.amount[row] for row in problem.rows}
        if problem.never and any(freed[row] > most for row, most in problem.need.items()):
            return
        if any(self._used.get(i, 0) + held > problem.slack[i] for i, held in option.binding):
            return
        self._count(item, option, 1)
        self._chosen.append(option)
        self._decide(
            number + 1,
            _State(
                freed,
                state.levels + option.levels,
                state.last + option.last,
                max(state.leaf_priority, option.leaf_priority),
                state.cost + option.cost,
            ),
        )
        self._chosen.pop()
        self._count(item, option, -1)

    def _count(self, item: _Item, option: _Option, sign: int) -> None:
        for i, held in option.binding:
            self._used[i] = self._used.get(i, 0) + sign * held
        for queue in self.problem.below_top(item.leaf):
            own = self._given[queue]
            for row in own:
                own[row] += sign * option.amount[row]

    def _bound(self, number: int, state: _State) -> Key:
        """Give a value that nothing can fall below that begins as decided so far."""
        problem, rest = self.problem, self._rest[number]
        left = {
            row: max(0, need - state.freed[row] - rest[row], need - problem.most[row])
            for row, need in problem.need.items()
        }
        freed = {row: max(state.freed[row], need - left[row]) for row, need in problem.need.items()}
        beyond = sum(
            problem.weight[row] * max(0, given[row] - problem.target[queue].get(row, 0))
            for queue, given in self._given.items()
            if queue != problem.top
            for row in problem.rows
        )
        bound: Key = (
            sum(problem.weight[row] * amount for row, amount in left.items()),
            state.last,
            ordered(state.levels),
            problem.weighed(freed),
            beyond,
            state.leaf_priority,
        )
        return (*bound, state.cost) if self.by_cost else bound

    def _judge(self) -> None:
        pieces = [piece for option in self._chosen for piece in option.pieces]
        value = self.problem.key(pieces)
        if value < self.value and respects(pieces, self.cuts):
            self.best, self.value = pieces, value


def _sum(first: dict[int, int], second: dict[int, int]) -> dict[int, int]:
    return {row: amount + second[row] for row, amount in first.items()}


def _items(problem: QuotaProblem, pieces: Sequence[Piece], cuts: Sequence[FollowUpCut]) -> Iterator[_Item]:
    by_workload: dict[str, list[Piece]] = {}
    for piece in pieces:
        by_workload.setdefault(piece.workload.key, []).append(piece)
    bundles: dict[object, list[Piece]] = {}
    for own in by_workload.values():
        if len(own) == 1:
            bundles.setdefault(alike(problem, own[0], cuts), []).append(own[0])
        else:
            yield _item(problem, own, _combinations(problem, own, cuts))
    for bundle in bundles.values():
        yield _item(problem, bundle, [tuple(bundle[:count]) for count in range(len(bundle) + 1)])


def alike(problem: QuotaProblem, piece: Piece, cuts: Sequence[FollowUpCut]) -> object:
    """Give what pieces of one leaf have in common that are decided about together: only their number matters."""
    charges = problem.charges(piece.tasks)
    alone = piece if any(cut.concerns(piece) or cut.prevented_by(piece) for cut in cuts) else None
    return (
        piece.workload.leaf,
        piece.amount,
        tier_of(piece),
        piece.spared,
        len(piece.tasks),
        piece.whole,
        charges,
        alone,
    )


def _combinations(
    problem: QuotaProblem, pieces: Sequence[Piece], cuts: Sequence[FollowUpCut]
) -> list[tuple[Piece, ...]]:
    """Give what may be taken of an elastic workload: numbers of equal surplus tasks, or compound ones."""
    groups: dict[object, list[Piece]] = {}
    for piece in pieces:
        if not piece.compound:
            groups.setdefault(alike(problem, piece, cuts), []).append(piece)
    choices = [[tuple(group[:count]) for count in range(len(group) + 1)] for group in groups.values()]
    found: list[tuple[Piece, ...]] = []
    for parts in product(*choices):
        found.append(tuple(piece for part in parts for piece in part))
        if len(found) == _MOST_COMBINATIONS:
            break
    for piece in pieces:
        if piece.compound:
            others = tuple(p for p in pieces if not p.compound and set(p.tasks).isdisjoint(piece.tasks))
            found += [(piece,), (piece, *others)] if others else [(piece,)]
    return found


def _item(problem: QuotaProblem, pieces: Sequence[Piece], choices: Sequence[tuple[Piece, ...]]) -> _Item:
    options = tuple(_option(problem, choice) for choice in choices)
    tier = max(map(tier_of, pieces))
    return _Item(pieces[0].workload.leaf, tier, options)


def _option(problem: QuotaProblem, pieces: tuple[Piece, ...]) -> _Option:
    zero = (0,) * len(problem.queues.resources)
    amount = tuple(map(sum, zip(zero, *(p.amount for p in pieces), strict=True)))
    cost = sum(p.cost for p in pieces)
    tasks = (task for piece in pieces for task in piece.tasks)
    binding = problem.binding(pieces[0].workload.leaf, amount, tasks) if pieces else ()
    leaf_priority = max(map(problem.leaf_priority, pieces), default=NO_QUEUE)
    last, levels = sum(p.spared for p in pieces), problem.levels(pieces)
    return _Option(pieces, amount, binding, last, levels, leaf_priority, cost)


def _has_several_groups(pieces: Sequence[Piece]) -> bool:
    """Whether parts of one workload that hold others could be combined in more ways than are looked at here."""
    groups = Counter(p.workload.key for p in pieces if p.compound and not p.whole)
    surplus = Counter(p.workload.key for p in pieces if not p.compound)
    return any(count > 1 for count in groups.values()) or any(2**n > _MOST_COMBINATIONS for n in surplus.values())
