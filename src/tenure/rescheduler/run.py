"""One pass of the rescheduler over a session: for whom, with which plan, and what is written down."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace

from tenure.engine.moves import MovePlan, MoveStep
from tenure.engine.plan import Reason
from tenure.engine.session import Session
from tenure.engine.workloads import RUNNING, NextStep, TaskState, WorkloadState
from tenure.model.workload import DEFAULT_GRACE_PERIOD
from tenure.rescheduler.enact import enact
from tenure.rescheduler.planner import Limits, make_room
from tenure.rescheduler.problem import Answer, Move, Problem
from tenure.rescheduler.solver import ProcessSolver
from tenure.rescheduler.view import CAUSE, Movable, View, view
from tenure.rescheduler.waves import Wave, sequence
from tenure.shields.delay import delay
from tenure.victims.pieces import pieces_of
from tenure.victims.recording import Price, prices, record
from tenure.victims.serving import held_back
from tenure.victims.state import Evicting
from tenure.victims.trial import Played

SECOND = 1_000_000
LEAST_PAUSE = 60 * SECOND
"""What got no room is not tried again sooner."""
MOST_CONTENDERS = 8
"""So many workloads are looked at in one cycle; further ones wait for the next."""


class Memory:
    """What is kept from cycle to cycle.

    The solver's process; when a workload that got no room is tried again; and who was moved lately: when, for whom,
    workload and task.
    """

    def __init__(self) -> None:
        self.solver = ProcessSolver()
        self.again: dict[str, int] = {}
        self.sent: list[tuple[int, str | None, str, str]] = []
        weakref.finalize(self, self.solver.close)


def run(state: Evicting, memory: Memory, waiting: Sequence[WorkloadState], draining: Sequence[int]) -> None:
    """Make room for those that wait, in their order, then empty nodes."""
    action = Rescheduling(state, memory)
    action.make_room(waiting)
    for node in draining:
        action.drain(node)


class Rescheduling:
    """One pass of the action."""

    def __init__(self, state: Evicting, memory: Memory) -> None:
        self.state = state
        self.memory = memory
        self.session = state.session
        self.settings = state.session.settings.rescheduler
        self.solver = memory.solver if self.settings.exact.enabled else None
        self.limits = Limits(self.settings.exact.node_limit, self.settings.exact.time_limit / SECOND)
        self.movable = Movable(state)

    # -- make room ------------------------------------------------------------------------------------------------

    def make_room(self, waiting: Sequence[WorkloadState]) -> None:
        """Find room for as many as possible together, those first that would be served first."""
        if self._under_way():
            return
        contenders = [w for w in waiting if self._may_contend(w)][:MOST_CONTENDERS]
        chosen: list[WorkloadState] = []
        best: tuple[View, Answer] | None = None
        for contender in contenders:
            found = self._plan([*chosen, contender])
            if found[1].feasible:
                chosen.append(contender)
                best = found
                continue
            self.memory.again[contender.key] = self.session.now + max(self.settings.pending_for, LEAST_PAUSE)
            self._report_failure(contender, found[1] if not chosen else self._plan([contender])[1])
        if best is not None and best[1].moves:
            self._carry_out(*best, chosen, "pending")

    def _under_way(self) -> bool:
        """Whether a wave has not landed yet while its contender waits for the next: nothing is planned until it has.

        What does not come back, because nobody recreates it or its place is gone, is waited for no longer than a
        nomination holds.
        """
        session = self.session
        since = session.now - session.settings.nomination_timeout - DEFAULT_GRACE_PERIOD
        sent = [(e.at, e.beneficiary, e.workload, e.task) for e in session.evictions if e.cause == CAUSE]
        self.memory.sent = [s for s in self.memory.sent if s[0] > since]
        for at, beneficiary, key, name in (*sent, *self.memory.sent):
            contender, moved = session.workloads.get(beneficiary or ""), session.workloads.get(key)
            if at <= since or contender is None or contender.entry is None or moved is None:
                continue
            if any(t.name == name and t.phase is not RUNNING for t in moved.tasks):
                return True
        return False

    def _may_contend(self, workload: WorkloadState) -> bool:
        step = workload.step
        if step is None or workload.entry is None or workload.key in self.state.evicted:
            return False
        if held_back(self.session, workload, step) or delay(self.session, workload) is not None:
            return False
        return self.memory.again.get(workload.key, 0) <= self.session.now and self._enough_in_all(workload, step)

    def _enough_in_all(self, workload: WorkloadState, step: NextStep) -> bool:
        """Whether all free room together would do: moves make none. A first look that spares most searches."""
        nodes = self.session.nodes
        free = nodes.room[nodes.rows : nodes.rows + nodes.amounts, nodes.ready].sum(axis=1).tolist()
        short = [n for n, have, need in zip(nodes.resources, free, step.amount, strict=False) if have < need]
        if short:
            text = f"no moves make room: on all nodes together there is not enough {', '.join(short)} free"
            self.state.obstacle(workload.key, Reason("NoMoveHelps", text, {"cause": CAUSE}))
        return not short

    def _plan(self, contenders: list[WorkloadState]) -> tuple[View, Answer]:
        made = view(self.state, self.movable.tasks(contenders), contenders)
        return made, make_room(made.problem, self.solver, self.limits)

    def _report_failure(self, contender: WorkloadState, answer: Answer) -> None:
        """Say why no move helps: the signal for an autoscaler."""
        certificate = answer.certificate
        self.state.obstacle(
            contender.key, Reason("NoMoveHelps", f"no moves make room: {certificate.reason}", {"cause": CAUSE})
        )
        self.state.plan.moves.append(_move_plan((contender.key,), "pending", answer, ()))

    # -- drain ----------------------------------------------------------------------------------------------------

    def drain(self, node: int) -> None:
        """Move everything off a node that may be moved and finds a place."""
        there = [t for t in self.movable.tasks(()) if t.node == node]
        stays = sum(t.active and t.node == node for t in self.session.on_node[node]) - len(there)
        made = view(self.state, self.movable.tasks(()), (), (node,))
        answer = make_room(made.problem, self.solver, self.limits)
        if there and answer.feasible:
            self._carry_out(made, answer, (), "drain")
        elif there:
            self.state.plan.moves.append(_move_plan((), "drain", answer, ()))
            self._drain_singly(there)
        if stays:
            name = self.session.nodes.names[node]
            self.state.plan.warnings.append(f"drain of {name}: {stays} tasks stay that must not be moved")

    def _drain_singly(self, there: Sequence[TaskState]) -> None:
        """Not all can land: move those that can, the cheapest first, without moving anything else."""
        price = prices_of(self.state, there)
        for task in sorted(there, key=lambda t: (price[t][0], t.workload.key, t.index)):
            alone = [t for t in self.movable.tasks(()) if t is task]
            if not alone:
                continue
            made = view(self.state, alone, (), (task.node,))
            answer = make_room(made.problem, None)
            if answer.feasible:
                self._carry_out(made, answer, (), "drain")

    # -- carrying out ---------------------------------------------------------------------------------------------

    def _carry_out(self, made: View, answer: Answer, contenders: Sequence[WorkloadState], trigger: str) -> None:
        """Sequence a plan, carry it out on the session and write it into the plan of the cycle."""
        keys = tuple(w.key for w in contenders)
        waves = sequence(made.problem, answer.moves, self.settings.moves)
        if waves is None:
            self._give_up(keys, trigger, answer, "no order of the moves keeps what is down within the budgets")
            return
        last = _in_one_go(made.problem, waves)
        legs = [leg for wave in (waves if last else waves[:1]) for leg in wave]
        wave_of = {made.tasks[leg.move.task]: n for n, wave in enumerate(waves) for leg in wave}
        price = prices_of(self.state, [made.tasks[leg.move.task] for leg in legs])
        landings = answer.landings if last else ()
        done = enact(self.state, made, [leg.move for leg in legs], landings)
        if done is None:
            why = "the places do not suit once parts of GPUs and constraints between tasks are looked at"
            self._give_up(keys, trigger, answer, why)
            return
        self.state.plan.moves.append(_move_plan(keys, trigger, answer, _waves(self.session, made, waves)))
        self._record(done.evicted, done.placed, price, contenders, wave_of, trigger)

    def _give_up(self, keys: tuple[str, ...], trigger: str, answer: Answer, why: str) -> None:
        certificate = replace(answer.certificate, cost=None, method="unknown", reason=why)
        self.state.plan.moves.append(_move_plan(keys, trigger, Answer((), (), certificate), ()))
        for key in keys:
            self.state.obstacle(key, Reason("NoMoveHelps", f"no moves make room: {why}", {"cause": CAUSE}))

    def _record(
        self,
        evicted: Sequence[TaskState],
        placed: list[TaskState],
        price: Price,
        contenders: Sequence[WorkloadState],
        wave_of: dict[TaskState, int],
        trigger: str,
    ) -> None:
        """Write the steps: evictions wave by wave, then what is promised."""
        whom = ", ".join(w.key for w in contenders)
        aim = f"moves so that {whom} fits" if whom else "moves off a node that is to be emptied"
        first = contenders[0] if contenders else None
        moved: set[str] = {t.workload.key for t in evicted}
        for wave in sorted(set(wave_of.values())):
            tasks = [t for t in evicted if wave_of[t] == wave]

            def reason(workload: WorkloadState, cost: float) -> str:
                figure = f"moving it costs {cost:.1f} weighted resource-seconds"
                return f"{workload.key} {aim} (reschedule, {trigger}); {figure}"

            record(self.state, Played([], [], evicted=tasks), price, CAUSE, first, reason, wave=wave)
        whose = first.key if first is not None else None
        self.memory.sent += [(self.session.now, whose, t.workload.key, t.name) for t in evicted]
        record(self.state, Played([], placed), {}, CAUSE, first, lambda *_: "")
        self.state.moved.update(moved)


def prices_of(state: Evicting, tasks: Sequence[TaskState]) -> Price:
    """What moving each of these tasks costs, before it is done."""
    found: Price = {}
    for workload in dict.fromkeys(t.workload for t in tasks):
        found.update(prices(state, pieces_of(state.session, workload, frozenset(), core=True), CAUSE, None))
    return {t: found[t] for t in tasks}


def _in_one_go(problem: Problem, waves: Sequence[Wave]) -> bool:
    """Whether all waves may leave at once: nothing then waits for a place that is not promised already.

    Reserve-first, and budgets on what is down at one time, make later waves wait: the next cycle plans them anew on
    what is there by then.
    """
    if len(waves) <= 1:
        return True
    if any(leg.mode == "reserve-first" for wave in waves for leg in wave):
        return False
    down = [
        sum(bound.weights.get(leg.move.task, 0) for wave in waves for leg in wave) <= max(0, bound.limit)
        for bound in problem.bounds
        if bound.concurrent
    ]
    return all(down)


def _waves(session: Session, made: View, waves: Sequence[Wave]) -> tuple[tuple[MoveStep, ...], ...]:
    names = session.nodes.names
    return tuple(tuple(_step(names, made, leg.move, leg.mode) for leg in wave) for wave in waves)


def _step(names: Sequence[str], made: View, move: Move, mode: str) -> MoveStep:
    task = made.tasks[move.task]
    return MoveStep(task.workload.key, task.name, names[move.origin], names[move.target], mode)


def _move_plan(
    keys: tuple[str, ...], trigger: str, answer: Answer, waves: tuple[tuple[MoveStep, ...], ...]
) -> MovePlan:
    c = answer.certificate
    return MovePlan(keys, trigger, c.cost, c.lower_bound, c.gap, c.method, c.reason, waves)
