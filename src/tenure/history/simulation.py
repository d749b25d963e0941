"""The records of a simulation: what its log says happened, with what its plans said about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, NamedTuple

from tenure.engine.plan import Plan, PlanStep
from tenure.history.amounts import Holder, weighted
from tenure.history.errors import HistoryError
from tenure.history.meter import UsageMeter, capacity_records
from tenure.history.otherwise import RoomOverTime
from tenure.history.plans import PlanChronicle
from tenure.history.record import Draft, Origin, encode, payload_of
from tenure.history.store import HistoryStore
from tenure.history.who import Who
from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.dump import cluster_to_plain
from tenure.model.resources import MILLI
from tenure.model.workload import Workload
from tenure.simulator.log import (
    BIND,
    DROP,
    END,
    EVICT,
    NOTICE,
    REST,
    SUBMIT,
    WITHDRAW,
    EventLog,
    EvictionDetails,
    NoticeDetails,
)
from tenure.simulator.outcomes import Outcomes

MICRO = 1_000_000


class PlanListener:
    """Hears of each cycle of a simulation, and keeps what its log does not."""

    def __init__(self, origin: int) -> None:
        self.origin = origin
        self.chronicle = PlanChronicle()
        self.drafts: list[Draft] = []
        self.steps: dict[tuple[int, str, int, str], PlanStep] = {}

    def __call__(self, plan: Plan) -> None:
        """Keep what a plan says."""
        for step in plan.steps:
            if step.action in {"evict", "notice"}:
                self.steps[plan.now - self.origin, step.workload, step.task_index, step.action] = step
        self.drafts += self.chronicle.records(plan)


class _Gain(NamedTuple):
    """Somebody for whom was evicted, and when it would have started otherwise (None: nobody knows)."""

    at: int
    cause: str
    estimated: int | None


@dataclass(slots=True)
class _Job:
    """One job while its events go by."""

    model: Workload
    queue: str
    core: int
    waits: int = -1
    again: bool = False
    since: int = -1
    active: dict[int, tuple[int, int]] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    bound: list[int] = field(default_factory=list)
    gain: _Gain | None = None
    open_gain: _Gain | None = None


class SimulationRecords:
    """Goes once through the log of a simulation and makes records of it. Times of the log are µs since its start."""

    def __init__(self, cluster: Cluster, log: EventLog, outcomes: Outcomes, listener: PlanListener) -> None:
        self.cluster, self.log, self.listener = cluster, log, listener
        self.origin = cluster.now
        self.holder = Holder(outcomes.history.tasks.specs, cluster.nodes)
        guaranteed = {q.name: q.guaranteed for q in cluster.queues}
        self.begin, self.end = outcomes.began + self.origin, outcomes.ended + self.origin
        self.meter = UsageMeter(self.holder.resources, guaranteed, self.begin)
        self.room = RoomOverTime(cluster.nodes, self.holder.resources)
        self.who = Who(cluster)
        self.jobs = [self._job(w) for w in log.workloads]
        freed, lost = outcomes.holdings.freed.tolist(), outcomes.task_lost.tolist()
        self.lost = {position: time for position, time in zip(freed, lost, strict=True) if position >= 0}
        self.leaving: list[tuple[int, int, int, int]] = []
        self.prices = cluster.settings.disruption.cost
        self.drafts: list[Draft] = []

    def _job(self, model: Workload) -> _Job:
        core = len(model.tasks) if model.min_member is None else model.min_member
        return _Job(model, model.queue or DEFAULT_QUEUE, max(1, min(core, len(model.tasks))))

    def records(self) -> list[Draft]:
        """Give all records in the order of time, each with its number and its key."""
        handlers = {
            SUBMIT: self._submit, BIND: self._bind, END: self._end, EVICT: self._evict, DROP: self._drop,
            NOTICE: self._notice, WITHDRAW: self._withdraw, REST: self._rest,
        }  # fmt: skip
        events = self.log.events
        position, count = 0, len(events)
        while position < count:
            kind, at = events[position][0], events[position][1]
            if self.leaving and self.leaving[0][0] <= at:
                self._leave(at)
            position = handlers[kind](position, at + self.origin, events[position])
        self._leave(1 << 62)
        self.meter.close(self.end)
        found = [self._beginning(), *self.drafts, *self.listener.drafts, *self.meter.records]
        found += capacity_records(self.holder.capacity(), self.begin, self.end)
        found.sort(key=in_order)
        return numbered(found, fingerprint(self.cluster, self.log))

    # -- events: each gives the position after what it has dealt with -------------------------------------------------

    def _beginning(self) -> Draft:
        plain = cluster_to_plain(replace(self.cluster, workloads=(), evictions=()))
        return Draft(self.begin, "origin", payload=payload_of(by="simulate", until=self.end, cluster=plain))

    def _submit(self, position: int, at: int, event: Any) -> int:
        job = self.jobs[event[2]]
        job.waits = at
        self.drafts.append(
            Draft(at, "submitted", job.model.key, job.queue, payload=submission(job.model, self.holder, self.who))
        )
        return position + 1

    def _bind(self, position: int, at: int, event: Any) -> int:
        """All tasks of a job that are bound one after the other at one instant, together."""
        events, number, count = self.log.events, event[2], len(self.log.events)
        job = self.jobs[number]
        tasks = []
        while position < count and event[0] == BIND and event[2] == number and event[1] + self.origin == at:
            _, _, _, task, node, devices = event
            amounts = self.holder.held(job.model.tasks[task].spec, node)
            self.meter.change(job.queue, at, amounts, 1)
            self.room.occupy(number, task, node, amounts)
            job.active[task] = node, at
            job.bound.append(task)
            tasks.append([job.model.tasks[task].name, self.cluster.nodes[node].name, list(devices or ())])
            position += 1
            event = events[position] if position < count else (-1,) * 6
        starts = job.since < 0 and len(job.active) >= job.core
        if starts:
            self._start(number, job, at, tasks)
        else:
            self.drafts.append(Draft(at, "placed", job.model.key, job.queue, payload=encode({"tasks": tasks})))
        return position

    def _start(self, number: int, job: _Job, at: int, tasks: list[Any]) -> None:
        job.since = at
        wait = max(0, at - job.waits)
        level = self.meter.level(job.queue)
        due = self.meter.guaranteed.get(job.queue, {})
        entitled = bool(due) and all(level.get(r, 0) <= amount for r, amount in due.items())
        runtime = job.model.expected_runtime
        if runtime:
            self.room.ends[number] = at + runtime
        payload = payload_of(entitled=entitled, again=job.again or None, tasks=tasks, **self.who.named(job.model))
        self.drafts.append(Draft(at, "started", job.model.key, job.queue, value=wait, payload=payload))
        gain, job.gain = job.gain, None
        if gain is None:
            return
        if gain.estimated is None:
            job.open_gain = gain  # it is known when it ends what it had of it
        else:
            self._outcome(job, gain, at, max(0, gain.estimated - at), at)

    def _outcome(self, job: _Job, gain: _Gain, start: int, time: int, now: int) -> None:
        ask: dict[str, int] = {}
        for task in job.bound:
            for resource, amount in self._named(job, task).items():
                ask[resource] = ask.get(resource, 0) + amount * time
        payload = payload_of(evictedAt=gain.at, estimated=gain.estimated, start=start, gained=ask,
                             **self.who.named(job.model))  # fmt: skip
        value = weighted(ask, self.prices)
        self.drafts.append(Draft(now, "outcome", job.model.key, job.queue, gain.cause, None, value, payload))

    def _named(self, job: _Job, task: int) -> dict[str, int]:
        node = job.active[task][0] if task in job.active else -1
        return self.holder.named(self.holder.held(job.model.tasks[task].spec, node))

    def _stop(self, number: int, job: _Job, at: int) -> int:
        """A run is over: gives how long it was."""
        ran = at - job.since if job.since >= 0 else 0
        if job.open_gain is not None:
            self._outcome(job, job.open_gain, job.since, ran, at)
            job.open_gain = None
        job.since, job.waits, job.again = -1, at, True
        job.bound.clear()
        self.room.ends.pop(number, None)
        return ran

    def _end(self, position: int, at: int, event: Any) -> int:
        number, task = event[2], event[3]
        job = self.jobs[number]
        self._release(number, task, at)
        if not job.active:
            ran = self._stop(number, job, at)
            payload = payload_of(state="finished", held=job.held, **self.who.named(job.model))
            job.held = {}
            self.drafts.append(Draft(at, "ended", job.model.key, job.queue, value=ran, payload=payload))
        return position + 1

    def _release(self, number: int, task: int, at: int) -> None:
        job = self.jobs[number]
        node, since = job.active.pop(task)
        amounts = self.holder.held(job.model.tasks[task].spec, node)
        for resource, amount in self.holder.named(amounts, at - since).items():
            job.held[resource] = job.held.get(resource, 0) + amount
        self.meter.change(job.queue, at, amounts, -1)
        self.room.leave(number, task)

    def _drop(self, position: int, at: int, event: Any) -> int:
        job = self.jobs[event[2]]
        payload = encode({"state": "dropped", "reason": event[5]})
        self.drafts.append(Draft(at, "ended", job.model.key, job.queue, payload=payload))
        return position + 1

    def _rest(self, position: int, _at: int, _event: Any) -> int:
        """Pass over how a job stands when the simulation ends: it has not happened to the job."""
        return position + 1

    def _notice(self, position: int, at: int, event: Any) -> int:
        number, task, said = event[2], event[3], event[5]
        assert isinstance(said, NoticeDetails)
        job = self.jobs[number]
        step = self.listener.steps.get((event[1], job.model.key, task, "notice"))
        fields = self._of_task(job, task)
        fields |= {"deadline": said.deadline + self.origin, "reason": step.reason if step is not None else None}
        cost = round(step.cost * MICRO) if step is not None else 0
        payload = payload_of(**fields)
        beneficiary = self._beneficiary(event[4], at, said.cause)
        self.drafts.append(Draft(at, "noticed", job.model.key, job.queue, said.cause, beneficiary, cost, payload))
        return position + 1

    def _withdraw(self, position: int, at: int, event: Any) -> int:
        job = self.jobs[event[2]]
        payload = payload_of(task=job.model.tasks[event[3]].name)
        self.drafts.append(Draft(at, "withdrawn", job.model.key, job.queue, payload=payload))
        return position + 1

    def _evict(self, position: int, at: int, event: Any) -> int:
        _, when, number, task, other, said = event
        assert isinstance(said, EvictionDetails)
        job = self.jobs[number]
        beneficiary = self._beneficiary(other, at, said.cause)
        node, since = job.active.pop(task)
        self.room.leave(number, task)
        amounts = self.holder.held(job.model.tasks[task].spec, node)
        leaves = said.leaves_at if said.leaves_at >= 0 else when
        lost = self.lost.get(position, 0)
        overhead = 0 if job.model.checkpoint is None else job.model.checkpoint.restart_overhead
        saved = max(0, leaves + self.origin - since - (lost - overhead))
        step = self.listener.steps.get((when, job.model.key, task, "evict"))
        fields = self._of_task(job, task, node)
        lost_amounts = self.holder.named(amounts, lost)
        fields |= {
            "to": step.to if step is not None else None, "lost": lost_amounts,
            "saved": self.holder.named(amounts, saved),
            "held": self.holder.named(amounts, leaves + self.origin - since),
            "forQueue": None if other < 0 else self.jobs[other].queue,
            "reason": step.reason if step is not None else None, **self.who.named(job.model),
            **({} if other < 0 else self.who.named(self.jobs[other].model, "for")),
        }  # fmt: skip
        cost = weighted(lost_amounts, self.prices)
        self.drafts.append(
            Draft(at, "evicted", job.model.key, job.queue, said.cause, beneficiary, cost, payload_of(**fields),
                  sequence=position)
        )  # fmt: skip
        heappush(self.leaving, (leaves, number, task, node))
        if not job.active:
            self._stop(number, job, at)
        return position + 1

    def _of_task(self, job: _Job, task: int, node: int = -1) -> dict[str, Any]:
        place = node if node >= 0 else job.active.get(task, (-1, 0))[0]
        return {"task": job.model.tasks[task].name, "node": self.cluster.nodes[place].name if place >= 0 else None}

    def _beneficiary(self, number: int, at: int, cause: str) -> str | None:
        """Name whom something is taken for; what it would have had without is estimated before anything goes."""
        if number < 0:
            return None
        job = self.jobs[number]
        if job.gain is None and job.since < 0:
            ask: dict[int, tuple[Sequence[int], int]] = {}
            for task in job.model.tasks[: job.core]:
                known = ask.get(id(task.spec))
                ask[id(task.spec)] = self.holder.held(task.spec, -1), 1 + (known[1] if known is not None else 0)
            job.gain = _Gain(at, cause, self.room.start_without(list(ask.values()), at))
        return job.model.key

    def _leave(self, until: int) -> None:
        """Evicted tasks leave their nodes."""
        while self.leaving and self.leaving[0][0] <= until:
            at, number, task, node = heappop(self.leaving)
            job = self.jobs[number]
            at += self.origin
            self.end = max(self.end, at)
            self.meter.change(job.queue, at, self.holder.held(job.model.tasks[task].spec, node), -1)


def write_simulation(
    store: HistoryStore, trace: str, cluster: Cluster, log: EventLog, outcomes: Outcomes, listener: PlanListener
) -> int:
    """Write the history of a simulation; the same one again adds nothing. Gives how many records were new.

    Raises
    ------
    HistoryError
        The store holds another history already, or cannot be written.
    """
    drafts = SimulationRecords(cluster, log, outcomes, listener).records()
    origin = Origin(Path(trace).name, "")
    there = store.span() is not None
    if there and not store.has(drafts[0]):
        what = "holds another history already; name a new one, or remove it, so that statements are of one thing"
        raise HistoryError(store.place, what)
    return store.append(origin, drafts, fresh=not there)


def in_order(draft: Draft) -> tuple[int, int]:
    """Give the order of records: by time, at one time as one thing leads to another."""
    return draft.at, _RANKS.get(draft.kind, 4)


_RANKS = {"origin": 0, "submitted": 1, "noticed": 2, "evicted": 2, "nominated": 3, "outcome": 5, "usage": 6}


def submission(model: Workload, holder: Holder, who: Who) -> str:
    """Write what a workload asks for when it comes."""
    specs: dict[int, list[Any]] = {}
    ask: dict[str, int] = {}
    for task in model.tasks:
        amounts = holder.named(holder.held(task.spec, -1))
        share = task.spec.gpu_share
        parts = [] if share is None else [share.milli or MILLI, share.devices]
        specs.setdefault(id(task.spec), [0, amounts, *parts])[0] += 1
        for resource, amount in amounts.items():
            ask[resource] = ask.get(resource, 0) + amount
    return payload_of(
        priority=model.priority, minMember=model.min_member, tasks=len(model.tasks), ask=ask,
        specs=list(specs.values()),
        expected=model.expected_runtime, **who.named(model),
    )  # fmt: skip


def fingerprint(cluster: Cluster, log: EventLog) -> bytes:
    """Give eight bytes that tell this simulation from any other."""
    whole = blake2b(digest_size=8)
    whole.update(encode(cluster_to_plain(replace(cluster, workloads=()))).encode("utf-8", "surrogatepass"))
    whole.update(repr((len(log.workloads), log.initial)).encode())
    for event in log.events:
        whole.update(repr(event).encode())
    return whole.digest()


def numbered(drafts: Sequence[Draft], prefix: bytes) -> list[Draft]:
    """Number records as they stand; the key of each is a prefix and its number."""
    return list(_numbered(drafts, prefix))


def _numbered(drafts: Sequence[Draft], prefix: bytes) -> Iterator[Draft]:
    for number, d in enumerate(drafts):
        key = prefix + number.to_bytes(8, "big")
        yield Draft(d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], d[8], number, key)
