"""The records of a simulation: what its log says happened, with what its plans said about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tenure import __version__
from tenure.engine.otherwise import RoomOverTime
from tenure.engine.plan import EVICTING, Plan, PlanStep
from tenure.history import open_history
from tenure.history.errors import HistoryError
from tenure.history.record import Draft, DraftRow, Origin, encode, made_draft, named_after, payload_of, quoted
from tenure.history.rollup import Rollup, UsageRow
from tenure.history.who import Who
from tenure.history.writing.meter import capacity_records
from tenure.history.writing.plans import PlanChronicle
from tenure.history.writing.submissions import SubmissionWriter
from tenure.history.writing.usage_columns import UsageColumns
from tenure.history.writing.whole import SOURCE, write_whole
from tenure.model.amounts import Holder, weighted
from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.documents.collector import collector_paused, count_as_old
from tenure.model.file.dump import cluster_to_plain
from tenure.model.workload import Workload
from tenure.simulator.checks.columns import EventColumns
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

if TYPE_CHECKING:
    from tenure.history.store import HistoryStore

MICRO = 1_000_000
HASHED = 4096
"""Events whose fingerprint is taken at once."""


class PlanListener:
    """Hears of each cycle of a simulation, and keeps what its log does not."""

    def __init__(self, origin: int) -> None:
        self.origin = origin
        self.chronicle = PlanChronicle()
        self.drafts: list[Draft] = []
        self.steps: dict[tuple[int, str, int, str], PlanStep] = {}

    def __call__(self, plan: Plan) -> None:
        """Keep what a plan says; most say nothing that the log does not."""
        binds_alone = True
        for step in plan.steps:
            if step.action != "bind":
                binds_alone = False
                if step.action in EVICTING:
                    self.steps[plan.now - self.origin, step.workload, step.task_index, step.action] = step
        if not (binds_alone and self.chronicle.silent(plan)):
            self.drafts += self.chronicle.records(plan)


class _Gain(NamedTuple):
    """A workload for which was evicted, and when it would have started otherwise (None: that is unknown)."""

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
    key: str = ""
    who: str = ""
    held: list[int] = field(default_factory=list)
    bound: list[int] = field(default_factory=list)
    gain: _Gain | None = None
    open_gain: _Gain | None = None


class SimulationRecords:
    """Goes once through the log of a simulation and makes records of it. Times of the log are µs since its start."""

    def __init__(self, cluster: Cluster, log: EventLog, outcomes: Outcomes, listener: PlanListener) -> None:
        self.cluster, self.log, self.listener = cluster, log, listener
        self.origin = cluster.now
        self.holder = Holder(outcomes.history.tasks.specs, cluster.nodes, cluster.settings)
        guaranteed = {q.name: q.guaranteed for q in cluster.queues}
        self.begin, self.end = outcomes.began + self.origin, outcomes.ended + self.origin
        self.meter = UsageColumns(self.holder.resources, guaranteed, self.begin)
        self.room = RoomOverTime(cluster.nodes, self.holder.resources)
        self.evicts = any(event[0] in {EVICT, NOTICE} for event in log.events)
        self.who = Who(cluster)
        self.submissions = SubmissionWriter(self.holder, self.who)
        self.nodes = [quoted(node.name) for node in cluster.nodes]
        self.jobs = [self._job(w) for w in log.workloads]
        self.columns = outcomes.history.columns
        evicted = outcomes.holdings.evicted
        freed, until = outcomes.holdings.freed[evicted].tolist(), outcomes.holdings.until[evicted].tolist()
        self.left = dict(zip(freed, until, strict=True))  # with the end of its job the last task of it is gone
        self.lost = dict(zip(freed, outcomes.task_lost[evicted].tolist(), strict=True))
        self.leaving: list[tuple[int, int, int, int]] = []
        self.prices = cluster.settings.disruption.cost
        self.ranked: list[list[Draft]] = [[] for _ in range(1 + max(_RANKS.values()))]
        self.submitted, self.others = self.ranked[_RANKS["submitted"]], self.ranked[_OTHER]
        self.capacity: list[Draft] = []

    def _job(self, model: Workload) -> _Job:
        named = self.who.named(model)
        who = "".join([f",{quoted(name)}:{quoted(value)}" for name, value in named.items()]) if named else ""
        queue = model.queue or DEFAULT_QUEUE
        return _Job(model, queue, model.least, key=model.key, who=who)

    def records(self) -> list[Draft]:
        """Give all records in the order of time; with their numbers in it, and a prefix, they have their keys."""
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
        self.capacity = capacity_records(self.holder.capacity(), self.begin, self.end)
        for draft in (self._beginning(), *self.listener.drafts):
            self._put(draft)
        self.ranked[_RANKS["usage"]] += [*self.meter.records, *self.capacity]
        found = list(chain.from_iterable(self.ranked))
        found.sort(key=itemgetter(0))  # of one time they stand by rank already
        return found

    def _put(self, draft: Draft) -> None:
        self.ranked[_rank_of(draft)].append(draft)

    def hours(self) -> Iterator[UsageRow]:
        """Give the sums by the hour of the usage that the records tell of."""
        rollup = Rollup()
        for draft in self.capacity:
            rollup.add(SOURCE, draft.at, "", draft.value, draft.payload)
        yield from rollup.told()
        yield from self.meter.hours(SOURCE)

    def prefix(self) -> bytes:
        """Give what the keys of these records begin with, and those of no other simulation."""
        return fingerprint(self.cluster, self.log, self.columns, self.submitted)

    # -- events: each gives the position after what it has dealt with -------------------------------------------------

    def _beginning(self) -> Draft:
        plain = cluster_to_plain(replace(self.cluster, workloads=(), evictions=()))
        payload = payload_of(by="simulate", tenure=__version__, until=self.end, cluster=plain)
        return Draft(self.begin, "origin", payload=payload)

    def _submit(self, position: int, at: int, event: Any) -> int:
        job = self.jobs[event[2]]
        job.waits = at
        payload = self.submissions.payload(job.model)
        self.submitted.append(made_draft((at, "submitted", job.key, job.queue, None, None, 0, payload, "", 0, b"")))
        return position + 1

    def _add(self, at: int, kind: str, job: _Job, value: int, payload: str) -> None:
        """Add a record of a job that has no cause and no beneficiary."""
        self.others.append(made_draft((at, kind, job.key, job.queue, None, None, value, payload, "", 0, b"")))

    def _together(self, position: int, event: Any) -> int:
        """Give the position after the events of one kind that a job has one after the other at one instant."""
        events, count = self.log.events, len(self.log.events)
        kind, when, number = event[0], event[1], event[2]
        position += 1
        while position < count:
            following = events[position]
            if following[2] != number or following[0] != kind or following[1] != when:
                break
            position += 1
        return position

    def _bind(self, position: int, at: int, event: Any) -> int:
        """All tasks of a job that are bound one after the other at one instant, together."""
        number, stop = event[2], self._together(position, event)
        job = self.jobs[number]
        models, active, room = job.model.tasks, job.active, self.room if self.evicts else None
        tasks, held, times = [], None, 0
        together: Sequence[Any] = self.log.events[position:stop]
        for _, _, _, task, node, devices in together:
            model = models[task]
            amounts = self.holder.held(model.spec, node)
            if amounts is not held:
                if held is not None:
                    self.meter.change(job.queue, at, held, times)
                held, times = amounts, 0
            times += 1
            if room is not None:
                room.occupy(number, task, node, self.holder.asked(model.spec, node))
            active[task] = node, at
            job.bound.append(task)
            on = ",".join(map(str, devices)) if devices else ""
            tasks.append(f"[{quoted(model.name)},{self.nodes[node]},[{on}]]")
        assert held is not None
        self.meter.change(job.queue, at, held, times)
        placed = ",".join(tasks)
        if job.since < 0 and len(active) >= job.core:
            self._start(number, job, at, placed)
        else:
            self._add(at, "placed", job, 0, f'{{"tasks":[{placed}]}}')
        return stop

    def _start(self, number: int, job: _Job, at: int, placed: str) -> None:
        job.since = at
        wait = max(0, at - job.waits)
        entitled = "true" if self.meter.within_guaranteed(job.queue) else "false"
        runtime = job.model.expected_runtime
        if runtime:
            self.room.ends[number] = at + runtime
        again = ',"again":true' if job.again else ""
        self._add(at, "started", job, wait, f'{{"entitled":{entitled}{again},"tasks":[{placed}]{job.who}}}')
        gain, job.gain = job.gain, None
        if gain is None:
            return
        if gain.estimated is None:
            job.open_gain = gain  # it is known when it ends what it had of it
        else:
            self._outcome(job, gain, at, max(0, gain.estimated - at), at)

    def _outcome(self, job: _Job, gain: _Gain, start: int, time: int, now: int) -> None:
        ask: dict[str, int] = {}
        for task in dict.fromkeys(job.bound):  # one that was moved meanwhile counts once
            for resource, amount in self._named(job, task).items():
                ask[resource] = ask.get(resource, 0) + amount * time
        payload = payload_of(evictedAt=gain.at, estimated=gain.estimated, start=start, gained=ask,
                             **self.who.named(job.model))  # fmt: skip
        value = weighted(ask, self.prices)
        self._put(Draft(now, "outcome", job.model.key, job.queue, gain.cause, None, value, payload))

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
        """All tasks of a job that end one after the other at one instant, together."""
        number, stop = event[2], self._together(position, event)
        job = self.jobs[number]
        held, begun, times = None, -1, 0
        for ended in self.log.events[position:stop]:
            task = ended[3]
            node, since = job.active.pop(task)
            amounts = self.holder.held(job.model.tasks[task].spec, node)
            if amounts is not held or since != begun:
                if held is not None:
                    self._release(job, at, held, times, at - begun)
                held, begun, times = amounts, since, 0
            times += 1
            if self.evicts:
                self.room.leave(number, task)
        assert held is not None
        self._release(job, at, held, times, at - begun)
        if not job.active:
            ran = self._stop(number, job, at)
            rows = zip(self.meter.named, job.held, strict=True)
            told = ",".join([f"{name}{amount}" for name, amount in rows if amount])
            job.held = []
            self._add(at, "ended", job, ran, f'{{"state":"finished","held":{{{told}}}{job.who}}}')
        return stop

    def _release(self, job: _Job, at: int, amounts: Sequence[int], times: int, ran: int) -> None:
        """So many tasks that held as much, for as long, hold nothing any more."""
        time = ran * times
        before = job.held or self.meter.nothing
        job.held = [total + amount * time for total, amount in zip(before, amounts, strict=True)]
        self.meter.change(job.queue, at, amounts, -times)

    def _drop(self, position: int, at: int, event: Any) -> int:
        job = self.jobs[event[2]]
        payload = encode({"state": "dropped", "reason": event[5]})
        self._put(Draft(at, "ended", job.model.key, job.queue, payload=payload))
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
        self._put(Draft(at, "noticed", job.model.key, job.queue, said.cause, beneficiary, cost, payload))
        return position + 1

    def _withdraw(self, position: int, at: int, event: Any) -> int:
        job = self.jobs[event[2]]
        payload = payload_of(task=job.model.tasks[event[3]].name)
        self._put(Draft(at, "withdrawn", job.model.key, job.queue, payload=payload))
        return position + 1

    def _evict(self, position: int, at: int, event: Any) -> int:
        _, when, number, task, other, said = event
        assert isinstance(said, EvictionDetails)
        job = self.jobs[number]
        beneficiary = self._beneficiary(other, at, said.cause)
        node, since = job.active.pop(task)
        self.room.leave(number, task)
        amounts = self.holder.held(job.model.tasks[task].spec, node)
        leaves = self.left.get(position, when)
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
        told = Draft(at, "evicted", job.model.key, job.queue, said.cause, beneficiary, cost, payload_of(**fields))
        if since == at:
            self.others.append(told)  # behind the start, which stands there too
        else:
            self._put(told)
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
                ask[id(task.spec)] = self.holder.asked(task.spec, -1), 1 + (known[1] if known is not None else 0)
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
    with collector_paused():
        made = SimulationRecords(cluster, log, outcomes, listener)
        drafts = numbered(made.records(), made.prefix())
    origin = named_after(trace)
    written = store.append_alone(origin, drafts)
    if written is None:
        raise HistoryError(store.place, _other(store, origin))
    return written


def write_simulation_file(
    path: str, trace: str, cluster: Cluster, log: EventLog, outcomes: Outcomes, listener: PlanListener
) -> int:
    """Write the history of a simulation into a file that is not there yet; gives how many records there are.

    Raises
    ------
    HistoryError
        It cannot be written, or another process has written another history there meanwhile.
    """
    with collector_paused():
        made = SimulationRecords(cluster, log, outcomes, listener)
        drafts = made.records()
        if write_whole(path, named_after(trace), numbered_rows(drafts, made.prefix()), made.hours()):
            count_as_old()
            return len(drafts)
    with open_history(path, write=True) as store:
        return write_simulation(store, trace, cluster, log, outcomes, listener)


def _other(store: HistoryStore, origin: Origin) -> str:
    """Say what a store holds in place of this simulation, and what to do."""
    from tenure.history.query import Query  # noqa: PLC0415  SQLAlchemy is loaded where it is needed

    found = next(iter(store.records(Query(kinds=("origin",)), limit=1, newest=True).records), None)
    remedy = "name a new one, or remove it, so that statements are of one thing"
    if found is None or found.payload.get("by") != "simulate":
        return f"holds another history already, which is not of a simulation; {remedy}"
    version = found.payload.get("tenure")
    if found.cluster == origin.cluster and version != __version__:
        by = "an earlier version of Tenure" if version is None else f"Tenure {version}"
        return (
            f"holds the simulation of {found.cluster} by {by}; that of Tenure {__version__} is another history, for "
            f"versions may decide otherwise; {remedy}"
        )
    return f"holds another history already: a simulation of {found.cluster} with other settings or input; {remedy}"


def in_order(draft: Draft) -> int:
    """Give the order of records: by time, at one time as one thing leads to another."""
    return (draft[0] << 3) + _rank_of(draft)


def _rank_of(draft: Draft) -> int:
    return _RANKS.get(draft[1], _OTHER)


_RANKS: Final = {"origin": 0, "submitted": 1, "noticed": 2, "evicted": 2, "nominated": 3, "outcome": 5, "usage": 6}
_OTHER: Final = 4


def fingerprint(cluster: Cluster, log: EventLog, columns: EventColumns, submitted: Sequence[Draft]) -> bytes:
    """Give eight bytes that tell this simulation from any other, and from itself under another version of Tenure.

    ``columns`` are those of its log, whose jobs are numbers: what these are is said by the records ``submitted``.
    """
    whole = blake2b(__version__.encode(), digest_size=8)
    whole.update(encode(cluster_to_plain(replace(cluster, workloads=()))).encode("utf-8", "surrogatepass"))
    whole.update(repr((len(log.workloads), log.initial)).encode())
    for column in (columns.kind, columns.at, columns.job, columns.task, columns.x):
        whole.update(column.astype("<i8").tobytes())
    for begin in range(0, len(columns.extra), HASHED):
        whole.update(repr(columns.extra[begin : begin + HASHED]).encode("utf-8", "surrogatepass"))
    for draft in submitted:
        whole.update(repr((draft.workload, draft.queue, draft.payload)).encode("utf-8", "surrogatepass"))
    return whole.digest()


def numbered(drafts: Sequence[Draft], prefix: bytes) -> list[Draft]:
    """Number records as they stand; the key of each is a prefix and its number."""
    return list(map(made_draft, numbered_rows(drafts, prefix)))


def numbered_rows(drafts: Sequence[Draft], prefix: bytes) -> Iterator[DraftRow]:
    """Give numbered records one by one as plain tuples, which SQLite takes faster than drafts."""
    for number, draft in enumerate(drafts):
        yield (*draft[:9], number, prefix + number.to_bytes(8, "big"))
