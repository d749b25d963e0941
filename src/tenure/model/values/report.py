"""Where problems are collected while a document is read: all of them, with their paths, before any is shown."""

from __future__ import annotations

from typing import Any, Final

Path = tuple[Any, ...]
"""Steps from the top of a document to a value: keys (text) and places in lists (integers)."""

Trail = tuple[Any, Any] | None
"""A path as it grows while a document is read: the trail so far and one step more. `None` is the top."""

MAX_PROBLEMS = 1_000
"""Further problems of one document are counted, not kept: they are not read, and a large file can have millions."""


class _Bad:
    """The type of `BAD`."""

    __slots__ = ()


BAD: Final[Any] = _Bad()
"""What stands for a value that could not be read; its problem is in the report already."""


class ProblemReport:
    """Problems and warnings of one document, each a path and a message."""

    __slots__ = ("problems", "suppressed", "suppressed_warnings", "warnings")

    def __init__(self) -> None:
        self.problems: list[tuple[Path, str]] = []
        self.warnings: list[tuple[Path, str]] = []
        self.suppressed = 0
        self.suppressed_warnings = 0

    @property
    def full(self) -> bool:
        """Whether further problems are only counted, so that they need not be put in words."""
        return len(self.problems) >= MAX_PROBLEMS

    def add(self, trail: Trail, message: str) -> None:
        """Note that the value at the end of the trail is wrong."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append((unroll(trail), message))
        else:
            self.suppressed += 1

    def warn(self, trail: Trail, message: str) -> None:
        """Note that the value at the end of the trail is allowed but deserves a look."""
        if len(self.warnings) < MAX_PROBLEMS:
            self.warnings.append((unroll(trail), message))
        else:
            self.suppressed_warnings += 1


def unroll(trail: Trail) -> Path:
    """Turn a trail into a path."""
    steps = []
    while trail is not None:
        trail, step = trail
        steps.append(step)
    return tuple(reversed(steps))


def trail_of(path: Path) -> Trail:
    """Turn a path into a trail."""
    trail: Trail = None
    for step in path:
        trail = (trail, step)
    return trail


def path_text(path: Path) -> str:
    """Write a path: ``workloads[3].tasks[0].requests.cpu``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")
