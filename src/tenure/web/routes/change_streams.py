"""The streams on which pages are told that something has changed."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tenure.web.access.put_off import PutOffError
from tenure.web.changes import ChangeWatch
from tenure.web.routes.answerer import Answerer
from tenure.web.routes.troubles import refused

HEARTBEAT: Final = 15.0
STREAM_SECONDS: Final = 3600.0
"""A stream of changes ends after so long; browsers then ask again, and are looked at again."""

STREAM: Final = "/changes"
MOST_STREAMS: Final = 1000
MOST_STREAMS_EACH: Final = 50
"""Streams of one user who has logged in."""


class ChangeStreams:
    """All streams, counted by user."""

    def __init__(self, answerer: Answerer) -> None:
        self.answerer = answerer
        self._open: Counter[str] = Counter()
        self._watch = ChangeWatch(answerer.console)

    async def begin(self, request: Request) -> Response:
        """Begin a stream, where there are not too many."""
        viewer = await self.answerer.whose(request)
        if isinstance(viewer, Response):
            return viewer
        own = self._open[viewer.name] if viewer.name else 0
        if own >= MOST_STREAMS_EACH or self._open.total() >= MOST_STREAMS:
            return refused(503, "too many pages are told of changes already; this one is renewed when it is loaded")
        return StreamingResponse(self._told(request, viewer.name), media_type="text/event-stream",
                                 headers={"cache-control": "no-store", "x-accel-buffering": "no"})  # fmt: skip

    async def _told(self, request: Request, user: str) -> AsyncIterator[bytes]:
        console = self.answerer.console
        self._open[user] += 1
        try:
            begun = last = asyncio.get_running_loop().time()
            version = console.version
            yield f"event: version\ndata: {json.dumps({'version': version})}\n\n".encode()
            while last - begun < STREAM_SECONDS:
                await self._watch.wait(version, HEARTBEAT)
                now = asyncio.get_running_loop().time()
                if now - last >= HEARTBEAT:
                    last = now
                    if isinstance(await self.answerer.whose(request), Response):
                        return  # who asked is no longer known
                    yield b": still there\n\n"
                if console.version != version:
                    version = console.version
                    yield f"event: change\ndata: {json.dumps({'version': version})}\n\n".encode()
        except PutOffError:
            return  # it cannot be asked whether who asked is still known; they ask again
        finally:
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]
