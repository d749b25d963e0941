"""The session: the state of one cluster while it is being decided about.

Events go in (workloads come, tasks end, nodes change), decisions are made on it in a transaction, and what was
decided comes out as a plan. It never reads a clock: ``now`` is told to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from tenure.engine import expectation
from tenure.engine.state.evictions import depart, going, note_often, resume_moves
from tenure.engine.state.queues import Amount, added_up
from tenure.engine.state.recount import count_anew
from tenure.engine.state.restore import restore, restore_devices, restore_nominations, take_room
from tenure.engine.state.state import SessionState
from tenure.engine.state.workloads import BOUND, PENDING, RUNNING, TERMINATING, TaskState, WorkloadState
from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.workload import Workload

_CLASS: Final = attrgetter("cls")


class Session(SessionState):
    """The state of one cluster, with the events that change it: workloads that come and go."""

    def add_workloads(self, models: Iterable[Workload], *, later: int = 0) -> list[WorkloadState]:
        """Take in workloads with whatever of them is placed already, created ``later`` µs later than they say."""
        taken = tuple(models)
        if new := self.terms.register((task.spec, model.namespace) for model in taken for task in model.tasks):
            count_anew(self, new[0])
        added: list[WorkloadState] = []
        staying: list[TaskState] = []
        for model in taken:
            state = self._take_in(model)
            state.created_at += later
            state.queued_at = self.queued_since(state)
            self._settle_in(state, staying)
            added.append(state)
        take_room(self, staying)
        if any(t.model.node is not None or t.model.nominated is not None for s in added for t in s.tasks):
            restore_devices(self, added)
            restore_nominations(self, added)
            resume_moves(self, added)
        for state in added:
            self.refresh(state)
            self.roster.add(state)
        self.added += added
        return added

    def add_workload(self, model: Workload, *, later: int = 0) -> WorkloadState:
        """Take in one workload."""
        return self.add_workloads((model,), later=later)[0]

    def _take_in(self, model: Workload) -> WorkloadState:
        known = self.queues.index
        own = model.scheduler_name == "tenure"
        state = WorkloadState(model, known[model.queue or DEFAULT_QUEUE] if own else -1)
        classes, terms = self.classes, self.terms
        namespace = model.namespace
        spec, looking = None, terms.used
        for index, task in enumerate(model.tasks):
            if task.spec is not spec:  # most tasks of a workload have one
                spec, cls = task.spec, classes.of(task.spec)
                looking = looking or bool(spec.mounts or spec.device_uses)
            state.tasks.append(TaskState(task, index, state, cls))
        for task_state in state.tasks if looking else ():
            spec = task_state.model.spec
            if terms.used or spec.mounts or spec.device_uses:
                task_state.terms = terms.of(spec, namespace)
        state.group_tasks()
        state.expected, state.unclear, _ = expectation.expected_runtime(model, self.above(state.leaf), self.settings)
        state.not_before = expectation.not_before(model).value
        self.workloads[state.key] = state
        note_often(self, state)
        return state

    def _settle_in(self, state: WorkloadState, staying: list[TaskState]) -> None:
        allocated: list[Amount] = []
        pending: list[Amount] = []
        for cls, count in Counter(map(_CLASS, state.tasks)).items():
            self.mix.observe(cls, count)
        for task in state.tasks:
            model = task.model
            if model.node is not None and model.phase in (BOUND, RUNNING, TERMINATING):
                amount = restore(self, task, staying)
                allocated += () if amount is None else (amount,)
            else:
                task.phase = model.phase
                if task.phase is PENDING and task.asks:
                    pending.append(task.cls.amount)
        if allocated:
            self.queues.allocate(state.leaf, added_up(allocated), fixed=state.fixed)
        if pending:
            self.queues.ask(state.leaf, added_up(pending))
        if state.started_at is not None and state.started_at > self.now:
            state.started_at = self.now
        if state.started_at is None and any(t.phase is RUNNING or t.phase is BOUND or t.notice for t in state.tasks):
            running = (t.model for t in state.tasks if t.active or t.notice)
            starts = [task.started_at for task in running if task.started_at is not None]
            state.started_at = min(starts) if starts else None

    def remove_workload(self, key: str) -> None:
        """Forget a workload with all its tasks; what they held is free."""
        state = self.workloads.pop(key)
        self.roster.remove(state)
        for task in state.tasks if self.noticed else ():
            self.forget_notice(task)
        for task in state.tasks:
            if task.leaving >= 0:
                depart(self, task)
            if task.nominated < 0 and task.phase in (RUNNING, BOUND):
                self._leave(task)
                continue
            self.withdraw(task)
            if task.phase is PENDING and task.asks:
                self.queues.unask(state.leaf, task.cls.amount)
        self.waiting.drop(state)
        self.new_epoch()

    def longest_grace(self, task: TaskState) -> int:
        """Give the longest grace period, in µs, of what terminates on the node that a task is nominated to."""
        leaving = [t for t in self.on_node[task.nominated] if going(t, task.nominated)]
        return max((self.leaves_at(t) - t.terminating_since for t in leaving), default=0)
