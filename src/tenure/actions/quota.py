"""Quota: bring queues back under a max that was lowered below what they use (spec: quota preemption)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tenure.actions.context import Context
from tenure.engine.plan import EVICTING, Plan
from tenure.engine.state.cost import MICRO
from tenure.engine.state.workloads import TaskState
from tenure.model.modes import enabled_for
from tenure.model.settings import ExactSettings
from tenure.quota.follow_up_cuts import FollowUpCut
from tenure.quota.rounds import QuotaRound
from tenure.quota.selection_program import LinearProgram, Solve
from tenure.rescheduler.memory import MoveMemory
from tenure.victims.recording.state import EvictionState


def quota(context: Context) -> None:
    """Arm and clear deadlines; of queues whose deadline has passed, evict what is over their max."""
    if context.session.settings.quota_preemption.enabled or _armed(context):
        QuotaRound(context.evicting(), _solver(context), partial(_follow, context)).run()


def enforce_ahead(context: Context, thought: Callable[[], EvictionState]) -> list[TaskState]:
    """Evict on the session what quotas would in a later cycle, as if nothing followed; gives the tasks.

    ``thought`` gives the state of the scenario of that cycle; minimum runtimes hold as they do now. What is noted of
    deadlines is not kept.
    """
    if "quota" not in enabled_for(context.session.settings, "") or not _armed(context):
        return []
    queues, plan = context.session.queues.queues, Plan(context.session.now)
    noted = list(queues)
    state = replace(thought(), plugins=context.evicting().plugins, plan=plan, evicted=set(), before={}, reasons={})
    QuotaRound(state, _solver(context), lambda _: []).run()
    queues[:] = noted
    steps = (s for s in plan.steps if s.action in EVICTING)
    return [context.session.workloads[s.workload].tasks[s.task_index] for s in steps]


def _armed(context: Context) -> bool:
    """Whether a deadline is noted for some queue."""
    return any(q.status is not None and q.status.quota_preemption for q in context.session.queues.queues)


def _solver(context: Context) -> Solve | None:
    exact = context.session.settings.rescheduler.exact
    return partial(_solve, context, exact) if exact.enabled else None


def _follow(context: Context, tasks: Sequence[TaskState]) -> list[FollowUpCut]:
    """Say what enabled causes would evict or move next for those that lose tasks to a quota; nothing is evicted yet."""
    follow_ups = () if context.aftermath is None else context.aftermath.of("quota", tasks)
    return [FollowUpCut(f.of, frozenset(f.evict)) for f in follow_ups]


def _solve(context: Context, settings: ExactSettings, written: LinearProgram) -> list[float] | None:
    """Have a program solved by the rescheduler's solver; None if no optimum is proved.

    One of more columns than the rescheduler solves at once is not begun: it would end by the clock, and not by steps.
    """
    from tenure.rescheduler.milp.program import MixedIntegerProgram  # noqa: PLC0415  only loaded where there is something to solve
    from tenure.rescheduler.planner import MOST_COLUMNS  # noqa: PLC0415

    if len(written.cost) > MOST_COLUMNS:
        return None
    if not isinstance(context.rescheduling, MoveMemory):
        context.rescheduling = MoveMemory()
    entries = [(i, column, v) for i, line in enumerate(written.lines) for column, v in line.items()]
    rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
    program = MixedIntegerProgram(
        [], [], np.array(written.cost), np.array(written.upper),
        np.array(rows, np.int64), np.array(columns, np.int64), np.array(values, np.float64),
        np.array(written.low), np.array(written.high), np.array(written.start),
        broken=np.array(written.broken, np.int64), loose=True,
    )  # fmt: skip
    seconds = settings.time_limit / MICRO
    found = context.rescheduling.solver.solve(program, node_limit=settings.node_limit, time_limit=seconds)
    context.rescheduling.let_go()
    return found.values.tolist() if found.optimal and found.values is not None else None
