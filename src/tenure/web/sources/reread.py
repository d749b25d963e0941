"""A history that is gone through again where it has changed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tenure.history import open_history
from tenure.history.connect import name_of
from tenure.history.reading.views import version_of_content
from tenure.history.scope import EVERYTHING_THERE, Scope
from tenure.web.sources.passed import Passed, gone_through

REREAD: Final = 10.0
"""Seconds after which a store that has changed is gone through again."""


class RereadHistory:
    """A history that was gone through, and is again, beside all that is asked for, once it has changed.

    ``whose``: the cluster and node pool whose history is shown, where the store has that of several; ``may_begin``:
    there need not be records of it yet.
    """

    def __init__(self, address: str, whose: Scope = EVERYTHING_THERE, *, may_begin: bool = False) -> None:
        self.name = name_of(address)
        self._store = open_history(address)
        self._whose, self._may_begin = whose, may_begin
        self._lock = threading.RLock()
        self._looking = threading.Lock()
        self._number = 1
        self._looked = time.monotonic()
        self._trouble = ""
        self._closed = False
        self._passed = self._pass()

    def _pass(self) -> Passed:
        """Go through one node pool of one cluster; once there are records of one, others that come change nothing."""
        if not self._store.scope.cluster:
            self._store.see(self._whose, alone=True, may_begin=self._may_begin)
        return gone_through(self._store)

    @contextmanager
    def _current(self) -> Iterator[Passed]:
        """Give the last pass."""
        with self._lock:
            yield self._passed

    def _look_again(self) -> None:
        """Go through the store again where it has changed; whoever asks meanwhile is shown what was there."""
        if version_of_content(self._store) == self._passed.content:
            return
        made = self._pass()
        with self._lock:
            self._passed = made
            self._number += 1

    @property
    def version(self) -> int:
        """Number of the present state. Nobody waits for it; whether the store has changed is found out beside."""
        if time.monotonic() - self._looked > REREAD and self._looking.acquire(blocking=False):
            self._looked = time.monotonic()
            looker = threading.Thread(target=self._look_beside, name="console-rereads", daemon=True)
            looker.start()
        return self._number

    def _look_beside(self) -> None:
        trouble = ""
        try:
            if not self._closed:
                self._look_again()
        except Exception as error:  # noqa: BLE001  the page goes on with what was read last, and says so
            trouble = f"the history could not be read again: {type(error).__name__}: {error}"
        finally:
            if trouble != self._trouble:
                self._trouble = trouble
                self._number += 1
            self._looked = time.monotonic()
            self._looking.release()

    def close(self) -> None:
        """Give the store back, once nobody reads it any more."""
        self._closed = True
        with self._looking:
            self._store.close()
