"""The keys of a ``queues.yaml``, as YuniKorn's configuration documents them; each entry keeps where it stands."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from tenure.model.entries import MOST, EntryKind
from tenure.model.fields.containers import ListKind, MapKind
from tenure.model.fields.kinds import (
    INT64,
    BooleanKind,
    ChoiceKind,
    IntegerKind,
    NumberKind,
    TextKind,
    ValueKind,
    describe,
)
from tenure.model.fields.records import RecordField, kind_of
from tenure.model.fields.vocabulary import Count
from tenure.model.values.problems import shorten
from tenure.model.yunikorn.properties import PropertiesKind
from tenure.model.yunikorn.units import ResourcesKind

QUEUE_NAME = re.compile(r"[a-zA-Z0-9_:#@-]{1,64}")
_RULE_NAME = re.compile(r"[_a-zA-Z][a-zA-Z0-9_]*")
_MOST_ACL_PARTS = 2

MOST_PARTITIONS = 1000
"""Partitions that are read; one of them is used."""

INHERIT = "quota.preemption.inherit"
OVERSHOOT = "quota.preemption.overshoot"
MOST_EVICTIONS = "quota.preemption.maxEvictionsPerCycle"
TENURES_OWN = (INHERIT, OVERSHOOT, MOST_EVICTIONS)
"""What Tenure adds to a partition. They may stand on it, among its ``properties``, or under ``preemption``."""


class _Matching(TextKind):
    """Text of a certain form."""

    def __init__(self, pattern: re.Pattern[str], what: str) -> None:
        self.pattern, self.what = pattern, what

    def parse(self, value: Any) -> str:
        """Take text of that form."""
        text = str(value) if type(value) is int else super().parse(value)
        if self.pattern.fullmatch(text):
            return text
        raise ValueError(f"is {shorten(text)}, but {self.what} is expected")


class _Acl(TextKind):
    """Users and groups: two lists of names, with one space in between, or ``*``."""

    def parse(self, value: Any) -> str:
        """Take two lists at most."""
        text = super().parse(value)
        if len(text.split()) > _MOST_ACL_PARTS:
            raise ValueError(f"is {shorten(text)}, but at most two lists are expected: users, a space, groups")
        return text


class _Plain(ValueKind):
    """Any single value, as text."""

    def parse(self, value: Any) -> str:
        """Take text, a number or a boolean."""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int | float | str):
            return str(value)
        raise ValueError(f"is {describe(value)}, but a single value is expected")


def _fields(**kinds: ValueKind) -> list[RecordField]:
    return [RecordField(name, name, kind) for name, kind in kinds.items()]


def _named(kind: ValueKind) -> RecordField:
    return RecordField("name", "name", kind, required=True)


_APPLICATIONS = IntegerKind(0, INT64 - 1)
_NAMES = ListKind(TextKind())


@cache
def file_entry() -> EntryKind:
    """Give the whole file."""
    fields = [
        RecordField("partitions", "partitions", ListKind(partition_entry(), most=MOST_PARTITIONS), required=True),
        *_fields(checksum=_Plain()),
    ]
    return EntryKind(dict, fields, name="queues.yaml")


@cache
def partition_entry() -> EntryKind:
    """Give a partition."""
    return EntryKind(
        dict,
        [
            *_fields(
                name=TextKind(),
                queues=ListKind(queue_entry(), most=MOST["queues"]),
                placementrules=ListKind(_rule_entry()),
                limits=ListKind(limit_entry()),
                preemption=_preemption_entry(),
                nodesortpolicy=EntryKind(
                    dict,
                    _fields(type=ChoiceKind(("", "fair", "binpacking")), resourceweights=MapKind(NumberKind())),
                    name="nodesortpolicy",
                ),
                statedumpfilepath=TextKind(),
                properties=EntryKind(dict, _own_fields(), name="properties"),
            ),
            *_own_fields(),
        ],
        name="partition",
    )


def _own_fields() -> list[RecordField]:
    return [
        RecordField(INHERIT, INHERIT, BooleanKind()),
        RecordField(OVERSHOOT, OVERSHOOT, ChoiceKind(("minimal", "never"))),
        RecordField(MOST_EVICTIONS, MOST_EVICTIONS, kind_of(Count)),
    ]


def _preemption_entry() -> EntryKind:
    fields = [*_fields(enabled=BooleanKind(), quotapreemptionenabled=BooleanKind()), *_own_fields()]
    return EntryKind(dict, fields, name="preemption")


@cache
def queue_entry() -> EntryKind:
    """Give a queue, with the queues below it."""
    return _QueueEntry(dict, None, name="queue")


class _QueueEntry(EntryKind):
    """A queue: the one entry that holds entries of its own kind."""

    @property
    def fields(self) -> dict[str, RecordField]:
        """The fields by key."""
        if self._fields is None:
            named = _named(_Matching(QUEUE_NAME, "a name of up to 64 letters, digits and - _ : # @"))
            others = _fields(
                parent=BooleanKind(),
                resources=_resources_entry(),
                maxapplications=_APPLICATIONS,
                properties=PropertiesKind(),
                adminacl=_Acl(),
                submitacl=_Acl(),
                childtemplate=EntryKind(
                    dict,
                    _fields(maxapplications=_APPLICATIONS, properties=PropertiesKind(), resources=_resources_entry()),
                    name="childtemplate",
                ),
                queues=ListKind(self, most=MOST["queues"]),
                limits=ListKind(limit_entry()),
            )
            self._fields = {field.key: field for field in (named, *others)}
        return self._fields


def _resources_entry() -> EntryKind:
    return EntryKind(dict, _fields(guaranteed=ResourcesKind(), max=ResourcesKind()), name="resources")


@cache
def limit_entry() -> EntryKind:
    """Give a limit of users and groups."""
    fields = _fields(
        limit=_Plain(), users=_NAMES, groups=_NAMES, maxresources=ResourcesKind(), maxapplications=_APPLICATIONS
    )
    return EntryKind(dict, fields, name="limit")


@cache
def _rule_entry() -> EntryKind:
    return _RuleEntry(dict, None, name="placementrule")


class _RuleEntry(EntryKind):
    """A placement rule, which may have one for its parent."""

    @property
    def fields(self) -> dict[str, RecordField]:
        """The fields by key."""
        if self._fields is None:
            filter_kind = EntryKind(dict, _fields(type=_Plain(), users=_NAMES, groups=_NAMES), name="filter")
            others = _fields(create=BooleanKind(), filter=filter_kind, parent=self, value=_Plain())
            named = _named(_Matching(_RULE_NAME, "the name of a rule"))
            self._fields = {field.key: field for field in (named, *others)}
        return self._fields
