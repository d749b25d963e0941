"""A simulation from its start to its summary: what was replayed, what was broken, and the figures."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from tenure.model.cluster import Cluster
from tenure.model.file.dump import settings_to_plain
from tenure.model.manifests.extended_resources import served_by
from tenure.simulator.checker import Violations, check
from tenure.simulator.metrics import summarize
from tenure.simulator.outcomes import PENDING, RUNNING, Outcomes, outcomes_of
from tenure.simulator.run import Progress, Simulation, SimulationResult, SimulationSetup
from tenure.simulator.trace import Trace


class FinishedSimulation(NamedTuple):
    """A simulation that has ended, what became of its jobs, what was broken, and the seconds it took."""

    result: SimulationResult
    outcomes: Outcomes
    violations: Violations
    wall_s: float


def setup_of(cluster: Cluster, *, arrivals_only: bool) -> SimulationSetup:
    """Give the start of a simulation; with ``arrivals_only`` placement knows the trace's mix of tasks.

    Nodes that are on their way are left out: a cluster does not say when they come, or whether.
    """
    there = replace(cluster, nodes=tuple(node for node in cluster.nodes if node.awaited_until is None))
    return SimulationSetup(there, arrivals_only=arrivals_only, whole_mix=arrivals_only)


def run_whole(
    setup: SimulationSetup, trace: Trace, look: Callable[[Progress], None] | None = None, every: int = 1000
) -> FinishedSimulation:
    """Replay a trace and check what happened. ``look`` hears of the progress after every so many events."""
    began = time.perf_counter()
    result = Simulation(setup, trace).run(look, every)
    return finished(result, trace, time.perf_counter() - began)


def finished(result: SimulationResult, trace: Trace, wall_s: float) -> FinishedSimulation:
    """Check what happened in a simulation that has ended, and work out what became of its jobs."""
    cluster = result.setup.cluster
    settings = cluster.settings
    violations = check(
        result.log, cluster.nodes, queues=cluster.queues, complete=result.complete, settings=settings,
        served=served_by(cluster.devices.classes),
    )  # fmt: skip
    return FinishedSimulation(result, outcomes_of(result.log, trace, settings), violations, wall_s)


def summary_of(run: FinishedSimulation, trace: Trace, name: str) -> dict[str, Any]:
    """Give the summary that ``tenure simulate --format json`` prints; ``name`` is what the trace was given as."""
    cluster, mine = run.result.setup.cluster, run.outcomes.state[run.outcomes.initial :]
    summary = summarize(
        run.outcomes, trace, cluster.nodes, violations=run.violations.total, wall_s=round(run.wall_s, 3)
    )
    return {
        **summary,
        "running": mine.count(RUNNING),
        "waiting": mine.count(PENDING),
        "complete": run.result.complete,
        "trace": name,
        "traceFormat": trace.format,
        "nodes": len(cluster.nodes),
        "scheduler": settings_to_plain(cluster.settings),
    }
