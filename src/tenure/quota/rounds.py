"""One cycle of quota preemption: which queues are armed, which fire, what is evicted (spec: quota preemption).

Top down: while a queue that fired has not settled, nothing below it fires on its own. A queue stays armed until it
is within its max again, so that victims which do not leave, and work that slipped in, are dealt with in later cycles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property

from tenure.engine.plan import Refused
from tenure.engine.quota_state import QuotaEvent, QuotaState
from tenure.engine.serving.nominations import withdraw
from tenure.engine.state.cost import MICRO
from tenure.engine.state.evictions import evict_all
from tenure.engine.state.queues import QueueTree
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.model.queue import QueueStatus, QuotaStatus
from tenure.model.values.duration import format_time
from tenure.model.values.readable import amount_with_unit, bare_quantity
from tenure.quota.arming import arm, change_of, delays, over
from tenure.quota.blockers import blockers, over_budget
from tenure.quota.candidates import QuotaCandidates
from tenure.quota.choose import QuotaChoice, choose
from tenure.quota.follow_up_cuts import Follow
from tenure.quota.selection_program import Solve
from tenure.quota.usage import TerminatingUsage, excess_of, used
from tenure.victims.dry_run.outcome import AcceptedSet
from tenure.victims.recording.record import prices, record
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.pieces import Piece, held

ARMED, WAITING, FIRING, STUCK = "armed", "waiting", "firing", "stuck"
"""States: before the deadline; behind a queue above that fires; victims are leaving; nothing more may be taken."""

MOST_CHOICES = 8
"""Sets that are chosen for one queue while plugins refuse them."""


class QuotaChoices:
    """The choices of one cycle: of each queue the best set that plugins let go together."""

    def __init__(self, state: EvictionState, solve: Solve | None, follow: Follow) -> None:
        self.state = state
        self.session = state.session
        self.settings = state.session.settings.quota_preemption
        self.solve = solve
        self.follow = follow

    @cached_property
    def candidates(self) -> QuotaCandidates:
        """What may be taken."""
        return QuotaCandidates(self.session, self.state.plugins, self.settings.max_evictions_per_cycle)

    @cached_property
    def shares(self) -> list[list[int]]:
        """Allocatable shares under the present max: what reclaim compares with."""
        return self.state.fairness.now().allocatable_without_history

    def choose(self, number: int, need: dict[int, int]) -> QuotaChoice:
        """Choose the pieces to take; where plugins refuse some of a set, once more without those, a few times."""
        never, solve, follow = self.settings.overshoot == "never", self.solve, self.follow
        for _ in range(MOST_CHOICES):
            choice = choose(self.candidates, number, need, self.shares, never=never, solve=solve, follow=follow)
            allowed = self._allowed(choice.pieces)
            if len(allowed) == len(choice.pieces):
                return choice
        return choice.only(allowed)

    def _allowed(self, pieces: list[Piece]) -> list[Piece]:
        """Leave out what plugins do not let go together with what comes before it."""
        plugins, leaves = self.state.plugins, {piece.workload.leaf for piece in pieces}
        protected = any(plugins.min_runtime.minimum(self.session, "quota", -1, leaf) for leaf in leaves)
        if not protected and not plugins.others:  # what bounds a set otherwise is known to the choice
            return pieces
        allowed: list[Piece] = []
        waiting = [pieces]
        while waiting:
            chunk = waiting.pop()
            tasks = [t for piece in (*allowed, *chunk) for t in piece.tasks]
            refusal = plugins.validate(self.session, "quota", None, tasks)
            if refusal is None:
                allowed += chunk
            elif len(chunk) == 1:
                self.candidates.leave_out(chunk[0], refusal)
            else:
                half = len(chunk) // 2
                waiting += [chunk[half:], chunk[:half]]
        return allowed


class QuotaRound:
    """The work of one cycle."""

    def __init__(self, state: EvictionState, solve: Solve | None, follow: Follow) -> None:
        self.state = state
        self.choices = QuotaChoices(state, solve, follow)
        self.session = state.session
        self.queues = state.session.queues
        self.settings = state.session.settings.quota_preemption
        self.now = state.session.now
        self.delays = delays(self.queues.queues, self.settings)
        self.left = self.settings.max_evictions_per_cycle
        self._closed: set[int] = set()
        # by workload, task and node: what ran until it was moved there
        self.moved = cache(lambda: {(e.workload, e.task, e.to_node) for e in state.session.evictions})

    @cached_property
    def leaving(self) -> TerminatingUsage:
        """What terminates, as things were before this round."""
        return TerminatingUsage(self.session)

    def run(self) -> None:
        """Arm all queues by what they use before anything is taken, then fire top down."""
        armed: list[tuple[int, QuotaStatus, dict[str, int]]] = []
        for number, queue in enumerate(self.queues.queues):
            stored = queue.status.quota_preemption if queue.status is not None else None
            delay = self.delays[queue.name] if self.settings.enabled else 0
            if stored is None and (not delay or not queue.max):
                continue
            usage = used(self.session, self.leaving, number)
            status = arm(queue, delay, usage, self.now, self.settings)
            self._store(number, stored, status)
            if status is not None:
                armed.append((number, status, over(queue.max, usage)))
        for number, status, excess in armed:
            self._serve(number, status, excess)

    def _store(self, number: int, stored: QuotaStatus | None, status: QuotaStatus | None) -> None:
        """Keep what was decided on the queue, and have it written."""
        if status != stored:
            queue = self.queues.queues[number]
            written = replace(queue.status or QueueStatus(), quota_preemption=status)
            self.queues.queues[number] = replace(queue, status=written)
            if kind := change_of(stored, status):
                self._event(kind, queue.name, None if status is None else status.deadline)
            known = self.state.plan.queue_status.get(queue.name, written)
            self.state.plan.queue_status[queue.name] = replace(known, quota_preemption=status)

    def _event(self, kind: str, name: str, deadline: int | None = None, tasks: int = 0, price: int = 0) -> None:
        event = QuotaEvent(self.state.cycle, self.now, name, kind, deadline, tasks, price / MICRO)
        self.state.plan.quota_events.append(event)

    def _serve(self, number: int, status: QuotaStatus, excess: dict[str, int]) -> None:
        report = QuotaState(self.queues.queues[number].name, ARMED, status.deadline, excess)
        if self.now < status.deadline:
            self.state.wake_at(status.deadline)
        elif any(queue in self._closed for queue in self.queues.path[number]):
            report = replace(report, state=WAITING)
        else:
            report = self._fire(number, status, report)
            if report.state == FIRING:
                self._closed.add(number)
        self.state.plan.quota.append(report)

    def _need(self, number: int) -> dict[int, int]:
        return excess_of(self.session, self.leaving, number)

    def _fire(self, number: int, status: QuotaStatus, report: QuotaState) -> QuotaState:
        going = any(self.leaving.going[number])
        if self._need(number):
            self._give_up_promises(number)
        need = self._need(number)
        if not need:
            return replace(report, state=FIRING)
        choice = self.choices.choose(number, need)
        self._carry_out(number, status, choice.pieces)
        if choice.left:
            report = self._tell_shortfall(choice, report)
        return replace(report, state=FIRING if choice.pieces or going else STUCK)

    def _tell_shortfall(self, choice: QuotaChoice, report: QuotaState) -> QuotaState:
        names = self.queues.resources
        refused = []
        for workload, refusal in (*choice.pool.refused, *over_budget(choice)):
            self.state.wake_at(refusal.until)
            refused.append(Refused(workload.key, "quota", None, refusal.shield, refusal.until, refusal.message))
        self.state.refuse(refused)
        return replace(
            report,
            shortfall={names[row]: amount for row, amount in choice.left.items()},
            blockers=blockers(choice, self.leaving.stuck_tasks),
            exhausted=choice.exhausted,
        )

    def _carry_out(self, number: int, status: QuotaStatus, pieces: Sequence[Piece]) -> None:
        """Evict pieces, as far as the bound of a cycle allows: the others go in later cycles."""
        price = prices(self.state, self._within_bound(pieces), "quota", None)
        if not price:
            return
        session, tasks = self.session, list(price)
        reason = _reason(self.queues, number, self._need(number), status)
        promises = session.nodes.waiting > 0
        evict_all(session, tasks)
        victims = dict.fromkeys(t.workload for t in tasks)
        for workload in victims if promises else ():
            if not workload.occupied():
                _withdraw(self.state, _promised(session, workload, self.moved()))
        with session.waiting.many():
            for workload in victims:
                session.refresh(workload)
        record(self.state, AcceptedSet([], [], evicted=tasks), price, "quota", None, lambda *_: reason)
        self._event(
            "fired", self.queues.queues[number].name, status.deadline, len(tasks), sum(p[0] for p in price.values())
        )

    def _within_bound(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Give as many pieces as the bound of a cycle leaves room for."""
        for piece in pieces:
            if self.left is None:
                yield piece
            elif len(piece.tasks) <= self.left:
                self.left -= len(piece.tasks)
                yield piece

    def _give_up_promises(self, number: int) -> None:
        """Before anything that runs is evicted, what is only promised is given up, as far as it helps."""
        session, waiting = self.session, {t.workload for t in self.session.nominated}
        below = [w for w in waiting if w.leaf >= 0 and number in self.queues.path[w.leaf]]
        for workload in sorted(below, key=lambda w: (w.priority, -w.created_at, w.key)):
            need, amount = self._need(number), held(session, promised := _promised(session, workload, self.moved()))
            if any(amount[row] > 0 for row in need) and not self.queues.carried_below_guaranteed(workload.leaf, amount):
                _withdraw(self.state, promised)
                session.refresh(workload)


def _reason(queues: QueueTree, number: int, need: Mapping[int, int], status: QuotaStatus) -> str:
    parts = []
    for row, amount in need.items():
        resource, most = queues.resources[row], queues.maximum[number][row]
        parts.append(f"{amount_with_unit(most + amount, resource)}, max {bare_quantity(most, resource)}")
    name, deadline = queues.queues[number].name, format_time(status.deadline)
    return f"queue {name} uses {' and '.join(parts)}; deadline {deadline}"


def _promised(session: Session, workload: WorkloadState, moved: set[tuple[str, str, str | None]]) -> list[TaskState]:
    """Give the tasks that hold a nomination and are not being moved there, nor were."""
    names, waiting = session.nodes.names, (t for t in workload.tasks if t.nominated >= 0 and t.leaving < 0)
    return [t for t in waiting if (workload.key, t.name, names[t.nominated]) not in moved]


def _withdraw(state: EvictionState, promised: Sequence[TaskState]) -> None:
    withdraw(state.session, promised)
    state.plan.give_up([(t.workload.key, t.index) for t in promised])
