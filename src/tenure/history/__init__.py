"""What was decided and why, kept for a year: records in SQLite or PostgreSQL, and what is made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenure.history.store import HistoryStore


def open_history(address: str, *, write: bool = False, new: bool = True) -> HistoryStore:
    """Open a store: ``FILE``, ``sqlite:///FILE`` or ``postgresql://USER@HOST/DATABASE``.

    Where it is to be written and is not there, it is made, unless it may not be ``new``.

    Raises
    ------
    InvalidInputError
        There is no such file, or the address can be none.
    HistoryError
        It cannot be reached, read or written, is no history, or was written by a later Tenure.
    """
    from tenure.history.store import open_history as opened  # noqa: PLC0415  SQLAlchemy is loaded where it is needed

    return opened(address, write=write, new=new)
