"""Rules about slices and classes of devices, and the claims on these."""

from __future__ import annotations

from tenure.model.checks.findings import ClusterFinding, Findings
from tenure.model.checks.storage import check_names
from tenure.model.cluster import Cluster
from tenure.model.device_resources import as_set, is_of_another_vendor
from tenure.model.values.resources import GPU


def check_devices(cluster: Cluster) -> Findings:
    """Check the names of slices, classes and claims."""
    devices = cluster.devices
    yield from check_names("resourceSlices", "slice", (s.name for s in devices.slices))
    yield from check_names("deviceClasses", "class", (c.name for c in devices.classes))
    yield from check_names("resourceClaims", "claim", (c.key for c in devices.claims))
    yield from _check_vendors(cluster)


def _check_vendors(cluster: Cluster) -> Findings:
    """Warn where amounts that name NVIDIA's GPUs hold for devices of others as well, and no setting says so."""
    there = {resource for node in cluster.nodes for resource, many in node.allocatable.items() if many}
    if GPU not in there or not any(GPU in amounts for q in cluster.queues for amounts in (q.guaranteed, q.max)):
        return
    for resource in sorted(there):
        if is_of_another_vendor(resource) and as_set(resource, cluster.settings) is None:
            message = (
                f"{GPU} counts GPUs of all vendors, and nodes have {resource} beside it; write deviceResources: "
                f"{{{resource}: {{}}}} to count these apart, or {{{resource}: {{{GPU}: 1}}}} if they are meant"
            )
            yield ClusterFinding(("queues",), message, is_warning=True)
