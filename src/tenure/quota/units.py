"""What could be taken from a queue that is over its max, and what may not be, with the reason.

A gang's surplus is taken task by task, everything else of a workload as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tenure.engine.cost import cost
from tenure.engine.queues import Amount
from tenure.engine.refusal import Refusal
from tenure.engine.session import Session
from tenure.engine.workloads import TaskState, WorkloadState
from tenure.shields.opt_out import spared
from tenure.shields.plugins import EvictionPlugins
from tenure.shields.policy import disabled
from tenure.shields.preemptibility import preemptibility
from tenure.shields.price import any_price, price_of_all
from tenure.victims.pieces import held, pieces_of, stage_two

Tier = tuple[bool, int]


@dataclass(slots=True, eq=False)
class EvictionUnit:
    """Tasks that go together. ``amount`` by row; ``last``: how many of them are a last resort.

    ``compound``: it holds other choices of the same workload, its surplus or a subgroup; ``whole``: all that runs.
    ``tier`` says what is considered first: work that has not opted out, then lower priority.
    """

    workload: WorkloadState
    tasks: tuple[TaskState, ...]
    amount: Amount
    last: int
    tier: Tier
    whole: bool = True
    compound: bool = False
    rank: tuple[object, ...] = ()
    cost: int = -1

    @property
    def age(self) -> tuple[int, int, int, str]:
        """Say what comes first of two that are equal otherwise: the younger, then the last in the order of tasks."""
        workload = self.workload
        start = workload.created_at if workload.started_at is None else workload.started_at
        return -start, -workload.created_at, -self.tasks[-1].index, workload.key


@dataclass(slots=True)
class UnitPool:
    """The eviction units below one queue, and the workloads that are held back."""

    units: list[EvictionUnit] = field(default_factory=list)
    refused: list[tuple[WorkloadState, Refusal]] = field(default_factory=list)


class UnitCandidates:
    """The maker of unit pools; what is known of a workload is found once per cycle."""

    def __init__(self, session: Session, plugins: EvictionPlugins, most: int | None = None) -> None:
        self.session = session
        self.plugins = plugins
        self.most = most
        self._left_out: dict[tuple[TaskState, ...], Refusal] = {}
        self._by_leaf: dict[int, list[WorkloadState]] = {}
        for _, workload in sorted(session.workloads.items()):
            if workload.leaf >= 0:
                self._by_leaf.setdefault(workload.leaf, []).append(workload)

    def pool(self, leaves: Iterable[int], rows: Sequence[int]) -> UnitPool:
        """Give what could be taken from these leaves that holds something of one of the rows."""
        pool = UnitPool()
        for leaf in leaves:
            closed = disabled(self.session.queues, leaf)
            for workload in self._by_leaf.get(leaf, ()):
                if workload.occupied():
                    self._consider(workload, rows, pool, closed)
        for unit in [t for t in pool.units if t.tasks in self._left_out]:
            pool.units.remove(unit)
            pool.refused.append((unit.workload, self._left_out[unit.tasks]))
        pool.refused.sort(key=lambda r: r[0].key)
        return pool

    def leave_out(self, unit: EvictionUnit, refusal: Refusal) -> None:
        """Let no later pool hold a unit."""
        self._left_out[unit.tasks] = refusal

    def spared_until(self, unit: EvictionUnit) -> int | None:
        """When budgets let all of a unit go (µs since the epoch), what went just now counted; None if not by itself."""
        refusal = self.plugins.budgets.validate(self.session, "quota", None, unit.tasks)
        return None if refusal is None else refusal.until

    def price(self, unit: EvictionUnit) -> int:
        """Give the price of taking it, in millionths of a weighted resource-second; mostly that is what it costs."""
        if unit.cost < 0:
            exact, session = any_price(self.session), self.session
            unit.cost = price_of_all(session, unit.tasks) if exact else sum(cost(session, t) for t in unit.tasks)
        return unit.cost

    def rank(self, unit: EvictionUnit) -> tuple[object, ...]:
        """Order units of one leaf: lower priority, cheaper (or younger, as the settings say), cores last, younger."""
        if not unit.rank:
            age = unit.age
            order = stage_two(self.session.settings, self.price(unit), age[0])
            unit.rank = unit.workload.priority, *order, unit.whole, len(unit.tasks), *age
        return unit.rank

    def _consider(self, workload: WorkloadState, rows: Sequence[int], pool: UnitPool, closed: Refusal | None) -> None:
        refusal = preemptibility(workload) or closed or self._refuse(workload)
        helpful = [t for t in self._units(workload) if any(t.amount[row] > 0 for row in rows)]
        if not helpful:
            return
        if refusal is not None:
            pool.refused.append((workload, refusal))
            if not refusal.core_only:
                return
            helpful = [t for t in helpful if not t.whole and not t.compound]
        elif self.most is not None and any(len(t.tasks) > self.most for t in helpful):
            text = f"{workload.key} has more tasks than may be evicted in one cycle ({self.most})"
            pool.refused.append((workload, Refusal("max-evictions-per-cycle", text)))
            helpful = [t for t in helpful if len(t.tasks) <= self.most]
        pool.units += helpful

    def _refuse(self, workload: WorkloadState) -> Refusal | None:
        refusal = self.plugins.min_runtime.filter(self.session, "quota", None, workload)
        return self.plugins.ask_others(self.session, "quota", None, workload) or refusal

    def _units(self, workload: WorkloadState) -> list[EvictionUnit]:
        if workload.root.rigid:
            return [self._unit(workload, tuple(workload.placed()))]
        pieces = pieces_of(self.session, workload, frozenset(), core=True)
        several = len(pieces) > 1
        return [
            self._unit(
                workload,
                p.tasks,
                whole=p.whole,
                compound=several and (p.whole or p.group),
            )
            for p in pieces
        ]

    def _unit(
        self, workload: WorkloadState, tasks: tuple[TaskState, ...], *, whole: bool = True, compound: bool = False
    ) -> EvictionUnit:
        session = self.session
        last = sum(spared(session, task) for task in tasks)
        return EvictionUnit(workload, tasks, held(session, tasks), last, (last > 0, workload.priority), whole, compound)
