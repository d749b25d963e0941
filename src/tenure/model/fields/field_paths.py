"""Paths into an object: the part of JSONPath that names fields, with bounds on what it costs and what it gives.

``.spec.replicas``, ``.spec.tasks[*].name``, ``.metadata.labels['a/b']``, ``.items[0]``; ``$`` before it means the
object as a whole where a path would else begin at a part of it. There are no filters, scripts or descents to any depth:
each step of a path looks at what the last one gave, once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final

from tenure.model.fields.kinds import Schema, ValueKind

MOST_STEPS: Final = 16
"""Steps of a path."""

MOST_FOUND: Final = 1024
"""Values that a path gives; what is beyond is passed over."""

MOST_CHARACTERS: Final = 256

Place = tuple[str | int, ...]
"""Keys and indices, from an object down to a part of it."""

_STEP: Final = re.compile(
    r"\.(?P<name>[A-Za-z0-9_-]+)|\[(?:'(?P<single>[^'\]]+)'|\"(?P<double>[^\"\]]+)\"|(?P<number>\d{1,6})|(?P<all>\*))\]"
    r"|\.(?P<every>\*)"
)
_PATTERN: Final = r"^\{?\$?(\.[A-Za-z0-9_-]+|\.\*|\[('[^'\]]+'|\"[^\"\]]+\"|[0-9]{1,6}|\*)\]){1,16}\}?$"
"""The same for others: what the API server takes can be read."""

_EXAMPLE: Final = "write one such as .spec.replicas, .spec.tasks[*].name or .metadata.labels['a/b']"


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A path into an object. A step is a key, an index, or None for every item of a list or value of a mapping.

    ``from_top``: it begins at the object as a whole, also where others begin at a part of it.
    """

    text: str
    steps: tuple[str | int | None, ...]
    from_top: bool = False

    def __str__(self) -> str:
        """Give it as it was written."""
        return self.text

    def found(self, value: Any) -> Iterator[Any]:
        """Give what stands there, at most `MOST_FOUND` values; nothing that is not there, and no null."""
        for _, found in self.located(value):
            yield found

    def located(self, value: Any) -> Iterator[tuple[Place, Any]]:
        """Give what stands there, each with the keys and indices that led to it."""
        values: list[tuple[Place, Any]] = [((), value)]
        for step in self.steps:
            values = [((*at, key), inner) for at, outer in values for key, inner in _below(outer, step)][:MOST_FOUND]
        return ((at, inner) for at, inner in values if inner is not None)

    def first(self, value: Any) -> Any:
        """Give the first value that stands there; None where there is none."""
        return next(self.found(value), None)


def _below(value: Any, step: str | int | None) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        if step is None:
            yield from value.items()
        elif step in value:
            yield step, value[step]
    elif isinstance(value, list):
        if step is None:
            yield from enumerate(value)
        elif isinstance(step, int) and step < len(value):
            yield step, value[step]


@cache
def field_path(text: str) -> FieldPath:
    """Read a path.

    Raises
    ------
    ValueError
        It is none, or one with more than `MOST_STEPS` steps.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"has {len(text)} characters; {MOST_CHARACTERS} are read at the most")
    inner = text.removeprefix("{").removesuffix("}")
    from_top = inner.startswith("$")
    rest, steps = inner.removeprefix("$"), []
    position = 0
    while position < len(rest):
        step = _STEP.match(rest, position)
        if step is None:
            raise ValueError(f"{text!r} is no path of fields (from {rest[position : position + 20]!r} on); {_EXAMPLE}")
        steps.append(_step(step))
        position = step.end()
    if not steps:
        raise ValueError(f"{text!r} names no field; {_EXAMPLE}")
    if len(steps) > MOST_STEPS:
        raise ValueError(f"{text!r} has {len(steps)} steps; {MOST_STEPS} are read at the most")
    return FieldPath(text, tuple(steps), from_top)


def _step(step: re.Match[str]) -> str | int | None:
    if step["all"] or step["every"]:
        return None
    return int(step["number"]) if step["number"] else step["name"] or step["single"] or step["double"]


class FieldPathKind(ValueKind):
    """A path into an object, as text."""

    shape: ClassVar[Schema] = {"type": "string", "maxLength": MOST_CHARACTERS, "pattern": _PATTERN}

    def parse(self, value: Any) -> FieldPath:
        """Read a path."""
        if not isinstance(value, str):
            raise ValueError(f"is no text; {_EXAMPLE}")  # noqa: TRY004  what is wrong with input is a ValueError here
        return field_path(value)

    def encode(self, value: FieldPath) -> str:
        """Write it as it was."""
        return value.text
