"""The console behind its pages: a source, and what is played of the cluster that it shows."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from typing import Any, Final

from tenure.model.cluster import Cluster
from tenure.web.heap import share_one_heap
from tenure.web.playing.player import MOST_WAITING, BusyError, FailedError, Player
from tenure.web.sources.picture import Picture
from tenure.web.sources.source import ConsoleSource

KEPT: Final = 64
"""Answers that are kept."""

RENEWED: Final = 5.0
"""Seconds after which what is played of a live cluster is played anew, at least."""

MANY: Final = 5_000
"""Workloads from which on no page waits for what is played, that is played anew after a minute only, and one process
plays all of it, so that the cluster is there once."""

RENEWED_MANY: Final = 60.0

PATIENCE: Final = 2.0
"""Seconds that a page waits for what is played; where it takes longer, the page says so and is renewed."""


class Console:
    """One source, with what is played of it. ``played`` counts answers that came too late for the page that asked."""

    def __init__(self, source: ConsoleSource, player: Player | None = None) -> None:
        share_one_heap()  # before its threads begin
        self.source = source
        self.player = Player() if player is None else player
        self.shares_player = Player()
        self.played = 0
        self._answers: OrderedDict[tuple[Any, ...], tuple[Cluster, Future[Any], float]] = OrderedDict()
        self._last: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._late: set[Future[Any]] = set()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(max_workers=3 * MOST_WAITING, thread_name_prefix="console-plays")
        self._deep: tuple[float, Cluster] | None = None
        self._pictures: OrderedDict[int, Picture] = OrderedDict()

    @property
    def version(self) -> int:
        """Number of the present state: it changes whenever a page may look different."""
        return self.source.version * 1_000_003 + self.played

    def picture(self, at: int | None = None) -> Picture:
        """Give the cluster at a moment; a few earlier moments are kept."""
        if at is None:
            return self.source.picture()
        with self._lock:
            found = self._pictures.get(at)
        if found is None:
            found = self.source.picture(at)
            with self._lock:
                self._pictures[at] = found
                while len(self._pictures) > KEPT // 8:
                    self._pictures.popitem(last=False)
        return found

    @staticmethod
    def is_large(picture: Picture) -> bool:
        """Whether no page waits for what is played of it."""
        return len(picture.cluster.workloads) > MANY

    def deep(self, picture: Picture) -> Cluster:
        """Give the cluster of which is played: of a live one, the same for a few seconds, and while it is being played.

        Where playing takes longer than the cluster takes to change, what was played last is shown until the next is
        there; were the cluster another by then, nothing would ever be.
        """
        if not self.source.is_live or picture is not self.source.picture():
            return picture.cluster
        with self._lock:
            now = time.monotonic()
            renewed = RENEWED_MANY if self.is_large(picture) else RENEWED
            old = None if self._deep is None else self._deep[1]
            if self._deep is None or (now - self._deep[0] > renewed and not self._is_played(old)):
                self._deep = now, picture.cluster
                for key in [key for key, (cluster, _, _) in self._answers.items() if cluster is old]:
                    del self._answers[key]
            return self._deep[1]

    def _is_played(self, cluster: Cluster | None) -> bool:
        return any(of is cluster and not future.done() for of, future, _ in self._answers.values())

    def ask(self, picture: Picture, task: str, *arguments: Any, wait: float | None = None) -> Any | None:
        """Give what is played of a cluster, or None where that takes longer than ``wait`` seconds.

        Without ``wait``, nobody waits for what is played of a large cluster. Of a live one, what was played last is
        given where the newest is not there in time.

        Raises
        ------
        BusyError
            Too many ask at once.
        FailedError
            It could not be played; after a minute it is tried again.
        WrongError
            As `Player.ask` does.
        """
        cluster = self.deep(picture)
        future = self._future(cluster, task, arguments)
        if wait is None:
            wait = 0.0 if self.is_large(picture) else PATIENCE
        name = (task, repr(arguments))
        is_present = self.source.is_live and self._deep is not None and cluster is self._deep[1]
        try:
            return future.result(timeout=0.0 if is_present and name in self._last else wait)
        except FailedError as error:
            failed = FailedError(str(error))
            with self._lock:
                failed.last = self._last.get(name) if is_present else None
            raise failed from error
        except BusyError:
            pass
        except NotYetError:
            with self._lock:
                if not future.done():
                    self._late.add(future)
        with self._lock:
            return self._last.get(name) if is_present else None

    def _future(self, cluster: Cluster, task: str, arguments: tuple[Any, ...]) -> Future[Any]:
        key = (id(cluster), task, repr(arguments))
        with self._lock:
            known = self._answers.get(key)
            if known is not None and not (_failed(known[1]) and time.monotonic() - known[2] > RENEWED_MANY):
                self._answers.move_to_end(key)
                return known[1]
            if sum(not future.done() for _, future, _ in self._answers.values()) >= KEPT // 2:
                raise BusyError("too many plans are being played; try again in a moment")
            player = self.shares_player if task == "shares" and len(cluster.workloads) <= MANY else self.player
            future = self._threads.submit(player.ask, cluster, task, *arguments)
            self._answers[key] = cluster, future, time.monotonic()
            while len(self._answers) > KEPT:
                self._drop_oldest()
        future.add_done_callback(lambda done: self._note(done, cluster, (task, repr(arguments))))
        return future

    def _drop_oldest(self) -> None:
        for key, (_, future, _) in self._answers.items():
            if future.done():
                del self._answers[key]
                return
        self._answers.popitem(last=False)

    def _note(self, future: Future[Any], cluster: Cluster, name: tuple[str, str]) -> None:
        """Note what was played: pages that were made without it are to be made anew."""
        with self._lock:
            is_present = self.source.is_live and self._deep is not None and cluster is self._deep[1]
            if is_present and not future.cancelled() and future.exception() is None:
                self._last[name] = future.result()
                self._last.move_to_end(name)
                while len(self._last) > KEPT:
                    self._last.popitem(last=False)
            self.played += future in self._late
            self._late.discard(future)

    def close(self) -> None:
        """End what is being played, and let go of the source."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.player.close()
        self.shares_player.close()
        self.source.close()


def _failed(future: Future[Any]) -> bool:
    return future.done() and (future.cancelled() or isinstance(future.exception(), (BusyError, FailedError)))
