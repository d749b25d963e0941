"""Where a command writes: nothing of the user's is overwritten, and what could not be written is refused at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from tenure.model.documents.files import is_stream
from tenure.model.values.problems import IS_FOLDER, InputProblem, InvalidInputError

STANDARD = "-"
"""Standard input or output where a file is expected."""


def check_targets(writes: Mapping[str, str | None], reads: Iterable[str | None] = ()) -> None:
    """Look at all files that a command would write, before anything is read or done.

    Parameters
    ----------
    writes
        Files by the option that names them; None where it was not given.
    reads
        Files that the command reads.

    Raises
    ------
    UsageError
        A file is to be written that is also read, or two outputs are one file; through links, too.
    InvalidInputError
        There is no folder for one, or it is a folder itself.
    """
    targets = {option: path for option, path in writes.items() if path is not None and path != STANDARD}
    for path in targets.values():
        _require_folder(path)
    inputs = [path for path in reads if path is not None and path != STANDARD]
    before: list[tuple[str, str]] = []
    for option, path in targets.items():
        if is_stream(path):
            continue  # a terminal or a pipe takes everything in turn
        for other in inputs:
            if _same_file(path, other):
                raise click.UsageError(f"{option} {path} would overwrite {other}, which is read; name another file")
        for name, other in before:
            if _same_file(path, other):
                raise click.UsageError(f"{name} and {option} both name {other}; name a file for each")
        before.append((option, path))


def _require_folder(path: str) -> None:
    try:
        folder = Path(path).parent
        if not folder.is_dir():
            raise InvalidInputError([InputProblem(path, 0, "", f"there is no folder {folder}; make it first")])
        if Path(path).is_dir():
            raise InvalidInputError([InputProblem(path, 0, "", IS_FOLDER)])
    except ValueError as error:
        raise InvalidInputError([InputProblem(path, 0, "", f"is no name of a file: {error}")]) from None


def _same_file(one: str, other: str) -> bool:
    """Tell whether two names lead to one file, which need not be there yet."""
    try:
        return Path(one).samefile(other)
    except OSError:
        return Path(one).resolve() == Path(other).resolve()
