"""One pass of the rescheduler over a session: its triggers, those first for which a workload waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenure.engine.state.workloads import WorkloadState
from tenure.rescheduler.execution import TriggerExecution
from tenure.rescheduler.memory import MoveMemory
from tenure.rescheduler.triggers import background, drain, hot_nodes, new_nodes, pending
from tenure.victims.recording.state import EvictionState


@dataclass(frozen=True, slots=True)
class DueTriggers:
    """The triggers of the rescheduler that may have a reason to move something.

    ``waiting``: workloads that have waited long enough, in the order in which they would be served; ``draining``,
    ``hot``, ``new``: numbers of nodes; ``background``: an improvement of the layout is due.
    """

    waiting: Sequence[WorkloadState] = ()
    draining: Sequence[int] = ()
    hot: Sequence[int] = ()
    new: Sequence[int] = ()
    background: bool = False

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.waiting or self.draining or self.hot or self.new or self.background)


def run(state: EvictionState, memory: MoveMemory, due: DueTriggers) -> None:
    """Make room for those that wait, empty nodes, cool nodes, and improve the layout unless moves have yet to land."""
    action = TriggerExecution(state, memory)
    landing = bool(action.landing()) if due.new or due.background else False
    if due.waiting:
        pending.act(action, due.waiting)
    rests = landing or action.moved
    for node in due.draining:
        drain.act(action, node)
    if due.hot:
        hot_nodes.act(action, due.hot)
    if due.new and not rests:
        new_nodes.act(action, due.new)
    if due.background and not rests:
        background.act(action)
    known = set(state.plan.warnings)
    state.plan.warnings += [c for c in state.plugins.complaints.values() if c not in known]
    memory.forget(state.session)
    memory.let_go()
