"""What can go wrong with a store of history, in words that say what would be right."""

from __future__ import annotations


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
