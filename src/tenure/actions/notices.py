"""Settles at the start of a cycle what earlier ones announced (spec: the cycle, "Notice")."""

from __future__ import annotations

from tenure.actions.context import Context
from tenure.engine import expectation
from tenure.engine.plan import PlanStep
from tenure.engine.state.notices import count_told
from tenure.engine.state.workloads import BOUND, RUNNING, TaskState
from tenure.model.workload import Notice
from tenure.nominators.contention import Contention
from tenure.nominators.contract import NominationContext
from tenure.requeue.memory import RequeueMemory
from tenure.victims.recording.record import PLACING


def begin(context: Context) -> dict[str, str]:
    """Withdraw or carry out due notices; gives the workloads that were requeued, each with its beneficiary."""
    context.noticed = {t: t.notice for t in context.session.noticed if t.notice is not None}
    if not context.noticed:
        return {}
    from tenure.notices.settle import settle_notices  # noqa: PLC0415  only loaded where somebody is under notice

    requeued = settle_notices(context.session, context.placer, context.evicting, lambda: _nominated(context))
    context.paid = context.evicting().paid = frozenset(context.session.nominated)
    return requeued


def finish(context: Context, requeued: dict[str, str]) -> None:
    """At the end of the cycle: who is under notice is treated as what terminates; who was requeued is barred."""
    session, outcome = context.session, context.plan.requeue
    if context.noticed:
        _put_in_order(context)
    if session.noticed or session.queues.under_notice:
        count_told(session)
    if session.noticed:
        from tenure.notices.settle import close  # noqa: PLC0415

        close(session, context.evicting())
        for task in session.noticed:
            outcome.not_before.pop(task.workload.key, None)
    for key, whose in requeued.items():
        workload = session.workloads[key]
        delay = expectation.requeue_delay(workload.model, session.above(workload.leaf), session.settings)
        workload.not_before = outcome.not_before[key] = delay.end(session.now)
        outcome.beneficiaries[key] = whose


def _put_in_order(context: Context) -> None:
    """Begin the plan with the notices that are withdrawn, whatever took them back.

    A notice that stands as it was is no step of it, nor is a nomination that was renewed, and bound or made anew since.
    """
    told, steps = context.noticed, context.plan.steps
    runs_on = [(t, n) for t, n in told.items() if t.notice is None and t.leaving < 0 and t.phase in (BOUND, RUNNING)]
    stands = {("notice", t.workload.key, t.index) for t, notice in told.items() if t.notice == notice}
    last = {(s.workload, s.task_index): number for number, s in enumerate(steps) if s.action in PLACING}
    left = [s for number, s in enumerate(steps) if (s.action, s.workload, s.task_index) not in stands
            and (s.action not in PLACING or last[s.workload, s.task_index] == number)]  # fmt: skip
    runs_on.sort(key=lambda pair: (pair[0].workload.key, pair[0].index))
    steps[:] = [*(_withdrawal(context, task, notice) for task, notice in runs_on), *left]


def _withdrawal(context: Context, task: TaskState, notice: Notice) -> PlanStep:
    key, whose = task.workload.key, "" if notice.beneficiary is None else f" for {notice.beneficiary}"
    text = f"{key} runs on: its eviction by {notice.cause}{whose} no longer pays"
    return PlanStep(
        "withdraw", key, task.name, context.session.nodes.names[task.node], task.index, task.node, task.devices,
        context.cycle, notice.cause, notice.beneficiary, reason=text,
    )  # fmt: skip


def _nominated(context: Context) -> set[str]:
    """Who could be requeued as things stand."""
    session = context.session
    if context.requeueing is None:
        context.requeueing = RequeueMemory(session)
    everyone = [w for _, w in sorted(session.workloads.items())]
    scene = NominationContext(session, context.fairness.now(), Contention(session), everyone, everyone)
    found = context.requeueing.registry.nominate(scene)
    return {n.workload for findings in found.values() for n in findings.nominations}
