"""Pods as manifests describe them, on their way into workloads that might be submitted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from tenure.model.entries import EntryValues
from tenure.model.file.expand import Expander
from tenure.model.manifests.claims import read_template
from tenure.model.manifests.pods import PodFields, metadata_entry, pod_entry, read_annotations, read_pod
from tenure.model.manifests.priority_classes import PriorityClass, PriorityClasses
from tenure.model.manifests.runtime_classes import RuntimeClasses
from tenure.model.values.report import BAD, ProblemReport, Trail, trail_of, unroll
from tenure.model.volumes import VolumeClaim
from tenure.model.workload import NEVER, ContenderPolicy, Phase, Task

QUEUE_LABELS = ("tenure.dev/queue", "kai.scheduler/queue", "queue")
"""Labels that name a queue; the first that is there counts."""


class OwnClaim(NamedTuple):
    """A claim that each of some pods gets: how it is called, with ``{0}`` for the pod's name, and what it is like."""

    named: str
    claim: VolumeClaim


class DescribedPod(NamedTuple):
    """A pod as a manifest describes it: what is asked of its node, its priority class, its annotations and claims."""

    spec: PodFields
    given: PriorityClass
    extra: dict[str, Any]
    own: tuple[OwnClaim, ...]


class PodManifestReader:
    """Reads the pods of a document, and templates of pods; ``made_claims`` are those that its pods get with them."""

    def __init__(
        self, classes: PriorityClasses, runtimes: RuntimeClasses, expander: Expander, report: ProblemReport
    ) -> None:
        self.classes = classes
        self.runtimes = runtimes
        self.expander = expander
        self.report = report
        self.made_claims: list[VolumeClaim] = []

    def described(self, value: dict[str, Any], at: Trail, metadata: EntryValues, namespace: str) -> DescribedPod | None:
        """Read a pod, or a template of one."""
        spec = self._fields(value.get("spec"), (at, "spec"), metadata)
        if spec is None:
            return None
        extra, given = read_annotations(metadata, self.report), self._class_of(spec, (at, "spec"))
        return DescribedPod(spec, given, extra, self._ephemeral(spec, namespace, at))

    def _ephemeral(self, spec: PodFields, namespace: str, at: Trail) -> tuple[OwnClaim, ...]:
        """Read the claims of which a pod gets one each with its volumes."""
        found = []
        for number, name, template in spec.own_claims:
            trail = trail_of((*unroll(at), "spec", "volumes", number, "ephemeral", "volumeClaimTemplate"))
            claim = read_template(template, namespace, trail, self.report)
            if claim is not None:
                found.append(OwnClaim("{0}-" + name, claim))
        return tuple(found)

    def mounting_own(self, task: Task, own: Iterable[OwnClaim]) -> Task:
        """Give a task that mounts claims of its own, which are there as it is."""
        names = []
        for named, claim in own:
            names.append(named.replace("{0}", task.name))
            self.made_claims.append(replace(claim, name=names[-1]))
        mounted = tuple(dict.fromkeys((*task.spec.claims, *names)))
        return replace(task, spec=replace(task.spec, claims=mounted)) if names else task

    def metadata(self, value: dict[str, Any], at: Trail) -> EntryValues:
        """Read what an object, or a template, is called and labelled."""
        trail = (at, "metadata")
        read = metadata_entry().decode(value.get("metadata") or {}, trail, self.report)
        return EntryValues(trail, {}) if read is BAD else read

    def name(self, metadata: EntryValues) -> str:
        """Give the name of an object, or the beginning of one."""
        name = metadata.values.get("name") or metadata.values.get("generateName", "").rstrip("-")
        if not name:
            self.report.add((metadata.at, "name"), "is missing; it is required")
        return name or "unnamed"

    def _fields(self, value: Any, at: Trail, metadata: EntryValues) -> PodFields | None:
        if value is None:
            self.report.add(at, "is missing; it is required")
            return None
        read = pod_entry().decode(value, at, self.report)
        return (
            None if read is BAD else read_pod(self.runtimes.added_to(read, self.report), metadata.values, self.report)
        )

    def _class_of(self, spec: PodFields, at: Trail) -> PriorityClass:
        """Give what a pod has from its priority class; a priority of its own counts before that of the class."""
        found = self.classes.of(spec.priority_class)
        if found is None and spec.priority is None:
            self.report.add(
                (at, "priorityClassName"),
                f"priority class {spec.priority_class} is not known here; add its value as priority: N, or the class",
            )
        found = found or PriorityClass()
        found = found if spec.preemption_policy is None else replace(found, preemption_policy=spec.preemption_policy)
        return found if spec.priority is None else replace(found, value=spec.priority)

    def task(self, name: str, pod: DescribedPod, at: Trail, metadata: EntryValues) -> Task:
        """Make a task of a pod."""
        made = self.expander.spec({**pod.spec.asked, **pod.extra}, (at, "annotations"))
        phase = Phase.GATED if pod.spec.is_gated else Phase.PENDING
        annotations = {**pod.given.annotations, **metadata.values.get("annotations", {})}
        return Task(name=name, spec=made, phase=phase, grace_period=pod.spec.grace_period, annotations=annotations)


def queue_of(labels: dict[str, str]) -> str:
    """Give the queue that labels name, if they name one."""
    return next((labels[key] for key in QUEUE_LABELS if labels.get(key)), "")


def policy_of(stated: Iterable[ContenderPolicy | None]) -> ContenderPolicy | None:
    """Give the policy of a workload: nothing is evicted for it where one of its pods says so."""
    return "Never" if any(policy == NEVER for policy in stated) else None
