"""A session from a cluster: the whole of what a decision depends on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from tenure.engine.session import Session
from tenure.model.cluster import Cluster


def session_of(cluster: Cluster) -> Session:
    """Make a session that holds what the cluster holds at its ``now``."""
    asked = {name for w in cluster.workloads for t in w.tasks for name, _ in t.spec.requests}
    session = Session(cluster.nodes, cluster.queues, cluster.settings, extra=asked)
    session.now = cluster.now
    session.evictions, session.disruption_budgets = cluster.evictions, cluster.disruption_budgets
    with _no_garbage():
        session.add_workloads(cluster.workloads)
    return session


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Do not look for garbage meanwhile: everything that is made stays, and there is much of it."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()
