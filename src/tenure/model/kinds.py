"""What a field of a file may hold: how it is read, written and described in the JSON schema.

A dataclass says what each field holds by its type, with ``Annotated`` where the type alone does not say it
(``Duration`` is an ``int`` of microseconds that files write as ``1h30m``). Loading, writing, ``--set`` and the JSON
schema all go by that one definition; `tenure.model.records` reads it off the dataclasses.

pydantic could do this as well; importing it and building its schemas took longer than everything else that a command
on a small file does together (0.5 s against 0.05 s here), and its messages would all have to be rewritten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from tenure.model import duration, quantity
from tenure.model.problems import nearest, shorten
from tenure.model.report import BAD, Report, Trail
from tenure.model.resources import Amounts, Pairs

INT32 = 2**31
INT64 = 2**63

Schema = dict[str, Any]
Definitions = dict[str, Schema]


class Kind:
    """How values of one kind are read (`decode`), written (`encode`) and described (`schema`)."""

    shape: ClassVar[Schema] = {}

    def decode(self, value: Any, at: Trail, report: Report) -> Any:
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


class Text(Kind):
    """Text. Numbers and booleans have to be quoted, as in Kubernetes."""

    shape: ClassVar[Schema] = {"type": "string"}

    def parse(self, value: Any) -> str:
        """Take text as it is."""
        if type(value) is str:
            return value
        hint = "; put it in quotes" if isinstance(value, int | float) else ""
        raise ValueError(f"is {describe(value)}, but text is expected{hint}")


class Name(Text):
    """A name: text that is not empty, without spaces, slashes and control characters."""

    shape: ClassVar[Schema] = {"type": "string", "minLength": 1, "pattern": r"^[^\s/]+$"}

    def parse(self, value: Any) -> str:
        """Take a name as it is."""
        name = super().parse(value)
        if name.isalnum() or (name and name.isprintable() and " " not in name and "/" not in name):
            return name
        raise ValueError(f"is {shorten(name)}, but a name has at least one character, no spaces and no '/'")


class Boolean(Kind):
    """A boolean."""

    shape: ClassVar[Schema] = {"type": "boolean"}

    def parse(self, value: Any) -> bool:
        """Take a boolean as it is."""
        if isinstance(value, bool):
            return value
        raise ValueError(f"is {describe(value)}, but true or false is expected")


class Integer(Kind):
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


class Number(Kind):
    """A finite number within bounds."""

    def __init__(self, low: float = 0.0, high: float = math.inf, *, open_low: bool = False) -> None:
        self.low, self.high, self.open_low = low, high, open_low

    def parse(self, value: Any) -> float:
        """Take a number within the bounds."""
        if not isinstance(value, int | float) or isinstance(value, bool):
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
    return f"{low} to {high}"


class Choice(Kind):
    """One of some words."""

    def __init__(self, words: Sequence[str], convert: Callable[[str], Any] = str) -> None:
        self.values = {str(word): convert(word) for word in words}

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


class DurationKind(Kind):
    """A duration in microseconds, written with units."""

    def __init__(self, *, signed: bool = False, positive: bool = False) -> None:
        self.signed, self.positive = signed, positive

    def parse(self, value: Any) -> int:
        """Parse ``1h30m``; of numbers only 0 needs no unit."""
        if not isinstance(value, str | int | float) or isinstance(value, bool):
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
        sign = "-?" if self.signed else ""
        pattern = rf"^({sign}(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|ms|s|m|h|d|w))+|0)$"
        return {"anyOf": [{"type": "string", "pattern": pattern}, {"const": 0}]}


class TimeKind(Kind):
    """A time in microseconds since the epoch, written by RFC 3339."""

    shape: ClassVar[Schema] = {"type": "string", "format": "date-time"}

    def parse(self, value: Any) -> int:
        """Parse ``2026-11-20T10:00:00Z``."""
        if not isinstance(value, str):
            raise ValueError(f"is {describe(value)}, but a time is expected, such as 2026-11-20T10:00:00Z")
        return duration.parse_time(value)

    def encode(self, value: int) -> str:
        """Write the time."""
        return duration.format_time(value)


class ShareKind(Kind):
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
        text = f"{value * 100:g}%"
        return text if self.parse(text) == value else value


class CountOrPercent(Kind):
    """A count, or a percentage as text; both stay as they are."""

    shape: ClassVar[Schema] = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]+%$"}]}

    def parse(self, value: Any) -> int | str:
        """Take ``3`` or ``30%``."""
        if type(value) is int and 0 <= value < INT32:
            return value
        if isinstance(value, str) and value.isascii() and value[:-1].isdigit() and value[-1] == "%":
            return value
        raise ValueError(f"is {describe(value)}, but a count such as 2 or a percentage such as 30% is expected")


class QuantityKind(Kind):
    """An amount of one resource."""

    shape: ClassVar[Schema] = {
        "anyOf": [{"type": "integer", "minimum": 0}, {"type": "number", "minimum": 0}, {"type": "string"}]
    }

    def __init__(self, resource: str, *, milli: bool = False) -> None:
        self.resource, self.milli = resource, milli

    def parse(self, value: Any) -> int:
        """Parse a quantity."""
        return parse_amount(value, self.resource, milli=self.milli)

    def encode(self, value: int) -> str | int:
        """Write a quantity."""
        return _write_amount(value, self.resource, milli=self.milli)


def parse_amount(value: Any, resource: str, *, milli: bool) -> int:
    """Parse an amount as it stands in a file: a number, or a quantity as text. ``milli``: GPUs come in milli-GPU."""
    if type(value) is int or type(value) is str:
        text: str | int = value
    elif type(value) is float:
        text = repr(value)  # the shortest text that gives this number: what was written
    else:
        raise ValueError(f"is {describe(value)}, but a quantity is expected, such as 2, 500m or 1.5Gi")
    parse = quantity.parse_queue_quantity if milli else quantity.parse_quantity
    return parse(text, resource)


def _write_amount(amount: int, resource: str, *, milli: bool) -> str | int:
    text = quantity.format_queue_quantity(amount, resource) if milli else quantity.format_quantity(amount, resource)
    return int(text) if text.isdigit() else text


class AmountsKind(Kind):
    """Amounts by resource. ``milli``: GPUs are kept in milli-GPU (queues, usage). ``pairs``: as sorted pairs."""

    shape: ClassVar[Schema] = {"type": "object", "additionalProperties": QuantityKind.shape}

    def __init__(self, *, milli: bool = False, pairs: bool = False) -> None:
        self.milli, self.pairs = milli, pairs

    def decode(self, value: Any, at: Trail, report: Report) -> dict[str, int] | Amounts:
        """Read the amounts. In pairs an amount of 0 is left out: asking for nothing is not asking."""
        if not isinstance(value, dict):
            report.add(at, f"is {describe(value)}, but amounts by resource are expected, such as {{cpu: 8}}")
            return BAD  # type: ignore[no-any-return]
        amounts = {}
        for resource, text in value.items():
            if text is None:
                continue
            try:
                amounts[resource] = parse_amount(text, resource, milli=self.milli)
            except ValueError as error:
                report.add((at, resource), str(error))
        if "" in amounts:
            report.add(at, "holds an amount of a resource without a name; name it")
        return tuple(sorted((r, n) for r, n in amounts.items() if n)) if self.pairs else amounts

    def encode(self, value: Mapping[str, int] | Amounts) -> dict[str, str | int]:
        """Write the amounts by resource."""
        items = value.items() if isinstance(value, Mapping) else value
        return {resource: _write_amount(amount, resource, milli=self.milli) for resource, amount in items}


class PairsKind(Kind):
    """Text by key, as sorted pairs."""

    shape: ClassVar[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}

    def decode(self, value: Any, at: Trail, report: Report) -> Pairs:
        """Read the pairs."""
        read = _TEXTS.decode(value, at, report)
        return tuple(sorted(read.items())) if read is not BAD else read

    def encode(self, value: Pairs) -> dict[str, str]:
        """Write the pairs."""
        return dict(value)


class Map(Kind):
    """Values of one kind by key."""

    def __init__(self, values: Kind, keys: Kind | None = None) -> None:
        self.values, self.keys = values, keys or Text()

    def decode(self, value: Any, at: Trail, report: Report) -> dict[Any, Any]:
        """Read the mapping; a key without a value counts as left out."""
        if not isinstance(value, dict):
            report.add(at, f"is {describe(value)}, but a mapping is expected")
            return BAD  # type: ignore[no-any-return]
        read = {}
        for key, inner in value.items():
            if inner is not None:
                name = self.keys.decode(key, (at, key), report)
                item = self.values.decode(inner, (at, key), report)
                if name is not BAD and item is not BAD:
                    read[name] = item
        return read

    def encode(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        """Write the mapping."""
        return {self.keys.encode(key): self.values.encode(item) for key, item in value.items()}

    def schema(self, definitions: Definitions) -> Schema:
        """Describe keys and values."""
        names = {} if type(self.keys) is Text else {"propertyNames": self.keys.schema(definitions)}
        return {"type": "object", "additionalProperties": self.values.schema(definitions), **names}


_TEXTS = Map(Text())


class Listing(Kind):
    """A list of values of one kind, kept as a tuple. ``distinct``: none may stand there twice."""

    def __init__(self, items: Kind, *, distinct: bool = False) -> None:
        self.items, self.distinct = items, distinct

    def decode(self, value: Any, at: Trail, report: Report) -> tuple[Any, ...]:
        """Read the list; items that cannot be read are left out."""
        if not isinstance(value, list):
            report.add(at, f"is {describe(value)}, but a list is expected")
            return BAD  # type: ignore[no-any-return]
        read = []
        for index, inner in enumerate(value):
            item = self.items.decode(inner, (at, index), report)
            if item is BAD:
                continue
            if self.distinct and item in read:
                report.add((at, index), f"{describe(inner)} is there twice; name it once")
            read.append(item)
        return tuple(read)

    def encode(self, value: Sequence[Any]) -> list[Any]:
        """Write the list."""
        return [self.items.encode(item) for item in value]

    def schema(self, definitions: Definitions) -> Schema:
        """Describe the items."""
        unique = {"uniqueItems": True} if self.distinct else {}
        return {"type": "array", "items": self.items.schema(definitions), **unique}


class OneOrMap(Kind):
    """One value, or a mapping."""

    def __init__(self, one: Kind, many: Map) -> None:
        self.one, self.many = one, many

    def decode(self, value: Any, at: Trail, report: Report) -> Any:
        """Read whichever it is."""
        return (self.many if isinstance(value, dict) else self.one).decode(value, at, report)

    def encode(self, value: Any) -> Any:
        """Write whichever it is."""
        return (self.many if isinstance(value, Mapping) else self.one).encode(value)

    def schema(self, definitions: Definitions) -> Schema:
        """Describe both."""
        return {"anyOf": [self.one.schema(definitions), self.many.schema(definitions)]}


class Inside(Kind):
    """A value that files wrap into a mapping of one key."""

    def __init__(self, key: str, inner: Kind) -> None:
        self.key, self.inner = key, inner

    def decode(self, value: Any, at: Trail, report: Report) -> Any:
        """Read what stands behind the key."""
        if isinstance(value, dict) and set(value) == {self.key}:
            return self.inner.decode(value[self.key], (at, self.key), report)
        report.add(at, f"is {describe(value)}, but a mapping with the one key {self.key} is expected")
        return BAD

    def encode(self, value: Any) -> dict[str, Any]:
        """Write it behind the key."""
        return {self.key: self.inner.encode(value)}

    def schema(self, definitions: Definitions) -> Schema:
        """Describe the mapping and what is in it."""
        inner = self.inner.schema(definitions)
        return {
            "type": "object",
            "properties": {self.key: inner},
            "required": [self.key],
            "additionalProperties": False,
        }


class Constant(Kind):
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


class EmptyMapping(Kind):
    """A boolean that files write as an empty mapping: a selector of everything."""

    shape: ClassVar[Schema] = {"type": "object", "maxProperties": 0}

    def parse(self, value: Any) -> bool:
        """Take the empty mapping for true."""
        if value == {}:
            return True
        raise ValueError(
            f"is {describe(value)}, but only {{}} (all of them) can be evaluated; name the namespaces instead"
        )

    def encode(self, value: Any) -> dict[str, Any]:  # noqa: ARG002  only true is ever written
        """Write the empty mapping."""
        return {}


class Key:
    """The key that a field has in files, where it is not the field's own name in camelCase."""

    def __init__(self, name: str) -> None:
        self.name = name


Duration = Annotated[int, DurationKind()]
PositiveDuration = Annotated[int, DurationKind(positive=True)]
SignedDuration = Annotated[int, DurationKind(signed=True)]
Time = Annotated[int, TimeKind()]
Priority = Annotated[int, Integer(-INT32, INT32 - 1)]
Count = Annotated[int, Integer(1, INT32 - 1)]
Ordinal = Annotated[int, Integer(0, INT32 - 1)]
Weight = Annotated[float, Number()]
Share = Annotated[float, ShareKind()]
Bytes = Annotated[int, QuantityKind("memory")]
NameText = Annotated[str, Name()]
WholeAmounts = Annotated[Mapping[str, int], AmountsKind()]
MilliAmounts = Annotated[Mapping[str, int], AmountsKind(milli=True)]
