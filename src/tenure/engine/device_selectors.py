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
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from tenure.model.device_uses import LONGEST_EXPRESSION
from tenure.model.devices import Device, DeviceAttribute
from tenure.model.quantity import parse_nano

_MOST_GROWTH: Final = 10_000
"""Times by which an expression may multiply the length of a text, as far as that can be told from its form."""

_LONGEST_LOOP: Final = 2_048
"""Characters of an expression that goes through lists."""

_LITERAL: Final = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'")
_LOOPS: Final = re.compile(r"\.\s*(?:all|exists|exists_one|existsOne|map|filter)\s*\(")
_MAKES_TEXT: Final = re.compile(r"\.\s*(?:replace|join|format)\s*\(|\bcel\s*\.\s*bind\s*\(")
_ASKED_FOR: Final = re.compile(r"\bin\s+device\s*\.\s*(?:attributes|capacity)\b(?!\s*\[)")
_VERSION: Final = re.compile(
    r"(0|[1-9]\d{0,17})\.(0|[1-9]\d{0,17})\.(0|[1-9]\d{0,17})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?"
)
_NANO: Final = 10**9


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
    if len(code) > _LONGEST_LOOP and _LOOPS.search(code):
        raise DeviceSelectorError(f"goes through lists and has more than {_LONGEST_LOOP:,} characters")
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
        "capacity": _by_domain(driver, {name: _amount(c.value) for name, c in device.capacity.items()}, domains),
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
    return _version(attribute.version or "")


def _amount(nano: int) -> dict[str, str]:
    return {"quantity": str(nano)}


def _version(text: str) -> dict[str, str]:
    if _VERSION.fullmatch(text) is None:
        raise DeviceSelectorError(f"{text[:60]} is no version")
    return {"version": text}


# -- the functions of Kubernetes ---------------------------------------------------------------------------------------


def _quantity(text: str) -> dict[str, str]:
    is_negative = text.startswith("-")
    nano = parse_nano(text[1:] if is_negative else text)
    return _amount(-nano if is_negative else nano)


def _is_quantity(text: str) -> bool:
    try:
        _quantity(text)
    except ValueError:
        return False
    return True


def _rank(value: Mapping[str, str]) -> Any:
    """Give by what a quantity or a version is compared."""
    if "quantity" in value:
        return int(value["quantity"])
    match = _VERSION.fullmatch(value["version"])
    assert match is not None
    numbers = tuple(int(part) for part in match.groups()[:3])
    before = match[4]
    parts = [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in before.split(".")] if before else []
    return (*numbers, before is None, parts)


def _compare(one: Mapping[str, str], other: Mapping[str, str]) -> int:
    left, right = _rank(one), _rank(other)
    return int(left > right) - int(left < right)


def _whole(value: Mapping[str, str]) -> int:
    whole, rest = divmod(int(value["quantity"]), _NANO)
    if rest or abs(whole) >= 1 << 63:
        raise ValueError("no whole number of 64 bits")
    return whole


def _is_whole(value: Mapping[str, str]) -> bool:
    return int(value["quantity"]) % _NANO == 0 and abs(int(value["quantity"])) < _NANO << 63


def _sum(one: Mapping[str, str], other: Any, sign: int) -> dict[str, str]:
    more = int(other["quantity"]) if isinstance(other, Mapping) else int(other) * _NANO
    return _amount(int(one["quantity"]) + sign * more)


def _sign(value: Mapping[str, str]) -> int:
    nano = int(value["quantity"])
    return (nano > 0) - (nano < 0)


@cache
def _environment() -> Any:
    """Give the environment of all selectors, made once: the language with Kubernetes' functions."""
    kinds = cel.Type
    text, truth, whole, value = kinds.STRING, kinds.BOOL, kinds.INT, kinds.MAP
    known: dict[str, list[Any]] = {}

    def add(name: str, parameters: list[Any], result: Any, work: Any, *, is_member: bool = True) -> None:
        overload = f"{name}_{'_'.join(p.name() for p in parameters)}"
        known.setdefault(name, []).append(
            cel.Overload(overload, return_type=result, parameters=parameters, is_member=is_member, impl=work)
        )

    add("quantity", [text], value, _quantity, is_member=False)
    add("isQuantity", [text], truth, _is_quantity, is_member=False)
    add("semver", [text], value, _version, is_member=False)
    add("isSemver", [text], truth, lambda t: _VERSION.fullmatch(t) is not None, is_member=False)
    add("isGreaterThan", [value, value], truth, lambda a, b: _compare(a, b) > 0)
    add("isLessThan", [value, value], truth, lambda a, b: _compare(a, b) < 0)
    add("compareTo", [value, value], whole, _compare)
    add("asInteger", [value], whole, _whole)
    add("isInteger", [value], truth, _is_whole)
    add("asApproximateFloat", [value], kinds.DOUBLE, lambda a: int(a["quantity"]) / _NANO)
    add("sign", [value], whole, _sign)
    for name, sign in (("add", 1), ("sub", -1)):
        add(name, [value, value], value, lambda a, b, sign=sign: _sum(a, b, sign))
        add(name, [value, whole], value, lambda a, b, sign=sign: _sum(a, b, sign))
    for number, name in enumerate(("major", "minor", "patch")):
        add(name, [value], whole, lambda a, number=number: _rank(a)[number])
    return cel.NewEnv(
        variables={"device": kinds.Map(text, kinds.DYN)},
        extensions=[ext_strings.ExtStrings(), ext_bindings.ExtBindings(), ext_optional.ExtOptional()],
        functions=[cel.FunctionDecl(name, overloads) for name, overloads in known.items()],
    )
