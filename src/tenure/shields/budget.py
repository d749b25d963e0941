"""Disruption budgets as a shield: the ledger, asked with what the session knows (spec: disruption SLOs)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Final

from tenure.engine.refusal import Refusal
from tenure.engine.state.cost import SECOND, destroyed, interval_of, lost_time, lost_unit
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import BOUND, FAILED, GATED, PENDING, RUNNING, SUCCEEDED, TaskState, WorkloadState
from tenure.ledger.entries import BUDGET, Charge, EvictionRequest, LedgerPod, LinearBound
from tenure.ledger.ledger import Ledger
from tenure.model.cluster import Eviction
from tenure.model.settings import Cause
from tenure.shields.opt_out import latest, longest

SHIELD = BUDGET


class BudgetShield:
    """The ledger of one session, over its cycles.

    `begin` has to be called before anything of a cycle is asked; what is evicted has to be told by `charge`. ``risen``
    are pods, by workload and task, that are up by the time that is asked about, and are not yet.
    """

    def __init__(self) -> None:
        self._history: list[Charge] = []
        self._announced: list[Charge] = []
        self.ledger = Ledger(())
        self.active = False
        self.risen: frozenset[tuple[str, str]] = frozenset()

    def begin(self, session: Session) -> list[Charge]:
        """Look at the pods as they are at the start of a cycle; gives what was carried out since the last one began."""
        rules, budgets = session.settings.disruption.budgets, session.disruption_budgets
        announced = {id(charge) for charge in self._announced}
        carried_out = [c for c in self.ledger.charged if id(c) not in announced]
        self._history += carried_out
        self._announced = []
        self.active = has_budgets(session)
        if self.active:
            log = [_logged(session, entry) for entry in session.evictions]
            self.ledger = Ledger(rules, budgets, log + self._history, pods_of(session), session.refused_evictions)
        elif self.ledger.charged:
            self.ledger = Ledger(())
        return carried_out

    def filter(
        self,
        session: Session,
        cause: Cause,
        contender: WorkloadState | None,
        victim: WorkloadState,
        *,
        forced: Collection[TaskState] = (),
    ) -> Refusal | None:
        """Refuse a workload of which no single task may go: until one may, or, without surplus, all together."""
        if not self.active:
            return None
        there, refusals = [task for task in victim.tasks if task.node >= 0], list[Refusal]()
        for task in there:
            refusal = self.validate(session, cause, contender, [task], forced=forced)
            if refusal is None:
                return None
            refusals.append(refusal)
        if len(there) > 1 and victim.active_tasks() <= victim.root.size:
            return self.validate(session, cause, contender, there, forced=forced)
        return min(refusals, key=lambda refusal: inf if refusal.until is None else refusal.until, default=None)

    def validate(
        self,
        session: Session,
        cause: Cause,
        contender: WorkloadState | None,
        tasks: Sequence[TaskState],
        *,
        forced: Collection[TaskState] = (),
    ) -> Refusal | None:
        """Refuse a set that some budget does not allow as a whole. ``forced``: drained, or of a stale gang."""
        if not self.active:
            return None
        asks = self._asks(asks_of(session, cause, contender, tasks, forced=forced))
        denial = self.ledger.refusal(asks, session.now, self.risen)
        return None if denial is None else Refusal(denial.shield, denial.message, denial.until)

    def rows(
        self,
        session: Session,
        cause: Cause,
        contender: WorkloadState | None,
        tasks: Sequence[TaskState],
        *,
        forced: Collection[TaskState] = (),
    ) -> list[LinearBound]:
        """Give the bounds on a set of tasks that might be evicted, by their number in ``tasks``."""
        if not self.active:
            return []
        asks = self._asks(asks_of(session, cause, contender, tasks, forced=forced))
        return self.ledger.rows(asks, session.now, self.risen)

    def rise(self, session: Session) -> None:
        """In what is looked ahead at, all that is bound has come up."""
        if self.active:
            bound = (t for w in session.workloads.values() for t in w.tasks if t.phase is BOUND)
            self.risen = frozenset((t.workload.key, t.name) for t in bound)

    def _asks(self, asks: list[EvictionRequest]) -> list[EvictionRequest]:
        """Say of what has come up that it is up."""
        if not self.risen:
            return asks
        return [replace(a, up=True, pending=False) if (a.workload, a.task) in self.risen else a for a in asks]

    def charge(
        self,
        session: Session,
        cause: Cause,
        contender: WorkloadState | None,
        lost: Mapping[TaskState, int],
        announced: Collection[TaskState] = (),
    ) -> None:
        """Note that tasks were evicted just now. ``lost`` has, for each, the time in µs that it cost.

        Those that were ``announced`` have yet to go: they count in this cycle, and the next has to be told again.
        """
        asks = asks_of(session, cause, contender, lost)
        asks = [replace(a, lost=lost_of(session, t, time)) for a, (t, time) in zip(asks, lost.items(), strict=True)]
        before = len(self.ledger.charged)
        self.ledger.charge(asks, session.now)
        charges = zip(self.ledger.charged[before:], lost, strict=True)
        self._announced += [charge for charge, task in charges if task in announced]

    def foresee(
        self, session: Session, cause: Cause, contender: WorkloadState | None, tasks: Iterable[TaskState]
    ) -> None:
        """Note, in what is looked ahead at, that tasks were evicted, unless that is known.

        That is for PodDisruptionBudgets, which count what is down; what other rules allow comes back with time alone.
        """
        if session.disruption_budgets:
            known = {(c.ask.workload, c.ask.task) for c in self.ledger.charged}
            new = [t for t in tasks if (t.workload.key, t.name) not in known]
            self.charge(session, cause, contender, {t: lost_time(session, t) for t in new})

    def take_back(self, tasks: Collection[TaskState]) -> None:
        """Tasks that were evicted just now stay after all: they count no more."""
        names = {(task.workload.key, task.name) for task in tasks}
        self.ledger.charged[:] = [c for c in self.ledger.charged if (c.ask.workload, c.ask.task) not in names]


def has_budgets(session: Session) -> bool:
    """Whether anything bounds single evictions: budgets of either kind, or that some were refused lately."""
    budgets = session.settings.disruption.budgets or session.disruption_budgets
    return bool(budgets or session.refused_evictions)


def asks_of(
    session: Session,
    cause: Cause,
    contender: WorkloadState | None,
    tasks: Iterable[TaskState],
    *,
    forced: Collection[TaskState] = (),
) -> list[EvictionRequest]:
    """Say of tasks what the ledger has to know."""
    for_queues = () if contender is None else queues_of(session, contender)
    strict = bool(session.disruption_budgets)
    losing = any(rule.max_lost for rule in session.settings.disruption.budgets)
    return [
        EvictionRequest(
            workload=task.workload.key,
            task=task.name,
            cause=cause,
            labels=dict(task.model.spec.labels),
            queues=queues_of(session, task.workload),
            for_queues=for_queues,
            lost=lost_of(session, task, lost_time(session, task)),
            growth=lost_of(session, task, SECOND) if losing and not interval_of(session, task.workload) else {},
            up=is_up(session, task),
            forced=task in forced,
            pending=task.phase is BOUND,
            patience=longest(session, task.workload) if strict else None,
            outlasted=strict and cause not in _IMPROVING and session.now >= latest(session, task.workload),
        )
        for task in tasks
    ]


_IMPROVING: Final[frozenset[Cause]] = frozenset({"consolidate", "reschedule"})
"""Causes that give no workload its due: for them a PodDisruptionBudget is kept, however long it has allowed nothing."""


def queues_of(session: Session, workload: WorkloadState) -> tuple[str, ...]:
    """Names of a workload's queues, from the leaf upward."""
    if workload.leaf < 0:
        return ()
    return tuple(session.queues.queues[q].name for q in session.queues.path[workload.leaf])


def lost_of(session: Session, task: TaskState, time: int) -> dict[str, int]:
    """What an eviction that costs ``time`` (µs) destroys, in resource-µs by resource: of whole GPUs, cores and GiB."""
    node = task.node if task.node >= 0 else task.leaving
    if node < 0:
        return {}
    amounts = zip(session.queues.resources, task.cls.amount_at(node, session.nodes), strict=True)
    return {name: destroyed(amount, time, lost_unit(name)) for name, amount in amounts if amount}


def is_up(session: Session, task: TaskState) -> bool:
    """Whether a pod is up: it runs and is ready, on a node that is."""
    return task.phase is RUNNING and task.model.ready and bool(session.nodes.ready[task.node])


def pods_of(session: Session) -> list[LedgerPod]:
    """Give all pods that there ought to be.

    What waits counts as down where it has been up before: its workload runs below its core, or was evicted as a
    whole, or the task itself stands in the log.
    """
    logged = {(e.workload, e.task) for e in session.evictions}
    found = []
    for key in sorted(session.workloads):
        workload = session.workloads[key]
        queues = queues_of(session, workload)
        short = not workload.root.satisfied() and (workload.occupied() or workload.last_evicted_at is not None)
        for task in workload.tasks:
            if task.phase in (SUCCEEDED, FAILED, GATED):
                continue
            started = task.phase is not PENDING or task.leaving >= 0 or short or (key, task.name) in logged
            labels = dict(task.model.spec.labels)
            found.append(
                LedgerPod(
                    workload=key, task=task.name, labels=labels, queues=queues, up=is_up(session, task), started=started
                )
            )
    return found


def _logged(session: Session, entry: Eviction) -> Charge:
    ask = EvictionRequest(
        workload=entry.workload,
        task=entry.task,
        cause=entry.cause,
        labels=entry.labels,
        queues=_path(session, entry.queue, entry.workload),
        for_queues=() if entry.beneficiary is None else _path(session, entry.beneficiary_queue, entry.beneficiary),
        lost=entry.lost or {},
    )
    return Charge(at=entry.at, ask=ask)


def _path(session: Session, queue: str | None, workload: str) -> tuple[str, ...] | None:
    """Queues of a logged workload: as logged, else as they are now; None if unknown."""
    if queue is not None and queue in session.queues.index:
        return tuple(session.queues.queues[q].name for q in session.queues.path[session.queues.index[queue]])
    known = session.workloads.get(workload)
    return None if known is None else queues_of(session, known)
