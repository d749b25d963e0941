"""Decoders of JSON into known shapes, made so that several threads may need the same one for the first time.

What msgspec has to know of a class it works out when the class is first asked about, and keeps it with the class before
it is whole. A second thread that decodes into the class at that moment reads what is not there, and the process ends
(a segmentation fault, msgspec 0.22). So each decoder is made by one thread at a time, and used once it is whole.
"""

from __future__ import annotations

import threading
from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")

_MADE: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}
_MAKING: Final = threading.Lock()


def decoder_of(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Give the decoder into a class."""
    found = _MADE.get(kind)
    if found is None:
        with _MAKING:
            found = _MADE.get(kind)
            if found is None:
                found = _MADE[kind] = msgspec.json.Decoder(kind)
    return found


def decode(text: bytes | str, kind: type[T]) -> T:
    """Decode a JSON text into a class.

    Raises
    ------
    msgspec.MsgspecError
        If it is no JSON, or does not have that shape.
    """
    return decoder_of(kind).decode(text)
