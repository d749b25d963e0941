"""Who may ask: names, origins, other sites; and what browsers are told to hold to."""

import socket
import sys
import time
from contextlib import suppress
from types import ModuleType

import pytest
from starlette.applications import Starlette
from tests.web.consoles import shown, small
from uvicorn.protocols.http.h11_impl import H11Protocol

from tenure.web.access.guard import LOOPBACK, host_of
from tenure.web.access.in_time import InTimeProtocol
from tenure.web.access.server import LARGEST_HEAD, configured
from tenure.web.app import application


@pytest.fixture(scope="module")
def client():
    with shown(small()) as found:
        yield found


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "10.0.0.1", "[::1", "a@127.0.0.1.x"])
def test_another_name_is_refused(client, host):
    """A page elsewhere can let its own name point here; the browser then sends that name, also for finished pages."""
    assert client.get("/").status_code == 200
    assert client.get("/api/v1/overview", headers={"host": host}).status_code == 403
    assert client.get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8765", "localhost:1", "LOCALHOST", "[::1]:9"])
def test_its_own_names_do(client, host):
    assert client.get("/api/v1/overview", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "x"])
def test_requests_of_pages_of_other_origins_are_refused(client, origin):
    for method, path in (("GET", "/api/v1/overview"), ("POST", "/api/v1/plan"), ("GET", "/changes"), ("GET", "/")):
        answer = client.request(method, path, headers={"origin": origin, "content-type": "application/json"})
        assert answer.status_code == 403, (method, path)


def test_requests_of_its_own_pages_are_not(client):
    answer = client.post("/api/v1/plan", json={}, headers={"origin": client.address, "sec-fetch-site": "same-origin"})
    assert answer.status_code == 200


def test_other_sites_may_link_to_a_page_and_nothing_else(client):
    visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client.get("/queues", headers=visit).status_code == 200
    for other in ({"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}, {"sec-fetch-dest": "iframe"}):
        assert client.get("/queues", headers={**visit, **other}).status_code == 403
    assert client.post("/api/v1/plan", json={}, headers=visit).status_code == 403


@pytest.mark.parametrize("path", ["/", "/api/v1/overview", "/static/console.css", "/nothing", "/healthz"])
def test_browsers_are_bound(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"]


@pytest.mark.parametrize("path", ["/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static/htmx.LICENSE", "/static/"])
def test_only_what_pages_need_is_given_out(client, path):
    assert client.get(path).status_code == 404


def test_other_methods_are_refused(client):
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        for path in ("/", "/queues", "/api/v1/overview", "/api/v1/nodes", "/whatif"):
            assert client.request(method, path).status_code == 405, (method, path)
    assert client.get("/api/v1/plan").status_code == 405


def test_a_header_that_is_too_long_is_refused(client):
    assert client.get("/healthz", headers={"x-long": "x" * (LARGEST_HEAD - 1000)}).status_code == 200
    host, port = client.address.removeprefix("http://").split(":")
    long = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: " + b"x" * 2 * LARGEST_HEAD
    with suppress(ConnectionError), socket.create_connection((host, int(port)), timeout=30) as stream:
        stream.sendall(long)  # the connection may end before all of it is read
        assert stream.recv(100).startswith(b"HTTP/1.1 400 ")
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "begun",
    [b"", b"GET / HTTP/1.1\r\nhost: loc",
     b"POST /api/v1/plan HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{"],
)  # fmt: skip
def test_who_begins_a_request_and_does_not_end_it_is_let_go(client, begun, monkeypatch):
    """Else 2000 such connections, for which nobody has to log in, would keep everybody out."""
    monkeypatch.setattr(InTimeProtocol, "sent_seconds", 1.0)
    host, port = client.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as stream:
        stream.sendall(begun)
        with suppress(ConnectionError):
            while stream.recv(4096):
                pass
    assert client.get("/healthz").status_code == 200


def test_who_does_not_read_an_answer_is_let_go(client, monkeypatch):
    monkeypatch.setattr(InTimeProtocol, "read_seconds", 1.0)
    host, port = client.address.removeprefix("http://").split(":")
    asked = b"GET /api/v1/series?points=2000 HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with socket.socket() as stream:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stream.settimeout(20)
        stream.connect((host, int(port)))
        for _ in range(100):
            stream.sendall(asked)
        time.sleep(3)
        with suppress(ConnectionError):
            got = 0
            while more := len(stream.recv(65_536)):
                got += more
            assert got < 100 * 80_000  # it ends before all of it


def test_a_connection_that_waits_for_its_answer_or_its_next_request_stays(client, monkeypatch):
    monkeypatch.setattr(InTimeProtocol, "sent_seconds", 0.5)
    host, port = client.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as stream:
        for _ in range(2):
            stream.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            time.sleep(1)
            assert stream.recv(4096).startswith(b"HTTP/1.1 200")
        stream.sendall(b"GET /changes HTTP/1.1\r\nhost: localhost\r\n\r\n")
        time.sleep(1)
        assert b"event: version" in stream.recv(4096)
        stream.settimeout(1)
        with pytest.raises(TimeoutError):
            stream.recv(4096)


def test_headers_are_bounded_whatever_else_is_installed(monkeypatch):
    """Of itself uvicorn takes httptools where it is there, which bounds no header, and any WebSocket library."""
    for name in ("httptools", "websockets", "wsproto"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    config = configured(Starlette())
    config.load()
    assert issubclass(config.http_protocol_class, H11Protocol)
    assert config.ws_protocol_class is None


def test_the_name_of_a_host_is_read_strictly():
    assert [host_of(text) for text in ("a:1", "[::1]:2", "[", "u@h:3", "")] == ["a", "::1", "", "h", ""]
    assert LOOPBACK == ("127.0.0.1", "localhost", "::1")
    assert callable(application)
