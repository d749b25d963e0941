"""What the scheduler serves over HTTP: whether it lives, whether it is ready, and its metrics."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, str, bytes]
"""Status, content type, body."""


class Probes:
    """The server of probes and metrics; each page is made when it is asked for."""

    def __init__(self, address: tuple[str, int], pages: dict[str, Callable[[], Answer]]) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                make = pages.get(self.path.partition("?")[0])
                status, kind, body = make() if make is not None else (404, "text/plain", b"not found\n")
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing: probes come every few seconds."""

        self._server = ThreadingHTTPServer(address, Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, name="probes", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._server.shutdown()
        self._server.server_close()


def plain(text: str, *, ok: bool) -> Answer:
    """Give the answer of a probe."""
    return (200 if ok else 503), "text/plain; charset=utf-8", f"{text}\n".encode()
