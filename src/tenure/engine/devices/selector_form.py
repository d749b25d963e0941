"""The form of a selector of devices: which texts stand in it, what of a device it reads, and how long it may take.

All of this is told from the expression alone, before it is compiled, so that one that could take long costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import Final

from tenure.engine.devices.functions import NOT_THERE, VERSION
from tenure.model.devices import Device
from tenure.model.manifests.device_uses import LONGEST_EXPRESSION

MOST_EFFORT: Final = 1_000_000
"""The effort for one device beyond which a selector is not evaluated: about a second, at the very most."""

_AT_LEAST: Final = 50
"""Effort of any evaluation: a device is given as the language wants it."""

_MOST_ROUNDS: Final = 10_000
"""Iterations after which the language's implementation ends an evaluation."""

_MOST_GROWTH: Final = 10_000
"""Times by which an expression may multiply the length of a text, as far as that can be told from its form."""

_LONGEST_LOOP: Final = 2_048
"""Characters of an expression that goes through lists, text included: it may search that text each time."""

_LONGEST_OF_DEVICE: Final = 64
"""Characters of the longest text that a device has: Kubernetes allows no more."""

_STEPS_OF_PATTERN: Final = 70
"""Characters of a text times those of a pattern that are looked at in a millionth of a second."""

_LOOPS: Final = re.compile(
    r"\.\s*(?:all|exists|exists_one|existsOne|map|filter|transformList|sortBy|distinct)\s*\(|\bsets\s*\.|\blists\s*\."
)
_RANGES: Final = re.compile(r"\blists\s*\.\s*range\b(?!\s*\(\s*\d{1,2}\s*\))")
_BY_PAIRS: Final = re.compile(r"\.\s*distinct\s*\(|\bsets\s*\.")
_MAKES_LISTS: Final = re.compile(r"\.\s*flatten\s*\(|\blists\s*\.\s*range\b")
_MAKES_TEXT: Final = re.compile(r"\.\s*(?:replace|join|format)\s*\(|\bcel\s*\.\s*bind\s*\(")
_PATTERNS: Final = re.compile(r"\.\s*(?:matches|find|findAll)\s*\(|\bmatches\s*\(")
_ASKED_FOR: Final = re.compile(r"\bin\s+device\s*\.\s*(?:attributes|capacity)\b(?!\s*\[)")
_READ: Final = re.compile(
    r"\bdevice\s*\.\s*(?:(driver|allowMultipleAllocations)\b"
    r'|(attributes|capacity)\s*\[\s*""\s*\]\s*(?:\.\s*([A-Za-z_]\w*)|\[\s*""\s*\]))'
)
_DEVICE: Final = re.compile(r"\bdevice\b")


class DeviceSelectorError(ValueError):
    """A selector that cannot be read, or that cannot be evaluated for some device; the text says why."""


class SelectorForm:
    """The form of an expression.

    ``domains`` are the texts that may be a domain: one that a device does not have counts as empty. ``effort`` is a
    bound of what one evaluation takes, in millionths of a second of a slow processor.

    Raises
    ------
    DeviceSelectorError
        If its form allows it to take long, or to fill the memory.
    """

    def __init__(self, expression: str) -> None:
        if len(expression) > LONGEST_EXPRESSION:
            raise DeviceSelectorError(f"has more than {LONGEST_EXPRESSION:,} characters")
        pieces = list(_pieces(expression))
        self._code = "".join('""' if is_text else piece for is_text, piece in pieces)
        self._texts = [piece for is_text, piece in pieces if is_text]
        self._longest = max(map(len, self._texts), default=0)
        self._growth = self._most_growth()
        self._check(expression)
        self.domains = () if _ASKED_FOR.search(self._code) else tuple(dict.fromkeys(self._texts))
        self.effort = self._effort(expression)
        if self.effort > MOST_EFFORT:
            raise DeviceSelectorError("could take too long: it goes through lists in lists, or looks for long patterns")
        self._reads = self._read()

    def seen_of(self, driver: str, device: Device) -> Hashable:
        """Give what the expression reads of a device; None where it may read anything."""
        if self._reads is None:
            return None
        found: list[Hashable] = [_is_odd(device)]
        for part, domain, name in self._reads:
            if part in ("attributes", "capacity"):
                values = device.attributes if part == "attributes" else device.capacity
                found += (values.get(f"{domain}/{name}"), values.get(name) if domain == driver else None)
            else:
                found.append(driver if part == "driver" else device.is_shared)
        return tuple(found)

    def _check(self, expression: str) -> None:
        code = self._code
        if len(expression) > _LONGEST_LOOP and _LOOPS.search(code):
            raise DeviceSelectorError(f"goes through lists and has more than {_LONGEST_LOOP:,} characters")
        unknown = NOT_THERE.search(code)
        if unknown:
            raise DeviceSelectorError(f"calls {unknown[0].lstrip('. ')}, which is not evaluated")
        if _RANGES.search(code):
            raise DeviceSelectorError("calls lists.range with anything but a number below 100")
        if _BY_PAIRS.search(code) and (_MAKES_TEXT.search(code) or _MAKES_LISTS.search(code)):
            raise DeviceSelectorError(
                "calls distinct or sets on lists that it makes by cel.bind, flatten or lists.range"
            )
        if self._growth > _MOST_GROWTH:
            raise DeviceSelectorError("makes text of text too often (cel.bind, replace, join, format)")

    def _most_growth(self) -> float:
        """Give by how much the longest text may grow."""
        makers = len(_MAKES_TEXT.findall(self._code))
        each = (self._code.count("+") + max(1, self._longest) + 2) / makers + 1 if makers else 1.0
        return min(each, _MOST_GROWTH + 1.0) ** min(makers, 8)

    def _effort(self, expression: str) -> int:
        """Give what an evaluation takes at most: code once, or in each iteration, and the texts that are looked at."""
        text = self._growth * max(_LONGEST_OF_DEVICE, self._longest)
        patterns = len(_PATTERNS.findall(self._code))
        looked_at = text * (patterns * max(self._longest, _LONGEST_OF_DEVICE) / _STEPS_OF_PATTERN + 0.01)
        return round(_AT_LEAST + (self._rounds() * (1 + len(expression) / 2) + len(expression) + looked_at))

    def _rounds(self) -> float:
        """Give how many iterations there are at most."""
        loops = len(_LOOPS.findall(self._code)) + len(_BY_PAIRS.findall(self._code))
        if not loops:
            return 0
        makes = _MAKES_TEXT.search(self._code) or _MAKES_LISTS.search(self._code)
        longest = max(_LONGEST_OF_DEVICE, self._code.count(",") + 1, self._longest, _MOST_ROUNDS if makes else 0)
        return min(_MOST_ROUNDS, float(longest) ** min(loops, 8))

    def _read(self) -> tuple[tuple[str, str, str], ...] | None:
        """Give part, domain and name of all that it reads of a device; None where that is not said in so many words."""
        if len(_READ.findall(self._code)) < len(_DEVICE.findall(self._code)):
            return None
        found: dict[tuple[str, str, str], None] = {}
        for match in _READ.finditer(self._code):
            if match[1]:
                found[match[1], "", ""] = None
                continue
            before = self._code.count('""', 0, match.start())
            named = match[3] or self._texts[before + 1]
            found[match[2], self._texts[before], named] = None
        return tuple(found)


def _is_odd(device: Device) -> bool:
    """Whether a version of a device cannot be read: no expression is evaluated for it."""
    return any(
        VERSION.fullmatch(attribute.version or "") is None
        for attribute in device.attributes.values()
        if attribute.number is None and attribute.flag is None and attribute.text is None
    )


def _pieces(expression: str) -> Iterator[tuple[bool, str]]:
    """Give an expression piece by piece: code, and the texts in it without their quotes; comments are left out."""
    at = begin = 0
    while at < len(expression):
        if expression.startswith("//", at):
            yield False, expression[begin:at]
            at = begin = _end_of(expression, "\n", at, is_raw=True)
        elif expression[at] in "\"'":
            prefix = re.search(r"(?<!\w)[rRbB]{1,2}\Z", expression[max(0, at - 3) : at])
            yield False, expression[begin : at - (len(prefix[0]) if prefix else 0)]
            quote = expression[at] * (3 if expression.startswith(expression[at] * 3, at) else 1)
            at += len(quote)
            begin, at = at, _end_of(expression, quote, at, is_raw=prefix is not None and "r" in prefix[0].lower())
            yield True, expression[begin:at]
            at = begin = at + len(quote)
        else:
            at += 1
    yield False, expression[begin:]


def _end_of(expression: str, quote: str, at: int, *, is_raw: bool) -> int:
    """Give where a text ends that begins at a place; the end of all where it does not."""
    while at < len(expression) and not expression.startswith(quote, at):
        at += 2 if expression[at] == "\\" and not is_raw else 1
    return min(at, len(expression))
