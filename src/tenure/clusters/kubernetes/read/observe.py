"""From the image of the API server's objects to a cluster as the engine decides about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.cache.handlers import GroupKey, ObjectStore
from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.cache.pod_records import TENURE, PodRecord
from tenure.clusters.kubernetes.read import budgets, eviction_log, groups
from tenure.clusters.kubernetes.read.groups import GroupDeclaration
from tenure.clusters.kubernetes.read.nominations import NominationUpdates, with_promises
from tenure.clusters.kubernetes.read.queues import config_map, kai_queue_of, queue_of, sound, stored_status
from tenure.clusters.kubernetes.read.workloads import EvictionHistory, ObservedWorkload, held, make
from tenure.clusters.kubernetes.read.yunikorn import YuniKorn
from tenure.clusters.kubernetes.write.events import Subject
from tenure.model.check_placement import check_placement
from tenure.model.check_workloads import check_workloads
from tenure.model.cluster import Cluster
from tenure.model.findings import ClusterFinding
from tenure.model.node import Node
from tenure.model.queue import Queue, QueueStatus
from tenure.model.settings import Settings
from tenure.model.workload import Phase

DEFAULT_POOL = "default"
_KINDS = ("group", "Job", "JobSet", "StatefulSet", "Deployment", "ReplicaSet", "Pod")
"""Of groups of one name the first of these keeps it; the others have their kind behind it."""

_OWNERS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "ReplicaSet": "replicasets", "JobSet": "jobsets"}
_SAYING = (
    "podgroups", "kai podgroups", "native podgroups", "native workloads", "jobs", *_OWNERS.values(), "priorityclasses",
)  # fmt: skip
"""Where something is said of workloads beside their pods."""


class LeftOut(NamedTuple):
    """Pods that wait and cannot be decided about: the reason for their condition, and what is wrong."""

    pods: tuple[PodRecord, ...]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Observed:
    """A cluster, and what writing to it needs: by workload the pods behind its tasks, in their order."""

    cluster: Cluster
    pods: dict[str, tuple[PodRecord, ...]] = field(default_factory=dict)
    uids: dict[str, str] = field(default_factory=dict)
    queue_kinds: dict[str, str] = field(default_factory=dict)
    log: tuple[eviction_log.EvictionEntry, ...] = ()
    subjects: dict[str, Subject] = field(default_factory=dict)
    promises: NominationUpdates = field(default_factory=NominationUpdates)
    left_out: tuple[LeftOut, ...] = ()

    @property
    def identities(self) -> dict[tuple[str, int], str]:
        """Give the pods' uids by workload and number of the task."""
        return {(key, number): pod.uid for key, pods in self.pods.items() for number, pod in enumerate(pods)}

    def has_pod(self, workload: str, task: int) -> bool:
        """Whether a task has a pod: not what stands in for one that is expected."""
        return task < len(self.pods[workload])

    def pod(self, workload: str, task: int) -> PodRecord:
        """Give the pod behind a task."""
        return self.pods[workload][task]


class Observer:
    """Makes clusters of what a mirror holds; workloads whose pods did not change are made once."""

    def __init__(self, informers: InformerCache, settings: Settings | None = None) -> None:
        self.informers = informers
        self.given = settings
        self.yunikorn = YuniKorn()
        self._made: dict[GroupKey, ObservedWorkload] = {}
        self._configured: tuple[Any, ...] = ()
        self._beside: tuple[Any, ...] = ()
        self._queues: tuple[Queue, ...] = ()
        self._settings = settings or Settings()
        self._queue_kinds: dict[str, str] = {}
        self._left_out: list[LeftOut] = []
        self._described: dict[tuple[str, str, str], GroupDeclaration] = {}

    def observe(self, now: int) -> Observed:
        """Give the cluster as it is known at ``now`` (µs since the epoch)."""
        informers = self.informers
        with informers.pods.lock:
            nodes = self._nodes()
            self._configure()
            written = self._log()
            alive = alive_pods(informers) if written else set()
            log = eviction_log.happened(written, alive)
            announced = [entry for entry in written if entry.uid in alive]
            self._renew(eviction_log.pasts(log), now)
            known = {node.name for node in nodes}
            found = informers.usage.of_workloads(self._named(known), now)
            nodes = informers.usage.of_nodes(nodes, now)
        found = self._sound(found, nodes)
        found, promises = with_promises(found, log, announced, nodes, now, self._settings.nomination_timeout)
        workloads = tuple(made.workload for made in found)
        cluster = Cluster(
            now=now,
            settings=self._settings,
            nodes=nodes,
            queues=self._queues,
            workloads=workloads,
            disruption_budgets=self._budgets(),
            evictions=tuple(sorted(map(eviction_log.eviction_of, log), key=lambda e: (e.at, e.workload, e.task))),
        )
        return Observed(
            cluster,
            {made.workload.key: made.pods for made in found},
            {made.workload.key: made.workload.uid for made in found},
            self._queue_kinds,
            tuple(log),
            {made.workload.key: _subject(made) for made in found},
            promises,
            tuple(self._left_out),
        )

    # -- configuration --------------------------------------------------------------------------------------------

    def _configure(self) -> None:
        """Read queues and settings anew where anything of them changed."""
        names = ("queues", "kai queues", "yunikorn", "nodepools", "disruptionbudgets", "eviction log")
        versions = tuple(self._objects(name).version for name in names)
        if versions == self._configured:
            return
        self._configured = versions
        self.informers.findings.begin("Queue", "DisruptionBudget", "NodePool")
        tell = self.informers.findings.tell
        self.yunikorn.read(self._objects("yunikorn").sorted(), tell)
        own = [(q, item.metadata) for item in self._objects("queues").sorted() if (q := queue_of(item, tell))]
        kai = [(q, item.metadata) for item in self._objects("kai queues").sorted() if (q := kai_queue_of(item, tell))]
        listed = own or kai
        kind = "yunikorn" if self.yunikorn.queues else "queues" if own else "kai queues"
        queues = self.yunikorn.queues or sound(listed, tell)
        if kind != "queues":
            stored = self._stored()
            queues = tuple(replace(q, status=stored.get(q.name)) for q in queues)
        self._queues, self._queue_kinds = queues, dict.fromkeys((q.name for q in queues), kind)
        self._settings = self._read_settings()
        hot = self._settings.rescheduler.hot_nodes
        self.informers.usage.want(hot.hot if hot.enabled else None)

    def _stored(self) -> dict[str, QueueStatus]:
        """Give what was written about queues that are not Tenure's own."""
        options = self.informers.options
        item = self._objects("eviction log").items.get((options.namespace, config_map(options.pool)))
        data = item.data if item is not None and isinstance(item.data, dict) else {}
        found = {}
        for name, text in data.items():
            status = stored_status(text)
            if status is not None:
                found[name] = status
        return found

    def _read_settings(self) -> Settings:
        tell, pool = self.informers.findings.tell, self.informers.options.pool
        item = self._objects("nodepools").items.get(("", pool))
        settings = (budgets.settings_of(item, tell) if item is not None else None) or self.given or Settings()
        names = {rule.name for rule in settings.disruption.budgets}
        queues = {queue.name for queue in self._queues}
        rules = list(settings.disruption.budgets)
        for other in self._objects("disruptionbudgets").sorted():
            rule = budgets.rule_of(other, tell)
            if rule is None:
                continue
            if rule.name in names:
                tell(
                    budgets.RULE,
                    other.metadata,
                    f"budget {rule.name} is there twice; the settings have one of this name",
                )
            elif rule.queue is not None and queues and rule.queue not in queues:
                tell(budgets.RULE, other.metadata, f"there is no queue {rule.queue}; the budget is not applied")
            else:
                rules.append(rule)
        if self.yunikorn.queues:
            settings = replace(settings, quota_preemption=self.yunikorn.quota(settings.quota_preemption))
        return replace(settings, disruption=replace(settings.disruption, budgets=tuple(rules)))

    def _budgets(self) -> tuple[Any, ...]:
        tell = self.informers.findings.tell
        items = self._objects("poddisruptionbudgets").sorted()
        return tuple(b for item in items if (b := budgets.budget_of(item, tell)))

    def _log(self) -> list[eviction_log.EvictionEntry]:
        entries: list[eviction_log.EvictionEntry] = []
        for item in self._objects("eviction log").sorted():
            data = item.data if isinstance(item.data, dict) else {}
            found, bad = eviction_log.parse(str(data.get(eviction_log.DATA, "")))
            entries += found
            if bad:
                self.informers.findings.tell(
                    "ConfigMap", item.metadata, f"{bad} lines of the eviction log cannot be read"
                )
        return entries

    # -- what runs ------------------------------------------------------------------------------------------------

    def _nodes(self) -> tuple[Node, ...]:
        pool, nodes = self.informers.options.pool, self.informers.nodes.nodes.copy()
        return tuple(n for _, n in sorted(nodes.items()) if n.labels.get(keys.POOL, DEFAULT_POOL) == pool)

    def _renew(self, pasts: dict[tuple[str, str], EvictionHistory], now: int) -> None:
        """Make anew the workloads whose pods changed, all of them where something beside the pods did."""
        pods = self.informers.pods
        movable = self._settings.rescheduler.schedulers
        external = (*(self._objects(name).version for name in _SAYING), pasts, movable)
        again: Iterable[GroupKey] = pods.dirty
        if external != self._beside:
            self._beside, again = external, (*pods.groups, *self._made.keys())
            found = map(groups.native_workload, self._objects("native workloads").sorted())
            self._described = dict(pair for pair in found if pair is not None)
        classes = {name: item for (_, name), item in self._objects("priorityclasses").items.items()}
        by_key: dict[str, list[tuple[str, EvictionHistory]]] = {}
        for (key, uid), past in pasts.items():
            by_key.setdefault(key, []).append((uid, past))
        for group in set(again):
            members = pods.groups.get(group)
            records = [r for r in map(pods.seen, members or ()) if self._is_ours(r)]
            if not records:
                self._made.pop(group, None)
                continue
            said = self._said(group) if group[3] or records[0].scheduler in movable else None
            uid = (said.uid if said else "") or records[0].owner_uid
            past = next(
                (p for u, p in by_key.get(f"{group[0]}/{group[2]}", ()) if not uid or u in ("", uid)), EvictionHistory()
            )
            self._made[group] = make(group, records, said, classes, past, now, movable)
        pods.dirty.clear()

    def _is_ours(self, record: PodRecord) -> bool:
        """Whether a pod is on the pool's nodes, or waits for them."""
        pool = self.informers.options.pool
        if record.task.node is not None:
            node = self.informers.nodes.nodes.get(record.task.node)
            return node is not None and node.labels.get(keys.POOL, DEFAULT_POOL) == pool
        return (record.pool or DEFAULT_POOL) == pool

    def _said(self, group: GroupKey) -> GroupDeclaration | None:
        namespace, kind, name, _ = group
        if kind == "group":
            for source, read in _GROUP_READERS:
                item = self._objects(source).items.get((namespace, name))
                if item is not None:
                    return read(item)
            return None
        about, by = self._owner(namespace, kind, name), self._described.get((namespace, kind, name))
        return about if by is None else groups.described(about, by)

    def _owner(self, namespace: str, kind: str, name: str) -> GroupDeclaration | None:
        if kind == "Job":
            job: Any = self._objects("jobs").items.get((namespace, name))
            return None if job is None else groups.job(job)
        item = self._objects(_OWNERS.get(kind, "")).items.get((namespace, name)) if kind in _OWNERS else None
        return None if item is None else groups.owner(item)

    def _named(self, nodes: set[str]) -> list[ObservedWorkload]:
        """Give all workloads by name, each name once, without tasks on nodes that are not there."""
        taken: dict[str, ObservedWorkload] = {}
        for group in sorted(self._made, key=_rank):
            made = self._made[group]
            workload = made.workload
            if workload.key in taken:
                suffix = group[1].lower() if group[3] else f"{group[1].lower()}-{workload.scheduler_name}"
                workload = replace(workload, name=f"{workload.name}.{suffix}")
                made = replace(made, workload=workload)
            taken[workload.key] = made
        return [_on_nodes(made, nodes) for _, made in sorted(taken.items())]

    def _sound(self, found: list[ObservedWorkload], nodes: tuple[Node, ...]) -> list[ObservedWorkload]:
        """Leave what the engine must not be given: such workloads hold their room, and wait."""
        wrong: dict[int, ClusterFinding] = {}
        self._left_out = []
        workloads = [made.workload for made in found]
        for checked in (check_workloads(workloads, self._queues), check_placement(nodes, workloads)):
            for finding in checked:
                if not finding.is_warning and finding.path[0] == "workloads":
                    wrong.setdefault(int(finding.path[1]), finding)
        kept = []
        for index, made in enumerate(found):
            problem = wrong.get(index)
            sane = held(made, problem.message) if problem is not None else made
            if problem is not None:
                reason = "QueueUnknown" if problem.path[-1] == "queue" else "Invalid"
                waiting = tuple(p for p in made.pods if p.task.phase is Phase.PENDING and p.scheduler == TENURE)
                self._left_out.append(LeftOut(waiting, reason, problem.message))
            for line in sane.problems:
                first = made.pods[0]
                meta = api.Meta(first.name, first.namespace, first.uid)
                self.informers.findings.tell("Pod", meta, line)
            if any(t.phase is not Phase.FAILED for t in sane.workload.tasks):
                kept.append(sane)
        return kept

    def _objects(self, name: str) -> ObjectStore:
        return self.informers.objects.get(name) or _NO_OBJECTS


def alive_pods(informers: InformerCache) -> set[str]:
    """Give the uids of all pods that are there and are not on their way out."""
    pods = informers.pods
    with pods.lock:
        seen = (pods.seen(key) for key in pods.records)
        return {record.uid for record in seen if not record.is_going}


_NO_OBJECTS = ObjectStore()
_GROUP_READERS = (
    ("podgroups", groups.pod_group),
    ("kai podgroups", groups.kai_group),
    ("native podgroups", groups.native_group),
)


_VERSIONS = {
    "Job": "batch/v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
}


def _subject(made: ObservedWorkload) -> Subject:
    """Give the object that events about a workload are written on: its group or owner, else its first pod."""
    pod, uid = made.pods[0], made.workload.uid
    kind, name = pod.group
    if kind in _VERSIONS:
        return Subject(_VERSIONS[kind], kind, pod.namespace, name, uid)
    if kind == "group" and uid not in (pod.uid, pod.owner_uid):
        return Subject("tenure.dev/v1alpha1", "PodGroup", pod.namespace, name, uid)
    return Subject("v1", "Pod", pod.namespace, pod.name, pod.uid)


def _rank(group: GroupKey) -> tuple[Any, ...]:
    namespace, kind, name, is_own = group
    place = _KINDS.index(kind) if kind in _KINDS else len(_KINDS)
    return (not is_own, place, kind, namespace, name)


def _on_nodes(made: ObservedWorkload, nodes: set[str]) -> ObservedWorkload:
    """Leave out tasks on nodes that are not there, and nominations to such."""
    tasks = made.workload.tasks
    if all((t.node is None or t.node in nodes) and (t.nominated is None or t.nominated.node in nodes) for t in tasks):
        return made
    kept, pods = [], []
    for number, task in enumerate(tasks):
        if task.node is not None and task.node not in nodes:
            continue
        nominated_tasks = task.nominated
        kept.append(
            replace(task, nominated=None) if nominated_tasks is not None and nominated_tasks.node not in nodes else task
        )
        if number < len(made.pods):
            pods.append(made.pods[number])
    return ObservedWorkload(replace(made.workload, tasks=tuple(kept)), tuple(pods), made.problems)
