"""What can go wrong with a store of history, in words that say what would be right."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

_MEANINGS: Final = (
    ("not a database", "is no SQLite file; name another file, or move this one away", False),
    ("malformed", "is damaged; restore it from a copy, or save what can be read: sqlite3 FILE .recover", False),
    ("disk is full", "the disk is full; make room on it", True),
    ("disk i/o error", "the disk cannot be read or written; look at the system's log", True),
    (
        "read-only transaction",
        "the server only lets it be read now; let it be written again, or name another one",
        True,
    ),
    ("readonly", "may only be read here; give the right to write it and its folder", True),
    ("locked", "is locked by another process; let that one finish", True),
    ("unable to open", "cannot be opened; its folder has to be there, and may have to be written to", True),
    ("authentication failed", "does not accept this user and password", False),
    ("does not exist", "there is no such database or user; create it first", False),
    ("permission denied", "this user may not do that; give it the right to create tables in this database", False),
)


class HistoryError(OSError):
    """A store cannot be read or written. ``place`` is its file, or its address without the password."""

    def __init__(self, place: str, what: str, *, temporary: bool = False) -> None:
        super().__init__(what)
        self.place = place
        self.what = what
        self.temporary = temporary

    def __str__(self) -> str:
        """Name the place, then what is wrong."""
        return f"{self.place}: {self.what}"


class UnwritableError(ValueError):
    """A record holds what its store cannot take."""


def meaning_of(place: str, error: BaseException) -> HistoryError:
    """Say in plain words what an error of SQLite or of a server means."""
    text = line_of_error(error)
    lower = text.lower()
    for sign, meaning, temporary in _MEANINGS:
        if sign in lower:
            return HistoryError(place, meaning, temporary=temporary)
    if isinstance(error, sqlite3.Error):
        return HistoryError(place, f"SQLite says: {text}")
    return HistoryError(place, f"the server cannot be reached or refuses: {text}", temporary=True)


def line_of_error(error: Any) -> str:
    """Give what an error says, on one line that is not too long."""
    return " ".join(str(error).split())[:300]
