"""Tables for a terminal: aligned columns that fit its width, without a library (importing one takes longer)."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Final, Literal

GAP = 2
"""Blanks between columns."""

NOT_A_TERMINAL = 100
"""Width of what goes into a file or a pipe."""

MIN_WRAPPED = 12
"""A column is not made narrower than this, nor than its longest word, to fit a width."""

Colored = Literal["auto", "always", "never"]
"""Whether text is coloured: where a terminal shows it, or what was said."""

COLORED: Final[tuple[Colored, ...]] = ("auto", "always", "never")

_NO_BREAK = "\N{NO-BREAK SPACE}"
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_TINTS: Final = {"red": "\x1b[31m", "green": "\x1b[32m", "yellow": "\x1b[33m", "cyan": "\x1b[36m"}


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: its heading, whether it is set right (numbers), and whether its text may be wrapped.

    ``tints``: by text the colour in which it is shown: red, green, yellow or cyan.
    """

    heading: str
    right: bool = False
    wrap: bool = False
    tints: Mapping[str, str] = field(default_factory=dict)


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

    def tint(self, text: str, color: str | None) -> str:
        """Colour text where that can be shown."""
        return f"{_TINTS[color]}{text}{_RESET}" if self.styled and color in _TINTS else text


def terminal(stream: IO[str] | None = None, color: Colored = "auto") -> Terminal:
    """Describe the terminal behind a stream (default: standard output); ``COLUMNS`` and ``NO_COLOR`` are heeded.

    ``color`` says otherwise than they do.
    """
    out = sys.stdout if stream is None else stream
    if out.isatty():
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return Terminal(shutil.get_terminal_size().columns, styled=color == "always" or (color == "auto" and not plain))
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) else NOT_A_TERMINAL
    return Terminal(width, styled=color == "always")


def table(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], where: Terminal | None = None) -> str:
    """Set a table, one line break at the end of every line.

    Columns take what their content needs. Where that is wider than the terminal, those that may be wrapped share
    what is left, and no word is cut. Where even so there is no room, rows stand below each other, a line or more for
    each of their cells; a single word that is wider than the terminal runs over.
    """
    where = where or Terminal()
    cells = [[_one_line(text) for text in row] for row in rows]
    widths = _fit(columns, cells, where.width)
    if widths is None:
        return "".join(f"{line}\n" for row in cells for line in _stacked(row, columns, where))
    lines = _set_row([column.heading for column in columns], columns, widths, Terminal())
    text = [where.bold(line) for line in lines]
    for row in cells:
        text.extend(_set_row(row, columns, widths, where))
    return "".join(f"{line}\n" for line in text)


def _stacked(row: Sequence[str], columns: Sequence[TableColumn], where: Terminal) -> list[str]:
    """Set a row as a block: what it is about, and below that one cell after the other."""
    first, *others = zip(row, columns, strict=True)
    lines = [where.bold(line) for line in wrap(first[0], where.width, cut=False)] if first[0] else []
    for text, column in others:
        if text:
            head, *rest = wrap(f"{column.heading}: {text}", max(1, where.width - 2 * GAP), cut=False)
            lines.append(" " * GAP + where.tint(head, column.tints.get(text)))
            lines += [" " * (2 * GAP) + line for line in rest]
    return lines


def _fit(columns: Sequence[TableColumn], cells: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Give the width of every column; None where they do not fit without cutting a word."""
    if len(columns) == 1 and not columns[0].wrap:
        return [max([text_width(columns[0].heading), *(text_width(row[0]) for row in cells)])]
    needed = [
        max([text_width(column.heading), *(text_width(row[index]) for row in cells)])
        for index, column in enumerate(columns)
    ]
    excess = sum(needed) + GAP * (len(columns) - 1) - width
    least = [_longest_word(column, [row[index] for row in cells]) for index, column in enumerate(columns)]
    while excess > 0:
        wide = [index for index, column in enumerate(columns) if column.wrap and needed[index] > least[index]]
        if not wide:
            return None
        widest = max(wide, key=lambda index: needed[index])
        others = sorted((needed[index] for index in wide if index != widest), reverse=True)
        target = max(others[0] if others else 0, needed[widest] - excess, least[widest])
        target = min(target, needed[widest] - 1)
        excess -= needed[widest] - target
        needed[widest] = target
    return needed


def _longest_word(column: TableColumn, texts: Sequence[str]) -> int:
    words = {word for text in (column.heading, *texts) for word in text.split(" ")}
    return max(MIN_WRAPPED, *map(text_width, words))


def _set_row(row: Sequence[str], columns: Sequence[TableColumn], widths: Sequence[int], where: Terminal) -> list[str]:
    wrapped = [wrap(text, width, cut=False) for text, width in zip(row, widths, strict=True)]
    tints = [column.tints.get(text) for text, column in zip(row, columns, strict=True)]
    lines = []
    for number in range(max(len(parts) for parts in wrapped)):
        parts = [part[number] if number < len(part) else "" for part in wrapped]
        padded = [_pad(text, w, right=c.right) for text, w, c in zip(parts, widths, columns, strict=True)]
        while padded and not padded[-1].strip():
            padded.pop()
        if padded:
            padded[-1] = padded[-1].rstrip()
        lines.append((" " * GAP).join(where.tint(text, tints[index]) for index, text in enumerate(padded)))
    return lines


def wrap(text: str, width: int, *, cut: bool = True) -> list[str]:
    """Break text into lines of at most ``width`` columns at blanks; a wider word is cut, or runs over if so said.

    Blanks at which no line may break become common ones once the lines are broken, so that one can search for them.
    """
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        rest = word
        while cut and text_width(rest) > width > 0:
            if line:
                lines.append(line)
                line = ""
            head = _cut(rest, width)
            lines.append(head)
            rest = rest[len(head) :]
        joined = f"{line} {rest}" if line else rest
        if text_width(joined) > width and line:
            lines.append(line)
            line = rest
        else:
            line = joined
    return [made.replace(_NO_BREAK, " ") for made in (*lines, line)]


def fold(line: str, width: int) -> list[str]:
    """Break a line at blanks; the lines that follow stand where its text begins, behind its indent and its dash."""
    text = line.lstrip(" ")
    indent = len(line) - len(text)
    hang = indent + (GAP if text.startswith("- ") or not indent else 0)
    head, *rest = wrap(text, max(1, width - hang), cut=False)
    return [" " * indent + head, *(" " * hang + more for more in rest)]


def folded(lines: Iterable[str], stream: IO[str] | None = None) -> str:
    """Join lines as they are, or broken at blanks where a terminal shows them: it would break them inside words."""
    out = sys.stdout if stream is None else stream
    if out.isatty():
        width = terminal(out).width
        lines = [part for line in lines for part in fold(line, width)]
    return "".join(f"{line}\n" for line in lines)


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
    return "".join(letter if letter.isprintable() or letter == _NO_BREAK else " " for letter in text)
