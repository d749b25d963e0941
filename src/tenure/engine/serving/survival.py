"""How long workloads go on that do not say so: as long, in the median, as those of their user that ran for longer.

Of the last finished runs of its user in the queue those are looked at that were longer than a workload's own so far:
half of them had ended after so long. Where few were longer, or the user is not known, all of the queue are looked at;
where few of these were, nothing is known.
"""

from __future__ import annotations

from tenure.engine.run_times import Survival
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.settings import Settings
from tenure.model.workload import Workload


def user_of(model: Workload, settings: Settings) -> str | None:
    """Give a workload's user, by the label that names users; None where none does."""
    label = settings.history.user_label
    return None if label is None else model.labels.get(label) or None


def survival(session: Session, workload: WorkloadState, ran: int) -> Survival | None:
    """Say how long a workload runs that has run for ``ran`` (µs); None where that is unknown, or not estimated."""
    settings = session.settings.worth.survival
    if not settings.enabled:
        return None
    queue, user = workload.model.queue or DEFAULT_QUEUE, user_of(workload.model, session.settings)
    return session.run_times.beyond(queue, ran, settings.least, user)


def likely_end(session: Session, workload: WorkloadState) -> int | None:
    """When a running workload ends (µs since the epoch): as it says; where it does not, or is overdue, as others did.

    What is overdue, and of which nothing else is known, is taken to end at its expected end all the same.
    """
    said = workload.end_at()
    if said is not None and said > session.now:
        return said
    start = workload.started_at
    if start is None or start > session.now:
        return said
    found = survival(session, workload, session.now - start)
    return said if found is None else start + found.median


def likely_runtime(session: Session, workload: WorkloadState) -> int | None:
    """For how long a workload that has not begun runs (µs): as it says, else as others did."""
    if workload.expected:
        return workload.expected
    found = survival(session, workload, 0)
    return None if found is None else found.median
