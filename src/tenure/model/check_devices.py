"""Rules about slices and classes of devices, and the claims on these."""

from __future__ import annotations

from tenure.model.check_storage import check_names
from tenure.model.cluster import Cluster
from tenure.model.findings import Findings


def check_devices(cluster: Cluster) -> Findings:
    """Check the names of slices, classes and claims."""
    devices = cluster.devices
    yield from check_names("resourceSlices", "slice", (s.name for s in devices.slices))
    yield from check_names("deviceClasses", "class", (c.name for c in devices.classes))
    yield from check_names("resourceClaims", "claim", (c.key for c in devices.claims))
