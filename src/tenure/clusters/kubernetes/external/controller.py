"""Guiding another scheduler: nodes are kept free for its pods by a taint, and replacements are kept off their origin.

The order of writes is such that whoever takes over after any of them finds the record of what was begun: the record
is written first and goes last. Tolerations cannot be taken from a pod again; their value ends with the record.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.decoding import decode
from tenure.clusters.kubernetes.external import reservations
from tenure.clusters.kubernetes.external.admission import BINDING_PATH, NAME
from tenure.clusters.kubernetes.external.reservations import NodeReservation
from tenure.clusters.kubernetes.external.seen import SECOND, SeenReservation
from tenure.clusters.kubernetes.write import patches
from tenure.clusters.kubernetes.write.outcome import Failure, Outcome
from tenure.engine.plan import PlanStep
from tenure.model.workload import Phase

DEAF: Final = 20 * SECOND
"""µs after its writing from which on a record that admission does not know is not waited for any more."""

CHECKED_SECONDS: Final = 60.0
"""For so long the admission policy that was found is taken to be there."""

STUCK: Final = 30 * SECOND
"""µs after which a replacement that waits in vain, kept off nodes by a record that is gone, is made anew."""

LATE: Final = DEAF
"""µs for which admission may go on keeping pods off nodes by a record that is gone: it reads records later."""

MOST_RENEWED: Final = 10_000
"""Controllers that are remembered whose pods were made anew."""

JSON_PATCH: Final = "application/json-patch+json"
CONFLICT: Final = 409
"""What the API server answers to a write of a version that is not the newest, or of what is there already."""

_GONE, _INVALID = 404, 422
_TRIES: Final = 3
_MISSING: Final = (
    f"the admission policy {NAME} is not installed; apply what tenure install prints for settings in which "
    "rescheduler.schedulers names a scheduler"
)
NOT_KNOWN: Final = (
    f"the API server does not apply the admission policy {NAME}: apply what tenure install prints; if that is done, "
    "restart the API server, which reads no ConfigMap for policies any more once their bindings were deleted"
)


class ReservationController:
    """The writer of node reservations, which it also takes back. The ``client`` refuses to write where that is lost."""

    def __init__(self, client: Client, informers: InformerCache) -> None:
        self.client = client
        self.informers = informers
        self.seen = SeenReservation(informers)
        self._checked = float("-inf")
        self._known: str | None = None
        self._renewed: dict[str, int] = {}

    def is_known(self, hole: NodeReservation, outcome: Outcome) -> bool:
        """Whether the admission policy is in effect for the record as it is: the API server is asked by a dry run."""
        item = self.seen.item()
        if item is None:
            return False
        version = item.metadata.resource_version
        if version != self._known:
            try:
                answer = self.client.patch(
                    f"{self._maps()}/{item.metadata.name}?dryRun=All", {"metadata": {"resourceVersion": version}}
                )
            except ApiError as error:
                outcome.failures.append(Failure("hold", ", ".join(hole.whose), "", error))
                return False
            annotations = decode(answer, api.ApiObject).metadata.annotations
            self._known = (annotations or {}).get(keys.SEEN)
        return version == self._known

    # -- keeping ----------------------------------------------------------------------------------------------------

    def keep(self, hole: NodeReservation, outcome: Outcome) -> bool:
        """Write a record and do what it says; False where the record could not be written, and nothing was done."""
        try:
            self._check()
            self._write(hole)
        except ApiError as error:
            outcome.failures.append(Failure("hold", ", ".join(hole.whose), "", error))
            return False
        for node in hole.nodes:
            self._attempt("hold", node, partial(self._taint, node, hole.id), outcome)
        for pod in self.seen.pods(hole.pods):
            if not reservations.tolerates(pod.task.spec, hole.id):
                self._attempt("hold", pod.name, partial(self._tolerate, pod, hole.id), outcome)
        return True

    def release(self, hole: NodeReservation, outcome: Outcome, *, landing: bool) -> None:
        """Take the taints off, and the record away: what is still ``landing`` is kept in it, for nobody to be moved."""
        names = [node.name for node in self.seen.tainted()]
        left = [n for n in names if not self._attempt("release", n, partial(self._taint, n, None), outcome)]
        if left:
            return  # the record stays until all is undone
        if landing:
            kept = msgspec.structs.replace(hole, nodes=(), pods=(), released=True)
            if kept != hole:
                self._attempt("release", hole.id, partial(self._write, kept), outcome)
        else:
            self._attempt("release", hole.id, self._drop, outcome)

    def tidy(self, hole: NodeReservation | None, outcome: Outcome, now: int) -> None:
        """Take off taints that no record names, and let replacements be made anew that are kept off nodes in vain."""
        for node in list(self.seen.tainted()):
            if hole is None or node.name not in hole.nodes or not reservations.is_tainted(node, hole.id):
                self._attempt("release", node.name, partial(self._taint, node.name, None), outcome)
        guided = set() if hole is None or hole.released else {m.controller for m in hole.moves}
        for controller in guided:
            self._renewed.pop(controller, None)
        for pod in self.seen.records():
            if self._is_stuck(pod, now) and pod.controller not in guided and self._is_replacement(pod, now):
                self._attempt("release", pod.name, partial(self._anew, pod), outcome)

    # -- the writes -------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        """See that the admission policy is bound: without it replacements could go back."""
        now = time.monotonic()
        if now - self._checked < CHECKED_SECONDS:
            return
        try:
            self.client.get(BINDING_PATH)
        except ApiError as error:
            if error.status == _GONE:
                raise ApiError(error.status, error.reason, _MISSING) from None
            raise
        self._checked = now

    def _write(self, hole: NodeReservation) -> None:
        path, options, item = self._maps(), self.informers.options, self.seen.item()
        if item is None:
            self.client.create(path, reservations.body_of(hole, options.pool))
        else:
            body = reservations.body_of(hole, options.pool, item.metadata.resource_version)
            self.client.replace(f"{path}/{item.metadata.name}", body)

    def _drop(self) -> None:
        item = self.seen.item()
        if item is not None:
            conditions = {"uid": item.metadata.uid, "resourceVersion": item.metadata.resource_version}
            self.client.delete(f"{self._maps()}/{item.metadata.name}", {"preconditions": conditions})

    def _taint(self, name: str, id_: str | None) -> None:
        """Set or take off the taint, on what the node is now: the list is written as a whole."""
        path = f"/api/v1/nodes/{name}"
        for attempt in range(_TRIES):
            node = decode(self.client.get(path), api.ApiNode)
            before = node.spec.taints or []
            taints = reservations.with_taint(before, id_)
            if taints == before:
                return
            body = {"metadata": {"resourceVersion": node.metadata.resource_version}, "spec": {"taints": taints}}
            try:
                self.client.patch(path, body)
            except ApiError as error:
                if error.status != CONFLICT or attempt == _TRIES - 1:
                    raise
            else:
                return

    def _tolerate(self, pod: PodRecord, id_: str) -> None:
        """Add a toleration to a pod: the one change of what it asks for that the API server takes."""
        same = {"op": "test", "path": "/metadata/uid", "value": pod.uid}
        added = reservations.toleration(id_)
        try:
            self._patch_pod(pod, [same, {"op": "add", "path": "/spec/tolerations/-", "value": added}])
        except ApiError as error:
            if error.status != _INVALID:
                raise
            self._patch_pod(pod, [same, {"op": "add", "path": "/spec/tolerations", "value": [added]}])

    def _patch_pod(self, pod: PodRecord, patch: list[dict[str, Any]]) -> None:
        self.client.patch(patches.pod_path(pod), patch, JSON_PATCH)

    def _anew(self, pod: PodRecord) -> None:
        """Let what recreates a pod make it anew: nothing of it runs, and what it asks for cannot be changed."""
        self.client.create(patches.pod_path(pod, "eviction"), patches.eviction(pod, pod.version))

    def _attempt(self, action: str, name: str, write: Callable[[], None], outcome: Outcome) -> bool:
        try:
            write()
        except ApiError as error:
            if error.status == _GONE:
                return True  # there is nothing to be done about it any more
            outcome.failures.append(Failure(action, "", name, error))
            return False
        outcome.done.append(PlanStep(action, "", name, name, -1, -1))
        return True

    # -- looking ----------------------------------------------------------------------------------------------------

    def _maps(self) -> str:
        """Give the path of the ConfigMaps of the scheduler's namespace, of which the record is one."""
        return f"/api/v1/namespaces/{self.informers.options.namespace}/configmaps"

    def _is_replacement(self, pod: PodRecord, now: int) -> bool:
        """Whether a pod may be kept off nodes by a record that is gone, and not by what it was made from.

        Those of a controller that come after its first were made anew would else be evicted again and again.
        """
        since = self._renewed.setdefault(pod.controller, now)
        while len(self._renewed) > MOST_RENEWED:
            del self._renewed[next(iter(self._renewed))]
        return pod.created_at < since + LATE

    def _is_stuck(self, pod: PodRecord, now: int) -> bool:
        return (
            reservations.KEPT_OFF in pod.annotations
            and pod.task.phase is Phase.PENDING
            and pod.waits[0] == "Unschedulable"
            and now >= pod.created_at + STUCK
            and bool(pod.controller)
        )
