"""A pod as it is kept between cycles: its task, what groups it, and what writes to it need to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from sys import intern
from typing import Any, Final

import msgspec

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.api import ApiPod, Condition, Owner, micros
from tenure.clusters.kubernetes.bounded import LONGEST, MOST_TEXT, ObjectText, brief
from tenure.clusters.kubernetes.cache.owners import NO_OWNER, OwnerChain, OwnerLink, controller, link_to
from tenure.clusters.kubernetes.cache.pod_specs import PodDemandTable
from tenure.clusters.kubernetes.seals import NO_SEAL, NoticeNote, Seal, seal_of
from tenure.model.manifests.workload_kind import WorkloadKinds, built_in_kinds
from tenure.model.workload import NEVER, SPARING, Nomination, Notice, Phase, Task

TENURE: Final = "tenure"
SECOND = 1_000_000

MIRROR, DAEMON, OWN, BARE = "mirror pod", "DaemonSet pod", "Tenure's own pod", "pod that no controller recreates"
"""Why a pod is never evicted, or never moved."""

_NONE: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class PodRecord:
    """The record that is kept of a pod. ``group`` is the kind and name of what makes it one workload with others.

    ``waits`` is reason and message of its condition ``PodScheduled`` while that is false. ``started`` is the start
    time of its workload as it was written on it, in µs since the epoch. ``replaces`` is the uid of the pod whose
    nomination it was given, ``needs`` those of the pods that have to leave for it. ``kept`` says why it is
    never evicted, or never moved. ``controller`` is the uid of what recreates it. ``is_going``: it was deleted or
    evicted, whatever its phase; one that has ended by then may be there for a while. ``said_start`` is what stands in
    its annotation of that name, which nothing is decided by. ``made_claim`` is the claim that serves its extended
    resources, as its status says. ``link`` is the first of its owners, ``owners`` all of
    them, from which its group follows where it names none itself.
    """

    namespace: str
    name: str
    uid: str
    version: str
    task: Task
    group: tuple[str, str]
    owner_uid: str
    queue: str
    pool: str
    priority: int
    priority_class: str
    evicts_never: bool
    scheduler: str
    created_at: int
    min_member: int | None
    labels: dict[str, str]
    annotations: dict[str, str]
    kept: str = ""
    waits: tuple[str, str] = ("", "")
    target: str = ""
    started: int | None = None
    stale_since: int | None = None
    checkpoint: int | None = None
    replaces: str = ""
    needs: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    controller: str = ""
    is_going: bool = False
    gpu_usage: int | None = None
    gpu_usage_since: int | None = None
    sealed: Seal | None = None
    said_start: int | None = None
    claims: tuple[str, ...] = ()
    own_claims: tuple[str, ...] = ()
    device_claims: tuple[tuple[str, str, str], ...] = ()
    made_claim: str = ""
    link: OwnerLink | None = None
    owners: OwnerChain = NO_OWNER

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name


class PodReader:
    """The maker of pod records; equal parts are shared between them."""

    def __init__(self, own_namespace: str = "", schedulers: frozenset[str] = frozenset()) -> None:
        self.specs = PodDemandTable()
        self.schedulers = schedulers
        self.own_namespace = own_namespace
        self.joined: tuple[tuple[str, str], ...] = ()
        self.owners_of: Callable[[tuple[str, str], OwnerLink | None], OwnerChain] = lambda _, __: NO_OWNER
        self.kinds: WorkloadKinds = built_in_kinds()
        self._maps: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        self._size = 0

    def read(self, pod: ApiPod, known: Seal | None = None) -> PodRecord | None:
        """Give the record of a pod; None for one that holds nothing and waits for nothing any more.

        ``known`` is what this process wrote on it and the pod does not show yet. Whatever its owner wrote, a record
        comes of it: where reading fails, what the pod's spec asks for is all that counts.
        """
        if _phase(pod) is None:
            return None
        try:
            return self._read(pod, known)
        except Exception as error:  # noqa: BLE001  whatever a stranger wrote costs that pod alone
            return self._read(_bare(pod), known, f"cannot be read: {brief(error)}")

    def _read(self, pod: ApiPod, known: Seal | None, problem: str = "") -> PodRecord:
        meta, spec, status = pod.metadata, pod.spec, pod.status
        phase = _phase(pod)
        assert phase is not None
        annotations, labels = meta.annotations or _NONE, meta.labels or _NONE
        asked = self.specs.of(pod)
        problems = [*asked.problems, problem] if problem else list(asked.problems)
        said = ObjectText(annotations, problems)
        scheduled = next((c for c in status.conditions or () if c.type == "PodScheduled"), None)
        owner = controller(meta.owner_references)
        group = _group(pod, labels, said)
        seal = seal_of(status.conditions)
        if known is not None and (seal is None or not seal.is_bound):
            seal = known
        kept = self._kept(pod, owner, annotations)
        if kept == MIRROR:  # it stands for itself, whatever group it names
            group = "Pod", meta.name
        link = None if group is not None else self._joined(labels, annotations, said) or link_to(owner)
        task = self._task(pod, phase, asked.spec, said, scheduled, seal)
        chain = self.owners_of((meta.namespace, meta.name), link)
        owner_uid = "" if owner is None or (group is not None and group[0] == "group") else owner.uid
        if chain.top is not None:
            group, owner_uid = group_below(chain.top, meta.name, labels, self.kinds), chain.top.uid
        if chain.problem:
            problems.append(chain.problem)
        return PodRecord(
            namespace=intern(meta.namespace),
            name=meta.name,
            uid=meta.uid,
            version=meta.resource_version,
            task=task,
            group=group or ("Pod", meta.name),
            owner_uid=owner_uid,
            queue=intern(next((labels[k] for k in keys.QUEUE_LABELS if labels.get(k)), "")),
            pool=intern(labels.get(keys.POOL, "")),
            priority=spec.priority or 0,
            priority_class=intern(spec.priority_class_name or ""),
            evicts_never=spec.preemption_policy == NEVER,
            scheduler=TENURE if self._is_own(pod) else intern(spec.scheduler_name),
            created_at=micros(meta.creation_timestamp) or 0,
            min_member=asked.min_member or _group_size(said),
            labels=self._shared(labels),
            annotations=self._shared(_kept_annotations(annotations)),
            kept=seal.kept if seal is not None and seal.is_bound and kept in _OF_OWNERS else kept,
            waits=(scheduled.reason, scheduled.message) if scheduled and scheduled.status == "False" else ("", ""),
            target=next((c.reason for c in status.conditions or () if c.type == "DisruptionTarget"), ""),
            started=_started(seal, task, said),
            stale_since=micros(seal.stale) if seal is not None else None,
            checkpoint=said.time(keys.CHECKPOINT),
            **_promise(seal),
            problems=tuple(problems),
            controller="" if owner is None else intern(owner.uid),
            is_going=bool(meta.deletion_timestamp),
            gpu_usage=said.gpus(keys.GPU_USAGE),
            gpu_usage_since=said.time(keys.GPU_USAGE_SINCE),
            sealed=seal,
            said_start=said.time(keys.STARTED),
            **_claims(pod),
            device_claims=_device_claims(pod),
            made_claim=intern(str((status.extended_resource_claim_status or _NONE).get("resourceClaimName") or "")),
            link=link,
            owners=chain,
        )

    def _task(
        self, pod: ApiPod, phase: Phase, spec: Any, said: ObjectText, scheduled: Condition | None, seal: Seal | None
    ) -> Task:
        meta, status = pod.metadata, pod.status
        grace = meta.deletion_grace_period_seconds
        if grace is None:
            grace = pod.spec.termination_grace_period_seconds
        deleted = micros(meta.deletion_timestamp)
        placed = phase in (Phase.BOUND, Phase.RUNNING, Phase.TERMINATING)
        started = micros(scheduled.last_transition_time) if scheduled and scheduled.status == "True" else None
        annotations = meta.annotations
        own = (
            {k: v for k, v in annotations.items() if (k in SPARING or k.endswith(_PER_TASK)) and len(v) <= MOST_TEXT}
            if annotations
            else _NONE
        )
        labels = meta.labels or _NONE
        of_kai = labels.get(keys.KAI_SUB_GROUP) if keys.KAI_GROUP in (annotations or _NONE) else None
        label = labels.get(keys.SUB_GROUP) or of_kai
        return Task(
            name=meta.name,
            spec=spec,
            phase=phase,
            node=intern(pod.spec.node_name) if placed and pod.spec.node_name else None,
            devices=_devices(seal, said) if placed and self._is_own(pod) else (),
            sub_group=label or said.name(keys.SUB_GROUP),
            order=said.whole(keys.TASK_ORDER),
            created_at=micros(meta.creation_timestamp),
            started_at=(started or micros(status.start_time)) if placed else None,
            terminating_since=None if deleted is None or phase is not Phase.TERMINATING
            else deleted - (meta.deletion_grace_period_seconds or 0) * SECOND,
            grace_period=None if grace is None else min(max(0, grace) * SECOND, LONGEST),
            nominated=_nomination(status.nominated_node_name, seal)
            if phase is Phase.PENDING
            else _landing(seal)
            if placed
            else None,
            notice=_notice(seal) if phase in (Phase.BOUND, Phase.RUNNING) else None,
            ready=_is_ready(status.conditions) if phase in (Phase.BOUND, Phase.RUNNING) else True,
            role=said.choice(keys.ROLE, _ROLES),
            annotations=self._shared(_sane(own, said)),
        )  # fmt: skip

    def _is_own(self, pod: ApiPod) -> bool:
        """Whether a pod is Tenure's to schedule."""
        return pod.spec.scheduler_name == TENURE or pod.spec.scheduler_name in self.schedulers

    def _kept(self, pod: ApiPod, owner: Owner | None, annotations: dict[str, str]) -> str:
        """Say why a pod is never evicted, or never moved; whoever asks Tenure for a place is no static pod."""
        if keys.MIRROR in annotations and not self._is_own(pod) and owner is not None and owner.kind == "Node":
            return MIRROR
        if owner is not None and owner.kind == "DaemonSet":
            return DAEMON
        if pod.metadata.namespace == self.own_namespace and (pod.metadata.labels or _NONE).get(_NAME) == TENURE:
            return OWN
        return BARE if owner is None else ""

    def _joined(self, labels: dict[str, str], annotations: dict[str, str], said: ObjectText) -> OwnerLink | None:
        """Give the object that a pod names as what it belongs to, where the kind is one that pods name."""
        for key, kind in self.joined:
            name = (labels.get(key) or said.name(key)) if key in labels or key in annotations else None
            if name:
                return OwnerLink(kind, intern(name))
        return None

    def _shared(self, mapping: dict[str, str]) -> dict[str, str]:
        """Give an equal mapping that is there already; of labels that differ from pod to pod, not too many."""
        if not mapping:
            return _NONE
        key = tuple(mapping.items())
        known = self._maps.get(key)
        if known is not None:
            return known
        self._size += _length(mapping)
        if len(self._maps) > _MOST_MAPS or self._size > MOST_SHARED:
            self._maps.clear()
            self._size = 0
        self._maps[key] = mapping
        return mapping


_MOST_MAPS = 20_000
MOST_SHARED: Final = 1 << 25
"""Characters of labels and annotations that are kept to be shared."""

_MOST_KEPT = 64
"""Annotations of a pod that are kept."""

MOST_KEPT_TEXT: Final = 16_384
"""Characters of the annotations of a pod that are kept."""

_OF_OWNERS = frozenset({"", DAEMON, BARE})
"""What follows from a pod's owners, who may be changed while it runs."""

_ROLES = ("originator",)
_READ = (
    "tenure.dev/", "kai.scheduler/", "volcano.sh/", "yunikorn.apache.org/", "cluster-autoscaler.kubernetes.io/",
    "karpenter.sh/", "descheduler.alpha.kubernetes.io/", "kueue.x-k8s.io/",
    "autoscaling.x-k8s.io/",
)  # fmt: skip
"""Beginnings of the annotations that anything is read of; the others are not kept."""

_NAME = "app.kubernetes.io/name"
_PER_TASK = ("/eviction-ack", "/allow-preemption", "/expected-runtime", "/requeue-delay", "/requeue-not-before")
"""Annotations that the rules look for on a task."""


def bound(
    record: PodRecord, node: str, devices: tuple[int, ...], now: int, start: int | None, seal: Seal | None = None
) -> PodRecord:
    """Give the record as it will be once a binding that was accepted shows in the watch."""
    task = replace(
        record.task, phase=Phase.BOUND, node=node, devices=devices, nominated=None, started_at=now, ready=False
    )
    return replace(record, task=task, started=start, waits=("", ""), sealed=seal, said_start=start)


def evicted(record: PodRecord, now: int) -> PodRecord:
    """Give the record as it will be once an eviction that was accepted shows in the watch."""
    task = replace(record.task, phase=Phase.TERMINATING, terminating_since=now, notice=None)
    return replace(record, task=task, is_going=True)


def nominated(record: PodRecord, nomination: Nomination | None) -> PodRecord:
    """Give the record as it will be once a nomination, or its end, shows in the watch."""
    return replace(record, task=replace(record.task, nominated=nomination))


def noticed(record: PodRecord, note: NoticeNote | None) -> PodRecord:
    """Give the record as it will be once a notice, or its end, shows in the watch: a core is told as a whole.

    Seen in part, the notice of a core could not be carried out, and would be withdrawn.
    """
    seal = msgspec.structs.replace(record.sealed or NO_SEAL, notice=note)
    task = replace(record.task, notice=_notice(seal), nominated=_landing(seal))
    return replace(record, task=task, sealed=seal)


def landed(record: PodRecord, nomination: Nomination, replaces: str) -> PodRecord:
    """Give the record as it will be once a promise that was handed on to it shows in the watch."""
    return replace(nominated(record, nomination), replaces=replaces)


def group_below(top: OwnerLink, name: str, labels: Mapping[str, str], kinds: WorkloadKinds) -> tuple[str, str]:
    """Give the group of a pod below an owner: the owner's, unless it makes several workloads."""
    kind = kinds.by_key.get(top.kind)
    if kind is not None and kind.unit in ("pod", "below"):
        return top.kind, name
    number = labels.get(kind.unit_label, "") if kind is not None and kind.unit == "label" else ""
    return top.kind, intern(f"{top.name}-{number}") if number else top.name


def _phase(pod: ApiPod) -> Phase | None:
    phase, node = pod.status.phase, pod.spec.node_name
    if phase == "Succeeded":
        return Phase.SUCCEEDED
    if phase == "Failed":
        return Phase.FAILED
    if pod.metadata.deletion_timestamp:
        return Phase.TERMINATING if node else None
    if node:
        return Phase.RUNNING if phase == "Running" else Phase.BOUND
    return Phase.GATED if pod.spec.scheduling_gates else Phase.PENDING


def _group_size(said: ObjectText) -> int | None:
    """Give how many pods are in a group, as it is said elsewhere."""
    return next((n for key in keys.GROUP_SIZES if (n := said.whole(key, 1)) is not None), None)


def _group(pod: ApiPod, labels: dict[str, str], said: ObjectText) -> tuple[str, str] | None:
    """Give kind and name of the group that a pod names; None where its owners decide (spec: on Kubernetes)."""
    for key in (keys.POD_GROUP, *keys.FOREIGN_GROUPS):
        name = labels.get(key) or said.name(key)
        if name:
            return "group", intern(name)
    told = pod.spec.scheduling_group or pod.spec.workload_ref
    if told:
        name = told.get("podGroupName") or told.get("podGroup") or told.get("name")
        if isinstance(name, str) and name:
            return "group", intern(name)
    return None


def _claims(pod: ApiPod) -> dict[str, Any]:
    """Give the claims that a pod mounts, and those that are made for it alone."""
    named, own = set(), set()
    for volume in pod.spec.volumes or ():
        claim = volume.get("persistentVolumeClaim")
        if isinstance(claim, dict):
            named.add(intern(str(claim.get("claimName", ""))))
        if "ephemeral" in volume:
            own.add(intern(f"{pod.metadata.name}-{volume.get('name', '')}"))
    return {"claims": tuple(sorted(named)), "own_claims": tuple(sorted(own))} if named or own else {}


def _device_claims(pod: ApiPod) -> tuple[tuple[str, str, str], ...]:
    """Give the claims on devices that a pod uses: the name of each in the pod, its own name, and what kind it is.

    One of a template is ``own``: its controller says in the status what it is called; it may say that there is none.
    """
    if not pod.spec.resource_claims:
        return ()
    made = {str(s.get("name", "")): s.get("resourceClaimName") for s in pod.status.resource_claim_statuses or ()}
    found = []
    for entry in pod.spec.resource_claims:
        name, named = intern(str(entry.get("name", ""))), entry.get("resourceClaimName")
        if named:
            found.append((name, intern(str(named)), "named"))
        elif name in made:
            found.append((name, intern(str(made[name] or "")), "own" if made[name] else "none"))
        else:
            found.append((name, "", "own"))
    return tuple(found)


def _is_ready(conditions: list[Condition] | None) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in conditions or ())


def _bare(pod: ApiPod) -> ApiPod:
    """Give a pod without what its owner may write at any time."""
    meta = msgspec.structs.replace(pod.metadata, annotations=None, labels=None, owner_references=None)
    return msgspec.structs.replace(pod, metadata=meta)


def _kept_annotations(annotations: dict[str, str]) -> dict[str, str]:
    """Give the annotations of which anything is read, in bounds."""
    found = {
        k: v for k, v in annotations.items() if k.startswith(_READ) and k not in keys.WRITTEN and len(v) <= MOST_TEXT
    }
    if len(found) > _MOST_KEPT or _length(found) > MOST_KEPT_TEXT:
        found = _beginning(found)
    return {k: v for k, v in found.items() if not k.endswith(_SEALED)}


def _beginning(annotations: dict[str, str]) -> dict[str, str]:
    """Give as many annotations as are kept of a pod that has more, in the order of their keys."""
    found, left = {}, MOST_KEPT_TEXT
    for key, text in sorted(annotations.items())[:_MOST_KEPT]:
        left -= len(key) + len(text)
        if left >= 0:
            found[key] = text
    return found


def _length(mapping: dict[str, str]) -> int:
    """Give how many characters labels or annotations have."""
    return sum(map(len, mapping)) + sum(map(len, mapping.values()))


def _sane(own: dict[str, str], said: ObjectText) -> dict[str, str]:
    """Give the annotations of a task with durations in bounds, and without what only the scheduler may say."""
    found = {}
    for key, text in own.items():
        if key.endswith(_DURATIONS) and said.duration(key) == LONGEST:
            found[key] = _LONGEST_TEXT
        elif not key.endswith(_SEALED):
            found[key] = text
    return found


_SEALED = ("/requeue-not-before",)
"""Annotations that are read in cluster files; on a cluster the eviction log says it."""

_DURATIONS = ("/expected-runtime", "/requeue-delay")
_LONGEST_TEXT = "3650d"


def _started(seal: Seal | None, task: Task, said: ObjectText) -> int | None:
    """Give when a pod's workload started: as sealed, else as the API server says that the pod was placed.

    No clock of a scheduler's is in it: what is sealed is that time, or that of an earlier pod of the workload. What
    stands in the annotation counts where neither is known, and never before the pod was made. No workload started
    after one of its pods was placed: a later time (of a clock that was ahead, or forged) is not believed.
    """
    found = said.time(keys.STARTED)
    if seal is not None and seal.is_bound:
        told, placed = micros(seal.started), task.started_at
        if seal.first or told is None:
            return placed if seal.first else None
        return told if placed is None else min(told, placed)
    if task.node is None:
        return None
    if task.started_at is not None:
        return task.started_at
    return None if found is None else max(found, task.created_at or found)


def _devices(seal: Seal | None, said: ObjectText) -> tuple[int, ...]:
    """Give which devices a pod of Tenure's holds: as sealed, else as the annotation says that came with its binding."""
    stated = said.numbers(keys.DEVICES)
    return seal.devices if seal is not None and seal.is_bound else stated


def _nomination(node: str | None, seal: Seal | None) -> Nomination | None:
    """Give the nomination: the node that the status names, with what was sealed about it.

    One of another scheduler has no seal; it is none of Tenure's promises.
    """
    note = seal.nomination if seal is not None else None
    if not node or note is None or note.node != node:
        return None
    return Nomination(node=intern(node), devices=note.devices, at=micros(note.at) or 0)


def _promise(seal: Seal | None) -> dict[str, Any]:
    """Give what a promise was noted to be for: whom it replaces, and who has to go for it."""
    note = seal.nomination if seal is not None else None
    return {} if note is None else {"replaces": note.replaces, "needs": note.needs}


def _notice(seal: Seal | None) -> Notice | None:
    note = seal.notice if seal is not None else None
    deadline = None if note is None else micros(note.deadline)
    if note is None or deadline is None:
        return None
    return Notice(deadline=deadline, cause=note.cause, beneficiary=note.beneficiary, at=micros(note.at))


def _landing(seal: Seal | None) -> Nomination | None:
    """Give the place where a pod under notice is to land."""
    note = seal.notice if seal is not None else None
    if note is None or not note.to:
        return None
    return Nomination(node=note.to, devices=note.devices, at=micros(note.at) or 0)
