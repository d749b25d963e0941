"""Carries a set out on the session and writes it into the plan, with the time of its cooldown."""

from __future__ import annotations

from collections.abc import Sequence

from tenure.engine import expectation
from tenure.engine.refusal import Refusal
from tenure.engine.requeued import RequeueOutcome
from tenure.engine.serving.allocation import serve
from tenure.engine.state.workloads import WorkloadState
from tenure.model.values.readable import weighted_hours
from tenure.requeue.candidates import RequeueCandidate
from tenure.requeue.rules import RequeueRules
from tenure.victims.dry_run.dry_runs import DryRuns
from tenure.victims.dry_run.outcome import AcceptedSet, gone_for_now, to_the_end
from tenure.victims.recording.record import prices, record
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.pieces import Piece


class RequeueCommits:
    """The commits of requeue: sets are played through and carried out; ``number`` counts changes of the session."""

    def __init__(self, state: EvictionState, dry_runs: DryRuns, outcome: RequeueOutcome) -> None:
        self.state = state
        self.session = state.session
        self.dry_runs = dry_runs
        self.outcome = outcome
        self.number = 0

    def place(self, played: AcceptedSet) -> None:
        """Write into the plan what found a place without an eviction."""
        record(self.state, played, {}, "requeue", None, lambda _, __: "")
        self.number += 1

    def serve_rest(self) -> None:
        """Give what an eviction left over to those that wait, in order: nothing more is evicted for them.

        Not with a reservation, which who comes later must not delay; there it is left to the next cycle.
        """
        session = self.session
        if session.settings.backfill == "easy":
            return
        placed = gone_for_now(session, serve(session, self.state.placer, self.dry_runs.shares).placed)
        self.dry_runs.changed.update(task.workload.leaf for task in placed)
        if placed:
            self.place(AcceptedSet([], placed))

    def commit(
        self, contender: WorkloadState, pieces: Sequence[Piece], candidates: Sequence[RequeueCandidate]
    ) -> Refusal | None:
        """Requeue candidates for a contender, if that pays: the cooldown is written first, then the evictions."""
        session, rules = self.session, RequeueRules(self.session, self.dry_runs.shares, contender, pieces)
        why = {c.workload: f"{rules.why(c.workload)}; nominated by {', '.join(c.nominated.by)}" for c in candidates}
        price = prices(self.state, pieces, "requeue", contender)
        played = self.dry_runs.play(rules, pieces, enough=to_the_end)
        if not isinstance(played, AcceptedSet):
            return played
        self.dry_runs.carry_out(contender, played)
        for candidate in candidates:
            self._bar(candidate, contender)

        def reason(workload: WorkloadState, cost: float) -> str:
            return (
                f"{workload.key} is requeued for {contender.key}: {why[workload]}; "
                f"the eviction costs {weighted_hours(cost)}"
            )

        record(self.state, played, price, "requeue", contender, reason)
        self.number += 1
        self.serve_rest()
        self.dry_runs.changed.update(session.waiting.compact())
        return None

    def _bar(self, candidate: RequeueCandidate, contender: WorkloadState) -> None:
        """Bar a workload from being requeued again for a while."""
        session, workload, outcome = self.session, candidate.workload, self.outcome
        delay = expectation.requeue_delay(workload.model, session.above(workload.leaf), session.settings)
        until = outcome.not_before[workload.key] = delay.end(session.now)
        session.journal.set(workload, "not_before", until)
        outcome.beneficiaries[workload.key] = contender.key
        outcome.committed += 1
        if delay.problem:
            outcome.reports.setdefault(workload.key, []).append(delay.problem)
