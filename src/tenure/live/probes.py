"""What the scheduler serves over HTTP: whether it lives, whether it is ready, and its metrics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.client.leader import Election
from tenure.live.loop import Health
from tenure.live.trouble_log import WITHOUT_RIGHTS

STALLED_SECONDS = 120.0
"""A loop from which nothing was heard for so long after it was to look again counts as dead."""

Answer = tuple[int, str, bytes]
"""Status, content type, body."""

Admits = Callable[[str, str], int]
"""Asked with the header ``Authorization`` and the path; gives the status of the answer, 200 to let in."""


class Probes:
    """A server of pages, each made when it is asked for; those that are ``guarded`` need authorization."""

    def __init__(
        self,
        address: tuple[str, int],
        pages: dict[str, Callable[[], Answer]],
        guarded: Mapping[str, Admits] | None = None,
    ) -> None:
        guards = guarded or {}

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                make, admits = pages.get(path), guards.get(path)
                allowed = 200 if admits is None else admits(self.headers.get("Authorization", ""), path)
                if allowed != _LET_IN:
                    make = lambda: _refused(allowed)  # noqa: E731
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


def alive(health: Health) -> Answer:
    """Say whether the loop goes on."""
    silent = time.monotonic() - health.due
    ok = silent < STALLED_SECONDS
    return plain("ok" if ok else f"a cycle is {silent:.0f}s late", ok=ok)


def ready(informers: InformerCache, election: Election) -> Answer:
    """Say whether everything that decisions depend on is known, and who leads."""
    if informers.forbidden:
        return plain(f"{WITHOUT_RIGHTS}: {', '.join(informers.forbidden)}", ok=False)
    if not informers.synced:
        return plain("not everything was listed yet: " + ("; ".join(informers.troubles) or "wait"), ok=False)
    if informers.broken:
        return plain("a watch is broken: " + "; ".join(informers.broken), ok=False)
    return plain("leads" if election.leads else f"stands by; {election.holder or 'no replica'} leads", ok=True)


_LET_IN = 200


def _refused(status: int) -> Answer:
    why = {401: "a bearer token is needed", 403: "the token's owner may not get this page"}
    return (
        status,
        "text/plain; charset=utf-8",
        f"{why.get(status, 'the API server cannot be asked whose token that is')}\n".encode(),
    )


def plain(text: str, *, ok: bool) -> Answer:
    """Give the answer of a probe."""
    return (200 if ok else 503), "text/plain; charset=utf-8", f"{text}\n".encode()
