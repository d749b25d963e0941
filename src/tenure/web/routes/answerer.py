"""What all routes share: who asks, what they may look at, and answers that are made when it is their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from tenure.web.access.asked import RequestParameters
from tenure.web.access.viewer import EVERYTHING, Viewer
from tenure.web.console import Console
from tenure.web.finished import FinishedAnswer, FinishedAnswers
from tenure.web.playing.turns import Turns
from tenure.web.views.look import Looked

T = TypeVar("T")
Whose = Callable[[Request], Awaitable[Viewer | Response]]
"""Says who sends a request, or how they are turned away."""


class Answerer:
    """The maker of answers over one console. ``whose`` says who sends a request, or how they are turned away."""

    def __init__(self, console: Console, whose: Whose) -> None:
        self.console = console
        self.whose = whose
        self.turns = Turns()
        self._threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="console-others")

    @property
    def is_open(self) -> bool:
        """Whether everybody sees everything."""
        return self.whose is everybody

    def key(self, scope: Scope, viewer: Viewer) -> Hashable:
        """Give what the answer to a request depends on."""
        return scope["path"], scope["query_string"], self.console.version, viewer

    def look(self, given: Mapping[str, str], viewer: Viewer, wait: float | None = None) -> Looked:
        """Let a viewer look at the moment that is asked for, and wait for so many seconds for what is worked out."""
        at = RequestParameters({"at": given.get("at", "")}, {"at"}).time("at")
        return Looked(self.console, self.console.picture(at), viewer, at, wait)

    async def given(
        self, answers: FinishedAnswers, key: Hashable, user: str, make: Callable[[], FinishedAnswer | None]
    ) -> FinishedAnswer | None:
        """Give an answer that is there, or has been begun; else let it be made when it is the user's turn."""
        found = await answers.found(key)
        if found is not None:
            return found
        async with self.turns.of(user):
            return await answers.get(key, make)

    async def aside(self, does: Callable[[], T]) -> T:
        """Do in a thread what may take long."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, does)


async def everybody(_: Request) -> Viewer:
    """Give the viewer where nobody has to log in, who sees everything."""
    return EVERYTHING
