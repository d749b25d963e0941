"""Candidates: one for each workload that a nominator named, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from operator import attrgetter
from typing import NamedTuple

from tenure.engine.requeued import Nominated
from tenure.engine.state.queues import Amount
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import START, Demand, SubgroupState, TaskState, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.nominators.contract import NominatorFindings
from tenure.shields.opt_out import spared
from tenure.shields.price import price_of_all
from tenure.victims.rules.pieces import Piece, held, pieces_of


class CandidateKind(NamedTuple):
    """The properties that candidates of one kind share; ``held`` is what goes, None where that may be a part."""

    leaf: int
    priority: int
    held: Amount | None
    asks: Amount


class PlacedThisCycle(NamedTuple):
    """What was placed in this cycle: ``fresh`` may be undone, ``paid`` was bound on a nomination and stays."""

    fresh: frozenset[TaskState]
    paid: frozenset[TaskState]


@dataclass(slots=True, eq=False)
class RequeueCandidate:
    """A workload that may be requeued.

    ``over`` says how far the queue is over its fair share, relative to it (0: it is not); ``spared``, whether some
    task that stands somewhere asked to be spared.
    """

    workload: WorkloadState
    nominated: Nominated
    over: float
    spared: bool
    done: bool = False

    def kind(self, session: Session) -> CandidateKind:
        """Give its kind: exactly, if it can only go as a whole."""
        workload = self.workload
        if not workload.root.rigid:
            return CandidateKind(workload.leaf, workload.priority, None, Demand(START, workload.tasks, None).amount)
        tasks = workload.placed()
        return CandidateKind(workload.leaf, workload.priority, held(session, tasks), asks_anew(workload, tasks))

    def options(self, session: Session, placed: PlacedThisCycle) -> list[list[Piece]]:
        """Give what it can give, the gentlest first: one task of surplus, all of it, the whole with its core."""
        return options_of(pieces_of(session, self.workload, placed.fresh, core=True, paid=placed.paid))


def options_of(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Give what may be taken of the pieces of one workload, the gentlest first."""
    surplus = sorted(filter(_is_surplus, pieces), key=lambda p: p.rank)
    found = [[p] for p in surplus]
    if len(surplus) > 1:
        found.append(surplus)
    found += [[p] for p in pieces if p.group]
    return found + [[p] for p in pieces if p.whole]


def gently(options: list[list[Piece]]) -> list[Piece]:
    """Give the surplus among all that one workload can give; where there is none, the most that it can."""
    return [p for option in options if len(option) == 1 for p in option if _is_surplus(p)] or options[-1]


def _is_surplus(piece: Piece) -> bool:
    return not (piece.whole or piece.group)


def union(findings: Mapping[str, NominatorFindings]) -> list[Nominated]:
    """Give one entry per workload with all plugins that nominated it; entries and plugins by name."""
    plugins: dict[str, list[str]] = {}
    known: dict[str, Nominated] = {}
    for plugin, found in findings.items():
        for nomination in found.nominations:
            key = nomination.workload
            plugins.setdefault(key, []).append(plugin)
            before = known.get(key)
            if before is None:
                known[key] = Nominated(key, (), nomination.since, nomination.runtime, nomination.expected)
            elif before.since is None or (nomination.since is not None and nomination.since < before.since):
                runtime, expected = nomination.runtime or before.runtime, nomination.expected or before.expected
                known[key] = Nominated(key, (), nomination.since, runtime, expected)
    return [
        Nominated(key, tuple(sorted(plugins[key])), n.since, n.runtime, n.expected) for key, n in sorted(known.items())
    ]


def in_order(session: Session, shares: CurrentShares, nominated: list[Nominated]) -> list[RequeueCandidate]:
    """Put candidates into order: furthest over fair share, lower priority, longest past the expectation, name.

    With ``requeue.order: cost`` those come first that are cheaper to evict. Those that asked to be spared come last.
    """
    over: dict[int, float] = {}
    found = []
    for entry in nominated:
        workload = session.workloads[entry.workload]
        leaf = workload.leaf
        if leaf not in over:
            over[leaf] = max(0.0, *(_excess(session, shares, queue) for queue in session.queues.path[leaf]))
        asks = any(spared(session, t) for t in workload.tasks if t.node >= 0)
        found.append(RequeueCandidate(workload, entry, over[leaf], asks))
    found.sort(key=_rank)
    if session.settings.requeue.order == "cost":
        found.sort(key=lambda c: price_of_all(session, tasks) if (tasks := c.workload.placed()) else 0)
    found.sort(key=attrgetter("spared"))
    return found


def _rank(candidate: RequeueCandidate) -> tuple[float, int, int, str]:
    entry, workload = candidate.nominated, candidate.workload
    past = 0 if entry.runtime is None or entry.expected is None else entry.runtime - entry.expected
    return -candidate.over, workload.priority, -past, workload.key


def _excess(session: Session, shares: CurrentShares, queue: int) -> float:
    """How much more than its fair share a queue holds, as a part of that share; the most of all resources."""
    has, fair = session.queues.allocated[queue], shares.fair[queue]
    return max(
        ((has[row] / fair[row] - 1.0 if fair[row] else inf) if has[row] > fair[row] else 0.0 for row in shares.rows),
        default=0.0,
    )


def asks_again(piece: Piece) -> Amount:
    """Give what a candidate asks for next once a piece of it is gone: its core, else one task of its surplus."""
    workload = piece.workload
    if piece.whole:
        return asks_anew(workload, piece.tasks)
    if workload.step is not None:
        return workload.step.amount
    return min(piece.tasks, key=lambda t: t.index).cls.amount


def asks_anew(workload: WorkloadState, otherwise: Sequence[TaskState]) -> Amount:
    """Give what a workload asks for once all of it is gone: its core, or, where it has none, some tasks."""
    return Demand(START, _core(workload.root) or list(otherwise), None).amount


def _core(group: SubgroupState) -> list[TaskState]:
    """Tasks that a workload starts with: of each leaf its first, of subgroups as many as have to run."""
    if not group.children:
        return group.tasks[: group.minimum]
    return [task for child in group.children[: group.minimum] for task in _core(child)]
