"""Which jobs of a simulation were due when they came: those that a guarantee was for."""

from __future__ import annotations

from collections import Counter

from tenure.model.queue import Queue
from tenure.model.values.resources import GPU, MILLI
from tenure.simulator.log import BIND, END, EVICT, SUBMIT, EventLog


def due_jobs(log: EventLog, queues: tuple[Queue, ...], resource: str = GPU) -> set[int]:
    """Give the jobs with which, when they came, their queue would have been within its guaranteed of a resource."""
    unit = MILLI if resource == GPU else 1
    floor = {q.name: q.guaranteed.get(resource, 0) // unit for q in queues}
    held: Counter[str] = Counter()
    found = set()
    for kind, _, job, task, *_ in log.events:
        workload = log.workloads[job]
        queue = workload.queue or ""
        if kind == SUBMIT:
            asked = sum(dict(t.spec.requests).get(resource, 0) for t in workload.tasks)
            if held[queue] + asked <= floor[queue]:
                found.add(job)
        elif kind in (BIND, END, EVICT):
            amount = dict(workload.tasks[task].spec.requests).get(resource, 0)
            held[queue] += amount if kind == BIND else -amount
    return found
