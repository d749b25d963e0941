"""Whose a workload is: its team, and its user where that may be written."""

from __future__ import annotations

from tenure.model.cluster import Cluster
from tenure.model.workload import Workload


class Who:
    """Says whose workloads are, by the settings `history.teamLabel` and `history.userLabel`; nothing without them."""

    def __init__(self, cluster: Cluster) -> None:
        settings = cluster.settings.history
        labels = (("team", settings.team_label), ("user", settings.user_label))
        self.labels = [(name, label) for name, label in labels if label is not None]

    def named(self, model: Workload, prefix: str = "") -> dict[str, str]:
        """Give ``team`` and ``user`` (``forTeam`` and ``forUser`` with the prefix ``for``) as far as they are known."""
        if not self.labels:
            return {}
        named = ((name.capitalize() if prefix else name, model.labels.get(label)) for name, label in self.labels)
        return {prefix + name: value for name, value in named if value is not None}
