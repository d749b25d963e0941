"""What is wrong with an input: data first, text at the edge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

IS_FOLDER = "is a folder; name a file in it"
"""What is wrong with the name of a folder where one of a file is expected."""

LONGEST_MEANT = 64
"""Letters of a word to which close ones are looked for."""

MOST_MEANT = 2_000
"""Known words among which a close one is looked for."""

MOST_COMPARED = 20_000
"""Comparisons of words, for all unknown names of one input."""


@dataclass(frozen=True, slots=True, order=True)
class InputProblem:
    """A problem of an input: what is wrong, where, and what would be right.

    ``line`` counts from 1; 0 where there is none (a command-line value, a file that cannot be read).
    ``path`` leads to the value inside the file (``queues[2].max.cpu``); empty for the file as a whole.
    """

    file: str
    line: int
    path: str
    message: str

    def __str__(self) -> str:
        """Give the text form, ``FILE:LINE: PATH: message``, on one line; parts that are missing are left out."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        text = f"{place}: {self.path}: {self.message}" if self.path else f"{place}: {self.message}"
        return printable(text)


class InvalidInputError(Exception):
    """An input has problems; nothing of it was applied."""

    def __init__(self, problems: Iterable[InputProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        """Give all problems, one per line."""
        return "\n".join(map(str, self.problems))


def printable(value: object) -> str:
    """Write a value on one line, without characters that end it, move a cursor or turn the direction of writing."""
    text = str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shorten(value: object, limit: int = 60) -> str:
    """Write a value for a message: quoted if it is text, cut where it is long."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def nearest(word: str, known: Iterable[str]) -> str:
    """Say what may have been meant: ``; did you mean X?``, or nothing where no known word is close.

    A word without a ``/`` is also compared with what stands behind that of known ones: ``gpu`` is near to
    ``nvidia.com/gpu``.
    Words longer than `LONGEST_MEANT`, and more than `MOST_MEANT` known ones, are only compared but for their case:
    what is close to a long word, or to one of thousands, takes long to find.
    """
    from difflib import get_close_matches  # noqa: PLC0415  only needed once something is wrong

    listed, lower = tuple(known), word.lower()
    behind = {} if "/" in word else {k.rpartition("/")[2].lower(): k for k in reversed(listed)}
    folded = behind | {k.lower(): k for k in listed}
    if lower in folded:
        return f"; did you mean {folded[lower]}?"
    if len(word) > LONGEST_MEANT or len(listed) > MOST_MEANT:
        return ""
    close = get_close_matches(lower, [k for k in folded if len(k) <= LONGEST_MEANT], n=1, cutoff=0.6)
    return f"; did you mean {folded[close[0]]}?" if close else ""


class NearestNames:
    """Says what was meant by names that are not there, for as many of them as that can be found out quickly.

    The effort for all names of one input together is bounded: `MOST_COMPARED` comparisons.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._known = tuple(known)
        self._left = MOST_COMPARED

    def hint(self, word: str) -> str:
        """Give `nearest`; nothing once the effort is spent."""
        self._left -= len(self._known)
        return nearest(word, self._known) if self._left >= 0 else ""
