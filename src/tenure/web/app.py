"""The console as an application: routes to pages and to the API, what is kept of them, what is told of changes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from tenure.report.theme import style_sheet
from tenure.web import api, pages
from tenure.web.asked import AskedError, RequestParameters
from tenure.web.console import Console
from tenure.web.data import Looked, moment
from tenure.web.guard import LOOPBACK, Guard
from tenure.web.openapi import document
from tenure.web.player import BusyError, WrongError
from tenure.web.viewer import EVERYTHING, Viewer
from tenure.web.whatif import canonical
from tenure.web.words import address

STATIC: Final = Path(__file__).parent / "static"
KINDS: Final = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
KEPT_BYTES: Final = 64 * 2**20
"""Bytes of finished pages that are kept."""

LOOK: Final = 0.5
"""Seconds between two looks whether something has changed, for those who are told of it."""

HEARTBEAT: Final = 15.0
STREAM_SECONDS: Final = 3600.0
"""A stream of changes ends after so long; browsers then ask again, and are looked at again."""

MOST_STREAMS: Final = 1000

Whose = Callable[[Request], Viewer | Response]


class Pages:
    """Finished pages, the ones asked for last."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self.most = most
        self.size = 0
        self._kept: OrderedDict[Any, tuple[bytes, str]] = OrderedDict()
        self._lock = threading.Lock()
        self._turns = [threading.Lock() for _ in range(64)]

    def turn(self, key: Any) -> threading.Lock:
        """Give what is held while a page is made, so that it is made once for all who ask at a time."""
        return self._turns[hash(key) % len(self._turns)]

    def get(self, key: Any) -> tuple[bytes, str] | None:
        """Give a page and its tag."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: Any, body: bytes) -> tuple[bytes, str]:
        """Keep a page; the oldest go where there are too many."""
        tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
        with self._lock:
            old = self._kept.pop(key, None)
            self.size += len(body) - (len(old[0]) if old else 0)
            self._kept[key] = body, tag
            while self.size > self.most and len(self._kept) > 1:
                _, (gone, _) = self._kept.popitem(last=False)
                self.size -= len(gone)
        return body, tag


class ConsoleApp:
    """The routes over one console. ``whose`` says who sends a request, or how they are turned away."""

    def __init__(self, console: Console, whose: Whose | None = None) -> None:
        self.console = console
        self.whose: Whose = whose or (lambda _: EVERYTHING)
        self.templates = pages.environment()
        self.templates.globals["navigation"] = pages.NAVIGATION
        self.pages = Pages()
        self.streams = 0
        self._style = console_style()

    def routes(self) -> list[BaseRoute]:
        """Give all routes."""
        found: list[BaseRoute] = [
            Route("/healthz", self._alive), Route("/openapi.json", self._document), Route("/changes", self._changes),
            Route("/static/{name}", self._static),
            Route("/workloads/{namespace}/{name}", self._workload_page),
        ]  # fmt: skip
        found += [Route(f"/api/v1/{name}", self._answering(made)) for name, made in api.ANSWERS.items()]
        found.append(Route("/api/v1/workloads/{namespace}/{name}", self._workload_answer))
        found.append(Route("/api/v1/plan", self._plan, methods=["POST"]))
        found += [Route(path, self._page(path, view)) for path, view in pages.VIEWS.items()]
        return found

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

    # -- pages --------------------------------------------------------------------------------------------------------

    def _page(self, path: str, view: pages.View) -> Callable[[Request], Response]:
        def show(request: Request) -> Response:
            return self._shown(request, path, view, dict(request.query_params), request.query_params.multi_items())

        return show

    def _workload_page(self, request: Request) -> Response:
        key = f"{request.path_params['namespace']}/{request.path_params['name']}"
        given = {**dict(request.query_params), "name": key}
        return self._shown(request, "/workloads", pages.workload, given, [])

    def _shown(  # noqa: PLR0911  one for each way in which it ends
        self, request: Request, path: str, view: pages.View, given: dict[str, str], pairs: list[tuple[str, str]]
    ) -> Response:
        viewer = self.whose(request)
        if isinstance(viewer, Response):
            return viewer
        try:
            if path == "/whatif" and (filled := canonical(pairs)) is not None:
                return RedirectResponse(filled, status_code=303)
            kept = self._kept(request, view, given, pairs, viewer)
        except AskedError as error:
            return self._trouble(request, viewer, 400, str(error))
        except WrongError as error:
            return self._trouble(request, viewer, 400, "; ".join(error.lines))
        except BusyError as error:
            return self._trouble(request, viewer, 503, str(error))
        if kept is None:
            return self._trouble(request, viewer, 404, "There is nothing of that name here, or not for you.")
        body, tag = kept
        headers = {"cache-control": "private, no-cache", "etag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type="text/html", headers=headers)

    def _kept(
        self, request: Request, view: pages.View, given: dict[str, str], pairs: list[tuple[str, str]], viewer: Viewer
    ) -> tuple[bytes, str] | None:
        """Give a page as it was made, if nothing has changed since, else make it."""
        key = (request.url.path, request.url.query, self.console.version, viewer)
        with self.pages.turn(key):
            kept = self.pages.get(key)
            if kept is None:
                look = self._look(given, viewer)
                made = view(look, given, pairs)
                if made is None:
                    return None
                kept = self.pages.put(key, self._render(made[0], request, look, made[1]))
            return kept

    def _look(self, given: Mapping[str, str], viewer: Viewer, wait: float | None = None) -> Looked:
        at = RequestParameters({"at": given.get("at", "")}, {"at"}).time("at")
        picture = self.console.picture(at)
        look = Looked(self.console, picture, viewer, at)
        return look if wait is None else Looked(self.console, picture, viewer, at, wait)

    def _render(self, template: str, request: Request, look: Looked, context: Mapping[str, Any]) -> bytes:
        at = request.query_params.get("at") or None

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
            "version": self.console.version,
            **context,
        }
        return self.templates.get_template(template).render(shown).encode()

    def _trouble(self, request: Request, viewer: Viewer, status: int, message: str) -> Response:
        look = Looked(self.console, self.console.picture(), viewer)
        body = self._render("trouble.html", request, look, {"message": viewer.told(message), "status": status})
        return Response(body, status_code=status, media_type="text/html")

    # -- the API ------------------------------------------------------------------------------------------------------

    def _answering(self, made: api.Answer) -> Callable[[Request], Response]:
        return lambda request: self._answered(request, made)

    def _workload_answer(self, request: Request) -> Response:
        key = f"{request.path_params['namespace']}/{request.path_params['name']}"
        return self._answered(request, lambda look, given: api.workload(look, given, key))

    def _answered(self, request: Request, made: Callable[[Looked, Mapping[str, str]], Any]) -> Response:
        viewer = self.whose(request)
        if isinstance(viewer, Response):
            return viewer
        given = dict(request.query_params)
        if len(given) < len(request.query_params.multi_items()):
            return _refused(400, "a parameter stands there twice; each may stand there once")
        try:
            found = made(self._look(given, viewer, api.PATIENCE), given)
        except AskedError as error:
            return _refused(400, str(error))
        except BusyError as error:
            return _refused(503, str(error))
        return _refused(404, "there is nothing of that name") if found is None else JSONResponse(found)

    async def _plan(self, request: Request) -> Response:  # noqa: PLR0911  one for each way in which it ends
        viewer = await asyncio.to_thread(self.whose, request)
        if isinstance(viewer, Response):
            return viewer
        try:
            asked = api.plan_asked(request.headers.get("content-type", ""), await _body(request))
            look = self._look({}, viewer, api.PATIENCE)
            found = await asyncio.to_thread(look.played, "plan", asked.overrides, asked.additions)
        except AskedError as error:
            return _refused(400, str(error))
        except api.TooLargeError as error:
            return _refused(413, str(error))
        except api.WrongKindError as error:
            return _refused(415, str(error))
        except WrongError as error:
            return JSONResponse({"error": viewer.told("; ".join(error.lines)),
                                 "problems": [viewer.told(line) for line in error.lines]}, status_code=422)  # fmt: skip
        except BusyError as error:
            return _refused(503, str(error))
        if found is None:
            return _refused(503, "this takes too long; ask again in a moment, or for less")
        return JSONResponse(api.narrowed(found, viewer))

    # -- what changes -------------------------------------------------------------------------------------------------

    async def _changes(self, request: Request) -> Response:
        viewer = await asyncio.to_thread(self.whose, request)
        if isinstance(viewer, Response):
            return viewer
        if self.streams >= MOST_STREAMS:
            return _refused(503, "too many pages are told of changes already; this one is renewed when it is loaded")
        return StreamingResponse(self._told(request), media_type="text/event-stream",
                                 headers={"cache-control": "no-store", "x-accel-buffering": "no"})  # fmt: skip

    async def _told(self, request: Request) -> AsyncIterator[bytes]:
        self.streams += 1
        try:
            begun = last = asyncio.get_running_loop().time()
            version = self.console.version
            yield f"event: version\ndata: {json.dumps({'version': version})}\n\n".encode()
            while (now := asyncio.get_running_loop().time()) - begun < STREAM_SECONDS:
                await asyncio.sleep(LOOK)
                if now - last > HEARTBEAT:
                    last = now
                    if isinstance(await asyncio.to_thread(self.whose, request), Response):
                        return  # who asked is no longer known
                    yield b": still there\n\n"
                if self.console.version != version:
                    version = self.console.version
                    yield f"event: change\ndata: {json.dumps({'version': version})}\n\n".encode()
        finally:
            self.streams -= 1


def console_style() -> bytes:
    """Give the style sheet: that of the reports, and what only the console has."""
    return style_sheet((STATIC / "views.css").read_text(encoding="utf-8")).encode()


def _unchanging(body: bytes, kind: str) -> Response:
    return Response(body, media_type=kind, headers={"cache-control": "public, max-age=3600"})


def _refused(status: int, message: str) -> Response:
    headers = {"retry-after": "2"} if status == 503 else None  # noqa: PLR2004  HTTP's own number
    return JSONResponse({"error": message}, status_code=status, headers=headers)


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

    RequestParameters
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
        middleware=[Middleware(Guard, hosts=hosts), Middleware(GZipMiddleware, minimum_size=2000, compresslevel=4)],
        exception_handlers={404: _nowhere, 405: _not_so},
    )
    app.state.console = made
    return app


def _nowhere(_: Request, __: Exception) -> Response:
    return _refused(404, "there is nothing at that address; /openapi.json lists what there is")


def _not_so(_: Request, error: Exception) -> Response:
    allowed = getattr(error, "headers", None) or {}
    return JSONResponse({"error": "that method does not go with that address"}, status_code=405, headers=allowed)
