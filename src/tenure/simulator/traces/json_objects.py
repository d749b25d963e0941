"""Reading JSON record by record: an array of objects, an object that has such an array, or one object a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tenure.simulator.traces.source import TraceSource

BLANK = re.compile(r"[ \t\r\n]*")


class JsonObjects:
    """Gives the objects of a file one after the other, each with the number of the line on which it begins.

    Where the file is one object, they are those of its array ``key``, if a key is given.
    """

    def __init__(self, source: TraceSource, key: str | None = None) -> None:
        self._source = source
        self._key = key
        self._text = source.text()
        self._decoder = json.JSONDecoder()
        self._at = 0
        self._counted = 0
        self._line = 1

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Read on.

        Raises
        ------
        InvalidInputError
            It is no JSON, or a record is no object.
        """
        if self._next() == "[":
            yield from self._array()
        elif self._next() == "{" and self._key is not None:
            yield from self._member(self._key)
        else:
            while self._next():
                yield self._object()

    def _next(self) -> str:
        """Give the next sign that is not blank; empty at the end."""
        found = BLANK.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        return self._text[self._at : self._at + 1]

    def _here(self) -> int:
        """Give the number of the line where reading is."""
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _value(self) -> Any:
        self._next()
        try:
            value, self._at = self._decoder.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            self._at = min(error.pos, len(self._text))
            raise self._source.fail(f"no valid JSON: {error.msg.lower()}: was the file cut?", self._here()) from None
        except (ValueError, RecursionError):
            raise self._source.fail(
                "no JSON that can be read: a number or a nesting without end", self._here()
            ) from None
        return value

    def _object(self) -> tuple[int, dict[str, Any]]:
        line = self._here()
        value = self._value()
        if not isinstance(value, dict):
            raise self._source.fail("a record is a JSON object, and this is none", line)
        return line, value

    def _expect(self, signs: str) -> str:
        sign = self._next()
        if not sign or sign not in signs:
            wanted = " or ".join(map(repr, signs))
            raise self._source.fail(f"no valid JSON: {wanted} is missing: was the file cut?", self._here())
        self._at += 1
        return sign

    def _array(self) -> Iterator[tuple[int, dict[str, Any]]]:
        self._expect("[")
        if self._next() == "]":
            self._at += 1
            return
        while True:
            self._next()
            yield self._object()
            if self._expect(",]") == "]":
                return

    def _member(self, key: str) -> Iterator[tuple[int, dict[str, Any]]]:
        line = self._here()
        self._expect("{")
        if self._next() == "}":
            raise self._source.fail(f"the object has no {key!r}", line)
        there: list[str] = []
        while True:
            name = self._value()
            self._expect(":")
            if name == key and self._next() == "[":
                yield from self._array()
                return
            there.append(str(name))
            self._value()
            if self._expect(",}") == "}":
                raise self._source.fail(f"the object has no list {key!r}; there are {', '.join(there)}", line)
