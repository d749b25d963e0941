"""What a request asks for, read within bounds: whatever does not do is refused with the name of the parameter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from tenure.model.values.duration import format_time, parse_time
from tenure.model.values.problems import nearest

LONGEST: Final = 300
"""Letters that a parameter may have."""


class AskedError(Exception):
    """Something in a request does not do; the sentence names it and says what would."""


def no_repeats(given: Iterable[tuple[str, str]], several: Collection[str] = ()) -> None:
    """Refuse parameters that stand there twice, but for those of which there may be ``several``.

    Raises
    ------
    AskedError
        One does; taking one of the two would ignore what else was asked for.
    """
    found = Counter(name for name, _ in given if name not in several)
    twice = [name for name, count in found.items() if count > 1]
    if twice:
        raise AskedError(f"{twice[0][:40]} stands there twice; it may stand there once")


class RequestParameters:
    """The parameters of a request, each of which may stand there once."""

    def __init__(self, given: Mapping[str, str], known: Collection[str]) -> None:
        self._given = given
        for name in given:
            if name not in known:
                hint = nearest(name[:LONGEST], sorted(known)) or f"; there are {', '.join(sorted(known)) or 'none'}"
                raise AskedError(f"there is no parameter {name[:40]!r} here{hint}")

    def text(self, name: str) -> str:
        """Give a text; empty where it is not given."""
        value = self._given.get(name, "")
        if len(value) > LONGEST:
            raise AskedError(f"{name} has {len(value):,} letters; {LONGEST} is the most")
        if not all(letter.isprintable() for letter in value):
            raise AskedError(f"{name} has letters that cannot be printed; leave them out")
        return value.strip()

    def choice(self, name: str, choices: Collection[str], default: str = "") -> str:
        """Give one of a few words."""
        value = self.text(name) or default
        if value and value not in choices:
            raise AskedError(f"{name} is {value[:40]!r}; {', '.join(choices)} would do")
        return value

    def number(self, name: str, default: int, most: int, least: int = 0) -> int:
        """Give a whole number within bounds."""
        value = self.text(name)
        if not value:
            return default
        if not (value.isascii() and value.isdecimal()) or len(value) > 12 or not least <= int(value) <= most:  # noqa: PLR2004  more digits than any bound
            raise AskedError(f"{name} is {value[:40]!r}; a whole number from {least} to {most:,} would do")
        return int(value)

    def time(self, name: str) -> int | None:
        """Give a moment in µs since the epoch, None where none is given."""
        value = self.text(name)
        if not value:
            return None
        try:
            at = parse_time(value)
            format_time(at)
        except (ValueError, OverflowError):
            raise AskedError(f"{name} is {value[:40]!r}; a time such as 2026-11-20T10:00:00Z would do") from None
        return at
