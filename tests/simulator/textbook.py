"""EASY backfilling on one machine as a textbook has it: counts of processors, and nothing of the project."""

from __future__ import annotations

from bisect import insort
from heapq import heappop, heappush
from typing import NamedTuple


class Job(NamedTuple):
    """A rigid job; times in seconds, ``estimate`` is what the scheduler is told of ``runtime``."""

    number: int
    submit: int
    processors: int
    runtime: int
    estimate: int


def easy_starts(jobs, processors):
    """Give the start of each job by its number; ``jobs`` are sorted by submit time, then number."""
    free, queue, starts = processors, [], {}
    running, ends = [], []  # (expected end, processors, number) in that order; (end, number, processors) as a heap
    arrival = 0
    while arrival < len(jobs) or ends:
        now = min(jobs[arrival].submit if arrival < len(jobs) else 1 << 60, ends[0][0] if ends else 1 << 60)
        while ends and ends[0][0] == now:
            _, number, released = heappop(ends)
            running.remove(starts[number][1])
            free += released
        while arrival < len(jobs) and jobs[arrival].submit == now:
            queue.append(jobs[arrival])
            arrival += 1
        for job in _one_pass(queue, running, free, now):
            promise = (now + job.estimate, job.processors, job.number)
            starts[job.number] = (now, promise)
            free -= job.processors
            insort(running, promise)
            heappush(ends, (now + job.runtime, job.number, job.processors))
    return {number: start for number, (start, _) in starts.items()}


def _one_pass(queue, running, free, now):
    """Take out of the queue whoever starts now."""
    started = []
    while queue and queue[0].processors <= free:
        job = queue.pop(0)
        free -= job.processors
        started.append(job)
    if not queue or not free:
        return started
    nominated_to, extra = _reservation(
        queue[0], sorted(running + [(now + j.estimate, j.processors, j.number) for j in started]), free
    )
    passed = [queue[0]]
    for position in range(1, len(queue)):
        if not free:
            passed += queue[position:]
            break
        job = queue[position]
        in_time = now + job.estimate <= nominated_to
        if job.processors <= free and (in_time or job.processors <= extra):
            free -= job.processors
            extra -= 0 if in_time else job.processors
            started.append(job)
        else:
            passed.append(job)
    queue[:] = passed
    return started


def _reservation(job, running, free):
    """When the first that waits will fit, and what is left beside it then."""
    for end, released, _ in running:
        free += released
        if free >= job.processors:
            return end, free - job.processors
    raise AssertionError("a job larger than the machine")


def mean_wait(jobs, starts):
    """Mean wait in seconds."""
    return sum(starts[j.number] - j.submit for j in jobs) / len(jobs)


def mean_bounded_slowdown(jobs, starts, tau=10):
    """Mean of max(1, (wait + run) / max(run, tau))."""
    return sum(max(1, (starts[j.number] - j.submit + j.runtime) / max(j.runtime, tau)) for j in jobs) / len(jobs)
