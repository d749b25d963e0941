"""What queues under quota preemption use, cycle by cycle: for previews; nothing is decided by it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tenure.engine.plan import Plan
from tenure.engine.state.session import Session
from tenure.quota.arming import delays
from tenure.quota.usage import TerminatingUsage, used


@dataclass(frozen=True, slots=True)
class QuotaPoint:
    """A point of a track: the values from ``at`` (µs since the epoch) until the next point.

    Amounts by resource, GPUs in milli-GPU.

    ``used`` is what runs, is promised or has not left yet, ``maximum`` the queue's own max in the same resources,
    ``shortfall`` what of the excess cannot be enforced. ``deadline`` (µs since the epoch) is None while not armed.
    """

    at: int
    used: dict[str, int]
    maximum: dict[str, int]
    shortfall: dict[str, int] = field(default_factory=dict)
    deadline: int | None = None

    def says_the_same(self, other: QuotaPoint) -> bool:
        """Whether only the time differs."""
        mine, others = ((p.used, p.maximum, p.shortfall, p.deadline) for p in (self, other))
        return mine == others


@dataclass(slots=True)
class QuotaTrack:
    """A queue over the cycles: a point wherever something changed, and the time of the last cycle."""

    queue: str
    points: list[QuotaPoint] = field(default_factory=list)
    until: int = 0


class QuotaHistory:
    """The keeper of a track for every queue that a deadline could be set for."""

    def __init__(self) -> None:
        self._tracks: dict[str, QuotaTrack] = {}

    def note(self, session: Session, plan: Plan) -> None:
        """Note how things stand after a cycle."""
        settings, queues = session.settings.quota_preemption, session.queues
        armed = {state.queue: state for state in plan.quota}
        delay = delays(queues.queues, settings) if settings.enabled else {}
        if not armed and not any(delay.values()):
            return
        leaving = TerminatingUsage(session)
        for number, queue in enumerate(queues.queues):
            if not queue.max or not (delay.get(queue.name) or queue.name in armed):
                continue
            uses = used(session, leaving, number)
            state = armed.get(queue.name)
            short = dict(state.shortfall) if state is not None else {}
            held = {resource: uses.get(resource, 0) for resource in queue.max}
            point = QuotaPoint(plan.now, held, dict(queue.max), short, state.deadline if state is not None else None)
            track = self._tracks.setdefault(queue.name, QuotaTrack(queue.name))
            track.until = plan.now
            if not track.points or not track.points[-1].says_the_same(point):
                track.points.append(point)

    def tracks(self) -> list[QuotaTrack]:
        """Give the tracks of queues that were armed at some time."""
        return [track for track in self._tracks.values() if any(point.deadline is not None for point in track.points)]
