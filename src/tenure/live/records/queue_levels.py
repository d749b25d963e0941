"""What queues hold at one moment: a picture that stays as it is while the session goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tenure.engine.state.queues import Amount, QueueTree
from tenure.model.queue import Queue


@dataclass(frozen=True, slots=True)
class QueueLevels:
    """What queues hold: ``allocated``, by resource in the order of ``resources``.

    ``queues``, ``leaf`` and ``index`` are those of the `QueueTree`.
    """

    resources: Sequence[str]
    queues: Sequence[Queue]
    leaf: Sequence[bool]
    index: Mapping[str, int]
    allocated: Sequence[Amount]


def levels_of(tree: QueueTree) -> QueueLevels:
    """Give what the queues of a tree hold now; only that is ever changed of it."""
    return QueueLevels(tree.resources, tree.queues, tree.leaf, tree.index, tree.allocated.copy())
