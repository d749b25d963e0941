"""The pages: each is a view in a template, made once for all who may see the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tenure.web import pages
from tenure.web.access.asked import AskedError, RequestParameters, no_repeats
from tenure.web.access.viewer import EVERYTHING, Viewer
from tenure.web.finished import FinishedAnswer, FinishedAnswers, finished
from tenure.web.playing.player import BusyError, WrongError
from tenure.web.playing.whatif import CHANGES, canonical
from tenure.web.routes.answerer import Answerer
from tenure.web.routes.troubles import HTML
from tenure.web.views.look import Looked, moment
from tenure.web.words import address

PAGE_THREADS: Final = 12
NOWHERE: Final = "There is nothing of that name here, or not for you."


class PageRoutes:
    """The routes to pages; ``kept`` are those that are finished."""

    def __init__(self, answerer: Answerer, templates: Environment) -> None:
        self.answerer = answerer
        self.templates = templates
        self.kept = FinishedAnswers(PAGE_THREADS, "console-pages")

    def routes(self) -> list[BaseRoute]:
        """Give a route for each page."""
        found: list[BaseRoute] = [Route(path, self._page(path, view)) for path, view in pages.VIEWS.items()]
        return [*found, Route("/workloads/{namespace}/{name}", self._workload_page)]

    def warm(self) -> None:
        """Do what the first page would have to: orders are made, templates are read, and playing begins."""
        for name in self.templates.list_templates():
            self.templates.get_template(name)
        console = self.answerer.console
        with suppress(BusyError):
            look = Looked(console, console.picture(), EVERYTHING, wait=0.0)
            for view in (pages.overview, pages.workloads):
                view(look, {}, [])

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
        answerer = self.answerer
        viewer = await answerer.whose(request)
        if isinstance(viewer, Response):
            return viewer
        user, viewer = viewer.name, viewer.unnamed
        try:
            no_repeats(pairs, CHANGES if path == "/whatif" else ())
            if path == "/whatif" and (filled := canonical(pairs)) is not None:
                return RedirectResponse(filled, status_code=303)
            key = answerer.key(request.scope, viewer)
            found = await answerer.given(self.kept, key, user, lambda: self._made(request, view, given, pairs, viewer))
        except (AskedError, WrongError, BusyError) as error:
            status, message = 503 if isinstance(error, BusyError) else 400, str(error)
            return await answerer.aside(lambda: self._trouble(request, viewer, status, message))
        if found is None:
            return await answerer.aside(lambda: self._trouble(request, viewer, 404, NOWHERE))
        return found.sent(request.headers)

    def _made(
        self, request: Request, view: pages.View, given: dict[str, str], pairs: list[tuple[str, str]], viewer: Viewer
    ) -> FinishedAnswer | None:
        look = self.answerer.look(given, viewer)
        made = view(look, given, pairs)
        if made is None:
            return None
        return finished(self._render(made[0], request, look, made[1]), HTML, settled=look.is_settled)

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
        console = self.answerer.console
        look = Looked(console, console.picture(), viewer)
        told = {"message": look.told(message), "status": status, "at": _moment_asked(request)}
        body = self._render("trouble.html", request, look, told)
        return Response(body, status_code=status, media_type=HTML)


def _moment_asked(request: Request) -> str | None:
    """Give the moment in an address, None where none can be read: links of a page that says so lead to the newest."""
    text = request.query_params.get("at", "")
    with suppress(AskedError):
        return text if RequestParameters({"at": text}, {"at"}).time("at") is not None else None
    return None
