"""List and watch of one kind of object: resumed where it broke, listed anew where that is not possible.

Whatever happens to the stream, `Reflector` tells its sink of each object's last state, in order; after a new list it
also tells of what is no longer there. A sink that has been told of a complete list is *in sync*.

An object that cannot be read, whatever stands in it, is told of and passed over; it stays as it was known before. It
never holds up the others, nor the watch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from tenure.clusters.kubernetes.api import ListMeta, Meta, WatchError, WatchEvent
from tenure.clusters.kubernetes.bounded import TOO_DEEP, brief, shallow
from tenure.clusters.kubernetes.client.requests import ApiError, Client, backoff
from tenure.clusters.kubernetes.client.watch_health import WatchHealth
from tenure.clusters.kubernetes.decoding import decode, decoder_of
from tenure.model.documents.collector import collector_paused

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

_FORBIDDEN = 403
_GONE = 410
_REFUSED = frozenset({_FORBIDDEN, 404})
_EXPIRED = frozenset({"Expired", "Gone", "ResourceExpired"})


class EventHandler(Protocol[T_contra]):
    """A receiver of what a watch reports. Keys are namespace and name."""

    def put(self, item: T_contra) -> None:
        """Take an object as it is now."""

    def drop(self, key: tuple[str, str]) -> None:
        """An object is gone."""

    def keys(self) -> list[tuple[str, str]]:
        """Give the keys of all objects that are known."""


class WatchReports(NamedTuple):
    """Who is told of each object that cannot be read, and of what broke a watch (its path) and should not."""

    unreadable: Callable[[Meta, str], None] = lambda _meta, _why: None
    failed: Callable[[str, BaseException], None] = lambda _path, _error: None


class Reflector(Generic[T]):
    """The thread that keeps an event handler in step with the objects under a path of the API.

    ``synced`` is set once the sink has been told of a complete list; ``changed`` is called after each change. What is
    ``optional`` counts as none where it may not be read. ``accept`` says in what form objects are asked for, with a
    place where lists are told from single ones.
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
        reports: WatchReports | None = None,
    ) -> None:
        self.client = client
        self.path = path
        self.reports = reports or WatchReports()
        self.sink = sink
        self.changed = changed
        self.query = dict(query or {})
        self.optional = optional
        self.accept = ""
        self.synced = threading.Event()
        self.version = ""
        self.lists = 0
        self._stopped = threading.Event()
        self.health = WatchHealth(self._stopped)
        self._end_stream: Callable[[], None] = _nothing
        self._cut = False
        self._decode_page = decoder_of(_Page).decode
        self._decode_item = decoder_of(kind).decode
        self._decode_event = decoder_of(WatchEvent).decode
        self._thread = threading.Thread(target=self._run, name=f"watch {path}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and have the server end its part: a watch that is left open costs both sides each event."""
        self._stopped.set()
        self._end_stream()

    def _opened(self, end_stream: Callable[[], None]) -> None:
        self.health.works()
        self._end_stream = end_stream
        if self._stopped.is_set():  # while the server was asked: whoever stopped it had nothing to end
            end_stream()

    def _run(self) -> None:
        attempt = 0
        while not self._stopped.is_set():
            try:
                if not self.version:
                    self._list()
                self._watch()
                attempt = 0
                self.health.works()
            except _ExpiredError:
                self.version = ""
            except ApiError as error:
                if not (self.optional and error.status in _REFUSED):
                    self.health.fails(str(error), is_forbidden=error.status == _FORBIDDEN)
                if error.status == _GONE:
                    self.version = ""
                if self.optional and error.status in _REFUSED and not self.synced.is_set():
                    self.synced.set()
                    self._stopped.wait(REFUSED_SECONDS)
                self._stopped.wait(backoff(attempt, error.retry_after))
                attempt += 1
            except Exception as error:  # noqa: BLE001  a line that was cut off, or a bug: the watch must not end silently
                self.health.fails(brief(error))
                self.reports.failed(self.path, error)
                self.version = ""
                self._stopped.wait(backoff(attempt))
                attempt += 1

    def _list(self) -> None:
        before = set(self.sink.keys())
        version = ""
        for page in self._pages():
            with collector_paused():
                for raw in page.items or ():
                    key = self._put(raw)
                    before.discard(key)
            version = page.metadata.resource_version
        for key in sorted(before):
            self.sink.drop(key)
        self.version = version
        self.lists += 1
        self.synced.set()
        self.health.works()
        self.changed()

    def _put(self, raw: msgspec.Raw) -> tuple[str, str]:
        """Take one object; one that cannot be read costs nothing but itself. Gives its namespace and name."""
        try:
            item = self._decode_item(raw)
            self.sink.put(item)
            if self._cut and TOO_DEEP in bytes(raw):
                self.reports.unreadable(item.metadata, "nests too deep; what is deeper is not read")
        except Exception as error:  # noqa: BLE001  whatever stands in one object must not hold up the others
            meta = _meta_of(raw)
            self.reports.unreadable(meta, f"cannot be read: {brief(error)}")
            return meta.namespace, meta.name
        return item.metadata.namespace, item.metadata.name

    def _pages(self) -> Iterator[Any]:
        query: dict[str, str | int] = {**self.query, "limit": PAGE}
        while True:
            page = self._page(self.client.get(self.path, accept=self.accept.format("List"), **query))
            yield page
            if not page.metadata.continue_:
                return
            query["continue"] = page.metadata.continue_

    def _page(self, data: bytes) -> Any:
        try:
            page, self._cut = self._decode_page(data), False
        except RecursionError:
            page, self._cut = self._decode_page(shallow(data)), True
        return page

    def _event(self, line: bytes) -> WatchEvent:
        try:
            event, self._cut = self._decode_event(line), False
        except RecursionError:
            event, self._cut = self._decode_event(shallow(line)), True
        return event

    def _watch(self) -> None:
        query: dict[str, str | int] = {
            **self.query, "watch": 1, "allowWatchBookmarks": "true", "resourceVersion": self.version,
            "timeoutSeconds": WATCH_SECONDS,
        }  # fmt: skip
        for line in self.client.stream(self.path, query, SILENCE_SECONDS, self._opened, self.accept.format("")):
            if self._stopped.is_set():
                return
            self._take(self._event(line))

    def _take(self, event: WatchEvent) -> None:
        if event.type == "ERROR":
            error = decode(event.object, WatchError)
            if error.code == _GONE or error.reason in _EXPIRED:
                raise _ExpiredError
            raise ApiError(error.code, error.reason, error.message)
        meta = _meta_of(event.object)
        if _is_before(meta.resource_version, self.version):
            return  # told before
        if event.type == "DELETED":
            self.sink.drop((meta.namespace, meta.name))
        elif event.type != "BOOKMARK":
            self._put(event.object)
        self.version = meta.resource_version or self.version
        if event.type != "BOOKMARK":
            self.changed()


def _nothing() -> None:
    pass


def _is_before(version: str, known: str) -> bool:
    """Whether a version is not newer than one that was heard of (versions are numbers that grow)."""
    return version.isdigit() and known.isdigit() and int(version) <= int(known)


class _ExpiredError(Exception):
    """The version to resume from is too old."""


class _Page(msgspec.Struct):
    metadata: ListMeta
    items: list[msgspec.Raw] | None  # null where only metadata were asked for and there is nothing


class _Identity(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Headed(msgspec.Struct):
    metadata: _Identity = msgspec.field(default_factory=_Identity)


_HEAD = decoder_of(_Headed).decode


def _meta_of(raw: msgspec.Raw) -> Meta:
    """Give an object's metadata, or as much as tells which it is, where the rest of it cannot be read."""
    try:
        known = _HEAD(raw).metadata
    except msgspec.MsgspecError:
        return Meta()
    return Meta(known.name, known.namespace, known.uid, known.resource_version)
