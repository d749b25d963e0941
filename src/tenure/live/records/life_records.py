"""Who came, was promised room, started, grew, was told to go and went, on a live cluster, as records.

All is read off the objects, and so are the keys: two processes, or one that starts again, give the same records. Only
workloads that changed since the last look are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.read.workloads import ObservedWorkload
from tenure.engine.plan import Plan
from tenure.history.record import Draft, key_of, payload_of
from tenure.history.who import Who
from tenure.history.writing.submissions import submission
from tenure.live.records.pod_notes import HELD, PodNotes
from tenure.live.records.queue_levels import QueueLevels
from tenure.model.amounts import Holder
from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.values.resources import PODS
from tenure.model.workload import Phase, Workload

OVER: Final = (Phase.SUCCEEDED, Phase.FAILED)

TOGETHER: Final = 2_000_000
"""What is bound within so many µs of a workload's start belongs to that start."""

Pods = tuple[PodRecord, ...]


@dataclass(slots=True)
class KnownWorkload:
    """A workload as it was last seen.

    ``started``: since when it runs (µs; None: it waits); ``held``: what its tasks that have ended by themselves had
    held, as amounts times µs; ``ended``: its end is recorded; ``ran``: how long its last run was, once that is over.
    """

    uid: str
    model: Workload
    pods: Pods
    queue: str
    started: int | None = None
    held: dict[str, int] = field(default_factory=dict)
    ended: bool = False
    ran: int = 0


class Started(NamedTuple):
    """A workload that started, and since when it had waited (µs)."""

    workload: Workload
    uid: str
    at: int
    since: int


class Ended(NamedTuple):
    """A run that is over, by itself or not: of which workload, when it had begun, and when it ended (µs)."""

    key: str
    queue: str
    began: int
    at: int


class LifeRecords:
    """Makes the records. ``pool`` stands in their keys; ``was_evicted`` says of a pod's uid whether it was.

    ``started`` and ``ended`` are what the last look found.
    """

    def __init__(self, pool: str, was_evicted: Callable[[str], bool]) -> None:
        self.pool = pool
        self.was_evicted = was_evicted
        self.known: dict[str, KnownWorkload | None] | None = None
        self.started: list[Started] = []
        self.ended: list[Ended] = []
        self.notes = PodNotes(pool)
        self._held: dict[str, dict[str, int]] = {}
        self._seen: Mapping[str, ObservedWorkload] = {}
        self._number = 0

    def begin(self) -> None:
        """Lead from now on: what was known of an earlier term counts no more."""
        self.known, self._held, self._seen = None, {}, {}

    def again(self) -> None:
        """Tell everything that there is once more."""
        self._held = {one.uid: one.held for one in (self.known or {}).values() if one is not None and one.held}
        self.known, self._seen = None, {}

    def records(self, observed: Observed, plan: Plan, queues: QueueLevels, who: Who) -> list[Draft]:
        """Give what happened since the last look; None in ``known`` is a workload of another scheduler."""
        self.started, self.ended = [], []
        self.notes.hear(plan)
        known = self.known = {} if self.known is None else self.known
        look = _Look(observed.cluster, queues, who)
        drafts: list[Draft] = []
        present, seen = observed.made, self._seen
        names = self._names(observed)
        for key in [key for key in names if key in present and seen.get(key) is not present[key]]:
            before, model, pods = known.get(key), present[key].workload, present[key].pods
            if before is not None:
                if before.model is model and before.pods is pods:
                    continue
            elif key in known or model.scheduler_name != "tenure":
                known[key] = None
                continue
            drafts += self._changed(key, model.uid, model, pods, look)
        for key in [key for key in names if key in known and key not in present]:
            gone = known.pop(key)
            if gone is not None:
                drafts += self._gone(key, gone, look, look.cluster.now)
        self._seen, self._number = present, observed.number
        return drafts

    def _names(self, observed: Observed) -> list[str]:
        """Give the names of what may have changed since the last look; of all where that cannot be told."""
        if self._seen and observed.changed is not None and observed.number == self._number + 1:
            return sorted(observed.changed)
        return sorted({*observed.made, *(self.known or ())})

    # -- one workload -------------------------------------------------------------------------------------------------

    def _changed(self, key: str, uid: str, model: Workload, pods: Pods, look: _Look) -> Iterator[Draft]:
        assert self.known is not None
        before = self.known.get(key)
        if before is not None and before.uid != uid:
            yield from self._gone(key, before, look, min(look.cluster.now, model.created_at))
            before = None
        queue = model.queue or DEFAULT_QUEUE
        if before is None:
            payload = submission(model, look.holder(), look.who)
            came = Draft(model.created_at, "submitted", key, queue, payload=payload)
            yield self._keyed(came, uid)
            before = KnownWorkload(uid, model, (), queue, held=self._held.pop(uid, {}))
            self.known[key] = before
        old = {pod.uid: pod for pod in before.pods}
        yield from self._places(key, before, old, model, pods, look)
        yield from self.notes.notices(key, queue, old, pods, look.cluster.now)
        yield from self.notes.promises((key, uid, queue), old, pods, look.cluster.now)
        before.model, before.pods, before.queue = model, pods, queue
        if pods and not before.ended and all(p.task.phase in OVER for p in pods):
            state = "finished" if all(p.task.phase is Phase.SUCCEEDED for p in pods) else "failed"
            yield self._over(key, before, look, state)

    def _places(
        self, key: str, known: KnownWorkload, old: Mapping[str, PodRecord], model: Workload, pods: Pods, look: _Look
    ) -> Iterator[Draft]:
        """Starts and ends of tasks and of the whole."""
        now = look.cluster.now
        holding = [p for p in pods if p.task.phase in HELD]
        there = {p.uid for p in holding}
        self._left(known, [p for p in known.pods if p.task.phase in HELD and p.uid not in there], look)
        if known.started is not None and not holding:
            self.ended.append(Ended(key, known.queue, known.started, now))
            known.ran, known.started = now - known.started, None
        started = _start_of(holding)
        if started is None:
            return
        known.ended = False
        new = [p for p in holding if p.uid not in old or old[p.uid].task.phase not in HELD]
        if known.started is None or abs(started - known.started) >= TOGETHER:
            if known.started is not None:
                self.ended.append(Ended(key, known.queue, known.started, started))
            known.started = started
            first = [p for p in holding if _began(p, started) < started + TOGETHER]
            yield self._started(key, known, model, started, first, look)
            new = [p for p in holding if _began(p, started) >= started + TOGETHER]
        for pod in new:
            payload = payload_of(tasks=[_place(pod)], replaces=pod.replaces or None)
            at = max(started, _began(pod, now))
            yield self._keyed(Draft(at, "placed", key, model.queue or DEFAULT_QUEUE, payload=payload), pod.uid)

    def _started(
        self, key: str, known: KnownWorkload, model: Workload, at: int, pods: Iterable[PodRecord], look: _Look
    ) -> Draft:
        evicted = model.last_evicted_at
        again = evicted is not None and evicted <= at
        since = max(model.created_at, evicted or 0) if again else model.created_at
        queue = model.queue or DEFAULT_QUEUE
        payload = payload_of(
            entitled=look.is_entitled(queue), again=again or None, evictedAt=evicted if again else None,
            tasks=[_place(pod) for pod in pods], **look.who.named(model),
        )  # fmt: skip
        self.started.append(Started(model, known.uid, at, since))
        return self._keyed(Draft(at, "started", key, queue, value=max(0, at - since), payload=payload), known.uid, at)

    def _left(self, known: KnownWorkload, pods: Iterable[PodRecord], look: _Look) -> None:
        """Sum up what tasks had held that went by themselves; of those that were evicted, their evictions say it."""
        for pod in pods:
            if not self.was_evicted(pod.uid):
                _add(known.held, look.held(pod))

    def _gone(self, key: str, gone: KnownWorkload, look: _Look, at: int) -> Iterator[Draft]:
        """It is not there any more; ``at``: since when, at the latest: another one may have its name from then on."""
        at = max(at, gone.model.created_at, gone.started or 0)
        if not gone.ended:
            yield self._over(key, gone, look, "gone", at)
        elif gone.started is not None:
            self.ended.append(Ended(key, gone.queue, gone.started, at))

    def _over(self, key: str, known: KnownWorkload, look: _Look, state: str, at: int | None = None) -> Draft:
        now = look.cluster.now if at is None else at
        self._left(known, [p for p in known.pods if p.task.phase in HELD], look)
        ran = known.ran
        if known.started is not None:
            ran = now - known.started
            self.ended.append(Ended(key, known.queue, known.started, now))
        payload = payload_of(state=state, held=known.held or None, **look.who.named(known.model))
        last = max((pod.uid for pod in known.pods), default="")
        known.ended, known.started, known.held = True, None, {}
        return self._keyed(Draft(now, "ended", key, known.queue, value=ran, payload=payload), known.uid, last)

    def _keyed(self, draft: Draft, *parts: object) -> Draft:
        return draft._replace(key=key_of(self.pool, draft.kind, *parts))


class _Look:
    """One look at a cluster, and what is worked out for it only when it is needed."""

    def __init__(self, cluster: Cluster, queues: QueueLevels, who: Who) -> None:
        self.cluster, self.queues, self.who = cluster, queues, who
        self._holder: Holder | None = None
        self._nodes: dict[str, int] = {}

    def holder(self) -> Holder:
        """Give what tells what tasks hold."""
        if self._holder is None:
            self._holder = holder_of(self.queues, self.cluster)
        return self._holder

    def held(self, pod: PodRecord) -> dict[str, int]:
        """Give what a pod has held until now."""
        holder, began = self.holder(), pod.task.started_at
        if began is None or began >= self.cluster.now:
            return {}
        share = pod.task.spec.gpu_share
        node = -1 if share is None or not share.memory else self._number(pod.task.node or "")
        return holder.named(holder.held(pod.task.spec, node), self.cluster.now - began)

    def _number(self, name: str) -> int:
        """Give the number of a node, which says what a part of a GPU's memory is of a GPU there."""
        if not self._nodes:
            self._nodes = {node.name: number for number, node in enumerate(self.cluster.nodes)}
        return self._nodes.get(name, -1)

    def is_entitled(self, name: str) -> bool:
        """Whether a queue holds no more than it is guaranteed."""
        number = self.queues.index.get(name)
        if number is None:
            return False
        due = self.queues.queues[number].guaranteed
        have = dict(zip(self.queues.resources, self.queues.allocated[number], strict=True))
        return bool(due) and all(have.get(r, 0) <= amount for r, amount in due.items())


def holder_of(queues: QueueLevels, cluster: Cluster) -> Holder:
    """Give what tells what tasks hold, of all that queues count."""
    holder = Holder((), cluster.nodes, cluster.settings)
    holder.resources = [r for r in queues.resources if r != PODS]
    return holder


def _start_of(holding: list[PodRecord]) -> int | None:
    """Say since when a workload runs, as it was written on its pods when they were bound.

    That is the same for whoever looks, and whenever; of pods that Tenure did not bind, their placement counts.
    """
    written = [pod.started if pod.said_start is None else pod.said_start for pod in holding]
    return min((at for at in written if at is not None), default=None)


def _began(pod: PodRecord, unknown: int) -> int:
    at = pod.task.started_at
    return unknown if at is None else at


def _place(pod: PodRecord) -> list[object]:
    return [pod.name, pod.task.node, list(pod.task.devices)]


def _add(sums: dict[str, int], more: Mapping[str, int]) -> None:
    for resource, amount in more.items():
        sums[resource] = sums.get(resource, 0) + amount
