"""The workloads that contend, and those against which minimum runtime protects a workload."""

from __future__ import annotations

from collections import Counter

from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.shields.min_runtime import any_minimum, clock, resolve


class Contention:
    """The leaves in which workloads wait, at one moment of a session.

    ``waiting`` counts the workloads that wait in each such leaf; it is found out where it is not given.
    """

    def __init__(self, session: Session, waiting: dict[int, int] | None = None) -> None:
        self.session = session
        self.waiting = Counter(w.leaf for w in session.waiting.all()) if waiting is None else waiting
        self._below: dict[int, dict[int, int]] | None = None
        self._least: dict[tuple[int, bool], int] = {}
        self._none_set = not any_minimum(session.settings, session.queues)

    def protected(self, victim: WorkloadState) -> bool:
        """Whether minimum runtime protects a workload against all contenders.

        Where there are none, the reclaim value by method ``queue`` counts.
        """
        until = self.protected_until(victim)
        return until is not None and self.session.now < until

    def protected_until(self, victim: WorkloadState) -> int | None:
        """When that ends or ended, in µs since the epoch; None if it cannot be said, or nothing is set anywhere."""
        start = None if self._none_set else clock(self.session, victim)
        if start is None:
            return None
        alone = victim.entry is not None and self.waiting.get(victim.leaf) == 1
        return start + self._least_of(victim.leaf, alone=alone)

    def _least_of(self, leaf: int, *, alone: bool) -> int:
        """The least minimum runtime, in µs, that protects a workload of a leaf against a contender.

        ``alone``: the only one that waits in the leaf is the workload itself.
        """
        key = leaf, alone
        found = self._least.get(key)
        if found is None:
            session = self.session
            beneficiaries = self._representatives(leaf, alone=alone) or [-1]
            found = self._least[key] = min(
                resolve(session.settings, session.queues, "requeue", other, leaf) for other in beneficiaries
            )
        return found

    def _representatives(self, leaf: int, *, alone: bool) -> list[int]:
        """One contending leaf for each lowest common ancestor that there is: the value depends on nothing else."""
        found = [leaf] if leaf in self.waiting and not alone else []
        below = self._contending_below()
        child = leaf
        for queue in (*self.session.queues.path[leaf][1:], -1):
            found += [rep for other, rep in below.get(queue, {}).items() if other != child][:1]
            child = queue
        return found

    def _contending_below(self) -> dict[int, dict[int, int]]:
        """By queue (-1: the implied root), its children below which a workload waits, each with one such leaf."""
        if self._below is None:
            self._below = {}
            queues = self.session.queues
            for leaf in sorted(self.waiting):
                for queue in queues.path[leaf]:
                    self._below.setdefault(queues.parent[queue], {}).setdefault(queue, leaf)
        return self._below
