"""The condition ``Accepted`` of Tenure's own objects: whether they could be read, else what is wrong."""

from __future__ import annotations

from typing import Any, Final

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.read import groups
from tenure.model.values.duration import format_time

PLURALS: Final = {
    "queues": "Queue",
    "podgroups": "PodGroup",
    "disruptionbudgets": "DisruptionBudget",
    "nodepools": "NodePool",
    "workloadkinds": "WorkloadKind",
}
MOST = 25
"""Objects whose condition is written in one cycle."""


class Conditions:
    """The writer of the condition ``Accepted``; each state of an object is looked at once."""

    def __init__(self, client: Client, informers: InformerCache) -> None:
        self.client = client
        self.informers = informers
        self._seen: dict[tuple[str, str, str], tuple[str, tuple[str, ...]]] = {}

    def write(self, now: int) -> None:
        """Write what is missing, as far as it is allowed and there is time."""
        written = 0
        for plural, kind in PLURALS.items():
            objects = self.informers.objects.get(plural)
            for item in objects.sorted() if objects is not None else ():
                if written >= MOST:
                    return
                meta = item.metadata
                if kind == "NodePool" and meta.name != self.informers.options.pool:
                    continue  # its own scheduler knows whether it can be read
                key = (plural, meta.namespace, meta.name)
                found = self.informers.findings.current.get((kind, meta.namespace, meta.name), ())
                seen = (meta.resource_version, tuple(found))
                if self._seen.get(key) == seen:
                    continue
                self._seen[key] = seen
                problems = groups.pod_group(item).problems if kind == "PodGroup" else tuple(found)
                written += self._write(plural, item, problems, now)

    def _write(self, plural: str, item: api.ApiObject, problems: tuple[str, ...], now: int) -> int:
        meta = item.metadata
        wanted = {
            "type": "Accepted",
            "status": "False" if problems else "True",
            "reason": "Invalid" if problems else "Valid",
            "message": "; ".join(problems)[:1000],
            "observedGeneration": meta.generation,
        }
        status = item.status if isinstance(item.status, dict) else {}
        others = [c for c in status.get("conditions") or () if isinstance(c, dict)]
        known = next((c for c in others if c.get("type") == "Accepted"), None)
        if known is not None and all(known.get(key) == value for key, value in wanted.items()):
            return 0
        if known is None or known.get("status") != wanted["status"]:
            since: Any = format_time(now // 1_000_000 * 1_000_000)
        else:
            since = known.get("lastTransitionTime")
        conditions = [*(c for c in others if c.get("type") != "Accepted"), {**wanted, "lastTransitionTime": since}]
        path = self.informers.status_path(plural, meta.namespace, meta.name)
        try:
            self.client.patch(path, {"status": {"conditions": conditions}})
        except ApiError:
            return 1  # the next state of the object is another occasion
        return 1
