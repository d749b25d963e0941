"""What could be taken from a queue that is over its max, and what may not be, with the reason.

A gang's surplus is taken task by task, everything else of a workload as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import add

from tenure.engine.cost import cost, rate
from tenure.engine.queues import Amount
from tenure.engine.refusal import Refusal
from tenure.engine.session import Session
from tenure.engine.workloads import SUCCEEDED, TaskState, WorkloadState
from tenure.shields.min_runtime import resolve
from tenure.shields.opt_out import last_resort
from tenure.shields.plugins import Plugins
from tenure.shields.policy import disabled
from tenure.shields.preemptibility import preemptibility
from tenure.victims.pieces import pieces_of, stage_two

DAEMON_SET = "daemon-set"
_NEVER = {"DaemonSet": "a DaemonSet", "Node": "its node"}
"""Owners whose pods are never victims: they are bound to the node that they run on."""


Tier = tuple[bool, int]


@dataclass(slots=True, eq=False)
class Take:
    """Tasks that go together. ``amount`` by row; ``last``: how many of them are a last resort.

    ``compound``: it holds other choices of the same workload, its surplus or a subgroup; ``whole``: all that runs.
    ``tier`` says what is considered first: work that has not opted out, then lower priority. ``age`` says what comes
    first of two that are equal otherwise: the younger, then the last in the order of tasks.
    """

    workload: WorkloadState
    tasks: tuple[TaskState, ...]
    amount: Amount
    last: int
    whole: bool = True
    compound: bool = False
    tier: Tier = field(init=False)
    age: tuple[int, int, int, str] = field(init=False)
    rank: tuple[object, ...] = ()
    cost: int = -1

    def __post_init__(self) -> None:
        """Work out the orders that do not depend on the cost."""
        workload = self.workload
        start = workload.created_at if workload.started_at is None else workload.started_at
        self.tier = self.last > 0, workload.priority
        self.age = -start, -workload.created_at, -self.tasks[-1].index, workload.key


@dataclass(slots=True)
class Pool:
    """All takes below one queue, and the workloads that are held back."""

    takes: list[Take] = field(default_factory=list)
    refused: list[tuple[WorkloadState, Refusal]] = field(default_factory=list)


class Candidates:
    """Makes pools; what is known of a workload is found once per cycle."""

    def __init__(self, session: Session, plugins: Plugins, most: int | None = None) -> None:
        self.session = session
        self.plugins = plugins
        self.most = most
        self._protected: dict[int, int] = {}
        self._rates: dict[int, float] = {}
        self._closed: dict[int, Refusal | None] = {}
        self._by_leaf: dict[int, list[WorkloadState]] = {}
        for key in sorted(session.workloads):
            workload = session.workloads[key]
            if workload.leaf >= 0:
                self._by_leaf.setdefault(workload.leaf, []).append(workload)

    def pool(self, leaves: Iterable[int], rows: Sequence[int]) -> Pool:
        """Give what could be taken from these leaves that holds something of one of the rows."""
        pool = Pool()
        for leaf in leaves:
            for workload in self._by_leaf.get(leaf, ()):
                if workload.occupied():
                    self._consider(workload, rows, pool)
        return pool

    def price(self, take: Take) -> int:
        """Give what taking it costs, in millionths of a weighted resource-second."""
        if take.cost < 0:
            take.cost = sum(map(self.price_of, take.tasks))
        return take.cost

    def price_of(self, task: TaskState) -> int:
        """Give what evicting one task costs; what tasks that ask for the same cost in a second is found once."""
        if task.cls.milli is not None:
            return cost(self.session, task)
        weight = self._rates.get(task.cls.id)
        if weight is None:
            weight = self._rates[task.cls.id] = rate(self.session, task)
        return cost(self.session, task, weight)

    def rank(self, take: Take) -> tuple[object, ...]:
        """Order takes of one leaf: lower priority, cheaper (or younger, as the settings say), cores last, younger."""
        if not take.rank:
            order = stage_two(self.session.settings, self.price(take), take.age[0])
            take.rank = take.workload.priority, *order, take.whole, len(take.tasks), take.age
        return take.rank

    def protected_until(self, workload: WorkloadState) -> int:
        """When the minimum runtime of a workload ends or ended, in µs since the epoch; -1 if it has none."""
        if not self._minimum(workload.leaf):
            return -1
        return self.plugins.min_runtime.protected_until(self.session, "quota", -1, workload)

    def _consider(self, workload: WorkloadState, rows: Sequence[int], pool: Pool) -> None:
        refusal = self._refuse(workload)
        takes = self._takes(workload, core=True)
        helpful = [t for t in takes if any(t.amount[r] > 0 for r in rows)]
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
        pool.takes += helpful

    def _refuse(self, workload: WorkloadState) -> Refusal | None:
        owner = _NEVER.get(workload.model.owner_kind or "")
        if owner is not None:
            return Refusal(DAEMON_SET, f"{workload.key} belongs to {owner}, and is never evicted for a quota")
        refusal = preemptibility(workload) or self._disabled(workload.leaf)
        if refusal is not None or not (self._minimum(workload.leaf) or self.plugins.others):
            return refusal
        return self.plugins.filter(self.session, "quota", None, workload)

    def _disabled(self, leaf: int) -> Refusal | None:
        """Refuse everything in a leaf from which nothing is taken."""
        if leaf not in self._closed:
            self._closed[leaf] = disabled(self.session.queues, leaf)
        return self._closed[leaf]

    def _minimum(self, leaf: int) -> int:
        """Minimum runtime that holds in a leaf; mostly none does."""
        if leaf not in self._protected:
            self._protected[leaf] = resolve(self.session.settings, self.session.queues, "quota", -1, leaf)
        return self._protected[leaf]

    def _takes(self, workload: WorkloadState, *, core: bool) -> list[Take]:
        root = workload.root
        if not root.children and sum(t.active for t in root.tasks) <= root.minimum:
            tasks = tuple(t for t in workload.tasks if t.node >= 0 and t.active and t.phase is not SUCCEEDED)
            return [self._take(workload, tasks)]
        pieces = pieces_of(self.session, workload, frozenset(), core=core)
        several = len(pieces) > 1
        return [
            self._take(
                workload,
                tuple(t for t in p.tasks if t.active),
                whole=p.whole,
                compound=several and (p.whole or p.group),
            )
            for p in pieces
        ]

    def _take(
        self, workload: WorkloadState, tasks: tuple[TaskState, ...], *, whole: bool = True, compound: bool = False
    ) -> Take:
        session = self.session
        return Take(
            workload, tasks, amount_of(session, tasks), sum(last_resort(session, t) for t in tasks), whole, compound
        )


def amount_of(session: Session, tasks: Iterable[TaskState]) -> Amount:
    """Give what placed tasks hold, by row."""
    amount: Amount | None = None
    for task in tasks:
        own = task.cls.amount_at(task.node, session.nodes)
        amount = own if amount is None else tuple(map(add, amount, own))
    return amount if amount is not None else (0,) * len(session.queues.resources)
