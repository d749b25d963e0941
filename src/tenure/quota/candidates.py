"""What could be taken from a queue that is over its max, and what may not be, with the reason.

A gang's surplus is taken task by task, everything else of a workload as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tenure.engine.refusal import Refusal
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.shields.plugins import EvictionPlugins
from tenure.shields.policy import disabled
from tenure.shields.preemptibility import preemptibility
from tenure.victims.rules.pieces import Piece, pieces_of

Tier = tuple[bool, int]


def tier_of(piece: Piece) -> Tier:
    """Say what is considered first: work that has not opted out, then lower priority."""
    return piece.spared > 0, piece.workload.priority


@dataclass(slots=True)
class QuotaPool:
    """The pieces that may be taken below one queue, and the workloads that are held back."""

    pieces: list[Piece] = field(default_factory=list)
    refused: list[tuple[WorkloadState, Refusal]] = field(default_factory=list)


class QuotaCandidates:
    """The maker of pools, one for each choice; which workloads stand in which leaf is found once per cycle."""

    def __init__(self, session: Session, plugins: EvictionPlugins, most: int | None = None) -> None:
        self.session = session
        self.plugins = plugins
        self.most = most
        self._left_out: dict[tuple[TaskState, ...], Refusal] = {}
        self._by_leaf: dict[int, list[WorkloadState]] = {}
        for _, workload in sorted(session.workloads.items()):
            if workload.leaf >= 0:
                self._by_leaf.setdefault(workload.leaf, []).append(workload)

    def pool(self, leaves: Iterable[int], rows: Sequence[int]) -> QuotaPool:
        """Give what could be taken from these leaves that holds something of one of the rows."""
        pool = QuotaPool()
        for leaf in leaves:
            closed = disabled(self.session.queues, leaf)
            for workload in self._by_leaf.get(leaf, ()):
                if workload.occupied():
                    self._consider(workload, rows, pool, closed)
        for piece in [p for p in pool.pieces if p.tasks in self._left_out]:
            pool.pieces.remove(piece)
            pool.refused.append((piece.workload, self._left_out[piece.tasks]))
        pool.refused.sort(key=lambda r: r[0].key)
        return pool

    def leave_out(self, piece: Piece, refusal: Refusal) -> None:
        """Let no later pool hold a piece."""
        self._left_out[piece.tasks] = refusal

    def spared_until(self, piece: Piece) -> int | None:
        """When budgets let a piece go (µs since the epoch), what went just now counted; None if not by itself."""
        refusal = self.plugins.budgets.validate(self.session, "quota", None, piece.tasks)
        return None if refusal is None else refusal.until

    def _consider(self, workload: WorkloadState, rows: Sequence[int], pool: QuotaPool, closed: Refusal | None) -> None:
        refusal = preemptibility(workload) or closed or self._refuse(workload)
        pieces = pieces_of(self.session, workload, frozenset(), core=True)
        helpful = [p for p in pieces if any(p.amount[row] > 0 for row in rows)]
        if not helpful:
            return
        if refusal is not None:
            pool.refused.append((workload, refusal))
            if not refusal.core_only:
                return
            helpful = [p for p in helpful if not p.whole and not p.compound]
        elif self.most is not None and any(len(p.tasks) > self.most for p in helpful):
            text = f"{workload.key} has more tasks than may be evicted in one cycle ({self.most})"
            pool.refused.append((workload, Refusal("max-evictions-per-cycle", text)))
            helpful = [p for p in helpful if len(p.tasks) <= self.most]
        pool.pieces += helpful

    def _refuse(self, workload: WorkloadState) -> Refusal | None:
        refusal = self.plugins.min_runtime.filter(self.session, "quota", None, workload)
        return self.plugins.ask_others(self.session, "quota", None, workload) or refusal
