"""The functions of Kubernetes that selectors of devices may call, beside those of the expression language itself.

What Kubernetes has as types of its own (quantities, versions, addresses, networks, URLs) are maps here, each with one
key that says what it is. A function that is given anything else, or text that says nothing, raises a ValueError.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from cel_expr_python import cel

from tenure.model.values.quantity import parse_nano

EXTENSIONS: Final = ("strings", "bindings", "optional", "lists", "sets", "two-var-comprehensions")
"""Extensions of the language that Kubernetes switches on."""

NOT_THERE: Final = re.compile(
    r"\bformat\s*\.\s*\w+|\.\s*transformMap(?:Entry)?\b|\boptional\s*\.\s*unwrap\b|\.\s*unwrapOpt\b"
)
"""Functions of Kubernetes that are not evaluated, where the error that follows would not name them."""

VERSION: Final = re.compile(
    r"(0|[1-9]\d{0,17})\.(0|[1-9]\d{0,17})\.(0|[1-9]\d{0,17})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?"
)
_NANO: Final = 10**9
_MOST: Final = 1 << 63

Value = Mapping[str, str]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class DeviceFunction(NamedTuple):
    """A function: its name, its parameters and what it gives, and what it does."""

    name: str
    parameters: tuple[Any, ...]
    result: Any
    work: Callable[..., Any]
    is_member: bool = True


def declared() -> list[Any]:
    """Give the declarations of all functions."""
    known: dict[str, list[Any]] = {}
    for function in (*_quantities(), *_versions(), *_lists(), *_patterns(), *_addresses(), *_urls()):
        overload = f"{function.name}_{'_'.join(parameter.name() for parameter in function.parameters)}"
        known.setdefault(function.name, []).append(
            cel.Overload(
                overload, return_type=function.result, parameters=list(function.parameters),
                is_member=function.is_member, impl=function.work,
            )
        )  # fmt: skip
    return [cel.FunctionDecl(name, overloads) for name, overloads in known.items()]


def _part(value: Value, kind: str) -> str:
    if kind not in value:
        raise ValueError(f"no such overload: {' and '.join(value) or 'a map'} in place of {kind}")
    return value[kind]


def _is(read: Callable[[str], Any]) -> Callable[[str], bool]:
    """Give what tells whether a text can be read."""

    def can_be_read(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return can_be_read


# -- quantities and versions -------------------------------------------------------------------------------------------


def amount(nano: int) -> dict[str, str]:
    """Give a quantity of so many thousand-millionths."""
    return {"quantity": str(nano)}


def version(text: str) -> dict[str, str]:
    """Give a version.

    Raises
    ------
    ValueError
        If it is none.
    """
    if VERSION.fullmatch(text) is None:
        raise ValueError(f"{text[:60]} is no version")
    return {"version": text}


def _quantity(text: str) -> dict[str, str]:
    is_negative = text.startswith("-")
    nano = parse_nano(text[1:] if is_negative else text)
    return amount(-nano if is_negative else nano)


def _loose_version(text: str) -> dict[str, str]:
    """Read a version that may lack parts, begin with a v, or have zeros in front of its numbers."""
    parts = text.removeprefix("v").split(".", 2)
    for place, part in enumerate(parts):
        if len(part) > 1:
            bare = part.lstrip("0")
            parts[place] = bare if bare[:1].isdecimal() else f"0{bare}"
    if len(parts) < _PARTS:
        if any(sign in parts[-1] for sign in "+-"):
            raise ValueError(f"{text[:60]} is no version")
        parts += ["0"] * (_PARTS - len(parts))
    return version(".".join(parts))


_PARTS: Final = 3


def _rank(value: Value) -> Any:
    """Give by what a quantity or a version is compared."""
    if "quantity" in value:
        return int(value["quantity"])
    match = VERSION.fullmatch(_part(value, "version"))
    assert match is not None
    numbers = tuple(int(part) for part in match.groups()[:3])
    before = match[4]
    parts = [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in before.split(".")] if before else []
    return (*numbers, before is None, parts)


def _compare(one: Value, other: Value) -> int:
    if one.keys() != other.keys():
        raise ValueError("no such overload")
    left, right = _rank(one), _rank(other)
    return int(left > right) - int(left < right)


def _whole(value: Value) -> int:
    whole, rest = divmod(int(_part(value, "quantity")), _NANO)
    if rest or abs(whole) >= _MOST:
        raise ValueError("no whole number of 64 bits")
    return whole


def _is_whole(value: Value) -> bool:
    nano = int(_part(value, "quantity"))
    return nano % _NANO == 0 and abs(nano) < _NANO * _MOST


def _added(one: Value, other: Any, sign: int) -> dict[str, str]:
    more = int(_part(other, "quantity")) if isinstance(other, Mapping) else int(other) * _NANO
    return amount(int(_part(one, "quantity")) + sign * more)


def _sign(value: Value) -> int:
    nano = int(_part(value, "quantity"))
    return (nano > 0) - (nano < 0)


def _quantities() -> Iterator[DeviceFunction]:
    kinds = cel.Type
    text, truth, whole, value = kinds.STRING, kinds.BOOL, kinds.INT, kinds.MAP
    yield DeviceFunction("quantity", (text,), value, _quantity, is_member=False)
    yield DeviceFunction("isQuantity", (text,), truth, _is(_quantity), is_member=False)
    yield DeviceFunction("isGreaterThan", (value, value), truth, lambda a, b: _compare(a, b) > 0)
    yield DeviceFunction("isLessThan", (value, value), truth, lambda a, b: _compare(a, b) < 0)
    yield DeviceFunction("compareTo", (value, value), whole, _compare)
    yield DeviceFunction("asInteger", (value,), whole, _whole)
    yield DeviceFunction("isInteger", (value,), truth, _is_whole)
    yield DeviceFunction("asApproximateFloat", (value,), kinds.DOUBLE, lambda a: int(_part(a, "quantity")) / _NANO)
    yield DeviceFunction("sign", (value,), whole, _sign, is_member=False)
    for name, sign in (("add", 1), ("sub", -1)):
        yield DeviceFunction(name, (value, value), value, lambda a, b, sign=sign: _added(a, b, sign))
        yield DeviceFunction(name, (value, whole), value, lambda a, b, sign=sign: _added(a, b, sign))


def _versions() -> Iterator[DeviceFunction]:
    kinds = cel.Type
    text, truth, whole, value = kinds.STRING, kinds.BOOL, kinds.INT, kinds.MAP

    def loosely(told: str, is_loose: bool) -> dict[str, str]:
        return _loose_version(told) if is_loose else version(told)

    yield DeviceFunction("semver", (text,), value, version, is_member=False)
    yield DeviceFunction("semver", (text, truth), value, loosely, is_member=False)
    yield DeviceFunction("isSemver", (text,), truth, _is(version), is_member=False)
    yield DeviceFunction(
        "isSemver", (text, truth), truth, lambda told, is_loose: _is(_loose_version if is_loose else version)(told),
        is_member=False,
    )  # fmt: skip
    for number, name in enumerate(("major", "minor", "patch")):
        yield DeviceFunction(name, (value,), whole, lambda a, n=number: _rank({"version": _part(a, "version")})[n])


# -- lists -------------------------------------------------------------------------------------------------------------


def _comparable(listed: list[Any]) -> list[Any]:
    """Give a list of which all values are of one kind that has an order."""
    kinds = {type(value) for value in listed}
    if len(kinds) > 1 or not kinds <= {bool, int, float, str, bytes, dt.datetime, dt.timedelta}:
        raise ValueError("no such overload")
    return listed


def _sum(listed: list[Any]) -> Any:
    if not listed:
        return 0
    if type(listed[0]) not in (int, float, dt.timedelta):
        raise ValueError("no such overload")
    first, *others = _comparable(listed)
    found = sum(others, first)
    if isinstance(found, int) and not -_MOST <= found < _MOST:
        raise ValueError("integer overflow")
    return found


def _extreme(choose: Callable[[list[Any]], Any], name: str) -> Callable[[list[Any]], Any]:
    def chosen(listed: list[Any]) -> Any:
        if not listed:
            raise ValueError(f"{name} called on empty list")
        return choose(_comparable(listed))

    return chosen


def _is_sorted(listed: list[Any]) -> bool:
    known = _comparable(listed)
    return all(one <= other for one, other in pairwise(known))


def _lists() -> Iterator[DeviceFunction]:
    kinds = cel.Type
    listed = kinds.List(kinds.DYN)
    yield DeviceFunction("sum", (listed,), kinds.DYN, _sum)
    yield DeviceFunction("min", (listed,), kinds.DYN, _extreme(min, "min"))
    yield DeviceFunction("max", (listed,), kinds.DYN, _extreme(max, "max"))
    yield DeviceFunction("isSorted", (listed,), kinds.BOOL, _is_sorted)


# -- patterns ----------------------------------------------------------------------------------------------------------

_PART_OF_PATTERN: Final = re.compile(
    r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|\(\?P?<\w+>|\((?!\?)", re.DOTALL
)


def _ungrouped(pattern: str) -> str:
    """Give a pattern that matches the same, and of which the language gives the match as a whole."""
    return _PART_OF_PATTERN.sub(lambda found: "(?:" if found[0].startswith("(") else found[0], pattern)


@cache
def _finders() -> tuple[Any, Any]:
    """Give the programs that find a pattern in a text: the first match, and all; they take time linear in the text."""
    config = cel.NewEnvConfigFromYaml("name: patterns\nextensions:\n- name: regex\n- name: optional\n")
    inside = cel.NewEnv(config=config, variables={"text": cel.Type.STRING, "pattern": cel.Type.STRING})
    first = inside.compile('regex.extract(text, pattern).orValue("")')
    return first, inside.compile("regex.extractAll(text, pattern)")


def _found(number: int, text: str, pattern: str) -> Any:
    found = _finders()[number].eval(data={"text": text, "pattern": _ungrouped(pattern)})
    if found.type() == cel.Type.ERROR:
        raise ValueError(f"the pattern {pattern[:60]} cannot be read")
    return found.plain_value()


def _find_all(text: str, pattern: str, most: int) -> list[str]:
    found: list[str] = _found(1, text, pattern)
    return found if most < 0 else found[:most]


def _patterns() -> Iterator[DeviceFunction]:
    kinds = cel.Type
    text, texts = kinds.STRING, kinds.List(kinds.STRING)
    yield DeviceFunction("find", (text, text), text, lambda told, pattern: _found(0, told, pattern))
    yield DeviceFunction("findAll", (text, text), texts, lambda told, pattern: _find_all(told, pattern, -1))
    yield DeviceFunction("findAll", (text, text, kinds.INT), texts, _find_all)


# -- addresses and networks --------------------------------------------------------------------------------------------


def _address_of(text: str) -> Address:
    found = ipaddress.ip_address(text)
    if "%" in text or getattr(found, "ipv4_mapped", None) is not None:
        raise ValueError(f"{text[:60]} is no plain address")
    return found


def _ip(text: str) -> dict[str, str]:
    return {"ip": str(_address_of(text))}


def _address(value: Value) -> Address:
    return ipaddress.ip_address(_part(value, "ip"))


def _cidr(text: str) -> dict[str, str]:
    address, slash, length = text.partition("/")
    known = _address_of(address)
    if not slash or not length.isdecimal() or str(int(length)) != length or int(length) > known.max_prefixlen:
        raise ValueError(f"{text[:60]} is no network")
    return {"cidr": f"{known}/{length}"}


def _network(value: Value) -> Network:
    return ipaddress.ip_network(_part(value, "cidr"), strict=False)


def _contains(value: Value, other: Any) -> bool:
    network, address = _network(value), _address(other if isinstance(other, Mapping) else _ip(other))
    return network.version == address.version and address in network


def _contains_network(value: Value, other: Any) -> bool:
    network, inner = _network(value), _network(other if isinstance(other, Mapping) else _cidr(other))
    return inner.network_address in network and inner.prefixlen >= network.prefixlen


_LOCAL_MULTICAST: Final = tuple(map(ipaddress.ip_network, ("224.0.0.0/24", "ff02::/16")))
_BROADCAST: Final = ipaddress.ip_address("255.255.255.255")


def _is_local_multicast(address: Address) -> bool:
    return any(address.version == n.version and address in n for n in _LOCAL_MULTICAST)


def _is_global_unicast(address: Address) -> bool:
    special = (address.is_unspecified, address.is_loopback, address.is_multicast, address.is_link_local)
    return not any(special) and address != _BROADCAST


_ASKED_OF_ADDRESSES: Final[Mapping[str, Callable[[Address], bool]]] = {
    "isUnspecified": lambda a: a.is_unspecified,
    "isLoopback": lambda a: a.is_loopback,
    "isLinkLocalMulticast": _is_local_multicast,
    "isLinkLocalUnicast": lambda a: a.is_link_local,
    "isGlobalUnicast": _is_global_unicast,
}


def _addresses() -> Iterator[DeviceFunction]:
    kinds = cel.Type
    text, truth, value = kinds.STRING, kinds.BOOL, kinds.MAP
    yield DeviceFunction("ip", (text,), value, _ip, is_member=False)
    yield DeviceFunction("isIP", (text,), truth, _is(_ip), is_member=False)
    yield DeviceFunction("ip.isCanonical", (text,), truth, lambda told: _ip(told)["ip"] == told, is_member=False)
    yield DeviceFunction("family", (value,), kinds.INT, lambda a: _address(a).version)
    for name, work in _ASKED_OF_ADDRESSES.items():
        yield DeviceFunction(name, (value,), truth, lambda a, work=work: work(_address(a)))
    yield DeviceFunction("cidr", (text,), value, _cidr, is_member=False)
    yield DeviceFunction("isCIDR", (text,), truth, _is(_cidr), is_member=False)
    for other in (text, value):
        yield DeviceFunction("containsIP", (value, other), truth, _contains)
        yield DeviceFunction("containsCIDR", (value, other), truth, _contains_network)
    yield DeviceFunction("ip", (value,), value, lambda a: _ip(_part(a, "cidr").partition("/")[0]))
    yield DeviceFunction("masked", (value,), value, lambda a: {"cidr": str(_network(a))})
    yield DeviceFunction("prefixLength", (value,), kinds.INT, lambda a: _network(a).prefixlen)


# -- URLs --------------------------------------------------------------------------------------------------------------

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PATH_SAFE: Final = "/%:@!$&'()*+,;=~"


def _url(text: str) -> dict[str, str]:
    if not (text.startswith("/") or _SCHEME.match(text)) or _CONTROL.search(text):
        raise ValueError(f"{text[:60]} is no URL")
    parts = urlsplit(text)
    _ = parts.port
    if ":" in (parts.hostname or "") and "[" not in parts.netloc:
        raise ValueError(f"{text[:60]} is no URL")
    return {"url": text}


def _split(value: Value) -> Any:
    return urlsplit(_part(value, "url"))


def _query(value: Value) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, told in parse_qsl(_split(value).query, keep_blank_values=True):
        found.setdefault(key, []).append(told)
    return found


def _port(value: Value) -> str:
    port = _split(value).port
    return "" if port is None else str(port)


def _urls() -> Iterator[DeviceFunction]:
    kinds = cel.Type
    text, value = kinds.STRING, kinds.MAP
    yield DeviceFunction("url", (text,), value, _url, is_member=False)
    yield DeviceFunction("isURL", (text,), kinds.BOOL, _is(_url), is_member=False)
    yield DeviceFunction("getScheme", (value,), text, lambda a: _split(a).scheme)
    yield DeviceFunction("getHost", (value,), text, lambda a: _split(a).netloc.rpartition("@")[2])
    yield DeviceFunction(
        "getHostname", (value,), text, lambda a: _split(a).netloc and unquote(_split(a).hostname or "")
    )
    yield DeviceFunction("getPort", (value,), text, _port)
    yield DeviceFunction("getEscapedPath", (value,), text, lambda a: quote(_split(a).path, safe=_PATH_SAFE))
    yield DeviceFunction("getQuery", (value,), kinds.Map(text, kinds.List(text)), _query)
