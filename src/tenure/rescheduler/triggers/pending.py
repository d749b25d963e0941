"""Make room for workloads that have been pending for `pendingFor`: whole gangs, several at once."""

from __future__ import annotations

from collections.abc import Sequence

from tenure.engine.allocation import held_back
from tenure.engine.plan import Reason
from tenure.engine.workloads import Demand, WorkloadState
from tenure.rescheduler.execution import SECOND, TriggerExecution
from tenure.rescheduler.memory import CAUSE, UNDER_WAY
from tenure.rescheduler.milp.cover_bounds import NEVER
from tenure.rescheduler.problem.build import ProblemView, held
from tenure.rescheduler.problem.definition import Certificate, MoveAnswer
from tenure.rescheduler.problem.infeasible import too_little
from tenure.shields.delay import delay

LEAST_PAUSE = 60 * SECOND
"""What got no room is not tried again sooner."""
MOST_CONTENDERS = 8
"""So many workloads are looked at in one cycle; further ones wait for the next."""


def act(action: TriggerExecution, waiting: Sequence[WorkloadState]) -> None:
    """Find room for as many as possible together, those first that would be served first."""
    if _wave_under_way(action):
        return
    memory, session = action.memory, action.session
    contenders = [w for w in waiting if _may_contend(action, w)][:MOST_CONTENDERS]
    chosen: list[WorkloadState] = []
    best: tuple[ProblemView, MoveAnswer] | None = None
    for contender in contenders:
        together = [*chosen, contender]
        if (best is None or not best[1].moves) and _fit_as_it_is(action, together):
            chosen.append(contender)
            memory.succeeded(contender.key)
            continue
        found = _plan(action, together)
        if found[1].feasible:
            chosen.append(contender)
            memory.succeeded(contender.key)
            best = found
            continue
        memory.failed(contender.key, session.now, max(action.settings.pending_for, LEAST_PAUSE))
        _report_failure(action, contender, found[1], len(chosen))
    if best is not None and best[1].moves and not action.carry_out(*best, chosen, "pending"):
        for contender in chosen:
            memory.failed(contender.key, session.now, max(action.settings.pending_for, LEAST_PAUSE))


def _wave_under_way(action: TriggerExecution) -> bool:
    """Whether a wave has not landed yet while its contender waits for the next: nothing is planned until it has."""
    workloads = action.session.workloads
    found = (workloads.get(m.beneficiary or "") for m in action.landing())
    waiting = list(dict.fromkeys(w for w in found if w is not None and w.entry is not None))
    for workload in waiting:
        text = "what moves so that it fits has not landed yet"
        action.state.obstacle(workload.key, Reason(UNDER_WAY, text, {"cause": CAUSE}))
    return bool(waiting)


def _may_contend(action: TriggerExecution, workload: WorkloadState) -> bool:
    step, session = workload.step, action.session
    if step is None or workload.entry is None or workload.key in action.state.evicted:
        return False
    if held_back(session, workload, step) or delay(session, workload) is not None:
        return False
    return not action.memory.rests(workload.key, session.now) and _enough_in_all(action, workload, step)


def _enough_in_all(action: TriggerExecution, workload: WorkloadState, step: Demand) -> bool:
    """Whether all free room together would do: moves make none. A first look that spares most searches."""
    nodes = action.session.nodes
    free = nodes.room[nodes.rows : nodes.rows + nodes.amounts, nodes.ready].sum(axis=1).tolist()
    short = [(n, have, need) for n, have, need in zip(nodes.resources, free, step.amount, strict=False) if have < need]
    if short and action.state.detailed:
        certificate = Certificate(cost=None, lower_bound=NEVER, method="impossible", reason=too_little(*short[0]))
        _report(action, workload, MoveAnswer((), (), certificate), "")
    return not short


def _fit_as_it_is(action: TriggerExecution, contenders: list[WorkloadState]) -> bool:
    """Whether there is room without a move: what still waits then, waits for its turn, and that is cheap to see."""
    return action.plan((), contenders, exact=False)[1].feasible


def _plan(action: TriggerExecution, contenders: list[WorkloadState]) -> tuple[ProblemView, MoveAnswer]:
    return action.plan(action.movable.tasks(contenders), contenders)


def _report_failure(action: TriggerExecution, contender: WorkloadState, answer: MoveAnswer, before: int) -> None:
    """Say why no move helps, beside as many as are served before: the signal for an autoscaler."""
    names, beside = "", ""
    if before:
        beside = f"; room is kept for {before} {'workload' if before == 1 else 'workloads'} served before"
    if action.state.detailed:
        counts = sorted(held(action.movable, [contender]).items())
        names = ", ".join(f"{number} by {name}" for name, number in counts)
    _report(action, contender, answer, beside + (f"; pods held where they are: {names}" if names else ""))


def _report(action: TriggerExecution, contender: WorkloadState, answer: MoveAnswer, external: str) -> None:
    text = f"no moves make room: {answer.certificate.reason}{external}"
    action.state.obstacle(contender.key, Reason("NoMoveHelps", text, {"cause": CAUSE}))
    action.report((contender.key,), "pending", answer)
