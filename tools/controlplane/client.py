"""The API server as a test sees it: one JSON request at a time, by the standard library alone.

It shares nothing with the client that Tenure uses, so that a test does not look at the cluster through the code under
test.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

PATCH_TYPES: Final = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


IDLE_SECONDS: Final = 30.0
"""A connection that was not used for so long is not used again: the API server closes it after a minute and a half."""


class ApiError(Exception):
    """The server refused. ``status`` is the HTTP status, ``body`` what it said (a ``Status`` object as a rule)."""

    def __init__(self, status: int, body: Any) -> None:
        self.status = status
        self.body = body
        message = body.get("message", body) if isinstance(body, dict) else body
        super().__init__(f"{status}: {message}")


class Client:
    """Requests to one API server as one user. Not for several threads at once."""

    def __init__(self, server: str, token: str, authority: str | None = None) -> None:
        where = urlsplit(server)
        assert where.hostname is not None
        self._token = token
        self._used = time.monotonic()
        self._connection: http.client.HTTPConnection
        if where.scheme == "https":
            self._connection = http.client.HTTPSConnection(
                where.hostname, where.port, timeout=30, context=ssl.create_default_context(cafile=authority)
            )
        else:
            self._connection = http.client.HTTPConnection(where.hostname, where.port, timeout=30)

    def get(self, path: str) -> Any:
        """Read an object or a list."""
        return self.request("GET", path)

    def create(self, path: str, body: Mapping[str, Any]) -> Any:
        """Create an object in a collection, or call a subresource such as ``eviction``."""
        return self.request("POST", path, body)

    def replace(self, path: str, body: Mapping[str, Any]) -> Any:
        """Write an object as a whole."""
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Any, kind: str = "merge") -> Any:
        """Change a part of an object; ``kind`` as in `PATCH_TYPES`."""
        return self.request("PATCH", path, body, content=PATCH_TYPES[kind])

    def delete(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Delete an object, or all of a collection."""
        return self.request("DELETE", path, body)

    def discard(self, path: str, body: Mapping[str, Any] | None = None) -> None:
        """Delete an object, whatever holds it; others may be deleting it as well, and that it is gone is right."""
        try:
            self.patch(path, {"metadata": {"finalizers": None}})
            self.delete(path, body)
        except ApiError as error:
            if error.status != http.client.NOT_FOUND:
                raise

    def exists(self, path: str) -> bool:
        """Tell whether there is such an object."""
        try:
            self.get(path)
        except ApiError as error:
            if error.status == http.client.NOT_FOUND:
                return False
            raise
        return True

    def request(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        """Send one request and give the JSON that comes back (text where it is none).

        Raises
        ------
        ApiError
            If the server answers with an error.
        OSError
            If the server cannot be reached.
        """
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = content
        now = time.monotonic()
        if now - self._used > IDLE_SECONDS:
            self._connection.close()  # the next request opens a new one
        self._used = now
        try:
            self._connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self._connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        if answer.status >= http.client.BAD_REQUEST:
            raise ApiError(answer.status, value)
        return value

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
