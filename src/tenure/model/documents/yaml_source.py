"""YAML into plain values, from libyaml's events.

Built from events, not from nodes: no object per value has to be kept for its line (lines are found by a second pass,
only when there is something to report), nesting is bounded before it can exhaust the stack, and what aliases expand
to is counted. Scalars follow YAML 1.2 (``off`` and ``no`` are text, ``010`` and ``1_000`` are no numbers).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

import yaml

from tenure.model.documents.document import Document, Lines
from tenure.model.documents.trie import Trie, make_trie
from tenure.model.values.problems import InputProblem, InvalidInputError, shorten
from tenure.model.values.report import MAX_PROBLEMS, Path, path_text
from tenure.model.values.scalars import resolve_scalar

MAX_DEPTH = 100
"""Levels of nesting; a cluster file needs about ten."""

MAX_VALUES = 2_000_000
"""Values in one text, with aliases expanded; a cluster file of 100,000 pods has half a million."""

MAX_DOCUMENTS = 20_000
"""Documents in one text; each takes a kilobyte beside what it holds."""

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CORE_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null"))
_KNOWN_TAGS = _CORE_TAGS | {"!", *(f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq"))}
_MERGE = "<<"


def parse_yaml(name: str, text: str) -> tuple[Document, ...]:
    """Read all documents of a text; empty ones are left out.

    Raises
    ------
    InvalidInputError
        It is not well-formed, repeats a key, or is nested or expanded beyond the limits.

    """
    try:
        values = _Reader(name, text).read()
    except yaml.YAMLError as error:
        raise InvalidInputError([_syntax_problem(name, text, error)]) from None
    return tuple(
        Document(name, value, partial(_locate, text, number), number, partial(_locate_all, text))
        for number, value in enumerate(values)
        if value is not None
    )


class _Reader:
    """Builds the values of a text from its events."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._next = _LOADER(text).get_event
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._plain: dict[str, Any] = {}
        self._count = 0
        self._problems: list[InputProblem] = []
        self._suppressed = 0

    def read(self) -> list[Any]:
        values: list[Any] = []
        while (event := self._next()) is not None:
            if type(event) is yaml.DocumentStartEvent:
                if len(values) == MAX_DOCUMENTS:
                    message = f"holds more than {MAX_DOCUMENTS:,} documents; split it into several files"
                    raise InvalidInputError([InputProblem(self._name, _line(event), "", message)])
                self._anchors.clear()
                values.append(self._value(self._next(), ()))
                self._next()
        if self._suppressed:
            message = f"{self._suppressed} further problems are not shown"
            self._problems.append(InputProblem(self._name, 0, "", message))
        if self._problems:
            raise InvalidInputError(self._problems)
        return values

    def _value(self, event: Any, path: Path) -> Any:
        kind = type(event)
        if kind is yaml.AliasEvent:
            return self._alias(event, path)
        before = self._count
        self._count += 1
        if before >= MAX_VALUES:
            message = f"the file holds more than {MAX_VALUES:,} values; write it as JSON, which may hold more"
            raise InvalidInputError([InputProblem(self._name, _line(event), path_text(path), message)])
        if kind is yaml.ScalarEvent:
            value = self._scalar(event, path)
        elif len(path) >= MAX_DEPTH:
            message = f"is nested deeper than {MAX_DEPTH} levels; a file needs about ten"
            raise InvalidInputError([InputProblem(self._name, _line(event), path_text(path[:5]) + "…", message)])
        else:
            self._check_tag(event, path)
            value = self._sequence(path) if kind is yaml.SequenceStartEvent else self._mapping(path)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._count - before)
        return value

    def _scalar(self, event: Any, path: Path) -> Any:
        text: str = event.value
        if event.implicit[0]:
            value = self._plain.get(text, self)
            if value is self:
                value = self._plain[text] = resolve_scalar(text)
            return value
        if event.tag in _CORE_TAGS:
            return resolve_scalar(text)
        self._check_tag(event, path)
        return text

    def _check_tag(self, event: Any, path: Path) -> None:
        if event.tag is not None and event.tag not in _KNOWN_TAGS:
            self._fault(event, path, f"tag {shorten(event.tag)} is not known; leave it out")

    def _sequence(self, path: Path) -> list[Any]:
        values: list[Any] = []
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            values.append(self._value(event, (*path, len(values))))
        return values

    def _mapping(self, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        while type(event := self._next()) is not yaml.MappingEndEvent:
            key = self._key(event, path)
            value = self._value(self._next(), (*path, key))
            if key == _MERGE and type(event) is yaml.ScalarEvent and event.implicit[0]:
                merged.extend(self._merged(event, value, path))
            elif key in values:
                self._fault(event, (*path, key), "is there twice; keep one of the two")
            else:
                values[key] = value
        return _joined(merged, values) if merged else values

    def _key(self, event: Any, path: Path) -> str:
        if type(event) is yaml.ScalarEvent:
            return str(event.value)
        value = self._value(event, (*path, "?"))
        if isinstance(value, str):
            return value
        raise InvalidInputError(
            [InputProblem(self._name, _line(event), path_text(path), "a key is not text; write 'key: value'")]
        )

    def _merged(self, event: Any, value: Any, path: Path) -> list[dict[str, Any]]:
        parts = value if isinstance(value, list) else [value]
        if all(isinstance(part, dict) for part in parts):
            return parts
        self._fault(event, path, "'<<' merges mappings; what it names is none")
        return []

    def _alias(self, event: Any, path: Path) -> Any:
        if event.anchor not in self._anchors:
            self._fault(
                event, path, f"alias *{event.anchor} stands before its anchor ends, or has none; write the value"
            )
            return None
        value, size = self._anchors[event.anchor]
        self._count += size
        if self._count > MAX_VALUES:
            message = f"aliases expand to more than {MAX_VALUES:,} values; write less of them"
            raise InvalidInputError([InputProblem(self._name, _line(event), path_text(path), message)])
        return value

    def _fault(self, event: Any, path: Path, message: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(InputProblem(self._name, _line(event), path_text(path), message))
        else:
            self._suppressed += 1


def _joined(merged: list[dict[str, Any]], values: dict[str, Any]) -> dict[str, Any]:
    """Join a mapping's own values with those that it merges: its own before all others, of these the first named."""
    joined: dict[str, Any] = {}
    for other in reversed(merged):
        joined.update(other)
    joined.update(values)
    return joined


def _syntax_problem(name: str, text: str, error: Any) -> InputProblem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        # libyaml's reader refuses some characters outright and counts in bytes
        position = getattr(error, "position", 0)
        line = text.encode()[:position].count(b"\n") + 1
        return InputProblem(
            name, line, "", f"is not YAML: {getattr(error, 'reason', 'unreadable')}; remove the character"
        )
    rows = text.split("\n")
    row = rows[mark.line] if mark.line < len(rows) else ""
    if row[: mark.column + 1].strip(" -").startswith("\t"):
        return InputProblem(
            name, mark.line + 1, "", "is not YAML: a tab stands where spaces are due; indent with spaces"
        )
    context = getattr(error, "context", None)
    problem = getattr(error, "problem", None) or "unreadable"
    what = f"{problem} {context}" if context else problem
    return InputProblem(name, mark.line + 1, "", f"is not YAML: {what} (column {mark.column + 1})")


def _locate(text: str, number: int, paths: Iterable[Path]) -> Lines:
    """Find the lines of paths in the document of that number; a path that is not there has that of its parent."""
    return _locate_all(text, {number: paths}).get(number, {})


def _locate_all(text: str, wanted: Mapping[int, Iterable[Path]]) -> Mapping[int, Lines]:
    """Find the lines of paths in several documents of a text, by number, in one pass."""
    advance = _LOADER(text).get_event
    tries = {number: make_trie(paths) for number, paths in wanted.items()}
    last, count = max(tries, default=-1), -1
    while count < last and (event := advance()) is not None:
        if type(event) is yaml.DocumentStartEvent:
            count += 1
            trie = tries.get(count)
            start: Any = advance()
            if trie is not None:
                trie.settle(_line(start))
            _walk(advance, start, trie)
    return {number: trie.lines for number, trie in tries.items()}


def _walk(advance: Any, event: Any, trie: Trie | None) -> None:
    """Go along the wanted paths through the value that begins with an event."""
    kind = type(event)
    if trie is None:
        _skip(advance, event)
    elif kind is yaml.SequenceStartEvent:
        index = 0
        while type(event := advance()) is not yaml.SequenceEndEvent:
            inner = trie.child(index)
            if inner is not None:
                inner.settle(_line(event))
            _walk(advance, event, inner)
            index += 1
    elif kind is yaml.MappingStartEvent:
        while type(key := advance()) is not yaml.MappingEndEvent:
            inner = trie.child(key.value) if type(key) is yaml.ScalarEvent else None
            if inner is not None:
                inner.settle(_line(key))
            _walk(advance, advance(), inner)


def _skip(advance: Any, event: Any) -> None:
    """Pass over the value that begins with an event."""
    depth = 0
    while True:
        kind = type(event)
        if kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            depth += 1
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            depth -= 1
        if not depth:
            return
        event = advance()


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
