"""A live Kubernetes cluster, as the loop sees it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.cache.informers import InformerCache, Options
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.client.leader import NotLeaderError
from tenure.clusters.kubernetes.client.requests import Client, FencedClient
from tenure.clusters.kubernetes.explanation_queue import ExplanationQueue
from tenure.clusters.kubernetes.keys import lease_name
from tenure.clusters.kubernetes.news import ClusterNews
from tenure.clusters.kubernetes.read import kueue, volcano
from tenure.clusters.kubernetes.read.eviction_log import EvictionEntry
from tenure.clusters.kubernetes.read.observe import Observed, Observer
from tenure.clusters.kubernetes.write.actor import Actor
from tenure.clusters.kubernetes.write.conditions import Conditions
from tenure.clusters.kubernetes.write.events import Events, Subject
from tenure.clusters.kubernetes.write.explanations import Explanations
from tenure.clusters.kubernetes.write.outcome import Outcome
from tenure.clusters.kubernetes.write.pause import pause_of
from tenure.clusters.kubernetes.write.sealer import Sealer
from tenure.engine.plan import Plan
from tenure.model.settings import Settings
from tenure.model.workload import Phase


class KubernetesCluster:
    """A cluster behind an API server, observed and acted on.

    ``failed`` is told of what broke a watch and should not.
    ``explains``: it writes on pods why they wait.
    """

    explains = True
    fenced = NotLeaderError

    def __init__(
        self,
        client: Client,
        options: Options,
        settings: Settings | None = None,
        *,
        identity: str = "tenure",
        in_flight: int = 16,
        allowed: Callable[[], None] = lambda: None,
        warnings: Collection[str] = ("Invalid",),
        failed: Callable[[str, BaseException], None] = lambda _what, _error: None,
    ) -> None:
        self.client = FencedClient(client, allowed)
        self.informers = InformerCache(client, options, failed)
        self.observer = Observer(self.informers, settings)
        self.actor = Actor(self.client, self.informers, in_flight=in_flight, allowed=allowed)
        self.events = Events(self.client, identity, wall=client.clock.now)
        self.conditions = Conditions(self.client, self.informers)
        self.sealer = Sealer(self.client, self.informers, failed=lambda error: failed("seals", error))
        self.explanations = Explanations(
            self.client, self.informers, failed=lambda error: failed("explanations", error)
        )
        self.allowed = allowed
        self.warnings = warnings
        self.explanation_queue = ExplanationQueue()
        self.news = ClusterNews(self.informers, self.actor.has_answers)

    def start(self) -> None:
        """Begin to watch."""
        self.informers.start()
        self.sealer.thread.start()
        self.explanations.thread.start()

    def close(self) -> None:
        """Finish what is under way and end."""
        self.actor.close()
        self.sealer.thread.stop()
        self.explanations.thread.stop()
        self.events.stop()
        self.informers.stop()

    def ready(self) -> bool:
        """Whether everything that a decision depends on was listed."""
        return self.informers.synced

    def wait(self, seconds: float) -> bool:
        """Wait until something changed since the last observation that may call for a decision, or so many seconds."""
        return self.news.wait(seconds)

    def wake(self) -> None:
        """Let nobody wait any longer: there is nothing to wait for."""
        self.news.end()

    def observe(self, now: int) -> Observed:
        """Give the cluster as it is known now."""
        self.informers.discover_at_times()
        self.informers.pods.overdue()
        return self.observer.observe(now, is_brief=self.news.begin())

    def stands(self, plan: Plan) -> bool:
        """Whether what a plan counts on was not refused meanwhile."""
        return self.actor.stands(plan)

    def carry_out(self, plan: Plan, view: Observed) -> Outcome:
        """Carry a plan out."""
        outcome = self.actor.carry_out(plan, view)
        for workload, (reason, message) in outcome.preparing.items() if self.explains else ():
            self._explain(view.pods.get(workload, ()), reason, message, view.cluster.now)
        self.sealer.tell(view)
        return outcome

    def strike(self, entries: Sequence[EvictionEntry]) -> None:
        """Take out of the eviction log what was announced, and of which nothing came."""
        self.actor.logbook.remove(entries)

    def paused_until(self, now: int) -> int:
        """Give until when evictions are paused, in µs since the epoch; a time that has passed where they are not."""
        leases = self.informers.objects.get("leases")
        options = self.informers.options
        item = leases.items.get((options.namespace, lease_name(options.pool))) if leases is not None else None
        found = pause_of((item.metadata.annotations or {}).get(keys.PAUSE)) if item is not None else None
        return found.until if found is not None and found.until > now else 0

    # -- telling ----------------------------------------------------------------------------------------------------

    @property
    def has_more_to_explain(self) -> bool:
        """Tell whether some that do not say why they wait were not looked at yet."""
        return self.explanation_queue.has_more

    def unexplained(self, view: Observed, most: int) -> Iterator[str]:
        """Give workloads that wait: those that do not say why yet, and those that were looked at long ago."""
        return self.explanation_queue.take(view, most)

    def tell(
        self, notes: Sequence[tuple[str, str, str, str]], waiting: Sequence[tuple[str, str, str]], view: Observed
    ) -> None:
        """Write events, and why pods wait."""
        for kind, name, reason, message in notes:
            subject = self._node_pool() if kind == "pool" else self._subject_of(kind, name, view)
            if subject is not None:
                self.events.tell(subject, reason, message, is_warning=reason in self.warnings)
        for workload, reason, message in waiting:
            self._explain(view.pods.get(workload, ()), reason, message, view.cluster.now)
        for left in view.left_out if self.explains else ():
            self._explain(left.pods, left.reason, left.message, view.cluster.now)
        self._report()
        self.conditions.write(view.cluster.now)

    def _subject_of(self, kind: str, name: str, view: Observed) -> Subject | None:
        return view.subject(name) if kind == "workload" else self._queue(view, name)

    def _node_pool(self) -> Subject | None:
        """Give the node pool's object; None where its settings come from elsewhere."""
        pools = self.informers.objects.get("nodepools")
        item = None if pools is None else pools.items.get(("", self.informers.options.pool))
        return None if item is None else _subject("NodePool", item.metadata)

    def _queue(self, view: Observed, name: str) -> Subject | None:
        """Give the object of a queue; those of YuniKorn's ConfigMap have none of their own."""
        kind = view.queue_kinds.get(name, "")
        objects = self.informers.objects.get(kind)
        item = None if objects is None else objects.items.get(("", name))
        if item is None:
            return None
        return _subject(_QUEUES[kind], item.metadata)

    def _explain(self, pods: Sequence[PodRecord], reason: str, message: str, now: int) -> None:
        """Have it written on pods why they wait, where they do not say it already."""
        for pod in pods[:_MOST_PODS]:
            if pod.task.phase is Phase.PENDING and pod.waits != (reason, message):
                self.explanations.tell(pod, reason, message, now)

    def _report(self) -> None:
        """Tell of objects in which something is wrong."""
        new = self.informers.findings.new
        while new:
            kind, meta, message = new.popleft()
            self.events.tell(_subject(kind, meta), "Invalid", message, is_warning=True)


_MOST_PODS = 200
_QUEUES = {
    "queues": "Queue", "kai queues": "KAI Queue", volcano.WATCH: "Volcano Queue", kueue.CLUSTER_QUEUES: "ClusterQueue",
}  # fmt: skip
"""Kinds of queues by the names of their watches."""

_VERSIONS = {
    "Pod": "v1",
    "Node": "v1",
    "Namespace": "v1",
    "ConfigMap": "v1",
    "Lease": "coordination.k8s.io/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "Job": "batch/v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "KAI Queue": "scheduling.run.ai/v2",
    "Volcano Queue": "scheduling.volcano.sh/v1beta1",
    "ClusterQueue": "kueue.x-k8s.io/v1beta2",
    "KAI PodGroup": "scheduling.run.ai/v2alpha2",
    "native PodGroup": "scheduling.k8s.io/v1beta1",
    "native Workload": "scheduling.k8s.io/v1beta1",
}


def _subject(kind: str, meta: api.Meta) -> Subject:
    version = _VERSIONS.get(kind, api.GROUP_VERSION)
    return Subject(version, kind.rpartition(" ")[2], meta.namespace, meta.name, meta.uid)
