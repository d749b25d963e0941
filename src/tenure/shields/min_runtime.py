"""Minimum runtime: what has not run long enough is not evicted, or is dearer (spec: minimum runtime).

Where its mode is ``price`` it protects nothing: see `tenure.shields.price`. The rule is a plugin on the two extension
points like any other: a victim filter, and a validator of finished sets.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenure.engine.refusal import Refusal
from tenure.engine.state.queues import QueueTree
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import RUNNING, TaskState, WorkloadState
from tenure.model.settings import Cause, MinRuntimeMode, Settings
from tenure.model.values.duration import format_duration, format_time

SHIELD = "min-runtime"


def resolve(settings: Settings, queues: QueueTree, cause: Cause, beneficiary: int, victim: int) -> int:
    """Give the minimum runtime, in µs, that holds for a workload of leaf ``victim``.

    Parameters
    ----------
    settings
        Node pool values, method and causes.
    queues
        The tree.
    cause
        Why it would be evicted.
    beneficiary
        Leaf queue of the beneficiary; -1 for none.
    victim
        Leaf queue of the workload.
    """
    if cause not in settings.min_runtime.applies_to or not any_minimum(settings, queues):
        return 0
    if mode_of(settings, queues, cause, victim) == "price":
        return 0
    if cause == "preempt" or (beneficiary == victim and cause != "quota"):
        return _of_queue(settings, queues, victim, preempt=True)
    meets = settings.min_runtime.method == "lca" and beneficiary >= 0 and cause != "quota"
    start = queues.meeting(beneficiary, victim)[1] if meets else victim
    return _of_queue(settings, queues, start, preempt=False)


def mode_of(settings: Settings, queues: QueueTree, cause: Cause, victim: int) -> MinRuntimeMode:
    """Give what minimum runtime does for a workload of leaf ``victim``: its queue's mode, else the node pool's."""
    own = queues.min_runtime_mode[victim]
    if own is not None:
        return own
    modes = settings.min_runtime.mode
    return modes.get(cause, "shield") if isinstance(modes, dict) else modes


def priced_runtime(settings: Settings, queues: QueueTree, leaf: int) -> int:
    """Give for how long, in µs, a workload has to run until its eviction counts as what it loses.

    A price belongs to the victim alone, so it is the longest minimum runtime whose mode is ``price``.
    """
    if leaf < 0 or (settings.min_runtime.mode == "shield" and not queues.own_modes):
        return 0
    return longest_minimum(settings, queues, leaf, "price")


def longest_minimum(settings: Settings, queues: QueueTree, leaf: int, mode: MinRuntimeMode) -> int:
    """Give the longest minimum runtime of a cause with this mode, in µs, looked for from a leaf upward."""
    longest = 0
    for cause in settings.min_runtime.applies_to:
        if mode_of(settings, queues, cause, leaf) == mode:
            longest = max(longest, _of_queue(settings, queues, leaf, preempt=cause == "preempt"))
    return longest


def any_minimum(settings: Settings, queues: QueueTree) -> bool:
    """Whether the node pool or a queue has a minimum runtime at all."""
    return queues.own_minimum or bool(settings.reclaim_min_runtime or settings.preempt_min_runtime)


def _of_queue(settings: Settings, queues: QueueTree, queue: int, *, preempt: bool) -> int:
    """Give the value that a queue has, or inherits, else the node pool's; an explicit 0 is set."""
    own = (queues.preempt_min_runtime if preempt else queues.reclaim_min_runtime)[queue]
    pool = settings.preempt_min_runtime if preempt else settings.reclaim_min_runtime
    return pool if own is None else own


def clock(session: Session, victim: WorkloadState) -> int | None:
    """When the clock of a running workload started, in µs since the epoch; None if unknown.

    A start in the future counts as now. ``startsAt: running`` counts from when enough of its tasks ran; while they
    do not all run yet it counts as starting now.
    """
    start = victim.started_at
    if session.settings.min_runtime.starts_at == "running":
        core = [t for leaf in victim.root.leaves() for t in [t for t in leaf.tasks if t.active][: leaf.minimum]]
        if any(t.phase is not RUNNING and t.node >= 0 for t in core):
            return session.now
        starts = [t.model.started_at for t in core if t.model.started_at is not None]
        start = max(starts) if starts else start
    return None if start is None else min(start, session.now)


class MinRuntimeShield:
    """Minimum runtime as a plugin. What runs and has no start that is known is not protected, and counted elsewhere.

    ``brief``: the reasons are not read, so refusals say no more than that they are.
    """

    name = SHIELD

    def __init__(self) -> None:
        self.brief = False

    def minimum(self, session: Session, cause: Cause, beneficiary: int, leaf: int) -> int:
        """Give the minimum runtime, in µs, that holds for a workload of a leaf, see `resolve`."""
        return resolve(session.settings, session.queues, cause, beneficiary, leaf)

    def may_hold(self, session: Session, cause: Cause, beneficiary: int) -> bool:  # noqa: ARG002
        """Whether one may hold that is taken to be over: none is."""
        return False

    def protected_until(self, session: Session, cause: Cause, beneficiary: int, victim: WorkloadState) -> int:
        """When the protection of a workload ends or ended, in µs since the epoch; -1 if it never had any."""
        minimum = self.minimum(session, cause, beneficiary, victim.leaf)
        if not minimum:
            return -1
        start = clock(session, victim)
        return -1 if start is None else start + minimum

    def filter(
        self, session: Session, cause: Cause, contender: WorkloadState | None, victim: WorkloadState
    ) -> Refusal | None:
        """Refuse the core of a workload that is still protected."""
        beneficiary = contender.leaf if contender is not None else -1
        until = self.protected_until(session, cause, beneficiary, victim)
        if until <= session.now:
            return None
        if self.brief:
            return Refusal(SHIELD, f"{victim.key} has not run for its minimum runtime", until, core_only=True)
        minimum = self.minimum(session, cause, beneficiary, victim.leaf)
        text = (
            f"{victim.key} has not run for its minimum runtime of {format_duration(minimum)}: "
            f"protected until {format_time(until)}"
        )
        return Refusal(SHIELD, text, until, core_only=True)

    def validate(
        self, session: Session, cause: Cause, contender: WorkloadState | None, tasks: Sequence[TaskState]
    ) -> Refusal | None:
        """Refuse a set that leaves a protected workload, or one of its subgroups, with less than its minimum.

        Asked before anything of the set is evicted on the session.
        """
        gone: dict[WorkloadState, set[TaskState]] = {}
        for task in tasks:
            gone.setdefault(task.workload, set()).add(task)
        for victim, lost in gone.items():
            if not _left_whole(victim, lost):
                refusal = self.filter(session, cause, contender, victim)
                if refusal is not None:
                    return refusal
        return None


class MinRuntimeOver(MinRuntimeShield):
    """Minimum runtime where every one is taken to be over."""

    def may_hold(self, session: Session, cause: Cause, beneficiary: int) -> bool:
        """Whether, as things stand, one holds for workloads of some leaf."""
        settings, queues = session.settings, session.queues
        leaves = (leaf for leaf, is_leaf in enumerate(queues.leaf) if is_leaf)
        return any_minimum(settings, queues) and any(resolve(settings, queues, cause, beneficiary, q) for q in leaves)

    def minimum(self, session: Session, cause: Cause, beneficiary: int, leaf: int) -> int:  # noqa: ARG002  the same for all
        """Give none."""
        return 0


def _left_whole(victim: WorkloadState, gone: set[TaskState]) -> bool:
    """Whether no subgroup that loses tasks is left with fewer active ones than its minimum."""
    for group in victim.root.leaves():
        lost = sum(t in gone for t in group.tasks)
        if lost and sum(t.active for t in group.tasks) - lost < group.minimum:
            return False
    return True
