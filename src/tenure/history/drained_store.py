"""The store that a scheduler writes for months: opened again after trouble, and told from another at its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tenure.history import open_history
from tenure.history.address import file_of, is_server
from tenure.history.connect import place_of
from tenure.history.errors import HistoryError
from tenure.history.record import Draft, Origin
from tenure.history.store import HistoryStore
from tenure.model.values.problems import InvalidInputError


class DrainedStore:
    """A store at an address, opened when it is written. Not for several threads.

    ``place`` names it in messages. All that is written is of one ``origin``.
    """

    def __init__(self, address: str, origin: Origin) -> None:
        self.address, self.origin = address, origin
        self.place = place_of(address)
        self._file = None if is_server(address) else file_of(address)
        self._store: HistoryStore | None = None
        self._written: tuple[int, int] | None = None
        self._was_open = False

    def open(self) -> bool:
        """Open it, if it is not open; gives whether another store than was written before has taken its place.

        Raises
        ------
        InvalidInputError
            The address can be none.
        HistoryError
            It cannot be written.
        """
        if self._store is not None and self._identity() == self._written:
            return False
        if self._store is not None:
            self._settle(self._store)
            self.close()
        self._store = open_history(self.address, write=True)
        before, self._written = self._written, self._identity()
        is_other = self._was_open and (self._store.is_new or before != self._written)
        self._was_open = True
        return is_other

    def append(self, drafts: Sequence[Draft]) -> tuple[int, list[tuple[Draft, str]]]:
        """Append records to the open store; gives how many were new, and those that it cannot take, with the reason.

        Raises
        ------
        HistoryError
            It cannot be written.
        """
        assert self._store is not None
        try:
            return self._store.append(self.origin, drafts), []
        except InvalidInputError:
            raise
        except (ValueError, TypeError, OverflowError) as error:  # of a record; what is wrong with a store is an OSError
            if len(drafts) == 1:
                return 0, [(drafts[0], f"{type(error).__name__}: {error}")]
        middle = len(drafts) // 2
        (first, wrong), (second, also) = self.append(drafts[:middle]), self.append(drafts[middle:])
        return first + second, wrong + also

    def tend(self, step: Callable[[HistoryStore], bool]) -> bool:
        """Let something take one step of its work on the store, if it is open; gives whether it has more to do."""
        return self._store is not None and step(self._store)

    def close(self) -> None:
        """Give it back; the next write opens it again."""
        store, self._store = self._store, None
        if store is not None:
            with suppress(HistoryError):  # whatever was wrong was told when it was written
                store.close()

    def _identity(self) -> tuple[int, int] | None:
        """Tell a file from another of the same name; a server is always the same."""
        if self._file is None:
            return None
        try:
            found = Path(self._file).stat()
        except OSError:
            return 0, 0
        return found.st_dev, found.st_ino

    def _settle(self, store: HistoryStore) -> None:
        """Bring what is in the log of a file that was moved away into that file, wherever it is now.

        SQLite would look for the log under the name that the file had, where it belongs to another file by now.
        """
        with suppress(HistoryError):
            store.settle()
