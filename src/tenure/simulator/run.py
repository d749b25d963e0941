"""Replays a trace on virtual time: arrivals and ends go into a session, plans come out, and all of it is logged.

At one instant ends come first, then arrivals, then one cycle. Between events nothing happens, so virtual time jumps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tenure.cycle import Scheduler
from tenure.engine.plan import NextEviction, Plan, PlanStep
from tenure.engine.reasons import why_no_step
from tenure.engine.serving.survival import user_of
from tenure.engine.snapshot import session_of
from tenure.engine.state import lifecycle
from tenure.engine.state.evictions import depart
from tenure.engine.state.workloads import TaskState
from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.documents.collector import collector_seldom
from tenure.model.queue import Queue
from tenure.model.workload import SAVING, Notice, Phase, Workload
from tenure.simulator.account import RunningAccount
from tenure.simulator.agenda import NEVER, Agenda
from tenure.simulator.log import EventLog
from tenure.simulator.traces.records import Trace
from tenure.simulator.work import JobProgress


@dataclass(frozen=True, slots=True)
class SimulationSetup:
    """The start of a simulation: the cluster, and what to do with jobs that do not fit at once.

    ``arrivals_only``: a job that cannot start when it arrives is dropped, and none ever ends (the experiment of
    Weng et al., USENIX ATC 2023). ``whole_mix``: placement by fragmentation knows the trace's mix from the start.
    """

    cluster: Cluster
    arrivals_only: bool = False
    whole_mix: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a simulation: jobs that have ended or were dropped, of how many, and the virtual time in µs."""

    done: int
    jobs: int
    now: int


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """The result of a simulation: the log, its start, and whether it came to its end.

    The nodes of the cluster in ``setup`` stand in the order in which the log numbers them, which is by name.
    ``incomplete``: jobs that wait at the end because they lack tasks, or some of these are gated, and what they lack.
    """

    log: EventLog
    setup: SimulationSetup
    complete: bool
    now: int
    incomplete: Mapping[int, str]


def prepare(cluster: Cluster, trace: Trace) -> Cluster:
    """Complete a cluster by what the trace implies: nodes where it has none, queues where none are configured."""
    nodes = cluster.nodes or trace.nodes
    queues = cluster.queues
    if not queues:
        names = {j.workload.queue or DEFAULT_QUEUE for j in trace.jobs} | {w.queue for w in cluster.workloads}
        queues = tuple(Queue(name=name) for name in sorted(names - {""}))
    return replace(cluster, nodes=nodes, queues=queues)


class Simulation:
    """A replay of a trace. The times of a trace are moved so that its second 0 is the cluster's ``now``."""

    def __init__(self, setup: SimulationSetup, trace: Trace) -> None:
        cluster = replace(setup.cluster, nodes=tuple(sorted(setup.cluster.nodes, key=lambda node: node.name)))
        self.setup = replace(setup, cluster=cluster)
        self.trace = trace
        self.origin = cluster.now
        resources = {name for job in trace.jobs for task in job.workload.tasks for name, _ in task.spec.requests}
        settings = cluster.settings
        if setup.arrivals_only:  # what does not fit is dropped: nobody waits for whom somebody could give way
            settings = replace(settings, actions=("allocate",))
        there = replace(cluster, settings=settings, attachments=())  # what no task uses would stay attached to the end
        self.session = session_of(there, extra=resources)
        self.scheduler = Scheduler(self.session)
        self.scheduler.context.detailed = False
        self.log = EventLog([*cluster.workloads, *(j.workload for j in trace.jobs)], initial=len(cluster.workloads))
        self.job_of = {w.key: i for i, w in enumerate(cluster.workloads)}
        self.held: dict[int, set[int]] = {}  # tasks of each job that stand on a node and have not been evicted
        self.agenda = Agenda()
        self.work = JobProgress()
        self.done = 0
        self.now = 0
        self.heard: Callable[[Plan], None] | None = None  # hears of each plan once it is carried out
        self.account = RunningAccount(cluster, self.log) if settings.worth.breaker.enabled else None
        self._start_initial(cluster.workloads)
        if setup.whole_mix:
            self._fix_mix()

    def _fix_mix(self) -> None:
        mix: dict[int, tuple[object, int]] = {}
        for job in self.trace.jobs:
            for task in job.workload.tasks:
                cls = self.session.classes.of(task.spec)
                if cls.whole or cls.devices:
                    mix[cls.id] = (cls, mix.get(cls.id, (cls, 0))[1] + 1)
        self.session.mix.fix(mix)  # type: ignore[arg-type]
        self.session.fragmentation.refresh()

    def _start_initial(self, workloads: Iterable[Workload]) -> None:
        for job, model in enumerate(workloads):
            self.log.submit(0, job)
            state = self.session.workloads[model.key]
            for task in state.tasks:
                there = task.leaving if task.notice is not None and task.node < 0 else task.node
                if there >= 0 and (task.phase is not Phase.TERMINATING or task.notice is not None):
                    self._bind(0, job, task.index, there, task.devices or task.leaving_devices)
                if task.notice is not None:
                    self._tell(job, task, 0, task.notice)
            runs = state.occupied() or any(t.notice for t in state.tasks)
            runtime = self._runtime(job)
            if runs and state.started_at is not None and runtime:
                end = self.work.start(job, state.started_at - self.origin, runtime)
                self.agenda.schedule_end(job, max(end, 0))
            for task in state.tasks:
                if task.phase is Phase.TERMINATING and task.notice is None and not task.model.never_terminates:
                    leaves = max(0, self.session.leaves_at(task) - self.origin)
                    self.agenda.schedule_departure(leaves, job, task)
        if self.log.initial:
            self.agenda.wake(0)  # what is due from the start does not wait for the first arrival

    def run(self, report: Callable[[Progress], None] | None = None, every: int = 1000) -> SimulationResult:
        """Run to the end. ``report`` hears of the progress after every so many events; Ctrl-C ends early."""
        complete = True
        with collector_seldom():  # the trace stays: to look through it again and again takes longer than to decide
            try:
                self._run(report, every)
            except KeyboardInterrupt:
                complete = False
        incomplete = self._close() if complete else {}
        return SimulationResult(self.log, self.setup, complete, self.now, incomplete)

    def _close(self) -> dict[int, str]:
        """Say of every job that has not ended why: it waits, or its run time is unknown; gives what lacks tasks."""
        waiting, incomplete = {workload.key for workload in self.session.waiting.all()}, dict[int, str]()
        for key, state in self.session.workloads.items():
            job = self.job_of[key]
            if key in waiting and not self.held.get(job):
                self.log.rest(self.now, job, f"it waits in queue {state.model.queue or DEFAULT_QUEUE}")
            elif self.setup.arrivals_only or self._runtime(job) is None:
                self.log.rest(self.now, job, "its end is unknown")
            if state.step is None and not state.occupied():
                incomplete[job] = why_no_step(state).message
        self.log.close()
        return incomplete

    def _run(self, report: Callable[[Progress], None] | None, every: int) -> None:
        arrival, jobs, events = 0, self.trace.jobs, 0
        while (at := self.agenda.next(jobs[arrival].workload.created_at if arrival < len(jobs) else NEVER)) < NEVER:
            now = self.now = at
            self.scheduler.pass_time(self.origin + now)
            self._end_all(now)
            self._depart_all(now)
            while arrival < len(jobs) and jobs[arrival].workload.created_at == now:
                self._arrive(arrival, now)
                arrival += 1
            self._decide(now)
            events += 1
            if report is not None and events % every == 0:
                report(Progress(self.done, len(jobs), now))

    # -- events -----------------------------------------------------------------------------------------------------

    def _depart_all(self, now: int) -> None:
        """Evicted tasks leave their nodes; what was told that it has to go has made its checkpoint."""
        for at, job in self.agenda.saving(now):
            self._save(at, job)
        self.agenda.awake(now)
        for task in self.agenda.leaving(now):
            if self.session.workloads.get(task.workload.key) is not task.workload:
                continue
            if task.leaving >= 0:
                depart(self.session, task)
            elif task.phase is Phase.TERMINATING:  # it did so when the simulation began, and contends again
                self.session.withdraw(task)
                self.session.refresh(task.workload)

    def _end_all(self, now: int) -> None:
        for job in self.agenda.ending(now):
            workload = self.session.workloads[self.log.workloads[job].key]
            for task in sorted(self.held.pop(job, ())):
                self.log.end(now, job, task)
            self.scheduler.endings.discard(workload)
            if workload.started_at is not None and self.session.settings.worth.survival.enabled:
                ran = self.origin + now - workload.started_at
                user = user_of(workload.model, self.session.settings)
                self.session.run_times.finish(workload.model.queue or DEFAULT_QUEUE, user, ran)
            self.session.remove_workload(workload.key)
            self.agenda.cancel_end(job)
            self.work.forget(job)
            self.done += 1

    def _arrive(self, number: int, now: int) -> None:
        model = self.trace.jobs[number].workload
        job = self.log.initial + number
        self.log.submit(now, job)
        if model.queue not in self.session.queues.index:
            self._drop(job, now, "unknown queue")
            return
        if model.key in self.session.workloads:
            self._drop(job, now, "a workload of that name is there already")
            return
        self.job_of[model.key] = job
        self.session.add_workload(model, later=self.origin)

    def _drop(self, job: int, now: int, reason: str) -> None:
        self.log.drop(now, job, reason)
        self.done += 1

    def _decide(self, now: int) -> None:
        if self.account is not None:
            self.session.outcomes = self.account.outcomes(self.origin + now)
        plan = self.scheduler.cycle(self.origin + now)
        self.agenda.idle = 0 if plan.steps else self.agenda.idle + 1
        if plan.steps:
            self._carry_out(plan, now)
        if self.heard is not None:
            self.heard(plan)
        if plan.wake is not None:
            self.agenda.wake(plan.wake - self.origin)
        if self.setup.arrivals_only:
            self._drop_waiting(now)

    def _carry_out(self, plan: Plan, now: int) -> None:
        self.log.plans.begin(len(self.log.events))
        for step in plan.steps:
            job = self.job_of[step.workload]
            if step.action == "bind":
                self._bind(now, job, step.task_index, step.node_index, step.devices)
                task = self.session.workloads[step.workload].tasks[step.task_index]
                if task.node >= 0 and task.notice is None:  # what is bound runs at once
                    lifecycle.start(self.session.journal, task)
            elif step.action == "evict":
                self._evict(step, job, now)
            elif step.action in {"notice", "withdraw"}:
                self._announce(step, job, now)
        for follow_up in plan.follow_ups:
            self._note(follow_up)
        self._settle(plan, now)

    def _note(self, follow_up: NextEviction) -> None:
        going: dict[str, set[str]] = {}
        for key, name in follow_up.evict:
            going.setdefault(key, set()).add(name)
        for key, names in going.items():
            for task in self.session.workloads[key].tasks:
                if task.model.name in names:
                    self.log.plans.follow_up(self.job_of[follow_up.of], self.job_of[key], task.index)

    def _bind(self, now: int, job: int, task: int, node: int, devices: tuple[int, ...]) -> None:
        self.log.bind(now, job, task, node, devices)
        self.held.setdefault(job, set()).add(task)

    def _settle(self, plan: Plan, now: int) -> None:
        """After a plan: whose run was ended by it, and whose begins. Only how things stand in the end counts.

        A plan may bind a workload and evict it, or evict it as a whole and bind it again.
        """
        started = set(plan.started)
        for key in dict.fromkeys(s.workload for s in plan.steps if s.action == "evict"):
            job, state = self.job_of[key], self.session.workloads[key]
            if job in self.agenda.runs and (key in started or not self.held[job]):
                self.work.stop(job, now, state.model)
                self.agenda.cancel_end(job)
        for key in plan.started:
            if self.held[self.job_of[key]]:
                self._started(self.job_of[key], now)

    def _announce(self, step: PlanStep, job: int, now: int) -> None:
        """A task is told that it has to go, or that it may stay."""
        task = self.session.workloads[step.workload].tasks[step.task_index]
        if step.action == "withdraw":
            self.log.withdraw(now, job, task.index)
        elif task.notice is not None:
            self._tell(job, task, now, task.notice)

    def _tell(self, job: int, task: TaskState, now: int, notice: Notice) -> None:
        beneficiary = self.job_of.get(notice.beneficiary or "", -1)
        self.log.notice(now, job, task.index, notice.cause, beneficiary, deadline=notice.deadline - self.origin)
        checkpoint = task.workload.model.checkpoint
        if checkpoint is not None and checkpoint.made:
            self.agenda.schedule_save(now + SAVING, job)

    def _save(self, now: int, job: int) -> None:
        """What runs has made a checkpoint because it was told that it has to go."""
        state = self.session.workloads.get(self.log.workloads[job].key)
        if state is not None and any(t.notice for t in state.tasks):
            state.saved_at = self.origin + now
            self.work.save(job, now)

    def _evict(self, step: PlanStep, job: int, now: int) -> None:
        """A task is evicted: it leaves when its grace period is over, at once where it names none."""
        state = self.session.workloads[step.workload]
        task = state.tasks[step.task_index]
        grace = task.model.grace_period or 0
        beneficiary = -1 if step.beneficiary is None else self.job_of[step.beneficiary]
        until = step.protected_until - self.origin if step.protected_until >= 0 else -1
        told = step.notice_at - self.origin if step.notice_at >= 0 else -1
        saved = state.saved_at - self.origin if state.saved_at is not None else -1
        self.log.evict(
            now, job, step.task_index, step.cause or "", beneficiary,
            leaves_at=now + grace if grace else -1, protected_until=until, saved_at=saved if saved > told >= 0 else -1,
        )  # fmt: skip
        self.held[job].discard(step.task_index)
        self.agenda.schedule_departure(now + grace, job, task)

    def _started(self, job: int, now: int) -> None:
        runtime = self._runtime(job)
        if runtime is not None and not self.setup.arrivals_only:
            self.agenda.schedule_end(job, self.work.start(job, now, runtime))

    def _runtime(self, job: int) -> int | None:
        """How long a job runs by itself, in µs; None if unknown."""
        number = job - self.log.initial
        if number >= 0:
            return self.trace.jobs[number].runtime
        key = self.log.workloads[job].key
        return self.trace.present.get(key) or self.session.workloads[key].expected or None

    def _drop_waiting(self, now: int) -> None:
        for workload in self.session.waiting.all():
            self.session.remove_workload(workload.key)
            self._drop(self.job_of[workload.key], now, "does not fit when it arrives")
