"""Carrying plans out on an API server.

The order is that of the specification: what has to survive is written before what it is about. Each write says what it
is about, so that it counts once and only where the plan saw the truth; one that is refused is left out, and the next
cycle plans anew. Between any two writes the process may end. A step that cannot be written, whatever the reason, takes
no other with it but those of its own set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from msgspec import structs

from tenure.clusters.kubernetes.bounded import brief
from tenure.clusters.kubernetes.cache import pod_records
from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.client.leader import NotLeaderError
from tenure.clusters.kubernetes.client.requests import STRATEGIC, ApiError, Client
from tenure.clusters.kubernetes.gpus.keeper import ReservationKeeper
from tenure.clusters.kubernetes.gpus.reservations import DevicePlace
from tenure.clusters.kubernetes.read import eviction_log
from tenure.clusters.kubernetes.read.nominations import ReplacementNomination
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.read.workloads import ACTIVE
from tenure.clusters.kubernetes.seals import Seal
from tenure.clusters.kubernetes.write import eviction_log_writer, patches
from tenure.clusters.kubernetes.write.bindings import BindingsUnderWay
from tenure.clusters.kubernetes.write.claims import ClaimWriter
from tenure.clusters.kubernetes.write.device_preparation import DevicePreparation
from tenure.clusters.kubernetes.write.devices import DeviceWriter
from tenure.clusters.kubernetes.write.kueue import KueueEvictions
from tenure.clusters.kubernetes.write.overdue import REFUSED_BY_BUDGET, OverdueBudgets
from tenure.clusters.kubernetes.write.queue_status import QueueStatuses
from tenure.clusters.record import BROKEN, logged, times_evicted
from tenure.engine.cost import lost_amounts
from tenure.engine.plan import EVICTING, Plan, PlanStep
from tenure.model.duration import format_time
from tenure.model.selectors import LabelSelector
from tenure.model.settings import Settings
from tenure.model.workload import Nomination, Workload

T = TypeVar("T")

IN_FLIGHT = 16
"""Writes at a time."""

_GONE, _CONFLICT = 404, 409
_TOO_MUCH = frozenset({413, 422})
"""Answers to a write that makes an object larger than it may be."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A write that was refused: what, of which workload and task, and why."""

    action: str
    workload: str
    task: str
    error: ApiError


class Preparation(NamedTuple):
    """What the pods of a workload wait for before they are bound, with the reason for their condition."""

    reason: str
    message: str


@dataclass(slots=True)
class Outcome:
    """The outcome of a plan: the steps that were carried out, and those that were not.

    ``evicted``: entries of the log of those evictions that the API server granted. ``preparing``: by workload, what
    its pods wait for before they are bound.
    """

    done: list[PlanStep] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    skipped: list[PlanStep] = field(default_factory=list)
    evicted: list[eviction_log.EvictionEntry] = field(default_factory=list)
    preparing: dict[str, Preparation] = field(default_factory=dict)


class Actor:
    """The writer that carries plans out on an API server.

    ``allowed`` is asked before each write, and raises where this process may write no more.
    """

    def __init__(
        self,
        client: Client,
        informers: InformerCache,
        *,
        in_flight: int = IN_FLIGHT,
        allowed: Callable[[], None] = lambda: None,
    ) -> None:
        self.client = client
        self.informers = informers
        self.allowed = allowed
        self.logbook = eviction_log_writer.EvictionLogWriter(client, informers, allowed)
        self.statuses = QueueStatuses(client, informers)
        self.reservations = ReservationKeeper(client, informers)
        self._claims = ClaimWriter(client, informers)
        self._devices = DeviceWriter(client, informers)
        self._kueue = KueueEvictions(client, informers)
        self._preparation = DevicePreparation(self._devices, informers)
        self._overdue = OverdueBudgets(informers)
        self._pool = ThreadPoolExecutor(in_flight, thread_name_prefix="write")
        self._bindings = BindingsUnderWay(self._pool, informers)

    def close(self) -> None:
        """Finish what is under way, and begin nothing more."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def stands(self, plan: Plan) -> bool:
        """Whether a plan may be carried out: not if it does more than bind, and a binding that it counts on failed.

        The plan that is made after that knows of it, and stands.
        """
        if _only_binds(plan):
            return True
        self._bindings.wait()
        return not self._bindings.is_any_refused_anew()

    def has_answers(self) -> bool:
        """Whether bindings were answered that no outcome has yet."""
        return self._bindings.is_any_answered()

    def carry_out(self, plan: Plan, observed: Observed) -> Outcome:
        """Carry out all steps of a plan that was made of what was observed.

        Bindings may go on after that, while there is something else to decide; then a later outcome has them.
        """
        outcome = Outcome()
        plan = _with_pods(plan, observed)
        plan, to_hold = self.reservations.held_back(plan, observed)
        workloads = observed.workloads
        self.allowed()
        self._write_statuses(plan, observed, outcome)
        self._keep_promises(plan, observed, outcome)
        self._expire(plan, observed, outcome)
        self._mark_stale(plan, observed, outcome)
        self._bind(self._prepare(plan, observed, outcome), plan, observed, workloads)
        self._report_bindings(outcome, None if not _only_binds(plan) else observed.urgent)
        evictions = self._promise(plan, observed, outcome)
        self._reserve(to_hold, observed, outcome)
        self._announce(plan, observed, outcome)
        if evictions:
            self._evict(self._rehearse(evictions, observed, outcome), plan, observed, workloads, outcome)
        untold = self._kueue.tell(observed, outcome.evicted)
        outcome.failures += [Failure("status", "", "", error) for error in untold]
        return outcome

    def _write_statuses(self, plan: Plan, observed: Observed, outcome: Outcome) -> None:
        """Write what was decided about queues; where that fails it is tried again in the next cycle."""
        try:
            self.statuses.write(plan, observed)
        except ApiError as error:
            if not error.status:
                raise  # nobody is there to be asked
            outcome.failures.append(Failure("status", "", "", error))

    def evict(self, plan: Plan, observed: Observed, outcome: Outcome) -> None:
        """Carry out the evictions of a plan and nothing else of it."""
        workloads = observed.workloads
        steps = [s for s in plan.steps if s.action == "evict"]
        self._evict(self._rehearse(steps, observed, outcome), plan, observed, workloads, outcome)

    def refusals(self, plan: Plan, observed: Observed) -> list[Failure]:
        """Ask of each eviction of a plan whether it would be allowed; none is made."""
        asked = Outcome()
        steps = [s for s in plan.steps if s.action == "evict"]
        workloads = observed.workloads
        self._all(lambda step: self._try(step, observed, workloads), steps, asked, note=False)
        return asked.failures

    # -- placing ----------------------------------------------------------------------------------------------------

    def _prepare(self, plan: Plan, observed: Observed, outcome: Outcome) -> list[PlanStep]:
        """Write what claims that are not bound need, and devices that are not ready; gives the bindings of the others.

        Pods are bound once all claims of those that are placed with them are: a core lands whole, or not yet.
        """
        steps = [s for s in plan.steps if s.action == "bind"]
        due = [s for s in steps if s.volumes]
        told: set[str] = set()
        once = []
        for step in due:
            once.append(step._replace(volumes=tuple(v for v in step.volumes if v.claim not in told)))
            told.update(v.claim for v in step.volumes)
        self._all(self._claims.prepare, once, outcome, note=False)
        for step in due:
            outcome.preparing.setdefault(step.workload, Preparation("VolumeNotReady", _awaited(step)))
        left = [s for s in steps if s.workload not in outcome.preparing]
        devices = self._preparation.of(left, plan, observed)
        for step, why in devices.failed:
            outcome.failures.append(Failure("bind", step.workload, step.task, ApiError(0, "DeviceFailed", why)))
        for step, awaited in devices.due:
            outcome.preparing.setdefault(step.workload, Preparation("DevicesNotReady", f"it waits for {awaited}"))
        pod = observed.pod
        self._all(
            lambda step: self._devices.give(step.claims, pod(step.workload, step.task_index), plan.now),
            [step for step, _ in devices.due], outcome, note=False,
        )  # fmt: skip
        late = outcome.preparing.keys() | {step.workload for step, _ in devices.failed}
        outcome.skipped += [s for s in steps if s.workload in late]
        return [s for s in left if s.workload not in late]

    def _bind(
        self, steps: Sequence[PlanStep], plan: Plan, observed: Observed, workloads: Mapping[str, Workload]
    ) -> None:
        """Begin bindings of a plan."""
        started, pods = set(plan.started), self.informers.pods
        nodes = self.informers.nodes.nodes
        assumed: dict[tuple[str, int], tuple[PodRecord, PodRecord]] = {}
        starts: dict[str, int | None] = {}
        names = {(s.workload, s.task_index): self.reservations.names(s, observed) for s in steps}
        for step in steps:
            pod, workload = observed.pod(step.workload, step.task_index), workloads[step.workload]
            before = None if step.workload in started else workload.started_at
            start = plan.now if step.workload in started else before
            starts[step.workload] = start
            seal = sealed_at_bind(pod, workload, step.devices, before)
            then = pod_records.bound(pod, step.node, step.devices, plan.now, start, seal)
            assumed[step.workload, step.task_index] = pod, then
            pods.assume(pod, then, is_written=False)
            self.informers.allocations.begin(step.claims)

        def bind(step: PlanStep) -> None:
            pod, _ = assumed[step.workload, step.task_index]
            if step.node not in nodes:
                raise ApiError(_GONE, "NotFound", f"node {step.node} is gone")
            self._devices.give(step.claims, pod, plan.now)
            self.client.create(
                patches.pod_path(pod, "binding"),
                patches.binding(pod, step, starts[step.workload], names[step.workload, step.task_index]),
            )

        def attempt(step: PlanStep) -> ApiError | None:
            pod, then = assumed[step.workload, step.task_index]
            is_bound = False
            try:
                error = self._attempt(bind, step)
                is_bound = error is None
            finally:
                self.informers.allocations.end(step.claims)
                if is_bound:
                    pods.assumed.accepted(then)
                else:
                    pods.retract(pod, then)
            return error

        self._bindings.begin(attempt, steps)

    def _report_bindings(self, outcome: Outcome, urgent: int | None) -> None:
        """Say of bindings what became of them: of all, or of those answered before something ``urgent`` comes."""
        if urgent is None:
            self._bindings.wait()
        else:
            self._bindings.wait_a_little(urgent)
        for step, error in self._bindings.answered():
            _note(outcome, step, error)

    def _promise(self, plan: Plan, observed: Observed, outcome: Outcome) -> list[PlanStep]:
        """Write nominations; gives the evictions that may follow: not those for whom a promise could not be written."""
        evictions = [s for s in plan.steps if s.action == "evict"]
        moved = {(s.workload, s.task_index) for s in plan.steps if s.action in EVICTING}
        leaving: dict[tuple[str | None, str], list[str]] = {}
        for step in plan.steps:
            if step.action not in EVICTING:
                continue
            pod = observed.pod(step.workload, step.task_index)
            leaving.setdefault((step.beneficiary, step.node), []).append(pod.uid)
        there = self.informers.nodes.nodes  # what fits a node that is on its way is promised that when it is there
        promises = [s for s in plan.steps if s.action == "nominate" and s.node in there]
        promises = [s for s in promises if (s.workload, s.task_index) not in moved]

        def nominate(step: PlanStep) -> None:
            pod = observed.pod(step.workload, step.task_index)
            nominated_tasks = Nomination(node=step.node, devices=step.devices, at=plan.now)
            needs = leaving.get((step.workload, step.node), ())
            body = patches.nomination(pod, nominated_tasks, plan.now, needs=needs)
            try:
                self._patch(pod, body)
            except ApiError as error:
                told = _told_meanwhile(pod, self.informers.pods.records.get(pod.key), error)
                if told is None:
                    raise
                self._patch(told, patches.at_version(body, told.version))
            self.informers.pods.assume(pod, pod_records.nominated(pod, nominated_tasks))

        before = len(outcome.failures)
        self._all(nominate, promises, outcome)
        broken = {f.workload for f in outcome.failures[before:]}
        outcome.skipped += [s for s in evictions if s.beneficiary in broken]
        return [s for s in evictions if s.beneficiary not in broken]

    def _keep_promises(self, plan: Plan, observed: Observed, outcome: Outcome) -> None:
        """Hand places on to the replacements of what was moved, and take back promises that cannot be kept."""
        decided = {observed.pod(s.workload, s.task_index).uid for s in plan.steps}
        due = [_Due(p) for p in observed.promises.broken if p.uid not in decided]
        due += [_Due(p.pod, p) for p in observed.promises.landings if p.pod.uid not in decided]

        def settle(due: _Due) -> None:
            pod, landing = due.pod, due.landing
            if landing is None:
                self._patch(pod, patches.no_nomination(pod, plan.now))
                self.informers.pods.assume(pod, pod_records.nominated(pod, None))
            else:
                told = landing.nomination
                self._patch(pod, patches.nomination(pod, told, plan.now, replaces=landing.replaces))
                self.informers.pods.assume(pod, pod_records.landed(pod, told, landing.replaces))

        steps = [
            PlanStep("promise", f"{d.pod.namespace}/{d.pod.group[1]}", d.pod.name, "", n, -1) for n, d in enumerate(due)
        ]
        self._all(lambda step: settle(due[step.task_index]), steps, outcome)

    def _expire(self, plan: Plan, observed: Observed, outcome: Outcome) -> None:
        again = {(s.workload, s.task_index) for s in plan.steps if s.action in ("nominate", "bind")}

        def give_up(step: PlanStep) -> None:
            pod = observed.pod(step.workload, step.task_index)
            self._patch(pod, patches.no_nomination(pod, plan.now))
            self.informers.pods.assume(pod, pod_records.nominated(pod, None))

        given_up = [PlanStep("expire", key, "", "", task, -1) for key, task in plan.expired if (key, task) not in again]
        self._all(give_up, given_up, outcome)

    def _mark_stale(self, plan: Plan, observed: Observed, outcome: Outcome) -> None:
        marks = []
        going = {(s.workload, s.task_index) for s in plan.steps if s.action in EVICTING}
        for key, since in plan.stale.items():
            for number, pod in enumerate(observed.pods[key]):
                if (key, number) in going:
                    continue  # it needs no mark, and its eviction is of the version that was seen
                if (since is not None and pod.task.phase in ACTIVE and pod.stale_since is None) or (
                    since is None and pod.stale_since is not None
                ):
                    marks.append(PlanStep("stale", key, pod.name, "", number, -1, leaves_at=since or 0))

        def mark(step: PlanStep) -> None:
            pod = observed.pod(step.workload, step.task_index)
            self._patch_running(pod, patches.stale(pod, step.leaves_at or None, plan.now))

        self._all(mark, marks, outcome)

    def _reserve(self, to_hold: set[DevicePlace], observed: Observed, outcome: Outcome) -> None:
        """Have devices held of which parts are promised, and let go those of which no part is in use."""
        if observed.shared_devices is None:
            return
        self.allowed()
        self.reservations.let_go(observed.shared_devices, to_hold)
        for (node, device), error in self.reservations.hold(to_hold):
            outcome.failures.append(Failure("reserve", "", f"device {device} of {node}", error))

    # -- evicting ---------------------------------------------------------------------------------------------------

    def _announce(self, plan: Plan, observed: Observed, outcome: Outcome) -> None:
        """Write notices, with where the pods are to land, and withdraw those that no longer pay."""
        landings = {(s.workload, s.task_index): s for s in plan.steps if s.action == "nominate"}

        def announce(step: PlanStep) -> None:
            pod = observed.pod(step.workload, step.task_index)
            landing = landings.get((step.workload, step.task_index))
            note = None if step.action == "withdraw" else patches.note_of(step, landing, plan.now)
            self._patch_running(pod, patches.notice(pod, note, plan.now))
            self.informers.pods.assume(pod, pod_records.noticed(pod, note))

        self._all(announce, [s for s in plan.steps if s.action in ("notice", "withdraw")], outcome)
        withdrawn = {(s.workload, s.task) for s in plan.steps if s.action == "withdraw"}
        if withdrawn:
            self.logbook.forget(withdrawn)

    def _rehearse(self, steps: list[PlanStep], observed: Observed, outcome: Outcome) -> list[PlanStep]:
        """Ask of each eviction of a set whether it would be allowed: a set of which one is refused is left alone."""
        sets: dict[str, list[PlanStep]] = {}
        for step in steps:
            sets.setdefault(step.beneficiary or f"\0{step.workload}", []).append(step)

        before, workloads = len(outcome.failures), observed.workloads
        together = [s for s in steps if len(sets[_set_of(s)]) > 1]
        self._all(lambda step: self._try(step, observed, workloads), together, outcome, note=False)
        refused = {(f.workload, f.task) for f in outcome.failures[before:]}
        broken = {name for name, members in sets.items() if any((s.workload, s.task) in refused for s in members)}
        outcome.skipped += [s for s in steps if _set_of(s) in broken]
        return [s for s in steps if _set_of(s) not in broken]

    def _try(self, step: PlanStep, observed: Observed, workloads: Mapping[str, Workload]) -> None:
        """Make an eviction without effect."""
        pod = observed.pod(step.workload, step.task_index)
        self._let_go(step, pod, pod.version, workloads, observed, dry=True)

    def _let_go(
        self,
        step: PlanStep,
        pod: PodRecord,
        version: str,
        workloads: Mapping[str, Workload],
        observed: Observed,
        *,
        dry: bool = False,
    ) -> None:
        """Evict a pod; delete it where nothing keeps it but a budget that has allowed nothing for too long."""
        try:
            self._ask_to_go(pod, version, dry=dry)
        except ApiError as error:
            if error.status not in REFUSED_BY_BUDGET or not self._overdue.is_overdue(
                step, pod, workloads[step.workload], observed.cluster
            ):
                raise
            if not dry:  # no other reason than this one will ever stand there
                self._patch(pod, patches.target_again(pod, step, observed.cluster.now))
            self.client.delete(patches.pod_path(pod), patches.deletion(pod, dry=dry))

    def _ask_to_go(self, pod: PodRecord, version: str, *, dry: bool) -> None:
        """Ask for an eviction, whatever the pod's owner has changed in it since it had that version."""
        path = patches.pod_path(pod, "eviction")
        try:
            self.client.create(path, patches.eviction(pod, version, dry=dry))
        except ApiError as error:
            if not self._still_runs(pod, error):
                raise
            self.client.create(path, patches.eviction(pod, dry=dry))

    def _evict(
        self, steps: list[PlanStep], plan: Plan, observed: Observed, workloads: Mapping[str, Workload], outcome: Outcome
    ) -> None:
        if not steps:
            return
        entries: dict[str, eviction_log.EvictionEntry] = {}
        times = times_evicted(plan, workloads, observed.cluster.settings.worth.forgotten_after)
        for step in steps:
            pod = observed.pod(step.workload, step.task_index)
            entry = self._recorded(step, plan, observed, workloads, outcome)
            if entry is not None:
                entries[pod.uid] = structs.replace(entry, times=times.get(step.workload, 0))
        unwritten = self.logbook.add(list(entries.values()), plan.now, observed)
        steps = self._on_record(steps, entries, unwritten, observed, outcome)

        def evict(step: PlanStep) -> None:
            pod = observed.pod(step.workload, step.task_index)
            marked = self._mark(pod, step, plan.now)
            self._let_go(step, pod, marked, workloads, observed)
            self.informers.pods.assume(pod, pod_records.evicted(pod, plan.now))
            with suppress(ApiError):  # it goes, whether it still says why or not
                self._patch(pod, patches.target_again(pod, step, plan.now))

        before, done = len(outcome.failures), len(outcome.done)
        self._all(evict, steps, outcome)
        granted = [entries[observed.pod(s.workload, s.task_index).uid] for s in outcome.done[done:]]
        outcome.evicted += granted
        self.logbook.confirm(granted)
        failed = outcome.failures[before:]
        known = {(f.workload, f.task) for f in failed if f.error.is_refusal}
        unknown = {(f.workload, f.task) for f in failed if not f.error.is_refusal}
        self.logbook.doubt([e for e in entries.values() if (e.workload, e.task) in unknown])
        if known:
            self.logbook.remove([e for e in entries.values() if (e.workload, e.task) in known])

    def _recorded(
        self, step: PlanStep, plan: Plan, observed: Observed, workloads: Mapping[str, Workload], outcome: Outcome
    ) -> eviction_log.EvictionEntry | None:
        """Give the record of an eviction; one of which none can be made is not carried out."""
        try:
            return self._entry(step, plan, observed, workloads)
        except Exception as error:  # noqa: BLE001  one pod that cannot be written down costs no other eviction
            outcome.failures.append(Failure(step.action, step.workload, step.task, _broken(error)))
            return None

    def _on_record(
        self,
        steps: list[PlanStep],
        entries: dict[str, eviction_log.EvictionEntry],
        unwritten: dict[str, ApiError],
        observed: Observed,
        outcome: Outcome,
    ) -> list[PlanStep]:
        """Leave out evictions that are not on record, and with each the others of its set."""
        broken = set()
        for step in steps:
            uid = observed.pod(step.workload, step.task_index).uid
            if uid in unwritten:
                outcome.failures.append(Failure(step.action, step.workload, step.task, unwritten[uid]))
            if uid in unwritten or uid not in entries:
                broken.add(_set_of(step))
        if not broken:
            return steps
        left = [s for s in steps if _set_of(s) in broken]
        outcome.skipped += left
        uids = {observed.pod(s.workload, s.task_index).uid for s in left} - set(unwritten)
        written = [entries[uid] for uid in sorted(uids & set(entries))]
        if written:
            self.logbook.remove(written)
        return [s for s in steps if _set_of(s) not in broken]

    def _mark(self, pod: PodRecord, step: PlanStep, now: int) -> str:
        """Write on a pod why it goes, and give the version that it has then.

        Its owner may have filled its annotations so that nothing can be added: then its condition alone says it.
        """
        try:
            return patches.version_of(self._patch_running(pod, patches.target(pod, step, now)))
        except ApiError as error:
            if error.status not in _TOO_MUCH:
                raise
        return patches.version_of(self._patch_running(pod, patches.target(pod, step, now, plainly=True)))

    def _entry(
        self, step: PlanStep, plan: Plan, observed: Observed, workloads: Mapping[str, Workload]
    ) -> eviction_log.EvictionEntry:
        pod = observed.pod(step.workload, step.task_index)
        not_before = plan.requeue.not_before.get(step.workload)
        uid = "" if pod.kept == pod_records.BARE else observed.made[step.workload].workload.uid
        asked = {key for rule in observed.cluster.settings.disruption.budgets for key in _keys_of(rule.selector)}
        settings = observed.cluster.settings
        return eviction_log.entry_of(
            logged(step, workloads, plan.now, settings), pod.uid, uid, not_before, asked,
            saved=_saved(pod, step, settings, workloads[step.workload], plan.now), version=pod.version,
        )  # fmt: skip

    # -- all of them ------------------------------------------------------------------------------------------------

    def _patch(self, pod: PodRecord, body: dict[str, Any]) -> bytes:
        return self.client.patch(patches.pod_path(pod, "status"), body, STRATEGIC)

    def _patch_running(self, pod: PodRecord, body: dict[str, Any]) -> bytes:
        """Change what runs, whatever its owner has changed in it meanwhile: who keeps changing it escapes nothing."""
        try:
            return self._patch(pod, body)
        except ApiError as error:
            if not self._still_runs(pod, error):
                raise
        return self._patch(pod, patches.whatever_version(body))

    def _still_runs(self, pod: PodRecord, error: ApiError) -> bool:
        """Whether a conflict is about nothing that was decided on: the same pod runs on where it ran."""
        if error.status != _CONFLICT:
            return False
        with self.informers.pods.lock:
            now = self.informers.pods.records.get(pod.key)
        return (
            now is not None
            and now.uid == pod.uid
            and not now.is_going
            and now.task.phase in ACTIVE
            and now.task.node == pod.task.node
        )

    def _all(
        self, write: Callable[[PlanStep], None], steps: Sequence[PlanStep], outcome: Outcome, *, note: bool = True
    ) -> None:
        """Make one write for each step, several at a time; what is refused is noted, and the others go on."""
        for step, error in zip(steps, self._in_parallel(lambda s: self._attempt(write, s), steps), strict=True):
            if error is not None or note:
                _note(outcome, step, error)

    def _attempt(self, write: Callable[[PlanStep], None], step: PlanStep) -> ApiError | None:
        """Make the write of a step; gives why it was refused."""
        self.allowed()
        try:
            write(step)
        except ApiError as error:
            return error
        except NotLeaderError:
            raise
        except Exception as error:  # noqa: BLE001  one step that cannot be written takes no other with it
            return _broken(error)
        return None

    def _in_parallel(self, write: Callable[[PlanStep], T], steps: Sequence[PlanStep]) -> Iterable[T]:
        return map(write, steps) if len(steps) == 1 else self._pool.map(write, steps)


def sealed_at_bind(pod: PodRecord, workload: Workload, devices: tuple[int, ...], start: int | None) -> Seal:
    """Give what is sealed of a pod that is being bound; its workload starts with it where that has no ``start`` yet.

    Then no time is written: the API server's time of the placement is the start, whatever this process's clock says.
    """
    kept = pod.kept if pod.kept in (pod_records.BARE, pod_records.DAEMON) else ""
    started = "" if start is None else format_time(start)
    return Seal(
        queue=workload.queue,
        started=started,
        devices=tuple(devices),
        fixed=not workload.is_preemptible,
        kept=kept,
        first=start is None,
    )


def _awaited(step: PlanStep) -> str:
    """Say what a pod waits for that has a place."""
    key, volume, node = step.volumes[0]
    name = key.partition("/")[2]
    more = f", and for {len(step.volumes) - 1} more" if len(step.volumes) > 1 else ""
    what = f"is being bound to volume {volume}" if volume else f"gets its volume for node {node}"
    return f"it waits for claim {name}, which {what}{more}"


def _saved(pod: PodRecord, step: PlanStep, settings: Settings, workload: Workload, now: int) -> dict[str, int]:
    """Give what of a pod's work its checkpoints keep: what it held since it began, without what has to be done again.

    What is lost includes the restart, which has not been worked yet.
    """
    began, checkpoint = pod.task.started_at, workload.checkpoint
    again = 0 if checkpoint is None else min(checkpoint.restart_overhead, settings.disruption.max_restart_overhead)
    kept = 0 if began is None else now - began - max(0, step.lost - again)
    return lost_amounts(pod.task.spec, kept, settings) if kept > 0 else {}


def _told_meanwhile(pod: PodRecord, now: PodRecord | None, error: ApiError) -> PodRecord | None:
    """Give a pod as it is now, if a conflict is about nothing but what was written on it of why it waits."""
    if error.status != _CONFLICT or now is None:
        return None
    return now if replace(now, version=pod.version, waits=pod.waits) == pod else None


def _only_binds(plan: Plan) -> bool:
    return all(step.action == "bind" for step in plan.steps)


def _note(outcome: Outcome, step: PlanStep, error: ApiError | None) -> None:
    """Note what became of a step."""
    if error is None:
        outcome.done.append(step)
    else:
        outcome.failures.append(Failure(step.action, step.workload, step.task, error))


def _broken(error: Exception) -> ApiError:
    """Give an error of this process as one of a write."""
    return ApiError(0, BROKEN, brief(error))


def _keys_of(selector: LabelSelector | None) -> Iterator[str]:
    if selector is not None:
        yield from (key for key, _ in selector.match_labels)
        yield from (requirement.key for requirement in selector.match_expressions)


class _Due(NamedTuple):
    pod: PodRecord
    landing: ReplacementNomination | None = None


def _with_pods(plan: Plan, observed: Observed) -> Plan:
    """Leave out steps of tasks that only stand in for pods that are expected."""
    steps = [s for s in plan.steps if observed.has_pod(s.workload, s.task_index)]
    expired = [(key, task) for key, task in plan.expired if observed.has_pod(key, task)]
    return (
        plan
        if len(steps) == len(plan.steps) and expired == plan.expired
        else replace(plan, steps=steps, expired=expired)
    )


def _set_of(step: PlanStep) -> str:
    return step.beneficiary or f"\0{step.workload}"
