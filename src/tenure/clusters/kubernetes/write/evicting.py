"""Evictions on an API server: announced, rehearsed, written down, marked, and made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from msgspec import structs

from tenure.clusters.kubernetes.cache import pod_records
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.clusters.kubernetes.read import eviction_log
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.read.workloads import ACTIVE
from tenure.clusters.kubernetes.write import eviction_log_writer, patches
from tenure.clusters.kubernetes.write.outcome import Failure, Outcome
from tenure.clusters.kubernetes.write.overdue import REFUSED_BY_BUDGET, OverdueBudgets
from tenure.clusters.kubernetes.write.pod_writer import PodWriter, broken
from tenure.clusters.record import logged, times_evicted
from tenure.engine.plan import EVICTING, Plan, PlanStep
from tenure.engine.state.cost import lost_amounts
from tenure.model.selectors import LabelSelector
from tenure.model.settings import Settings
from tenure.model.workload import Workload

_TOO_MUCH: Final = frozenset({413, 422})
"""Answers to a write that makes an object larger than it may be."""


class EvictionWriter:
    """The writer of evictions: each is announced, marked and on record before it is made."""

    def __init__(self, pods: PodWriter, logbook: eviction_log_writer.EvictionLogWriter) -> None:
        self._write = pods
        self._informers = pods.informers
        self._overdue = OverdueBudgets(pods.informers)
        self._logbook = logbook

    def refusals(self, plan: Plan, observed: Observed) -> list[Failure]:
        """Ask of each eviction of a plan whether it would be allowed; none is made."""
        asked = Outcome()
        steps = [s for s in plan.steps if s.action == "evict"]
        self._write.each(lambda step: self._try(step, observed), steps, asked, notes_done=False)
        return asked.failures

    def announce(self, plan: Plan, observed: Observed, outcome: Outcome) -> None:
        """Write notices, with where the pods are to land, and withdraw those that no longer pay."""
        landings = {(s.workload, s.task_index): s for s in plan.steps if s.action == "nominate"}

        def announce(step: PlanStep) -> None:
            pod = observed.pod(step.workload, step.task_index)
            landing = landings.get((step.workload, step.task_index))
            note = None if step.action == "withdraw" else patches.note_of(step, landing, plan.now)
            self._write.patch_running(pod, patches.notice(pod, note, plan.now))
            self._informers.pods.assume(pod, pod_records.noticed(pod, note))

        self._write.each(announce, [s for s in plan.steps if s.action in ("notice", "withdraw")], outcome)
        withdrawn = {(s.workload, s.task) for s in plan.steps if s.action == "withdraw"}
        if withdrawn:
            self._logbook.forget(withdrawn)

    def mark_stale(self, plan: Plan, observed: Observed, outcome: Outcome) -> None:
        """Write on pods of gangs since when these have less than their minimum, and take it back."""
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
            self._write.patch_running(pod, patches.stale(pod, step.leaves_at or None, plan.now))

        self._write.each(mark, marks, outcome)

    def _rehearse(self, steps: list[PlanStep], observed: Observed, outcome: Outcome) -> list[PlanStep]:
        """Ask of each eviction of a set whether it would be allowed: a set of which one is refused is left alone."""
        sets: dict[str, list[PlanStep]] = {}
        for step in steps:
            sets.setdefault(_set_of(step), []).append(step)

        before = len(outcome.failures)
        together = [s for s in steps if len(sets[_set_of(s)]) > 1]
        self._write.each(lambda step: self._try(step, observed), together, outcome, notes_done=False)
        refused = {(f.workload, f.task) for f in outcome.failures[before:]}
        broken = {name for name, members in sets.items() if any((s.workload, s.task) in refused for s in members)}
        outcome.skipped += [s for s in steps if _set_of(s) in broken]
        return [s for s in steps if _set_of(s) not in broken]

    def _try(self, step: PlanStep, observed: Observed) -> None:
        """Make an eviction without effect."""
        pod = observed.pod(step.workload, step.task_index)
        self._let_go(step, pod, pod.version, observed, dry=True)

    def _let_go(self, step: PlanStep, pod: PodRecord, version: str, observed: Observed, *, dry: bool = False) -> None:
        """Evict a pod; delete it where nothing keeps it but a budget that has allowed nothing for too long."""
        try:
            self._ask_to_go(pod, version, dry=dry)
        except ApiError as error:
            if error.status not in REFUSED_BY_BUDGET:
                raise
            if not self._overdue.is_overdue(step, pod, observed.workloads[step.workload], observed.cluster):
                raise
            if not dry:  # no other reason than this one will ever stand there
                self._write.patch(pod, patches.target_again(pod, step, observed.cluster.now))
            self._write.client.delete(patches.pod_path(pod), patches.deletion(pod, dry=dry))

    def _ask_to_go(self, pod: PodRecord, version: str, *, dry: bool) -> None:
        """Ask for an eviction, whatever the pod's owner has changed in it since it had that version."""
        path = patches.pod_path(pod, "eviction")
        try:
            self._write.client.create(path, patches.eviction(pod, version, dry=dry))
        except ApiError as error:
            if not self._write.still_runs(pod, error):
                raise
            self._write.client.create(path, patches.eviction(pod, dry=dry))

    def carry_out(self, steps: list[PlanStep], plan: Plan, observed: Observed, outcome: Outcome) -> None:
        """Make evictions that are allowed, set by set: each is on record before, and says on its pod why it goes."""
        steps = self._rehearse(steps, observed, outcome)
        if not steps:
            return
        entries = self._entries(steps, plan, observed, outcome)
        unwritten = self._logbook.add(list(entries.values()), plan.now, observed)
        steps = self._on_record(steps, entries, unwritten, observed, outcome)

        def evict(step: PlanStep) -> None:
            pod = observed.pod(step.workload, step.task_index)
            marked = self._mark(pod, step, plan.now)
            self._let_go(step, pod, marked, observed)
            self._informers.pods.assume(pod, pod_records.evicted(pod, plan.now))
            with suppress(ApiError):  # it goes, whether it still says why or not
                self._write.patch(pod, patches.target_again(pod, step, plan.now))

        before, done = len(outcome.failures), len(outcome.done)
        self._write.each(evict, steps, outcome)
        granted = [entries[observed.pod(s.workload, s.task_index).uid] for s in outcome.done[done:]]
        outcome.evicted += granted
        self._logbook.confirm(granted)
        failed = outcome.failures[before:]
        known = {(f.workload, f.task) for f in failed if f.error.is_refusal}
        unknown = {(f.workload, f.task) for f in failed if not f.error.is_refusal}
        self._logbook.doubt([e for e in entries.values() if (e.workload, e.task) in unknown])
        if known:
            self._logbook.remove([e for e in entries.values() if (e.workload, e.task) in known])

    def _entries(
        self, steps: list[PlanStep], plan: Plan, observed: Observed, outcome: Outcome
    ) -> dict[str, eviction_log.EvictionEntry]:
        """Give the records of evictions, by pod; one of which none can be made is a failure."""
        entries = {}
        times = times_evicted(plan, observed.workloads, observed.cluster.settings.worth.forgotten_after)
        for step in steps:
            try:
                entry = self._entry(step, plan, observed)
            except Exception as error:  # noqa: BLE001  one pod that cannot be written down costs no other eviction
                outcome.failures.append(Failure(step.action, step.workload, step.task, broken(error)))
                continue
            uid = observed.pod(step.workload, step.task_index).uid
            entries[uid] = structs.replace(entry, times=times.get(step.workload, 0))
        return entries

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
            self._logbook.remove(written)
        return [s for s in steps if _set_of(s) not in broken]

    def _mark(self, pod: PodRecord, step: PlanStep, now: int) -> str:
        """Write on a pod why it goes, and give the version that it has then.

        Its owner may have filled its annotations so that nothing can be added: then its condition alone says it.
        """
        try:
            return patches.version_of(self._write.patch_running(pod, patches.target(pod, step, now)))
        except ApiError as error:
            if error.status not in _TOO_MUCH:
                raise
        return patches.version_of(self._write.patch_running(pod, patches.target(pod, step, now, plainly=True)))

    def _entry(self, step: PlanStep, plan: Plan, observed: Observed) -> eviction_log.EvictionEntry:
        workloads = observed.workloads
        pod = observed.pod(step.workload, step.task_index)
        not_before = plan.requeue.not_before.get(step.workload)
        uid = "" if pod.kept == pod_records.BARE else observed.made[step.workload].workload.uid
        asked = {key for rule in observed.cluster.settings.disruption.budgets for key in _keys_of(rule.selector)}
        settings = observed.cluster.settings
        return eviction_log.entry_of(
            logged(step, workloads, plan.now, settings), pod.uid, uid, not_before, asked,
            saved=_saved(pod, step, settings, workloads[step.workload], plan.now), version=pod.version,
        )  # fmt: skip


def _saved(pod: PodRecord, step: PlanStep, settings: Settings, workload: Workload, now: int) -> dict[str, int]:
    """Give what of a pod's work its checkpoints keep: what it held since it began, without what has to be done again.

    What is lost includes the restart, which has not been worked yet.
    """
    began, checkpoint = pod.task.started_at, workload.checkpoint
    again = 0 if checkpoint is None else min(checkpoint.restart_overhead, settings.disruption.max_restart_overhead)
    kept = 0 if began is None else now - began - max(0, step.lost - again)
    return lost_amounts(pod.task.spec, kept, settings) if kept > 0 else {}


def _keys_of(selector: LabelSelector | None) -> Iterator[str]:
    if selector is not None:
        yield from (key for key, _ in selector.match_labels)
        yield from (requirement.key for requirement in selector.match_expressions)


def _set_of(step: PlanStep) -> str:
    return step.beneficiary or f"\0{step.workload}"
