"""The sets of victims of a plan, by contender, and whether a contender would keep its place."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from tenure.actions.context import Context
from tenure.engine.plan import EVICTING
from tenure.engine.refusal import Refusal
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.model.settings import Cause
from tenure.victims.dry_run.outcome import AcceptedSet, Enough

Sets = dict[WorkloadState, tuple[Cause, list[TaskState]]]
"""By contender, the last cause that evicts for it, and all that goes for it."""


def sets_of(context: Context, staying: Collection[TaskState] = ()) -> Sets:
    """Give what is evicted for contenders that were promised something by this plan alone, but for those ``staying``.

    Not the sets of which something was under notice before: it was judged when the cycle began.
    """
    found, workloads = Sets(), context.session.workloads
    for step in context.plan.steps:
        contender = workloads.get(step.beneficiary or "")
        if step.action not in EVICTING or contender is None or step.cause is None or step.cause == "reschedule":
            continue
        task = workloads[step.workload].tasks[step.task_index]
        if task not in staying:
            tasks = found[contender][1] if contender in found else []
            tasks.append(task)
            found[contender] = cast("Cause", step.cause), tasks
    paid = {t.workload for t in context.paid if t.nominated >= 0}
    return {
        contender: (cause, tasks)
        for contender, (cause, tasks) in found.items()
        if contender not in paid and not any(t in context.noticed or t.leaving < 0 or t.stuck for t in tasks)
    }


def judged(context: Context, sets: Sets, contender: WorkloadState, enough: Enough | None = None) -> Refusal | None:
    """Refuse a set if another would take the contender's place once all that is decided has come true.

    With ``enough``, also once what follows for one of its victims has; only that which comes before it is enough.
    """
    aftermath, (cause, tasks) = context.aftermath, sets[contender]
    assert aftermath is not None
    promised = [t for t in contender.tasks if t.nominated >= 0]
    if not aftermath.asked.is_at_risk(contender, promised, context.placer):
        return None
    played = AcceptedSet([], promised, evicted=tasks)
    return aftermath.judge(contender, cause, played, context.fairness.now(), enough=enough)
