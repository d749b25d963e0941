"""Requeue: nominated work gives way if, and only if, something more deserving then runs (spec: requeue)."""

from __future__ import annotations

from dataclasses import replace

from tenure.actions.context import Context
from tenure.actions.preconditions import queues_contend
from tenure.engine.refusal import Refusal
from tenure.engine.requeued import RequeueOutcome, Skipped
from tenure.engine.state.waiting import anything_waits
from tenure.engine.state.workloads import WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.nominators.contention import Contention
from tenure.nominators.contract import NominationContext, NominatorFindings
from tenure.requeue.candidates import in_order, union
from tenure.requeue.memory import RequeueMemory
from tenure.requeue.transactions import RequeueTransactions
from tenure.shields.delay import delay, told
from tenure.victims.recording.explanations import shielded
from tenure.victims.recording.state import EvictionState

MOST_REPORTED = 100
"""Wrong settings that are warned of in one cycle, one per workload."""


def requeue(context: Context) -> None:
    """Ask the nominators for candidates, and requeue those in whose place a more deserving workload then runs."""
    if context.requeueing is None:
        context.requeueing = RequeueMemory(context.session)
    _Requeue(context, context.requeueing).run()


class _Requeue:
    """The action in one cycle."""

    def __init__(self, context: Context, memory: RequeueMemory) -> None:
        self.context = context
        self.registry = memory.registry
        self.memory = memory

    def run(self) -> None:
        """Nominate, and try the candidates if a workload contends."""
        context, session = self.context, self.context.session
        overdue = self.memory.overdue()
        for key in context.plan.started:  # when it is due may be before anything else happens
            self.memory.started(key)
        if not context.detailed and self.registry.due_only and not overdue:
            self._wake_when_due()
            return
        contention, shares = Contention(session, self.memory.pending_index.counts()), context.fairness.now()
        findings = self._ask(overdue, contention, shares)
        outcome = context.plan.requeue = RequeueOutcome(union(findings))
        self._report(findings)
        if not contention.waiting:
            return
        for found in findings.values():
            self._wake_after(found, contention)
        self._wake_when_due()
        if outcome.nominations:
            self._transact(shares, outcome)

    def _ask(
        self, overdue: list[WorkloadState], contention: Contention, shares: CurrentShares
    ) -> dict[str, NominatorFindings]:
        """Ask all nominators; they look at all that may ever be due where the reasons for skips are read."""
        context, session = self.context, self.context.session
        everyone = [] if self.registry.due_only else [w for _, w in sorted(session.workloads.items())]
        due = [w for _, w in sorted(session.roster.expecting.items())] if context.detailed else overdue
        return self.registry.nominate(NominationContext(session, shares, contention, due, everyone))

    def _transact(self, shares: CurrentShares, outcome: RequeueOutcome) -> None:
        context, session = self.context, self.context.session
        state = context.evicting()
        for workload in session.waiting.all() if context.detailed else ():
            if (refusal := delay(session, workload)) is not None:
                state.obstacle(workload.key, told(refusal))
        candidates = [c for c in in_order(session, shares, outcome.nominations) if c.workload.key not in state.moved]
        self.memory.position = RequeueTransactions(state, self.memory.pending_index, shares, candidates, outcome).run(
            self.memory.position
        )
        if context.detailed:
            _tell_contenders(state)
        if outcome.not_before:
            done = outcome.not_before
            outcome.nominations = [replace(n, committed=True) if n.workload in done else n for n in outcome.nominations]

    def _report(self, findings: dict[str, NominatorFindings]) -> None:
        """Write skips, and settings that are wrong, into the plan."""
        plan = self.context.plan
        for name, found in findings.items():
            plan.requeue.skipped += [Skipped(s.workload, name, s.reason) for s in found.skips]
            for key, text in found.reports:
                plan.requeue.reports.setdefault(key, []).append(text)
        reports = [
            f"{key}: {text}" for key, texts in sorted(plan.requeue.reports.items()) for text in dict.fromkeys(texts)
        ]
        plan.warnings += reports[:MOST_REPORTED]
        if len(reports) > MOST_REPORTED:
            plan.warnings.append(f"{len(reports) - MOST_REPORTED} more workloads have settings that are wrong")
        plan.warnings += sorted(self.registry.complaints.values())

    def _wake_after(self, found: NominatorFindings, contention: Contention) -> None:
        """Note when a cooldown or a minimum runtime ends that protects a candidate now."""
        for skip in found.skips:
            workload = self.context.session.workloads[skip.workload]
            if skip.reason == "cooldown":
                self.context.plan.wake_at(workload.not_before)
            elif skip.reason == "minruntime_protected":
                self.context.plan.wake_at(contention.protected_until(workload))

    def _wake_when_due(self) -> None:
        """Note when the next workload may be nominated, if a contender could take its place."""
        session = self.context.session
        anybody = (
            session.settings.requeue.contenders == "any"
            or self.context.priorities.differ(session)
            or queues_contend(session)
        )
        if anybody and anything_waits(session.waiting):
            self.context.plan.wake_at(self.memory.due.next())


def _tell_contenders(state: EvictionState) -> None:
    """Say to those that wait on which shields stand between them and the candidates."""
    of_contender: dict[str, list[tuple[str, Refusal]]] = {}
    for r in state.plan.refused:
        if r.cause == "requeue" and r.beneficiary is not None:
            of_contender.setdefault(r.beneficiary, []).append((r.workload, Refusal(r.shield, r.message, r.until)))
    for contender, refusals in of_contender.items():
        if state.session.workloads[contender].entry is not None:
            state.obstacle(contender, shielded("requeue", refusals))
