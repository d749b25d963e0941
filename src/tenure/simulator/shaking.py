"""Shaking a trace: the same jobs, each submitted a little earlier or later.

A single replay can hang on a coincidence of the log. Replays of a trace that was shaken a little say how much of a
result is such a coincidence (Tsafrir, Ouaknine and Feitelson, "Reducing performance evaluation sensitivity and
variability by input shaking", MASCOTS 2007; they move the jobs of a user together, here each moves by itself).
"""

from __future__ import annotations

import random
from dataclasses import replace

from tenure.simulator.traces.records import Trace


def shake(trace: Trace, most: int, seed: int) -> Trace:
    """Move every job's submission by up to ``most`` µs, earlier or later, but not before the trace's first one.

    Seed 0 is the trace as it is; any other seed gives the same trace every time.
    """
    if not seed or not most or not trace.jobs:
        return trace
    first = min(job.workload.created_at for job in trace.jobs)
    draw = random.Random(seed)  # noqa: S311  a draw, no secret
    moved = []
    for job in trace.jobs:
        at = max(first, job.workload.created_at + draw.randint(-most, most))
        moved.append(replace(job, workload=replace(job.workload, created_at=at)))
    moved.sort(key=lambda job: job.workload.created_at)  # jobs of one instant stay in the order of the trace
    return replace(trace, jobs=tuple(moved))
