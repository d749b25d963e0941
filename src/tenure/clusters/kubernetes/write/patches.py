"""The single writes that a plan is made of: paths and bodies, each with what must still hold for it to count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.decoding import decode
from tenure.clusters.kubernetes.seals import NO_SEAL, NominationNote, NoticeNote, Seal, condition_of
from tenure.engine.plan import PlanStep
from tenure.model.values.duration import format_time
from tenure.model.workload import Nomination

PREEMPTION: Final = "PreemptionByScheduler"
"""Reason of the condition ``DisruptionTarget`` of what a scheduler evicts."""

EVICTED: Final = "tenure: evicted"
TO_BE_EVICTED: Final = "tenure: to be evicted"
"""How the condition's message begins: after the API server has granted an eviction, and before it is asked."""


def pod_path(pod: PodRecord, subresource: str = "") -> str:
    """Give the path of a pod, or of a subresource of it."""
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
    return f"{path}/{subresource}" if subresource else path


def binding(pod: PodRecord, step: PlanStep, started: int | None, names: str = "") -> dict[str, Any]:
    """Give a binding: it counts for this pod alone, and carries when its workload started and which GPUs it has.

    ``names``: of the devices of which it has parts.
    """
    annotations = {}
    if started is not None:
        annotations[keys.STARTED] = format_time(started)
    if step.devices:
        annotations[keys.DEVICES] = ",".join(map(str, step.devices))
    if names:
        annotations[keys.VISIBLE_DEVICES] = names
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid, "annotations": annotations},
        "target": {"apiVersion": "v1", "kind": "Node", "name": step.node},
    }


def nomination(
    pod: PodRecord, nominated_tasks: Nomination, now: int, *, replaces: str = "", needs: Sequence[str] = ()
) -> dict[str, Any]:
    """Give the change by which a pod is promised a place.

    ``replaces`` is the uid of the pod that it stands in for, ``needs`` are those of the pods that go for it.
    """
    node, devices, at = nominated_tasks.node, nominated_tasks.devices, format_time(nominated_tasks.at)
    note = NominationNote(node, at, tuple(devices), replaces, tuple(needs))
    seal = msgspec.structs.replace(pod.sealed or NO_SEAL, nomination=note)
    return _status(
        pod, {keys.NOMINATION: _text(note)}, {"nominatedNodeName": node, "conditions": [condition_of(seal, now)]}
    )


def no_nomination(pod: PodRecord, now: int) -> dict[str, Any]:
    """Give the change by which a promise is given up."""
    seal = msgspec.structs.replace(pod.sealed or NO_SEAL, nomination=None)
    return _status(pod, {keys.NOMINATION: None}, {"nominatedNodeName": None, "conditions": [condition_of(seal, now)]})


def sealing(pod: PodRecord, seal: Seal, now: int) -> dict[str, Any]:
    """Give the change by which a pod says where it is charged; it counts for this very pod, as it was seen."""
    return _status(pod, {}, {"conditions": [condition_of(seal, now)]})


def target(pod: PodRecord, step: PlanStep, now: int, *, plainly: bool = False) -> dict[str, Any]:
    """Give the change that marks a pod before its eviction: why, for whom, and where it lands.

    A notice stays: an eviction that fails now is still announced, and the next attempt needs no notice of its own.
    ``plainly``: by its condition alone, where its owner has left no room for an annotation.
    """
    note = {
        "cause": step.cause, "for": step.beneficiary, "at": format_time(now), "to": step.to, "reason": step.reason,
    }  # fmt: skip
    said = {key: value for key, value in note.items() if value is not None}
    annotations = {} if plainly else {keys.EVICTION: _text(said)}
    return _status(pod, annotations, {"conditions": [_disrupted(step, now, TO_BE_EVICTED)]})


def target_again(pod: PodRecord, step: PlanStep, now: int, version: str = "") -> dict[str, Any]:
    """Give the change that restores the reason, which the Eviction API replaces by its own.

    ``version``: it counts for the pod as it is then alone.
    """
    metadata = {"uid": pod.uid, "resourceVersion": version} if version else {"uid": pod.uid}
    return {"metadata": metadata, "status": {"conditions": [_disrupted(step, now, EVICTED)]}}


def _disrupted(step: PlanStep, now: int, said: str) -> dict[str, Any]:
    whom = f" for {step.beneficiary}" if step.beneficiary else ""
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": PREEMPTION,
        "message": f"{said}{whom} ({step.cause})",
        "lastTransitionTime": format_time(now // 1_000_000 * 1_000_000),
    }


def eviction(pod: PodRecord, version: str = "", *, dry: bool = False) -> dict[str, Any]:
    """Give an eviction of this very pod, as it was when it was decided about; without a version as it is."""
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": _deletion(pod, version, dry=dry),
    }


def deletion(pod: PodRecord, *, dry: bool = False) -> dict[str, Any]:
    """Give a deletion of this very pod."""
    return {"apiVersion": "v1", "kind": "DeleteOptions", **_deletion(pod, "", dry=dry)}


def _deletion(pod: PodRecord, version: str, *, dry: bool) -> dict[str, Any]:
    conditions = {"uid": pod.uid, "resourceVersion": version} if version else {"uid": pod.uid}
    options: dict[str, Any] = {"preconditions": conditions}
    if dry:
        options["dryRun"] = ["All"]
    return options


def note_of(step: PlanStep, landing: PlanStep | None, now: int) -> NoticeNote:
    """Give what a pod is told of its eviction; ``landing`` says where it is to go."""
    return NoticeNote(
        deadline=format_time(step.deadline),
        cause=step.cause or "",
        beneficiary=step.beneficiary,
        at=format_time(step.notice_at if step.notice_at >= 0 else now),
        to=None if landing is None else landing.node,
        devices=() if landing is None else tuple(landing.devices),
    )


def notice(pod: PodRecord, note: NoticeNote | None, now: int) -> dict[str, Any]:
    """Give the change by which an eviction is announced, or a notice withdrawn."""
    seal = msgspec.structs.replace(pod.sealed or NO_SEAL, notice=note)
    text = None if note is None else _text(note)
    return _status(pod, {keys.NOTICE: text}, {"conditions": [condition_of(seal, now)]})


def stale(pod: PodRecord, since: int | None, now: int) -> dict[str, Any]:
    """Give the change that says since when a pod's gang has too few tasks, or that it has enough again."""
    text = None if since is None else format_time(since)
    seal = msgspec.structs.replace(pod.sealed or NO_SEAL, stale=text or "")
    return _status(pod, {keys.STALE_SINCE: text}, {"conditions": [condition_of(seal, now)]})


def waiting(pod: PodRecord, reason: str, message: str, now: int) -> dict[str, Any]:
    """Give the change that says why a pod waits, in the state in which it was seen: not once it is bound."""
    condition = {
        "type": "PodScheduled", "status": "False", "reason": reason, "message": message,
        "lastTransitionTime": format_time(now // 1_000_000 * 1_000_000),
    }  # fmt: skip
    return {"metadata": {"uid": pod.uid, "resourceVersion": pod.version}, "status": {"conditions": [condition]}}


def version_of(answer: bytes) -> str:
    """Give the resourceVersion of the object in an answer."""
    return decode(answer, _Answer).metadata.resource_version


class _AnswerMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Answer(msgspec.Struct):
    metadata: _AnswerMeta


def _status(pod: PodRecord, annotations: Mapping[str, str | None], status: dict[str, Any]) -> dict[str, Any]:
    """Change annotations and status in one write; it counts for this very pod, as it was when it was decided about."""
    metadata = {"uid": pod.uid, "resourceVersion": pod.version, "annotations": annotations}
    return {"metadata": metadata, "status": status}


def whatever_version(body: dict[str, Any]) -> dict[str, Any]:
    """Give a change for this very pod, whatever has been changed in it since it was decided about."""
    return {**body, "metadata": {k: v for k, v in body["metadata"].items() if k != "resourceVersion"}}


def at_version(body: dict[str, Any], version: str) -> dict[str, Any]:
    """Give a change for this very pod as it is in another version."""
    return {**body, "metadata": {**body["metadata"], "resourceVersion": version}}


def _text(note: object) -> str:
    return msgspec.json.encode(note).decode()
