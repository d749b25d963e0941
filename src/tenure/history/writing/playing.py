"""The records of cycles that were played on a cluster file: what would be done, and why."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from tenure.engine.plan import PlanStep
from tenure.history.record import Draft, encode, named_after, payload_of
from tenure.history.store import HistoryStore
from tenure.history.who import Who
from tenure.history.writing.meter import UsageMeter, capacity_records
from tenure.history.writing.simulation import in_order, numbered
from tenure.history.writing.submissions import submission
from tenure.model.amounts import Holder
from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.file.dump import cluster_to_plain
from tenure.model.workload import Phase, Workload
from tenure.playthrough import PlayThrough

MICRO = 1_000_000


class _Played:
    """Makes records of what was played, ``every`` µs from cycle to cycle."""

    def __init__(self, played: PlayThrough, cycles: int, every: int) -> None:
        cluster = self.cluster = played.before
        self.played, self.every = played, every
        self.begin, self.end = cluster.now, cluster.now + cycles * every
        self.workloads = {w.key: w for w in cluster.workloads}
        self.holder = Holder([t.spec for w in cluster.workloads for t in w.tasks], cluster.nodes, cluster.settings)
        self.index = {node.name: number for number, node in enumerate(cluster.nodes)}
        self.meter = UsageMeter(self.holder.resources, {q.name: q.guaranteed for q in cluster.queues}, self.begin)
        self.who = Who(cluster)
        self.drafts: list[Draft] = []

    def records(self) -> list[Draft]:
        """Give all records, numbered; the same plan gives the same ones."""
        plain = cluster_to_plain(self.cluster)
        shown = encode({**plain, "workloads": [], "evictions": []})  # those have labels of pods: whose they were
        self.drafts.append(Draft(self.begin, "origin", payload=f'{{"by":"plan","cluster":{shown}}}'))
        for workload in self.cluster.workloads:
            self._known(workload)
        steps = sorted(self.played.steps, key=lambda s: s.cycle)
        self._changes(steps)
        self._told(steps)
        for event in self.played.quota_events:
            payload = payload_of(deadline=event.deadline, tasks=event.tasks or None)
            cost = round(event.cost * MICRO)
            self.drafts.append(Draft(event.at, f"quota-{event.kind}", None, event.queue, "quota", None, cost, payload))
        self.meter.close(self.end)
        found = [*self.drafts, *self.meter.records, *capacity_records(self.holder.capacity(), self.begin, self.end)]
        mark = blake2b(encode(plain).encode("utf-8", "surrogatepass"), digest_size=8)
        mark.update(repr((self.every, self.end)).encode())
        return numbered(sorted(found, key=in_order), mark.digest())

    def _known(self, workload: Workload) -> None:
        """What is there from the beginning: who waits came before, who runs did so before."""
        queue = workload.queue or DEFAULT_QUEUE
        payload = submission(workload, self.holder, self.who)
        self.drafts.append(
            Draft(min(workload.created_at, self.begin), "submitted", workload.key, queue, payload=payload)
        )
        placed = [t for t in workload.tasks if t.node is not None and t.phase in {Phase.BOUND, Phase.RUNNING}]
        tasks = [[t.name, t.node, list(t.devices)] for t in placed]
        if tasks:
            at = self.begin if workload.started_at is None else min(self.begin, workload.started_at)
            wait = max(0, at - workload.created_at)
            self.drafts.append(Draft(at, "started", workload.key, queue, value=wait, payload=payload_of(tasks=tasks)))

    def _changes(self, steps: Sequence[PlanStep]) -> None:
        """Count what queues hold: what is evicted in a cycle has left before the next one."""
        changes: list[tuple[int, int, str, list[int]]] = []
        for workload in self.cluster.workloads:
            for task in workload.tasks:
                if task.node in self.index and task.phase in {Phase.BOUND, Phase.RUNNING, Phase.TERMINATING}:
                    amounts = self.holder.held(task.spec, self.index[task.node])
                    changes.append((self.begin, 1, workload.queue or DEFAULT_QUEUE, amounts))
        for step in steps:
            if step.action not in {"bind", "evict"} or step.workload not in self.workloads:
                continue
            workload = self.workloads[step.workload]
            binds = step.action == "bind"
            at = self.begin + (step.cycle + (not binds)) * self.every
            amounts = self.holder.held(workload.tasks[step.task_index].spec, step.node_index)
            changes.append((at, 1 if binds else -1, workload.queue or DEFAULT_QUEUE, amounts))
        for at, sign, queue, amounts in sorted(changes, key=lambda change: change[0]):
            self.meter.change(queue, at, amounts, sign)

    def _told(self, steps: Sequence[PlanStep]) -> None:
        groups: dict[tuple[int, str, str], list[PlanStep]] = {}
        for step in steps:
            if step.action in {"bind", "nominate"}:
                groups.setdefault((step.cycle, step.action, step.workload), []).append(step)
            else:
                self._taken(step, {"evict": "evicted", "notice": "noticed"}.get(step.action, "withdrawn"))
        for step in self.played.shadow:
            self._taken(step, "shadow")
        for (cycle, action, key), own in groups.items():
            tasks: list[Any] = [[s.task, s.node, list(s.devices)] for s in own]
            workload = self.workloads.get(key)
            queue = None if workload is None else workload.queue or DEFAULT_QUEUE
            at = self.begin + cycle * self.every
            fresh = workload is not None and all(t.node is None for t in workload.tasks)
            kind = "nominated" if action == "nominate" else "started" if fresh else "placed"
            wait = max(0, at - workload.created_at) if workload is not None and kind == "started" else 0
            self.drafts.append(
                Draft(at, kind, key, queue, value=wait, payload=encode({"tasks": tasks}), plan=str(cycle))
            )

    def _taken(self, step: PlanStep, kind: str) -> None:
        workload = self.workloads.get(step.workload)
        other = self.workloads.get(step.beneficiary or "")
        lost = None
        if workload is not None and step.lost > 0:
            amounts = self.holder.held(workload.tasks[step.task_index].spec, step.node_index)
            lost = self.holder.named(amounts, step.lost)
        payload = payload_of(
            task=step.task, node=step.node, to=step.to, reason=step.reason or None, lost=lost,
            forQueue=None if other is None else other.queue or DEFAULT_QUEUE,
            deadline=step.deadline if step.deadline >= 0 else None,
            **({} if workload is None else self.who.named(workload)),
            **({} if other is None else self.who.named(other, "for")),
        )  # fmt: skip
        queue = None if workload is None else workload.queue or DEFAULT_QUEUE
        at = self.begin + step.cycle * self.every
        self.drafts.append(
            Draft(at, kind, step.workload, queue, step.cause, step.beneficiary, round(step.cost * MICRO), payload,
                  str(step.cycle))
        )  # fmt: skip


def write_play(store: HistoryStore, name: str, played: PlayThrough, cycles: int, every: int) -> int:
    """Write what was played on a cluster file called ``name``; the same play again adds nothing.

    Raises
    ------
    HistoryError
        The store cannot be written.
    """
    return store.append(named_after(name), _Played(played, cycles, every).records())
