"""What cannot be answered at the moment."""

from __future__ import annotations

from typing import Final

TOO_MANY: Final = 429
UNAVAILABLE: Final = 503


class PutOffError(Exception):
    """A request cannot be answered now: the ``status``, why, and the ``seconds`` after which to ask again."""

    def __init__(self, status: int, why: str, seconds: int = 2) -> None:
        super().__init__(why)
        self.status, self.seconds = status, seconds
