"""Evictions of a live cluster as records: planned, carried out or failed, each once.

What this process did it records at once. What was announced in the cluster's log by a process that ended, or whose
answer was lost, is recorded when there is proof that it was carried out; where there is proof that it was not, it is
taken out of the log. Where that cannot be found out any more, the log counts, and the record says that it is
unproven.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from tenure.clusters.kubernetes.read.eviction_log import EvictionEntry
from tenure.clusters.kubernetes.read.proofs import EvictionProof
from tenure.engine.plan import PlanStep
from tenure.engine.state.cost import in_small_units
from tenure.history.record import Draft, key_of, payload_of
from tenure.history.who import Who
from tenure.live.records.planned_records import PlannedRecords, WorkloadsByName
from tenure.live.records.proof_inquiries import MEMORY, FoundProof, ProofInquiries
from tenure.live.records.recorded_cycle import RecordedCycle
from tenure.model.amounts import weighted
from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.values.duration import parse_time

_MOST: Final = 100_000
_FEW: Final = 1000

Name = tuple[str, str]
"""Uid of a pod, and when its eviction was announced."""


class GrantedEviction(NamedTuple):
    """An eviction that is recorded: its entry, when it was (µs), and whether this process has just made it."""

    entry: EvictionEntry
    at: int
    is_fresh: bool


class EvictionRecords:
    """Makes the records of evictions. ``pool`` stands in their keys; ``proofs`` finds out what no watch has told."""

    def __init__(self, pool: str, proofs: ProofInquiries | None = None) -> None:
        self.pool = pool
        self.proofs = proofs
        self.granted: list[GrantedEviction] = []
        self._given: dict[Name, int] = {}
        self._proof: dict[Name, EvictionProof] = {}
        self._steps: dict[tuple[str, str], PlanStep] = {}
        self.plans = PlannedRecords(pool)
        self._gone: dict[str, None] = {}

    def was_evicted(self, uid: str) -> bool:
        """Whether a pod's eviction was recorded."""
        return uid in self._gone

    def forget(self) -> None:
        """Give all of the cluster's log once more: some of it was dropped on its way."""
        self._given.clear()

    def records(self, cycle: RecordedCycle, workloads: WorkloadsByName, who: Who) -> list[Draft]:
        """Give the records of a cycle; ``granted`` then has what is new."""
        self.granted = []
        plan, observed, outcomes = cycle.plan, cycle.observed, cycle.outcomes
        cluster = observed.cluster
        made = {entry.uid for outcome in outcomes for entry in outcome.evicted}
        drafts = list(self.plans.planned(plan, observed, workloads, made))
        planned = {draft.key for draft in drafts}
        for outcome in outcomes:
            for step in outcome.done:
                if step.action == "evict":
                    self._steps[step.workload, step.task] = step
            for entry in outcome.evicted:
                self._proof[entry.uid, entry.at] = EvictionProof.DONE
                drafts += (draft for draft in [self.plans.announced(entry)] if draft.key not in planned)
                drafts += self._once(entry, cluster, workloads, who, is_fresh=True)
            drafts += self.plans.failed(outcome, plan, observed, workloads)
        self._hear(cycle.proofs)
        drafts += self._logged(observed.log, cluster, workloads, who)
        return drafts

    # -- what was carried out -----------------------------------------------------------------------------------------

    def _logged(
        self, log: Iterable[EvictionEntry], cluster: Cluster, workloads: WorkloadsByName, who: Who
    ) -> Iterator[Draft]:
        """What stands in the log and was not recorded yet, as far as it is known what came of it."""
        current = set()
        for entry in log:
            name = entry.uid, entry.at
            current.add(name)
            if name in self._given:
                continue
            proof = EvictionProof.DONE if entry.done else self._proof.get(name)
            if proof is None:
                self._ask(entry, cluster.now)
            elif proof is not EvictionProof.NEVER:
                yield self.plans.announced(entry)
                yield from self._once(entry, cluster, workloads, who)
        if len(self._given) > 2 * len(current) + _FEW:
            old = cluster.now - MEMORY
            self._given = {name: at for name, at in self._given.items() if name in current or at > old}
        if len(self._proof) > _MOST:
            self._proof.clear()
        if len(self._steps) > _MOST:
            self._steps.clear()
        if len(self._gone) > _MOST:
            self._gone = dict.fromkeys(list(self._gone)[_MOST // 2 :])

    def _ask(self, entry: EvictionEntry, now: int) -> None:
        if self.proofs is None or parse_time(entry.at) < now - MEMORY:
            self._proof[entry.uid, entry.at] = EvictionProof.UNKNOWN
        else:
            self.proofs.want(entry)

    def _hear(self, proofs: Iterable[FoundProof]) -> None:
        for entry, proof in proofs:
            if proof is not EvictionProof.OPEN:
                self._proof[entry.uid, entry.at] = proof

    def _once(
        self, entry: EvictionEntry, cluster: Cluster, workloads: WorkloadsByName, who: Who, *, is_fresh: bool = False
    ) -> Iterator[Draft]:
        name = entry.uid, entry.at
        if name not in self._given:
            at = parse_time(entry.at)
            self._given[name] = at
            is_proven = entry.done or self._proof.get(name) is EvictionProof.DONE
            self.granted.append(GrantedEviction(entry, at, is_fresh))
            self._gone[entry.uid] = None
            yield self._evicted(entry, at, cluster, workloads, who, is_proven=is_proven)

    def _evicted(
        self,
        entry: EvictionEntry,
        at: int,
        cluster: Cluster,
        workloads: WorkloadsByName,
        who: Who,
        *,
        is_proven: bool,
    ) -> Draft:
        step = self._steps.pop((entry.workload, entry.task), None)
        victim, other = workloads.get(entry.workload), workloads.get(entry.beneficiary)
        lost, saved = in_small_units(entry.lost), in_small_units(entry.saved)
        held = {r: lost.get(r, 0) + saved.get(r, 0) for r in {**lost, **saved}}
        payload = payload_of(
            task=entry.task, node=entry.from_node, to=entry.to_node, lost=lost or None, saved=saved or None,
            held=held or None, forQueue=entry.beneficiary_queue, reason=step.reason if step is not None else None,
            uid=entry.uid, unproven=None if is_proven else True,
            **({} if victim is None else who.named(victim)), **({} if other is None else who.named(other, "for")),
        )  # fmt: skip
        draft = Draft(
            at, "evicted", entry.workload, entry.queue or DEFAULT_QUEUE, entry.cause, entry.beneficiary,
            weighted(lost, cluster.settings.disruption.cost), payload, str(at),
        )  # fmt: skip
        return self._keyed(draft, entry.uid, entry.at)

    def _keyed(self, draft: Draft, *parts: object) -> Draft:
        return draft._replace(key=key_of(self.pool, draft.kind, *parts))
