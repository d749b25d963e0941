"""A session from a cluster: the whole of what a decision depends on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from tenure.engine.device_reasons import supply
from tenure.engine.devices.answers import KnownAnswers
from tenure.engine.run_times import RunTimes
from tenure.engine.state.session import Session
from tenure.model.cluster import Cluster
from tenure.model.documents.collector import collector_paused, count_as_old
from tenure.model.manifests.device_uses import class_counts
from tenure.model.manifests.extended_resources import OF_CLASS, served_by
from tenure.model.node import Node

MANY: Final = 1_000
"""Workloads from which on what was made of them is not looked through for garbage once they are taken in."""


def session_of(cluster: Cluster, known: KnownAnswers | None = None, *, extra: Iterable[str] = ()) -> Session:
    """Make a session that holds what the cluster holds at its ``now``.

    ``known`` is what a session before this one knew of devices; ``extra`` are resources that what comes later may ask
    for.
    """
    asked = {name for w in cluster.workloads for t in w.tasks for name, _ in (*t.spec.requests, *t.spec.counted)}
    counts = class_counts(cluster.devices.classes, cluster.settings)
    asked |= {name for found in counts.values() for name in found}.union(extra)
    namespaces = {namespace.name: namespace.labels for namespace in cluster.namespaces}
    nodes = [_as_of(node, cluster.now) for node in cluster.nodes]
    session = Session(nodes, cluster.queues, cluster.settings, extra=asked, namespaces=namespaces)
    session.now = cluster.now
    session.evictions, session.disruption_budgets = cluster.evictions, cluster.disruption_budgets
    session.refused_evictions = cluster.refused_evictions
    session.outcomes, session.run_times = cluster.outcomes, RunTimes(cluster.finished_runs)
    session.terms.volumes.attached.attach(cluster.attachments)
    session.terms.devices.take_in(cluster.devices, known)
    served = {name: of for name, of in served_by(cluster.devices.classes).items() if name in session.nodes.row}
    for name, class_name in served.items():
        if name.startswith(OF_CLASS):  # so that there is as much of it as its class has devices
            counts[class_name] = {**counts.get(class_name, {}), name: 1}
    session.occupancy.supply = supply(session.terms.devices, counts)
    session.terms.devices.served.serve(session.terms.devices.room, served)
    with collector_paused():
        session.add_workloads(cluster.workloads)
        if len(cluster.workloads) > MANY:
            count_as_old()
    return session


def _as_of(node: Node, now: int) -> Node:
    """Give a node as it counts at a time: one that was to be there by then counts as one that is not ready."""
    is_late = node.awaited_until is not None and node.awaited_until <= now
    return replace(node, awaited_until=None, ready=False) if is_late else node
