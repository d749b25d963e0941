"""Make room for workloads that have been pending for `pendingFor`: whole gangs, several at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from tenure.engine.plan import Reason
from tenure.engine.serving.allocation import held_back
from tenure.engine.serving.volume_bound import VolumeBound
from tenure.engine.state.workloads import Demand, TaskState, WorkloadState
from tenure.rescheduler.execution import TriggerExecution
from tenure.rescheduler.fewest_spared import Planned, spared_last
from tenure.rescheduler.memory import CAUSE, UNDER_WAY
from tenure.rescheduler.milp.cover_bounds import NEVER, bounds_of
from tenure.rescheduler.problem.build import ProblemView, held, view
from tenure.rescheduler.problem.definition import Certificate, MoveAnswer, MoveBound
from tenure.rescheduler.problem.infeasible import too_few, too_little, why_never
from tenure.shields.delay import LEAST_PAUSE, delay, told
from tenure.shields.opt_out import may_go
from tenure.victims.bounds.room_demand import room_in_all, room_of_all

MOST_CONTENDERS = 8
"""So many workloads are looked at in one cycle; further ones wait for the next."""


def act(action: TriggerExecution, waiting: Sequence[WorkloadState]) -> None:
    """Find room for as many as possible together, those first that would be served first."""
    if _wave_under_way(action):
        return
    memory, session = action.memory, action.session
    room = room_of_all(session)
    contenders = [w for w in waiting if _may_contend(action, w, room)]
    if len(contenders) > MOST_CONTENDERS:
        _look_again(action, memory.look_at)
    chosen: list[WorkloadState] = []
    best: tuple[ProblemView, MoveAnswer] | None = None
    for contender in contenders[:MOST_CONTENDERS]:
        found, answer = _room_for(action, [*chosen, contender], as_it_is=best is None or not best[1].moves)
        if found is not None and answer.feasible:
            chosen.append(contender)
            memory.succeeded(contender.key)
            best = found, answer
        else:
            _rest(action, contender)
            _report_failure(action, contender, answer, len(chosen))
    if best is not None and best[1].moves and not action.carry_out(*best, chosen, "pending"):
        for contender in chosen:
            _rest(action, contender)


def _rest(action: TriggerExecution, contender: WorkloadState) -> None:
    """Leave what got no room alone for a while.

    If nothing else happens it would get none after that either, unless a rule ends that held back what could move.
    """
    memory, pause = action.memory, max(action.settings.pending_for, LEAST_PAUSE)
    memory.failed(contender.key, action.session.now, pause)
    until = action.movable.until
    if until is not None:
        _look_again(action, max(until, memory.again[contender.key]))


def _look_again(action: TriggerExecution, at: int) -> None:
    """Look again at the latest at a time (µs since the epoch), also if nothing happens until then."""
    action.memory.look_at = min(action.memory.look_at, at)
    action.state.wake_at(at)


def _room_for(action: TriggerExecution, contenders: list[WorkloadState], *, as_it_is: bool) -> Planned:
    """Find room for all of some contenders: where there is some ``as_it_is``, without moves, which is cheap to see.

    What fits without a move waits for its turn.
    """
    if as_it_is:
        at_once = action.plan((), contenders, exact=False)
        if at_once[1].feasible:
            return at_once
    movable = action.movable.tasks(contenders)
    plan, everybody = partial(_moving, action, contenders), partial(_everybody, action, contenders)
    return spared_last(action.session, plan, movable, everybody)


def _moving(
    action: TriggerExecution,
    contenders: Sequence[WorkloadState],
    movable: Sequence[TaskState],
    bounds: Sequence[MoveBound],
) -> Planned:
    """Find room by moves of some tasks."""
    short = _too_little_in_all(action, movable, contenders)
    return action.plan(movable, contenders, bounds=bounds) if short is None else (None, short)


def _everybody(action: TriggerExecution, contenders: Sequence[WorkloadState]) -> Sequence[TaskState]:
    """Give what may be moved where nothing else makes room: what asked to be spared too, but for no surplus task."""
    return action.movable.tasks(contenders, everybody=all(may_go(CAUSE, w) for w in contenders))


def _wave_under_way(action: TriggerExecution) -> bool:
    """Whether a wave has not landed yet while its contender waits for the next: nothing is planned until it has."""
    workloads = action.session.workloads
    found = (workloads.get(m.beneficiary or "") for m in action.landing())
    waiting = list(dict.fromkeys(w for w in found if w is not None and w.entry is not None))
    for workload in waiting:
        text = "what moves so that it fits has not landed yet"
        action.state.obstacle(workload.key, Reason(UNDER_WAY, text, {"cause": CAUSE}))
    return bool(waiting)


def _may_contend(action: TriggerExecution, workload: WorkloadState, room: Sequence[int]) -> bool:
    step, session = workload.step, action.session
    if step is None or workload.entry is None:
        return False
    if workload.key in action.state.evicted or workload.key in action.state.given_up:
        _look_again(action, action.memory.look_at)
        return False
    refusal = delay(session, workload)
    if refusal is not None:
        action.state.obstacle(workload.key, told(refusal))
        if refusal.until is not None:
            _look_again(action, refusal.until)
        return False
    if held_back(session, workload, step):
        return False
    return not action.memory.rests(workload.key, session.now) and _enough_in_all(action, workload, step, room)


def _enough_in_all(action: TriggerExecution, workload: WorkloadState, step: Demand, room: Sequence[int]) -> bool:
    """Whether all free ``room`` together would do: moves make none. A first look that spares most searches."""
    if room_in_all(action.session, step, room):
        return True
    if action.state.detailed:
        each = zip(action.session.nodes.resources, room, step.amount, strict=False)
        short = [(name, have, need) for name, have, need in each if have < need]
        _report(action, workload, _impossible(too_little(*short[0])))
    return False


def _too_little_in_all(
    action: TriggerExecution, movable: Sequence[TaskState], contenders: Sequence[WorkloadState]
) -> MoveAnswer | None:
    """Say that no arrangement of what may be moved leaves the room, where the volume of nodes and devices shows it."""
    wanted = [t for w in contenders if w.step is not None for t in w.step.tasks]
    short = VolumeBound(action.session.nodes).shortage(movable, wanted)
    if short is None:
        return None
    reason = ""
    if action.state.detailed:  # what the largest hole is says more
        problem = view(action.state, movable, contenders).problem
        reason = why_never(problem, bounds_of(problem))
    return _impossible(reason or too_few(short))


def _impossible(reason: str) -> MoveAnswer:
    return MoveAnswer((), (), Certificate(cost=None, lower_bound=NEVER, method="impossible", reason=reason))


def _report_failure(action: TriggerExecution, contender: WorkloadState, answer: MoveAnswer, before: int) -> None:
    """Say why no move helps, beside as many as are served before: the signal for an autoscaler."""
    if before:
        beside = f"; room is kept for {before} {'workload' if before == 1 else 'workloads'} served before"
        certificate = replace(answer.certificate, reason=answer.certificate.reason + beside)
        answer = replace(answer, certificate=certificate)
    everybody, is_told = may_go(CAUSE, contender), action.state.detailed
    _report(action, contender, answer, held(action.movable, [contender], everybody=everybody) if is_told else {})


def _report(
    action: TriggerExecution, contender: WorkloadState, answer: MoveAnswer, stay: Mapping[str, int] | None = None
) -> None:
    """Say it with what had to ``stay`` where it is: how many pods by which rule."""
    counts = dict(sorted((stay or {}).items()))
    names = ", ".join(f"{number} by {name}" for name, number in counts.items())
    text = f"no moves make room: {answer.certificate.reason}"
    text += f"; pods held where they are: {names}" if names else ""
    action.state.obstacle(contender.key, Reason("NoMoveHelps", text, {"cause": CAUSE, "held": counts}))
    action.report((contender.key,), "pending", answer)
