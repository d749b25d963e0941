"""Evictions that are refused: whom they are about is spared for a while, so that plans are made without it.

A budget that this process does not know, an admission webhook or a fault of the API server may refuse an eviction as
often as it is tried. Each task that is refused is left alone for a time that doubles from refusal to refusal; meanwhile
others are chosen, and whoever asks is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tenure.clusters.record import BROKEN
from tenure.clusters.refusals import REFUSED, note_of
from tenure.engine.plan import Plan
from tenure.live.port import ObjectNote
from tenure.model.cluster import RefusedEviction

FIRST_PAUSE: Final = 2_000_000
LONGEST_PAUSE: Final = 300_000_000
"""µs for which a task is spared at first, and at the most."""

MOST_TASKS: Final = 10_000
LONGEST_MESSAGE: Final = 300

_PASSING: Final = frozenset({0, 401, 404, 409, 502, 503, 504})
"""Answers that say nothing of the eviction itself: something changed meanwhile, or nobody answered."""


@dataclass(slots=True)
class _Spared:
    uid: str
    until: int
    pause: int
    message: str


@dataclass(slots=True)
class RefusedEvictions:
    """The tasks (by workload and name) whose evictions were refused lately."""

    _spared: dict[tuple[str, str], _Spared] = field(default_factory=dict)

    def note(self, outcome: Any, plan: Plan, identities: Mapping[tuple[str, int], str], now: int) -> list[ObjectNote]:
        """Take what came of a plan, its ``failures``; gives what is to be told of them.

        ``identities`` are pods by workload and number of the task.
        """
        refused = {
            (f.workload, f.task): f.error
            for f in outcome.failures
            if f.action == "evict" and (f.error.status not in _PASSING or f.error.reason == BROKEN)
        }
        numbers = {(s.workload, s.task): s.task_index for s in plan.steps if s.action == "evict"}
        notes = []
        for key, error in refused.items():
            uid = identities.get((key[0], numbers.get(key, -1)), "")
            known = self._spared.get(key)
            again = known is not None and known.uid == uid
            pause = min(2 * known.pause, LONGEST_PAUSE) if known is not None and again else FIRST_PAUSE
            message = " ".join(str(error.message).split())[:LONGEST_MESSAGE]
            self._spared[key] = _Spared(uid, now + pause, pause, message)
            told = RefusedEviction(workload=key[0], task=key[1], until=now + pause, message=message)
            notes.append(ObjectNote("workload", key[0], REFUSED, note_of(told)))
        while len(self._spared) > MOST_TASKS:
            self._spared.pop(next(iter(self._spared)))
        return notes

    def at(self, now: int) -> tuple[RefusedEviction, ...]:
        """Give what is spared at ``now``; what was not refused again for a while is forgotten."""
        self._spared = {k: s for k, s in self._spared.items() if now < s.until + 2 * s.pause}
        return tuple(
            RefusedEviction(workload=key[0], task=key[1], until=s.until, message=s.message)
            for key, s in sorted(self._spared.items())
            if now < s.until
        )

    def wake(self, now: int) -> int | None:
        """Give when the next one may be tried again, in µs since the epoch."""
        return min((s.until for s in self._spared.values() if s.until > now), default=None)

    def count(self, now: int) -> int:
        """Give how many are spared."""
        return sum(now < s.until for s in self._spared.values())
