"""Asking the API server whose a token is, and what its owner may read: for pages that need authorization."""

from __future__ import annotations

import threading
import time
from typing import Any, Final

import msgspec

from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.decoding import decode

KNOWN_SECONDS: Final = 30.0
"""For so long an answer about a token holds."""

MOST_KNOWN: Final = 256
_LONGEST_TOKEN: Final = 16_384
_TOKENS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _Status(msgspec.Struct):
    authenticated: bool = False
    allowed: bool = False
    user: _User = msgspec.field(default_factory=_User)


class _Review(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


class ReaderReview:
    """Whether the owner of a token may read a page of this process: as for pages of the API server itself.

    Answers are remembered for a short while, and no more than a bounded number of them.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, str], tuple[int, float]] = {}
        self._lock = threading.Lock()

    def status(self, authorization: str, path: str) -> int:
        """Give the HTTP status for a request: 200, 401 (nobody knows who it is), 403, or 503 (nobody can be asked)."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > _LONGEST_TOKEN:
            return 401
        now = time.monotonic()
        with self._lock:
            found = self._known.get((token, path))
            if found is not None and found[1] > now:
                return found[0]
        try:
            status = self._ask(token, path)
        except (ApiError, msgspec.MsgspecError):
            return 503
        with self._lock:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[token, path] = status, now + KNOWN_SECONDS
        return status

    def _ask(self, token: str, path: str) -> int:
        review = self._review(_TOKENS, "authentication.k8s.io/v1", "TokenReview", {"token": token})
        if not review.authenticated:
            return 401
        user = review.user
        spec = {
            "user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra,
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }  # fmt: skip
        access = self._review(_ACCESS, "authorization.k8s.io/v1", "SubjectAccessReview", spec)
        return 200 if access.allowed else 403

    def _review(self, path: str, version: str, kind: str, spec: dict[str, Any]) -> _Status:
        answer = self._client.create(path, {"apiVersion": version, "kind": kind, "spec": spec})
        return decode(answer, _Review).status
