"""The independent checker of a simulation.

It shares no code with the engine: it knows only what the event log says, what the nodes have and what the
workloads ask for, and counts the invariants that were broken.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.workload import Workload
from tenure.simulator.checks.capacity import check_nodes, check_queues
from tenure.simulator.checks.columns import columns_of, history_of
from tenure.simulator.checks.devices import check_devices
from tenure.simulator.checks.ends import check_ends
from tenure.simulator.checks.evictions import check_evictions
from tenure.simulator.checks.findings import ViolationCollector, Violations
from tenure.simulator.checks.gangs import check_gangs
from tenure.simulator.checks.min_runtime import min_runtime_of
from tenure.simulator.checks.notices import check_notices
from tenure.simulator.checks.order import check_order, known_events
from tenure.simulator.checks.plans import check_plans
from tenure.simulator.checks.shields import check_shields
from tenure.simulator.log import EventLog

__all__ = ["Violations", "check"]


def check(
    log: EventLog,
    nodes: Sequence[Node],
    workloads: Sequence[Workload] | None = None,
    queues: Sequence[Queue] = (),
    *,
    complete: bool = True,
    settings: Settings | None = None,
    served: Collection[str] = (),
) -> Violations:
    """Count broken invariants.

    Each counts once per excursion (a node that goes over its capacity and stays there is one violation), once per
    event (a task bound twice), or once per workload and instant (a protected core evicted).

    Parameters
    ----------
    log
        What happened.
    nodes
        The nodes that the log's node indices refer to.
    workloads
        What the job indices refer to; the log's own where not given.
    queues
        The queue tree, for its maxima (GPUs in milli-GPU) and what it says of evictions.
    complete
        Whether the simulation came to its end: in one that was interrupted, beneficiaries may still be waiting.
    settings
        What devices count for queues, and how long workloads run and are told before they are evicted. Where not
        given, devices count as by default, and of minimum runtimes only what the log recorded with each eviction is
        held against it.
    served
        Resources that devices by claims serve: no node says how much it has of them.

    Returns
    -------
    Violations
        How many, of which kinds, and the first examples in words.
    """
    jobs = log.workloads if workloads is None else workloads
    findings = ViolationCollector()
    columns = known_events(columns_of(log), jobs, len(nodes), findings)
    history = history_of(log, jobs, columns, settings)
    check_order(history, findings)
    check_nodes(history, nodes, findings, served)
    check_devices(history, nodes, findings)
    check_queues(history, nodes, queues, findings)
    check_gangs(history, findings, None if settings is None else min_runtime_of(settings, queues, jobs))
    check_evictions(history, findings, complete=complete)
    check_shields(history, queues, findings)
    check_notices(history, queues, findings, complete=complete, settings=settings)
    check_plans(history, findings)
    check_ends(history, findings, closed=log.closed and complete)
    return findings.result()
