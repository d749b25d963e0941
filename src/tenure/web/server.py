"""Serves an application until it is ended, and says where."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette

from tenure.model.collector import collector_seldom


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


def serve(app: Starlette, taken: socket.socket, ready: Callable[[], None] = lambda: None) -> None:
    """Serve until a signal ends it."""
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, date_header=False, lifespan="off",
        timeout_keep_alive=30, timeout_graceful_shutdown=2, limit_concurrency=2000,
        h11_max_incomplete_event_size=65_536,
    )  # fmt: skip
    server = uvicorn.Server(config)
    taken.listen(1024)
    ready()
    with collector_seldom():
        server.run(sockets=[taken])
