"""List and watch of one kind of object: resumed where it broke, listed anew where that is not possible.

Whatever happens to the stream, `Reflector` tells its sink of each object's last state, in order; after a new list it
also tells of what is no longer there. A sink that has been told of a complete list is *in sync*.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from tenure.clusters.kubernetes.api import ListMeta, WatchError, WatchEvent
from tenure.clusters.kubernetes.client.requests import ApiError, Client, backoff
from tenure.model.collector import collector_paused

T = TypeVar("T", bound=Any)
T_contra = TypeVar("T_contra", contravariant=True)

PAGE = 1000
"""Objects of one page of a list."""

WATCH_SECONDS = 300
"""After so long the server ends a watch, and it is resumed: a connection that died silently is noticed."""

SILENCE_SECONDS = 90.0
"""Bookmarks come about once a minute; a stream that is silent for longer is taken to be broken."""

REFUSED_SECONDS = 60.0
"""After so long it is asked again for what may not be read, or is not there."""

_GONE = 410
_REFUSED = frozenset({403, 404})
_EXPIRED = frozenset({"Expired", "Gone", "ResourceExpired"})


class EventHandler(Protocol[T_contra]):
    """Who is told what there is. Keys are namespace and name."""

    def put(self, item: T_contra) -> None:
        """Take an object as it is now."""

    def drop(self, key: tuple[str, str]) -> None:
        """An object is gone."""

    def keys(self) -> list[tuple[str, str]]:
        """Give the keys of all objects that are known."""


class Reflector(Generic[T]):
    """Keeps a sink in step with the objects under a path of the API, in a thread of its own.

    ``synced`` is set once the sink has been told of a complete list; ``lag`` says for how many seconds nothing was
    heard. ``changed`` is called after each change. What is ``optional`` counts as none where it may not be read.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        kind: type[T],
        sink: EventHandler[T],
        changed: Callable[[], None],
        *,
        query: Mapping[str, str | int] | None = None,
        optional: bool = False,
    ) -> None:
        self.client = client
        self.path = path
        self.sink = sink
        self.changed = changed
        self.query = dict(query or {})
        self.optional = optional
        self.synced = threading.Event()
        self.version = ""
        self.lists = 0
        self.error = ""
        self.heard = time.monotonic()
        self._stopped = threading.Event()
        self._decode_page = msgspec.json.Decoder(_page_of(kind)).decode
        self._decode_item = msgspec.json.Decoder(kind).decode
        self._decode_event = msgspec.json.Decoder(WatchEvent).decode
        self._thread = threading.Thread(target=self._run, name=f"watch {path}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End as soon as the stream says something or times out."""
        self._stopped.set()

    @property
    def lag(self) -> float:
        """Seconds since the server was last heard of."""
        return time.monotonic() - self.heard

    def _run(self) -> None:
        attempt = 0
        while not self._stopped.is_set():
            try:
                if not self.version:
                    self._list()
                self._watch()
                attempt, self.error = 0, ""
            except _ExpiredError:
                self.version = ""
            except ApiError as error:
                self.error = str(error)
                if error.status == _GONE:
                    self.version = ""
                if self.optional and error.status in _REFUSED and not self.synced.is_set():
                    self.synced.set()
                    self._stopped.wait(REFUSED_SECONDS)
                self._stopped.wait(backoff(attempt, error.retry_after))
                attempt += 1
            except Exception as error:  # noqa: BLE001  a line that was cut off, or a bug: the watch must not end silently
                self.error = f"{type(error).__name__}: {error}"
                self.version = ""
                self._stopped.wait(backoff(attempt))
                attempt += 1

    def _list(self) -> None:
        before = set(self.sink.keys())
        version = ""
        for page in self._pages():
            with collector_paused():
                for item in page.items:
                    self.sink.put(item)
                    before.discard((item.metadata.namespace, item.metadata.name))
            version = page.metadata.resource_version
        for key in sorted(before):
            self.sink.drop(key)
        self.version = version
        self.lists += 1
        self.synced.set()
        self.changed()

    def _pages(self) -> Iterator[Any]:
        query: dict[str, str | int] = {**self.query, "limit": PAGE}
        while True:
            page = self._decode_page(self.client.get(self.path, **query))
            self.heard = time.monotonic()
            yield page
            if not page.metadata.continue_:
                return
            query["continue"] = page.metadata.continue_

    def _watch(self) -> None:
        query: dict[str, str | int] = {
            **self.query, "watch": 1, "allowWatchBookmarks": "true", "resourceVersion": self.version,
            "timeoutSeconds": WATCH_SECONDS,
        }  # fmt: skip
        for line in self.client.stream(self.path, query, SILENCE_SECONDS):
            if self._stopped.is_set():
                return
            self._take(self._decode_event(line))

    def _take(self, event: WatchEvent) -> None:
        self.heard = time.monotonic()
        if event.type == "ERROR":
            error = msgspec.json.decode(event.object, type=WatchError)
            if error.code == _GONE or error.reason in _EXPIRED:
                raise _ExpiredError
            raise ApiError(error.code, error.reason, error.message)
        item = self._decode_item(event.object)
        if _is_before(item.metadata.resource_version, self.version):
            return  # told before
        if event.type == "DELETED":
            self.sink.drop((item.metadata.namespace, item.metadata.name))
        elif event.type != "BOOKMARK":
            self.sink.put(item)
        self.version = item.metadata.resource_version or self.version
        if event.type != "BOOKMARK":
            self.changed()


def _is_before(version: str, known: str) -> bool:
    """Whether a version is not newer than one that was heard of (versions are numbers that grow)."""
    return version.isdigit() and known.isdigit() and int(version) <= int(known)


class _ExpiredError(Exception):
    """The version to resume from is too old."""


class _Page(msgspec.Struct, Generic[T]):
    metadata: ListMeta
    items: list[T]


def _page_of(kind: type[T]) -> Any:
    return _Page[kind]  # type: ignore[valid-type]
