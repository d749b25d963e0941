"""From the pods of one group to a workload."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.bounded import ObjectText
from tenure.clusters.kubernetes.cache.handlers import GroupKey
from tenure.clusters.kubernetes.cache.pod_records import BARE, DAEMON, MIRROR, OWN, TENURE, PodRecord
from tenure.clusters.kubernetes.client.server_clock import TOLERANCE
from tenure.clusters.kubernetes.read.groups import NOTHING_SAID, GroupDeclaration
from tenure.clusters.kubernetes.read.roles import in_roles, in_sub_groups
from tenure.clusters.kubernetes.read.volcano_groups import Grouped, grouped
from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.manifests.workload_kind import OwnerShape
from tenure.model.selectors import Topology
from tenure.model.values.resources import GPU
from tenure.model.workload import NEVER, SAFE_TO_EVICT, SPARING, Checkpoint, Phase, SubGroup, Task, TaskSpec, Workload

HELD = "tenure-held"
"""Scheduler of pods that are Tenure's and must not be touched: they hold room and belong to no queue."""

ACTIVE = frozenset({Phase.BOUND, Phase.RUNNING})
_BEGUN = ACTIVE | {Phase.SUCCEEDED}
_ENDED = frozenset({Phase.SUCCEEDED, Phase.FAILED})
PLACED = frozenset({Phase.BOUND, Phase.RUNNING, Phase.TERMINATING})
BARE_KIND = "Pod"
"""``ownerKind`` of a pod that nobody recreates."""

_INDEX_LABELS = ("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")
_DIGITS = re.compile(r"(\d+)")
_MOST_DIGITS = 18
_INTERVAL, _OVERHEAD = "tenure.dev/checkpoint-interval", "tenure.dev/restart-overhead"
_PREEMPTIBLE = {
    keys.PREEMPTIBLE: {"true": True, "false": False},
    keys.KAI_PREEMPTIBILITY: {"preemptible": True, "non-preemptible": False},
}
SYSTEM_PRIORITY = 2_000_000_000
"""From here on priorities are those of ``system-cluster-critical`` and ``system-node-critical``."""


class EvictionHistory(NamedTuple):
    """The past evictions of a workload, as the eviction log has them. Times in µs since the epoch."""

    last_evicted_at: int | None = None
    not_before: int | None = None
    evictions: int = 0


@dataclass(frozen=True, slots=True)
class ObservedWorkload:
    """A workload, the pods behind its tasks in their order, and what about them could not be read."""

    workload: Workload
    pods: tuple[PodRecord, ...]
    problems: tuple[str, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether it is Tenure's to schedule, and a task of it waits for a place."""
        own = self.workload
        return own.scheduler_name == TENURE and any(task.phase is Phase.PENDING for task in own.tasks)


def make(
    key: GroupKey,
    records: Sequence[PodRecord],
    said: GroupDeclaration | None,
    classes: Mapping[str, Any],
    past: EvictionHistory,
    now: int,
    movable: Collection[str] = (),
    *,
    settled: bool = True,
) -> ObservedWorkload:
    """Make the workload of a group.

    ``classes`` are the priority classes by name, ``movable`` the other schedulers whose pods the rescheduler may move.
    ``settled``: of a group that says nowhere how many it is no more pods are waited for.
    """
    namespace, kind, name, is_own, _ = key
    about = _with_roles(said or NOTHING_SAID, records)
    pods, tasks = in_roles(_in_order(records), about.shape)
    problems = [*about.problems, *(f"pod {p.name}: {line}" for p in pods for line in p.problems)]
    tasks = tuple(_begun(task, now) for task in tasks)
    values: dict[str, Any] = dict(about.values)
    scheduler = TENURE if is_own else pods[0].scheduler
    if any(p.kept in (MIRROR, OWN) and p.task.phase in PLACED for p in pods):
        scheduler = HELD
    if scheduler != TENURE and scheduler not in movable:
        foreign = _foreign(namespace, name, pods[0].uid, tasks, scheduler, min(p.created_at for p in pods))
        return ObservedWorkload(foreign, tuple(pods), tuple(problems))
    annotations = {**_common(pods), **about.annotations}
    values["queue"] = charged(pods) or values.get("queue") or _queue(about, pods)
    values["priority"] = _priority(values.get("priority"), about, pods, classes)
    values.setdefault("preemptible", _preemptible(annotations, about, pods, problems))
    if values["preemptible"] is False and any(p.sealed.is_bound and not p.sealed.fixed for p in pods if p.sealed):
        values["preemptible"] = True
        problems.append("preemptible: false came after its start; it is evictable until it starts anew")
    if scheduler != TENURE:
        values |= _of_others(values, pods)
    tasks, values = _as_in_volcano(about, pods, tasks, values, problems)
    if values.get("min_member") is None and "sub_groups" not in values:
        values["min_member"] = _min_member(kind, about, pods, problems, settled=settled)
        if about.shape is not None and values["min_member"] == about.shape.together:
            tasks, values = _grouped(pods, tasks, about.shape, values)
            values["min_member"] = _needed_now(values["min_member"], pods)
    if about.goes_whole and values.get("min_member") is not None:
        values["min_member"] = max(values["min_member"], sum(t.phase in ACTIVE for t in tasks))
    values = {**_topology_of(pods, problems), **values}
    if not values.get("allow_preemption"):
        tasks = tuple(_as_classed(t, classes.get(p.priority_class)) for t, p in zip(tasks, pods, strict=True))
    if any(p.evicts_never or _evicts_never(classes.get(p.priority_class)) for p in pods):
        values["preemption_policy"] = NEVER
    made = Workload(
        **{**values, "checkpoint": _checkpoint(values.get("checkpoint"), annotations, pods, now, problems)},
        name=name,
        namespace=namespace,
        uid=about.uid or pods[0].owner_uid or pods[0].uid,
        tasks=tasks,
        created_at=about.created_at or min(p.created_at for p in pods),
        started_at=_by_now(_least(p.started for p in pods if p.task.phase in ACTIVE), now),
        stale_since=_least(p.stale_since for p in pods if p.task.phase in ACTIVE and (p.stale_since or 0) <= now),
        last_evicted_at=past.last_evicted_at,
        evictions=past.evictions,
        requeue_not_before=past.not_before,
        owner_kind=_owner_kind(kind, pods),
        scheduler_name=scheduler,
        annotations={k: v for k, v in annotations.items() if "/" in k and k not in keys.WRITTEN},
    )
    return ObservedWorkload(_with_ended(made, about), tuple(pods), tuple(problems))


def _with_roles(about: GroupDeclaration, records: Sequence[PodRecord]) -> GroupDeclaration:
    """Give what is said of a group with the roles that come later, of which a pod is there.

    All of it starts together, unless some of it runs already: then what has come since starts apart, as a whole, and is
    needed once it runs. So does what follows others, of which there may be more once these have a place.
    """
    shape = about.shape
    if shape is None or not any(role.once_there for role in shape.roles):
        return about
    phases: dict[int, list[Phase]] = {}
    for record in records:
        role = shape.role_of(record.labels)
        if role is None:
            return about
        phases.setdefault(role, []).append(record.task.phase)
    runs = any(not ACTIVE.isdisjoint(found) for found in phases.values())
    waits = {n for n, found in phases.items() if _BEGUN.isdisjoint(found) and not shape.roles[n].ended}
    apart = {n for n in waits if runs or shape.roles[n].follows}
    return replace(about, shape=_without_absent(shape, phases).with_roles(phases.keys(), apart))


def _without_absent(shape: OwnerShape, phases: Mapping[int, Sequence[Phase]]) -> OwnerShape:
    """Give a shape of which no parted role waits for pods that are not there, once one of its pods has ended.

    In which of its two parts it has ended, and whether others follow it, nothing says.
    """
    ended = {
        role.value for number, role in enumerate(shape.roles)
        if role.first is not None and (role.ended or not _ENDED.isdisjoint(phases.get(number, ())))
    }  # fmt: skip
    if not ended:
        return shape
    there = [sum(phase is not Phase.FAILED for phase in phases.get(n, ())) for n in range(len(shape.roles))]
    return replace(shape, roles=tuple(
        replace(role, minimum=min(role.minimum, count), once_there=min(role.once_there, count), ended=0)
        if role.first is not None and role.value in ended else role
        for role, count in zip(shape.roles, there, strict=True)
    ))  # fmt: skip


def _begun(task: Task, now: int) -> Task:
    """Give a task that has not begun a moment after now, by the clock of an API server that is ahead by that much."""
    return task if (at := _by_now(task.started_at, now)) == task.started_at else replace(task, started_at=at)


def _by_now(at: int | None, now: int) -> int | None:
    return now if at is not None and now < at <= now + TOLERANCE else at


def without_resources(made: ObservedWorkload, names: Collection[str]) -> ObservedWorkload:
    """Give a workload whose tasks ask for some resources no longer, and are not placed for having asked for them."""
    tasks = tuple(
        replace(task, spec=_without(task.spec, names)) if any(n in names for n, _ in task.spec.requests) else task
        for task in made.workload.tasks
    )
    return replace(made, workload=replace(made.workload, tasks=tasks))


def _without(spec: TaskSpec, names: Collection[str]) -> TaskSpec:
    asked = [name for name, _ in spec.requests if name in names]
    kept = tuple((name, amount) for name, amount in spec.requests if name not in names)
    told = f"{asked[0]}, one of {len(asked)} resources that no node has"
    return replace(spec, requests=kept, unsupported=(*spec.unsupported, told))


def without_waiting(made: ObservedWorkload) -> ObservedWorkload:
    """Give a workload with what stands on nodes alone."""
    pairs = [(p, t) for p, t in zip(made.pods, made.workload.tasks, strict=False) if t.phase in PLACED]
    kept = replace(made.workload, tasks=tuple(t for _, t in pairs))
    return ObservedWorkload(kept, tuple(p for p, _ in pairs), made.problems)


def without_pending(made: ObservedWorkload) -> ObservedWorkload:
    """Give a workload of which nothing that waits is placed, for its pods are about to go: they count as gated."""
    tasks = made.workload.tasks
    held = tuple(replace(t, phase=Phase.GATED, nominated=None) if t.phase is Phase.PENDING else t for t in tasks)
    return made if held == tasks else replace(made, workload=replace(made.workload, tasks=held))


def salvaged(made: ObservedWorkload, why: str, queue: str) -> ObservedWorkload:
    """Let what runs of a workload that cannot be decided about stay charged to a queue, and evictable.

    What says where it belongs or what it holds is left out: a part of a GPU is charged as the whole one.
    """
    placed = [(p, t) for p, t in zip(made.pods, made.workload.tasks, strict=False) if t.phase in PLACED]
    old = made.workload
    workload = Workload(
        name=old.name,
        namespace=old.namespace,
        uid=old.uid,
        queue=queue,
        priority=old.priority,
        preemptible=not all(p.sealed is not None and p.sealed.fixed for p, _ in placed),
        min_member=1,
        tasks=tuple(_plainly(t) for _, t in placed),
        created_at=old.created_at,
        started_at=old.started_at,
        last_evicted_at=old.last_evicted_at,
        owner_kind=old.owner_kind,
    )
    return ObservedWorkload(workload, tuple(p for p, _ in placed), (*made.problems, why))


def _plainly(task: Task) -> Task:
    """Give a placed task with nothing but what it holds."""
    spec = task.spec
    if spec.gpu_share is not None:
        whole = tuple(sorted({**dict(spec.requests), GPU: spec.gpu_share.devices}.items()))
        spec = replace(spec, requests=whole, gpu_share=None)
    return replace(task, devices=(), spec=spec, sub_group=None, order=None, nominated=None, annotations={}, role=None)


def held(made: ObservedWorkload, why: str) -> ObservedWorkload:
    """Let a workload that cannot be decided about hold the room that it has, and nothing more."""
    placed = [(p, t) for p, t in zip(made.pods, made.workload.tasks, strict=False) if t.phase in PLACED]
    tasks = tuple(_plainly(t) for _, t in placed)
    old = made.workload
    workload = _foreign(old.namespace, old.name, old.uid, tasks, HELD, old.created_at)
    return ObservedWorkload(workload, tuple(p for p, _ in placed), (*made.problems, why))


def unreadable(key: GroupKey, pods: Sequence[PodRecord], why: str) -> ObservedWorkload:
    """Give what is left of a group of which no workload can be made: its pods, and what they hold."""
    tasks = tuple(replace(p.task, order=None, sub_group=None) for p in pods)
    first = min(pods, key=lambda p: (p.created_at, p.uid))
    queue = charged(pods) or first.queue or DEFAULT_QUEUE
    made = _foreign(key[0], key[2], first.uid, tasks, TENURE if key[3] else first.scheduler, first.created_at)
    return ObservedWorkload(replace(made, queue=queue, priority=first.priority), tuple(pods), (why,))


def _grouped(
    pods: Sequence[PodRecord], tasks: tuple[Task, ...], shape: OwnerShape, values: dict[str, Any]
) -> tuple[tuple[Task, ...], dict[str, Any]]:
    """Give tasks and values with subgroups for roles, where the owner's kind has such and its pods name no others."""
    found = None if any(t.sub_group is not None for t in tasks) else in_sub_groups(pods, tasks, shape)
    if found is None:
        return tasks, values
    return found[0], {**values, "min_member": None, "sub_groups": found[1]}


def _as_in_volcano(
    about: GroupDeclaration,
    pods: Sequence[PodRecord],
    tasks: tuple[Task, ...],
    values: dict[str, Any],
    problems: list[str],
) -> tuple[tuple[Task, ...], dict[str, Any]]:
    """Give tasks and values with the subgroups that a group of Volcano asks for; what is refused is not placed.

    Where an annotation of Tenure's own says how many start together, that counts.
    """
    asked, stated = about.volcano, (about.annotations, about.labels)
    if asked is None or any(keys.MIN_MEMBER in one for one in stated) or any(p.min_member is not None for p in pods):
        return tasks, values
    found = Grouped(refused=asked.refused) if asked.refused else grouped(asked, pods)
    if found is None:
        return tasks, values
    if found.refused:
        problems.append(found.refused)
        return tuple(replace(t, spec=_refused(t.spec, found.refused)) for t in tasks), values
    made = tuple(replace(task, sub_group=name) for task, name in zip(tasks, found.of_pods, strict=True))
    return made, {**values, "sub_groups": found.sub_groups}


def _refused(spec: TaskSpec, why: str) -> TaskSpec:
    return replace(spec, unsupported=(*spec.unsupported, why))


_TOPOLOGIES = (
    ("kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology"),
    ("kai.scheduler/topology-required-placement", "kai.scheduler/topology-preferred-placement"),
)
"""Annotations of pods by which they ask to be near each other: under one value of a node label, or if possible."""


def _topology_of(pods: Sequence[PodRecord], problems: list[str]) -> dict[str, Any]:
    """Give the topology constraint that pods state by annotations of others; of several the first one's counts."""
    for required, preferred in _TOPOLOGIES:
        asking = next((p for p in pods if required in p.annotations or preferred in p.annotations), None)
        if asking is None:
            continue
        said = ObjectText(asking.annotations, problems)
        levels = [said.text(key, _LONGEST_LABEL) or None for key in (required, preferred)]
        if any(levels):
            return {"topology": Topology(required=levels[0], preferred=levels[1])}
    return {}


_LONGEST_LABEL = 317
"""Characters of a label's key: a prefix, a slash and a name."""


def _foreign(namespace: str, name: str, uid: str, tasks: tuple[Task, ...], scheduler: str, created_at: int) -> Workload:
    """Give a workload that only holds room."""
    return Workload(
        name=name,
        namespace=namespace,
        uid=uid,
        tasks=tasks,
        queue=DEFAULT_QUEUE,
        scheduler_name=scheduler,
        created_at=created_at,
        min_member=1,
    )


def _of_others(values: Mapping[str, Any], pods: Sequence[PodRecord]) -> dict[str, Any]:
    """Give what is different for pods of another scheduler: no queue, and no priority but the system's spares them."""
    said = values["preemptible"]
    spared = values["priority"] >= SYSTEM_PRIORITY or any(p.annotations.get(SAFE_TO_EVICT) == "false" for p in pods)
    return {"queue": DEFAULT_QUEUE, "preemptible": not spared if said is None else said}


def _in_order(pods: Sequence[PodRecord]) -> list[PodRecord]:
    """Sort pods: by their index where they have one, then by age, then by name with numbers as numbers."""
    return sorted(pods, key=_place)


def _place(pod: PodRecord) -> tuple[Any, ...]:
    index = next((pod.labels[k] for k in _INDEX_LABELS if k in pod.labels), "")
    own = pod.task.order if pod.task.order is not None else 0
    number = int(index) if index.isdecimal() and len(index) <= _MOST_DIGITS else -1
    return own, number, pod.created_at, natural(pod.name), pod.uid


def natural(name: str) -> list[tuple[int, str]]:
    """Give a sort key by which ``a-2`` comes before ``a-10``."""
    return [
        (int(part), "") if part.isdecimal() and len(part) <= _MOST_DIGITS else (-1, part)
        for part in _DIGITS.split(name)
    ]


def charged(pods: Sequence[PodRecord]) -> str:
    """Give the queue that was charged when the first of what runs was bound; nothing where nothing runs."""
    found = (p for p in pods if p.sealed is not None and p.sealed.is_bound and p.task.phase in PLACED)
    first = min(found, key=lambda p: (p.sealed.started if p.sealed else "", p.created_at, p.uid), default=None)
    return first.sealed.queue if first is not None and first.sealed is not None else ""


def _queue(about: GroupDeclaration, pods: Sequence[PodRecord]) -> str:
    """Give the queue that pods name, else a field of their owner, else its label, else what others around say."""
    own = next((p.queue for p in pods if p.queue), "")
    stated = about.shape.queue if about.shape is not None else ""
    labelled = next((about.labels[k] for k in keys.QUEUE_LABELS if about.labels.get(k)), "")
    return own or stated or labelled or about.fallback_queue or DEFAULT_QUEUE


def _priority(
    stated: int | None, about: GroupDeclaration, pods: Sequence[PodRecord], classes: Mapping[str, Any]
) -> int:
    """Give the priority: a group may lower that of its pods, and raise it no further than all of them have it.

    A ResourceQuota counts the classes of pods: one pod of a high class is not to raise a hundred others.
    """
    own = min(p.priority for p in pods)
    named = classes.get(about.priority_class)
    if stated is None and about.priority_class and named is not None and named.value is not None:
        stated = int(named.value)
    return own if stated is None else min(stated, own)


def _preemptible(
    annotations: Mapping[str, str], about: GroupDeclaration, pods: Sequence[PodRecord], problems: list[str]
) -> bool | None:
    if any(p.kept == DAEMON for p in pods):
        return False
    for key, meanings in _PREEMPTIBLE.items():
        labelled = about.labels.get(key) or next((p.labels[key] for p in pods if key in p.labels), None)
        text = annotations.get(key) or labelled
        if text in meanings:
            return meanings[text]
        if text:
            problems.append(f"{key}: {text[:60]!r} is none of {', '.join(meanings)}")
    return None


def _min_member(
    kind: str, about: GroupDeclaration, pods: Sequence[PodRecord], problems: list[str], *, settled: bool
) -> int | None:
    """Give how many start together: as annotated, as the Job says, one for what an owner replaces one by one."""
    for said in (about.annotations, about.labels):
        stated = ObjectText(said, problems).whole(keys.MIN_MEMBER, 1)
        if stated is not None:
            return stated
    annotated = [p.min_member for p in pods if p.min_member is not None]
    if annotated:
        return max(annotated)
    if about.shape is not None:
        return about.shape.together
    if not settled:
        return len(pods) + 1  # more may come, or be said
    if kind == "group":
        owned = any(p.kept != BARE for p in pods)
        going = (Phase.TERMINATING, Phase.FAILED)
        return max(1, sum(p.task.phase not in going for p in pods)) if owned else None
    return 1


def _needed_now(stated: int | None, pods: Sequence[PodRecord]) -> int | None:
    """Give how many pods of an owner are needed that may have been resized since its pods started.

    What it has been given since is more than it started with, and not lost. Of one that needed more then, nothing that
    it lacks counts as lost: whether it has been larger again since nothing tells.
    """
    runs = [pod for pod in pods if pod.task.phase in ACTIVE]
    before = max((pod.sealed.together for pod in runs if pod.sealed is not None), default=0)
    if stated is None or not before:
        return stated
    return min(stated, before if before <= stated else max(1, len(runs)))


def _evicts_never(priority_class: Any) -> bool:
    return priority_class is not None and priority_class.preemption_policy == NEVER


def _as_classed(task: Task, priority_class: Any) -> Task:
    """Give a task with what its priority class asks to be spared, where its pod does not say it itself."""
    said = None if priority_class is None else priority_class.metadata.annotations
    asked = {k: v for k, v in said.items() if k in SPARING} if said else {}
    return replace(task, annotations={**asked, **(task.annotations or {})}) if asked else task


def _checkpoint(
    given: Checkpoint | None, annotations: Mapping[str, str], pods: Sequence[PodRecord], now: int, problems: list[str]
) -> Checkpoint | None:
    """Give what is known of checkpoints: of those that pods report the oldest; one that lies ahead counts as none."""
    last = _least(p.checkpoint for p in pods if p.task.phase in ACTIVE and (p.checkpoint or 0) <= now)
    said = ObjectText(annotations, problems)
    interval, overhead = (said.duration(key) for key in (_INTERVAL, _OVERHEAD))
    base = given or Checkpoint()
    found = Checkpoint(
        interval=interval or base.interval,
        last_at=last if last is not None else base.last_at,
        restart_overhead=base.restart_overhead if overhead is None else overhead,
    )
    return None if found == Checkpoint() else found


def _least(times: Iterable[int | None]) -> int | None:
    return min((t for t in times if t is not None), default=None)


def _common(pods: Sequence[PodRecord]) -> dict[str, str]:
    """Give the annotations of a single pod for its workload; of several, only what all of them say."""
    first = pods[0].annotations
    if len(pods) == 1 or all(p.annotations is first or p.annotations == first for p in pods):
        return dict(first)
    return {k: v for k, v in first.items() if all(p.annotations.get(k) == v for p in pods)}


def _owner_kind(kind: str, pods: Sequence[PodRecord]) -> str | None:
    if any(p.kept == DAEMON for p in pods):
        return "DaemonSet"
    if any(p.kept == BARE for p in pods):
        return BARE_KIND
    return None if kind == "group" else kind


def _with_ended(workload: Workload, about: GroupDeclaration) -> Workload:
    """Let tasks count that have ended for good and have no pods that succeeded: as many as the core may need of them.

    Others stand in for as many as there are pods. How many there were is what the owner says, at the cost of a number;
    where it says more, fewer tasks have to be there.
    """
    if workload.sub_groups and about.shape is not None:
        return _with_ended_roles(workload, about.shape)
    there = sum(t.phase is Phase.SUCCEEDED for t in workload.tasks)
    missing = min(about.ended - there, (workload.min_member or 0) - 1)
    if missing <= 0:
        return workload
    ordered, stood_in = workload.tasks[0].order is not None, min(missing, len(workload.tasks))
    gone = tuple(
        Task(name=f"{workload.name}-ended-{i}", spec=_GONE, phase=Phase.SUCCEEDED, order=0 if ordered else None)
        for i in range(stood_in)
    )
    core = (workload.min_member or 0) - (missing - stood_in)
    return replace(workload, tasks=(*workload.tasks, *gone), min_member=core)


def _with_ended_roles(workload: Workload, shape: OwnerShape) -> Workload:
    """Let a task of each subgroup count for those of its role that have ended for good and have no pods."""
    ended = {role.name: role.ended for role in shape.roles if role.ended}
    there = Counter(t.sub_group for t in workload.tasks if t.phase is Phase.SUCCEEDED)
    ordered = workload.tasks[0].order is not None
    gone: list[Task] = []

    def without(group: SubGroup) -> SubGroup:
        if group.sub_groups:
            return replace(group, sub_groups=tuple(map(without, group.sub_groups)))
        least = group.min_member or 0
        missing = min(ended.get(group.name, 0) - there[group.name], least)
        if missing <= 0:
            return group
        name = f"{workload.name}-{group.name}-ended"
        order = 0 if ordered else None
        gone.append(Task(name=name, spec=_GONE, phase=Phase.SUCCEEDED, sub_group=group.name, order=order))
        return replace(group, min_member=least - missing + 1)

    groups = tuple(map(without, workload.sub_groups))
    return replace(workload, sub_groups=groups, tasks=(*workload.tasks, *gone)) if gone else workload


_GONE = TaskSpec()
