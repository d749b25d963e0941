"""A proxy between a client and the API server that lets things go wrong on purpose.

It listens on loopback and speaks HTTP/1.1 to both sides, one thread a connection. Every request is logged; writes are
counted, and a test may have something happen just before or just after the n-th one (a crash, say).
"""

from __future__ import annotations

import http.client
import json
import socket
import socketserver
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from tests.kubernetes.faults import (
    CutWatch,
    Delay,
    DelayWatch,
    DropRequest,
    ExpireWatch,
    Fault,
    LoseAnswer,
    Refuse,
    RepeatWatch,
    Request,
    Script,
)

_HOP_BY_HOP = frozenset({"connection", "transfer-encoding", "keep-alive", "content-length", "upgrade", "te", "host"})
_ROUGH_END = (OSError, http.client.HTTPException)

Hook = Callable[[Request], None]


@dataclass
class Entry:
    """A line of the log. ``status`` is what the server answered (0: it was not asked, or has not answered).

    It is written before the client hears of it.
    """

    request: Request
    fault: Fault | None
    status: int = 0


class FaultProxy:
    """The proxy; use it as a context. ``server`` is its address, ``script`` says what goes wrong."""

    def __init__(self, upstream: str, authority: Path, *, certificate: tuple[Path, Path] | None = None) -> None:
        self.script = Script()
        self.log: list[Entry] = []
        self.mistakes: list[BaseException] = []
        self._upstream = urlsplit(upstream)
        self._trust = ssl.create_default_context(cafile=str(authority))
        self._before: dict[int, Hook] = {}
        self._after: dict[int, Hook] = {}
        self._writes = 0
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        scheme = "http"
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*certificate)
            self._server.tls, scheme = context, "https"
        self.server = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        """Listen."""
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End, with all connections."""
        self._server.shutdown()
        self._server.server_close()
        self.cut_all()
        if self.mistakes:
            raise self.mistakes[0]

    @property
    def writes(self) -> int:
        """How many writes have come so far."""
        return self._writes

    def before_write(self, number: int, hook: Hook) -> None:
        """Call something when the n-th write (from 1) has come and has not been passed on."""
        self._before[number] = hook

    def after_write(self, number: int, hook: Hook) -> None:
        """Call something when the server has done the n-th write and the client has not heard of it."""
        self._after[number] = hook

    def cut_all(self) -> None:
        """Close all connections, watches too."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def statuses(self, path: str = "") -> list[int]:
        """Give what the server answered to the requests whose path holds a text, in their order."""
        return [entry.status for entry in self.log if path in entry.request.path]

    def connect(self) -> http.client.HTTPConnection:
        """Open a connection to the API server."""
        host, port = self._upstream.hostname, self._upstream.port
        assert host is not None
        if self._upstream.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=600, context=self._trust)
        return http.client.HTTPConnection(host, port, timeout=600)

    def admit(self, method: str, path: str, body: bytes) -> Request:
        """Number a request."""
        request = Request(method, path, body)
        if not request.is_write:
            return request
        with self._lock:
            self._writes += 1
            return Request(method, path, body, self._writes)

    def run_before(self, request: Request) -> None:
        """Do what is to happen before this write."""
        hook = self._before.pop(request.write, None)
        if hook is not None:
            hook(request)

    def run_after(self, request: Request) -> None:
        """Do what is to happen after this write."""
        hook = self._after.pop(request.write, None)
        if hook is not None:
            hook(request)

    def note(self, connection: socket.socket | None, *, is_open: bool) -> None:
        """Keep in mind which connections there are, to clients and to the server."""
        with self._lock:
            if connection is not None:
                (self._open.add if is_open else self._open.discard)(connection)


def read_lines(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """Give the lines of a stream as they come. An end that is none of the protocol's is an error.

    The standard library's ``readline`` makes no difference between the two.
    """
    rest = b""
    while True:
        size = answer.fp.readline()
        if not size.endswith(b"\n"):
            raise ConnectionAbortedError("the stream broke off")
        length = int(size.partition(b";")[0], 16)
        data = answer.fp.read(length + 2)
        if len(data) < length + 2:
            raise ConnectionAbortedError("the stream broke off")
        if not length:
            return
        *lines, rest = (rest + data[:length]).split(b"\n")
        yield from (line + b"\n" for line in lines)


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128
    proxy: FaultProxy
    tls: ssl.SSLContext | None = None

    def handle_error(self, *_: Any) -> None:
        """Connections that end roughly are what this is about; all else is a mistake in here."""
        error = sys.exception()
        if error is not None and not isinstance(error, _ROUGH_END):
            self.proxy.mistakes.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        if self.server.tls is not None:
            self.request.settimeout(30)
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
            self.request.settimeout(None)
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().setup()
        self.proxy = self.server.proxy
        self.proxy.note(self.request, is_open=True)
        self._upstream: http.client.HTTPConnection | None = None

    def finish(self) -> None:
        self.proxy.note(self.request, is_open=False)
        if self._upstream is not None:
            self.proxy.note(self._upstream.sock, is_open=False)
            self._upstream.close()
        with suppress(OSError):
            super().finish()
        self.request.close()

    def log_message(self, *_: Any) -> None:
        """The proxy has a log of its own."""

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = self.proxy.admit(self.command, self.path, body)
        fault = self.proxy.script.next_for(request)
        entry = Entry(request, fault)
        self.proxy.log.append(entry)
        try:
            self.proxy.run_before(request)
            self._serve(entry)
        except _ROUGH_END:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _handle  # noqa: N815  names of the base class

    def _serve(self, entry: Entry) -> None:
        request, fault = entry.request, entry.fault
        if isinstance(fault, Refuse):
            self._refuse(fault)
            return
        if isinstance(fault, DropRequest):
            self.close_connection = True
            return
        if isinstance(fault, Delay):
            time.sleep(fault.seconds)
        answer = self._forward(request)
        entry.status = answer.status
        if request.is_watch and answer.status == http.client.OK:
            self._stream(answer, fault)
            return
        content = answer.read()
        self.proxy.run_after(request)
        if isinstance(fault, LoseAnswer):
            time.sleep(fault.seconds)
            self.close_connection = True
            return
        self._head(answer, {"Content-Length": str(len(content))})
        if request.method != "HEAD":
            self.wfile.write(content)

    def _forward(self, request: Request) -> http.client.HTTPResponse:
        """Pass the request on; what only reads, once more if the server has closed the kept connection meanwhile."""
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        is_fresh = self._upstream is None
        if self._upstream is None:
            self._upstream = self.proxy.connect()
        try:
            if self._upstream.sock is None:
                self._upstream.connect()
                self.proxy.note(self._upstream.sock, is_open=True)
            self._upstream.request(request.method, request.path, request.body or None, headers)
            return self._upstream.getresponse()
        except _ROUGH_END:
            self.proxy.note(self._upstream.sock, is_open=False)
            self._upstream.close()
            self._upstream = None
            if is_fresh or request.is_write:
                raise
        return self._forward(request)

    def _refuse(self, fault: Refuse) -> None:
        content = json.dumps(fault.body()).encode()
        self.send_response(fault.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if fault.retry_after is not None:
            self.send_header("Retry-After", str(fault.retry_after))
        self.end_headers()
        self.wfile.write(content)

    def _head(self, answer: http.client.HTTPResponse, extra: dict[str, str]) -> None:
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        for name, value in extra.items():
            self.send_header(name, value)
        self.end_headers()

    def _stream(self, answer: http.client.HTTPResponse, fault: Fault | None) -> None:
        """Pass a watch on, event by event."""
        self._head(answer, {"Transfer-Encoding": "chunked"})
        self.close_connection = True
        if isinstance(fault, CutWatch) and not fault.events and not fault.torn:
            return
        for count, line in enumerate(read_lines(answer), 1):
            if isinstance(fault, CutWatch) and fault.torn and count > fault.events:
                self._chunk(line[: len(line) // 2])
                return
            if isinstance(fault, DelayWatch):
                time.sleep(fault.seconds)
            for _ in range(fault.times if isinstance(fault, RepeatWatch) else 1):
                self._chunk(line)
            if isinstance(fault, CutWatch) and not fault.torn and count >= fault.events:
                return
            if isinstance(fault, ExpireWatch) and count >= fault.events:
                gone = {"type": "ERROR", "object": Refuse(410, "too old resource version").body()}
                self._chunk(json.dumps(gone).encode() + b"\n")
                break
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()
