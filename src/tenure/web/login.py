"""Who sends a request to the console in a cluster, and what they may see there: the API server says both.

A token comes with the request (``Authorization: Bearer``) or was given on the login page, which leaves a session that
ends by itself. Who it belongs to is asked of the API server (TokenReview), and what they may see by what they may list
there (SubjectAccessReview): pods everywhere, pods of a namespace, nodes. Answers are kept for a minute.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.web.app import ConsoleApp
from tenure.web.source import ConsoleSource
from tenure.web.viewer import EVERYTHING, Viewer

COOKIE: Final = "tenure-session"
SESSION_SECONDS: Final = 8 * 3600.0
IDLE_SECONDS: Final = 3600.0
REVIEWED_SECONDS: Final = 60.0
"""So long an answer of the API server holds."""

MOST_SESSIONS: Final = 10_000
MOST_NAMESPACES: Final = 1000
"""Namespaces about which is asked for one viewer; of others they see nothing."""

LONGEST_TOKEN: Final = 16_384
_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@dataclass(slots=True)
class WebSession:
    """A user who has logged in: token, time of the log-in, and time of the last request (monotonic seconds)."""

    token: str
    begun: float
    asked: float

    def is_over(self, now: float) -> bool:
        """Whether it has ended by itself."""
        return now - self.begun > SESSION_SECONDS or now - self.asked > IDLE_SECONDS


class Logins:
    """Says whose requests are. ``required``: without a token nothing is shown, else what the console itself may see."""

    def __init__(self, client: Client, source: ConsoleSource, *, required: bool) -> None:
        self.client, self.source, self.required = client, source, required
        self._sessions: OrderedDict[str, WebSession] = OrderedDict()
        self._reviewed: OrderedDict[str, tuple[float, Viewer | None]] = OrderedDict()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="console-asks")

    # -- whose a request is -------------------------------------------------------------------------------------------

    def whose(self, request: Request) -> Viewer | Response:
        """Say who sends a request, or turn them away."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        token = given.strip() if scheme.lower() == "bearer" else self._token_of(request)
        if not token:
            return _turned_away(request) if self.required else EVERYTHING
        try:
            viewer = self.viewer_of(token)
        except ApiError as error:
            return JSONResponse({"error": f"it cannot be asked who you are: {error}"}, status_code=503)
        return _turned_away(request) if viewer is None else viewer

    def _token_of(self, request: Request) -> str:
        found = request.cookies.get(COOKIE, "")
        with self._lock:
            session = self._sessions.get(found)
            if session is None:
                return ""
            now = time.monotonic()
            if session.is_over(now):
                del self._sessions[found]
                return ""
            session.asked = now
            return session.token

    def viewer_of(self, token: str) -> Viewer | None:
        """Give what whoever has a token may see; None where the API server does not know them.

        Raises
        ------
        ApiError
            It cannot be asked.
        """
        if not token.isascii() or not token.isprintable() or len(token) > LONGEST_TOKEN:
            return None
        key = hashlib.sha256(token.encode()).hexdigest()
        now = time.monotonic()
        with self._lock:
            known = self._reviewed.get(key)
            if known is not None and now - known[0] < REVIEWED_SECONDS:
                return known[1]
        viewer = self._review(token)
        with self._lock:
            self._reviewed[key] = now, viewer
            while len(self._reviewed) > MOST_SESSIONS:
                self._reviewed.popitem(last=False)
        return viewer

    def _review(self, token: str) -> Viewer | None:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = msgspec.json.decode(self.client.create(_REVIEWS, body)).get("status") or {}
        if not status.get("authenticated"):
            return None
        user = status.get("user") or {}
        name = str(user.get("username", ""))
        nodes = self._may(user, "nodes", None)
        if self._may(user, "pods", None):
            return Viewer(name, None, nodes)
        named = sorted(self.source.namespaces())[:MOST_NAMESPACES]
        allowed = self._threads.map(lambda namespace: self._may(user, "pods", namespace), named)
        seen = frozenset(one for one, may in zip(named, allowed, strict=True) if may)
        return Viewer(name, seen, nodes)

    def _may(self, user: dict[str, Any], resource: str, namespace: str | None) -> bool:
        """Ask whether somebody may list something, everywhere or in a namespace."""
        wanted = {"verb": "list", "resource": resource, "group": "", **({"namespace": namespace} if namespace else {})}
        spec = {
            "user": user.get("username", ""), "groups": user.get("groups") or [], "uid": user.get("uid", ""),
            "extra": user.get("extra") or {}, "resourceAttributes": wanted,
        }  # fmt: skip
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        status = msgspec.json.decode(self.client.create(_ACCESS, body)).get("status") or {}
        return bool(status.get("allowed"))

    # -- logging in ---------------------------------------------------------------------------------------------------

    def routes(self, app: ConsoleApp) -> list[BaseRoute]:
        """Give the pages on which one logs in and out."""

        def page(message: str, status: int) -> Response:
            body = app.templates.get_template("login.html").render(message=message)
            return Response(body, status_code=status, media_type="text/html")

        async def login(request: Request) -> Response:
            if request.method in ("GET", "HEAD"):
                return page("", 200)
            token = _posted(await _small(request))
            try:
                viewer = await asyncio.to_thread(self.viewer_of, token) if token else None
            except ApiError as error:
                return page(f"The API server cannot be asked: {error}", 503)
            if viewer is None:
                return page("The API server does not know that token.", 401)
            answer = RedirectResponse("/", status_code=303)
            answer.set_cookie(COOKIE, self._begin(token), max_age=int(SESSION_SECONDS), httponly=True,
                              samesite="strict", secure=_is_by_tls(request))  # fmt: skip
            return answer

        def logout(request: Request) -> Response:
            with self._lock:
                self._sessions.pop(request.cookies.get(COOKIE, ""), None)
            answer = RedirectResponse("/login", status_code=303)
            answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
            return answer

        return [Route("/login", login, methods=["GET", "POST"]), Route("/logout", logout, methods=["POST"])]

    def _begin(self, token: str) -> str:
        """Begin a session and give its name, which nobody can guess."""
        name, now = secrets.token_urlsafe(32), time.monotonic()
        with self._lock:
            for old in [key for key, session in self._sessions.items() if session.is_over(now)]:
                del self._sessions[old]
            while len(self._sessions) >= MOST_SESSIONS:
                self._sessions.popitem(last=False)
            self._sessions[name] = WebSession(token, now, now)
        return name


def _turned_away(request: Request) -> Response:
    if request.url.path.startswith("/api/") or request.url.path == "/changes":
        headers = {"www-authenticate": "Bearer"}
        return JSONResponse({"error": "log in, or send a token of the cluster"}, status_code=401, headers=headers)
    return RedirectResponse("/login", status_code=303)


def _is_by_tls(request: Request) -> bool:
    """Whether a browser asked by TLS, be it of a proxy before the console, which says so.

    Who says so without its being true gets a cookie that their own browser keeps back.
    """
    said = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    return "https" in (request.url.scheme, said)


async def _small(request: Request) -> bytes:
    found = b""
    async for chunk in request.stream():
        found += chunk
        if len(found) > 4 * LONGEST_TOKEN:
            return b""
    return found


def _posted(body: bytes) -> str:
    try:
        return parse_qs(body.decode("ascii"), max_num_fields=4).get("token", [""])[0].strip()
    except ValueError:
        return ""
