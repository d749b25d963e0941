"""Types of fields for which Python's own say too little: an ``int`` that files write as ``1h30m``, and the like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from tenure.model.fields.containers import AmountsKind, QuantityKind
from tenure.model.fields.kinds import (
    INT32,
    DurationKind,
    IntegerKind,
    NameKind,
    NumberKind,
    ResourceNamesKind,
    ShareKind,
    TimeKind,
)


class FieldKey:
    """The key that a field has in files, where it is not the field's own name in camelCase."""

    def __init__(self, name: str) -> None:
        self.name = name


class Wrapped:
    """A marker: files wrap the field's value into a mapping of one key."""

    def __init__(self, key: str) -> None:
        self.key = key


Duration = Annotated[int, DurationKind()]
PositiveDuration = Annotated[int, DurationKind(positive=True)]
SignedDuration = Annotated[int, DurationKind(signed=True)]
Time = Annotated[int, TimeKind()]
Priority = Annotated[int, IntegerKind(-INT32, INT32 - 1)]
Count = Annotated[int, IntegerKind(1, INT32 - 1)]
Ordinal = Annotated[int, IntegerKind(0, INT32 - 1)]
WeightedSeconds = Annotated[int, IntegerKind(0, 1 << 53)]
Weight = Annotated[float, NumberKind(0.0, 1e12)]
Share = Annotated[float, ShareKind()]
Bytes = Annotated[int, QuantityKind("memory")]
NameText = Annotated[str, NameKind()]
ResourceNames = Annotated[str, ResourceNamesKind()]
WholeAmounts = Annotated[Mapping[str, int], AmountsKind()]
MilliAmounts = Annotated[Mapping[str, int], AmountsKind(milli=True)]
