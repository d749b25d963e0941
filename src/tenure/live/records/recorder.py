"""What happened on a live cluster, as records of its history, cycle by cycle.

Evictions come from the cluster's own log, which is written before each of them and kept for a day: whatever one process
misses, the next one reads there. Arrivals and starts are read off the objects, whose identities make their keys, so
that two processes, or one that starts again, give the same records. Usage is counted by whole minutes, each with a key
of its own. Only what is taken down once (plans, ends of workloads) is lost with the process before it was handed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tenure.history.record import Draft, encode, key_of, payload_of
from tenure.history.rollup import MINUTE
from tenure.history.who import Who
from tenure.history.writing.plans import PlanChronicle
from tenure.live.records.eviction_records import EvictionRecords
from tenure.live.records.life_records import LifeRecords
from tenure.live.records.outcome_records import OutcomeRecords
from tenure.live.records.planned_records import WorkloadsByName
from tenure.live.records.proof_inquiries import ProofInquiries
from tenure.live.records.recorded_cycle import RecordedCycle
from tenure.live.records.usage_records import UsageRecords
from tenure.model.cluster import Cluster
from tenure.model.file.dump import cluster_to_plain


class LiveRecorder:
    """Makes records of what it is shown. ``pool`` names the node pool, in whose keys it stands.

    Not for several threads.
    """

    def __init__(self, pool: str, proofs: ProofInquiries | None = None) -> None:
        self.pool = pool
        self.chronicle = PlanChronicle()
        self.evictions = EvictionRecords(pool, proofs)
        self.life = LifeRecords(pool, self.evictions.was_evicted)
        self.outcomes = OutcomeRecords(pool)
        self.usage = UsageRecords(pool)
        self.configured: tuple[Any, ...] = ()
        self.turn = 0, 0
        self.paused = 0

    def give_again(self) -> None:
        """Give all of the cluster's log, and what its objects say, once more: some of it was dropped on its way."""
        self.evictions.forget()
        if len(self.life.known or ()) <= _FEW_ENOUGH:
            self.life.again()

    def stop(self) -> None:
        """End what works beside."""
        self.outcomes.stop()

    def begin(self, now: int, identity: str) -> list[Draft]:
        """Lead from now on: what was known of an earlier term counts no more."""
        self.evictions.forget()
        self.usage.begin()
        self.life.begin()
        self.outcomes.begin()
        return [self._keyed(Draft(now, "leader", payload=payload_of(identity=identity)), identity, now)]

    def cycle(self, cycle: RecordedCycle) -> list[Draft]:
        """Give the records of a cycle."""
        observed, plan, queues = cycle.observed, cycle.plan, cycle.queues
        cluster = observed.cluster
        drafts = [*self._configuration(cluster), *self._pause(cluster.now, cycle.paused_until)]
        who, workloads = Who(cluster), WorkloadsByName(observed)
        drafts += self.evictions.records(cycle, workloads, who)
        drafts += self.life.records(observed, plan, queues, who)
        found = self.life.started, self.life.ended
        drafts += self.outcomes.records(cluster, queues, workloads, self.evictions.granted, found)
        told = (d for d in self.chronicle.records(plan) if d.kind not in _ON_PODS)
        drafts += [self._keyed(d, d.workload, d.queue, d.cause, d.at, d.payload) for d in told]
        drafts += self.usage.records(cluster, queues)
        return drafts

    def _keyed(self, draft: Draft, *parts: object) -> Draft:
        return draft._replace(key=key_of(self.pool, draft.kind, *parts))

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
        turn = self._turn(cluster.now) if before else ()
        yield self._keyed(Draft(cluster.now, "origin", payload=payload), cluster.now // MINUTE, shown, *turn)
        if before:
            old = replace(cluster, nodes=before[0], queues=before[1], settings=before[2], workloads=(), evictions=())
            for path, was, is_now in changes(cluster_to_plain(old), plain):
                told = payload_of(path=path, **{"from": was, "to": is_now})
                yield self._keyed(Draft(cluster.now, "setting", payload=told), path, *turn)

    def _turn(self, now: int) -> tuple[int, int]:
        """Tell one change from the next: what is set there and back within one moment are two changes."""
        self.turn = now, self.turn[1] + 1 if self.turn[0] == now else 0
        return self.turn

    def _pause(self, now: int, until: int) -> Iterator[Draft]:
        if until > now and until != self.paused:
            yield self._keyed(Draft(now, "pause", payload=payload_of(until=until)), until)
        self.paused = until


_FEW_ENOUGH = 20_000
"""Of more workloads it is not told again who came and started: that alone would fill what may wait."""

_ON_PODS = frozenset({"nominated", "nomination-ended"})
"""What the pods themselves say as well, whoever promised it."""


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
