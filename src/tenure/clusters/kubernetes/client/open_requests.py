"""The requests that wait for an answer, and how they are given up once a process is to end.

A thread that waits on a socket hears of nothing else; but it waits no longer once another thread shuts the socket down.
So an orderly end need not wait for an API server that says nothing, whichever thread asked it, and for whatever.
"""

from __future__ import annotations

import ssl
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socket import SHUT_RDWR, socket
from typing import Any, Final

import urllib3

ANSWER_WITHIN: Final = 5.0
"""Seconds that a request has for its answer once the process is to end."""

_LOOK_EVERY: Final = 0.1


class OpenRequests:
    """The requests of one client that wait for an answer, and the sockets on which answers come.

    Until `end` is called nothing is bounded here. After that no request may take longer than a few seconds; where one
    does, the server counts as silent: all requests are given up, and none is sent any more. Safe to use from several
    threads.
    """

    def __init__(self) -> None:
        self.ends = threading.Event()
        self.given_up = threading.Event()
        self._began: dict[object, float] = {}
        self._sockets: weakref.WeakSet[socket] = weakref.WeakSet()
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count a request as open for the length of the block."""
        request = object()
        self._began[request] = time.monotonic()
        try:
            yield
        finally:
            del self._began[request]

    def follow(self, connection: socket) -> None:
        """Remember a socket for as long as it is open."""
        with self._lock:
            self._sockets.add(connection)
        if self.given_up.is_set():
            _shut(connection)

    def end(self, within: float = ANSWER_WITHIN) -> None:
        """Let no request take longer than so many seconds from now on, those that are open included."""
        with self._lock:
            if self.ends.is_set():
                return
            self.ends.set()
        since = time.monotonic()
        threading.Thread(target=self._watch, args=(since, within), name="open requests", daemon=True).start()

    def _watch(self, since: float, within: float) -> None:
        """Wait until a request takes too long, and give all of them up."""
        while all(time.monotonic() - max(since, began) < within for began in list(self._began.values())):
            time.sleep(_LOOK_EVERY)
        self.given_up.set()
        with self._lock:
            followed = list(self._sockets)
        for connection in followed:
            _shut(connection)


def hang_up(answer: urllib3.BaseHTTPResponse) -> None:
    """End an answer that another thread is reading, unless that one has it whole and its connection is another's."""
    connection = answer.connection
    reading = None if connection is None else getattr(connection, "sock", None)
    if reading is not None:
        _shut(reading)


def _shut(connection: socket) -> None:
    """Shut a socket down; whoever waits on it is told that nothing comes any more."""
    with suppress(OSError):  # it is closed already
        socket.shutdown(connection, SHUT_RDWR)  # not that of TLS, which changes what another thread is using


def followed_pool(opened: OpenRequests, context: ssl.SSLContext | None, **options: Any) -> urllib3.PoolManager:
    """Give a pool of connections whose sockets are followed: one of TLS before it has shaken hands."""

    class FollowedSocket(ssl.SSLSocket):
        def do_handshake(self, block: bool = False) -> None:
            opened.follow(self)
            super().do_handshake(block)

    class FollowedConnection(urllib3.connection.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            assert self.sock is not None
            opened.follow(self.sock)

    class FollowedPool(urllib3.HTTPConnectionPool):
        ConnectionCls = FollowedConnection

    if context is not None:
        context.sslsocket_class = FollowedSocket
        options["ssl_context"] = context
    pool = urllib3.PoolManager(**options)
    pool.pool_classes_by_scheme = {**pool.pool_classes_by_scheme, "http": FollowedPool}
    return pool
