"""The cycle: actions in order on one session, and the plan that comes out."""

from __future__ import annotations

from collections.abc import Callable

from tenure.actions.allocate import allocate
from tenure.actions.context import Context
from tenure.engine.backfill import Endings
from tenure.engine.evictions import outstay
from tenure.engine.placement import Placer
from tenure.engine.plan import Plan
from tenure.engine.session import Session
from tenure.engine.workloads import TERMINATING
from tenure.fairness.current import Fairness

ACTIONS: dict[str, Callable[[Context], None]] = {"allocate": allocate}
"""Every action by the name it has in the settings."""


class Scheduler:
    """Decides, cycle by cycle, on a session that is kept in step with a cluster."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.endings = Endings()
        self.cycles = 0
        self.actions = [ACTIONS[name] for name in session.settings.actions if name in ACTIONS]
        self.context = Context(session, Placer(session), Fairness(session), self.endings, Plan(session.now))
        if session.settings.backfill == "easy":
            for workload in session.workloads.values():
                if workload.occupied():
                    self.endings.add(workload)

    def cycle(self, now: int) -> Plan:
        """Decide at ``now`` (µs since the epoch) and give the plan; the session holds what was decided."""
        session = self.session
        self.pass_time(now)
        if "fragmentation" in session.scorer.weights:
            session.mix.refresh()
        plan = Plan(now, queue_status=self.context.fairness.to_write())
        self._expire(plan)
        context = self.context
        context.plan, context.cycle = plan, self.cycles
        for run in self.actions:
            run(context)
        session.added.clear()
        session.compact()
        self.cycles += 1
        return plan

    def pass_time(self, now: int) -> None:
        """Let time pass until ``now``. To be told before anything ends at that instant: it was held until then."""
        self.context.fairness.elapse(now)
        self.session.now = now

    def _expire(self, plan: Plan) -> None:
        """Terminating tasks that are overdue are stuck; nominations that waited too long are given up."""
        session = self.session
        if not session.nodes.waiting:
            return
        timeout = session.settings.nomination_timeout
        for key in sorted(session.workloads):
            workload = session.workloads[key]
            expired = False
            for task in workload.tasks:
                if task.phase is TERMINATING and not task.stuck and session.now >= session.leaves_at(task):
                    session.mark_stuck(task)
                if task.leaving >= 0 and not task.stuck and session.now >= session.leaves_at(task):
                    outstay(session, task)
                if task.nominated >= 0 and session.now > task.nominated_at + timeout + session.longest_grace(task):
                    session.withdraw(task)
                    plan.expired.append((key, task.index))
                    expired = True
            if expired:
                session.refresh(workload)
