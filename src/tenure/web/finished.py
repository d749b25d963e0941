"""Finished answers: each is made once for all who may see the same, packed once, and known by a tag."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from starlette.datastructures import Headers
from starlette.responses import Response

KEPT_BYTES: Final = 64 * 2**20
"""Bytes of finished answers that are kept."""

PACKED_FROM: Final = 2000
"""Bytes from which on an answer is packed."""

UNSETTLED_SECONDS: Final = 1.0
"""So long an answer is kept in which something is still being worked out."""


class FinishedAnswer(NamedTuple):
    """An answer as it is sent: plain, packed where that is shorter, its kind, its tag, and until when it holds."""

    body: bytes
    packed: bytes | None
    kind: str
    tag: str
    until: float | None = None
    """In monotonic seconds; None: as long as nothing changes."""

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return len(self.body) + len(self.packed or b"")

    def sent(self, asked: Headers) -> Response:
        """Give the response: the whole answer, or that whoever asks has it already, as the request's headers say."""
        headers = {"cache-control": "private, no-cache", "etag": self.tag, "vary": "Accept-Encoding"}
        if self.tag in asked.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if self.packed is not None and "gzip" in asked.get("accept-encoding", ""):
            return Response(self.packed, media_type=self.kind, headers={**headers, "content-encoding": "gzip"})
        return Response(self.body, media_type=self.kind, headers={**headers, "content-encoding": "identity"})


def finished(body: bytes, kind: str, *, settled: bool = True) -> FinishedAnswer:
    """Pack an answer and name it by what it says; one that is not ``settled`` holds for a moment only."""
    packed = gzip.compress(body, compresslevel=4, mtime=0) if len(body) >= PACKED_FROM else None
    tag = f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    return FinishedAnswer(body, packed, kind, tag, None if settled else time.monotonic() + UNSETTLED_SECONDS)


class FinishedAnswers:
    """Finished answers, the ones asked for last; what many ask for at a time is made once."""

    def __init__(self, threads: int, name: str, most: int = KEPT_BYTES) -> None:
        self.most = most
        self.size = 0
        self._kept: OrderedDict[Hashable, FinishedAnswer] = OrderedDict()
        self._lock = threading.Lock()
        self._making: dict[Hashable, asyncio.Future[FinishedAnswer | None]] = {}
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=name)

    def kept(self) -> list[tuple[Hashable, FinishedAnswer]]:
        """Give all that are kept, with what they are kept under."""
        with self._lock:
            return list(self._kept.items())

    async def get(self, key: Hashable, make: Callable[[], FinishedAnswer | None]) -> FinishedAnswer | None:
        """Give an answer as it was made, if it still holds, else let a thread make it; None where there is none.

        Raises
        ------
        Exception
            What ``make`` raises, to all who wait for it.
        """
        found = self._found(key)
        if found is not None:
            return found
        making = self._making.get(key)
        if making is None:
            making = asyncio.get_running_loop().run_in_executor(self._threads, make)
            self._making[key] = making
            making.add_done_callback(lambda done: self._made(key, done))
        return await asyncio.shield(making)

    async def found(self, key: Hashable) -> FinishedAnswer | None:
        """Give an answer that is finished and still holds, or is just being made; None where there is neither."""
        making = self._making.get(key)
        if making is None:
            return self._found(key)
        try:
            return await asyncio.shield(making)
        except Exception:  # noqa: BLE001  whoever asks for it to be made is told what is wrong
            return None

    def _found(self, key: Hashable) -> FinishedAnswer | None:
        with self._lock:
            found = self._kept.get(key)
            if found is None or (found.until is not None and time.monotonic() > found.until):
                return None
            self._kept.move_to_end(key)
            return found

    def _made(self, key: Hashable, done: asyncio.Future[FinishedAnswer | None]) -> None:
        del self._making[key]
        made = None if done.cancelled() or done.exception() is not None else done.result()
        if made is None:
            return
        with self._lock:
            old = self._kept.pop(key, None)
            self.size += made.size - (old.size if old else 0)
            self._kept[key] = made
            while self.size > self.most and len(self._kept) > 1:
                _, gone = self._kept.popitem(last=False)
                self.size -= gone.size

    def close(self) -> None:
        """Begin nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
