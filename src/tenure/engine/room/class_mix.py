"""How often classes of tasks that ask for GPUs were seen: the mix under which fragmentation is expected."""

from __future__ import annotations

from collections.abc import Mapping

from tenure.engine.room.classes import TaskClass

MOST_CLASSES = 256
"""The mix is cut to this many classes, the most frequent ones."""


class ClassMix:
    """The classes that were seen, each with the number of its tasks; what is in use is renewed only now and then."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._classes: dict[int, TaskClass] = {}
        self._total = 0
        self._used_total = -1
        self._fixed = False

    def observe(self, cls: TaskClass, count: int = 1) -> None:
        """Count tasks of a class that were seen."""
        if (cls.whole or cls.devices) and not self._fixed:
            self._seen[cls.id] = self._seen.get(cls.id, 0) + count
            self._classes[cls.id] = cls
            self._total += count

    def fix(self, mix: Mapping[int, tuple[TaskClass, int]]) -> None:
        """Take this mix, whatever is seen: number of tasks by class."""
        self._seen.clear()
        self._total = 0
        for cls, count in mix.values():
            self.observe(cls, count)
        self._fixed = True
        self._used_total = -1

    def renew(self) -> bool:
        """Take what was seen into use, once it has grown by a tenth since the last time; gives whether it was."""
        if self._used_total >= 0 and (self._fixed or self._total < 1.1 * self._used_total + 1):
            return False
        self._used_total = self._total
        return True

    def most_frequent(self) -> list[tuple[TaskClass, int]]:
        """Give the most frequent classes with the number of their tasks, in the order of their numbers."""
        chosen = sorted(self._seen, key=lambda c: (-self._seen[c], c))[:MOST_CLASSES]
        return [(self._classes[c], self._seen[c]) for c in sorted(chosen)]
