"""A thread that writes to the API server beside the decisions, which do not wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tenure.clusters.kubernetes.client.leader import NotLeaderError

AGAIN_SECONDS = 1.0
"""After a write that failed the next one begins so many seconds later."""


class WritingThread:
    """A thread that calls ``write`` once it was woken, for as long as it is not stopped.

    A write without the lease is left to the leader. Any other error goes to ``failed``, and the thread goes on, after
    ``again`` seconds.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[], None],
        failed: Callable[[BaseException], None],
        again: float = AGAIN_SECONDS,
    ) -> None:
        self._write = write
        self._failed = failed
        self._again = again
        self._there = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def is_stopped(self) -> bool:
        """Whether it was told to end."""
        return self._stopped.is_set()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, seconds: float = 2.0) -> None:
        """End; what is under way is finished within so many seconds, or left."""
        self._stopped.set()
        self._there.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def wake(self) -> None:
        """Say that there is something to write."""
        self._there.set()

    def rest(self, seconds: float) -> None:
        """Wait for so many seconds, or until it is stopped; for ``write`` alone."""
        self._stopped.wait(seconds)

    def _run(self) -> None:
        while self._there.wait() and not self.is_stopped:
            self._there.clear()
            try:
                self._write()
            except NotLeaderError:
                self.rest(self._again)
            except Exception as error:  # noqa: BLE001  no thread ends silently
                self._failed(error)
                self.rest(self._again)
