"""JSON into plain values, with the line of each value on demand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from tenure.model.documents.document import Document, Lines
from tenure.model.documents.trie import Trie, make_trie
from tenure.model.values.problems import InputProblem, InvalidInputError, shorten
from tenure.model.values.report import Path

MAX_CONTAINERS = 5_000_000
"""Lists and mappings of one document: more than any file within the limit of bytes needs that says something."""

MAX_VALUES = 25_000_000
"""Values of one document."""

_SPACE = re.compile(r"[ \t\r\n]*")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_RAW = json.JSONDecoder()


class _RepeatedKeyError(Exception):
    """A mapping names a key twice."""


def parse_json(name: str, text: str) -> Document:
    """Read a text of one JSON document.

    Raises
    ------
    InvalidInputError
        It is not well-formed, repeats a key, or is nested too deeply.

    """
    _require_bounds(name, text)
    try:
        value = json.loads(text, object_pairs_hook=_mapping)
    except _RepeatedKeyError as error:
        key = str(error)
        raise InvalidInputError(
            [InputProblem(name, _line_of_repeated(text, key), key, "is there twice; keep one of the two")]
        ) from None
    except json.JSONDecodeError as error:
        message = f"is not JSON: {error.msg} (column {error.colno})"
        raise InvalidInputError([InputProblem(name, error.lineno, "", message)]) from None
    except RecursionError:
        raise InvalidInputError(
            [InputProblem(name, 0, "", "is nested too deeply; a file needs about ten levels")]
        ) from None
    except ValueError as error:  # a number of more digits than Python converts
        raise InvalidInputError([InputProblem(name, 0, "", f"is not JSON: {shorten(str(error))}")]) from None
    if _SURROGATE.search(text):
        _require_unicode(name, value)
    return Document(name, value, partial(_locate, text))


def _require_bounds(name: str, text: str) -> None:
    """Refuse what would take gigabytes of memory: each list and each mapping takes more than its two letters."""
    for found, most, what in (
        (text.count("[") + text.count("{"), MAX_CONTAINERS, "lists and mappings"),
        (text.count(","), MAX_VALUES, "values"),
    ):
        if found > most:
            message = f"has more than the {most:,} {what} that are read (letters in texts count as well)"
            raise InvalidInputError([InputProblem(name, 0, "", message)])


def _require_unicode(name: str, value: Any) -> None:
    """Refuse escapes that are half a character: such text could be neither printed nor written."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])[1:-1]
        message = f"the escape {half} is half of a character; write the whole character, or both of its escapes"
        raise InvalidInputError([InputProblem(name, 0, "", message)]) from None


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        seen: set[str] = set()
        raise _RepeatedKeyError(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return mapping


def _line_of_repeated(text: str, key: str) -> int:
    """Find the line of the first mapping's second use of a key that is repeated within one mapping."""
    open_keys: list[set[str] | None] = []
    position = 0
    while position < len(text):
        character = text[position]
        if character in "{[":
            open_keys.append(set() if character == "{" else None)
        elif character in "}]":
            open_keys.pop()
        elif character == '"':
            start = position
            found, position = _RAW.raw_decode(text, position)
            after = _skip(text, position)
            if text[after : after + 1] == ":" and found == key and open_keys[-1] is not None:
                if key in open_keys[-1]:
                    return text.count("\n", 0, start) + 1
                open_keys[-1].add(key)
            continue
        position += 1
    return 0


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _locate(text: str, paths: Iterable[Path]) -> Lines:
    """Find the lines of paths; a path that is not there has that of its parent."""
    trie = make_trie(paths)
    start = _skip(text, 0)
    walker = _Walker(text)
    trie.settle(walker.line(start))
    walker.walk(start, trie)
    return trie.lines


class _Walker:
    """Goes along the wanted paths and skips all other values at the speed of the decoder."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = 1
        self._counted = 0

    def line(self, position: int) -> int:
        """Give the line of a position; positions are asked for in order."""
        self._line += self._text.count("\n", self._counted, position)
        self._counted = position
        return self._line

    def walk(self, position: int, trie: Trie | None) -> int:
        """Pass the value at a position and give the position behind it."""
        character = self._text[position]
        if trie is None or character not in "{[":
            return _RAW.raw_decode(self._text, position)[1]
        close = "}" if character == "{" else "]"
        index = 0
        position = _skip(self._text, position + 1)
        while self._text[position] != close:
            step: str | int = index
            start = position
            if close == "}":
                step, position = _RAW.raw_decode(self._text, position)
                position = _skip(self._text, _skip(self._text, position) + 1)
            inner = trie.child(step)
            if inner is not None:
                inner.settle(self.line(start))
            position = _skip(self._text, self.walk(position, inner))
            if self._text[position] == ",":
                position = _skip(self._text, position + 1)
            index += 1
        return position + 1
