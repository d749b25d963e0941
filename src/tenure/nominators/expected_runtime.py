"""Nominates what runs longer than it was expected to (spec: expected runtime and requeue, "Nomination")."""

from __future__ import annotations

from typing import ClassVar

from tenure.engine import expectation
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.nominators.contract import (
    NominationContext,
    NominationSkip,
    NominatorFindings,
    RequeueNomination,
    SkipReason,
    cooling,
)


class ExpectedRuntime:
    """The nominator that is always on: without an expected runtime anywhere it nominates and skips no workload."""

    name: ClassVar[str] = "expected-runtime"

    def nominate(self, scene: NominationContext) -> NominatorFindings:
        """Name what has reached its expected runtime, and say of the others that have one why they are none."""
        found, session = NominatorFindings(), scene.session
        for workload in scene.due:
            if workload.leaf < 0 or not (workload.expected or workload.unclear) or _opted_out(workload):
                continue
            if workload.unclear:
                found.reports.append((workload.key, workload.unclear))
            reason = _unfit(session, workload)
            if reason is None:
                assert workload.started_at is not None
                assert workload.expected is not None
                runtime = session.now - workload.started_at
                if runtime < workload.expected:
                    continue
                self._report_times(found, session, workload)
                reason = cooling(scene, workload)
                if reason is None:
                    since = max(workload.started_at + workload.expected, workload.not_before or 0)
                    found.nominations.append(RequeueNomination(workload.key, since, runtime, workload.expected))
            if reason is not None:
                found.skips.append(NominationSkip(workload.key, self.name, reason))
        return found

    def _report_times(self, found: NominatorFindings, session: Session, workload: WorkloadState) -> None:
        """Report settings that count once a workload is overdue, and cannot be read."""
        model = workload.model
        delay = expectation.requeue_delay(model, session.above(workload.leaf), session.settings)
        until = expectation.not_before(model) if workload.not_before is None else None
        for problem in (delay.problem, until.problem if until is not None else ""):
            if problem:
                found.reports.append((workload.key, problem))


def _opted_out(workload: WorkloadState) -> bool:
    """Whether its expected runtime is an explicit 0."""
    return workload.expected == 0


def _unfit(session: Session, workload: WorkloadState) -> SkipReason | None:
    """Give the first reason why it cannot be said how long a workload has overstayed."""
    if not workload.occupied():
        return "not_running"
    if workload.fixed:
        return "not_preemptible"
    if workload.expected is None:
        return "invalid_duration"
    if workload.started_at is None:
        return "missing_start"
    if max(workload.started_at, workload.model.started_at or 0) > session.now:
        return "clock_skew"
    return None
