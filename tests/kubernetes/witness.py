"""Who watches a cluster beside the scheduler, by the standard library alone, and keeps all that ever happened.

Versions are one count for all kinds of objects, so that what was seen by several watches has one order: what had been
written when something happened can be told afterwards.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import urllib.error
import urllib.request
from typing import Any, NamedTuple, Self

from tools.controlplane.client import ApiError, Client
from tools.controlplane.plane import ControlPlane
from tools.controlplane.process import wait_for

_EXPIRED = 410
_SECONDS = 30


class Change(NamedTuple):
    """An object as it was from a version on; ``gone`` if that was its end."""

    version: int
    kind: str
    item: dict[str, Any]
    gone: bool


_BREAKS = (OSError, ValueError, ApiError, http.client.HTTPException)


class Witness:
    """Watches collections from now on. Use it as a context; ``changes`` gives what it saw.

    ``collections`` are paths by the name that their changes have as kind. ``gaps`` are first and last version of the
    times of which it knows no more than what came of them: a server that was restarted does not tell.
    """

    def __init__(self, plane: ControlPlane, collections: dict[str, str]) -> None:
        self._plane = plane
        self._collections = collections
        self._trust = ssl.create_default_context(cafile=str(plane.authority))
        self._ended = threading.Event()
        self._changes: list[Change] = []
        self._there: dict[str, dict[str, dict[str, Any]]] = {}
        self.gaps: list[tuple[int, int]] = []
        self._mistakes: list[BaseException] = []
        self._threads = [threading.Thread(target=self._follow, args=pair, daemon=True) for pair in collections.items()]

    def __enter__(self) -> Self:
        """Begin: whatever happens from now on is seen."""
        for thread in self._threads:
            thread.start()
        wait_for(lambda: self._mistakes or len(self._there) == len(self._threads), "the witness to begin")
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._ended.set()

    def changes(self) -> list[Change]:
        """Give all that was seen, in its order, once that is all that is there now."""
        client = self._plane.client()
        for kind, path in self._collections.items():
            wait_for(lambda: self._mistakes or self._is_level(client, kind, path), f"the witness of {kind}")  # noqa: B023
        assert not self._mistakes, self._mistakes
        return sorted(self._changes, key=lambda change: change.version)

    def _is_level(self, client: Client, kind: str, path: str) -> bool:
        there = {_uid(item): _version(item) for item in client.get(path)["items"]}
        return there == {uid: _version(item) for uid, item in self._there[kind].copy().items()}

    def _follow(self, kind: str, path: str) -> None:
        version = missed_since = ""
        while not self._ended.is_set():
            try:
                if not version:
                    version = self._list(kind, path)
                    self.gaps += [(int(missed_since), int(version))] if missed_since else []
                for event in self._events(path, version):
                    version = self._take(kind, event)
            except urllib.error.HTTPError as error:
                if error.code == _EXPIRED:
                    missed_since, version = version, ""
                self._ended.wait(0.2)
            except _BREAKS:  # the server is away, or a line was cut off
                self._ended.wait(0.2)
            except BaseException as error:
                self._mistakes.append(error)
                raise

    def _list(self, kind: str, path: str) -> str:
        listed = self._plane.client().get(path)
        version: str = listed["metadata"]["resourceVersion"]
        before = self._there.get(kind, {}).copy()
        for item in listed["items"]:
            known = before.pop(_uid(item), None)
            if known is None or _version(known) != _version(item):
                self._changes.append(Change(int(_version(item)), kind, item, gone=False))
        self._changes += [Change(int(version), kind, item, gone=True) for item in before.values()]
        self._there[kind] = {_uid(item): item for item in listed["items"]}
        return version

    def _events(self, path: str, version: str) -> Any:
        query = f"watch=1&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={_SECONDS}"
        request = urllib.request.Request(
            f"{self._plane.server}{path}?{query}",
            headers={"Authorization": f"Bearer {self._plane.credentials.tokens['admin']}"},
        )
        with urllib.request.urlopen(request, timeout=2 * _SECONDS, context=self._trust) as answer:
            for line in answer:
                yield json.loads(line)

    def _take(self, kind: str, event: dict[str, Any]) -> str:
        item = event["object"]
        if event["type"] == "ERROR":
            raise urllib.error.HTTPError("", item.get("code", 0), item.get("message", ""), None, None)  # type: ignore[arg-type]
        if event["type"] == "DELETED":
            self._there[kind].pop(_uid(item), None)
        elif event["type"] != "BOOKMARK":
            self._there[kind][_uid(item)] = item
        if event["type"] != "BOOKMARK":
            self._changes.append(Change(int(_version(item)), kind, item, gone=event["type"] == "DELETED"))
        return _version(item)


def _uid(item: dict[str, Any]) -> str:
    uid: str = item["metadata"]["uid"]
    return uid


def _version(item: dict[str, Any]) -> str:
    version: str = item["metadata"]["resourceVersion"]
    return version
