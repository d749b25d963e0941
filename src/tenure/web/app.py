"""The console as an application: routes to pages and to the API, what is kept of them, what is told of changes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from tenure.history.errors import HistoryError
from tenure.report.theme import style_sheet
from tenure.web import api, pages
from tenure.web.access.asked import AskedError, RequestParameters, no_repeats
from tenure.web.access.guard import HEADERS, LOOPBACK, Guard
from tenure.web.access.put_off import PutOffError
from tenure.web.access.viewer import EVERYTHING, Viewer
from tenure.web.at_once import FinishedFirst
from tenure.web.changes import ChangeWatch
from tenure.web.console import Console
from tenure.web.finished import FinishedAnswer, FinishedAnswers, finished
from tenure.web.openapi import document
from tenure.web.playing.player import BusyError, WrongError
from tenure.web.playing.turns import Turns
from tenure.web.playing.whatif import CHANGES, canonical
from tenure.web.views.look import Looked, moment
from tenure.web.words import address

STATIC: Final = Path(__file__).parent / "static"
KINDS: Final = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
HTML: Final = "text/html"
JSON: Final = "application/json"
API: Final = "/api/v1/"
PAGE_THREADS: Final = 12
ANSWER_THREADS: Final = 32
"""Threads in which answers of the API are made; they may wait, pages do not wait for them."""

HEARTBEAT: Final = 15.0
STREAM_SECONDS: Final = 3600.0
"""A stream of changes ends after so long; browsers then ask again, and are looked at again."""

STREAM: Final = "/changes"
MOST_STREAMS: Final = 1000
MOST_STREAMS_EACH: Final = 50
"""Streams of one user who has logged in."""

NOWHERE: Final = "There is nothing of that name here, or not for you."

_NO_MOMENT: Final = {"source": "", "live": False, "now": None, "note": "", "failed": None}
"""Stands for the moment that a page shows, on a page that shows none."""

_ASTRAY: Final = {
    404: "there is nothing at that address; /openapi.json lists what there is",
    405: "that method does not go with that address",
}
_ASTRAY_PAGE: Final = {
    404: "There is no page at that address.",
    405: "That address is not there to be looked at.",
}
_BROKEN: Final = "this did not work, by a fault of the console's own; its log says what happened"

_LOG: Final = logging.getLogger(__name__)

T = TypeVar("T")
Whose = Callable[[Request], Awaitable[Viewer | Response]]
"""Says who sends a request, or how they are turned away."""


class ConsoleApp:
    """The routes over one console. ``whose`` says who sends a request, or how they are turned away."""

    def __init__(self, console: Console, whose: Whose | None = None) -> None:
        self.console = console
        self.whose: Whose = whose or everybody
        self.templates = pages.environment()
        self.templates.globals["navigation"] = pages.NAVIGATION
        self.pages = FinishedAnswers(PAGE_THREADS, "console-pages")
        self.answers = FinishedAnswers(ANSWER_THREADS, "console-answers")
        self.streams: Counter[str] = Counter()
        self._turns = Turns()
        self._watch = ChangeWatch(console)
        self._others = ThreadPoolExecutor(max_workers=16, thread_name_prefix="console-others")
        self._style = console_style()

    def routes(self) -> list[BaseRoute]:
        """Give all routes."""
        found: list[BaseRoute] = [Route(path, self._page(path, view)) for path, view in pages.VIEWS.items()]
        found += [
            Route("/healthz", self._alive), Route("/openapi.json", self._document), Route(STREAM, self._changes),
            Route("/static/{name}", self._static), Route("/me", self._me),
            Route("/workloads/{namespace}/{name}", self._workload_page),
        ]  # fmt: skip
        found += [Route(f"{API}{name}", self._answering(made)) for name, made in api.ANSWERS.items()]
        found.append(Route(API + "workloads/{namespace}/{name}", self._workload_answer))
        found.append(Route(API + "nodes/{name}", self._node_answer))
        found.append(Route(API + "plan", self._plan, methods=["POST"]))
        return found

    def warm(self) -> None:
        """Do what the first page would have to: orders are made, templates are read, and playing begins."""
        for name in self.templates.list_templates():
            self.templates.get_template(name)
        with suppress(BusyError):
            look = Looked(self.console, self.console.picture(), EVERYTHING, wait=0.0)
            for view in (pages.overview, pages.workloads):
                view(look, {}, [])

    async def finished(self, scope: Scope) -> FinishedAnswer | None:
        """Give the finished answer to a request, if there is one and whoever sends it sees everything."""
        if self.whose is not everybody:
            return None
        kept = self.answers if scope["path"].startswith(API) else self.pages
        return await kept.found(self._key(scope, EVERYTHING))

    def _key(self, scope: Scope, viewer: Viewer) -> Hashable:
        """Give what the answer to a request depends on."""
        return scope["path"], scope["query_string"], self.console.version, viewer

    # -- plain things -------------------------------------------------------------------------------------------------

    def _alive(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    def _document(self, _: Request) -> Response:
        return JSONResponse(document())

    def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name == "console.css":
            return _unchanging(self._style, "text/css")
        found = STATIC / name
        if found.suffix not in KINDS or found.parent != STATIC or not found.is_file():
            return PlainTextResponse("there is no such file\n", status_code=404)
        return _unchanging(found.read_bytes(), KINDS[found.suffix])

    async def _me(self, request: Request) -> Response:
        """Name who looks. Pages do not, so that all who see the same are given the same page."""
        viewer = await self.whose(request)
        return viewer if isinstance(viewer, Response) else PlainTextResponse(viewer.name)

    # -- pages --------------------------------------------------------------------------------------------------------

    def _page(self, path: str, view: pages.View) -> Callable[[Request], Awaitable[Response]]:
        async def show(request: Request) -> Response:
            return await self._shown(
                request, path, view, dict(request.query_params), request.query_params.multi_items()
            )

        return show

    async def _workload_page(self, request: Request) -> Response:
        key = f"{request.path_params['namespace']}/{request.path_params['name']}"
        given = {**dict(request.query_params), "name": key}
        pairs = [*request.query_params.multi_items(), ("name", key)]
        return await self._shown(request, "/workloads", pages.workload, given, pairs)

    async def _shown(
        self, request: Request, path: str, view: pages.View, given: dict[str, str], pairs: list[tuple[str, str]]
    ) -> Response:
        viewer = await self.whose(request)
        if isinstance(viewer, Response):
            return viewer
        user, viewer = viewer.name, viewer.unnamed
        try:
            no_repeats(pairs, CHANGES if path == "/whatif" else ())
            if path == "/whatif" and (filled := canonical(pairs)) is not None:
                return RedirectResponse(filled, status_code=303)
            key = self._key(request.scope, viewer)
            found = await self._given(self.pages, key, user, lambda: self._made(request, view, given, pairs, viewer))
        except (AskedError, WrongError, BusyError) as error:
            status, message = 503 if isinstance(error, BusyError) else 400, str(error)
            return await self._aside(lambda: self._trouble(request, viewer, status, message))
        if found is None:
            return await self._aside(lambda: self._trouble(request, viewer, 404, NOWHERE))
        return found.sent(request.headers)

    def _made(
        self, request: Request, view: pages.View, given: dict[str, str], pairs: list[tuple[str, str]], viewer: Viewer
    ) -> FinishedAnswer | None:
        look = self._look(given, viewer)
        made = view(look, given, pairs)
        if made is None:
            return None
        return finished(self._render(made[0], request, look, made[1]), HTML, settled=look.is_settled)

    def _look(self, given: Mapping[str, str], viewer: Viewer, wait: float | None = None) -> Looked:
        at = RequestParameters({"at": given.get("at", "")}, {"at"}).time("at")
        return Looked(self.console, self.console.picture(at), viewer, at, wait)

    def _render(self, template: str, request: Request, look: Looked, context: Mapping[str, Any]) -> bytes:
        at = context.get("at", request.query_params.get("at") or None)

        def link(path: str | None, **parameters: Any) -> str | None:
            return None if path is None else address(path, **{"at": at, **parameters})

        here = address(request.url.path, **dict(request.query_params)) if template != "whatif.html" else (
            f"{request.url.path}?{request.url.query}")  # fmt: skip
        shown = {
            "here": here,
            "path": request.url.path,
            "at": at,
            "link": link,
            "where": moment(look),
            "viewer": look.viewer,
            **context,
        }
        return self.templates.get_template(template).render(shown).encode()

    def _trouble(self, request: Request, viewer: Viewer, status: int, message: str) -> Response:
        look = Looked(self.console, self.console.picture(), viewer)
        told = {"message": look.told(message), "status": status, "at": _moment_asked(request)}
        body = self._render("trouble.html", request, look, told)
        return Response(body, status_code=status, media_type="text/html")

    def unread(self, request: Request, error: Exception) -> Response:
        """Say that the history cannot be read; where others may ask, what it said is in the log alone."""
        _LOG.warning("the history cannot be read: %s", error)
        told = f": {error}" if self.whose is everybody else "; the console's log says why"
        message = f"the history cannot be read now{told}"
        if request.url.path.startswith("/api/"):
            return _refused(503, message)
        source = self.console.source
        where = {**_NO_MOMENT, "source": source.name, "note": source.note}
        return self._bare_page(request, 503, f"{message[:1].upper()}{message[1:]}.", where, {"retry-after": "10"})

    def astray(self, request: Request, error: Exception) -> Response:
        """Refuse an address or a method that there is not: a browser gets a page with a way back, a program JSON."""
        status: int = getattr(error, "status_code", 404)
        if status == 404 and (there := _without_slash(request)) is not None:  # noqa: PLR2004  nothing is there
            return RedirectResponse(there)
        if not wants_page(request):
            return _refused(status, _ASTRAY[status], getattr(error, "headers", None))
        return self._bare_page(request, status, _ASTRAY_PAGE[status], _NO_MOMENT, getattr(error, "headers", None))

    def put_off(self, request: Request, error: Exception) -> Response:
        """Say that it has to be asked again, and when; a browser does so by itself."""
        assert isinstance(error, PutOffError)
        headers = {"retry-after": str(error.seconds)}
        if not wants_page(request):
            return _refused(error.status, str(error), headers)
        headers["refresh"] = headers["retry-after"]
        message = f"{str(error)[:1].upper()}{str(error)[1:]}. This page asks again by itself."
        return self._bare_page(request, error.status, message, _NO_MOMENT, headers)

    def broken(self, request: Request, _: Exception) -> Response:
        """Say that something is wrong here; the server writes what it was to its log."""
        headers = {**HEADERS, "cache-control": "no-store"}
        if not wants_page(request):
            return _refused(500, _BROKEN, headers)
        return self._bare_page(request, 500, f"{_BROKEN[:1].upper()}{_BROKEN[1:]}.", _NO_MOMENT, headers)

    def _bare_page(
        self, request: Request, status: int, message: str, where: Mapping[str, Any], headers: Mapping[str, str] | None
    ) -> Response:
        """Show a message and the way back; nothing is asked of the source, and nothing told to those not logged in."""
        body = self.templates.get_template("trouble.html").render(
            path=request.url.path, at=None, link=address, where=where, viewer=EVERYTHING, status=status, message=message
        )
        return Response(body, status_code=status, media_type=HTML, headers=headers)

    # -- the API ------------------------------------------------------------------------------------------------------

    def _answering(self, made: api.Answer) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await self._answered(request, made)

        return answer

    async def _workload_answer(self, request: Request) -> Response:
        key = f"{request.path_params['namespace']}/{request.path_params['name']}"
        return await self._answered(request, lambda look, given: api.workload(look, given, key))

    async def _node_answer(self, request: Request) -> Response:
        name = request.path_params["name"]
        return await self._answered(request, lambda look, given: api.node(look, given, name))

    async def _answered(self, request: Request, made: api.Answer) -> Response:
        viewer = await self.whose(request)
        if isinstance(viewer, Response):
            return viewer
        given = dict(request.query_params)
        user, viewer = viewer.name, viewer.unnamed
        key = self._key(request.scope, viewer)
        try:
            no_repeats(request.query_params.multi_items())
            found = await self._given(self.answers, key, user, lambda: self._json(made, given, viewer))
        except AskedError as error:
            return _refused(400, str(error))
        except BusyError as error:
            return _refused(503, str(error))
        return _refused(404, "there is nothing of that name") if found is None else found.sent(request.headers)

    def _json(self, made: api.Answer, given: dict[str, str], viewer: Viewer) -> FinishedAnswer | None:
        look = self._look(given, viewer, api.patience(given))
        if look.wait is None and not look.console.is_large(look.picture):
            look = replace(look, wait=api.LONGEST_WAIT)
        found = made(look, given)
        if found is None:
            return None
        body = json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        return finished(body, JSON, settled=look.is_settled)

    async def _plan(self, request: Request) -> Response:  # noqa: PLR0911  one for each way in which it ends
        viewer = await self.whose(request)
        if isinstance(viewer, Response):
            return viewer
        try:
            asked = api.plan_asked(request.headers.get("content-type", ""), await _body(request))
            look = self._look({}, viewer, api.LONGEST_WAIT)
            async with self._turns.of(viewer.name):
                found = await self._aside(lambda: look.plan(asked.overrides, asked.additions))
        except AskedError as error:
            return _refused(400, str(error))
        except api.TooLargeError as error:
            return _refused(413, str(error))
        except api.WrongKindError as error:
            return _refused(415, str(error))
        except WrongError as error:
            return JSONResponse({"error": look.told("; ".join(error.lines)),
                                 "problems": [look.told(line) for line in error.lines]}, status_code=422)  # fmt: skip
        except BusyError as error:
            return _refused(503, str(error))
        if found is None:
            why = f"this could not be played: {look.failed[0]}" if look.failed else "this takes too long"
            return _refused(503, f"{why}; ask again in a moment, or for less")
        return JSONResponse(api.narrowed(found, look))

    async def _given(
        self, answers: FinishedAnswers, key: Hashable, user: str, make: Callable[[], FinishedAnswer | None]
    ) -> FinishedAnswer | None:
        """Give an answer that is there, or has been begun; else let it be made when it is the user's turn."""
        found = await answers.found(key)
        if found is not None:
            return found
        async with self._turns.of(user):
            return await answers.get(key, make)

    async def _aside(self, does: Callable[[], T]) -> T:
        """Do in a thread what may take long."""
        return await asyncio.get_running_loop().run_in_executor(self._others, does)

    # -- what changes -------------------------------------------------------------------------------------------------

    async def _changes(self, request: Request) -> Response:
        viewer = await self.whose(request)
        if isinstance(viewer, Response):
            return viewer
        own = self.streams[viewer.name] if viewer.name else 0
        if own >= MOST_STREAMS_EACH or self.streams.total() >= MOST_STREAMS:
            return _refused(503, "too many pages are told of changes already; this one is renewed when it is loaded")
        return StreamingResponse(self._told(request, viewer.name), media_type="text/event-stream",
                                 headers={"cache-control": "no-store", "x-accel-buffering": "no"})  # fmt: skip

    async def _told(self, request: Request, user: str) -> AsyncIterator[bytes]:
        self.streams[user] += 1
        try:
            begun = last = asyncio.get_running_loop().time()
            version = self.console.version
            yield f"event: version\ndata: {json.dumps({'version': version})}\n\n".encode()
            while last - begun < STREAM_SECONDS:
                await self._watch.wait(version, HEARTBEAT)
                now = asyncio.get_running_loop().time()
                if now - last >= HEARTBEAT:
                    last = now
                    if isinstance(await self.whose(request), Response):
                        return  # who asked is no longer known
                    yield b": still there\n\n"
                if self.console.version != version:
                    version = self.console.version
                    yield f"event: change\ndata: {json.dumps({'version': version})}\n\n".encode()
        except PutOffError:
            return  # it cannot be asked whether who asked is still known; they ask again
        finally:
            self.streams[user] -= 1
            if not self.streams[user]:
                del self.streams[user]


async def everybody(_: Request) -> Viewer:
    """Whoever asks sees everything."""
    return EVERYTHING


def console_style() -> bytes:
    """Give the style sheet: that of the reports, and what only the console has."""
    return style_sheet((STATIC / "views.css").read_text(encoding="utf-8")).encode()


def _unchanging(body: bytes, kind: str) -> Response:
    return Response(body, media_type=kind, headers={"cache-control": "public, max-age=3600"})


def wants_page(request: Request) -> bool:
    """Whether a browser asks, and not a program; below ``/api/`` all get JSON."""
    kinds = (part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(","))
    return HTML in kinds and not request.url.path.startswith("/api/")


def _refused(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    if status == 503:  # noqa: PLR2004  HTTP's own number
        headers = {"retry-after": "2", **(headers or {})}
    return JSONResponse({"error": message}, status_code=status, headers=headers)


def _moment_asked(request: Request) -> str | None:
    """Give the moment in an address, None where none can be read: links of a page that says so lead to the newest."""
    text = request.query_params.get("at", "")
    with suppress(AskedError):
        return text if RequestParameters({"at": text}, {"at"}).time("at") is not None else None
    return None


async def _body(request: Request) -> bytes:
    found = b""
    async for chunk in request.stream():
        found += chunk
        if len(found) > api.LARGEST:
            raise api.TooLargeError
    return found


def application(console: Console, *, hosts: tuple[str, ...] = LOOPBACK, whose: Whose | None = None,
                more: Callable[[ConsoleApp], list[BaseRoute]] | None = None) -> Starlette:  # fmt: skip
    """Make the application that a server serves.

    Parameters
    ----------
    console
        What is shown.
    hosts
        Names under which it may be asked for.
    whose
        Says who sends a request; without it, everybody sees everything.
    more
        Gives further routes.
    """
    made = ConsoleApp(console, whose)
    routes = made.routes() + (more(made) if more is not None else [])
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(Guard, hosts=hosts), Middleware(FinishedFirst, find=made.finished),
            Middleware(GZipMiddleware, minimum_size=2000, compresslevel=4),
        ],
        exception_handlers={404: made.astray, 405: made.astray, HistoryError: made.unread, PutOffError: made.put_off,
                            Exception: made.broken},
    )  # fmt: skip
    app.router.redirect_slashes = False  # by itself it names scheme and host, and knows nothing of a proxy's TLS
    app.state.console = made
    return app


def _without_slash(request: Request) -> str | None:
    """Give the address, on the same host, without a slash at its end, if there is something and it has one."""
    path = request.scope["path"]
    bare = {**request.scope, "path": path.rstrip("/")}
    if (
        path.startswith("//")
        or bare["path"] in {"", path}
        or all(route.matches(bare)[0] is Match.NONE for route in request.app.routes)
    ):
        return None
    return quote(bare["path"]) + (f"?{request.url.query}" if request.url.query else "")
