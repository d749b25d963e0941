"""Bindings that are under way while the next plan is made.

A pod counts as bound from the moment at which its binding begins. Where the API server refuses that, the pod waits
again, as it did before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future

from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.engine.plan import PlanStep

LONG = 0.05
"""Seconds for which nothing else is told because a binding is not answered."""

Answered = tuple[PlanStep, ApiError | None]
"""A binding, and why it was refused, if it was."""


class BindingsUnderWay:
    """The bindings that were begun and are not reported yet, in the order in which they were begun."""

    def __init__(self, pool: Executor, informers: InformerCache) -> None:
        self._pool = pool
        self._informers = informers
        self._begun: list[tuple[PlanStep, Future[ApiError | None]]] = []
        self._judged: set[Future[ApiError | None]] = set()

    def begin(self, bind: Callable[[PlanStep], ApiError | None], steps: Sequence[PlanStep]) -> None:
        """Begin bindings; ``bind`` makes one and gives why it was refused."""
        for step in steps:
            future = self._pool.submit(bind, step)
            future.add_done_callback(lambda _: self._informers.changed.set())
            self._begun.append((step, future))

    def wait(self) -> None:
        """Wait until all were answered."""
        for _, future in self._begun:
            future.exception()

    def wait_a_little(self, urgent: int) -> None:
        """Wait until all were answered, something ``urgent`` came since the last plan, or for long."""
        changed, until = self._informers.changed, time.monotonic() + LONG
        while not self._is_over(urgent) and (left := until - time.monotonic()) > 0:
            changed.clear()
            if not self._is_over(urgent):
                changed.wait(left)

    def is_any_answered(self) -> bool:
        """Whether one that was not reported yet was answered."""
        return any(future.done() for _, future in self._begun)

    def is_any_refused_anew(self) -> bool:
        """Whether one was answered with a refusal since this was last asked: what is decided now may not know of it."""
        refused = {f for _, f in self._begun if f.done() and (f.exception() is not None or f.result() is not None)}
        new, self._judged = refused - self._judged, refused
        return bool(new)

    def answered(self) -> list[Answered]:
        """Give those that were answered since this was last asked; raises what ended one of them."""
        asked = [(step, future, future.done()) for step, future in self._begun]
        self._begun = [(step, future) for step, future, is_done in asked if not is_done]
        return [(step, future.result()) for step, future, is_done in asked if is_done]

    def _is_over(self, urgent: int) -> bool:
        return self._informers.urgent() != urgent or all(future.done() for _, future in self._begun)
