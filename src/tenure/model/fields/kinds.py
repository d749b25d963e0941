"""What a field of a file may hold: how it is read, written and described in the JSON schema.

A dataclass says what each field holds by its type, with ``Annotated`` where the type alone does not say it
(``Duration`` is an ``int`` of microseconds that files write as ``1h30m``). Loading, writing, ``--set`` and the JSON
schema all go by that one definition; `tenure.model.fields.records` reads it off the dataclasses.

pydantic could do this as well; importing it and building its schemas took longer than everything else that a command
on a small file does together (0.5 s against 0.05 s here), and its messages would all have to be rewritten.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from tenure.model.values import duration
from tenure.model.values.problems import nearest, shorten
from tenure.model.values.report import BAD, ProblemReport, Trail

INT32 = 2**31
INT64 = 2**63

Schema = dict[str, Any]
Definitions = dict[str, Schema]


class ValueKind:
    """A kind of values: how they are read (`decode`), written (`encode`) and described (`schema`)."""

    shape: ClassVar[Schema] = {}

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> Any:
        """Read a value. What is wrong goes to the report, and `BAD` comes back."""
        try:
            return self.parse(value)
        except ValueError as error:
            report.add(at, str(error))
            return BAD

    def parse(self, value: Any) -> Any:
        """Read a value that has no parts, or raise `ValueError`."""
        raise NotImplementedError

    def encode(self, value: Any) -> Any:
        """Write a value so that `decode` gives it back."""
        return value

    def schema(self, definitions: Definitions) -> Schema:  # noqa: ARG002  records add theirs
        """Describe the values in JSON Schema."""
        return dict(self.shape)


def describe(value: Any) -> str:
    """Name a value and its type for a message."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"{str(value).lower()} (a boolean)"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "a list"
    return f"{shorten(value)} (a number)" if isinstance(value, int | float) else f"{shorten(value)} (text)"


def is_number(value: Any) -> bool:
    """Tell numbers from all else, booleans included."""
    return isinstance(value, int | float) and not isinstance(value, bool)


class TextKind(ValueKind):
    """A text value. Numbers and booleans have to be quoted, as in Kubernetes."""

    shape: ClassVar[Schema] = {"type": "string"}

    def parse(self, value: Any) -> str:
        """Take text as it is."""
        if type(value) is not str:
            hint = "; put it in quotes" if isinstance(value, int | float) else ""
            raise ValueError(f"is {describe(value)}, but text is expected{hint}")
        return value


LONGEST_NAME = 253
"""Letters of a name: as many as Kubernetes takes of an object's."""

LONGEST_RESOURCE = LONGEST_NAME + 64
"""Letters of a resource's name, its domain included."""


class NameKind(TextKind):
    """A name: text that is not empty, without spaces, slashes, control and bidirectional characters, not too long."""

    shape: ClassVar[Schema] = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME, "pattern": r"^[^\s/]+$"}

    def parse(self, value: Any) -> str:
        """Take a name as it is."""
        name = super().parse(value)
        if len(name) > LONGEST_NAME:
            raise ValueError(f"is {shorten(name)}, {len(name)} letters long, but a name has {LONGEST_NAME} at most")
        if name.isalnum() or (name and name.isprintable() and " " not in name and "/" not in name):
            return name
        raise ValueError(f"is {shorten(name)}, but a name has at least one character, no spaces and no '/'")


WILDCARD = "*"
"""Stands, at the end of a name, for all names that begin as it does."""


class ResourceNamesKind(TextKind):
    """The name of a resource, or the beginning of several, its domain at least, with `WILDCARD` at its end."""

    shape: ClassVar[Schema] = {"type": "string", "pattern": r"^[^\s*/]+(/[^\s*/]+|/[^\s*/]*\*)?$"}
    _names: ClassVar[re.Pattern[str]] = re.compile(shape["pattern"])

    def parse(self, value: Any) -> str:
        """Take the name as it is."""
        name = super().parse(value)
        if len(name) <= LONGEST_RESOURCE and name.isprintable() and self._names.fullmatch(name):
            return name
        raise ValueError(
            f"is {shorten(name)}, but the name of a resource is expected, such as amd.com/gpu, or the beginning of "
            f"several with {WILDCARD} at its end, such as gpu.intel.com/{WILDCARD}"
        )


class BooleanKind(ValueKind):
    """A boolean."""

    shape: ClassVar[Schema] = {"type": "boolean"}

    def parse(self, value: Any) -> bool:
        """Take a boolean as it is."""
        if isinstance(value, bool):
            return value
        raise ValueError(f"is {describe(value)}, but true or false is expected")


class IntegerKind(ValueKind):
    """A whole number within bounds."""

    def __init__(self, low: int = 0, high: int = INT64 - 1) -> None:
        self.low, self.high = low, high

    def parse(self, value: Any) -> int:
        """Take a whole number within the bounds."""
        if type(value) is not int:
            raise ValueError(f"is {describe(value)}, but a whole number is expected")
        if not self.low <= value <= self.high:
            raise ValueError(f"is {shorten(value)}, but {_range(self.low, self.high)} is expected")
        return value

    def schema(self, definitions: Definitions) -> Schema:  # noqa: ARG002
        """Give type and bounds."""
        bounds = {} if self.high == INT64 - 1 else {"maximum": self.high}
        return {"type": "integer", "minimum": self.low, **bounds}


class NumberKind(ValueKind):
    """A finite number within bounds."""

    def __init__(self, low: float = 0.0, high: float = math.inf, *, open_low: bool = False) -> None:
        self.low, self.high, self.open_low = low, high, open_low

    def parse(self, value: Any) -> float:
        """Take a number within the bounds."""
        if not is_number(value):
            raise ValueError(f"is {describe(value)}, but a number is expected")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not (math.isfinite(number) and self.low <= number <= self.high) or (self.open_low and number == self.low):
            more = "more than " if self.open_low else ""
            raise ValueError(f"is {shorten(value)}, but {more}{_range(self.low, self.high)} is expected")
        return number

    def encode(self, value: float) -> float | int:
        """Write whole numbers without a point."""
        return int(value) if value.is_integer() and abs(value) < 2**53 else value

    def schema(self, definitions: Definitions) -> Schema:  # noqa: ARG002
        """Give type and bounds."""
        low = {"exclusiveMinimum" if self.open_low else "minimum": self.low}
        return {"type": "number", **low, **({} if math.isinf(self.high) else {"maximum": self.high})}


def _range(low: float, high: float) -> str:
    if high in (INT64 - 1, math.inf):
        return f"{low:g} or more" if isinstance(low, float) else f"{low} or more"
    return f"{low:g} to {high:g}" if isinstance(low, float) else f"{low} to {high}"


class ChoiceKind(ValueKind):
    """A value that is one of several words."""

    def __init__(self, words: Sequence[str], convert: Callable[[str], Any] = str) -> None:
        self.values = {str(word): convert(word) for word in words}

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> Any:
        """Take one of the words; what was meant is not looked for where it is not shown."""
        if report.full and not (isinstance(value, str) and value in self.values):
            report.add(at, "")
            return BAD
        return super().decode(value, at, report)

    def parse(self, value: Any) -> Any:
        """Take one of the words."""
        if isinstance(value, str) and value in self.values:
            return self.values[value]
        if value is False and "off" in self.values:  # JSON made from YAML 1.1 by another program
            return self.values["off"]
        words = " | ".join(self.values)
        hint = nearest(value, self.values) if isinstance(value, str) else ""
        raise ValueError(f"is {describe(value)}, but one of {words} is expected{hint}")

    def encode(self, value: Any) -> str:
        """Write the word."""
        return str(value)

    def schema(self, definitions: Definitions) -> Schema:  # noqa: ARG002
        """Give the words."""
        return {"enum": list(self.values)}


class DurationKind(ValueKind):
    """A duration in microseconds, written with units."""

    def __init__(self, *, signed: bool = False, positive: bool = False) -> None:
        self.signed, self.positive = signed, positive

    def parse(self, value: Any) -> int:
        """Parse ``1h30m``; of numbers only 0 needs no unit."""
        if type(value) is not str and not is_number(value):
            raise ValueError(f"is {describe(value)}, but a duration is expected, such as 30s, 1h30m or 2d")
        micros = duration.parse_duration(value if isinstance(value, str) else repr(value), signed=self.signed)
        if self.positive and micros == 0:
            raise ValueError("is 0, but a duration of more than 0 is expected, such as 30s")
        return micros

    def encode(self, value: int) -> str:
        """Write the duration with units."""
        return duration.format_duration(value)

    def schema(self, definitions: Definitions) -> Schema:  # noqa: ARG002
        """Give the pattern; 0 needs no unit."""
        unit = "(ns|us|µs|ms|s|m|h|d|w)"
        part = rf"([0-9]+\.?[0-9]*|\.[0-9]+){unit}"
        if self.positive:
            more = rf"([0-9]*[1-9][0-9]*\.?[0-9]*|[0-9]*\.[0-9]*[1-9][0-9]*){unit}"
            return {"type": "string", "pattern": rf"^({part})*{more}({part})*$"}
        sign = "-?" if self.signed else ""
        return {"anyOf": [{"type": "string", "pattern": rf"^({sign}({part})+|0)$"}, {"const": 0}]}


class TimeKind(ValueKind):
    """A time in microseconds since the epoch, written by RFC 3339."""

    shape: ClassVar[Schema] = {"type": "string", "format": "date-time"}

    def parse(self, value: Any) -> int:
        """Parse ``2026-11-20T10:00:00Z``."""
        if type(value) is not str:
            raise ValueError(f"is {describe(value)}, but a time is expected, such as 2026-11-20T10:00:00Z")
        return duration.parse_time(value)

    def encode(self, value: int) -> str:
        """Write the time."""
        return duration.format_time(value)


class ShareKind(ValueKind):
    """A share between 0 and 1, or a percentage as text."""

    shape: ClassVar[Schema] = {
        "anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "pattern": "^[0-9.]+%$"}]
    }

    def parse(self, value: Any) -> float:
        """Parse ``90%`` or ``0.9``."""
        number = value
        if isinstance(value, str) and value.endswith("%"):
            digits = value[:-1]
            number = float(f"{digits}e-2") if digits.replace(".", "", 1).isdigit() and digits.isascii() else None
        if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number <= 1:
            raise ValueError(f"is {describe(value)}, but a share is expected, such as 90% or 0.9")
        return float(number)

    def encode(self, value: float) -> str | float:
        """Write a percentage where that is exact."""
        text = f"{value * 100:.10f}".rstrip("0").rstrip(".") + "%"
        return text if self.parse(text) == value else value


class CountOrPercent(ValueKind):
    """A count, or a percentage as text; both stay as they are."""

    shape: ClassVar[Schema] = {
        "anyOf": [{"type": "integer", "minimum": 0, "maximum": INT32 - 1}, {"type": "string", "pattern": "^[0-9]+%$"}]
    }

    def parse(self, value: Any) -> int | str:
        """Take ``3`` or ``30%``."""
        if type(value) is int and 0 <= value < INT32:
            return value
        if isinstance(value, str) and value.isascii() and value[:-1].isdigit() and value[-1] == "%":
            if int(value[:-1]) > 100:  # noqa: PLR2004
                raise ValueError(f"is {describe(value)}, but a percentage goes up to 100%")
            return value
        raise ValueError(f"is {describe(value)}, but a count such as 2 or a percentage such as 30% is expected")


class ConstantKind(ValueKind):
    """A boolean that files write as one word: there, or not there."""

    def __init__(self, word: str) -> None:
        self.word = word

    def parse(self, value: Any) -> bool:
        """Take the word for true."""
        if value == self.word:
            return True
        raise ValueError(f"is {describe(value)}, but {self.word} is expected, or nothing")

    def encode(self, value: Any) -> str:  # noqa: ARG002  only true is ever written
        """Write the word."""
        return self.word

    def schema(self, definitions: Definitions) -> Schema:  # noqa: ARG002
        """Give the word."""
        return {"const": self.word}
