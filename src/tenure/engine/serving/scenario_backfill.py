"""EASY backfilling while a set is played through: a workload behind the first that does not fit must not delay it.

The same rules as in the ordinary pass (`tenure.engine.serving.backfill`), on a session on which the victims are gone:
they end no more, and what they held is free for the reservation as for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from tenure.engine.serving.backfill import Backfill, ExpectedReleases, ending_of
from tenure.engine.serving.placement import Placer
from tenure.engine.state.notices import notice_of
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState


class ScenarioBackfill(Backfill):
    """The backfilling of one play-through.

    Parameters
    ----------
    session, placer
        As they are once the victims are evicted.
    contender
        The workload for which they are evicted, if there is one: it starts when they have left.
    victims
        Workloads that run no longer, hold less than they did, or were promised another place.
    endings
        Running workloads by expected end, as before; None where they are not kept.
    """

    def __init__(
        self,
        session: Session,
        placer: Placer,
        contender: WorkloadState | None,
        victims: Sequence[WorkloadState],
        endings: ExpectedReleases | None,
    ) -> None:
        super().__init__(session, ExpectedReleases(endings.later if endings is not None else 0), placer)
        self.contender = contender
        self.victims = victims
        self._before = endings
        self._started: list[WorkloadState] = []

    def served(self, workload: WorkloadState) -> None:
        """Note that a workload got a step: what was bound ends in its time."""
        if self.reservation is None and workload.expected and workload.occupied():
            self._started.append(workload)

    def promise_first(self) -> bool:
        """Reserve a time, where what moved has landed and ends there."""
        if self._before is None:
            kept, others = [], list(self.session.workloads.values())
        else:
            changed = {w.key for w in (*self.victims, *self._started)}
            kept, others = [e for e in self._before.sorted if e[2] not in changed], list(self.victims)
        holding = [w for w in others if w.occupied() or (w in self.victims and any(t.nominated >= 0 for t in w.tasks))]
        found = [ending_of(w, self._end_of(w)) for w in dict.fromkeys([*holding, *self._started]) if w.expected]
        self.endings.sorted = sorted(kept + found, key=itemgetter(0, 1, 2))
        return super().promise_first()

    def _end_of(self, workload: WorkloadState) -> int:
        """When a workload will end: the contender starts only when its victims have left."""
        end = super()._end_of(workload)
        if workload is not self.contender or workload.started_at is not None:
            return end
        session = self.session
        waits = [
            session.leaves_at(task) - session.now + notice_of(session, victim)
            for victim in self.victims
            for task in victim.tasks
            if task.leaving >= 0
        ]
        return end + max(waits, default=0)
