"""The one protocol of caches: what was worked out holds as long as the version that it depends on is the same.

Versions are numbers that the state keeps of its parts (`tenure.engine.versions`): a new one after every change, and the
old one again once the change is undone. So nothing is told to a cache, and no cache looks at which object it was.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import eq
from types import GenericAlias
from typing import Any, ClassVar, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class StaleMemoError(AssertionError):
    """The error of a memo that gives another value than it would work out now: it depends on more than it says."""


class Memo(Generic[Key, Value]):
    """Values by key, each with the version on which it depends.

    ``known`` is for a loop that cannot afford the call: what is there and has the present version may be taken. While
    memos are ``checked``, as in every test, it stays empty, and each value that is known is worked out once more and
    compared, by ``same`` where ``==`` asks for identity.
    """

    checked: ClassVar[bool] = False

    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)  # that of typing takes longer than to make a memo

    __slots__ = ("_depends", "_kept", "_same", "_work_out", "known")

    def __init__(
        self,
        work_out: Callable[[Key], Value],
        depends: Callable[[Key], object],
        same: Callable[[Value, Value], bool] = eq,
    ) -> None:
        self._work_out = work_out
        self._same = same
        self._depends = depends
        self.known: dict[Key, tuple[object, Value]] = {}
        self._kept = {} if self.checked else self.known

    def __call__(self, key: Key) -> Value:
        """Give the value of a key as things are."""
        version, found = self._depends(key), self._kept.get(key)
        if found is None or found[0] != version:
            found = self._kept[key] = version, self._work_out(key)
        elif self.checked:
            self._check(key, found[1])
        return found[1]

    def _check(self, key: Key, value: Value) -> None:
        now = self._work_out(key)
        if not self._same(now, value):
            raise StaleMemoError(f"{self._work_out.__qualname__} of {key!r} was {value!r}, and would be {now!r}")
