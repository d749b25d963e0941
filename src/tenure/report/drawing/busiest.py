"""The busiest stretch of a simulation: as long a time as a picture of single tasks can show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tenure.report.drawing.series import Floats, SimulationSeries
from tenure.simulator.checks.columns import Ints

TASKS = 500
"""Tasks that a picture of a stretch shows, about."""

MAX_TASKS = 900
"""Tasks that it shows at most; a stretch that holds more is cut."""

MAX_NODES = 40
"""Nodes that it shows; of more, those on which most is going on."""

CANDIDATES = 400
"""Places that are compared."""


@dataclass(frozen=True, slots=True)
class BusiestStretch:
    """The stretch from ``begin`` to ``end`` (µs of virtual time): ``holdings`` on the ``nodes`` shown, by index.

    ``of_nodes`` is how many nodes there are.
    """

    begin: int
    end: int
    holdings: Ints
    nodes: Ints
    of_nodes: int


def busiest(history: SimulationSeries) -> BusiestStretch | None:
    """Find the stretch in which most of the main resource is in use; of equal ones the first.

    Its length is such that it holds about `TASKS` tasks on the nodes that are shown.
    """
    holdings = history.outcomes.holdings
    if not len(holdings.task):
        return None
    began, ended = history.outcomes.began, max(history.outcomes.ended, history.outcomes.began + 1)
    amount = history.amounts(history.main)
    used = np.flatnonzero(amount > 0)
    if not len(used):
        return None
    crowd = max(1.0, len(np.unique(holdings.node[used])) / MAX_NODES)
    length = (ended - began) * min(1.0, TASKS * crowd / len(used))
    begin = _fullest(holdings.since[used], history.until[used], amount[used], began, ended, length)
    end = int(begin + length)
    inside = used[(holdings.since[used] < end) & (history.until[used] > begin)]
    nodes = _liveliest(holdings.node[inside])
    shown = inside[np.isin(holdings.node[inside], nodes)]
    if len(shown) > MAX_TASKS:
        order = np.argsort(holdings.since[shown], kind="stable")
        end = int(holdings.since[shown[order[MAX_TASKS]]])
        shown = np.sort(shown[order[:MAX_TASKS]])
    return BusiestStretch(int(begin), max(end, int(begin) + 1), shown, nodes, len(history.nodes))


def _fullest(since: Ints, until: Ints, amount: Ints, began: int, ended: int, length: float) -> float:
    """Give the begin of the window of a length with the largest integral of what is held."""
    begins: Floats = np.linspace(began, ended - length, CANDIDATES)
    within = _integral(since, until, amount, begins + length) - _integral(since, until, amount, begins)
    return float(begins[int(np.argmax(within > within.max() * (1 - 1e-9)))])


def _integral(since: Ints, until: Ints, amount: Ints, at: Floats) -> Floats:
    """Integrate what is held from the beginning up to each time."""
    total = np.zeros(len(at))
    for times, sign in ((since, 1.0), (until, -1.0)):
        order = np.argsort(times, kind="stable")
        time = times[order].astype(np.float64)
        weight = amount[order].astype(np.float64) * sign
        level = np.concatenate(([0.0], np.cumsum(weight)))
        moment = np.concatenate(([0.0], np.cumsum(weight * time)))
        index = np.searchsorted(time, at, side="right")
        total += level[index] * at - moment[index]
    return total


def _liveliest(node: Ints) -> Ints:
    """Give the nodes with most tasks, in their own order."""
    numbers, counts = np.unique(node, return_counts=True)
    ranked = np.argsort(-counts, kind="stable")[:MAX_NODES]
    chosen: Ints = np.sort(numbers[ranked])
    return chosen
