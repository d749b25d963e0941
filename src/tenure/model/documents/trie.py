"""The paths whose lines are wanted, as a tree that a second pass over a document walks along."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.model.values.report import Path


class Trie:
    """A step of wanted paths. ``lines`` is shared by the whole tree and holds what was found so far."""

    __slots__ = ("_children", "lines", "path")

    def __init__(self, path: Path, lines: dict[Path, int]) -> None:
        self.path = path
        self.lines = lines
        self._children: dict[str | int, Trie] = {}

    def child(self, step: str | int) -> Trie | None:
        """Give the subtree behind a step, if any path goes there."""
        return self._children.get(step)

    def settle(self, line: int) -> None:
        """Note the line of this step, for it and, until they are found themselves, for all steps behind it."""
        self.lines[self.path] = line
        for inner in self._children.values():
            inner.settle(line)

    def insert(self, path: Path) -> None:
        """Add a path."""
        place = self
        for step in path:
            inner = place._children.get(step)
            if inner is None:
                inner = place._children[step] = Trie((*place.path, step), self.lines)
            place = inner


def make_trie(paths: Iterable[Path]) -> Trie:
    """Make the tree of some paths."""
    root = Trie((), {})
    for path in paths:
        root.insert(path)
    return root
