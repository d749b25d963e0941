"""Where a history is: a file, or a server."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from tenure.model.values.problems import IS_FOLDER, InputProblem, InvalidInputError

SERVERS: Final = ("postgresql", "postgres", "postgresql+psycopg")


_PASSWORDS: Final = re.compile(
    r"^(?P<user>[\w+.-]+:/+[^:@/?]*:).*(?=@)|(?P<named>[?&]\w*(?:password|secret)\w*=)[^&]*", re.IGNORECASE
)
"""Where passwords stand in an address, and what stands before: behind the user's name, up to the last @, or named."""


_ALMOST: Final = tuple(f"{kind}:/" for kind in SERVERS)
"""How an address begins that lacks a slash."""


def shown(address: str) -> str:
    """Give an address for messages: without passwords, also where it is no address that can be read."""
    return _PASSWORDS.sub(lambda found: f"{found['user'] or found['named']}***", address)


def is_server(address: str) -> bool:
    """Whether an address is that of a server rather than of a file."""
    return address.partition("://")[0] in SERVERS and "://" in address


def file_of(address: str) -> str:
    """Give the file of an address: itself, or what stands behind ``sqlite:///``."""
    return address.removeprefix("sqlite:///")


def written_file(address: str | None) -> str | None:
    """Give the file of an address, to be compared with other files; None where it is none, or a server."""
    return None if not address or "://" in file_of(address) else file_of(address)


def wrong_file(path: str, *, new: bool) -> str:
    """Say what is wrong with the name of a file, and what would be right; nothing where nothing is.

    ``new``: where there is no file, it may be made.
    """
    file = Path(path)
    if not path:
        return "no file is named; write FILE or postgresql://USER@HOST/DATABASE"
    if "://" in path or path.lower().startswith(_ALMOST):
        return "is no address of a store; write FILE or postgresql://USER@HOST/DATABASE"
    if file.is_dir():
        return IS_FOLDER
    if new:
        return "" if file.absolute().parent.is_dir() else f"there is no folder {file.parent}; make it first"
    if not file.exists():
        return "there is no such file; write one with --history, as in tenure simulate TRACE --history FILE"
    return "" if file.stat().st_size else "is empty, so it holds no history"


def new_file(address: str) -> str | None:
    """Give the file that an address names where it can be made anew; None where it is there, or a server.

    Raises
    ------
    InvalidInputError
        The address can be none.
    """
    if is_server(address):
        return None
    path = file_of(address)
    problem = wrong_file(path, new=True)
    if problem:
        raise InvalidInputError([InputProblem(shown(path), 0, "", problem)])
    return None if os.path.lexists(path) else path
