"""Reading what a tenant wrote, in bounds: the one place where text of a stranger becomes a value.

Whoever may create a pod or a group writes its annotations and labels: up to 256 KiB, in any shape. Every reader here
is total. It gives a value within stated bounds or None, it never raises, and what is wrong is noted as a sentence
about the object, which goes into an event; a few of them at the most, each short and printable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from tenure.clusters.kubernetes.decoding import decode
from tenure.model.values.duration import parse_duration, parse_time
from tenure.model.values.problems import printable, shorten
from tenure.model.values.quantity import parse_queue_quantity
from tenure.model.values.resources import GPU

T = TypeVar("T")

MOST_TEXT: Final = 4096
"""Characters of an annotation that is read, but for the notes that the scheduler itself writes."""

MOST_NOTE: Final = 65_536
"""Characters of such a note: it may name every pod of a node."""

MOST_NESTED: Final = 64
"""Brackets of a note that is read: those that are written have two pairs."""

MOST_DIGITS: Final = 9
"""Digits of a whole number: it fits 32 bits."""

MOST_LISTED: Final = 1024
"""Numbers or names of a list."""

LONGEST: Final = 3650 * 86_400 * 1_000_000
"""The longest duration that a workload may state, in µs: ten years, so that no sum of times leaves the calendar."""

MOST_PROBLEMS: Final = 8
"""So many things are told of one object; of the others, that there are more."""

DEEPEST: Final = 200
"""Levels of an object that are read; kinds of others may hold anything, and decoders recurse."""

TOO_DEEP: Final = b'"(nests too deep to be read)"'
"""What stands where an object was cut because it nests deeper."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')
_NAME: Final = re.compile(r"[a-z0-9A-Z]([-_.a-z0-9A-Z]{0,251}[a-z0-9A-Z])?")


class ObjectText:
    """The annotations (or labels) of one object, read in bounds. ``problems`` gets what cannot be read."""

    __slots__ = ("_said", "_texts", "problems")

    def __init__(self, texts: Mapping[str, str] | None, problems: list[str]) -> None:
        self._texts = texts or {}
        self._said = 0
        self.problems = problems

    def text(self, key: str, most: int = MOST_TEXT) -> str | None:
        """Give a text of at most so many characters; None where there is none."""
        found = self._texts.get(key)
        if found is None:
            return None
        if not isinstance(found, str) or len(found) > most:
            self.complain(key, f"has {len(found)} characters; {most} are read at the most")
            return None
        return found

    def name(self, key: str) -> str | None:
        """Give a text that may name something: letters, digits, ``-``, ``_`` and ``.``, as an object's name."""
        found = self.text(key, 253)
        if not found or _NAME.fullmatch(found):
            return found or None
        self.complain(key, f"{shorten(found)} is no name; it has letters, digits, '-', '_' and '.'")
        return None

    def choice(self, key: str, words: Iterable[str]) -> str | None:
        """Give one of some words."""
        found = self.text(key)
        if found is None or found in words:
            return found
        self.complain(key, f"{shorten(found)} is none of {', '.join(words)}")
        return None

    def whole(self, key: str, low: int = -(10**MOST_DIGITS), high: int = 10**MOST_DIGITS) -> int | None:
        """Give a whole number within bounds."""
        found = self.text(key)
        if found is None:
            return None
        number = _whole(found)
        if number is None or not low <= number <= high:
            self.complain(key, f"{shorten(found)} is no whole number from {low} to {high}")
            return None
        return number

    def numbers(self, key: str) -> tuple[int, ...]:
        """Give numbers of devices: whole, not negative, separated by commas; none where any of them is not."""
        found = self.text(key)
        if not found:
            return ()
        parts = found.split(",", MOST_LISTED)
        read = [_whole(part) for part in parts]
        if len(parts) > MOST_LISTED or any(n is None or n < 0 for n in read):
            self.complain(key, f"{shorten(found)} is no list of GPU numbers; write one such as 0,3")
            return ()
        return tuple(n for n in read if n is not None)

    def time(self, key: str) -> int | None:
        """Give a time, in µs since the epoch."""
        return self._parsed(key, parse_time)

    def duration(self, key: str) -> int | None:
        """Give a duration in µs, at most `LONGEST`."""
        found = self._parsed(key, parse_duration)
        if found is None or found <= LONGEST:
            return found
        self.complain(key, "is longer than ten years; ten years count")
        return LONGEST

    def gpus(self, key: str) -> int | None:
        """Give an amount of GPUs, in milli-GPU."""
        return self._parsed(key, lambda text: parse_queue_quantity(text, GPU))

    def complain(self, key: str, what: str) -> None:
        """Note that something cannot be read."""
        self._said += 1
        if self._said <= MOST_PROBLEMS:
            self.problems.append(f"annotation {key}: {printable(what)}")
        elif self._said == MOST_PROBLEMS + 1:
            self.problems.append("more annotations cannot be read")

    def _parsed(self, key: str, parse: Callable[[str], int]) -> int | None:
        found = self.text(key)
        if found is None:
            return None
        try:
            return parse(found)
        except (ValueError, OverflowError) as error:
            self.complain(key, str(error))
            return None


def decoded(text: str, kind: type[T]) -> T | str:
    """Give what a short JSON text says, or a sentence on what is wrong with it."""
    if text.count("[") + text.count("{") > MOST_NESTED:
        return f"nests deeper than {MOST_NESTED} brackets"
    try:
        return decode(text, kind)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        return str(error)


def shallow(data: bytes, most: int = DEEPEST) -> bytes:
    """Give a JSON text in which whatever nests deeper than so many levels is replaced by `TOO_DEEP`."""
    kept: list[bytes] = []
    depth = position = 0
    for token in _TOKEN.finditer(data):
        first = data[token.start()]
        if first in b"[{":
            if depth == most:
                kept.append(data[position : token.start()] + TOO_DEEP)
            depth += 1
        elif first in b"]}":
            depth -= 1
            if depth == most:
                position = token.end()
    kept.append(data[position:])
    return b"".join(kept)


def total(read: Callable[[], T], otherwise: T, complain: Callable[[str], None]) -> T:
    """Give what a reader gives; where it fails, whatever the reason, tell of that and give something else.

    What is read here comes from a stranger: a reader that was not written for it costs the one object, and no other.
    """
    try:
        return read()
    except Exception as error:  # noqa: BLE001  whatever a stranger wrote costs that object alone
        complain(f"cannot be read: {brief(error)}")
        return otherwise


def brief(error: BaseException) -> str:
    """Give an error as one short, printable line."""
    return printable(shorten(f"{type(error).__name__}: {error}", 200))


def _whole(text: str) -> int | None:
    digits = text[1:] if text[:1] == "-" else text
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > MOST_DIGITS:
        return None
    return int(text)
