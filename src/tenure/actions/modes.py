"""How far each cause of evictions goes: ``enforce``, ``shadow`` or ``off`` (spec: on Kubernetes, modes).

An action never asks for its mode; with which others it reckons is told by `tenure.model.modes`. One in shadow runs in a
scenario that is undone as a whole: what it would have evicted is kept as a record, and nothing that comes after it can
tell that it ran.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tenure.actions.context import Context
from tenure.engine.plan import EVICTING, Plan, PlanStep
from tenure.quota.rounds import ARMED, FIRING
from tenure.victims.recording.state import EvictionState
from tenure.victims.search.trials import SearchBudget

Action = Callable[[Context], None]


class Shadow:
    """The runner of actions without effect; ``known`` are cause, victim and contender of what was recorded before."""

    def __init__(self, known: set[tuple[str, str, str]]) -> None:
        self.known = known

    def run(self, context: Context, action: Action) -> None:
        """Let an action decide, undo it, and write what it would have evicted into the plan."""
        session, plan = context.session, context.plan
        real = context.evicting()
        scratch = Plan(plan.now, steps=list(plan.steps), started=list(plan.started), wake=plan.wake)
        thought = replace(context, plan=scratch, endings=context.endings.after(()), no_effect_passes={})
        thought.evictions = _in_thought(real, thought)
        ledger, sent = real.plugins.budgets.ledger, list(getattr(context.rescheduling, "sent", ()))
        with session.scenario(), ledger.tentatively():
            action(thought)
        if thought.rescheduling is not None:
            getattr(thought.rescheduling, "sent", [])[:] = sent
        context.watched, context.requeueing = thought.watched, thought.requeueing
        context.rescheduling = thought.rescheduling
        self._keep(context, scratch)

    def forget(self, context: Context) -> None:
        """Forget records of workloads that have gone."""
        there = context.session.workloads
        self.known -= {k for k in self.known if k[1] not in there or (k[2] and k[2] not in there)}

    def _keep(self, context: Context, scratch: Plan) -> None:
        """Keep what was recorded, and what is noted whether anything is evicted or not."""
        plan = context.plan
        before = {id(s) for s in plan.steps}
        would = [s for s in scratch.steps if s.action in EVICTING and id(s) not in before]
        new = [s for s in would if _key(s) not in self.known]
        self.known |= {_key(s) for s in new}
        plan.shadow += new
        _keep_notes(context, scratch, {s.workload for s in would})
        plan.queue_status |= scratch.queue_status
        plan.quota += [replace(q, state=ARMED) if q.state == FIRING else q for q in scratch.quota]
        plan.quota_events += [e for e in scratch.quota_events if e.kind != "fired"]
        plan.moves += [replace(m, shadow=True) for m in scratch.moves]
        plan.warnings += [w for w in scratch.warnings if w not in plan.warnings]
        plan.wake = scratch.wake
        found = scratch.requeue
        if found.nominations or found.skipped or found.reports:
            nominations = [replace(n, committed=False) for n in found.nominations]
            rolled_back = found.rolled_back + found.committed
            plan.requeue = replace(found, nominations=nominations, committed=0, rolled_back=rolled_back,
                                   not_before={}, beneficiaries={})  # fmt: skip


def _keep_notes(context: Context, scratch: Plan, would: set[str]) -> None:
    """Note since when gangs are stale, of those that stay; without that their grace would never be over."""
    for key, since in scratch.stale.items():
        if key not in would:
            context.session.workloads[key].stale_since = since
            context.plan.stale[key] = since


def _key(step: PlanStep) -> tuple[str, str, str]:
    return step.cause or "", step.workload, step.beneficiary or ""


def _in_thought(real: EvictionState, thought: Context) -> EvictionState:
    most = real.session.settings.search.max_scenarios
    return replace(
        real, plan=thought.plan, endings=thought.endings, budget=SearchBudget(most), memories={},
        evicted=set(real.evicted), given_up=set(real.given_up), moved=set(real.moved),
    )  # fmt: skip
