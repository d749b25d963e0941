"""Text files are UTF-8; of one that is not it is said what it seems to be, and what would be right."""

from __future__ import annotations

import codecs
from typing import Final

from tenure.model.values.problems import InputProblem, InvalidInputError

_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"), (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"), (codecs.BOM_UTF16_BE, "UTF-16"),
)  # fmt: skip


def decoded(name: str, data: bytes) -> str:
    """Decode the content of a file of that name, with or without the mark of UTF-8 at its beginning.

    Raises
    ------
    InvalidInputError
        It is not UTF-8; the first line that is not is named.
    """
    check_narrow(name, data)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8 text"
        raise InvalidInputError([InputProblem(name, line, "", message)]) from None


def check_narrow(name: str, data: bytes) -> None:
    """Refuse a file of that name that is text in an encoding of several bytes a character, by how it begins.

    Raises
    ------
    InvalidInputError
        It is.
    """
    told = _wide_encoding(data)
    if told is not None:
        raise InvalidInputError([InputProblem(name, 1, "", f"is {told} text; save it as UTF-8")])


def _wide_encoding(data: bytes) -> str | None:
    """Say in which encoding of several bytes a character a file is written, by how it begins; None: in none."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return name
    if len(data) > 1 and data[0] != data[1] and 0 in data[:2]:
        return "UTF-16"  # without a mark: of a character of ASCII one of the two bytes is zero
    return None
