"""What could be taken from a queue that is over its max, and what may not be, with the reason.

A gang's surplus is taken task by task, everything else of a workload as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tenure.engine.cost import cost, rate
from tenure.engine.queues import Amount
from tenure.engine.refusal import Refusal
from tenure.engine.session import Session
from tenure.engine.workloads import SUCCEEDED, TaskState, WorkloadState
from tenure.ledger.entries import LinearBound
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
        self._rates: dict[int, float] = {}
        self._by_cost = session.settings.victims == "cost"
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

    def bounds(self, units: Sequence[EvictionUnit]) -> tuple[list[TaskState], list[LinearBound]]:
        """Give the tasks of units, each once, and what disruption budgets say of them, by their number there."""
        budgets = self.plugins.budgets
        if not budgets.active:
            return [], []
        tasks = list(dict.fromkeys(t for unit in units for t in unit.tasks))
        return tasks, budgets.rows(self.session, "quota", None, tasks)

    def price(self, unit: EvictionUnit) -> int:
        """Give the price of taking it, in millionths of a weighted resource-second; mostly that is what it costs."""
        if unit.cost < 0:
            exact = any_price(self.session)
            unit.cost = price_of_all(self.session, unit.tasks) if exact else sum(map(self.cost_of, unit.tasks))
        return unit.cost

    def cost_of(self, task: TaskState) -> int:
        """Give what evicting one task costs; what tasks that ask for the same cost in a second is found once."""
        if task.cls.milli is not None:
            return cost(self.session, task)
        weight = self._rates.get(task.cls.id)
        if weight is None:
            weight = self._rates[task.cls.id] = rate(self.session, task)
        return cost(self.session, task, weight)

    def rank(self, unit: EvictionUnit) -> tuple[object, ...]:
        """Order units of one leaf: lower priority, cheaper (or younger, as the settings say), cores last, younger."""
        if not unit.rank:
            workload, price = unit.workload, unit.cost if unit.cost >= 0 else self.price(unit)
            created = workload.created_at
            age = -(created if workload.started_at is None else workload.started_at)
            order = (price,) if self._by_cost else stage_two(self.session.settings, price, age)
            number = len(unit.tasks)
            unit.rank = (
                workload.priority, *order, unit.whole, number, age, -created, -unit.tasks[-1].index, workload.key,
            )  # fmt: skip
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
        root = workload.root
        if not root.children and sum(t.active for t in root.tasks) <= root.minimum:
            tasks = tuple(t for t in workload.tasks if t.node >= 0 and t.active and t.phase is not SUCCEEDED)
            return [self._unit(workload, tasks)]
        pieces = pieces_of(self.session, workload, frozenset(), core=True)
        several = len(pieces) > 1
        return [
            self._unit(
                workload,
                tuple(t for t in p.tasks if t.active),
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
