"""Checks a layout of load by itself: it shares no code with the search, and works everything out anew."""

from __future__ import annotations

from collections import Counter

import numpy as np

from reassignment import Ints, Reassignment


def cost_of(problem: Reassignment, place: Ints) -> int:
    """Work out what a layout costs from the published rules alone."""
    used = np.zeros_like(problem.capacity)
    np.add.at(used, place, problem.takes)
    total = int((np.maximum(0, used - problem.limit) * problem.over).sum())
    free = problem.capacity - used
    for b in problem.balances:
        total += b.weight * int(np.maximum(0, b.target * free[:, b.first] - free[:, b.second]).sum())
    moved = np.flatnonzero(place != problem.origin)
    total += int(problem.cost[moved].sum() + problem.distance[problem.origin[moved], place[moved]].sum())
    groups = Counter(problem.group[moved].tolist())
    return total + problem.most_of_group * max(groups.values(), default=0)


def faults_of(problem: Reassignment, place: Ints) -> list[str]:
    """Give what is wrong with a layout, task by task."""
    faults = []
    held = np.zeros_like(problem.capacity)
    nodes: list[set[int]] = [set() for _ in problem.needs]
    for task, node in enumerate(place.tolist()):
        held[node] += problem.takes[task]
        if node != problem.origin[task]:
            held[problem.origin[task]] += problem.takes[task] * problem.transient
        group = int(problem.group[task])
        if node in nodes[group]:
            faults.append(f"two of group {group} on node {node}")
        nodes[group].add(node)
    if (held > problem.capacity).any():
        faults.append("over capacity")
    for group, where in enumerate(nodes):
        if len({int(problem.domain[n]) for n in where}) < problem.least[group]:
            faults.append(f"group {group} is in too few domains")
        around = {int(problem.near[n]) for n in where}
        lacking = [o for o in problem.needs[group] if not around <= {int(problem.near[n]) for n in nodes[o]}]
        faults += [f"group {group} lacks group {other}" for other in lacking]
    return faults
