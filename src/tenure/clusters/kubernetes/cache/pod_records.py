"""A pod as it is kept between cycles: its task, what groups it, and what writes to it need to know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from sys import intern
from typing import Any, Final

import msgspec

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.api import ApiPod, Condition, Owner, micros
from tenure.clusters.kubernetes.cache.pod_specs import PodDemandTable
from tenure.model.quantity import parse_queue_quantity
from tenure.model.resources import GPU
from tenure.model.workload import Nomination, Notice, Phase, Task

TENURE: Final = "tenure"
SECOND = 1_000_000

MIRROR, DAEMON, OWN, BARE = "mirror pod", "DaemonSet pod", "Tenure's own pod", "pod that nobody recreates"
"""Why a pod is never evicted, or never moved."""

_NONE: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class PodRecord:
    """What is kept of a pod. ``group`` is the kind and name of what makes it one workload with others.

    ``waits`` is reason and message of its condition ``PodScheduled`` while that is false. ``started`` is the start
    time of its workload as it was written on it, in µs since the epoch. ``replaces`` is the uid of the pod whose
    promised place it was given, ``needs`` those of the pods that have to go for its promise. ``kept`` says why it is
    never evicted, or never moved. ``controller`` is the uid of what recreates it. ``is_going``: it was deleted or
    evicted, whatever its phase; one that has ended by then may be there for a while.
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

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name


class PodReader:
    """Makes records of pods; equal parts are shared between them."""

    def __init__(self, own_namespace: str = "", schedulers: frozenset[str] = frozenset()) -> None:
        self.specs = PodDemandTable()
        self.schedulers = schedulers
        self.own_namespace = own_namespace
        self._maps: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}

    def read(self, pod: ApiPod) -> PodRecord | None:
        """Give the record of a pod; None for one that holds nothing and waits for nothing any more."""
        meta, spec, status = pod.metadata, pod.spec, pod.status
        phase = _phase(pod)
        if phase is None:
            return None
        annotations = meta.annotations or _NONE
        labels = meta.labels or _NONE
        asked = self.specs.of(pod)
        problems = list(asked.problems)
        scheduled = next((c for c in status.conditions or () if c.type == "PodScheduled"), None)
        owner = _controller(meta.owner_references)
        group = _group(pod, owner, labels, annotations)
        return PodRecord(
            namespace=intern(meta.namespace),
            name=meta.name,
            uid=meta.uid,
            version=meta.resource_version,
            task=self._task(pod, phase, asked.spec, annotations, scheduled, problems),
            group=group,
            owner_uid="" if owner is None or group[0] == "group" else owner.uid,
            queue=intern(next((labels[k] for k in keys.QUEUE_LABELS if labels.get(k)), "")),
            pool=intern(labels.get(keys.POOL, "")),
            priority=spec.priority or 0,
            priority_class=intern(spec.priority_class_name or ""),
            scheduler=TENURE if spec.scheduler_name in self.schedulers else intern(spec.scheduler_name),
            created_at=micros(meta.creation_timestamp) or 0,
            min_member=asked.min_member,
            labels=self._shared(labels),
            annotations=self._shared(
                {k: v for k, v in annotations.items() if k not in keys.WRITTEN and len(v) <= _LONGEST}
            ),
            kept=self._kept(pod, owner, annotations),
            waits=(scheduled.reason, scheduled.message) if scheduled and scheduled.status == "False" else ("", ""),
            target=next((c.reason for c in status.conditions or () if c.type == "DisruptionTarget"), ""),
            started=_time(annotations, keys.STARTED, problems),
            stale_since=_time(annotations, keys.STALE_SINCE, problems),
            checkpoint=_time(annotations, keys.CHECKPOINT, problems),
            **_promise(annotations),
            problems=tuple(problems),
            controller="" if owner is None else intern(owner.uid),
            is_going=bool(meta.deletion_timestamp),
            gpu_usage=_gpus(annotations, problems),
            gpu_usage_since=_time(annotations, keys.GPU_USAGE_SINCE, problems),
        )

    def _task(
        self,
        pod: ApiPod,
        phase: Phase,
        spec: Any,
        annotations: dict[str, str],
        scheduled: Condition | None,
        bad: list[str],
    ) -> Task:
        meta, status = pod.metadata, pod.status
        grace = meta.deletion_grace_period_seconds
        if grace is None:
            grace = pod.spec.termination_grace_period_seconds
        deleted = micros(meta.deletion_timestamp)
        placed = phase in (Phase.BOUND, Phase.RUNNING, Phase.TERMINATING)
        started = micros(scheduled.last_transition_time) if scheduled and scheduled.status == "True" else None
        own = {k: annotations[k] for k in annotations if k.endswith(_PER_TASK)} if annotations else _NONE
        return Task(
            name=meta.name,
            spec=spec,
            phase=phase,
            node=intern(pod.spec.node_name) if placed and pod.spec.node_name else None,
            devices=_devices(annotations, bad) if placed else (),
            sub_group=(meta.labels or _NONE).get(keys.SUB_GROUP) or annotations.get(keys.SUB_GROUP),
            order=_whole(annotations, keys.TASK_ORDER, bad),
            created_at=micros(meta.creation_timestamp),
            started_at=(started or micros(status.start_time)) if placed else None,
            terminating_since=None if deleted is None or phase is not Phase.TERMINATING
            else deleted - (meta.deletion_grace_period_seconds or 0) * SECOND,
            grace_period=None if grace is None else grace * SECOND,
            nominated=_nomination(status.nominated_node_name, annotations, bad)
            if phase is Phase.PENDING
            else _landing(annotations)
            if placed
            else None,
            notice=_notice(annotations, bad) if phase in (Phase.BOUND, Phase.RUNNING) else None,
            ready=_is_ready(status.conditions) if phase in (Phase.BOUND, Phase.RUNNING) else True,
            role=annotations.get(keys.ROLE),
            annotations=self._shared(own),
        )  # fmt: skip

    def _kept(self, pod: ApiPod, owner: Owner | None, annotations: dict[str, str]) -> str:
        if keys.MIRROR in annotations:
            return MIRROR
        if owner is not None and owner.kind == "DaemonSet":
            return DAEMON
        if pod.metadata.namespace == self.own_namespace and (pod.metadata.labels or _NONE).get(_NAME) == TENURE:
            return OWN
        return BARE if owner is None else ""

    def _shared(self, mapping: dict[str, str]) -> dict[str, str]:
        """Give an equal mapping that is there already; of labels that differ from pod to pod, not too many."""
        if not mapping:
            return _NONE
        if len(self._maps) > _MOST_MAPS:
            self._maps.clear()
        return self._maps.setdefault(tuple(mapping.items()), mapping)


_MOST_MAPS = 20_000
_LONGEST = 4096
"""Characters of an annotation that is kept; nothing that is read here is longer."""

_NAME = "app.kubernetes.io/name"
_PER_TASK = ("/eviction-ack", "/allow-preemption", "/expected-runtime", "/requeue-delay", "/requeue-not-before")
"""Annotations that the rules look for on a task."""


def bound(record: PodRecord, node: str, devices: tuple[int, ...], now: int, start: int | None) -> PodRecord:
    """Give the record as it will be once a binding that was accepted shows in the watch."""
    task = replace(
        record.task, phase=Phase.BOUND, node=node, devices=devices, nominated=None, started_at=now, ready=False
    )
    return replace(record, task=task, started=start, waits=("", ""))


def evicted(record: PodRecord, now: int) -> PodRecord:
    """Give the record as it will be once an eviction that was accepted shows in the watch."""
    task = replace(record.task, phase=Phase.TERMINATING, terminating_since=now, notice=None)
    return replace(record, task=task, is_going=True)


def nominated(record: PodRecord, nomination: Nomination | None) -> PodRecord:
    """Give the record as it will be once a nomination, or its end, shows in the watch."""
    return replace(record, task=replace(record.task, nominated=nomination))


def landed(record: PodRecord, nomination: Nomination, replaces: str) -> PodRecord:
    """Give the record as it will be once a promise that was handed on to it shows in the watch."""
    return replace(nominated(record, nomination), replaces=replaces)


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


def _controller(owners: list[Owner] | None) -> Owner | None:
    return next((o for o in owners or () if o.controller), None)


def _group(pod: ApiPod, owner: Owner | None, labels: dict[str, str], annotations: dict[str, str]) -> tuple[str, str]:
    """Give kind and name of what makes pods one workload (spec: on Kubernetes)."""
    for key in (keys.POD_GROUP, *keys.FOREIGN_GROUPS):
        name = labels.get(key) or annotations.get(key)
        if name:
            return "group", intern(name)
    told = pod.spec.scheduling_group or pod.spec.workload_ref
    if told:
        name = told.get("podGroupName") or told.get("podGroup") or told.get("name")
        if isinstance(name, str) and name:
            return "group", intern(name)
    if owner is None or owner.kind in ("DaemonSet", "Node"):
        return "ApiPod", pod.metadata.name
    jobset = labels.get("jobset.sigs.k8s.io/jobset-name")
    if jobset:
        return "JobSet", intern(jobset)
    template = labels.get("pod-template-hash")
    if owner.kind == "ReplicaSet" and template and owner.name.endswith(f"-{template}"):
        return "Deployment", intern(owner.name.removesuffix(f"-{template}"))
    return intern(owner.kind), intern(owner.name)


def _is_ready(conditions: list[Condition] | None) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in conditions or ())


def _time(annotations: dict[str, str], key: str, bad: list[str]) -> int | None:
    text = annotations.get(key)
    if text is None:
        return None
    found = micros(text)
    if found is None:
        bad.append(f"annotation {key}: {text[:60]!r} is no RFC 3339 time; write one such as 2026-11-20T10:00:00Z")
    return found


def _whole(annotations: dict[str, str], key: str, bad: list[str]) -> int | None:
    text = annotations.get(key)
    if text is None:
        return None
    if text.lstrip("-").isdecimal() and len(text) < 10:  # noqa: PLR2004  fits 32 bits
        return int(text)
    bad.append(f"annotation {key}: {text[:60]!r} is no whole number")
    return None


def _gpus(annotations: dict[str, str], bad: list[str]) -> int | None:
    """Give the milli-GPU that an annotation says are in use."""
    text = annotations.get(keys.GPU_USAGE)
    if text is None:
        return None
    try:
        found = parse_queue_quantity(text, GPU)
    except ValueError as error:
        bad.append(f"annotation {keys.GPU_USAGE}: {error}")
        return None
    return found


def _devices(annotations: dict[str, str], bad: list[str]) -> tuple[int, ...]:
    text = annotations.get(keys.DEVICES)
    if not text:
        return ()
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = (-1,)
    if min(found) >= 0:
        return found
    bad.append(f"annotation {keys.DEVICES}: {text[:60]!r} is no list of GPU numbers; write one such as 0,3")
    return ()


class _NominationNote(msgspec.Struct):
    node: str
    at: str = ""
    devices: list[int] = []
    replaces: str = ""
    needs: list[str] = []


class _NoticeNote(msgspec.Struct, rename={"beneficiary": "for"}):
    deadline: str
    cause: str
    beneficiary: str | None = None
    at: str | None = None
    to: str | None = None
    devices: list[int] = []


def _nomination(node: str | None, annotations: dict[str, str], bad: list[str]) -> Nomination | None:
    """Give the nomination: the node that the status names, with what was noted beside it, if that is about this node.

    One of another scheduler has no note; it counts since ever, and so ends at once here.
    """
    if not node:
        return None
    note = _note(annotations, keys.NOMINATION, _NominationNote, bad)
    if note is None or note.node != node:
        return None
    return Nomination(node=intern(node), devices=tuple(note.devices), at=micros(note.at) or 0)


def _promise(annotations: dict[str, str]) -> dict[str, Any]:
    """Give what a promise was noted to be for: whom it replaces, and who has to go for it."""
    note: _NominationNote | None = _note(annotations, keys.NOMINATION, _NominationNote, [])
    return {} if note is None else {"replaces": note.replaces, "needs": tuple(note.needs)}


def _notice(annotations: dict[str, str], bad: list[str]) -> Notice | None:
    note = _note(annotations, keys.NOTICE, _NoticeNote, bad)
    deadline = None if note is None else micros(note.deadline)
    if note is None or deadline is None:
        return None
    return Notice(deadline=deadline, cause=note.cause, beneficiary=note.beneficiary, at=micros(note.at))


def _landing(annotations: dict[str, str]) -> Nomination | None:
    """Give the place where a pod under notice is to land."""
    note: _NoticeNote | None = _note(annotations, keys.NOTICE, _NoticeNote, [])
    if note is None or not note.to:
        return None
    return Nomination(node=note.to, devices=tuple(note.devices), at=micros(note.at) or 0)


def _note(annotations: dict[str, str], key: str, kind: type[Any], bad: list[str]) -> Any:
    text = annotations.get(key)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        bad.append(f"annotation {key}: {error}")
        return None
