"""Asking an API server to let a pod go, by an eviction or, where a budget allowed nothing for too long, a deletion."""

from __future__ import annotations

from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.write import patches
from tenure.clusters.kubernetes.write.overdue import REFUSED_BY_BUDGET, OverdueBudgets
from tenure.clusters.kubernetes.write.pod_writer import PodWriter
from tenure.engine.plan import PlanStep


class EvictionRequests:
    """The requests by which pods are evicted, each of which raises where the API server refuses it."""

    def __init__(self, pods: PodWriter) -> None:
        self._write = pods
        self._overdue = OverdueBudgets(pods.informers)

    def rehearse(self, step: PlanStep, observed: Observed) -> None:
        """Make an eviction without effect."""
        pod = observed.pod(step.workload, step.task_index)
        self.let_go(step, pod, pod.version, observed, dry=True)

    def let_go(self, step: PlanStep, pod: PodRecord, version: str, observed: Observed, *, dry: bool = False) -> None:
        """Evict a pod; delete it where nothing keeps it but a budget that has allowed nothing for too long."""
        try:
            self._ask_to_go(pod, version, dry=dry)
        except ApiError as error:
            if error.status not in REFUSED_BY_BUDGET:
                raise
            if not self._overdue.is_overdue(step, pod, observed.workloads[step.workload], observed.cluster):
                raise
            if not dry:  # no other reason than this one will ever stand there
                self._write.patch(pod, patches.target_again(pod, step, observed.cluster.now))
            self._write.client.delete(patches.pod_path(pod), patches.deletion(pod, dry=dry))

    def _ask_to_go(self, pod: PodRecord, version: str, *, dry: bool) -> None:
        """Ask for an eviction, whatever the pod's owner has changed in it since it had that version."""
        path = patches.pod_path(pod, "eviction")
        try:
            self._write.client.create(path, patches.eviction(pod, version, dry=dry))
        except ApiError as error:
            if not self._write.still_runs(pod, error):
                raise
            self._write.client.create(path, patches.eviction(pod, dry=dry))
