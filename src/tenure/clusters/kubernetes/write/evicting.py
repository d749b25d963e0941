"""Evictions on an API server: announced, rehearsed, written down, marked, and made."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from tenure.clusters.kubernetes.cache import pod_records
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.clusters.kubernetes.read import eviction_log
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.read.workloads import ACTIVE
from tenure.clusters.kubernetes.write import eviction_log_writer, patches
from tenure.clusters.kubernetes.write.eviction_entries import eviction_entries
from tenure.clusters.kubernetes.write.eviction_requests import EvictionRequests
from tenure.clusters.kubernetes.write.outcome import Failure, Outcome
from tenure.clusters.kubernetes.write.pod_writer import PodWriter
from tenure.engine.plan import EVICTING, Plan, PlanStep

_TOO_MUCH: Final = frozenset({413, 422})
"""Answers to a write that makes an object larger than it may be."""


class EvictionWriter:
    """The writer of evictions: each is announced, marked and on record before it is made."""

    def __init__(self, pods: PodWriter, logbook: eviction_log_writer.EvictionLogWriter) -> None:
        self._write = pods
        self._informers = pods.informers
        self._requests = EvictionRequests(pods)
        self._logbook = logbook

    def refusals(self, plan: Plan, observed: Observed) -> list[Failure]:
        """Ask of each eviction of a plan whether it would be allowed; none is made."""
        asked = Outcome()
        steps = [s for s in plan.steps if s.action == "evict"]
        self._write.each(lambda step: self._requests.rehearse(step, observed), steps, asked, notes_done=False)
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
        self._write.each(lambda step: self._requests.rehearse(step, observed), together, outcome, notes_done=False)
        refused = {(f.workload, f.task) for f in outcome.failures[before:]}
        broken = {name for name, members in sets.items() if any((s.workload, s.task) in refused for s in members)}
        outcome.skipped += [s for s in steps if _set_of(s) in broken]
        return [s for s in steps if _set_of(s) not in broken]

    def carry_out(self, steps: list[PlanStep], plan: Plan, observed: Observed, outcome: Outcome) -> None:
        """Make evictions that are allowed, set by set: each is on record before, and says on its pod why it goes."""
        steps = self._rehearse(steps, observed, outcome)
        if not steps:
            return
        entries = eviction_entries(steps, plan, observed, outcome)
        unwritten = self._logbook.add(list(entries.values()), plan.now, observed)
        steps = self._on_record(steps, entries, unwritten, observed, outcome)

        def evict(step: PlanStep) -> None:
            pod = observed.pod(step.workload, step.task_index)
            marked = self._mark(pod, step, plan.now)
            self._requests.let_go(step, pod, marked, observed)
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


def _set_of(step: PlanStep) -> str:
    return step.beneficiary or f"\0{step.workload}"
