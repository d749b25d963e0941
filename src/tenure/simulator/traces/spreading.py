"""What each pod of a job asks for, where a log only says what all of them have together."""

from __future__ import annotations

import itertools

from tenure.simulator.traces.specs import PodRequest

PodGroups = tuple[tuple[PodRequest, int], ...]
"""Requests, and how many pods have each."""


def spread(pods: int, cpu_milli: int, memory_mib: int, gpus: int) -> PodGroups:
    """Spread amounts over equal pods; what cannot be shared out evenly goes to the first ones, one unit each."""
    totals = (cpu_milli, memory_mib, gpus)
    cuts = sorted({0, pods, *(total % pods for total in totals)})
    groups = []
    for first, end in itertools.pairwise(cuts):
        cpu, memory, devices = (total // pods + (first < total % pods) for total in totals)
        groups.append((PodRequest(cpu, memory, devices), end - first))
    return tuple(groups)
