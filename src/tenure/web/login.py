"""Who sends a request to the console in a cluster: the API server says it, and what they may see there.

A token comes with the request (``Authorization: Bearer``) or was given on the login page, which leaves a session that
ends by itself. Who it belongs to is asked of the API server (TokenReview), and what they may see by what they may list
there (`Rights`). Answers are kept for a minute.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.web.access.put_off import UNAVAILABLE, PutOffError
from tenure.web.access.rights import Rights, User
from tenure.web.access.senders import Sender, WrongTokens, sender_of
from tenure.web.access.viewer import EVERYTHING, Viewer
from tenure.web.app import ConsoleApp
from tenure.web.playing.player import BusyError
from tenure.web.playing.turns import Turns
from tenure.web.routes.change_streams import STREAM
from tenure.web.sources.source import ConsoleSource

COOKIE: Final = "tenure-session"
SESSION_SECONDS: Final = 8 * 3600.0
IDLE_SECONDS: Final = 3600.0
REVIEWED_SECONDS: Final = 60.0
"""So long it holds whose a token is."""

MOST_SESSIONS: Final = 10_000
MOST_SESSIONS_EACH: Final = 50
"""Sessions that one token may have; of more, those that began first end."""

MOST_TOKENS: Final = 10_000
"""Tokens of which is known whose they are, and as many wrong ones."""

LONGEST_TOKEN: Final = 16_384
_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"


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
    """Says whose requests are. ``required``: without a token nothing is shown, else what the console itself may see.

    Used from one event loop. Tokens that were right a minute ago do not wait for those that are new.
    """

    def __init__(self, client: Client, source: ConsoleSource, *, required: bool) -> None:
        self.client, self.required = client, required
        self.rights = Rights(client, source.namespaces)
        self._sessions: OrderedDict[str, WebSession] = OrderedDict()
        self._users: OrderedDict[str, tuple[float, User]] = OrderedDict()
        self._wrong: OrderedDict[str, float] = OrderedDict()
        self._asking: dict[str, asyncio.Task[User | None]] = {}
        self._wrong_tokens = WrongTokens()
        self._turns = Turns()
        self._known_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="console-reviews")
        self._new_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="console-logins")

    # -- whose a request is -------------------------------------------------------------------------------------------

    async def whose(self, request: Request) -> Viewer | Response:
        """Say who sends a request, or turn them away.

        Raises
        ------
        PutOffError
            It cannot be asked now.
        """
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        token = given.strip() if scheme.lower() == "bearer" else self._token_of(request)
        if not token:
            return _turned_away(request) if self.required else EVERYTHING
        viewer = await self.viewer_of(token, sender_of(request))
        return _turned_away(request) if viewer is None else viewer

    def _token_of(self, request: Request) -> str:
        found = request.cookies.get(COOKIE, "")
        session = self._sessions.get(found)
        if session is None:
            return ""
        now = time.monotonic()
        if session.is_over(now):
            del self._sessions[found]
            return ""
        if request.url.path != STREAM:  # a page that is left open keeps no session from ending
            session.asked = now
        return session.token

    async def viewer_of(self, token: str, sender: Sender) -> Viewer | None:
        """Give what the user of a token may see; None where the API server does not know them.

        Raises
        ------
        PutOffError
            It cannot be asked now: of the API server, or because too many wrong tokens came from the sender.
        """
        if not token.isascii() or not token.isprintable() or len(token) > LONGEST_TOKEN:
            return None
        try:
            user = await self._user_of(token, sender)
            return None if user is None else await self.rights.viewer(user)
        except ApiError as error:
            raise PutOffError(UNAVAILABLE, f"it cannot be asked who you are: {error}") from error
        except BusyError as error:
            raise PutOffError(UNAVAILABLE, str(error)) from error

    async def _user_of(self, token: str, sender: Sender) -> User | None:
        key = hashlib.sha256(token.encode()).hexdigest()
        now = time.monotonic()
        known = self._users.get(key)
        if known is not None and now - known[0] < REVIEWED_SECONDS:
            return known[1]
        if now - self._wrong.get(key, float("-inf")) < REVIEWED_SECONDS:
            return None
        if key not in self._asking:
            asks = (
                self._ask(key, token, self._known_threads) if known is not None else self._ask_new(key, token, sender)
            )
            self._asking[key] = asyncio.create_task(asks)
            self._asking[key].add_done_callback(lambda done: self._asked(key, done))
        return await asyncio.shield(self._asking[key])

    def _asked(self, key: str, done: asyncio.Task[User | None]) -> None:
        del self._asking[key]
        if not done.cancelled():
            done.exception()  # it is told to those who wait for it, if any do

    async def _ask_new(self, key: str, token: str, sender: Sender) -> User | None:
        """Ask about a token of which nothing is known: a few of one address at a time, and not too many wrong ones."""
        self._wrong_tokens.take(sender)
        user = None
        try:
            async with self._turns.of(sender.peer):
                user = await self._ask(key, token, self._new_threads)
        except (ApiError, BusyError):
            self._wrong_tokens.give_back(sender)
            raise
        if user is not None:
            self._wrong_tokens.give_back(sender)
        return user

    async def _ask(self, key: str, token: str, threads: ThreadPoolExecutor) -> User | None:
        user = await asyncio.get_running_loop().run_in_executor(threads, self._review, token)
        now = time.monotonic()
        self._users.pop(key, None)
        if user is None:
            self._wrong[key] = now
            self._wrong.move_to_end(key)
        else:
            self._users[key] = now, user
        for kept in (self._users, self._wrong):
            while len(kept) > MOST_TOKENS:
                kept.popitem(last=False)
        return user

    def _review(self, token: str) -> User | None:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = msgspec.json.decode(self.client.create(_REVIEWS, body)).get("status") or {}
        user: User = status.get("user") or {}
        return user if status.get("authenticated") else None

    # -- logging in ---------------------------------------------------------------------------------------------------

    def routes(self, app: ConsoleApp) -> list[BaseRoute]:
        """Give the pages on which one logs in and out."""

        def page(message: str, status: int, seconds: int = 0) -> Response:
            body = app.templates.get_template("login.html").render(message=message)
            headers = {"retry-after": str(seconds)} if seconds else None
            return Response(body, status_code=status, media_type="text/html", headers=headers)

        async def login(request: Request) -> Response:
            if request.method in ("GET", "HEAD"):
                return page("", 200)
            token = _posted(await _small(request))
            try:
                viewer = await self.viewer_of(token, sender_of(request)) if token else None
            except PutOffError as error:
                return page(f"{str(error)[:1].upper()}{str(error)[1:]}.", error.status, error.seconds)
            if viewer is None:
                return page("The API server does not know that token.", 401)
            answer = RedirectResponse("/", status_code=303)
            answer.set_cookie(COOKIE, self._begin(token), max_age=int(SESSION_SECONDS), httponly=True,
                              samesite="strict", secure=_is_by_tls(request))  # fmt: skip
            return answer

        async def logout(request: Request) -> Response:
            self._sessions.pop(request.cookies.get(COOKIE, ""), None)
            answer = RedirectResponse("/login", status_code=303)
            answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
            return answer

        return [Route("/login", login, methods=["GET", "POST"]), Route("/logout", logout, methods=["POST"])]

    def _begin(self, token: str) -> str:
        """Begin a session and give its name, which cannot be guessed."""
        name, now = secrets.token_urlsafe(32), time.monotonic()
        for old in [key for key, session in self._sessions.items() if session.is_over(now)]:
            del self._sessions[old]
        own = [key for key, session in self._sessions.items() if session.token == token]
        for old in own[: max(0, len(own) - MOST_SESSIONS_EACH + 1)]:
            del self._sessions[old]
        while len(self._sessions) >= MOST_SESSIONS:
            self._sessions.popitem(last=False)
        self._sessions[name] = WebSession(token, now, now)
        return name


def _turned_away(request: Request) -> Response:
    if request.url.path.startswith("/api/") or request.url.path == STREAM:
        headers = {"www-authenticate": "Bearer"}
        return JSONResponse({"error": "log in, or send a token of the cluster"}, status_code=401, headers=headers)
    if request.headers.get("hx-request") == "true":  # a page that renews a part of itself: all of it goes there
        return Response(status_code=401, headers={"hx-redirect": "/login"})
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
