"""Bindings under way: a pod counts as bound from the moment at which that is asked for, and nobody waits for answers.

The next plan is made while the API server still works on the last one's bindings. What it refuses waits again at once;
where nobody knows whether it was done, the room stays taken for a moment, in which the watch may tell.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from math import inf
from typing import Final

from tenure.clusters.kubernetes.cache.handlers import ASSUMED_SECONDS, PodStore
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.engine.plan import PlanStep

DOUBT_SECONDS: Final = 1.0
"""For so long a pod counts as bound of which it is unknown whether it is."""

_OVERLOADED: Final = 429


class Bindings:
    """The bindings that were begun, and what has come of them since that was last asked.

    Parameters
    ----------
    pods
        Where a pod is assumed to be bound.
    executor
        What makes the requests, several at a time.
    most
        So many may be under way while something else is done.
    changed
        Called when a binding failed: then its pod has to be decided about anew.
    """

    def __init__(self, pods: PodStore, executor: Executor, most: int, changed: Callable[[], None]) -> None:
        self._pods = pods
        self._executor = executor
        self._most = most
        self._changed = changed
        self._ended = threading.Condition()
        self._under_way = 0
        self._done: list[PlanStep] = []
        self._failed: list[tuple[PlanStep, ApiError]] = []

    def begin(
        self, step: PlanStep, pod: PodRecord, then: PodRecord, write: Callable[[PlanStep], ApiError | None]
    ) -> None:
        """Let a pod count as bound, and ask for it; ``write`` does so, and gives what was answered if it failed.

        It counts as bound for as long as there is no answer, and then for as long as any write is believed.
        """
        self._pods.assume(pod, then, inf)
        with self._ended:
            self._under_way += 1
        future = self._executor.submit(write, step)
        future.add_done_callback(lambda ended: self._settle(step, pod, ended))

    def _settle(self, step: PlanStep, pod: PodRecord, ended: Future[ApiError | None]) -> None:
        error, is_asked = None, True
        try:
            error = ended.result()
        except Exception:  # noqa: BLE001  the lease is lost, or this process ends: it was not asked for
            is_asked = False
        is_bound = is_asked and error is None
        if is_bound:
            self._pods.believe(pod, ASSUMED_SECONDS)
        else:
            self._pods.doubt(pod, DOUBT_SECONDS if error is not None and _is_unclear(error) else 0.0)
        with self._ended:
            self._under_way -= 1
            if error is not None:
                self._failed.append((step, error))
            elif is_asked:
                self._done.append(step)
            self._ended.notify_all()
        if not is_bound:
            self._changed()

    def wait(self, left: int | None = None) -> None:
        """Wait until no more than ``left`` are under way; without that, as many as may be."""
        least = self._most if left is None else left
        with self._ended:
            self._ended.wait_for(lambda: self._under_way <= least)

    def ended(self) -> tuple[list[PlanStep], list[tuple[PlanStep, ApiError]]]:
        """Give what was done and what failed since this was last asked, each of them once."""
        with self._ended:
            done, failed = self._done, self._failed
            self._done, self._failed = [], []
        return done, failed


def _is_unclear(error: ApiError) -> bool:
    """Whether it may have been done, or the server has to be left in peace for a moment."""
    return not error.is_refusal or error.status == _OVERLOADED
