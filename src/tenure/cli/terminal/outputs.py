"""What several commands write."""

from __future__ import annotations

from io import StringIO

from tenure.model.cluster import Cluster
from tenure.model.documents.files import write_atomically
from tenure.model.file.dump import dump_cluster


def write_cluster(cluster: Cluster, path: str) -> None:
    """Write a cluster file: JSON if its name ends so, else YAML. An error leaves what was there."""
    text = StringIO()
    dump_cluster(cluster, text, format="json" if path.endswith(".json") else "yaml")
    write_atomically(path, text.getvalue())
