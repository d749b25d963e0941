"""Rules about volumes, the claims for them, and what is beside them."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.model.checks.findings import ClusterFinding, Findings
from tenure.model.cluster import Cluster
from tenure.model.values.problems import NearestNames


def check_storage(cluster: Cluster) -> Findings:
    """Check the names of volumes, claims, classes and drivers, and the nodes to which volumes are attached."""
    storage = cluster.storage
    yield from check_names("volumes", "volume", (v.name for v in storage.volumes))
    yield from check_names("claims", "claim", (c.key for c in storage.claims))
    yield from check_names("storageClasses", "class", (c.name for c in storage.storage_classes))
    yield from check_names("csiDrivers", "driver", (d.name for d in storage.drivers))
    nodes = {node.name for node in cluster.nodes}
    hints = NearestNames(list(nodes))
    for index, attachment in enumerate(cluster.attachments):
        if attachment.node not in nodes:
            yield ClusterFinding(
                ("attachments", index, "node"),
                f"there is no node {attachment.node}{hints.hint(attachment.node) or '; name one of the nodes'}",
            )


def check_names(section: str, kind: str, names: Iterable[str]) -> Findings:
    """Check that no two entries of a section have one name."""
    places: dict[str, int] = {}
    for index, name in enumerate(names):
        first = places.setdefault(name, index)
        if first != index:
            yield ClusterFinding(
                (section, index, "name"),
                f"{kind} {name} is there twice, first as {section}[{first}]; give each its own name",
            )
