"""Properties of a queue: what each may hold, and what Tenure makes of it.

YuniKorn passes over a misspelt or malformed property in silence; here it is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

from tenure.model.fields.kinds import Schema, ValueKind, describe
from tenure.model.values.duration import parse_duration
from tenure.model.values.problems import nearest, shorten
from tenure.model.values.report import BAD, ProblemReport, Trail

QUOTA_DELAY = "quota.preemption.delay"
PREEMPTION_POLICY = "preemption.policy"
FAMILIES = ("application.", "preemption.", "priority.", "quota.")
"""How YuniKorn's own properties begin: an unknown one of these is a mistake, others are another program's."""

_INT32 = 2**31


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text in words:
            return text
        raise ValueError(f"is {shorten(text)}, but one of {', '.join(words)} is expected{nearest(text, words)}")

    return parse


def _positive(text: str) -> int:
    delay = parse_duration(text)
    if not delay:
        raise ValueError("is 0, but a duration of more than 0 is expected, such as 30s")
    return delay


def _offset(text: str) -> int:
    if re.fullmatch(r"[+-]?[0-9]{1,10}", text) and -_INT32 <= int(text) < _INT32:
        return int(text)
    raise ValueError(f"is {shorten(text)}, but a whole number of 32 bits is expected")


PROPERTIES: dict[str, Callable[[str], Any]] = {
    "application.sort.policy": _one_of("fifo", "fair", "stateaware"),
    "application.sort.priority": _one_of("enabled", "disabled"),
    "priority.policy": _one_of("default", "fence"),
    "priority.offset": _offset,
    PREEMPTION_POLICY: _one_of("default", "fence", "disabled"),
    "preemption.delay": _positive,
    QUOTA_DELAY: parse_duration,
}
"""Every property that YuniKorn knows, and how its value is read."""

USED = (QUOTA_DELAY, PREEMPTION_POLICY)
"""Those that decide something in Tenure."""


class PropertiesKind(ValueKind):
    """Properties of a queue, text by key; the values of known ones are read."""

    shape: ClassVar[Schema] = {"type": "object"}

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> dict[str, Any]:
        """Read the properties; those that are wrong are reported and left out."""
        if not isinstance(value, dict):
            report.add(at, f"is {describe(value)}, but properties are expected, such as {{{QUOTA_DELAY}: 15m}}")
            return BAD  # type: ignore[no-any-return]
        found = {}
        for name, text in value.items():
            read = self._property(name, text, (at, name), report)
            if read is not BAD:
                found[name] = read
        return found

    def _property(self, name: str, value: Any, at: Trail, report: ProblemReport) -> Any:
        parse = PROPERTIES.get(name)
        if parse is None:
            hint = nearest(name, PROPERTIES)
            if hint or name.lower().startswith(FAMILIES):
                report.add(at, f"unknown property{hint or '; known are ' + ', '.join(PROPERTIES)}")
                return BAD
            return value
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            report.add(at, f"is {describe(value)}, but a single value is expected")
            return BAD
        try:
            return parse(str(value))
        except ValueError as error:
            report.add(at, str(error))
            return BAD
