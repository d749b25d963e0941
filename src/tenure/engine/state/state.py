"""The state behind a session: nodes, queues, workloads and what is decided about them, with its changes and their undo.

It is the only writer of all that. What an eviction does, and how a cluster's placements are taken in, is written in
terms of its operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tenure.engine.journal import Journal
from tenure.engine.room.class_mix import ClassMix
from tenure.engine.room.classes import ClassTable
from tenure.engine.room.fragmentation import Fragmentation
from tenure.engine.room.nodes import NodeTable, resources_of
from tenure.engine.room.score import FEW, Scorer
from tenure.engine.run_times import RunTimes
from tenure.engine.state import lifecycle
from tenure.engine.state.occupancy import Occupancy
from tenure.engine.state.queues import QueueTree
from tenure.engine.state.roster import Roster
from tenure.engine.state.steps import Steps
from tenure.engine.state.transaction import Mark, Scenario, Undone
from tenure.engine.state.waiting import WaitingLists
from tenure.engine.state.workloads import (
    PENDING,
    TERMINATING,
    TaskState,
    WorkloadState,
)
from tenure.engine.terms.table import TermTable
from tenure.model.cluster import DisruptionBudget, Eviction, EvictionOutcome, RefusedEviction
from tenure.model.device_resources import counts_of
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.values.resources import Labels
from tenure.model.workload import DEFAULT_GRACE_PERIOD


class SessionState:
    """Nodes, queues, workloads and what is decided about them.

    ``on_node`` holds, for each node, the tasks that occupy it or will (bound, running, terminating, nominated).
    ``workloads`` are in no order that anything may depend on, for on a live cluster they come and go; ``roster`` has
    those that every cycle asks about. ``waiting`` holds, for each leaf queue, those that wait, in their order.
    ``added`` are the workloads that came since the last cycle. ``epoch`` grows whenever room may have grown anywhere.
    ``disruption_budgets`` are the cluster's own. ``noticed`` are the tasks whose eviction was announced, ``nominated``
    those that hold a promise, and ``leaving`` those that terminate.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        queues: Iterable[Queue],
        settings: Settings,
        *,
        extra: Iterable[str] = (),
        namespaces: Mapping[str, Labels] | None = None,
    ) -> None:
        node_list, queue_list = list(nodes), list(queues)
        self.settings = settings
        self.now = 0
        self.journal = Journal()
        resources = resources_of(node_list, queue_list, extra)
        counts = {name: counted for name in resources if (counted := counts_of(name, settings))}
        if counts:
            resources = resources_of(
                node_list, queue_list, {*resources, *(n for found in counts.values() for n in found)}
            )
        self.nodes = NodeTable(node_list, resources, self.journal)
        self.nodes.counts = counts
        self.queues = QueueTree(queue_list, self.nodes.resources[: self.nodes.amounts], self.journal)
        self.classes = ClassTable(self.nodes)
        self.mix = ClassMix()
        self.fragmentation = Fragmentation(self.nodes, self.mix)
        self.scorer = Scorer(self.nodes, settings.placement, self.fragmentation)
        self.terms = TermTable(self.nodes, self.journal, namespaces)
        self.occupancy = Occupancy(self.nodes, self.queues, self.terms, self.journal)
        self.steps = Steps()
        self.workloads: dict[str, WorkloadState] = {}
        self.roster = Roster()
        self.on_node: list[set[TaskState]] = [set() for _ in node_list]
        self.waiting = WaitingLists((q for q, leaf in enumerate(self.queues.leaf) if leaf), self.journal)
        self.nominated: set[TaskState] = set()
        self.leaving: set[TaskState] = set()
        self.added: list[WorkloadState] = []
        self.noticed: set[TaskState] = set()
        self.evictions: tuple[Eviction, ...] = ()
        self.disruption_budgets: tuple[DisruptionBudget, ...] = ()
        self.refused_evictions: tuple[RefusedEviction, ...] = ()
        self.outcomes: tuple[EvictionOutcome, ...] = ()
        self.run_times = RunTimes()
        self.often_evicted: set[int] = set()
        self.epoch = 0
        self._last_epoch = 0
        self._most_room: tuple[tuple[int, int], list[int]] = ((-1, 0), [])

    @property
    def kinds(self) -> int:
        """How many kinds of tasks, of terms and of demands there are tables of."""
        return self.classes.size + self.terms.size + self.steps.size

    def leaves_at(self, task: TaskState) -> int:
        """When a terminating task should be gone: after that it is stuck."""
        grace = task.model.grace_period
        grace = DEFAULT_GRACE_PERIOD if grace is None else grace
        return task.terminating_since + min(grace, self.settings.disruption.max_grace_period)

    def above(self, leaf: int) -> list[Queue]:
        """Give a leaf queue and all above it, upward; none for pods of other schedulers."""
        return [self.queues.queues[queue] for queue in self.queues.path[leaf]] if leaf >= 0 else []

    def queued_since(self, state: WorkloadState) -> int:
        """Time by which a workload stands in its leaf: its creation; where turns are taken, when it gave way last."""
        if self.settings.requeue.contenders != "any" or state.not_before is None:
            return state.created_at
        return max(state.created_at, min(state.last_evicted_at or 0, state.not_before))

    def _leave(self, task: TaskState) -> None:
        """A task that was bound or ran is gone for good."""
        state, node = task.workload, task.node
        self._give_back(task, node, task.devices, now=True, then=True)
        if state.leaf >= 0:
            self.queues.release(state.leaf, task.cls.amount_at(node, self.nodes), fixed=state.fixed)
        else:
            self.occupancy.count_foreign(node, task.cls.amount_at(node, self.nodes), -1)

    def forget_notice(self, task: TaskState) -> None:
        """A task is under notice no longer."""
        if task.notice is not None:
            self.journal.set(task, "notice", None)
            self.journal.remove(self.noticed, task)

    def finish(self, task: TaskState) -> None:
        """A task has succeeded: it counts as active and holds nothing."""
        self.forget_notice(task)
        self.withdraw(task)
        if task.phase is PENDING and task.asks:
            self.queues.unask(task.workload.leaf, task.cls.amount)
        lifecycle.finish(self.journal, task)
        self.new_epoch()

    # -- operations of a transaction -----------------------------------------------------------------------------

    def bind(self, task: TaskState, node: int, devices: tuple[int, ...]) -> None:
        """Place a pending task on a node that has the room now."""
        journal, state = self.journal, task.workload
        lifecycle.bind(journal, task, node, devices)
        if devices or task.terms is not None:
            self.occupancy.occupy(task, node, devices, 1, now=True, then=True)
        else:
            self.nodes.take(node, task.cls.both)
        journal.add(self.on_node[node], task)
        self.occupancy.count_allocated(task, node)
        self.waiting.drop(state)

    def nominate(self, task: TaskState, node: int, devices: tuple[int, ...]) -> None:
        """Promise a pending task room on a node that is there once what terminates has left."""
        journal, state = self.journal, task.workload
        lifecycle.nominate(journal, task, node, devices, self.now)
        journal.add(self.nominated, task)
        self.occupancy.occupy(task, node, devices, 1, now=False, then=True)
        self.occupancy.count_differing(1)
        if task.leaving != node:
            journal.add(self.on_node[node], task)
        self.occupancy.count_allocated(task, node)
        self.waiting.drop(state)

    def withdraw(self, task: TaskState) -> None:
        """Take a task off its node and out of its nomination; a task that was active is pending again.

        For what terminates this means that it has gone, for everything else that it never was there.
        """
        journal, leaf = self.journal, task.workload.leaf
        if task.nominated >= 0:
            self._give_back(task, task.nominated, task.nominated_devices, now=False, then=True)
            self.occupancy.count_differing(-1)
            self.occupancy.count_released(task)
            journal.remove(self.nominated, task)
            lifecycle.forgo(journal, task)
        if task.node >= 0:
            left = task.phase is TERMINATING
            if task.notice is not None:
                self.forget_notice(task)
            if left and not task.stuck:
                self.occupancy.count_differing(-1)
            self._give_back(task, task.node, task.devices, now=True, then=not left or task.stuck)
            if not left:
                self.occupancy.count_released(task)
            else:
                self.occupancy.count_leaving(task, -1, now=True, then=task.stuck)
                journal.remove(self.leaving, task)
                if task.asks:
                    self.queues.ask(leaf, task.cls.amount)
            if leaf < 0:
                self.occupancy.count_foreign(task.node, task.cls.amount_at(task.node, self.nodes), -1)
            lifecycle.free(journal, task)
        self.new_epoch()

    def mark_stuck(self, task: TaskState) -> None:
        """Note that a task still terminates after its grace period: its leaving is not counted on any more."""
        self.occupancy.occupy(task, task.node, task.devices, 1, now=False, then=True)
        self.occupancy.count_leaving(task, 1, now=False, then=True)
        self.occupancy.count_differing(-1)
        lifecycle.outstay(self.journal, task)

    def _give_back(self, task: TaskState, node: int, devices: tuple[int, ...], *, now: bool, then: bool) -> None:
        self.occupancy.occupy(task, node, devices, -1, now=now, then=then)
        if task.leaving != node and task in self.on_node[node]:
            self.journal.remove(self.on_node[node], task)

    def most_room(self) -> list[int]:
        """Give the most that any node that admits tasks has of each row, or had earlier in this epoch.

        Room only shrinks in an epoch.
        """
        nodes = self.nodes
        state = self.epoch, len(nodes.changed) if len(nodes) <= FEW else 0
        if self._most_room[0] != state:
            self._most_room = state, nodes.most_room()
        return self._most_room[1]

    def refresh(self, state: WorkloadState) -> None:
        """Work out what a workload asks for next, and put it into its leaf's order."""
        if state.leaf < 0:
            return
        step = self.steps.next(state)
        if step is not None and any(not t.cls.placeable for t in step.tasks):
            step = None
        self.journal.set(state, "step", step)
        if step is None:
            self.waiting.drop(state)
        else:
            self.waiting.put(state)

    def note_start(self, state: WorkloadState, later: int = 0) -> None:
        """Set the time of the start, so many µs ``later`` than now, once the core is bound (spec: gangs)."""
        if state.started_at is not None:
            return
        tasks = state.tasks
        alone = len(tasks) == 1
        # a core of which all has succeeded is satisfied, though nothing of it is bound
        if tasks[0].node >= 0 if alone else state.root.satisfied(nominated=False) and state.occupied():
            self.journal.set(state, "started_at", self.now + later)
        elif state.leaf >= 0:
            self.roster.unstarted[state.key] = state

    # -- transaction ----------------------------------------------------------------------------------------------

    def scenario(self) -> Scenario:
        """Give a block of changes that are undone at its end unless they are kept."""
        return Scenario(self)

    def checkpoint(self) -> Mark:
        """Open a checkpoint."""
        return Mark(self.journal.checkpoint(), len(self.nodes.changed), self.waiting.mark())

    def commit(self) -> None:
        """Close the innermost checkpoint and keep what was done."""
        self.journal.commit()
        if not self.journal.depth:
            self.waiting.commit()

    def new_epoch(self) -> None:
        """Room may have grown: what was found out about it holds no longer. No epoch is ever used twice."""
        self._last_epoch += 1
        self.epoch = self._last_epoch

    def rollback(self, mark: Mark, *, epoch: int | None = None, undone: Undone | None = None) -> None:
        """Undo everything since the checkpoint, which is the innermost.

        ``epoch``: the one at the checkpoint, if nothing that was found out about room since then is kept. ``undone``
        gets what it takes to do it again.
        """
        changes, nodes, puts = undone or (None, None, None)
        if nodes is not None:
            nodes += self.nodes.changed[mark.nodes :]
        self.journal.rollback(mark.changes, changes)
        self.nodes.pin(mark.nodes)
        self.waiting.rollback(mark.puts, puts)
        if epoch is None:
            self.new_epoch()
        else:
            self.epoch = epoch

    def repeat(self, undone: Undone) -> None:
        """Do again what was undone, on the state to which it was undone; an outer checkpoint can still undo it."""
        self.journal.repeat(undone.changes)
        self.nodes.changed += undone.nodes
        self.waiting.repeat(undone.puts)
        self.new_epoch()
