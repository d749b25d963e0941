"""A session that is kept from one observed cluster to the next, with only what changed in between taken in anew.

What is decided on it is what would be decided on a session that was made for the cluster alone. Where that cannot be
told at little cost (nodes, queues or settings changed; something was promised, announced or sent away), one is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tenure.engine.devices.answers import KnownAnswers
from tenure.engine.devices.claimed_devices import known_answers
from tenure.engine.plan import Plan
from tenure.engine.run_times import RunTimes
from tenure.engine.snapshot import session_of
from tenure.engine.state.session import Session
from tenure.model.cluster import Cluster
from tenure.model.values.resources import GPU
from tenure.model.workload import Phase, Task, Workload

MOST_CHANGES: Final = 1_000_000
"""After so many changes a session is made anew: it has a list of all nodes that ever changed."""

MOST_KINDS: Final = 2_000
"""Beyond so many more kinds of tasks than it began with it is made anew as well: it keeps the tables of all of them.

To make one takes a third of a second with 20,000 pods, and every binding waits for it.
"""


class KeptSession:
    """The session of the last cluster, for as long as the next one can be reached from it.

    Between `take` and `keep` nothing is kept: what fails in between leaves no session behind that is half changed.
    """

    def __init__(self) -> None:
        self._session: Session | None = None
        self._cluster: Cluster | None = None
        self._touched: frozenset[str] = frozenset()
        self._changes = self._kinds = 0
        self._answers: KnownAnswers | None = None

    def take(self, cluster: Cluster) -> Session:
        """Give a session that holds what the cluster holds; whatever was decided on the last one was only a plan."""
        session, before = self._session, self._cluster
        self._session = self._cluster = None
        if session is None or before is None or not _alike(before, cluster, session):
            return self._anew(cluster)
        gone, come = _difference(before.workloads, cluster.workloads)
        again = [session.workloads[key].model for key in sorted(self._touched - gone.keys())]
        self._changes += len(come) + len(gone) + len(again)
        known = set(session.nodes.resources)
        many = self._changes > MOST_CHANGES or session.kinds > 2 * self._kinds + MOST_KINDS
        if many or not all(_is_plain(w, known, cluster.now) for w in come):
            return self._anew(cluster)
        _exchange(session, cluster, (*gone, *(w.key for w in again)), (*come, *again))
        return session

    def _anew(self, cluster: Cluster) -> Session:
        session = session_of(cluster, self._answers)
        self._changes, self._kinds = 0, session.kinds
        return session

    def keep(self, cluster: Cluster, session: Session, plan: Plan) -> None:
        """Keep the session on which a plan was made for a cluster, if the plan only binds and time alters nothing.

        Else what it has found out about devices is kept: it takes long, and does not depend on what is placed.
        """
        self._session = self._cluster = None
        self._answers = known_answers(session.terms.devices)
        binds = all(step.action == "bind" for step in plan.steps) and not (plan.expired or plan.stale)
        if not binds or session.noticed or session.nominated or _arms(cluster, plan):
            return
        if self._changes or all(_is_lasting(w, cluster.now) for w in cluster.workloads):
            self._session, self._cluster = session, cluster
            self._touched = frozenset(step.workload for step in plan.steps)


def _arms(cluster: Cluster, plan: Plan) -> bool:
    """Whether a plan changes a deadline of a queue: it is armed once that is written, not because it was decided."""
    known = {q.name: q.status.quota_preemption for q in cluster.queues if q.status is not None}
    return any(status.quota_preemption != known.get(name) for name, status in plan.queue_status.items())


def brought_in_step(session: Session, before: Cluster, after: Cluster) -> Session:
    """Give a session that holds what a cluster holds ``after`` it has carried out a plan.

    It is the ``session`` on which the plan was made for the cluster ``before``, with those workloads taken in anew that
    the plan changed; another one where more than workloads has changed.
    """
    if not _alike(before, after, session):
        return session_of(after)
    _exchange(session, after, *_difference(before.workloads, after.workloads))
    return session


def _alike(before: Cluster, cluster: Cluster, session: Session) -> bool:
    """Whether nothing but workloads, and what is handed on as it is, differs between two clusters."""
    return (
        cluster.now >= before.now
        and before.nodes == cluster.nodes
        and before.queues == cluster.queues
        and before.settings == cluster.settings
        and before.namespaces == cluster.namespaces
        and before.devices.slices == cluster.devices.slices
        and before.devices.classes == cluster.devices.classes
        and "fragmentation" not in session.scorer.weights
        and not session.journal.depth
    )


def _difference(before: Sequence[Workload], now: Sequence[Workload]) -> tuple[dict[str, Workload], list[Workload]]:
    """Give by key what is gone, and what has come; what is another object and the same is neither.

    Both are in the order of their keys but for a few; what is out of order only takes longer to be found the same.
    """
    gone: dict[str, Workload] = {}
    come: list[Workload] = []
    old = new = 0
    while old < len(before) or new < len(now):
        if before[old : old + _STRIDE] == now[new : new + _STRIDE]:
            old, new = old + _STRIDE, new + _STRIDE
            continue
        for _ in range(_STRIDE):
            was = before[old] if old < len(before) else None
            there = now[new] if new < len(now) else None
            if was is there:
                old, new = old + 1, new + 1
            elif was is not None and (there is None or was.key <= there.key):
                gone[was.key] = was
                old += 1
                if there is not None and there.key == was.key:
                    come.append(there)
                    new += 1
            elif there is not None:
                come.append(there)
                new += 1
    same = {w.key for w in come if gone.get(w.key) == w}
    for key in same:
        del gone[key]
    return gone, [w for w in come if w.key not in same]


_STRIDE: Final = 64
"""Workloads that are compared at once: where none has changed they are the same objects, which takes no time."""


def _is_plain(workload: Workload, resources: set[str], now: int) -> bool:
    """Whether a workload can be taken in beside others as if it had been there from the beginning."""
    asked = (name for task in workload.tasks for name, _ in (*task.spec.requests, *task.spec.counted))
    return _is_lasting(workload, now) and all(name in resources for name in asked)


def _is_lasting(workload: Workload, now: int) -> bool:
    """Whether what a session makes of a workload depends neither on the time of that nor on other workloads."""
    started = workload.started_at
    return (started is None or started <= now) and all(_is_told(task, now) for task in workload.tasks)


def _is_told(task: Task, now: int) -> bool:
    """Whether a task says all that would else be chosen for it, and is promised and announced nothing."""
    if task.nominated is not None or task.notice is not None:
        return False
    if task.node is None:
        return True
    if task.phase is Phase.TERMINATING and task.terminating_since is None:
        return False
    if task.started_at is not None and task.started_at > now:
        return False
    return bool(task.devices) or all(name != GPU for name, _ in task.spec.requests)


def _exchange(session: Session, cluster: Cluster, gone: Iterable[str], come: Iterable[Workload]) -> None:
    """Let workloads go and others come."""
    session.now = cluster.now
    session.evictions, session.disruption_budgets = cluster.evictions, cluster.disruption_budgets
    session.refused_evictions = cluster.refused_evictions
    session.outcomes = cluster.outcomes
    if session.run_times.given is not cluster.finished_runs:
        session.run_times = RunTimes(cluster.finished_runs)
    session.terms.volumes.attached.attach(cluster.attachments)
    session.terms.devices.allocate(cluster.devices.claims)
    session.waiting.watchers.clear()
    for key in gone:
        session.remove_workload(key)
    session.add_workloads(sorted(come, key=lambda w: w.key))
