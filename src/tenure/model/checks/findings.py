"""What is wrong with a cluster as a whole, in terms of the cluster and not yet of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tenure.model.values.report import Path


@dataclass(frozen=True, slots=True)
class ClusterFinding:
    """A problem of a cluster as a whole.

    ``path`` goes through the cluster: ``("workloads", 3, "tasks", 0, "node")``.
    """

    path: Path
    message: str
    is_warning: bool = False


Findings = Iterator[ClusterFinding]


def ratio_text(amounts: dict[str, int]) -> str:
    """List amounts for a message."""
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items())
