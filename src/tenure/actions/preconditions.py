"""Whether an action could find anything at all: cheap questions that spare most cycles the search."""

from __future__ import annotations

from tenure.engine.state.session import Session


def queues_contend(session: Session) -> bool:
    """Whether some leaf asks for something while another holds something."""
    queues = session.queues
    leaves = [q for q, leaf in enumerate(queues.leaf) if leaf]
    if len(leaves) < 2:  # noqa: PLR2004  it takes two
        return False
    asking = [q for q in leaves if any(queues.pending[q])]
    holding = [q for q in leaves if any(queues.allocated[q])]
    return bool(asking and holding) and not (len(asking) == len(holding) == 1 and asking == holding)


class PriorityRange:
    """The priorities that workloads of a session have had: while there is only one, no workload can preempt.

    The first cycle of a session asks all the same, so that a plan says why none did.
    """

    def __init__(self) -> None:
        self.seen: set[int] | None = None

    def differ(self, session: Session) -> bool:
        """Whether there have been several."""
        if self.seen is None:
            self.seen = set(session.roster.priorities)
            return True
        if len(self.seen) < 2:  # noqa: PLR2004
            self.seen |= {w.priority for w in session.added}
        return len(self.seen) > 1
