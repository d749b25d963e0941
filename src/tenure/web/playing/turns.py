"""Has what one user asks for made a little at a time: whoever asks for very much waits, and not everybody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from tenure.web.playing.player import BusyError

AT_ONCE: Final = 3
"""Answers that are made at once for one user."""

MOST_WAITING: Final = 100
"""Answers that one user may wait for; a window with many pages renews all of them at a change."""


@dataclass(slots=True)
class _UserTurns:
    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    asked: int = 0


class Turns:
    """The turns of users by name, of those only who wait for something. Used from one event loop."""

    def __init__(self) -> None:
        self._users: dict[str, _UserTurns] = {}

    @asynccontextmanager
    async def of(self, user: str) -> AsyncIterator[None]:
        """Wait for a turn of a user, and hold it. Who has no name has not logged in, and is alone.

        Raises
        ------
        BusyError
            They wait for too much already.
        """
        if not user:
            yield
            return
        turns = self._users.setdefault(user, _UserTurns())
        if turns.asked >= AT_ONCE + MOST_WAITING:
            raise BusyError(f"you wait for {turns.asked} answers already; try again in a moment")
        turns.asked += 1
        try:
            async with turns.free:
                yield
        finally:
            turns.asked -= 1
            if not turns.asked:
                del self._users[user]
