"""From the image of the API server's objects to a cluster as the engine decides about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.bounded import brief, total
from tenure.clusters.kubernetes.cache.handlers import GroupKey, ObjectStore
from tenure.clusters.kubernetes.cache.informers import NODE_CLAIMS, RESERVATIONS, InformerCache
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.gpus.reservations import SharedDevices, reservation_of, without_reservations
from tenure.clusters.kubernetes.read import budgets, eviction_log, hyper_nodes, kueue, volcano
from tenure.clusters.kubernetes.read.claims import ClaimReader
from tenure.clusters.kubernetes.read.declarations import DeclarationReader, SiblingPods
from tenure.clusters.kubernetes.read.device_inventory import DeviceInventoryReader
from tenure.clusters.kubernetes.read.devices import DeviceUseReader
from tenure.clusters.kubernetes.read.groups import KAI_TOPOLOGIES
from tenure.clusters.kubernetes.read.joining import joining
from tenure.clusters.kubernetes.read.judging import UNKNOWN, UNKNOWN_QUEUE, LeftOut, WorkloadJudge, on_nodes
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
from tenure.clusters.kubernetes.read.workloads import (
    EvictionHistory,
    ObservedWorkload,
    make,
    unreadable,
    without_pending,
)
from tenure.clusters.kubernetes.read.yunikorn import YuniKorn
from tenure.clusters.kubernetes.write.events import Subject
from tenure.model.cluster import Cluster, EvictionOutcome, Namespace
from tenure.model.device_resources import vendors_apart
from tenure.model.devices import DeviceClaim
from tenure.model.manifests.workload_kind import POD, WorkloadKinds, built_in_kinds
from tenure.model.node import Node
from tenure.model.queue import Queue, QueueStatus
from tenure.model.settings import Settings
from tenure.model.workload import Workload

_SAYING_OF_ALL = ("native workloads", "priorityclasses", KAI_TOPOLOGIES)
"""Where something is said of many workloads at once."""


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
        self._judge = WorkloadJudge(informers.findings.tell)
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
        self._names = WorkloadNames()
        self._standing = StandingWorkloads()
        self._number = 0
        self._looked_at: set[str] | None = None
        self._renewed: set[GroupKey] = set()
        self._rules: tuple[Any, ...] = ()

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
            found = self._named(known) if is_all else [on_nodes(m, known) for m in standing.to_look_at(named)]
            looked_at = None if is_all else {made.workload.key for made in found}
            used = informers.usage.of_workloads(found, now, informers.gpu_usage)
            found = [believed(made, self._queues, now) for made in used]
            nodes = informers.usage.of_nodes(nodes, now)
            beyond = self._outside.nodes(informers.nodes.nodes.copy(), known)
        found = self._judge.sound(found, nodes, is_all=is_all)
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
            tuple(self._judge.left_out),
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
        """Give the devices of which parts are given out; None where none is held or is to be.

        What is held on nodes of other pools is for their schedulers, who know what has parts of it.
        """
        listed = (reservation_of(item) for item in self._objects(RESERVATIONS).sorted())
        nodes, pool = self.informers.nodes.nodes, self.informers.options.pool
        held = [one for one in listed if one is not None and _is_of_pool(nodes.get(one.place[0]), pool)]
        return SharedDevices(held, workloads) if held or self.informers.options.holds_gpus else None

    def _with_unknown(self, workloads: Sequence[Workload]) -> tuple[Queue, ...]:
        """Give the queues, with that of what belongs to none where there is such."""
        if any(w.queue == UNKNOWN for w in workloads) and all(q.name != UNKNOWN for q in self._queues):
            return (*self._queues, UNKNOWN_QUEUE)
        return self._queues

    def _stand(self, nodes: tuple[Node, ...], known: Mapping[str, Node]) -> set[str] | None:
        """Sort what was made anew into what is plain and what has to be looked at; all of it if its rules changed.

        Gives the names that are affected; None: any may be.
        """
        rules = nodes, self._queues, self._objects("namespaces").version, self.devices.served
        changed: Iterable[GroupKey] = self._names.renew(self._made, self._renewed)
        changed = {*changed, *self._judge.terms.renew(self._names.named, changed, len(nodes))}
        is_anew = rules != self._rules
        if is_anew:
            self._rules, self._standing, changed = rules, StandingWorkloads(), self._made.keys()
            namespaces = Namespaces(self._queues, self._objects("namespaces").items)
            self._judge.begin(nodes, self._queues, namespaces, self.devices.served)
        names = self._standing.renew(
            self._names.named, changed, lambda fresh: self._judge.are_plain(fresh, known), known
        )
        self._renewed.clear()
        return None if is_anew else names

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
            return _is_of_pool(self.informers.nodes.nodes.get(record.task.node), pool)
        return (record.pool or keys.DEFAULT_POOL) == pool

    def _is_beyond(self, record: PodRecord) -> bool:
        """Whether a pod is on a node of another pool."""
        return self._pools.get(record.task.node or "", self.informers.options.pool) != self.informers.options.pool

    def _labelled_namespaces(self) -> tuple[Namespace, ...]:
        items = self._objects("namespaces").sorted()
        return tuple(Namespace(name=item.metadata.name, labels=item.metadata.labels or {}) for item in items)

    def _named(self, nodes: Mapping[str, Node]) -> list[ObservedWorkload]:
        """Give all workloads by name, without tasks on nodes that are not there."""
        return [on_nodes(made, nodes) for made in sorted(self._names.named.values(), key=_BY_KEY)]

    def _objects(self, name: str) -> ObjectStore:
        return self.informers.objects.get(name) or _NO_OBJECTS


_NO_OBJECTS = ObjectStore()
_BY_KEY = attrgetter("workload.key")


def _is_of_pool(node: Node | None, pool: str) -> bool:
    """Whether a node is there, and of this pool."""
    return node is not None and node.labels.get(keys.POOL, keys.DEFAULT_POOL) == pool


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


_MOST_BUDGETS = 100
_FIRST_PAUSE = 1_000_000
_LONGEST_PAUSE = 300_000_000


def _with_drivers(node: Node, item: Any) -> Node:
    """Give a node with the CSI drivers that its CSINode has."""
    drivers = node_drivers_of(item)
    return replace(node, drivers=drivers) if drivers else node
