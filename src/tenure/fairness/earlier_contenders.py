"""Who is served before a contender and would take the room that is made for it.

The room that victims leave goes in the ordinary order (spec: play it through). One who is served before the contender,
and fits wherever it does, takes the first place that comes free. So where as many of them stand before it as it needs
places, a search would have to make room for them all, and is not begun. What is taken on the contender's own side puts
this side further to the front, and with it the contender: those who meet it further away than the victims count only if
they would come first even then.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from itertools import takewhile
from operator import sub

import numpy as np

from tenure.engine.room.classes import TaskClass
from tenure.engine.serving.allocation import held_back
from tenure.engine.serving.order import Key, queue_key
from tenure.engine.state.queues import Amount
from tenure.engine.state.session import Session
from tenure.engine.state.waiting import Entry
from tenure.engine.state.workloads import WorkloadState
from tenure.fairness.current import CurrentShares

Waiting = tuple[int, WorkloadState, Entry]
"""Position in the order, who it is, and its place in its leaf by which it is told that it still waits."""


AT_ONCE = 16
"""Leaves that are counted before it is looked at whether that is enough."""


class EarlierContenders:
    """The order of all that wait, as it was when it was made; those who have been served since count no more."""

    def __init__(self, session: Session, shares: CurrentShares, order: Iterable[WorkloadState]) -> None:
        self.session = session
        self.queues = session.queues
        self.shares = shares
        self._position: dict[WorkloadState, int] = {}
        self._lines: dict[tuple[int, int], deque[Waiting]] = {}
        self._classes: dict[int, TaskClass] = {}
        self._fits: dict[tuple[int, int], bool] = {}
        self._amounts: dict[int, list[Amount]] = {}
        self._passed: dict[WorkloadState, list[int]] = {}
        for position, workload in enumerate(order):
            self._position[workload] = position
            step = workload.step
            self._pass(workload)
            if step is not None and workload.entry is not None and len(step.tasks) == 1:
                task = step.tasks[0]
                if task.terms is None and task.cls.milli is None and not held_back(session, workload, step):
                    self._classes[task.cls.id] = task.cls
                    line = self._lines.setdefault((workload.leaf, task.cls.id), deque())
                    line.append((position, workload, workload.entry))

    def _pass(self, workload: WorkloadState) -> None:
        """Note, for each queue above a workload, how many different amounts have their turn there until it has its own.

        A queue comes no earlier than with the greatest key of those that have their turn before.
        """
        assert workload.step is not None
        counts = self._passed[workload] = []
        for queue in self.queues.path[workload.leaf]:
            amounts = self._amounts.setdefault(queue, [])
            if workload.step.amount not in amounts:
                amounts.append(workload.step.amount)
            counts.append(len(amounts))

    def count(self, contender: WorkloadState, most: int | None = None) -> dict[int, int]:
        """Count places that go to others first, by the queue on a contender's path beside which victims are.

        One for each other leaf in which a workload takes one, because a workload that was served puts its queue further
        back; of the contender's own leaf all that are before it. Where all are more than ``most``, the count may end
        there.
        """
        step, position, path = contender.step, self._position.get(contender), self.queues.path[contender.leaf]
        if step is None or position is None:
            return dict.fromkeys(path, 0)
        near, far, own = Counter[int](), Counter[int](), dict[int, Key]()
        seen = set[int]()
        for (leaf, number), line in self._lines.items():
            if leaf in seen or not self._is_first(line, position) or not self._takes(number, step.tasks[0].cls):
                continue
            if leaf == contender.leaf:
                ahead = takewhile(lambda waiting: waiting[0] < position, line)
                near[leaf] += sum(who.entry is entry for _, who, entry in ahead)
                continue
            seen.add(leaf)
            mine, theirs = self.queues.meeting(contender.leaf, leaf)
            near[mine] += 1
            if mine not in own:
                rest = tuple(map(sub, self.queues.allocated[mine], step.amount))
                own[mine] = self._turn(self._passed_at(contender, mine), mine, rest)
            passed = self._passed_at(line[0][1], theirs)
            far[mine] += self._turn(passed, theirs, self.queues.allocated[theirs]) < own[mine]
            if most is not None and not len(seen) % AT_ONCE and min(_summed(path, near, far).values()) > most:
                break
        return _summed(path, near, far)

    def _passed_at(self, workload: WorkloadState, queue: int) -> int:
        return self._passed[workload][self.queues.path[workload.leaf].index(queue)]

    def _turn(self, passed: int, queue: int, allocated: Amount) -> Key:
        """Give the last key with which a queue comes for some of its amounts, if it held ``allocated``."""
        return max(
            queue_key(self.session, self.shares, queue, amount, allocated) for amount in self._amounts[queue][:passed]
        )

    def _is_first(self, line: deque[Waiting], position: int) -> bool:
        """Whether a workload of a line still waits before a position."""
        while line and line[0][1].entry is not line[0][2]:
            line.popleft()
        return bool(line) and line[0][0] < position

    def _takes(self, number: int, cls: TaskClass) -> bool:
        """Whether a task of one class fits wherever one of another does."""
        key = number, cls.id
        found = self._fits.get(key)
        if found is None:
            other = self._classes[number]
            smaller = bool((np.asarray(other.ask) <= np.asarray(cls.ask)).all())
            found = self._fits[key] = smaller and bool((other.static | ~cls.static).all())
        return found


def _summed(path: Sequence[int], near: Counter[int], far: Counter[int]) -> dict[int, int]:
    """Give for each queue on a path who meets the contender there or below, and who comes first from further away."""
    found, nearer, further = {}, 0, sum(far.values())
    for queue in path:
        nearer += near[queue]
        further -= far[queue]
        found[queue] = nearer + further
    return found
