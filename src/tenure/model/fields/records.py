"""Mappings with named keys, read off dataclasses: one definition for loading, writing, overriding and the schema."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from tenure.model.fields import containers, kinds, vocabulary
from tenure.model.fields.kinds import Definitions, Schema, ValueKind, describe
from tenure.model.values.problems import nearest
from tenure.model.values.report import BAD, ProblemReport, Trail

Check = Callable[[Any], Iterable[tuple[str, str]]]
"""What is wrong with a value as a whole: pairs of a key (empty for the whole) and a message."""

_CHECKS: dict[type, Check] = {}
NOT_WRITTEN: Final = object()
"""What stands for a field that is as by default."""

_FEW_KEYS = 12


@dataclass(frozen=True, slots=True)
class RecordField:
    """A key of a mapping. ``attribute`` is the dataclass's name for it, ``default`` what stands when it is left out."""

    key: str
    attribute: str
    kind: ValueKind
    default: Any = None
    required: bool = False


class RecordKind(ValueKind):
    """A mapping with known keys that becomes an object. A key with nothing behind it counts as left out.

    Unknown keys are problems, but for those that are ``ignored``; a ``lenient`` record ignores them all.
    """

    def __init__(
        self,
        cls: type,
        fields: Iterable[RecordField] | None = None,
        *,
        name: str = "",
        ignored: Iterable[str] = (),
        lenient: bool = False,
    ) -> None:
        self.cls = cls
        self.name = name or cls.__name__
        self.ignored = frozenset(ignored)
        self.lenient = lenient
        self._given = tuple(fields) if fields is not None else None
        self._fields: dict[str, RecordField] | None = None
        self._required: tuple[str, ...] | None = None

    @property
    def fields(self) -> dict[str, RecordField]:
        """The fields by key. Found on first use: types may refer to themselves."""
        if self._fields is None:
            listed = self._given if self._given is not None else fields_of(self.cls)
            self._fields = {field.key: field for field in listed}
        return self._fields

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> Any:
        """Read an object."""
        values = self.read(value, at, report)
        if values is BAD:
            return BAD
        made = self.cls(**values)
        check_value(made, at, report)
        return made

    def read(self, value: Any, at: Trail, report: ProblemReport) -> dict[str, Any]:
        """Read the values that are there, by attribute; `BAD` if a required one is missing or cannot be read."""
        if not isinstance(value, dict):
            report.add(
                at, f"is {describe(value)}, but a mapping is expected with keys such as {', '.join(self._examples())}"
            )
            return BAD  # type: ignore[no-any-return]
        known, values = self.fields, {}
        for key, inner in value.items():
            field = known.get(key)
            if field is None:
                self._unknown(key, at, report)
            elif inner is not None:
                read = field.kind.decode(inner, (at, key), report)
                if read is not BAD:
                    values[field.attribute] = read
        usable = True
        for key in self.required:
            if known[key].attribute not in values:
                usable = False
                if value.get(key) is None:
                    report.add((at, key), "is missing; it is required")
        return values if usable else BAD

    @property
    def required(self) -> tuple[str, ...]:
        """The keys that have no default."""
        if self._required is None:
            self._required = tuple(key for key, field in self.fields.items() if field.required)
        return self._required

    def encode(self, value: Any) -> dict[str, Any]:
        """Write an object, without what is as by default."""
        return {
            field.key: written
            for field in self.fields.values()
            if (written := write_field(field, value)) is not NOT_WRITTEN
        }

    def schema(self, definitions: Definitions) -> Schema:
        """Describe the mapping, once, under ``$defs``."""
        if self.name not in definitions:
            definitions[self.name] = {}  # stands for itself while its fields are described
            described: Schema = {"type": "object", "additionalProperties": False}
            summary = (self.cls.__doc__ or "").split("\n\n")[0].strip()
            if summary:
                described["description"] = " ".join(summary.replace("`", "").split())
            described["properties"] = {key: field.kind.schema(definitions) for key, field in self.fields.items()}
            described["properties"].update({key: {} for key in sorted(self.ignored)})
            if self.required:
                described["required"] = list(self.required)
            definitions[self.name] = described
        return {"$ref": f"#/$defs/{self.name}"}

    def _unknown(self, key: str, at: Trail, report: ProblemReport) -> None:
        if self.lenient or key in self.ignored:
            return
        if report.full:
            report.add((at, key), "")
            return
        hint = nearest(key, self.fields)
        if not hint:
            hint = f"; known here: {', '.join(self.fields)}" if len(self.fields) <= _FEW_KEYS else "; leave it out"
        report.add((at, key), f"unknown key{hint}")

    def _examples(self) -> list[str]:
        return list(self.required or self.fields)[:3]


def write_field(field: RecordField, value: Any) -> Any:
    """Write one field of an object; a marker where it is as by default."""
    current = getattr(value, field.attribute)
    if current is None or (not field.required and current == field.default and type(current) is type(field.default)):
        return NOT_WRITTEN
    return field.kind.encode(current)


@cache
def record_of(cls: type) -> RecordKind:
    """Give the record of a dataclass."""
    return RecordKind(cls, ignored=_IGNORED.get(cls.__name__, ()))


_IGNORED = {
    "Toleration": ("tolerationSeconds",),
    "Taint": ("timeAdded",),
    "DeviceToleration": ("tolerationSeconds",),
    "DeviceTaint": ("timeAdded",),
    "Device": ("bindingFailureConditions",),
    "DeviceClass": ("config",),
    "DeviceClaim": ("config",),
    "AllocatedDevice": ("tolerations", "bindingConditions", "bindingFailureConditions"),
}
"""Keys of what Kubernetes' objects say that decide nothing here and are passed over."""


def fields_of(cls: type, *, skip: Iterable[str] = ()) -> Iterator[RecordField]:
    """Give the fields of a dataclass, as its types and defaults say them."""
    hints = get_type_hints(cls, include_extras=True)
    left_out = set(skip)
    for entry in fields(cls):
        if entry.name in left_out:
            continue
        hint = hints[entry.name]
        default = entry.default if entry.default_factory is MISSING else entry.default_factory()
        required = default is MISSING
        yield RecordField(_key_of(entry.name, hint), entry.name, kind_of(hint), None if required else default, required)


def check_with(cls: type) -> Callable[[Check], Check]:
    """Register a check of whole values of a dataclass, run on each that is read.

    It gives keys and messages; a key may lead on into the value: ``rescheduler.background``.
    """

    def register(check: Check) -> Check:
        _CHECKS[cls] = check
        return check

    return register


def check_value(value: Any, at: Trail, report: ProblemReport) -> None:
    """Run the check that is registered for the value's class, if there is one."""
    check = _CHECKS.get(type(value))
    if check is not None:
        for key, message in check(value):
            place = at
            for part in key.split(".") if key else ():
                place = (place, part)
            report.add(place, message)


def _key_of(attribute: str, hint: Any) -> str:
    for extra in getattr(hint, "__metadata__", ()):
        if isinstance(extra, vocabulary.FieldKey):
            return extra.name
    first, *others = attribute.rstrip("_").split("_")
    return first + "".join(map(str.capitalize, others))


def kind_of(hint: Any) -> ValueKind:
    """Give the kind of a type hint."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _kind_of_annotated(get_args(hint)[0], hint.__metadata__)
    if origin in (Union, types.UnionType):
        return _kind_of_union([arm for arm in get_args(hint) if arm is not type(None)])
    if origin is Literal:
        return kinds.ChoiceKind(get_args(hint))
    if origin is tuple:
        return containers.ListKind(kind_of(get_args(hint)[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, value = get_args(hint)
        return containers.MapKind(kind_of(value), kind_of(key))
    return _kind_of_class(hint)


def _kind_of_annotated(hint: Any, extras: Iterable[Any]) -> ValueKind:
    for extra in extras:
        if isinstance(extra, ValueKind):
            return extra
        if isinstance(extra, vocabulary.Wrapped):
            return containers.WrappedKind(extra.key, kind_of(hint))
    return kind_of(hint)


_SIMPLE: dict[Any, ValueKind] = {
    bool: kinds.BooleanKind(),
    int: kinds.IntegerKind(),
    float: kinds.NumberKind(),
    str: kinds.TextKind(),
}


def _kind_of_class(cls: Any) -> ValueKind:
    if cls in _SIMPLE:
        return _SIMPLE[cls]
    if is_dataclass(cls):
        return record_of(cls)  # type: ignore[arg-type]
    if isinstance(cls, type) and issubclass(cls, StrEnum):
        return kinds.ChoiceKind([str(member) for member in cls], cls)
    raise TypeError(f"no kind for {cls}")


def _kind_of_union(arms: list[Any]) -> ValueKind:
    if len(arms) == 1:
        return kind_of(arms[0])
    one, many = (kind_of(arm) for arm in arms)
    if isinstance(many, containers.MapKind):
        return containers.OneOrMap(one, many)
    raise TypeError(f"no kind for a union of {arms}")
