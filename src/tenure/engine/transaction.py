"""What a session remembers of a transaction: where it began, and what it did, so that it can be done again."""

from __future__ import annotations

from typing import NamedTuple

from tenure.engine.journal import Change
from tenure.engine.waiting import Put


class Mark(NamedTuple):
    """Where a checkpoint stands in the undo log, in the log of changed nodes, and in the waiting lists."""

    changes: int
    nodes: int
    puts: int


class Undone(NamedTuple):
    """What was undone: changes and places in line, the last first, and the nodes that changed."""

    changes: list[Change]
    nodes: list[int]
    puts: list[Put]
