"""What stands before every request: whose request it is, from which page it comes, and how large it is.

A page of somebody else's that is open in the same browser can send requests here, also under a name that it lets point
to this machine. It is refused by the host that is asked for, by the origin that asks, and by what browsers say of where
a request comes from.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
OPEN: Final = frozenset({"/healthz"})
"""Paths that anybody may ask for under any name, such as whoever looks whether this lives."""

HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}

_BINDING: Final = tuple((name.encode(), value.encode()) for name, value in HEADERS.items())
_ELSEWHERE = frozenset({"cross-site", "same-site"})


class Guard:
    """Refuses requests under other names and from other origins, and sets the headers that bind browsers."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = LOOPBACK) -> None:
        self.app = app
        self.hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        why = self.refusal(scope["method"], scope["path"], Headers(scope=scope))

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message["headers"], *_BINDING]
                if all(name != b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                message["headers"] = headers
            await send(message)

        if why:
            await JSONResponse({"error": why}, status_code=403)(scope, receive, sending)
            return
        await self.app(scope, receive, sending)

    def refusal(self, method: str, path: str, headers: Headers) -> str:
        """Say why a request is refused; empty where it is not."""
        if path in OPEN:
            return ""
        host = host_of(headers.get("host", ""))
        if host not in self.hosts:
            return "this console is not served under that name; ask for it by one of its own (--allow-host)"
        origin = headers.get("origin")
        if origin is not None and not _same(origin, headers.get("host", "")):
            return "requests from pages of another origin are refused"
        if headers.get("sec-fetch-site") in _ELSEWHERE and not _is_visit(method, headers):
            return "requests from pages of another site are refused"
        return ""


def host_of(text: str) -> str:
    """Give the name in a Host header, without its port; empty where it is none."""
    try:
        return (urlsplit(f"//{text}").hostname or "").lower()
    except ValueError:
        return ""


def _same(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def _is_visit(method: str, headers: Headers) -> bool:
    """Whether somebody follows a link to a page, which does no harm."""
    return (
        method == "GET" and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    )
