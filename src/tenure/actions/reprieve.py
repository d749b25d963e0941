"""Takes back, at the end of a cycle, what its plan evicts and does not need (spec: choosing victims, "reprieve").

Each set of victims is the best for its contender as things were after the sets before it. What one of them frees beyond
its contender's need may be room for those of an earlier one, or for a victim of that, which would run again as soon as
all is carried out: such a victim lost its work for nothing. It stays where it is, and what was promised its room gets
other room. What is judged is the whole plan, whatever causes its evictions have: a victim stays if then, all that wait
being served in order, no promise is lost, and all are placed that would be without it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile
from typing import Final

import numpy as np

from tenure.actions.context import Context
from tenure.actions.victim_sets import judged, sets_of
from tenure.engine.plan import EVICTING
from tenure.engine.serving.allocation import promise, serve
from tenure.engine.state.cost import MICRO
from tenure.engine.state.notices import recall
from tenure.engine.state.workloads import GROW, TaskState, WorkloadState
from tenure.model.settings import Cause
from tenure.victims.dry_run.outcome import is_back, to_the_end
from tenure.victims.recording.record import place_step
from tenure.victims.recording.state import EvictionState
from tenure.victims.search.trials import SearchBudget

FOR_A_CONTENDER: Final[frozenset[Cause | None]] = frozenset(("reclaim", "preempt", "requeue"))
"""Causes that evict for a contender, and move nothing."""

MOST_TRIED: Final = 64
"""How often it is tried, in one cycle, whether all are served if some victims stay."""

MOST_JUDGED: Final = 8
"""How often it is looked at, in one cycle, whether a contender would lose its place if some victims stay; the sets of a
plan that has many are judged once it is finished, and given up one by one.
"""


def reprieve(context: Context) -> None:
    """Let victims stay that a plan does not need; not those under notice, which were judged when the cycle began."""
    state = context.evictions
    if state is not None and state.plan is context.plan:
        Reprieve(context, state).run()


class Reprieve:
    """The victims of a finished plan, and what is done to let some of them stay.

    ``victims``: what is tried together: all that one contender needs, each workload, and each surplus task; each time
    the dearest first. ``served``: how many tasks of each workload would be placed once all that is decided has come
    true.
    """

    def __init__(self, context: Context, state: EvictionState) -> None:
        self.context = context
        self.state = state
        self.session = context.session
        self.placer = context.placer
        self.moved = {(s.workload, s.task_index) for s in context.plan.steps if s.to is not None}
        self.victims = _victims(context, state)
        self.tries = MOST_TRIED
        self.judgements = SearchBudget(MOST_JUDGED)
        self.served = Counter[WorkloadState]()
        self._look()

    def run(self) -> None:
        """Let all stay that may: what runs on may, beside a reservation, let another be served as well."""
        if not any(any(True for _ in self._ways(tasks)) for tasks in self.victims):
            return
        with self.session.scenario():
            self.served = Counter(t.workload for t in serve_all(self.context))
        while self._some_stay():
            """Look at the others again."""

    def _some_stay(self) -> bool:
        """Let those stay that may as things are; gives whether there are any."""
        found = False
        for number in range(len(self.victims)):
            tasks = self.victims[number]
            stays = next((some for some, promised in self._ways(tasks) if self._stay(some, promised)), None)
            if stays is not None:
                for workload in dict.fromkeys(t.workload for t in stays):
                    take_back(self.context, self.state, workload, [t for t in stays if t.workload is workload])
                self.victims = [tuple(t for t in others if t not in stays) for others in self.victims]
                self._look()
                found = True
        return found

    def _look(self) -> None:
        """Note by node what is promised by this plan, but where moved tasks land; and what room is left in all."""
        nodes = self.session.nodes
        self._left = np.maximum(nodes.room[nodes.rows :], 0).sum(axis=1)
        self._promised: dict[int, list[TaskState]] = defaultdict(list)
        for task in self.session.nominated:
            if task not in self.context.paid and _key(task) not in self.moved:
                self._promised[task.nominated].append(task)

    def _ways(self, tasks: Sequence[TaskState]) -> Iterator[tuple[Sequence[TaskState], list[TaskState]]]:
        """Give what may stay, and the promises to withdraw for it: none beside which it fits, then all on its nodes.

        Of one workload a part may stay where it fits: its core, or some of its surplus.
        """
        fitting = self._fitting(tasks)
        whole = len(fitting) == len(tasks)
        if fitting and (whole or (len({t.workload for t in tasks}) == 1 and self.moved.isdisjoint(map(_key, tasks)))):
            yield fitting, []
        nodes, asked = self.session.nodes, self._left * 0
        for task in tasks:
            asked += task.cls.takes(task.leaving, nodes)
            if task.nominated >= 0:
                asked -= task.cls.takes(task.nominated, nodes)
        if (asked > self._left).any():
            return
        stay, here = {t.workload for t in tasks}, {t.leaving for t in tasks}
        promised = [t for node in here for t in self._promised.get(node, ()) if t.workload not in stay]
        if promised and any(t.nominated >= 0 or self.placer.find(t)[0] >= 0 for t in (*tasks, *promised)):
            yield tasks, sorted(promised, key=_key)

    def _fitting(self, tasks: Sequence[TaskState]) -> list[TaskState]:
        """Give the first of some tasks that fit where they stand beside all that is promised: a core comes first."""
        with self.session.scenario():
            for task in tasks:
                if task.nominated >= 0:
                    self.session.withdraw(task)
            return list(takewhile(self.placer.stay, sorted(tasks, key=_key)))

    def _stay(self, tasks: Sequence[TaskState], promised: Sequence[TaskState]) -> bool:
        """Let tasks run on, and serve again what a promise is withdrawn from.

        False, and nothing is done, if some would be part of a core, if not all are served that should be, or if another
        would then take what was promised.
        """
        stay, served = dict.fromkeys(t.workload for t in tasks), self.served
        with self.session.scenario() as scenario:
            if not run_on(self.context, tasks, promised) or not self._all_served(stay, promised):
                return False
            if not self._last(tasks, promised):
                self.served = served
                return False
            scenario.keep()
        rewrite(self.context, promised)
        return True

    def _last(self, staying: Sequence[TaskState], promised: Sequence[TaskState]) -> bool:
        """Whether then no contender would lose its place by what follows, which was judged with those ``staying`` gone.

        That may be so of sets that leave the room which is used now, where some workload grows: it would have got it,
        or takes it with what it grows for elsewhere.
        """
        aftermath, waiting = self.context.aftermath, (w.step for w in self.session.waiting.all())
        grows = any(step is not None and step.kind == GROW for step in waiting)
        if aftermath is None or not (grows or aftermath.asked.growing()):
            return True
        nodes = {t.node for t in staying} | {t.nominated for t in promised}
        sets = sets_of(self.context, frozenset(staying))
        near = [c for c, (_, gone) in sets.items() if any(t.leaving in nodes for t in gone)]
        refused = (judged(self.context, sets, c, to_the_end) for c in near if self.judgements.spend())
        return all(refusal is None for refusal in refused)

    def _all_served(self, stay: Collection[WorkloadState], promised: Sequence[TaskState]) -> bool:
        """Serve what a promise was withdrawn from; False if some of it has no place, or another has none any more."""
        if not self.tries:
            return False
        self.tries -= 1
        placed = serve_all(self.context)
        served = Counter(t.workload for t in placed)
        wanted = self.served + Counter(t.workload for t in promised)
        others = set(placed) - set(promised)
        if any(n > served[w] for w, n in wanted.items() if w not in stay):
            return False
        if len(placed) - len(others) < len(promised) or any(map(is_back, promised)):
            return False
        promise_alone(self.context, placed, promised)
        self.served = served - Counter(t.workload for t in promised)
        return True


def run_on(context: Context, tasks: Sequence[TaskState], promised: Sequence[TaskState]) -> bool:
    """Withdraw promises, and let tasks run on; False if a maximum or their room forbids it, or they are half a core."""
    session = context.session
    stay = dict.fromkeys(t.workload for t in tasks)
    for other in (*promised, *(t for t in tasks if t.nominated >= 0)):
        session.withdraw(other)
    for whose in {**dict.fromkeys(t.workload for t in promised), **stay}:
        session.refresh(whose)
    for task in tasks:
        if _breaks_a_maximum(context, task) or not context.placer.stay(task):
            return False
        recall(session, task)
    for workload in stay:
        session.refresh(workload)
    return all(w.root.satisfied(nominated=False) for w in stay) and not any(map(_is_half_of_a_group, tasks))


def _breaks_a_maximum(context: Context, task: TaskState) -> bool:
    """Whether a task that runs on keeps a queue over its maximum that gets something by this plan.

    A queue that was over it before, and gets nothing, is left as it was. What is under notice, as the task may be
    itself, is not counted: it takes nothing more.
    """
    session, queues = context.session, context.session.queues
    amount, path = task.cls.amount_at(task.leaving, session.nodes), queues.path[task.workload.leaf]
    if queues.over_max(task.workload.leaf, amount) is None:
        return False
    placed = [*context.evicting().fresh(), *(t for t in session.nominated if t not in context.paid)]
    given = {queue for t in placed for queue in queues.path[t.workload.leaf]}
    return any(queue in given and queues.over_max(queue, amount) is not None for queue in path)


def _is_half_of_a_group(task: TaskState) -> bool:
    """Whether a subgroup around a task that stays would run below its minimum because others of it go."""
    group = task.group
    while group.parent is not None:
        if not group.satisfied(nominated=False) and any(t.leaving >= 0 for g in group.leaves() for t in g.tasks):
            return True
        group = group.parent
    return False


def serve_all(context: Context) -> list[TaskState]:
    """Serve all that wait, in order; gives what is placed."""
    context.session.new_epoch()
    return serve(context.session, context.placer, context.fairness.now()).placed


def promise_alone(context: Context, placed: Sequence[TaskState], kept: Sequence[TaskState]) -> None:
    """Promise some of what was placed, and withdraw the rest of it."""
    session, wanted = context.session, set(kept)
    for task in placed:
        if task not in wanted:
            session.withdraw(task)
    for workload in dict.fromkeys(t.workload for t in placed):
        session.refresh(workload)
    promise(session, kept)


def _victims(context: Context, state: EvictionState) -> list[tuple[TaskState, ...]]:
    """Give what a plan evicts, by contender, by workload and by surplus task, each time the dearest first.

    What moves for a contender stays only if all do that give way to it: what would follow was judged with the move.
    """
    workloads, costs = state.session.workloads, Counter[tuple[int, object]]()
    sets: dict[tuple[int, object], list[TaskState]] = {}
    for step in state.plan.steps:
        if step.action not in EVICTING or step.cause not in FOR_A_CONTENDER:
            continue
        workload = workloads[step.workload]
        task = workload.tasks[step.task_index]
        if task.leaving < 0 or task.stuck or task in context.noticed:
            continue
        units: list[tuple[int, object]] = [(0, (step.beneficiary, step.cause))]
        units += [(1, workload)] if step.to is None else []
        units += [(2, task)] if step.to is None and workload.root.satisfied(nominated=False) else []
        for unit in units:
            sets.setdefault(unit, []).append(task)
            costs[unit] += round(step.cost * MICRO)
    in_turn = sorted(sets, key=lambda unit: (unit[0], -costs[unit]))
    return list({tuple(sets[unit]): None for unit in in_turn})


def _key(task: TaskState) -> tuple[str, int]:
    """Give how steps name a task: by its workload and number."""
    return task.workload.key, task.index


def rewrite(context: Context, promised: Sequence[TaskState]) -> None:
    """Write into the plan which places were promised in the end."""
    steps, by_task = context.plan.steps, {_key(t): t for t in promised}
    for number, step in enumerate(steps):
        task = by_task.get((step.workload, step.task_index))
        if task is not None and step.action == "nominate":
            steps[number] = place_step(context.session, task, context.cycle)


def take_back(context: Context, state: EvictionState, workload: WorkloadState, tasks: Sequence[TaskState]) -> None:
    """Strike evictions from the plan, and from what is known of the workload."""
    session, plan = context.session, context.plan
    stays = set(map(_key, tasks))
    told = {s.reason for s in plan.steps if (s.workload, s.task_index) in stays and s.action in EVICTING}
    plan.steps[:] = [s for s in plan.steps if (s.workload, s.task_index) not in stays]
    _tell_what_is_left(state, told)
    state.plugins.budgets.take_back(tasks)
    times, left = state.before[workload], [s for s in plan.steps if s.action in EVICTING and s.workload == workload.key]
    workload.started_at, workload.evictions = times.started_at, times.evictions
    if not left:
        workload.last_evicted_at = times.last_evicted_at
        state.evicted.discard(workload.key)
    if all(step.cause != "requeue" for step in left):
        workload.not_before = times.not_before
        plan.requeue.take_back(workload.key)
    workload.queued_at = session.queued_since(workload)
    session.refresh(workload)
    if context.requeueing is not None:
        context.requeueing.started(workload.key)
    if session.settings.backfill == "easy":
        state.endings.discard(workload)
        state.endings.add(workload)


def _tell_what_is_left(state: EvictionState, told: Collection[str]) -> None:
    """Say in some reasons what the evictions cost that are left of those that have them in common."""
    steps, costs = state.plan.steps, Counter[str]()
    for step in steps:
        costs[step.reason] += round(step.cost * MICRO)
    again = {text: state.reason(state.reasons[text], costs[text] / MICRO) for text in told}
    steps[:] = [step._replace(reason=again.get(step.reason, step.reason)) for step in steps]
