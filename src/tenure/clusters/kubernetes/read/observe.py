"""From the image of the API server's objects to a cluster as the engine decides about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.bounded import brief, total
from tenure.clusters.kubernetes.cache.handlers import GroupKey, ObjectStore
from tenure.clusters.kubernetes.cache.informers import NODE_CLAIMS, RESERVATIONS, InformerCache
from tenure.clusters.kubernetes.cache.pod_records import TENURE, PodRecord
from tenure.clusters.kubernetes.gpus.reservations import SharedDevices, reservation_of, without_reservations
from tenure.clusters.kubernetes.read import budgets, eviction_log, hyper_nodes, kueue, volcano
from tenure.clusters.kubernetes.read.claims import ClaimReader
from tenure.clusters.kubernetes.read.declarations import DeclarationReader, SiblingPods
from tenure.clusters.kubernetes.read.device_inventory import DeviceInventoryReader
from tenure.clusters.kubernetes.read.devices import DeviceUseReader
from tenure.clusters.kubernetes.read.groups import KAI_TOPOLOGIES
from tenure.clusters.kubernetes.read.joining import joining
from tenure.clusters.kubernetes.read.kueue_workloads import KueueAdmissions
from tenure.clusters.kubernetes.read.mapped_view import MappedView
from tenure.clusters.kubernetes.read.namespaces import Namespaces
from tenure.clusters.kubernetes.read.naming import WorkloadNames
from tenure.clusters.kubernetes.read.nominations import NominationUpdates, with_promises
from tenure.clusters.kubernetes.read.outside import Outside
from tenure.clusters.kubernetes.read.provisioning import ProvisioningReader
from tenure.clusters.kubernetes.read.queues import config_map, kai_queue_of, queue_of, sound, stored_status
from tenure.clusters.kubernetes.read.sealed_times import believed
from tenure.clusters.kubernetes.read.settling import GroupSettling
from tenure.clusters.kubernetes.read.standing import StandingWorkloads
from tenure.clusters.kubernetes.read.storage import node_drivers_of
from tenure.clusters.kubernetes.read.term_bounds import TermBounds
from tenure.clusters.kubernetes.read.workloads import (
    EvictionHistory,
    ObservedWorkload,
    charged,
    held,
    make,
    salvaged,
    unreadable,
    without_pending,
    without_resources,
    without_waiting,
)
from tenure.clusters.kubernetes.read.yunikorn import YuniKorn
from tenure.clusters.kubernetes.write.events import Subject
from tenure.model.check_placement import check_placement
from tenure.model.check_workloads import check_workloads
from tenure.model.cluster import DEFAULT_QUEUE, Cluster, EvictionOutcome, Namespace
from tenure.model.device_resources import vendors_apart
from tenure.model.devices import DeviceClaim
from tenure.model.findings import ClusterFinding
from tenure.model.node import Node
from tenure.model.queue import Queue, QueueStatus
from tenure.model.resources import GPU
from tenure.model.settings import Settings
from tenure.model.workload import Nomination, Phase, Workload
from tenure.model.workload_kind import POD, WorkloadKinds, built_in_kinds

UNKNOWN = "tenure-unknown"
"""Queue of what runs and belongs to none: it is owed nothing, and everybody may take from it."""

_UNKNOWN = Queue(name=UNKNOWN, weight=0.0, priority=0)
_SAYING_OF_ALL = ("native workloads", "priorityclasses", KAI_TOPOLOGIES)
"""Where something is said of many workloads at once."""


class LeftOut(NamedTuple):
    """Pods that wait and cannot be decided about: the reason for their condition, and what is wrong."""

    pods: tuple[PodRecord, ...]
    reason: str
    message: str


class _Judgement(NamedTuple):
    """What became of a workload as it was made: what is given of it, and what of it is left out."""

    made: ObservedWorkload
    given: ObservedWorkload
    left_out: tuple[LeftOut, ...]


_LeftOutByName = dict[str, list[LeftOut]]


@dataclass(frozen=True, slots=True)
class Observed:
    """A cluster, and what writing to it needs: its workloads by key, with the pods behind their tasks in their order.

    ``wake`` is when it will look otherwise although nothing has changed, in µs since the epoch. ``urgent`` is how much
    the informers had heard that may call for a decision at once. ``waiting`` are Tenure's workloads of which a task
    waits. ``admissions`` is what Kueue has admitted. ``number`` counts what one observer has observed; ``changed``
    names the workloads that are not the same objects as in the observation before (None: any may be another).
    ``prepared`` are the claims with devices that their drivers prepare.
    """

    cluster: Cluster
    made: dict[str, ObservedWorkload] = field(default_factory=dict)
    queue_kinds: dict[str, str] = field(default_factory=dict)
    log: tuple[eviction_log.EvictionEntry, ...] = ()
    promises: NominationUpdates = field(default_factory=NominationUpdates)
    wake: int | None = None
    left_out: tuple[LeftOut, ...] = ()
    announced: tuple[eviction_log.EvictionEntry, ...] = ()
    urgent: int = 0
    kinds: WorkloadKinds = field(default_factory=built_in_kinds)
    shared_devices: SharedDevices | None = None
    waiting: frozenset[str] = frozenset()
    number: int = 0
    changed: frozenset[str] | None = None
    admissions: KueueAdmissions | None = None
    prepared: tuple[DeviceClaim, ...] = ()

    @property
    def identities(self) -> dict[tuple[str, int], str]:
        """Give the pods' uids by workload and number of the task."""
        return {(key, number): pod.uid for key, pods in self.pods.items() for number, pod in enumerate(pods)}

    @property
    def workloads(self) -> Mapping[str, Workload]:
        """Give the workloads that have pods, by key."""
        return MappedView(self.made, attrgetter("workload"))

    @property
    def pods(self) -> Mapping[str, tuple[PodRecord, ...]]:
        """Give by workload the pods behind its tasks, in their order."""
        return MappedView(self.made, attrgetter("pods"))

    def has_pod(self, workload: str, task: int) -> bool:
        """Whether a task has a pod: not what stands in for one that is expected."""
        return task < len(self.made[workload].pods)

    def pod(self, workload: str, task: int) -> PodRecord:
        """Give the pod behind a task."""
        return self.made[workload].pods[task]

    def subject(self, workload: str) -> Subject | None:
        """Give the object that events about a workload are written on; None where it has none."""
        made = self.made.get(workload)
        return _subject(made.pods[0], made.workload.uid, self.kinds) if made is not None and made.pods else None


class Observer:
    """The maker of clusters from the informer cache; workloads whose pods did not change are made once."""

    def __init__(self, informers: InformerCache, settings: Settings | None = None) -> None:
        self.informers = informers
        self.given = settings
        self.yunikorn = YuniKorn()
        self._made: dict[GroupKey, ObservedWorkload] = {}
        self._configured: tuple[Any, ...] = ()
        self._beside: tuple[Any, ...] = ()
        self._pasts: dict[tuple[str, str], EvictionHistory] = {}
        self._declared = DeclarationReader(self._objects)
        self._siblings = SiblingPods()
        self._queues: tuple[Queue, ...] = ()
        self._settings = settings or Settings()
        self._outcomes: tuple[EvictionOutcome, ...] = ()
        self._queue_kinds: dict[str, str] = {}
        self._left_out: list[LeftOut] = []
        self._judged: dict[str, _Judgement] = {}
        self._without: dict[str, tuple[ObservedWorkload, frozenset[str], ObservedWorkload]] = {}
        self._outside = Outside()
        self._settling = GroupSettling()
        self.kueue = KueueAdmissions(self._objects)
        self._provisioning = ProvisioningReader(self._objects)
        self.claims = ClaimReader(self._objects)
        self.inventory = DeviceInventoryReader(
            self._objects, informers.allocations, informers.given_up, lambda: self._settings
        )
        self.devices = DeviceUseReader(self._objects, self.inventory, lambda: self._settings)
        self._pools: dict[str, str] = {}
        self._own_nodes: tuple[Node, ...] = ()
        self._nodes_by_name: dict[str, Node] = {}
        self._nodes_version = (-1, -1, -1)
        self._homes = 0
        self._retry = _Retries()
        self._namespaces = Namespaces((), {})
        self._names = WorkloadNames()
        self._terms = TermBounds()
        self._standing = StandingWorkloads()
        self._number = 0
        self._looked_at: set[str] | None = None
        self._renewed: set[GroupKey] = set()
        self._rules: tuple[Any, ...] = ()
        self._resources: set[str] = set()

    def observe(self, now: int, *, is_brief: bool = False) -> Observed:
        """Give the cluster as it is known at ``now`` (µs since the epoch).

        ``is_brief``: what may be looked at a little later is left for a later look.
        """
        informers, urgent = self.informers, self.informers.urgent()
        looked_at_before, self._looked_at = self._looked_at, None  # unknown, should this observation fail
        with informers.pods.lock:
            if not is_brief:
                informers.pods.dirty |= informers.pods.calm
                informers.pods.calm.clear()
                informers.pods.deferred = 0
            nodes = self._nodes()
            informers.renew_kinds()
            self._configure()
            written = self._log()
            alive = informers.pods.alive(entry.uid for entry in written)
            log = eviction_log.happened(written, alive)
            announced = [entry for entry in written if entry.uid in alive]
            self._renew(eviction_log.pasts(log), now)
            known = self._nodes_by_name
            renewed = self._stand(nodes, known)
            standing, named = self._standing, {entry.workload for entry in written}
            for entry in filter(lambda entry: entry.to_node, written):
                named |= self._siblings.of(entry.workload.partition("/")[0], entry.workload_uid)
            is_all = standing.are_unclear or bool(informers.usage.pods) or bool(informers.gpu_usage.pods)
            found = self._named(known) if is_all else [_on_nodes(m, known) for m in standing.to_look_at(named)]
            looked_at = None if is_all else {made.workload.key for made in found}
            used = informers.usage.of_workloads(found, now, informers.gpu_usage)
            found = [believed(made, self._queues, now) for made in used]
            nodes = informers.usage.of_nodes(nodes, now)
            beyond = self._outside.nodes(informers.nodes.nodes.copy(), known)
        found = self._sound(found, nodes, is_all=is_all)
        found, promises = with_promises(found, log, announced, known, now, self._settings.nomination_timeout)
        queues = self._with_unknown([made.workload for made in found])
        if is_all:
            all_made, workloads = {made.workload.key: made for made in found}, [made.workload for made in found]
            waiting = frozenset(made.workload.key for made in found if made.waits)
        else:
            all_made, workloads = standing.with_those(found, named)
            waiting = standing.waiting(found, named)
        changed = _together(renewed, looked_at, looked_at_before)
        self._number, self._looked_at = self._number + 1, looked_at
        devices = self._shared_devices(workloads)
        if devices is not None:
            workloads = without_reservations(workloads, devices, informers.options.namespace)
        coming = self._joining(known, now)
        lapse = [node.awaited_until for node in coming.values()]
        informers.given_up.pass_to(now)
        inventory = self.inventory.inventory()
        wakes = (self._settling.wake(now), self.inventory.wake(now), informers.given_up.wake(), *lapse)
        cluster = Cluster(
            now=now,
            settings=self._settings,
            nodes=(*(coming.pop(n.name, n) for n in nodes), *beyond, *coming.values()),
            queues=queues,
            workloads=(*workloads, *self._outside.workloads(beyond)),
            namespaces=self._labelled_namespaces(),
            disruption_budgets=self._budgets(),
            evictions=tuple(sorted(map(eviction_log.eviction_of, log), key=lambda e: (e.at, e.workload, e.task))),
            outcomes=self._outcomes,
            attachments=self.claims.attachments(nodes),
            devices=inventory,
        )
        return Observed(
            cluster,
            all_made,
            self._queue_kinds,
            tuple(log),
            promises,
            min((at for at in wakes if at is not None), default=None),
            tuple(self._left_out),
            tuple(announced),
            urgent,
            informers.kinds,
            devices if informers.options.holds_gpus else None,
            waiting,
            self._number,
            changed,
            self.kueue,
            self.inventory.prepared(),
        )

    def _joining(self, known: Mapping[str, Node], now: int) -> dict[str, Node]:
        """Give by name the nodes that are on their way."""
        claims = self._objects(NODE_CLAIMS).items.copy()
        if not claims:
            return {}
        there = {**self.informers.nodes.nodes, **known}
        return joining(claims.values(), there, self.informers.options.pool, keys.DEFAULT_POOL, now)

    def _shared_devices(self, workloads: Iterable[Workload]) -> SharedDevices | None:
        """Give the devices of the pool's nodes of which parts are given out; None where none is held or is to be."""
        read, own = map(reservation_of, self._objects(RESERVATIONS).sorted()), self.informers.options.pool
        held = [one for one in read if one is not None and self._pools.get(one.place[0], own) == own]
        return SharedDevices(held, workloads) if held or self.informers.options.holds_gpus else None

    def _with_unknown(self, workloads: Sequence[Workload]) -> tuple[Queue, ...]:
        """Give the queues, with that of what belongs to none where there is such."""
        if any(w.queue == UNKNOWN for w in workloads) and all(q.name != UNKNOWN for q in self._queues):
            return (*self._queues, _UNKNOWN)
        return self._queues

    def _stand(self, nodes: tuple[Node, ...], known: Mapping[str, Node]) -> set[str] | None:
        """Sort what was made anew into what is plain and what has to be looked at; all of it if its rules changed.

        Gives the names that are affected; None: any may be.
        """
        rules = nodes, self._queues, self._objects("namespaces").version, self.devices.served
        changed: Iterable[GroupKey] = self._names.renew(self._made, self._renewed)
        changed = {*changed, *self._terms.renew(self._names.named, changed, len(nodes))}
        is_anew = rules != self._rules
        if is_anew:
            self._rules, self._standing, changed = rules, StandingWorkloads(), self._made.keys()
            self._judged = {}
            self._namespaces = Namespaces(self._queues, self._objects("namespaces").items)
            self._resources = self._known_resources(nodes)
        names = self._standing.renew(self._names.named, changed, lambda fresh: self._are_plain(fresh, known), known)
        self._renewed.clear()
        return None if is_anew else names

    def _are_plain(self, found: list[ObservedWorkload], nodes: Mapping[str, Node]) -> list[bool]:
        """Say of each whether nothing about it is left to be found out."""
        if not found:
            return []
        there = {name for made in found for task in made.workload.tasks if (name := task.node) in nodes}
        wrong = self._wrong(found, tuple(nodes[name] for name in sorted(filter(None, there))))
        return [n not in wrong and self._is_plain(made, nodes) for n, made in enumerate(found)]

    def _is_plain(self, made: ObservedWorkload, nodes: Mapping[str, Node]) -> bool:
        own, tasks = made.workload, made.workload.tasks
        return (
            not made.problems
            and own.queue != UNKNOWN
            and not self._terms.is_looked_at(own)
            and _on_nodes(made, nodes) is made
            and all(task.nominated is None and task.notice is None for task in tasks)
            and all(pod.gpu_usage is None and pod.task.nominated is None for pod in made.pods)
            and all(name in self._resources for task in tasks for name, _ in task.spec.requests)
            and any(task.phase is not Phase.FAILED for task in tasks)
            and (own.scheduler_name != TENURE or self._namespaces.may_use(own.queue, own.namespace))
        )

    # -- configuration --------------------------------------------------------------------------------------------

    def _configure(self) -> None:
        """Read queues and settings anew where anything of them changed."""
        names = (
            "queues", "kai queues", "yunikorn", "nodepools", "disruptionbudgets", "eviction log",
            volcano.WATCH, kueue.CLUSTER_QUEUES, kueue.COHORTS,
        )  # fmt: skip
        versions = tuple(self._objects(name).version for name in names)
        if versions == self._configured:
            return
        self._configured = versions
        self.informers.findings.begin("Queue", "DisruptionBudget", "NodePool")
        tell = self.informers.findings.tell
        self.yunikorn.read(self._objects("yunikorn").sorted(), tell)
        first, listed = self._listed_queues()
        kind = "yunikorn" if self.yunikorn.queues else first
        queues = self.yunikorn.queues or sound(listed, tell)
        if kind != "queues":
            stored = self._stored()
            queues = tuple(replace(q, status=stored.get(q.name)) for q in queues)
        self._queues, self._queue_kinds = queues, dict.fromkeys((q.name for q in queues), kind)
        self._settings = vendors_apart(self._read_settings(), queues)
        pool = self._objects("nodepools").items.get(("", self.informers.options.pool))
        self._outcomes = () if pool is None else budgets.outcomes_of(pool, self.informers.findings.tell)
        hot = self._settings.rescheduler.hot_nodes
        self.informers.usage.want(hot.hot if hot.enabled else None)
        idle = self._settings.nominators.idle
        self.informers.gpu_usage.want(idle.for_ if idle.enabled else None)

    def _listed_queues(self) -> tuple[str, list[tuple[Queue, api.Meta]]]:
        """Give the watch of the first kind of which there are queues, and these, each with its object."""
        tell, pool = self.informers.findings.tell, self.informers.options.pool
        readers = (
            ("queues", partial(queue_of, pool=pool)),
            ("kai queues", kai_queue_of),
            (volcano.WATCH, volcano.volcano_queue),
        )
        for name, made_of in readers:
            found = [(q, item.metadata) for item in self._objects(name).sorted() if (q := made_of(item, tell))]
            if found:
                return name, found
        others, cohorts = (self._objects(name).sorted() for name in (kueue.CLUSTER_QUEUES, kueue.COHORTS))
        return kueue.CLUSTER_QUEUES, list(kueue.kueue_queues(others, cohorts, tell))

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
                about = (budgets.RULE, other) if item is None else (budgets.POOL, item)  # all pools have the rule
                said = f"its budget {rule.name} has the name of a DisruptionBudget, which is not applied here"
                tell(about[0], about[1].metadata, said)
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
        kept: dict[str, int] = {}
        found = []
        for item in items:
            count = kept[item.metadata.namespace] = kept.get(item.metadata.namespace, 0) + 1
            if count > _MOST_BUDGETS:
                tell(
                    budgets.PDB, item.metadata, f"{_MOST_BUDGETS} are looked at in a namespace; the API server keeps it"
                )
                continue
            made = total(
                lambda: budgets.budget_of(item, tell),  # noqa: B023
                None,
                lambda why: tell(budgets.PDB, item.metadata, why),  # noqa: B023
            )
            if made is not None:
                found.append(made)
        return tuple(found)

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
        """Give the nodes of the pool by name; to which pool each node belongs is noted as it is then."""
        store = self.informers.nodes
        csi, hyper = self._objects("csinodes"), self._objects(hyper_nodes.WATCH)
        if (version := (store.version, csi.version, hyper.version)) != self._nodes_version:
            self._nodes_version = version  # before what is read: what changes meanwhile is read once more
            nodes = [
                (name, _with_drivers(n, csi.items.get(("", name)))) for name, n in sorted(store.nodes.copy().items())
            ]
            pools = {name: node.labels.get(keys.POOL, keys.DEFAULT_POOL) for name, node in nodes}
            if pools != self._pools:
                self._pools, self._homes = pools, self._homes + 1
            own, complain = self.informers.options.pool, self.informers.findings.tell
            self._own_nodes = tuple(
                hyper_nodes.in_tiers([node for name, node in nodes if pools[name] == own], hyper.sorted(), complain)
            )
            self._nodes_by_name = {node.name: node for node in self._own_nodes}
        return self._own_nodes

    def _renew(self, pasts: dict[tuple[str, str], EvictionHistory], now: int) -> None:
        """Make anew the workloads whose pods changed, all of them where something beside the pods did."""
        pods = self.informers.pods
        movable = self._settings.rescheduler.schedulers
        again: Iterable[GroupKey] = {
            *pods.dirty, *self._declared.changed(self.informers.kinds), *self._of_other_past(pasts),
            *self.claims.changed(), *self.devices.changed(), *self._declared.named(self.kueue.changed()),
            *self._provisioning.changed(),
        }  # fmt: skip
        beside = (*(self._objects(name).version for name in _SAYING_OF_ALL), movable, self._homes, self.informers.kinds)
        if beside != self._beside:
            self._beside, again = beside, (*pods.groups, *self._made.keys())
            self._declared.read_native()
        classes = {name: item for (_, name), item in self._objects("priorityclasses").items.items()}
        history = _Pasts(pasts)
        for group in sorted({*again, *self._retry.due(now), *self._settling.due(now)}):
            self._renewed.add(group)
            members = pods.groups.get(group)
            seen = self.claims.mounting(group, [pods.seen(member) for member in sorted(members or ())])
            seen = self.devices.using(group, seen)
            records = [r for r in seen if self._is_ours(r)]
            self._outside.take(group, records, [r for r in seen if self._is_beyond(r)])
            if not records:
                self._made.pop(group, None)
                self._siblings.note(group, "")
                self._declared.forget(group)
                self._provisioning.forget(group)
                self._retry.forget(group)
                self._settling.forget(group)
                continue
            chains = {pods.records[member].owners for member in members or ()}
            try:
                counts = group[3] or records[0].scheduler in movable
                about = self._declared.of(group, chains, self.informers.kinds, records, counts=counts)
                uid = (about.uid if about else "") or records[0].owner_uid
                settled = self._settling.is_settled(group, records, now)
                past = history.of(f"{group[0]}/{group[2]}", uid)
                made = make(group, records, about, classes, past, now, movable, settled=settled)
                owners = {link.uid for chain in chains for link in chain.links} | {uid}
                if (until := self._provisioning.until(group, records)) is not None:
                    made = replace(made, workload=replace(made.workload, awaits_nodes_until=until))
                self._made[group] = without_pending(made) if self.kueue.is_evicting(group[0], owners) else made
                self._siblings.note(group, uid if group[2] == records[0].name else "")
                self._retry.forget(group)
            except Exception as error:  # noqa: BLE001  one group that cannot be made costs no other
                self._made[group] = unreadable(group, records, f"cannot be read: {brief(error)}")
                self._retry.later(group, now)
        pods.dirty.clear()

    def _of_other_past(self, pasts: dict[tuple[str, str], EvictionHistory]) -> list[GroupKey]:
        """Give the groups whose evictions in the past are others than before."""
        before, self._pasts = self._pasts, pasts
        if pasts == before:
            return []
        other = {key for key in before.keys() | pasts.keys() if before.get(key) != pasts.get(key)}
        names, uids = {key for key, _ in other}, {uid for _, uid in other}
        return [g for g, made in self._made.items() if f"{g[0]}/{g[2]}" in names or made.workload.uid in uids]

    def _is_ours(self, record: PodRecord) -> bool:
        """Whether a pod is on the pool's nodes, or waits for them."""
        pool = self.informers.options.pool
        if record.task.node is not None:
            node = self.informers.nodes.nodes.get(record.task.node)
            return node is not None and node.labels.get(keys.POOL, keys.DEFAULT_POOL) == pool
        return (record.pool or keys.DEFAULT_POOL) == pool

    def _is_beyond(self, record: PodRecord) -> bool:
        """Whether a pod is on a node of another pool."""
        return self._pools.get(record.task.node or "", self.informers.options.pool) != self.informers.options.pool

    def _labelled_namespaces(self) -> tuple[Namespace, ...]:
        items = self._objects("namespaces").sorted()
        return tuple(Namespace(name=item.metadata.name, labels=item.metadata.labels or {}) for item in items)

    def _named(self, nodes: Mapping[str, Node]) -> list[ObservedWorkload]:
        """Give all workloads by name, without tasks on nodes that are not there."""
        return [_on_nodes(made, nodes) for made in sorted(self._names.named.values(), key=_BY_KEY)]

    def _sound(self, found: list[ObservedWorkload], nodes: tuple[Node, ...], *, is_all: bool) -> list[ObservedWorkload]:
        """Leave what the engine must not be given: what runs of it stays charged and evictable, what waits waits.

        Of what has not changed it is known, unless all have to be looked at together.
        """
        known = {} if is_all else self._judged
        fresh = [made for made in found if (one := known.get(made.workload.key)) is None or one.made is not made]
        self._judged = {**known, **self._judgements(fresh, nodes)}
        if len(self._judged) > 2 * len(found) + _FEW:
            self._judged = {made.workload.key: self._judged[made.workload.key] for made in found}
        judged = [self._judged[made.workload.key] for made in found]
        self._left_out = [left for one in judged for left in one.left_out]
        found = self._terms.within(self._without_unknown_resources([one.given for one in judged]))
        return [made for made in found if any(t.phase is not Phase.FAILED for t in made.workload.tasks)]

    def _judgements(self, found: list[ObservedWorkload], nodes: tuple[Node, ...]) -> dict[str, _Judgement]:
        """Give by name what becomes of workloads that were not looked at as they are now."""
        if not found:
            return {}
        for made in found:
            for line in made.problems:
                self._complain(made, line)
        left_out: dict[str, list[LeftOut]] = {}
        given = self._admitted(found, left_out)
        wrong = self._wrong(given, nodes)
        if wrong:
            given = [self._mended(made, wrong[n], left_out) if n in wrong else made for n, made in enumerate(given)]
            still = self._wrong(given, nodes)
            given = [held(made, still[n].message) if n in still else made for n, made in enumerate(given)]
        return {
            made.workload.key: _Judgement(made, one, tuple(left_out.get(made.workload.key, ())))
            for made, one in zip(found, given, strict=True)
        }

    def _without_unknown_resources(self, found: list[ObservedWorkload]) -> list[ObservedWorkload]:
        """Bound how many resources that nobody has are asked for in a namespace: each costs a row of every table."""
        known = self._resources
        if len(self._without) > 2 * len(found) + _FEW:
            self._without.clear()
        heard: dict[str, set[str]] = {}
        kept = []
        for made in found:
            unheard = {n for t in made.workload.tasks for n, _ in t.spec.requests if n not in known}
            if unheard:
                names = heard.setdefault(made.workload.namespace, set())
                names.update(sorted(unheard - names)[: max(0, MOST_UNKNOWN - len(names))])
                if not unheard <= names:
                    made = self._reduced(made, frozenset(unheard - names))  # noqa: PLW2901
            kept.append(made)
        return kept

    def _reduced(self, made: ObservedWorkload, names: frozenset[str]) -> ObservedWorkload:
        """Give a workload without some resources; the same one as before, if it is the same."""
        known = self._without.get(made.workload.key)
        if known is None or known[0] is not made or known[1] != names:
            known = self._without[made.workload.key] = made, names, without_resources(made, names)
        return known[2]

    def _known_resources(self, nodes: tuple[Node, ...]) -> set[str]:
        """Give the resources that a node has, or a queue speaks of."""
        known = {name for node in nodes for name in node.allocatable} | self.devices.served
        return known | {name for queue in self._queues for name in (*queue.guaranteed, *queue.max)}

    def _wrong(self, found: list[ObservedWorkload], nodes: tuple[Node, ...]) -> dict[int, ClusterFinding]:
        """Give by number what is wrong with workloads; of several things the first.

        Of two that say that they hold one device it is the one that has it on record which holds it.
        """
        wrong: dict[int, ClusterFinding] = {}
        order = sorted(range(len(found)), key=lambda n: not _is_on_record(found[n]))
        workloads = [found[n].workload for n in order]
        queues = (*self._queues, _UNKNOWN) if self._queues else ()
        for checked in (check_workloads(workloads, queues), check_placement(nodes, workloads)):
            for finding in checked:
                if not finding.is_warning and finding.path[0] == "workloads":
                    wrong.setdefault(order[int(finding.path[1])], finding)
        return wrong

    def _mended(self, made: ObservedWorkload, problem: ClusterFinding, left_out: _LeftOutByName) -> ObservedWorkload:
        """Give what can be decided about of a workload in which something is wrong."""
        reason = "QueueUnknown" if problem.path[-1] == "queue" else "Invalid"
        self._leave_out(made, reason, problem.message, left_out)
        if made.workload.scheduler_name != TENURE:
            return held(made, problem.message)
        return salvaged(made, problem.message, self._charged_queue(made))

    def _admitted(self, found: list[ObservedWorkload], left_out: _LeftOutByName) -> list[ObservedWorkload]:
        """Let wait what is for a queue that its namespace may not use; what was bound there stays."""
        namespaces = self._namespaces = Namespaces(self._queues, self._objects("namespaces").items)
        return [
            made
            if made.workload.scheduler_name != TENURE
            or namespaces.may_use(made.workload.queue, made.workload.namespace)
            else self._refused(made, left_out)
            for made in found
        ]

    def _refused(self, made: ObservedWorkload, left_out: _LeftOutByName) -> ObservedWorkload:
        own = made.workload
        message = f"namespace {own.namespace} may not use queue {own.queue}: its namespaceSelector does not admit it"
        self._leave_out(made, "QueueRefused", message, left_out)
        if charged(made.pods):
            return without_waiting(made)
        return salvaged(made, message, self._charged_queue(made))

    def _charged_queue(self, made: ObservedWorkload) -> str:
        """Give the leaf queue that what runs of a workload is charged to: the last valid one, else a last resort."""
        if not self._queues:
            return DEFAULT_QUEUE
        parents = {q.parent for q in self._queues}
        leaves = {q.name for q in self._queues} - parents
        own = made.workload
        stated = own.queue if self._namespaces.may_use(own.queue, own.namespace) else ""
        return next((name for name in (charged(made.pods), stated, DEFAULT_QUEUE) if name in leaves), UNKNOWN)

    def _complain(self, made: ObservedWorkload, message: str) -> None:
        """Tell of something that is wrong with a workload, on the first of its pods."""
        if made.pods:
            first = made.pods[0]
            self.informers.findings.tell("Pod", api.Meta(first.name, first.namespace, first.uid), message)

    def _leave_out(self, made: ObservedWorkload, reason: str, message: str, left_out: _LeftOutByName) -> None:
        self._complain(made, message)
        waiting = tuple(p for p in made.pods if p.task.phase is Phase.PENDING and p.scheduler == TENURE)
        left_out.setdefault(made.workload.key, []).append(LeftOut(waiting, reason, message))

    def _objects(self, name: str) -> ObjectStore:
        return self.informers.objects.get(name) or _NO_OBJECTS


_NO_OBJECTS = ObjectStore()
_BY_KEY = attrgetter("workload.key")


def _together(*named: set[str] | None) -> frozenset[str] | None:
    """Give all names; None where any of the sets stands for all names there are."""
    found: set[str] = set()
    for names in named:
        if names is None:
            return None
        found |= names
    return frozenset(found)


def _subject(pod: PodRecord, uid: str, kinds: WorkloadKinds) -> Subject:
    """Give the object that events about a workload are written on: its group or owner, else its first pod."""
    kind, name = pod.group
    top = pod.owners.top
    known = kinds.by_key.get(top.kind) if top is not None and top.kind != POD else None
    if known is not None and top is not None and known.unit == "owner":
        return Subject(known.api_version, known.kind, pod.namespace, top.name, top.uid)
    if kind == "group" and uid not in (pod.uid, pod.owner_uid):
        return Subject(api.GROUP_VERSION, "PodGroup", pod.namespace, name, uid)
    return Subject("v1", "Pod", pod.namespace, pod.name, pod.uid)


class _Pasts:
    """What the log says of workloads, by who they are; a record that names no identity is about the name."""

    def __init__(self, pasts: Mapping[tuple[str, str], EvictionHistory]) -> None:
        self._by_uid: dict[tuple[str, str], EvictionHistory] = {}
        self._by_name: dict[str, list[tuple[str, EvictionHistory]]] = {}
        for (key, uid), past in pasts.items():
            if uid:
                self._by_uid[key.partition("/")[0], uid] = past
            self._by_name.setdefault(key, []).append((uid, past))

    def of(self, key: str, uid: str) -> EvictionHistory:
        """Give what is said of the workload that has a uid, or else of the one that has a name."""
        known = self._by_uid.get((key.partition("/")[0], uid)) if uid else None
        if known is not None:
            return known
        return next((past for u, past in self._by_name.get(key, ()) if not uid or not u), EvictionHistory())


class _Retries:
    """Groups of which no workload could be made: each is tried again after a while, and then ever less often."""

    def __init__(self) -> None:
        self._until: dict[GroupKey, tuple[int, int]] = {}

    def due(self, now: int) -> list[GroupKey]:
        """Give those whose time has come."""
        return [group for group, (until, _) in self._until.items() if until <= now]

    def later(self, group: GroupKey, now: int) -> None:
        """One failed again."""
        pause = min(2 * self._until.get(group, (0, _FIRST_PAUSE // 2))[1], _LONGEST_PAUSE)
        self._until[group] = now + pause, pause

    def forget(self, group: GroupKey) -> None:
        """One could be made, or is gone."""
        self._until.pop(group, None)


_FEW = 1_000
"""Workloads beyond which what is known of such as are not looked at any more is forgotten."""

MOST_UNKNOWN = 16
"""Resources that no node and no queue has, of which each namespace may ask for so many."""

_MOST_BUDGETS = 100
_FIRST_PAUSE = 1_000_000
_LONGEST_PAUSE = 300_000_000


def _is_on_record(made: ObservedWorkload) -> bool:
    """Whether all pods of a workload that hold devices have them on record."""
    return all(pod.sealed is not None and pod.sealed.is_bound for pod in made.pods if pod.task.devices)


def _on_nodes(made: ObservedWorkload, nodes: Mapping[str, Node]) -> ObservedWorkload:
    """Leave out tasks on nodes that are not there, and nominations to such, or to devices that they do not have."""
    tasks = made.workload.tasks
    if all((t.node is None or t.node in nodes) and _can_be(t.nominated, nodes) for t in tasks):
        return made
    kept, pods = [], []
    for number, task in enumerate(tasks):
        if task.node is not None and task.node not in nodes:
            continue
        kept.append(task if _can_be(task.nominated, nodes) else replace(task, nominated=None))
        if number < len(made.pods):
            pods.append(made.pods[number])
    return ObservedWorkload(replace(made.workload, tasks=tuple(kept)), tuple(pods), made.problems)


def _can_be(nominated_tasks: Nomination | None, nodes: Mapping[str, Node]) -> bool:
    if nominated_tasks is None:
        return True
    node = nodes.get(nominated_tasks.node)
    return node is not None and all(0 <= d < node.allocatable.get(GPU, 0) for d in nominated_tasks.devices)


def _with_drivers(node: Node, item: Any) -> Node:
    """Give a node with the CSI drivers that its CSINode has."""
    drivers = node_drivers_of(item)
    return replace(node, drivers=drivers) if drivers else node
