"""Tables for a terminal: aligned columns that fit its width, without a library (importing one takes longer)."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

GAP = 2
"""Blanks between columns."""

NOT_A_TERMINAL = 100
"""Width of what goes into a file or a pipe."""

MIN_WRAPPED = 12
"""A column is not made narrower than this to fit a width; a table too wide even so runs over."""

_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: its heading, whether it is set right (numbers), and whether its text may be wrapped."""

    heading: str
    right: bool = False
    wrap: bool = False


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal: how wide it is, and whether it shows bold and dim letters."""

    width: int = NOT_A_TERMINAL
    styled: bool = False

    def bold(self, text: str) -> str:
        """Make text bold where that can be shown."""
        return f"{_BOLD}{text}{_RESET}" if self.styled else text

    def dim(self, text: str) -> str:
        """Make text dim where that can be shown."""
        return f"{_DIM}{text}{_RESET}" if self.styled else text


def terminal(stream: IO[str] | None = None) -> Terminal:
    """Describe the terminal behind a stream (default: standard output); ``COLUMNS`` and ``NO_COLOR`` are heeded."""
    out = sys.stdout if stream is None else stream
    if out.isatty():
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return Terminal(shutil.get_terminal_size().columns, styled=not plain)
    columns = os.environ.get("COLUMNS", "")
    return Terminal(int(columns) if columns.isdecimal() and int(columns) else NOT_A_TERMINAL)


def table(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], where: Terminal | None = None) -> str:
    """Set a table, one line break at the end of every line.

    Columns take what their content needs. Where that is wider than the terminal, those that may be wrapped share
    what is left; if it does not fit even so, lines run over rather than lose anything.
    """
    where = where or Terminal()
    cells = [[_one_line(text) for text in row] for row in rows]
    widths = _fit(columns, cells, where.width)
    lines = _set_row([column.heading for column in columns], columns, widths)
    text = [where.bold(line) for line in lines]
    for row in cells:
        text.extend(_set_row(row, columns, widths))
    return "".join(f"{line}\n" for line in text)


def _fit(columns: Sequence[TableColumn], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    needed = [
        max([text_width(column.heading), *(text_width(row[index]) for row in cells)])
        for index, column in enumerate(columns)
    ]
    excess = sum(needed) + GAP * (len(columns) - 1) - width
    while excess > 0:
        wide = [index for index, column in enumerate(columns) if column.wrap and needed[index] > MIN_WRAPPED]
        if not wide:
            break
        widest = max(wide, key=lambda index: needed[index])
        others = sorted((needed[index] for index in wide if index != widest), reverse=True)
        target = max(others[0] if others else 0, needed[widest] - excess, MIN_WRAPPED)
        target = min(target, needed[widest] - 1)
        excess -= needed[widest] - target
        needed[widest] = target
    return needed


def _set_row(row: Sequence[str], columns: Sequence[TableColumn], widths: Sequence[int]) -> list[str]:
    wrapped = [wrap(text, width) for text, width in zip(row, widths, strict=True)]
    lines = []
    for number in range(max(len(parts) for parts in wrapped)):
        parts = [part[number] if number < len(part) else "" for part in wrapped]
        padded = [_pad(text, w, right=c.right) for text, w, c in zip(parts, widths, columns, strict=True)]
        lines.append((" " * GAP).join(padded).rstrip())
    return lines


def wrap(text: str, width: int) -> list[str]:
    """Break text into lines of at most ``width`` columns, at blanks where there are any."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        rest = word
        while text_width(rest) > width > 0:
            if line:
                lines.append(line)
                line = ""
            head = _cut(rest, width)
            lines.append(head)
            rest = rest[len(head) :]
        joined = f"{line} {rest}" if line else rest
        if text_width(joined) > width:
            lines.append(line)
            line = rest
        else:
            line = joined
    return [*lines, line]


def _cut(text: str, width: int) -> str:
    length = 1
    while length < len(text) and text_width(text[: length + 1]) <= width:
        length += 1
    return text[:length]


def text_width(text: str) -> int:
    """Columns that a text takes: two for wide East Asian letters, none for marks that combine."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def _pad(text: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - text_width(text))
    return blanks + text if right else text + blanks


def _one_line(text: str) -> str:
    """Make control characters visible: what a file says must not move the cursor."""
    return "".join(letter if letter.isprintable() or letter == "\N{NO-BREAK SPACE}" else " " for letter in text)
