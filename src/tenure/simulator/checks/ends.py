"""Every job ends once, waits, or was dropped with a reason: none is lost."""

from __future__ import annotations

import numpy as np

from tenure.simulator.checks.columns import CheckedLog, Ints, Mask
from tenure.simulator.checks.findings import ViolationCollector
from tenure.simulator.log import BIND, DROP, END, REST, SUBMIT

LOST = "workload that neither ended nor waits nor was dropped"
ENDED_TWICE = "workload that ended more than once"
BOUND_ENDED = "task bound after its workload had ended"
STILL_THERE = "task that was still there when its workload had ended"
NO_REASON = "workload dropped or left over without a reason"


def check_ends(history: CheckedLog, findings: ViolationCollector, *, closed: bool) -> None:
    """Check what became of each workload, in a log that is ``closed``: all of a workload ends at one instant there.

    What the cluster starts with is there from the start; every other workload came.
    """
    columns = history.columns
    jobs = len(history.workloads)
    reasoned = np.isin(columns.kind, (DROP, REST))
    silent = [i for i in np.flatnonzero(reasoned).tolist() if not columns.extra[i]]
    _tell(history, findings, NO_REASON, columns.job[silent])
    if not closed:
        return
    ends = columns.kind == END
    ended = _last_at(columns.job, columns.at, ends, jobs)
    times = np.bincount(columns.job[reasoned], minlength=jobs) + (ended >= 0)
    again = ended != _first_at(columns.job, columns.at, ends, jobs)
    _tell(history, findings, ENDED_TWICE, np.flatnonzero(again | (times > 1)))
    over = np.full(jobs, len(columns.at), dtype=np.int64)
    over[columns.job[ends]] = np.flatnonzero(ends)
    holdings = history.holdings
    job = history.tasks.job[holdings.task]
    stays = (holdings.freed < 0) | (holdings.freed > over[job])
    _tell(history, findings, STILL_THERE, np.unique(job[stays & (holdings.bound < over[job]) & (ended[job] >= 0)]))
    late = (columns.kind == BIND) & (np.arange(len(columns.at)) > over[columns.job])
    _tell(history, findings, BOUND_ENDED, np.unique(columns.job[late]))
    known = np.zeros(jobs, dtype=np.bool_)
    known[columns.job[reasoned | ends]] = True
    came = np.arange(jobs) >= history.initial
    came[columns.job[columns.kind == SUBMIT]] = True
    _tell(history, findings, LOST, np.flatnonzero(came & ~known))


def _last_at(job: Ints, at: Ints, mask: Mask, jobs: int) -> Ints:
    last = np.full(jobs, -1, dtype=np.int64)
    last[job[mask]] = at[mask]
    return last


def _first_at(job: Ints, at: Ints, mask: Mask, jobs: int) -> Ints:
    first = np.full(jobs, -1, dtype=np.int64)
    where = np.flatnonzero(mask)[::-1]
    first[job[where]] = at[where]
    return first


def _tell(history: CheckedLog, findings: ViolationCollector, kind: str, jobs: Ints) -> None:
    findings.add(kind, jobs.tolist(), len(jobs), lambda job: history.workloads[job].key)
