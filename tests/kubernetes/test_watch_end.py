"""A watch that is stopped ends at once, on both sides, though the server has nothing to say."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.handlers import ObjectStore
from tenure.clusters.kubernetes.client.access import Access
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.client.watch import Reflector, WatchReports

SOON = 60


class Quiet(ThreadingHTTPServer):
    """A server of an empty list whose watches say nothing, and begin once ``answers`` is set."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.answers, self.left = threading.Event(), threading.Event(), threading.Event()
        self.answers.set()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if "watch=1" not in self.path:
            body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": []}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.server.asked.set()
        self.server.answers.wait(SOON)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.rfile.read(1)  # nothing more is asked: this ends when the other side does
        self.server.left.set()

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def watching(before=lambda _reflector: None, *, slow=False):
    """Give a server and a reflector that watches what is there; ``before`` is called before it begins."""
    with Quiet() as server:
        if slow:
            server.answers.clear()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        failed = []
        client = Client(Access(f"http://127.0.0.1:{server.server_port}"))
        reports = WatchReports(failed=lambda path, error: failed.append((path, error)))
        reflector = Reflector(client, "/x", api.ApiObject, ObjectStore(), lambda: None, reports=reports)
        before(reflector)
        reflector.start()
        yield server, reflector
        assert failed == []
        assert reflector.health.error == ""
        server.shutdown()


def told_of(reflector, opened):
    """Have an event tell that the watch is open."""
    known = reflector._opened

    def told(end_stream):
        known(end_stream)
        opened.set()

    reflector._opened = told


def ends(server, reflector):
    reflector._thread.join(SOON)
    assert not reflector._thread.is_alive()
    assert server.left.wait(SOON)


def test_a_watch_that_says_nothing_ends_when_it_is_stopped():
    """Silence is bounded by a minute and a half, and a watch by five minutes: nobody waits for either."""
    opened = threading.Event()
    with watching(lambda reflector: told_of(reflector, opened)) as (server, reflector):
        assert opened.wait(SOON)
        reflector.stop()
        ends(server, reflector)


def test_a_watch_that_is_stopped_while_it_is_being_opened_ends_when_it_is_open():
    with watching(slow=True) as (server, reflector):
        assert server.asked.wait(SOON)
        reflector.stop()
        server.answers.set()
        ends(server, reflector)
