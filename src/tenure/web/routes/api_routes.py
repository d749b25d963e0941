"""The API: the same answers as pages show, as JSON, and plans of what is asked for."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from tenure.web import api
from tenure.web.access.asked import AskedError, no_repeats
from tenure.web.access.viewer import Viewer
from tenure.web.finished import FinishedAnswer, FinishedAnswers, finished
from tenure.web.playing.player import BusyError, WrongError
from tenure.web.routes.answerer import Answerer
from tenure.web.routes.troubles import refused

JSON: Final = "application/json"
API: Final = "/api/v1/"
ANSWER_THREADS: Final = 32
"""Threads in which answers are made; they may wait, pages do not wait for them."""


class ApiRoutes:
    """The routes of the API; ``kept`` are the answers that are finished."""

    def __init__(self, answerer: Answerer) -> None:
        self.answerer = answerer
        self.kept = FinishedAnswers(ANSWER_THREADS, "console-answers")

    def routes(self) -> list[BaseRoute]:
        """Give a route for each answer."""
        found: list[BaseRoute] = [Route(f"{API}{name}", self._answering(made)) for name, made in api.ANSWERS.items()]
        found.append(Route(API + "workloads/{namespace}/{name}", self._workload))
        found.append(Route(API + "nodes/{name}", self._node))
        found.append(Route(API + "plan", self._plan, methods=["POST"]))
        return found

    def _answering(self, made: api.Answer) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await self._answered(request, made)

        return answer

    async def _workload(self, request: Request) -> Response:
        key = f"{request.path_params['namespace']}/{request.path_params['name']}"
        return await self._answered(request, lambda look, given: api.workload(look, given, key))

    async def _node(self, request: Request) -> Response:
        name = request.path_params["name"]
        return await self._answered(request, lambda look, given: api.node(look, given, name))

    async def _answered(self, request: Request, made: api.Answer) -> Response:
        answerer = self.answerer
        viewer = await answerer.whose(request)
        if isinstance(viewer, Response):
            return viewer
        given = dict(request.query_params)
        user, viewer = viewer.name, viewer.unnamed
        key = answerer.key(request.scope, viewer)
        try:
            no_repeats(request.query_params.multi_items())
            found = await answerer.given(self.kept, key, user, lambda: self._json(made, given, viewer))
        except AskedError as error:
            return refused(400, str(error))
        except BusyError as error:
            return refused(503, str(error))
        return refused(404, "there is nothing of that name") if found is None else found.sent(request.headers)

    def _json(self, made: api.Answer, given: dict[str, str], viewer: Viewer) -> FinishedAnswer | None:
        look = self.answerer.look(given, viewer, api.patience(given))
        if look.wait is None and not look.console.is_large(look.picture):
            look = replace(look, wait=api.LONGEST_WAIT)
        found = made(look, given)
        if found is None:
            return None
        body = json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        return finished(body, JSON, settled=look.is_settled)

    async def _plan(self, request: Request) -> Response:  # noqa: PLR0911  one for each way in which it ends
        answerer = self.answerer
        viewer = await answerer.whose(request)
        if isinstance(viewer, Response):
            return viewer
        try:
            asked = api.plan_asked(request.headers.get("content-type", ""), await _body(request))
            look = answerer.look({}, viewer, api.LONGEST_WAIT)
            async with answerer.turns.of(viewer.name):
                found = await answerer.aside(lambda: look.plan(asked.overrides, asked.additions))
        except AskedError as error:
            return refused(400, str(error))
        except api.TooLargeError as error:
            return refused(413, str(error))
        except api.WrongKindError as error:
            return refused(415, str(error))
        except WrongError as error:
            return JSONResponse({"error": look.told("; ".join(error.lines)),
                                 "problems": [look.told(line) for line in error.lines]}, status_code=422)  # fmt: skip
        except BusyError as error:
            return refused(503, str(error))
        if found is None:
            why = f"this could not be played: {look.failed[0]}" if look.failed else "this takes too long"
            return refused(503, f"{why}; ask again in a moment, or for less")
        return JSONResponse(api.narrowed(found, look))


async def _body(request: Request) -> bytes:
    found = b""
    async for chunk in request.stream():
        found += chunk
        if len(found) > api.LARGEST:
            raise api.TooLargeError
    return found
