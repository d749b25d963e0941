"""The console behind its pages: a source, and what is played of the cluster that it shows."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from typing import Any, Final

from tenure.model.cluster import Cluster
from tenure.web.picture import Picture
from tenure.web.player import BusyError, Player
from tenure.web.source import ConsoleSource

KEPT: Final = 64
"""Answers that are kept."""

RENEWED: Final = 5.0
"""Seconds after which what is played of a live cluster is played anew, at least."""

MANY: Final = 5_000
"""Workloads from which on no page waits for what is played, and that is played anew after a minute only."""

RENEWED_MANY: Final = 60.0

PATIENCE: Final = 2.0
"""Seconds that a page waits for what is played; where it takes longer, the page says so and is renewed."""


class Console:
    """One source, with what is played of it. ``played`` counts answers that came too late for the page that asked."""

    def __init__(self, source: ConsoleSource, player: Player | None = None) -> None:
        self.source = source
        self.player = Player() if player is None else player
        self.shares_player = Player()
        self.played = 0
        self._answers: OrderedDict[tuple[Any, ...], tuple[Cluster, Future[Any], float]] = OrderedDict()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="console-plays")
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

    def deep(self, picture: Picture) -> Cluster:
        """Give the cluster of which is played: of a live one, the same for a few seconds."""
        if not self.source.is_live or picture is not self.source.picture():
            return picture.cluster
        with self._lock:
            now = time.monotonic()
            renewed = RENEWED_MANY if len(picture.workloads) > MANY else RENEWED
            if self._deep is None or now - self._deep[0] > renewed:
                self._deep = now, picture.cluster
            return self._deep[1]

    def ask(self, picture: Picture, task: str, *arguments: Any, wait: float = PATIENCE) -> Any | None:
        """Give what is played of a cluster, or None where that takes longer than ``wait`` seconds, or too long at all.

        Raises
        ------
        BusyError
            Too many ask at once.
        WrongError
            As `Player.ask` does.
        """
        cluster = self.deep(picture)
        future = self._future(cluster, task, arguments)
        if wait == PATIENCE and len(picture.workloads) > MANY:
            wait = 0.0
        try:
            return future.result(timeout=wait)
        except (NotYetError, BusyError):
            return None

    def _future(self, cluster: Cluster, task: str, arguments: tuple[Any, ...]) -> Future[Any]:
        key = (id(cluster), task, repr(arguments))
        with self._lock:
            known = self._answers.get(key)
            if known is not None and not (_failed(known[1]) and time.monotonic() - known[2] > RENEWED_MANY):
                self._answers.move_to_end(key)
                return known[1]
            if sum(not future.done() for _, future, _ in self._answers.values()) >= KEPT // 2:
                raise BusyError("too many plans are being played; try again in a moment")
            player = self.shares_player if task == "shares" else self.player
            future = self._threads.submit(player.ask, cluster, task, *arguments)
            self._answers[key] = cluster, future, time.monotonic()
            while len(self._answers) > KEPT:
                self._drop_oldest()
        future.add_done_callback(self._note)
        return future

    def _drop_oldest(self) -> None:
        for key, (_, future, _) in self._answers.items():
            if future.done():
                del self._answers[key]
                return
        self._answers.popitem(last=False)

    def _note(self, _: Future[Any]) -> None:
        self.played += 1

    def close(self) -> None:
        """End what is being played, and let go of the source."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.player.close()
        self.shares_player.close()
        self.source.close()


def _failed(future: Future[Any]) -> bool:
    return future.done() and (future.cancelled() or isinstance(future.exception(), BusyError))
