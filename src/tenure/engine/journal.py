"""The undo log behind a transaction.

Every change of the session's state is one of five kinds: an attribute, several attributes of one object, an item of
a sequence or array, several items of a list, or the membership in a set. Each is logged with what stood there before,
so that undoing is the same few lines for all operations and none of them writes an inverse by hand.
"""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from typing import Any, TypeAlias

Members: TypeAlias = set[Any]

Change: TypeAlias = tuple[int, Any, Any, Any]
"""Kind of a change, what it was made on, where in it, and what stood or is to stand there."""

_ATTRIBUTE, _ITEM, _MEMBER, _RECORD, _ITEMS = 0, 1, 2, 3, 4


class Journal:
    """A log of changes that can be rolled back to a checkpoint.

    Nothing is recorded while no checkpoint is open: what is done then is final.
    """

    __slots__ = ("_entries", "depth")

    def __init__(self) -> None:
        self._entries: list[Change] = []
        self.depth = 0

    def set(self, owner: Any, name: str, value: object) -> None:
        """Set an attribute of ``owner``."""
        if self.depth:
            self._entries.append((_ATTRIBUTE, owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def save(self, owner: Any) -> None:
        """Remember all attributes of ``owner`` that its class lists in ``saved``, which are about to be set."""
        if self.depth:
            self._entries.append((_RECORD, owner, None, [getattr(owner, name) for name in owner.saved]))

    def put(self, sequence: Any, index: Hashable, value: object) -> None:
        """Set an item of a list, or one that a mapping has already."""
        if self.depth:
            self._entries.append((_ITEM, sequence, index, sequence[index]))
        sequence[index] = value

    def save_items(self, sequence: list[Any], places: list[int]) -> None:
        """Remember the items of a list at some places, which are about to be set."""
        if self.depth:
            self._entries.append((_ITEMS, sequence, places, [sequence[place] for place in places]))

    def keep(self, array: Any, index: Any) -> None:
        """Remember a part of an array that is about to be changed in place."""
        if self.depth:
            self._entries.append((_ITEM, array, index, array[index].copy()))

    def add(self, members: Members, member: object) -> None:
        """Add ``member``, which is not in the set yet."""
        if self.depth:
            self._entries.append((_MEMBER, members, member, False))
        members.add(member)

    def remove(self, members: Members, member: object) -> None:
        """Remove ``member``, which is in the set."""
        if self.depth:
            self._entries.append((_MEMBER, members, member, True))
        members.remove(member)

    def checkpoint(self) -> int:
        """Open a checkpoint and give its mark."""
        self.depth += 1
        return len(self._entries)

    def commit(self) -> None:
        """Close the innermost checkpoint and keep what was done; an outer one can still undo it."""
        self.depth -= 1
        if not self.depth:
            self._entries.clear()

    def rollback(self, mark: int, undone: list[Change] | None = None) -> None:
        """Undo everything since ``mark`` and close its checkpoint, which is the innermost.

        ``undone`` gets what it takes to do it again, the last change first.
        """
        changes = self._entries[mark:]
        del self._entries[mark:]
        for change in reversed(changes):
            if undone is not None:
                undone.append(_present(change))
            _put(change)
        self.depth -= 1

    def repeat(self, undone: list[Change]) -> None:
        """Do again what was undone, on the state to which it was undone; an outer checkpoint can still undo it."""
        for change in reversed(undone):
            if self.depth:
                self._entries.append(_present(change))
            _put(change)


def _present(change: Change) -> Change:
    """Give a change that would make what is there now."""
    kind, target, key, old = change
    if kind == _ATTRIBUTE:
        return kind, target, key, getattr(target, key)
    if kind == _ITEM:
        return kind, target, key, copy(target[key])
    if kind == _RECORD:
        return kind, target, key, [getattr(target, name) for name in target.saved]
    if kind == _ITEMS:
        return kind, target, key, [target[place] for place in key]
    return kind, target, key, not old


def _put(change: Change) -> None:
    """Put what a change says where it says."""
    kind, target, key, value = change
    if kind == _ATTRIBUTE:
        setattr(target, key, value)
    elif kind == _ITEM:
        target[key] = value
    elif kind == _RECORD:
        for name, each in zip(target.saved, value, strict=True):
            setattr(target, name, each)
    elif kind == _ITEMS:
        for place, each in zip(key, value, strict=True):
            target[place] = each
    elif value:
        target.add(key)
    else:
        target.remove(key)
