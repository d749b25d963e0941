"""What a session remembers of a transaction, and the scenario: changes that are undone unless they are kept."""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple, Protocol, Self

from tenure.engine.journal import Change
from tenure.engine.state.waiting import Put


class Mark(NamedTuple):
    """The place of a checkpoint in the undo log, in the log of changed nodes, and in the waiting lists."""

    changes: int
    nodes: int
    puts: int


class Undone(NamedTuple):
    """The part of a log that was undone: changes and places in line, the last first, and the nodes that changed."""

    changes: list[Change]
    nodes: list[int]
    puts: list[Put]


class Undoable(Protocol):
    """State whose changes can be undone; ``epoch`` tells apart what was found out about it at different times."""

    epoch: int

    def checkpoint(self) -> Mark:
        """Open a checkpoint."""

    def commit(self) -> None:
        """Close the innermost checkpoint and keep what was done."""

    def rollback(self, mark: Mark, *, epoch: int | None = None, undone: Undone | None = None) -> None:
        """Undo everything since the innermost checkpoint."""


class Scenario:
    """Changes to a session, made in a ``with`` block and undone at its end unless `keep` was called in it.

    After the block the session is what it was before, bit for bit, or holds all that was done. An error undoes as
    well. Scenarios nest; one that is kept inside another is undone with it.
    """

    __slots__ = ("_epoch", "_kept", "_mark", "_session", "_undone")

    def __init__(self, session: Undoable) -> None:
        self._session = session
        self._undone: Undone | None = None

    def __enter__(self) -> Self:
        """Begin the block."""
        self._kept = False
        self._epoch = self._session.epoch
        self._mark = self._session.checkpoint()
        return self

    def keep(self) -> None:
        """Let what was done, and what is still done in the block, stand."""
        self._kept = True

    def remember(self) -> Undone:
        """Give what will hold, after the block, what it takes to do again what is undone at its end."""
        undone = self._undone = Undone([], [], [])
        return undone

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """End the block: keep what was done if that was asked for and nothing went wrong, else undo it."""
        if self._kept and kind is None:
            self._session.commit()
        else:
            self._session.rollback(self._mark, epoch=self._epoch, undone=self._undone)
