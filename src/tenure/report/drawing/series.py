"""Series over time, made of what happened in a simulation: step functions, averaged in bins of equal length.

Averaging loses nothing that an area shows (its size stays), takes the same bins every time, and makes a page as
large for a million events as for a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.values.resources import CPU, GPU, MEMORY
from tenure.simulator.checks.capacity import amounts_counted, capacity_counted
from tenure.simulator.checks.columns import Ints
from tenure.simulator.checks.sums import timeline
from tenure.simulator.log import DROP, EVICT, EvictionDetails
from tenure.simulator.outcomes import Outcomes

Floats = npt.NDArray[np.float64]

BINS = 360
"""Bins of a series over time."""

COLORS = 8
"""Queues that have a colour of their own; if there are more, the last one is for the rest."""

OTHERS = "other queues"

_ORDER = {GPU: 0, CPU: 1, MEMORY: 2}


@dataclass(frozen=True, slots=True)
class SeriesGroups:
    """Queues as they are coloured: the names of the groups, and the group of every job."""

    names: tuple[str, ...]
    of_job: Ints


@dataclass(frozen=True, slots=True)
class Series:
    """Values by group and bin; ``edges`` are the bins' borders in µs of virtual time."""

    edges: Floats
    values: Floats
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """The use of one resource over time, and the capacity of all nodes, both in the model's units.

    GPUs are in milli-GPU.
    """

    resource: str
    capacity: float
    series: Series


class SimulationSeries:
    """The series of one simulation."""

    def __init__(self, outcomes: Outcomes, cluster: Cluster) -> None:
        self.outcomes = outcomes
        self.nodes = cluster.nodes
        self._amounts: dict[str, Ints] = {}
        history = outcomes.history
        self.spec = history.tasks.spec[outcomes.holdings.task]
        self.job = history.tasks.job[outcomes.holdings.task]
        self.until = np.where(outcomes.holdings.until < 0, outcomes.ended, outcomes.holdings.until)
        self.resources = self._resources()
        self.groups = self._groups()
        self.edges = np.linspace(outcomes.began, max(outcomes.ended, outcomes.began + 1), BINS + 1)

    def _resources(self) -> dict[str, float]:
        """Give the capacities of the resources that were asked for, GPUs first."""
        capacity = capacity_counted(self.outcomes.history, self.nodes)
        names = sorted(capacity, key=lambda name: (_ORDER.get(name, len(_ORDER)), name))
        return {name: float(capacity[name]) for name in names if capacity[name]}

    @property
    def main(self) -> str:
        """The resource that the queues are ordered by: GPUs where there are any."""
        return next(iter(self.resources), CPU)

    def amounts(self, resource: str) -> Ints:
        """Give what every holding has of a resource."""
        if resource not in self._amounts:
            self._amounts[resource] = amounts_counted(self.outcomes.history, self.nodes, resource, self.spec)
        return self._amounts[resource]

    def _groups(self) -> SeriesGroups:
        queues = [workload.queue or DEFAULT_QUEUE for workload in self.outcomes.workloads]
        names = sorted(set(queues))
        number = {name: index for index, name in enumerate(names)}
        of_job = np.array([number[name] for name in queues], dtype=np.int64)
        time = (self.until - self.outcomes.holdings.since).astype(np.float64)
        weights = np.bincount(of_job[self.job], time * self.amounts(self.main), minlength=len(names))
        ranked = sorted(range(len(names)), key=lambda index: (-weights[index], names[index]))
        rank = np.empty(len(names), dtype=np.int64)
        rank[ranked] = np.arange(len(names))
        if len(names) <= COLORS:
            return SeriesGroups(tuple(names[index] for index in ranked), rank[of_job])
        shown = tuple(names[index] for index in ranked[: COLORS - 1])
        return SeriesGroups((*shown, OTHERS), np.minimum(rank, COLORS - 1)[of_job])

    def uses(self, limit: int = 4) -> list[ResourceUse]:
        """Give what was held over time of the first few resources, by group of queues."""
        since = self.outcomes.holdings.since
        found = []
        for resource, capacity in list(self.resources.items())[:limit]:
            amount = self.amounts(resource)
            series = self._by_group(
                np.concatenate((since, self.until)),
                np.concatenate((amount, -amount)),
                np.tile(self.groups.of_job[self.job], 2),
            )
            found.append(ResourceUse(resource, capacity, series))
        return found

    def waiting(self) -> Series:
        """Give the number of jobs that have arrived and hold nothing, over time, by group of queues."""
        outcomes, holdings = self.outcomes, self.outcomes.holdings
        arrived = np.flatnonzero(outcomes.submit >= 0)
        times = timeline(self.job, holdings.since, holdings.left, holdings.bound, holdings.freed)
        running = times.running(np.ones(len(self.job), dtype=np.int64))
        starts = np.flatnonzero((running == 1) & (times.sign > 0))
        stops = np.flatnonzero((running == 0) & (times.sign < 0) & holdings.evicted[times.entry])
        columns = outcomes.history.columns
        drops = np.flatnonzero(columns.kind == DROP)
        at = np.concatenate((outcomes.submit[arrived], times.at[starts], times.at[stops], columns.at[drops]))
        job = np.concatenate((arrived, times.group[starts], times.group[stops], columns.job[drops]))
        ones = [np.full(len(part), sign) for part, sign in ((arrived, 1), (starts, -1), (stops, 1), (drops, -1))]
        return self._by_group(at, np.concatenate(ones), self.groups.of_job[job])

    def evictions(self, bins: int = 60) -> Series | None:
        """Count evicted tasks in bins of time by cause; ``None`` where nothing was evicted."""
        columns = self.outcomes.history.columns
        where = np.flatnonzero(columns.kind == EVICT)
        if not len(where):
            return None
        extras = [columns.extra[index] for index in where.tolist()]
        causes = [extra.cause if isinstance(extra, EvictionDetails) else "" for extra in extras]
        names = sorted(set(causes))
        edges = np.linspace(self.edges[0], self.edges[-1], bins + 1)
        cause = np.array([names.index(name) for name in causes])
        at = columns.at[where]
        values = np.array([np.histogram(at[cause == index], edges)[0] for index in range(len(names))], dtype=np.float64)
        return Series(edges, values, tuple(names))

    def _by_group(self, at: Ints, change: Ints, group: Ints) -> Series:
        values = [
            binned_means(at[group == index], change[group == index], self.edges)
            for index in range(len(self.groups.names))
        ]
        return Series(self.edges, np.array(values).reshape(len(values), BINS), self.groups.names)


def binned_means(at: Ints, change: Ints, edges: Floats) -> Floats:
    """Average a step function, which changes by ``change`` at the times ``at``, in each bin."""
    order = np.argsort(at, kind="stable")
    time = at[order].astype(np.float64) - edges[0]
    step = change[order].astype(np.float64)
    level = np.concatenate(([0.0], np.cumsum(step)))
    moment = np.concatenate(([0.0], np.cumsum(step * time)))
    border = edges - edges[0]
    index = np.searchsorted(time, border, side="right")
    integral = level[index] * border - moment[index]
    means: Floats = np.diff(integral) / np.diff(border)
    return np.where(np.abs(means) < 1e-9 * max(1.0, float(np.abs(level).max())), 0.0, means)
