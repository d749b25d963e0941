"""Kinds of values that have parts: amounts by resource, mappings, lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tenure.model.fields.kinds import Definitions, Schema, TextKind, ValueKind, describe
from tenure.model.values import quantity
from tenure.model.values.report import BAD, ProblemReport, Trail
from tenure.model.values.resources import Amounts, Pairs


class QuantityKind(ValueKind):
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
    parse = quantity.parse_queue_quantity if milli else quantity.parse_quantity
    return parse(_written(value), resource)


def _written(value: Any) -> str | int:
    if type(value) is int or type(value) is str:
        return value
    if type(value) is float:
        return repr(value)  # the shortest text that gives this number: what was written
    raise ValueError(f"is {describe(value)}, but a quantity is expected, such as 2, 500m or 1.5Gi")


def _write_amount(amount: int, resource: str, *, milli: bool) -> str | int:
    text = quantity.format_queue_quantity(amount, resource) if milli else quantity.format_quantity(amount, resource)
    return int(text) if text.isdigit() else text


class AmountsKind(ValueKind):
    """Amounts by resource. ``milli``: GPUs are kept in milli-GPU (queues, usage). ``pairs``: as sorted pairs."""

    shape: ClassVar[Schema] = {"type": "object", "additionalProperties": QuantityKind.shape}

    def __init__(self, *, milli: bool = False, pairs: bool = False) -> None:
        self.milli, self.pairs = milli, pairs

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> dict[str, int] | Amounts:
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


class ExactAmountsKind(ValueKind):
    """Amounts by resource in thousand-millionths of a unit, so that sums of parts are exact before they are rounded."""

    shape: ClassVar[Schema] = AmountsKind.shape

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> dict[str, int]:
        """Read the amounts; one that is not there is left out."""
        if not isinstance(value, dict):
            report.add(at, f"is {describe(value)}, but amounts by resource are expected, such as {{cpu: 8}}")
            return BAD  # type: ignore[no-any-return]
        amounts = {}
        for resource, amount in value.items():
            if amount is None:
                continue
            try:
                amounts[resource] = quantity.parse_nano(_written(amount))
            except ValueError as error:
                report.add((at, resource), str(error))
        if "" in amounts:
            report.add(at, "holds an amount of a resource without a name; name it")
        return amounts


class NanoQuantityKind(ValueKind):
    """A quantity, exact to thousand-millionths of a unit."""

    shape: ClassVar[Schema] = QuantityKind.shape

    def parse(self, value: Any) -> int:
        """Read the quantity."""
        return quantity.parse_nano(_written(value))

    def encode(self, value: int) -> str:
        """Write the quantity."""
        return quantity.format_nano(value)


class PairsKind(ValueKind):
    """Text by key, as sorted pairs."""

    shape: ClassVar[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> Pairs:
        """Read the pairs."""
        read = _TEXTS.decode(value, at, report)
        return tuple(sorted(read.items())) if read is not BAD else read

    def encode(self, value: Pairs) -> dict[str, str]:
        """Write the pairs."""
        return dict(value)


class MapKind(ValueKind):
    """Values of one kind by key."""

    def __init__(self, values: ValueKind, keys: ValueKind | None = None) -> None:
        self.values, self.keys = values, keys or TextKind()

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> dict[Any, Any]:
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
        names = {} if type(self.keys) is TextKind else {"propertyNames": self.keys.schema(definitions)}
        return {"type": "object", "additionalProperties": self.values.schema(definitions), **names}


_TEXTS = MapKind(TextKind())


class ListKind(ValueKind):
    """A list of values of one kind, kept as a tuple. ``distinct``: none may stand there twice.

    A list with more than ``most`` entries is refused as a whole, before any of them is read.
    """

    def __init__(self, items: ValueKind, *, distinct: bool = False, most: int | None = None) -> None:
        self.items, self.distinct, self.most = items, distinct, most

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> tuple[Any, ...]:
        """Read the list; items that cannot be read are left out."""
        if not isinstance(value, list):
            report.add(at, f"is {describe(value)}, but a list is expected")
            return BAD  # type: ignore[no-any-return]
        if self.most is not None and len(value) > self.most:
            report.add(at, f"has {len(value):,} entries; {self.most:,} are the most that are read")
            return BAD  # type: ignore[no-any-return]
        if self.distinct:
            return self._decode_distinct(value, at, report)
        read = (self.items.decode(inner, (at, index), report) for index, inner in enumerate(value))
        return tuple([item for item in read if item is not BAD])

    def _decode_distinct(self, value: list[Any], at: Trail, report: ProblemReport) -> tuple[Any, ...]:
        read: dict[Any, None] = {}
        for index, inner in enumerate(value):
            item = self.items.decode(inner, (at, index), report)
            if item is BAD:
                continue
            if item in read:
                report.add((at, index), "" if report.full else f"{describe(inner)} is there twice; name it once")
            read[item] = None
        return tuple(read)

    def encode(self, value: Sequence[Any]) -> list[Any]:
        """Write the list."""
        return [self.items.encode(item) for item in value]

    def schema(self, definitions: Definitions) -> Schema:
        """Describe the items."""
        unique = {"uniqueItems": True} if self.distinct else {}
        return {"type": "array", "items": self.items.schema(definitions), **unique}


class OneOrMap(ValueKind):
    """A single value, or a mapping."""

    def __init__(self, one: ValueKind, many: MapKind) -> None:
        self.one, self.many = one, many

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> Any:
        """Read whichever it is."""
        return (self.many if isinstance(value, dict) else self.one).decode(value, at, report)

    def encode(self, value: Any) -> Any:
        """Write whichever it is."""
        return (self.many if isinstance(value, Mapping) else self.one).encode(value)

    def schema(self, definitions: Definitions) -> Schema:
        """Describe both."""
        return {"anyOf": [self.one.schema(definitions), self.many.schema(definitions)]}


class WrappedKind(ValueKind):
    """A value that files wrap into a mapping of one key."""

    def __init__(self, key: str, inner: ValueKind) -> None:
        self.key, self.inner = key, inner

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> Any:
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
