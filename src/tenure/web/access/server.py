"""Serves an application until it is ended, and says where."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

import uvicorn
from starlette.applications import Starlette

from tenure.model.documents.collector import collector_seldom
from tenure.web.access.connections import ConnectionShares
from tenure.web.access.in_time import InTimeProtocol

LARGEST_HEAD: Final = 65_536
"""Bytes of a request's line and headers; more is refused."""


def listen(host: str, port: int) -> socket.socket:
    """Take a port; 0 takes any free one.

    Raises
    ------
    OSError
        It cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
    except OSError:
        taken.close()
        raise
    return taken


def configured(app: Starlette) -> uvicorn.Config:
    """Give how it is served.

    By h11, and without WebSockets: what uvicorn takes of itself depends on what else is installed, and httptools, which
    it prefers, bounds no header. Where a connection comes from is not taken from headers, which it would believe of
    whatever comes by loopback: who sends many wrong tokens would seem to be many.
    """

    class OwnProtocol(InTimeProtocol):
        shares = ConnectionShares()

    return uvicorn.Config(
        app, http=OwnProtocol, ws="none", log_level="warning", access_log=False, server_header=False,
        date_header=False, lifespan="off", timeout_keep_alive=30, timeout_graceful_shutdown=2, proxy_headers=False,
        h11_max_incomplete_event_size=LARGEST_HEAD,
    )  # fmt: skip


def serve(
    app: Starlette,
    taken: socket.socket,
    ready: Callable[[], None] = lambda: None,
    ends: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal ends it. It is ``ready`` once a signal does; ``ends`` is called when one has come."""
    taken.listen(1024)
    with collector_seldom():
        _Server(configured(app), ready, ends).run(sockets=[taken])


class _Server(uvicorn.Server):
    """A server that says when it is ready: what is asked for then is answered, and a signal ends it in order."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], ends: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready, self._ends = ready, ends

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve; signals come to the server by now."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End in order: what requests wait for is told first."""
        self._ends()
        await super().shutdown(sockets)
