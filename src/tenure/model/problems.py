"""What is wrong with a user's input, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where (``path`` inside the document may be empty), what, and what would be right."""

    file: str
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        """Give it as one line: ``FILE:LINE: PATH: message``."""
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (where, self.path, self.message) if part)


class InvalidInputError(Exception):
    """Input that cannot be used, with everything that is wrong with it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)
