"""Answers at once what is finished: when a change is told, hundreds of pages are asked for in the same moment.

What is found and sent here takes no route and no thread. A request of which it is not known that all may be shown, and
one whose answer nothing makes yet, goes on to the application.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from tenure.web.finished import FinishedAnswer

Finding = Callable[[Scope], Awaitable[FinishedAnswer | None]]


class FinishedFirst:
    """Sends the finished answer that ``find`` gives for a request; where there is none, ``app`` answers."""

    def __init__(self, app: ASGIApp, find: Finding) -> None:
        self.app = app
        self.find = find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        found = await self.find(scope) if scope["type"] == "http" and scope["method"] == "GET" else None
        if found is None:
            await self.app(scope, receive, send)
        else:
            await found.sent(Headers(scope=scope))(scope, receive, send)
