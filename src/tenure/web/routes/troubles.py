"""What is said where something is wrong: to a browser on a page with a way back, to a program as JSON."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Match

from tenure.web.access.guard import HEADERS
from tenure.web.access.put_off import PutOffError
from tenure.web.access.viewer import EVERYTHING
from tenure.web.routes.answerer import Answerer
from tenure.web.words import address

HTML: Final = "text/html"

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


class Troubles:
    """The answers to what goes wrong outside of any one route."""

    def __init__(self, answerer: Answerer, templates: Environment) -> None:
        self.answerer = answerer
        self.templates = templates

    def unread(self, request: Request, error: Exception) -> Response:
        """Say that the history cannot be read; where others may ask, what it said is in the log alone."""
        _LOG.warning("the history cannot be read: %s", error)
        told = f": {error}" if self.answerer.is_open else "; the console's log says why"
        message = f"the history cannot be read now{told}"
        if request.url.path.startswith("/api/"):
            return refused(503, message)
        source = self.answerer.console.source
        where = {**_NO_MOMENT, "source": source.name, "note": source.note}
        return self._bare_page(request, 503, f"{message[:1].upper()}{message[1:]}.", where, {"retry-after": "10"})

    def astray(self, request: Request, error: Exception) -> Response:
        """Refuse an address or a method that there is not."""
        status: int = getattr(error, "status_code", 404)
        if status == 404 and (there := _without_slash(request)) is not None:  # noqa: PLR2004  nothing is there
            return RedirectResponse(there)
        if not wants_page(request):
            return refused(status, _ASTRAY[status], getattr(error, "headers", None))
        return self._bare_page(request, status, _ASTRAY_PAGE[status], _NO_MOMENT, getattr(error, "headers", None))

    def put_off(self, request: Request, error: Exception) -> Response:
        """Say that it has to be asked again, and when; a browser does so by itself."""
        assert isinstance(error, PutOffError)
        headers = {"retry-after": str(error.seconds)}
        if not wants_page(request):
            return refused(error.status, str(error), headers)
        headers["refresh"] = headers["retry-after"]
        message = f"{str(error)[:1].upper()}{str(error)[1:]}. This page asks again by itself."
        return self._bare_page(request, error.status, message, _NO_MOMENT, headers)

    def broken(self, request: Request, _: Exception) -> Response:
        """Say that something is wrong here; the server writes what it was to its log."""
        headers = {**HEADERS, "cache-control": "no-store"}
        if not wants_page(request):
            return refused(500, _BROKEN, headers)
        return self._bare_page(request, 500, f"{_BROKEN[:1].upper()}{_BROKEN[1:]}.", _NO_MOMENT, headers)

    def _bare_page(
        self, request: Request, status: int, message: str, where: Mapping[str, Any], headers: Mapping[str, str] | None
    ) -> Response:
        """Show a message and the way back; nothing is asked of the source, and nothing told to those not logged in."""
        body = self.templates.get_template("trouble.html").render(
            path=request.url.path, at=None, link=address, where=where, viewer=EVERYTHING, status=status, message=message
        )
        return Response(body, status_code=status, media_type=HTML, headers=headers)


def wants_page(request: Request) -> bool:
    """Whether a browser asks, and not a program; below ``/api/`` all get JSON."""
    kinds = (part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(","))
    return HTML in kinds and not request.url.path.startswith("/api/")


def refused(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Give an error as programs read it; where the console is busy, with when to ask again."""
    if status == 503:  # noqa: PLR2004  HTTP's own number
        headers = {"retry-after": "2", **(headers or {})}
    return JSONResponse({"error": message}, status_code=status, headers=headers)


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
