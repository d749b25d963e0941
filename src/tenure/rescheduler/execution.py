"""What all triggers share: planning on the session, carrying a plan out, and writing it into the plan of the cycle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tenure.engine.moves import MovePlan, MoveStep
from tenure.engine.plan import Reason, Refused
from tenure.engine.refusal import Refusal
from tenure.engine.state.workloads import RUNNING, TaskState, WorkloadState
from tenure.model.values.readable import weighted_hours
from tenure.model.workload import DEFAULT_GRACE_PERIOD
from tenure.rescheduler.certificate import in_plan
from tenure.rescheduler.enact import enact
from tenure.rescheduler.heuristic.repair import suitable
from tenure.rescheduler.memory import CAUSE, UNDER_WAY, MoveMemory, PastMove, moves_of
from tenure.rescheduler.milp.budget import BudgetedSolver
from tenure.rescheduler.planner import PlannerLimits
from tenure.rescheduler.problem.build import MovableTasks, ProblemView, view
from tenure.rescheduler.problem.definition import MoveAnswer, MoveBound, MoveProblem, TaskMove
from tenure.rescheduler.waves import Wave, sequence
from tenure.victims.dry_run.outcome import AcceptedSet
from tenure.victims.recording.record import Price, prices, record
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.pieces import pieces_of

SECOND = 1_000_000
UNSUITED = "the places do not suit once parts of GPUs and constraints between tasks are looked at"

AIMS = {
    "drain": "moves off a node that is to be emptied",
    "hot-node": "moves off a node that is hot",
    "new-nodes": "moves to a new node, which improves the layout",
    "background": "moves because that improves the layout",
}
"""The purpose of moves for which no workload waits, by trigger."""


@dataclass(frozen=True, slots=True)
class LayoutGain:
    """The gain of moves for the layout, in weighted resources: see `tenure.engine.moves.MovePlan`."""

    gain: float
    net: float
    bound: float


class TriggerExecution:
    """The pass of the rescheduler over a session, as its triggers share it."""

    def __init__(self, state: EvictionState, memory: MoveMemory) -> None:
        self.state = state
        self.memory = memory
        self.session = state.session
        self.settings = state.session.settings.rescheduler
        exact = self.settings.exact
        seconds = exact.time_limit / SECOND
        self.solver = BudgetedSolver(memory.solver, exact.effort, seconds) if exact.enabled else None
        self.limits = PlannerLimits(exact.node_limit, seconds)
        self.movable = MovableTasks(state, memory)
        self.moved = False

    def plan(
        self,
        tasks: Sequence[TaskState],
        contenders: Sequence[WorkloadState] = (),
        emptied: Sequence[int] = (),
        cooled: Mapping[int, int] | None = None,
        *,
        exact: bool = True,
        bounds: Sequence[MoveBound] = (),
    ) -> tuple[ProblemView, MoveAnswer]:
        """Find the cheapest moves of ``tasks``, within ``bounds`` as well, after which all that is asked for holds."""
        prices = self.movable.prices(tasks)
        made = view(self.state, tasks, contenders, emptied, cooled, exact=True, prices=prices)
        if bounds:
            made = replace(made, problem=replace(made.problem, bounds=(*made.problem.bounds, *bounds)))
        answer = suitable(self.state, made, self.solver if exact else None, self.limits)
        return made, replace(answer, prices=made.prices, unit=made.unit)

    def landing(self) -> list[PastMove]:
        """Give the moves that have not landed yet.

        What does not come back, because no controller recreates it or its place is gone, is waited for no longer than a
        nomination holds.
        """
        session, found = self.session, []
        since = session.now - session.settings.nomination_timeout - DEFAULT_GRACE_PERIOD
        for move in moves_of(session, self.memory):
            if move.cause != CAUSE or move.at <= since:
                continue
            moved = session.workloads.get(move.workload)
            if moved is not None and any(t.name == move.task and t.phase is not RUNNING for t in moved.tasks):
                found.append(move)
        return found

    def look_again(self, earliest: int) -> None:
        """Look again once the first of the rules has ended that hold tasks back, and not before a time (µs).

        As long as nothing else happens, what was found will not be another before that.
        """
        if self.movable.until is not None:
            self.state.wake_at(max(self.movable.until, earliest))

    def report(
        self, keys: Sequence[str], trigger: str, answer: MoveAnswer, waves: Sequence[Wave] = (),
        made: ProblemView | None = None, worth: LayoutGain | None = None,
        nodes: Sequence[int] = (), leaving: int | None = None,
    ) -> None:  # fmt: skip
        """Write what was planned into the plan of the cycle; ``nodes`` and ``leaving`` as in `MovePlan`."""
        c = in_plan(answer)
        steps = () if made is None else tuple(tuple(self._step(made, leg.move, leg.mode) for leg in w) for w in waves)
        names = tuple(self.session.nodes.names[n] for n in nodes)
        plan = MovePlan(tuple(keys), trigger, c.cost, c.lower_bound, c.gap, c.method, c.reason, steps, nodes=names,
                        leaving=leaving)  # fmt: skip
        if worth is not None:
            gap = (worth.bound - worth.net) / worth.bound if worth.bound else 0.0
            plan = replace(plan, gain=worth.gain, net=worth.net, bound=worth.bound, gap=gap)
        self.state.plan.moves.append(plan)

    def _step(self, made: ProblemView, move: TaskMove, mode: str) -> MoveStep:
        task, names = made.tasks[move.task], self.session.nodes.names
        return MoveStep(task.workload.key, task.name, names[move.origin], names[move.target], mode)

    def carry_out(
        self, made: ProblemView, answer: MoveAnswer, contenders: Sequence[WorkloadState], trigger: str,
        worth: LayoutGain | None = None, nodes: Sequence[int] = (),
    ) -> bool:  # fmt: skip
        """Sequence a plan, carry it out on the session and write it down; whether anything moves."""
        keys = tuple(w.key for w in contenders)
        waves = sequence(made.problem, answer.moves, self.settings.moves)
        if waves is None:
            why = "no order of the moves keeps what is down within the budgets"
            self._give_up(keys, trigger, answer, why, nodes)
            return False
        refusal = self._refusal([made.tasks[m.task] for m in answer.moves], contenders)
        if refusal is not None:
            self._give_up(keys, trigger, answer, refusal.message, nodes)
            return False
        last = _in_one_go(made.problem, waves)
        legs = [leg for wave in (waves if last else waves[:1]) for leg in wave]
        wave_of = {made.tasks[leg.move.task]: n for n, wave in enumerate(waves) for leg in wave}
        price = prices_of(self.state, [made.tasks[leg.move.task] for leg in legs])
        done = enact(self.state, made, [leg.move for leg in legs], answer.landings if last else ())
        self.movable.forget()
        if done is None or isinstance(done, Refusal):
            self._give_up(keys, trigger, answer, UNSUITED if done is None else done.message, nodes)
            return False
        leaving, gone = len(waves) if last else 1, set(done.evicted)
        moving = [tuple(g for g in w if n >= leaving or made.tasks[g.move.task] in gone) for n, w in enumerate(waves)]
        self.report(keys, trigger, answer, moving, made, worth, nodes, leaving)
        self._record(done.evicted, done.placed, price, contenders, wave_of, trigger)
        self.moved = True
        self.memory.unfinished = not last
        for key in keys if not last else ():
            text = f"room is made for it in {len(waves)} waves of moves, of which the first leaves now"
            self.state.obstacle(key, Reason(UNDER_WAY, text, {"cause": CAUSE, "waves": len(waves)}))
        return True

    def _refusal(self, tasks: Sequence[TaskState], contenders: Sequence[WorkloadState]) -> Refusal | None:
        """Give the first no of a plugin to the plan as a whole; budgets and minimum runtime are in it already."""
        for contender in contenders or (None,):
            refusal = self.state.plugins.ask_others_of_plan(self.session, CAUSE, contender, tasks)
            if refusal is not None:
                whose = ", ".join(dict.fromkeys(t.workload.key for t in tasks))
                whom = None if contender is None else contender.key
                refused = Refused(whose, CAUSE, whom, refusal.shield, refusal.until, refusal.message)
                self.state.plan.refused.append(refused)
                return refusal
        return None

    def _give_up(
        self, keys: tuple[str, ...], trigger: str, answer: MoveAnswer, why: str, nodes: Sequence[int] = ()
    ) -> None:
        certificate = replace(answer.certificate, cost=None, method="unknown", reason=why)
        self.report(keys, trigger, replace(answer, moves=(), landings=(), certificate=certificate), nodes=nodes)
        for key in keys:
            self.state.obstacle(key, Reason("NoMoveHelps", f"no moves make room: {why}", {"cause": CAUSE, "held": {}}))

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
        first = contenders[0] if contenders else None
        names = self.session.nodes.names
        for wave in sorted(set(wave_of.values())):
            tasks = [t for t in evicted if wave_of[t] == wave]
            record(
                self.state,
                AcceptedSet([], [], evicted=tasks),
                price,
                CAUSE,
                first,
                _why(contenders, trigger),
                wave=wave,
            )
        whose = first.key if first is not None else None
        self.memory.sent += [
            PastMove(self.session.now, whose, t.workload.key, t.name, names[t.leaving], names[t.nominated])
            for t in evicted
        ]
        record(self.state, AcceptedSet([], placed), {}, CAUSE, first, lambda *_: "")
        self.state.moved.update(t.workload.key for t in evicted)


def _why(contenders: Sequence[WorkloadState], trigger: str) -> Callable[[WorkloadState, float], str]:
    whom = ", ".join(w.key for w in contenders)
    aim = f"moves so that {whom} fits" if whom else AIMS.get(trigger, "moves")

    def reason(workload: WorkloadState, cost: float) -> str:
        figure = f"moving it costs {weighted_hours(cost)}"
        return f"{workload.key} {aim} ({trigger}); {figure}"

    return reason


def prices_of(state: EvictionState, tasks: Sequence[TaskState]) -> Price:
    """What moving each of these tasks costs, before it is done."""
    found: Price = {}
    for workload in dict.fromkeys(t.workload for t in tasks):
        found.update(prices(state, pieces_of(state.session, workload, frozenset(), core=True), CAUSE, None))
    return {t: found[t] for t in tasks}


def _in_one_go(problem: MoveProblem, waves: Sequence[Wave]) -> bool:
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
