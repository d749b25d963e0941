"""Selectors of devices: expressions over ``device`` in the Common Expression Language, as Kubernetes reads them.

Google's implementation evaluates them. It has no access to anything but the device, and ends after 10,000 iterations;
what an expression may make of text is bounded here before it is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, Final

from cel_expr_python import cel

from tenure.engine.device_functions import EXTENSIONS, NOT_THERE, amount, declared, version
from tenure.model.device_uses import LONGEST_EXPRESSION
from tenure.model.devices import Device, DeviceAttribute

_MOST_GROWTH: Final = 10_000
"""Times by which an expression may multiply the length of a text, as far as that can be told from its form."""

_LONGEST_LOOP: Final = 2_048
"""Characters of an expression that goes through lists, text included: it may search that text each time."""

_LITERAL: Final = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'")
_LOOPS: Final = re.compile(
    r"\.\s*(?:all|exists|exists_one|existsOne|map|filter|transformList|sortBy|distinct)\s*\(|\bsets\s*\.|\blists\s*\."
)
_RANGES: Final = re.compile(r"\blists\s*\.\s*range\b(?!\s*\(\s*\d{1,2}\s*\))")
_BY_PAIRS: Final = re.compile(r"\.\s*distinct\s*\(|\bsets\s*\.")
_MAKES_LISTS: Final = re.compile(r"\.\s*flatten\s*\(|\blists\s*\.\s*range\b")
_MAKES_TEXT: Final = re.compile(r"\.\s*(?:replace|join|format)\s*\(|\bcel\s*\.\s*bind\s*\(")
_ASKED_FOR: Final = re.compile(r"\bin\s+device\s*\.\s*(?:attributes|capacity)\b(?!\s*\[)")


class DeviceSelectorError(ValueError):
    """A selector that cannot be read, or that cannot be evaluated for some device; the text says why."""


class CompiledSelector:
    """A selector that was compiled once, and is evaluated device by device."""

    def __init__(self, expression: str) -> None:
        _check_form(expression)
        try:
            self._program = _environment().compile(expression)
        except (RuntimeError, ValueError) as error:
            raise DeviceSelectorError(f"cannot be compiled: {_first_line(error)}") from None
        if self._program.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
            raise DeviceSelectorError("gives no truth value; compare what it gives with something")
        self._domains = () if _ASKED_FOR.search(expression) else tuple(_texts(expression))

    def matches(self, driver: str, device: Device) -> bool:
        """Tell whether a device of a driver is taken.

        Raises
        ------
        DeviceSelectorError
            If that cannot be told: an attribute is missing, or of another type.
        """
        try:
            found = self._program.eval(data={"device": _seen(driver, device, self._domains)})
        except RuntimeError as error:  # too many iterations
            raise DeviceSelectorError(_first_line(error)) from None
        if found.type() == cel.Type.ERROR:
            raise DeviceSelectorError(_first_line(found.value()))
        if found.type() != cel.Type.BOOL:
            raise DeviceSelectorError("gives no truth value")
        return bool(found.value())


@lru_cache(maxsize=4096)
def compiled(expression: str) -> CompiledSelector | DeviceSelectorError:
    """Give a compiled selector, or what is wrong with it."""
    try:
        return CompiledSelector(expression)
    except DeviceSelectorError as error:
        return error


def _check_form(expression: str) -> None:
    """Refuse an expression whose form allows it to take long, or to fill the memory."""
    if len(expression) > LONGEST_EXPRESSION:
        raise DeviceSelectorError(f"has more than {LONGEST_EXPRESSION:,} characters")
    code = _LITERAL.sub('""', expression)
    if len(expression) > _LONGEST_LOOP and _LOOPS.search(code):
        raise DeviceSelectorError(f"goes through lists and has more than {_LONGEST_LOOP:,} characters")
    unknown = NOT_THERE.search(code)
    if unknown:
        raise DeviceSelectorError(f"calls {unknown[0].lstrip('. ')}, which is not evaluated")
    if _RANGES.search(code):
        raise DeviceSelectorError("calls lists.range with anything but a number below 100")
    if _BY_PAIRS.search(code) and (_MAKES_TEXT.search(code) or _MAKES_LISTS.search(code)):
        raise DeviceSelectorError("calls distinct or sets on lists that it makes by cel.bind, flatten or lists.range")
    makers = len(_MAKES_TEXT.findall(code))
    longest = max((len(match[0]) for match in _LITERAL.finditer(expression)), default=1)
    if makers and ((code.count("+") + longest) / makers + 1) ** makers > _MOST_GROWTH:
        raise DeviceSelectorError("makes text of text too often (cel.bind, replace, join, format)")


def _texts(expression: str) -> Iterable[str]:
    """Give the texts in an expression: those in brackets are domains, and one that is missing counts as empty."""
    return dict.fromkeys(one or other for one, other in _LITERAL.findall(expression))


def _first_line(error: object) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason was given")[:200]


# -- what an expression sees -------------------------------------------------------------------------------------------


def _seen(driver: str, device: Device, domains: tuple[str, ...]) -> dict[str, Any]:
    """Give a device as expressions see it: attributes and capacities by domain and name."""
    return {
        "driver": driver,
        "allowMultipleAllocations": device.is_shared,
        "attributes": _by_domain(driver, {name: _plain(a) for name, a in device.attributes.items()}, domains),
        "capacity": _by_domain(driver, {name: amount(c.value) for name, c in device.capacity.items()}, domains),
    }


def _by_domain(driver: str, values: Mapping[str, Any], domains: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {domain: {} for domain in domains}
    for name, value in values.items():
        domain, _, rest = name.rpartition("/")
        found.setdefault(domain or driver, {})[rest] = value
    return found


def _plain(attribute: DeviceAttribute) -> Any:
    for value in (attribute.number, attribute.flag, attribute.text):
        if value is not None:
            return value
    try:
        return version(attribute.version or "")
    except ValueError as error:
        raise DeviceSelectorError(str(error)) from None


@cache
def _environment() -> Any:
    """Give the environment of all selectors, made once: the language with Kubernetes' functions."""
    extensions = "".join(f"- name: {name}\n" for name in EXTENSIONS)
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(f"name: devices\nextensions:\n{extensions}"),
        variables={"device": cel.Type.Map(cel.Type.STRING, cel.Type.DYN)},
        functions=declared(),
    )
