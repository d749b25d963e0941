"""The console as an application: all routes together, and what is served before and around them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from tenure.history.errors import HistoryError
from tenure.report.theme import style_sheet
from tenure.web import pages
from tenure.web.access.guard import LOOPBACK, Guard
from tenure.web.access.put_off import PutOffError
from tenure.web.access.viewer import EVERYTHING
from tenure.web.at_once import FinishedFirst
from tenure.web.console import Console
from tenure.web.finished import FinishedAnswer
from tenure.web.openapi import document
from tenure.web.routes.answerer import Answerer, Whose, everybody
from tenure.web.routes.api_routes import API, ApiRoutes
from tenure.web.routes.change_streams import STREAM, ChangeStreams
from tenure.web.routes.page_routes import PageRoutes
from tenure.web.routes.troubles import Troubles

STATIC: Final = Path(__file__).parent / "static"
KINDS: Final = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class ConsoleApp:
    """The routes over one console. ``whose`` says who sends a request, or how they are turned away."""

    def __init__(self, console: Console, whose: Whose | None = None) -> None:
        self.templates = pages.environment()
        self.templates.globals["navigation"] = pages.NAVIGATION
        self.answerer = Answerer(console, whose or everybody)
        self.pages = PageRoutes(self.answerer, self.templates)
        self.api = ApiRoutes(self.answerer)
        self.streams = ChangeStreams(self.answerer)
        self.troubles = Troubles(self.answerer, self.templates)
        self._style = console_style()

    def routes(self) -> list[BaseRoute]:
        """Give all routes."""
        plain = [
            Route("/healthz", self._alive), Route("/openapi.json", self._document), Route(STREAM, self.streams.begin),
            Route("/static/{name}", self._static), Route("/me", self._me),
        ]  # fmt: skip
        return [*self.pages.routes(), *plain, *self.api.routes()]

    async def finished(self, scope: Scope) -> FinishedAnswer | None:
        """Give the finished answer to a request, if there is one and whoever sends it sees everything."""
        if not self.answerer.is_open:
            return None
        kept = self.api.kept if scope["path"].startswith(API) else self.pages.kept
        return await kept.found(self.answerer.key(scope, EVERYTHING))

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
        viewer = await self.answerer.whose(request)
        return viewer if isinstance(viewer, Response) else PlainTextResponse(viewer.name)


def console_style() -> bytes:
    """Give the style sheet: that of the reports, and what only the console has."""
    return style_sheet((STATIC / "views.css").read_text(encoding="utf-8")).encode()


def _unchanging(body: bytes, kind: str) -> Response:
    return Response(body, media_type=kind, headers={"cache-control": "public, max-age=3600"})


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
    routes, troubles = made.routes() + (more(made) if more is not None else []), made.troubles
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(Guard, hosts=hosts), Middleware(FinishedFirst, find=made.finished),
            Middleware(GZipMiddleware, minimum_size=2000, compresslevel=4),
        ],
        exception_handlers={404: troubles.astray, 405: troubles.astray, HistoryError: troubles.unread,
                            PutOffError: troubles.put_off, Exception: troubles.broken},
    )  # fmt: skip
    app.router.redirect_slashes = False  # by itself it names scheme and host, and knows nothing of a proxy's TLS
    app.state.console = made
    return app
