"""What the rescheduler keeps from cycle to cycle, and what it reads out of the cluster's eviction log instead.

Everything that a restart must not lose comes from the log: which task was moved when, from where and to where, for
which workload. A simulation, whose session outlives many cycles, adds what was moved since the session was made.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from tenure.engine.plan import EVICTING, Plan
from tenure.engine.room.nodes import NodeTable
from tenure.engine.state.session import Session
from tenure.model.settings import Cause
from tenure.shields.delay import LEAST_PAUSE

if TYPE_CHECKING:
    from tenure.rescheduler.milp.solver import ProcessSolver

CAUSE: Cause = "reschedule"

NEW_NODES: Final = "new-nodes"
"""The trigger that uses nodes that joined lately, by which `MoveMemory.again` knows it."""

UNDER_WAY: Final = "MovesUnderWay"
"""Code of the obstacle of what waits for moves that have not landed yet."""

MOVING: tuple[Cause, ...] = ("reschedule", "consolidate")
"""Causes that move what they evict."""
MOST_DOUBLINGS = 4
"""How often the pause of what got no room doubles."""
MOST_KEPT = 4096
"""Moves in memory from which on those of workloads that have gone are forgotten."""


class PastMove(NamedTuple):
    """A move that was made: when (µs since the epoch), for which workload, which task, between which nodes (names)."""

    at: int
    beneficiary: str | None
    workload: str
    task: str
    origin: str | None
    target: str | None
    cause: str = CAUSE


class MoveMemory:
    """The moves made since the session was made, and when a search that found nothing is repeated.

    ``again`` has times (µs since the epoch) by trigger or workload, ``vain`` how often in a row a workload got no room,
    ``helped`` when others were last evicted for a workload.
    ``look_at`` is when a workload may next have been waiting for long enough, ``improved`` when the layout was last
    looked at, ``unfinished`` says that waves of that plan were left.
    """

    def __init__(self) -> None:
        self.again: dict[str, int] = {}
        self.vain: dict[str, int] = {}
        self.helped: dict[str, int] = {}
        self.sent: list[PastMove] = []
        self.look_at = 0
        self.improved: int | None = None
        self.unfinished = False
        self._solver: ProcessSolver | None = None
        self._leave: Callable[[], object] = bool
        self._marked: tuple[NodeTable, list[int], list[tuple[int, int]], list[int]] | None = None

    @property
    def solver(self) -> ProcessSolver:
        """The solver; its process starts when it is first asked."""
        if self._solver is None:
            from tenure.rescheduler.milp.solver import leave, take_up  # noqa: PLC0415  most cycles need none

            self._solver = take_up()
            self._leave = weakref.finalize(self, leave, self._solver)
        return self._solver

    def let_go(self) -> None:
        """Leave the solver to the plans of other sessions, until it is asked for again.

        Of a session that is not used any more it would be left only once the garbage collector has found that. Each of
        the others would start one until then, which takes forty times as long as a small plan.
        """
        self._solver = None
        self._leave()

    def rests(self, trigger: str, now: int) -> bool:
        """Whether a trigger, or a workload that got no room, is not to be looked at again yet."""
        return self.again.get(trigger, now) > now

    def failed(self, workload: str, now: int, pause: int) -> None:
        """Note that a workload got no room: it is looked at again after a pause, which doubles each time in a row."""
        times = self.vain[workload] = self.vain.get(workload, -1) + 1
        self.again[workload] = now + (pause << min(times, MOST_DOUBLINGS))

    def succeeded(self, workload: str) -> None:
        """Note that room was made for a workload."""
        self.vain.pop(workload, None)

    def note_helped(self, plan: Plan, settle: int) -> None:
        """Note for which workloads a plan evicts; of many, what is older than ``settle`` (µs) is forgotten."""
        self.helped.update((s.beneficiary, plan.now) for s in plan.steps if s.beneficiary and s.action in EVICTING)
        if len(self.helped) > MOST_KEPT:
            since = plan.now - max(settle, LEAST_PAUSE)
            self.helped = {w: at for w, at in self.helped.items() if at > since}

    def helped_lately(self, session: Session, within: int) -> dict[str, int]:
        """Give the workloads for which others were evicted less than ``within`` ago, and until when that is so (µs)."""
        since = session.now - within
        known = [*self.helped.items(), *((e.beneficiary, min(e.at, session.now)) for e in session.evictions)]
        known += [(m.beneficiary, m.at) for m in self.sent]
        found: dict[str, int] = {}
        for workload, at in known:
            if workload is not None and at > since:
                found[workload] = max(at + within, found.get(workload, 0))
        return found

    def forget(self, session: Session) -> None:
        """Forget what is of no use any more."""
        if len(self.again) > MOST_KEPT:
            self.again = {k: at for k, at in self.again.items() if at > session.now}
            self.vain = {k: n for k, n in self.vain.items() if k in self.again}
        if len(self.sent) > MOST_KEPT:
            self.sent = [s for s in self.sent if s.workload in session.workloads]

    def marks(self, nodes: NodeTable) -> tuple[list[int], list[tuple[int, int]], list[int]]:
        """Give the nodes that are to be emptied, those that say when they were made, and those with a reading."""
        if self._marked is None or self._marked[0] is not nodes:
            numbered = list(enumerate(nodes.nodes))
            draining = [i for i, n in numbered if n.drain]
            made = [(i, n.created_at) for i, n in numbered if n.created_at is not None]
            read = [i for i, n in numbered if n.usage is not None]
            self._marked = nodes, draining, made, read
        return self._marked[1:]


def moves_of(session: Session, memory: MoveMemory) -> Iterator[PastMove]:
    """Give every move that is known; what the log says of the future counts as just now."""
    for e in session.evictions:
        if e.cause in MOVING:
            at = min(e.at, session.now)
            yield PastMove(at, e.beneficiary, e.workload, e.task, e.from_node, e.to_node, e.cause)
    yield from memory.sent
