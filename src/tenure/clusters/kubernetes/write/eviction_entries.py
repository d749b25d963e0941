"""The entries of the eviction log that are written before their evictions are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from tenure.clusters.kubernetes.cache import pod_records
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.read import eviction_log
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.write.outcome import Failure, Outcome
from tenure.clusters.kubernetes.write.pod_writer import broken
from tenure.clusters.record import logged, times_evicted
from tenure.engine.plan import Plan, PlanStep
from tenure.engine.state.cost import lost_amounts
from tenure.model.selectors import LabelSelector
from tenure.model.settings import Settings
from tenure.model.workload import Workload


def eviction_entries(
    steps: list[PlanStep], plan: Plan, observed: Observed, outcome: Outcome
) -> dict[str, eviction_log.EvictionEntry]:
    """Give the records of evictions, by pod; one of which none can be made is a failure."""
    entries = {}
    times = times_evicted(plan, observed.workloads, observed.cluster.settings.worth.forgotten_after)
    for step in steps:
        try:
            entry = _entry(step, plan, observed)
        except Exception as error:  # noqa: BLE001  one pod that cannot be written down costs no other eviction
            outcome.failures.append(Failure(step.action, step.workload, step.task, broken(error)))
            continue
        uid = observed.pod(step.workload, step.task_index).uid
        entries[uid] = structs.replace(entry, times=times.get(step.workload, 0))
    return entries


def _entry(step: PlanStep, plan: Plan, observed: Observed) -> eviction_log.EvictionEntry:
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
