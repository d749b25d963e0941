"""What happened on a live cluster, as records of its history, cycle by cycle.

Evictions come from the cluster's own log, which is written before each of them and kept for a day: whatever one process
misses, the next one reads there. Arrivals and starts are read off the objects, whose identities make their keys, so
that two processes, or one that starts again, give the same records. Usage is counted by whole minutes, each with a key
of its own. Only what is taken down once (plans, ends of workloads) is lost with the process before it was handed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tenure.clusters.kubernetes.read.eviction_log import EvictionEntry
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.engine.cost import lost_unit
from tenure.engine.plan import Plan, PlanStep
from tenure.engine.session import Session
from tenure.history.amounts import Holder, weighted
from tenure.history.meter import UsageMeter, capacity_records
from tenure.history.plans import PlanChronicle
from tenure.history.record import Draft, encode, key_of, payload_of
from tenure.history.rollup import MINUTE
from tenure.history.simulation import submission
from tenure.history.who import Who
from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.dump import cluster_to_plain
from tenure.model.duration import parse_time
from tenure.model.resources import GPU, MILLI, PODS
from tenure.model.workload import Phase, Workload

SOON = 1_500_000
UNSURE = 60_000_000
"""After so many µs an announced eviction whose pod still runs will not happen any more: in a new term, and else."""

HELD = (Phase.BOUND, Phase.RUNNING)


@dataclass(slots=True)
class KnownWorkload:
    """A workload that was seen: its uid, queue, and since when it runs (µs; None: it waits)."""

    uid: str
    queue: str
    started: int | None


class LiveRecorder:
    """Makes records of what it is shown. ``pool`` names the node pool, in whose keys it stands.

    Not for several threads.
    """

    def __init__(self, pool: str) -> None:
        self.pool = pool
        self.chronicle = PlanChronicle()
        self.known: dict[str, KnownWorkload] | None = None
        self.logged: set[tuple[str, str]] = set()
        self.undone: set[tuple[str, str]] = set()
        self.steps: dict[tuple[str, str], PlanStep] = {}
        self.meter: UsageMeter | None = None
        self.levels: dict[str, list[int]] = {}
        self.until = 0
        self.configured: tuple[Any, ...] = ()
        self.paused = 0

    def forget_evictions(self) -> None:
        """Give all of the cluster's log once more: some of it was dropped on its way."""
        self.logged.clear()

    def begin(self, now: int, identity: str) -> list[Draft]:
        """Lead from now on: what was known of an earlier term counts no more."""
        self.known, self.meter, self.levels = None, None, {}
        return [self._keyed(Draft(now, "leader", payload=payload_of(identity=identity)), identity, now)]

    def cycle(self, observed: Observed, plan: Plan, session: Session, paused_until: int) -> list[Draft]:
        """Give the records of a cycle."""
        cluster = observed.cluster
        drafts = [*self._configuration(cluster), *self._pause(cluster.now, paused_until)]
        for step in plan.steps:
            if step.action == "evict":
                self.steps[step.workload, step.task] = step
        self._set_aside(observed.announced, cluster.now)
        drafts += self._evictions(observed.log, cluster)
        drafts += self._life(observed)
        drafts += [self._keyed(d, d.workload, d.queue, d.cause, d.at, d.payload) for d in self.chronicle.records(plan)]
        drafts += self._usage(cluster, session)
        return drafts

    def _keyed(self, draft: Draft, *parts: object) -> Draft:
        return draft._replace(key=key_of(self.pool, draft.kind, *parts))

    # -- evictions ----------------------------------------------------------------------------------------------------

    def _evictions(self, log: Iterable[EvictionEntry], cluster: Cluster) -> Iterator[Draft]:
        prices = cluster.settings.disruption.cost
        current: set[tuple[str, str]] = set()
        for entry in log:
            name = entry.uid, entry.at
            current.add(name)
            if name not in self.logged and name not in self.undone:
                yield self._eviction(entry, prices)
        self.logged = current
        if len(self.steps) > _MOST_STEPS:
            self.steps.clear()

    def _set_aside(self, announced: Iterable[EvictionEntry], now: int) -> None:
        """What was announced and is not done after a while never will be, however its pod ends.

        Whoever announced it has ended, or was refused; at the beginning of a term that is so at once.
        """
        patience = UNSURE if self.known is not None else SOON
        self.undone.update((e.uid, e.at) for e in announced if now - parse_time(e.at) > patience)
        if len(self.undone) > _MOST_STEPS:
            self.undone.clear()

    def _eviction(self, entry: EvictionEntry, prices: Mapping[str, float]) -> Draft:
        step = self.steps.pop((entry.workload, entry.task), None)
        lost = {r: a * lost_unit(r) for r, a in (entry.lost or {}).items() if r != PODS and a}
        payload = payload_of(
            task=entry.task, node=entry.from_node, to=entry.to_node, lost=lost or None,
            forQueue=entry.beneficiary_queue, reason=step.reason if step is not None else None, uid=entry.uid,
        )  # fmt: skip
        draft = Draft(
            parse_time(entry.at), "evicted", entry.workload, entry.queue or DEFAULT_QUEUE, entry.cause,
            entry.beneficiary, weighted(lost, prices), payload,
        )  # fmt: skip
        return self._keyed(draft, entry.uid, entry.at)

    # -- workloads ----------------------------------------------------------------------------------------------------

    def _life(self, observed: Observed) -> list[Draft]:
        """Who came, started and went, since the last look."""
        cluster = observed.cluster
        holder: Holder | None = None
        who = Who(cluster)
        known, found, drafts = self.known or {}, {}, []
        for workload in cluster.workloads:
            if workload.scheduler_name != "tenure":
                continue
            uid = observed.uids.get(workload.key, "")
            before = known.get(workload.key)
            runs = any(t.phase in HELD for t in workload.tasks)
            started = (workload.started_at or cluster.now) if runs else None
            queue = workload.queue or DEFAULT_QUEUE
            if before is not None and before.uid != uid:
                drafts.append(self._ended(workload.key, before, cluster.now))
                before = None
            if before is None:
                holder = holder or Holder([t.spec for w in cluster.workloads for t in w.tasks], cluster.nodes)
                payload = submission(workload, holder, who)
                came = Draft(workload.created_at, "submitted", workload.key, queue, payload=payload)
                drafts.append(self._keyed(came, uid))
            if started is not None and (before is None or before.started is None):
                drafts.append(self._started(workload, uid, queue, started))
            found[workload.key] = KnownWorkload(uid, queue, started)
        for key, gone in known.items():
            if key not in found:
                drafts.append(self._ended(key, gone, cluster.now))
        self.known = found
        return drafts

    def _started(self, workload: Workload, uid: str, queue: str, at: int) -> Draft:
        tasks = [[t.name, t.node, list(t.devices)] for t in workload.tasks if t.phase in HELD]
        since = max(workload.created_at, workload.last_evicted_at or 0)
        again = workload.last_evicted_at is not None and workload.last_evicted_at <= at
        payload = payload_of(again=again or None, tasks=tasks)
        draft = Draft(at, "started", workload.key, queue, value=max(0, at - since), payload=payload)
        return self._keyed(draft, uid, at)

    def _ended(self, key: str, gone: KnownWorkload, now: int) -> Draft:
        ran = now - gone.started if gone.started is not None else 0
        draft = Draft(now, "ended", key, gone.queue, value=ran, payload=payload_of(state="gone"))
        return self._keyed(draft, gone.uid)

    # -- usage --------------------------------------------------------------------------------------------------------

    def _usage(self, cluster: Cluster, session: Session) -> Iterator[Draft]:
        """Count up to the last whole minute; the first minute of a term, which began before it, is not counted."""
        now, queues = cluster.now, session.queues
        resources = [r for r in queues.resources if r != PODS]
        places = [queues.resources.index(r) for r in resources]
        if self.meter is None or self.meter.resources != resources:
            begin = now - now % MINUTE + MINUTE
            self.meter = UsageMeter(resources, {q.name: q.guaranteed for q in cluster.queues}, begin)
            self.levels, self.until = {}, begin
        meter = self.meter
        minute = now - now % MINUTE
        while self.until + MINUTE <= minute:
            end = self.until + MINUTE
            meter.close(end)
            yield from self._minute(meter, end, _capacity(cluster, resources))
            self.until = end
        at = max(now, self.until)
        parents = {q.parent for q in cluster.queues}
        for number, queue in enumerate(queues.queues):
            if queue.name in parents:
                continue
            allocated = queues.allocated[number]
            level = [allocated[place] for place in places]
            before = self.levels.get(queue.name, [0] * len(level))
            if level != before:
                meter.change(queue.name, at, [new - old for new, old in zip(level, before, strict=True)], 1)
                self.levels[queue.name] = level

    def _minute(self, meter: UsageMeter, end: int, capacity: Mapping[str, int]) -> Iterator[Draft]:
        drafts = [*meter.records, *capacity_records(capacity, end - MINUTE, end)]
        meter.records.clear()
        for draft in drafts:
            yield self._keyed(draft, draft.queue, draft.at // MINUTE)

    # -- what is set --------------------------------------------------------------------------------------------------

    def _configuration(self, cluster: Cluster) -> Iterator[Draft]:
        """The cluster without its workloads, when it is first seen and when nodes, queues or settings change."""
        present = cluster.nodes, cluster.queues, cluster.settings
        before, self.configured = self.configured, present
        if before and all(new is old or new == old for new, old in zip(present, before, strict=True)):
            return
        plain = cluster_to_plain(replace(cluster, workloads=(), evictions=(), disruption_budgets=()))
        payload = encode({"by": "scheduler", "cluster": plain})
        shown = payload.replace(f'"now":"{plain.get("now")}"', "")
        yield self._keyed(Draft(cluster.now, "origin", payload=payload), cluster.now // MINUTE, shown)
        if before:
            old = replace(cluster, nodes=before[0], queues=before[1], settings=before[2], workloads=(), evictions=())
            for path, was, is_now in changes(cluster_to_plain(old), plain):
                told = payload_of(path=path, **{"from": was, "to": is_now})
                yield self._keyed(Draft(cluster.now, "setting", payload=told), cluster.now, path)

    def _pause(self, now: int, until: int) -> Iterator[Draft]:
        if until > now and until != self.paused:
            yield self._keyed(Draft(now, "pause", payload=payload_of(until=until)), until)
        self.paused = until


_MOST_STEPS = 100_000


def _capacity(cluster: Cluster, resources: Iterable[str]) -> dict[str, int]:
    return {r: sum(n.allocatable.get(r, 0) for n in cluster.nodes) * (MILLI if r == GPU else 1) for r in resources}


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Give what differs of queues and settings: path, before and after."""
    yield from _differences("scheduler", old.get("scheduler", {}), new.get("scheduler", {}))
    queues = [
        {q["name"]: {k: v for k, v in q.items() if k != "status"} for q in one.get("queues", [])} for one in (old, new)
    ]
    for name in sorted({*queues[0], *queues[1]}):
        yield from _differences(f"queue.{name}", queues[0].get(name), queues[1].get(name))


def _differences(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _differences(f"{path}.{key}", old.get(key), new.get(key))
    else:
        yield path, old, new
