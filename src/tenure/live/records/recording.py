"""Makes the records of cycles beside the loop: what is written of a cycle costs the next one nothing.

A thread of its own is shown the cycles in their order, as pictures that later cycles do not change. Where more of them
wait than are kept, the loop waits until one is recorded: that bounds the memory. A cycle takes longer than its records,
so it can only be where tens of thousands of workloads are found for the first time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Final, TypeVar

from tenure.history.record import Draft
from tenure.live.records.recorded_cycle import RecordedCycle
from tenure.live.records.recorder import LiveRecorder

Result = TypeVar("Result")

MOST: Final = 64
"""Cycles that wait to be recorded, about."""

_TOGETHER: Final = 0.02
"""Seconds after a cycle in which others are waited for: to wake a thread for each costs the loop, and each a write."""

_PAUSE: Final = 0.01


class Recording:
    """The thread that shows cycles to a recorder, and hands on what it makes of them.

    Parameters
    ----------
    recorder
        Makes the records; no other thread uses it once this is started.
    add
        Takes them.
    failed
        Hears of a cycle of which no records could be made.
    """

    def __init__(
        self, recorder: LiveRecorder, add: Callable[[Sequence[Draft]], None], failed: Callable[[BaseException], None]
    ) -> None:
        self._recorder = recorder
        self._add, self._failed = add, failed
        self._waiting: SimpleQueue[Callable[[], Sequence[Draft]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def begin(self, now: int, identity: str) -> None:
        """Record that this process leads from now on."""
        self._waiting.put(lambda: self._recorder.begin(now, identity))

    def give_again(self) -> None:
        """Tell again what can be read off the cluster: records were dropped."""
        self._waiting.put(self._again)

    def cycle(self, cycle: RecordedCycle) -> None:
        """Record a cycle."""
        while self._waiting.qsize() >= MOST and self._thread.is_alive():
            time.sleep(_PAUSE)
        self._waiting.put(lambda: self._recorder.cycle(cycle))

    def stop(self) -> None:
        """Record what waits, and end."""
        if self._thread.is_alive():
            self._waiting.put(None)
            self._thread.join()
        self._recorder.stop()

    def _run(self) -> None:
        while (make := self._waiting.get()) is not None:
            time.sleep(_TOGETHER)
            drafts = [*self._made(make)]
            while not self._waiting.empty():
                make = self._waiting.get()
                if make is None:
                    self._waiting.put(None)
                    break
                drafts += self._made(make)
            self._alone(lambda: self._add(drafts))  # noqa: B023  called at once

    def _made(self, make: Callable[[], Sequence[Draft]]) -> Sequence[Draft]:
        return self._alone(make) or ()

    def _alone(self, do: Callable[[], Result]) -> Result | None:
        """Do something; a bug in what is only told must end neither a cycle nor this thread."""
        try:
            return do()
        except Exception as error:  # noqa: BLE001  see above
            self._failed(error)
            return None

    def _again(self) -> Sequence[Draft]:
        self._recorder.give_again()
        return ()
