"""The program of the best set for a quota: what may go together, and what is made least, as lines of whole numbers.

Pieces that are alike are one whole variable: how many of them go, the best first. What need not be whole goes from 0 to
1, however much that stands for: a variable that is large beside its coefficients misleads a solver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import gcd, inf, nan

from tenure.model.settings import Settings
from tenure.quota.candidates import tier_of
from tenure.quota.follow_up_cuts import FollowUpCut
from tenure.quota.problem import QuotaProblem
from tenure.victims.rules.pieces import Piece
from tenure.victims.rules.set_order import taken_by_priority

Line = dict[int, int]
"""Coefficients by variable."""

_LARGE = 10**6
"""Coefficients beyond which a line is scaled down."""

MOST_AGES = 60
"""Ages beyond which exchanges alone make a set younger or older: to be exact takes a stage for each."""


@dataclass(frozen=True, slots=True)
class LinearProgram:
    """``low <= lines <= high``, to be minimised over ``cost``; variables go from 0 to ``upper``.

    ``start`` has values to begin with; those in ``broken`` need not be whole.
    """

    cost: list[float]
    upper: list[float]
    lines: list[dict[int, float]]
    low: list[float]
    high: list[float]
    start: list[float]
    broken: list[int]


Solve = Callable[[LinearProgram], list[float] | None]
"""Gives the values of an optimal solution; None if none was proved."""


@dataclass(frozen=True, slots=True)
class SelectionStage:
    """One thing that sets are compared by: what the program makes least, and what a set has of it.

    No set has less than ``floor``.
    """

    line: Line
    worth: Callable[[Sequence[Piece]], int]
    floor: int = 0


@dataclass(frozen=True, slots=True)
class _Bundle:
    """Pieces that are alike, the best to take first, and their variable."""

    pieces: list[Piece]
    column: int


@dataclass(slots=True)
class _Columns:
    """Variables and lines, while they are written."""

    upper: list[float] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def add(self, upper: float, *, whole: bool) -> int:
        self.upper.append(upper)
        if not whole:
            self.broken.append(len(self.upper) - 1)
        return len(self.upper) - 1

    def bound(self, line: Line, *, low: float = -inf, high: float = inf) -> None:
        if line:
            self.lines.append(line)
            self.low.append(low)
            self.high.append(high)

    def program(self, costs: Line, start: list[float]) -> LinearProgram:
        lines, low, high = [], [], []
        for line, least, most in zip(self.lines, self.low, self.high, strict=True):
            scaled, factor = _scaled(line)
            lines.append(scaled)
            low.append(least * factor)
            high.append(most * factor)
        cost = [0.0] * len(self.upper)
        for column, amount in _scaled(costs)[0].items():
            cost[column] = amount
        return LinearProgram(cost, list(self.upper), lines, low, high, start, list(self.broken))


class SelectionProgram:
    """The program of one choice: a column for each bundle, the rules as lines, and the stages in their order."""

    def __init__(self, problem: QuotaProblem, pieces: Sequence[Piece], cuts: Sequence[FollowUpCut]) -> None:
        self.problem = problem
        self.cuts = cuts
        self.write = _Columns()
        self.ages = _ages(problem.candidates.session.settings, pieces)
        found = _bundles(problem, pieces, cuts, by_age=bool(self.ages))
        self.bundles = [_Bundle(b, self.write.add(len(b), whole=True)) for b in found]
        self.columns = {piece: b.column for b in self.bundles for piece in b.pieces}
        self._over: Line = {}
        self._beyond: Line = {}
        self._rules()

    def _rules(self) -> None:
        problem, write = self.problem, self.write
        bounds: dict[int, Line] = {}
        for bundle in self.bundles:
            piece = bundle.pieces[0]
            for number, held in problem.bounds.binding(piece.workload.leaf, piece.amount, piece.tasks):
                line = bounds.setdefault(number, {})
                line[bundle.column] = line.get(bundle.column, 0) + held
        for number, line in sorted(bounds.items()):
            write.bound(line, high=problem.bounds.slack[number])
        for row, need in problem.need.items():
            line = {b.column: b.pieces[0].amount[row] for b in self.bundles if b.pieces[0].amount[row]}
            if problem.never:
                write.bound(line, high=need)
            missing = write.add(1, whole=False)
            self._over[missing] = problem.weight[row] * need
            write.bound({**line, missing: need}, low=need)
        self._overlaps()
        for cut in self.cuts:
            instead = {self.columns[p]: -1 for p in self.columns if cut.prevented_by(p)}
            for piece in self.columns:
                if cut.victim is piece.workload and not cut.prevented_by(piece):
                    write.bound({**instead, self.columns[piece]: 1}, high=0)
        self._distances()

    def _overlaps(self) -> None:
        """Of one workload only pieces that do not overlap go together."""
        by_workload: dict[str, list[_Bundle]] = {}
        for bundle in self.bundles:
            by_workload.setdefault(bundle.pieces[0].workload.key, []).append(bundle)
        for own in by_workload.values():
            for compound in (b for b in own if b.pieces[0].compound):
                tasks = set(compound.pieces[0].tasks)
                for other in own:
                    common = sum(not tasks.isdisjoint(p.tasks) for p in other.pieces)
                    if common and other is not compound:
                        self.write.bound({other.column: 1, compound.column: common}, high=len(other.pieces))

    def _distances(self) -> None:
        """How far each queue below the top is from the amount that it should give."""
        problem, write = self.problem, self.write
        given: dict[tuple[int, int], Line] = {}
        for bundle in self.bundles:
            piece = bundle.pieces[0]
            for queue in problem.below_top(piece.workload.leaf):
                for row in problem.rows:
                    if piece.amount[row]:
                        given.setdefault((queue, row), {})[bundle.column] = piece.amount[row]
        for (queue, row), line in sorted(given.items()):
            wanted = problem.target.get(queue, {}).get(row, 0)
            most = sum(int(self.write.upper[c]) * amount for c, amount in line.items())
            far, farthest = write.add(1, whole=False), max(wanted, most)
            write.bound({**line, far: -farthest}, high=wanted)
            write.bound({**line, far: farthest}, low=wanted)
            self._beyond[far] = problem.weight[row] * farthest

    def stages(self, best: Callable[[], Sequence[Piece]]) -> Iterator[SelectionStage]:
        """Give what is to be made least, the most important first; ``best`` is the set that is known by then."""
        problem = self.problem
        yield SelectionStage(self._over, lambda pieces: problem.left(problem.freed(pieces)), problem.left(problem.most))
        yield self._of(lambda piece: piece.spared)
        for level in sorted({p.workload.priority for p in self.columns}, reverse=True):
            yield self._of(partial(_taken_of, problem, level))
        yield self._of(lambda piece: sum(problem.weight[row] * piece.amount[row] for row in problem.rows))
        yield SelectionStage(self._beyond, problem.distance)
        yield from self._leaf_priorities(best)
        yield from self._last_words()

    def _of(self, worth: Callable[[Piece], int]) -> SelectionStage:
        """Give a stage that is a sum over the pieces; those of one bundle have the same."""
        line = {b.column: amount for b in self.bundles if (amount := worth(b.pieces[0]))}
        return SelectionStage(line, lambda pieces: sum(map(worth, pieces)))

    def _leaf_priorities(self, best: Callable[[], Sequence[Piece]]) -> Iterator[SelectionStage]:
        """Give whether anything is taken of queues of each priority, the highest first, until something has to be."""
        for level in sorted({p.leaf_priority for p in self.columns}, reverse=True):
            used = self.write.add(1, whole=True)
            for bundle in self.bundles:
                if bundle.pieces[0].leaf_priority == level:
                    self.write.bound({bundle.column: 1, used: -len(bundle.pieces)}, high=0)
            yield SelectionStage({used: 1}, partial(_taken_of_queues, level))
            if any(p.leaf_priority == level for p in best()):
                return

    def _last_words(self) -> Iterator[SelectionStage]:
        """Give the order of all causes: age, where that decides and few differ in it, then cost, cores and tasks."""
        if self.problem.candidates.session.settings.victims != "cost" and not self.ages:
            return
        for age in self.ages:
            yield self._of(partial(_is_of_age, age))
        yield SelectionStage(self._costs(), lambda pieces: sum(p.cost for p in pieces))
        yield self._of(lambda piece: int(piece.whole))
        yield self._of(lambda piece: len(piece.tasks))

    def _costs(self) -> Line:
        """Give what it costs: of those that are alike the cheapest go first, so that each further one costs as much."""
        line: Line = {}
        for bundle in self.bundles:
            prices = Counter(p.cost for p in bundle.pieces)
            if len(prices) == 1:
                line[bundle.column] = bundle.pieces[0].cost
                continue
            parts = {self.write.add(count, whole=False): price for price, count in prices.items()}
            self.write.bound({**dict.fromkeys(parts, 1), bundle.column: -1}, low=0, high=0)
            line |= parts
        return line

    def least(self, stage: SelectionStage, known: Sequence[Piece]) -> LinearProgram:
        """Give the program that makes one thing least, beginning with a known set: what follows from it stays open."""
        start, chosen = [nan] * len(self.write.upper), set(known)
        for bundle in self.bundles:
            start[bundle.column] = sum(piece in chosen for piece in bundle.pieces)
        return self.write.program(stage.line, start)

    def keep(self, stage: SelectionStage, reached: Sequence[Piece]) -> None:
        """Let no later set have more of one thing than this one."""
        self.write.bound(stage.line, high=stage.worth(reached))

    def read(self, values: Sequence[float]) -> Iterator[Piece]:
        """Give the pieces that a solution takes."""
        taken: dict[str, set[object]] = {}
        for bundle in sorted(self.bundles, key=lambda b: not b.pieces[0].compound):
            count = round(values[bundle.column])
            own = taken.setdefault(bundle.pieces[0].workload.key, set())
            free = [p for p in bundle.pieces if own.isdisjoint(p.tasks)] if own else bundle.pieces
            for piece in free[:count]:
                if piece.compound:
                    own.update(piece.tasks)
                yield piece


def _taken_of(problem: QuotaProblem, level: int, piece: Piece) -> int:
    """Give what a piece has of one priority."""
    return dict(taken_by_priority([piece], problem.cost_weights)).get(level, 0)


def _taken_of_queues(level: int, pieces: Sequence[Piece]) -> int:
    """Give 1 if anything is taken of queues of one priority, else 0."""
    return int(any(p.leaf_priority == level for p in pieces))


def _is_of_age(age: int, piece: Piece) -> int:
    """Give 1 if a piece is of one age, else 0."""
    return int(piece.age == age)


def _ages(settings: Settings, pieces: Iterable[Piece]) -> list[int]:
    """Give the ages that decide before cost, first what should go last; none where cost decides, or there are many."""
    ages = sorted({p.age for p in pieces}, reverse=settings.victims == "youngest")
    return [] if settings.victims == "cost" or len(ages) > MOST_AGES else ages


def alike(problem: QuotaProblem, piece: Piece, cuts: Sequence[FollowUpCut]) -> object:
    """Give what pieces of one leaf have in common that are decided about together: only their number matters."""
    charges = problem.bounds.charges(piece.tasks)
    alone = piece if any(cut.victim is piece.workload or cut.prevented_by(piece) for cut in cuts) else None
    own = piece.workload.leaf, piece.amount, tier_of(piece), piece.spared, len(piece.tasks), piece.whole
    return *own, charges, alone


def _bundles(
    problem: QuotaProblem, pieces: Sequence[Piece], cuts: Sequence[FollowUpCut], *, by_age: bool
) -> Iterable[list[Piece]]:
    """Put pieces together that are alike; those of a workload that could be taken in several ways by themselves."""
    several: dict[str, int] = {}
    for piece in pieces:
        several[piece.workload.key] = several.get(piece.workload.key, 0) + 1
    found: dict[object, list[Piece]] = {}
    for piece in sorted(pieces, key=lambda p: p.rank):
        own = piece.workload.key if several[piece.workload.key] > 1 else None
        compound = piece if piece.compound else None
        age = piece.age if by_age else None
        found.setdefault((own, compound, age, alike(problem, piece, cuts)), []).append(piece)
    return found.values()


def _scaled(line: Line) -> tuple[dict[int, float], float]:
    """Divide a line by what its coefficients have in common, and further where they are large."""
    if not line:
        return {}, 1.0
    common = gcd(*line.values()) or 1
    largest = max(abs(c) for c in line.values()) / common
    factor = 1 / common if largest <= _LARGE else _LARGE / largest / common
    return {column: amount * factor for column, amount in line.items()}, factor
