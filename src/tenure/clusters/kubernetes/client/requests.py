"""A small client of the API server: requests over kept connections, errors as data, streams for watches.

It is built on urllib3: httpx, which the known Kubernetes clients for Python build on, is no longer maintained, and
takes several times as long for a request.
"""

from __future__ import annotations

import random
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
import urllib3

from tenure.clusters.kubernetes.client.access import Access
from tenure.clusters.kubernetes.client.open_requests import OpenRequests, followed_pool, hang_up
from tenure.clusters.kubernetes.client.server_clock import ServerClock
from tenure.clusters.kubernetes.decoding import decode
from tenure.model.values.problems import InputProblem, InvalidInputError

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
JSON: Final = "application/json"

TIMEOUT = 30.0
"""Seconds that a request may take."""

CONNECT_SECONDS = 10.0
"""Seconds that a connection may take to come about."""

_CHUNK = 1 << 16
_UNKNOWN = "what came of it is not known"
_UNAUTHORIZED: Final = 401
_EXPIRED: Final = "the credentials are not accepted or have expired; log in anew, or choose another --context"
_RETRIED = frozenset({429, 500, 502, 503, 504})
_OBJECT: Final = re.compile(r"^\w+\(host=[^)]*\): ")
"""By what urllib3 begins its sentences: the name of one of its classes."""

_HEADERS = {"Accept": JSON, "User-Agent": "tenure"}


class Status(msgspec.Struct):
    """The status that the API server gives of a failed request."""

    message: str = ""
    reason: str = ""
    code: int = 0


class ApiError(OSError):
    """The API server refused a request (``status`` its HTTP code), or could not be asked (``status`` 0)."""

    def __init__(self, status: int, reason: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.status, self.reason, self.message, self.retry_after = status, reason, message, retry_after

    @property
    def is_refusal(self) -> bool:
        """Whether it was surely not done: an error of the server's, as its silence, leaves that open."""
        return 400 <= self.status < 500  # noqa: PLR2004  what HTTP calls errors of the client

    def __str__(self) -> str:
        """Give the sentence for people."""
        return f"API server: {self.message}" if self.status == 0 else f"API server: {self.status} {self.message}"


class Client:
    """Requests to one API server. Safe to use from several threads; at most ``connections`` at a time are kept.

    Before a process ends, ``opened.end()`` lets no request take long, and has nothing tried again.
    """

    def __init__(self, access: Access, *, connections: int = 64, timeout: float = TIMEOUT) -> None:
        self.access = access
        self.timeout = timeout
        self.opened = OpenRequests()
        self._pool = _pool(access, connections, timeout, self.opened)
        self.clock = ServerClock()

    def get(self, path: str, *, accept: str = "", **query: str | int) -> bytes:
        """Read, in the form that is asked for. What fails for the moment is tried again; silence is waited for once."""
        return self._retried("GET", path, query, accept)

    def create(self, path: str, body: Any, **query: str | int) -> bytes:
        """Create an object, or call a subresource that is created (binding, eviction)."""
        return self.request("POST", _with(path, query), body)

    def replace(self, path: str, body: Any) -> bytes:
        """Replace an object; it carries the resourceVersion that it replaces."""
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Any, kind: str = MERGE) -> bytes:
        """Change an object."""
        return self.request("PATCH", path, body, kind)

    def delete(self, path: str, body: Any = None) -> bytes:
        """Delete an object."""
        return self.request("DELETE", path, body)

    def request(self, method: str, path: str, body: Any = None, kind: str = JSON, accept: str = "") -> bytes:
        """Send one request, once, and give the answer's body.

        Raises
        ------
        ApiError
            It was refused, or nothing is known of its outcome (``status`` 0).
        """
        data, sent = None if body is None else msgspec.json.encode(body), self.clock.steady()
        headers = self._headers(kind, accept)
        try:
            with self.opened.one():
                _require_time(self.opened)
                answer = self._pool.request(method, self._url(path), body=data, headers=headers, retries=False)
        except urllib3.exceptions.HTTPError as error:
            _require_time(self.opened)
            raise self._unreachable(error) from None
        self.clock.note(answer.headers.get("Date"), sent)
        if answer.status >= 400:  # noqa: PLR2004  where HTTP's errors begin
            raise refused(answer.status, answer.data, answer.headers)
        if _is_cut_off(answer):
            _require_time(self.opened)
            raise self._unreachable(ConnectionError("the answer was cut off"))
        return answer.data

    def stream(
        self,
        path: str,
        query: Mapping[str, str | int],
        read_timeout: float,
        opened: Callable[[Callable[[], None]], None] = lambda _end: None,
        accept: str = "",
    ) -> Iterator[bytes]:
        """Read a stream line by line until it ends; ``read_timeout`` seconds of silence end it too.

        ``opened`` is called once the server has agreed to it, with what ends it from another thread.
        """
        timeout = _timeout(self.timeout, read_timeout)
        _require_time(self.opened)
        try:
            answer = self._pool.request(
                "GET",
                self._url(_with(path, query)),
                headers=self._headers(JSON, accept),
                retries=False,
                preload_content=False,
                timeout=timeout,
            )
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(error) from None
        try:
            if answer.status >= 400:  # noqa: PLR2004
                raise refused(answer.status, answer.read(), answer.headers)
            opened(partial(hang_up, answer))
            yield from _lines(answer)
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(error) from None
        finally:
            answer.close()

    def _retried(
        self, method: str, path: str, query: Mapping[str, str | int], accept: str = "", tries: int = 5
    ) -> bytes:
        until = time.monotonic() + self.timeout
        for attempt in range(tries):
            try:
                return self.request(method, _with(path, query), accept=accept)
            except ApiError as error:
                is_over = attempt == tries - 1 or time.monotonic() >= until
                if is_over or (error.status and error.status not in _RETRIED):
                    raise
                if self.opened.ends.wait(backoff(attempt, error.retry_after)):
                    raise
        raise AssertionError

    def _unreachable(self, error: Exception) -> ApiError:
        """Say that the API server could not be asked, with its address and without what only programs know."""
        words = _OBJECT.sub("", " ".join(str(error).split()))
        scheme, _, rest = self.access.server.partition("://")
        return ApiError(0, "Unreachable", f"cannot be reached: {scheme}://{rest.rpartition('@')[2]}: {words}")

    def _url(self, path: str) -> str:
        return self.access.server + path

    def _headers(self, kind: str, accept: str) -> urllib3.HTTPHeaderDict:
        headers = urllib3.HTTPHeaderDict({**_HEADERS, "Content-Type": kind, **({"Accept": accept} if accept else {})})
        for name, value in self.access.acts_as:
            headers.add(name, value)
        token = self.access.token()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return headers


class FencedClient(Client):
    """The same client for a process that may write only while it leads: ``allowed`` is asked at the last moment.

    ``allowed`` raises where nothing may be written; between two writes that belong together a process may have been
    stopped for as long as it takes another one to be elected.
    """

    def __init__(self, inner: Client, allowed: Callable[[], None]) -> None:
        self.access, self.timeout = inner.access, inner.timeout
        self._inner = inner
        self._pool, self.opened = inner._pool, inner.opened  # noqa: SLF001  one and the same client
        self.clock = inner.clock
        self._allowed = allowed

    def request(self, method: str, path: str, body: Any = None, kind: str = JSON, accept: str = "") -> bytes:
        """Send one request, once; a write only if that is allowed now."""
        if method != "GET":
            self._allowed()
        return self._inner.request(method, path, body, kind, accept)


def backoff(attempt: int, at_least: float = 0.0, *, most: float = 30.0) -> float:
    """Give the seconds to wait before another try: doubling, with jitter, and never less than the server asked for."""
    longest: float = min(most, 0.1 * 2.0 ** min(attempt, 20))
    return max(at_least, longest * random.uniform(0.5, 1.0))  # noqa: S311  nobody must not guess it


def refused(status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """Say what an API server answered."""
    try:
        said = decode(body, Status)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        said = Status(message=body[:200].decode(errors="replace"))
    after = headers.get("Retry-After", "")
    message = said.message if status != _UNAUTHORIZED else f"{said.message}; {_EXPIRED}"
    return ApiError(status, said.reason, message, float(after) if after.isdigit() else 0.0)


def _is_cut_off(answer: urllib3.BaseHTTPResponse) -> bool:
    """Tell an answer that ended within its headers, which HTTP cannot tell from one without a body."""
    return not (answer.data or "Content-Length" in answer.headers or "Transfer-Encoding" in answer.headers)


def _with(path: str, query: Mapping[str, str | int]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    while True:
        chunk = answer.read1(_CHUNK)
        if not chunk:
            return
        *whole, rest = (rest + chunk).split(b"\n")
        yield from filter(None, whole)


def _require_time(opened: OpenRequests) -> None:
    """Let a request pass for as long as requests are not given up.

    Raises
    ------
    ApiError
        They are.
    """
    if opened.given_up.is_set():
        raise ApiError(0, "GivenUp", f"did not answer in time, and this process ends; {_UNKNOWN}")


def _timeout(whole: float, read: float) -> urllib3.Timeout:
    return urllib3.Timeout(connect=min(CONNECT_SECONDS, whole), read=read)


def _pool(access: Access, connections: int, timeout: float, opened: OpenRequests) -> urllib3.PoolManager:
    options: dict[str, Any] = {
        "num_pools": 2, "maxsize": connections, "block": False, "timeout": _timeout(timeout, timeout)
    }  # fmt: skip
    context = None
    if access.server.startswith("https"):
        context = _context(access)
        if access.server_name:
            options["server_hostname"] = options["assert_hostname"] = access.server_name
    return followed_pool(opened, context, **options)


def _context(access: Access) -> ssl.SSLContext:
    """Give what TLS needs.

    Raises
    ------
    OSError
        A file cannot be read.
    InvalidInputError
        A file is no certificate, or no key without a password.
    """
    for path in filter(None, (access.ca_file, access.cert_file, access.key_file)):
        Path(path).open("rb").close()  # OpenSSL does not say which file it misses
    file = access.ca_file
    try:
        context = ssl.create_default_context(cafile=file)
        if not access.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        file = access.cert_file
        if file:
            context.load_cert_chain(file, access.key_file, password="")  # it is not asked for on a terminal
    except ssl.SSLError as error:
        why = f"is no certificate (with its key, and without a password) that can be read: {error.reason or error}"
        raise InvalidInputError([InputProblem(str(file), 0, "", why)]) from None
    return context
