"""All rules that a cluster as a whole obeys."""

from __future__ import annotations

from tenure.model.checks.devices import check_devices
from tenure.model.checks.disruption import check_disruption
from tenure.model.checks.findings import Findings
from tenure.model.checks.placement import check_nodes, check_placement
from tenure.model.checks.queues import check_max_names, check_queues
from tenure.model.checks.storage import check_storage
from tenure.model.checks.workloads import check_budgets, check_workloads
from tenure.model.cluster import Cluster
from tenure.model.device_resources import capacity_of
from tenure.model.manifests.device_uses import class_counts
from tenure.model.values.quantity import MAX_AMOUNT


def check_cluster(cluster: Cluster) -> Findings:
    """Find everything that is wrong with a cluster, and what deserves a warning.

    A cluster without findings of either kind, or with warnings alone, may be given to the engine.
    """
    yield from check_nodes(cluster.nodes)
    capacity = _capacity(cluster) if cluster.nodes else None
    yield from check_queues(cluster.queues, capacity)
    if capacity is not None:
        yield from check_max_names(cluster, capacity)
    yield from check_workloads(cluster.workloads, cluster.queues)
    yield from check_placement(cluster.nodes, cluster.workloads)
    yield from check_budgets(cluster.disruption_budgets)
    yield from check_disruption(cluster)
    yield from check_storage(cluster)
    yield from check_devices(cluster)


def _capacity(cluster: Cluster) -> dict[str, int]:
    """Give what nodes have; no bound is known for resources of which devices of claims are some as well."""
    counts = class_counts(cluster.devices.classes, cluster.settings)
    by_claims = {name: MAX_AMOUNT for count in counts.values() for name in count}
    return capacity_of(cluster.nodes, cluster.settings) | by_claims
