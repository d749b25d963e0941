"""The cycle: actions in order on one session, and the plan that comes out."""

from __future__ import annotations

from collections.abc import Callable

from tenure.actions import notices
from tenure.actions.allocate import allocate
from tenure.actions.consolidate import consolidate
from tenure.actions.context import Context
from tenure.actions.lasting import settle_what_follows
from tenure.actions.modes import Shadow
from tenure.actions.preempt import preempt
from tenure.actions.quota import quota
from tenure.actions.reclaim import reclaim
from tenure.actions.reprieve import reprieve
from tenure.actions.requeue import requeue
from tenure.actions.reschedule import reschedule
from tenure.actions.stale_gang import stale_gang
from tenure.engine.plan import Plan
from tenure.engine.serving.backfill import ExpectedReleases
from tenure.engine.serving.placement import Placer
from tenure.engine.state.evictions import outstay
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TERMINATING
from tenure.fairness.current import Fairness
from tenure.model.documents.collector import collector_paused, count_as_old
from tenure.model.modes import mode_of
from tenure.shields.breaker import losing_in, message
from tenure.shields.unsaved import unsaved_in

ACTIONS: dict[str, Callable[[Context], None]] = {
    "stale-gang": stale_gang,
    "quota": quota,
    "allocate": allocate,
    "consolidate": consolidate,
    "reclaim": reclaim,
    "preempt": preempt,
    "requeue": requeue,
    "reschedule": reschedule,
}
"""Every action by the name it has in the settings."""


FOR_CONTENDERS = ("consolidate", "reclaim", "preempt", "requeue", "reschedule")
"""Actions that evict or move for contenders."""

MOST_AGAIN = 3
"""How often these are asked once more in a cycle in which all that they decided was given up."""

LARGE = 1_000
"""Workloads from which on it pays to hold the garbage collector while a cycle decides."""

MANY = 10_000
"""Steps of a plan from which on what was made for it is not looked through for garbage."""


class Scheduler:
    """The scheduler: it decides, cycle by cycle, on a session that is kept in step with a cluster.

    Parameters
    ----------
    session
        The cluster's state.
    recorded
        Cause, victim and contender of what causes in shadow have recorded before, each of which is recorded once; to
        be handed on where a new session is made for each cycle. It is added to.
    about
        The workload (namespace/name) that is asked about: where it waits for moves, none are sought for others, and
        the plan does not say what follows from it.
    """

    def __init__(
        self, session: Session, recorded: set[tuple[str, str, str]] | None = None, about: str | None = None
    ) -> None:
        self.session = session
        self.endings = ExpectedReleases()
        self.cycles = 0
        settings = session.settings
        enabled = [name for name in settings.actions if name in ACTIONS and mode_of(settings, name) != "off"]
        self.actions = [ACTIONS[name] for name in enabled]
        self.modes = [mode_of(settings, name) for name in enabled]
        self.again = [ACTIONS[n] for n in enabled if n in FOR_CONTENDERS and mode_of(settings, n) == "enforce"]
        self.shadow = Shadow(set() if recorded is None else recorded)
        self.context = Context(session, Placer(session), Fairness(session), self.endings, Plan(session.now))
        self.context.about = about
        if session.settings.backfill == "easy":
            for workload in session.workloads.values():
                if workload.occupied():
                    self.endings.add(workload)

    def cycle(self, now: int) -> Plan:
        """Decide at ``now`` (µs since the epoch) and give the plan; the session holds what was decided."""
        if len(self.session.workloads) < LARGE:
            return self._decide(now)
        with collector_paused():
            plan = self._decide(now)
            if len(plan.steps) > MANY:
                count_as_old()
        return plan

    def _decide(self, now: int) -> Plan:
        session = self.session
        self.pass_time(now)
        if session.terms.devices.room.begin_anew():
            session.new_epoch()  # what found no devices before may find some
        if "fragmentation" in session.scorer.weights:
            session.fragmentation.refresh()
        plan = Plan(now, queue_status=self.context.fairness.to_write())
        context = self.context
        context.plan, context.cycle, context.paid = plan, self.cycles, frozenset(session.nominated)
        requeued = notices.begin(context)
        self._notice_stuck()
        for run, mode in zip(self.actions, self.modes, strict=True):
            if mode == "shadow":
                self.shadow.run(context, run)
            else:
                run(context)
        self._settle()
        if self.shadow.known:
            self.shadow.forget(context)
        if session.outcomes:
            plan.losing = [(found.cause, message(session.settings, found)) for found in losing_in(session)]
            plan.warnings += [text for _, text in plan.losing]
        if context.detailed:
            unsaved = unsaved_in(session)
            plan.unsaved = [found.queue for found in unsaved]
            plan.warnings += [found.message for found in unsaved]
        notices.finish(context, requeued)
        if context.requeueing is not None:
            for key in plan.started:
                context.requeueing.started(key)
        session.added.clear()
        session.waiting.compact()
        self.cycles += 1
        return plan

    def _settle(self) -> None:
        """Take back what is not needed or in vain; where that is all, ask again, without the contenders of that."""
        for left in range(MOST_AGAIN, -1, -1):
            reprieve(self.context)
            if not settle_what_follows(self.context, last=not left):
                break
            for run in self.again:
                run(self.context)
            self.context.plan.warnings = list(dict.fromkeys(self.context.plan.warnings))

    def pass_time(self, now: int) -> None:
        """Let time pass until ``now``. To be told before anything ends at that instant: it was held until then."""
        self.context.fairness.elapse(now)
        self.session.now = now

    def _notice_stuck(self) -> None:
        """Terminating tasks that are overdue are stuck."""
        session = self.session
        overdue = [t for t in session.leaving if not t.stuck and session.now >= session.leaves_at(t)]
        for task in sorted(overdue, key=lambda t: (t.workload.key, t.index)):
            if task.phase is TERMINATING:
                session.mark_stuck(task)
            else:
                outstay(session, task)
