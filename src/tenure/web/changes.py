"""One look whether a console has changed, for all who are told of it."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

LOOK: Final = 0.01
"""Seconds between two looks; however many are told, it is looked once."""


class HasVersion(Protocol):
    """What changes: ``version`` is another number then."""

    @property
    def version(self) -> int:
        """Number of the present state."""


class ChangeWatch:
    """Wakes all who wait for a change; it looks only while there are any. Used from one event loop."""

    def __init__(self, watched: HasVersion) -> None:
        self._watched = watched
        self._waiting: set[asyncio.Event] = set()
        self._looker: asyncio.Task[None] | None = None

    async def wait(self, version: int, seconds: float) -> None:
        """Wait until ``version`` may not be the present one any more, at most so long."""
        if self._watched.version != version:
            return
        woken = asyncio.Event()
        self._waiting.add(woken)
        if self._looker is None or self._looker.done():
            self._looker = asyncio.create_task(self._look())
        try:
            async with asyncio.timeout(seconds):
                await woken.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(woken)

    async def _look(self) -> None:
        version = self._watched.version
        while self._waiting:
            await asyncio.sleep(LOOK)
            if self._watched.version != version:
                version = self._watched.version
                for woken in self._waiting:
                    woken.set()
