"""Guiding another scheduler: nodes are kept free for its pods by a taint, and replacements are kept off their origin.

The order of writes is such that whoever takes over after any of them finds the record of what was begun: the record
is written first and goes last. Tolerations cannot be taken from a pod again; their value ends with the record.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.external import reservations
from tenure.clusters.kubernetes.external.admission_check import AdmissionCheck
from tenure.clusters.kubernetes.external.reservations import NodeReservation
from tenure.clusters.kubernetes.external.seen import SeenReservation
from tenure.clusters.kubernetes.external.stuck_replacements import StuckReplacements
from tenure.clusters.kubernetes.external.writes import ReservationWrites
from tenure.clusters.kubernetes.write.outcome import Failure, Outcome
from tenure.engine.plan import PlanStep

_GONE: Final = 404


class ReservationController:
    """The keeper of node reservations, which it also takes back: what is written, and in which order.

    The ``client`` refuses to write where the lease is lost.
    """

    def __init__(self, client: Client, informers: InformerCache) -> None:
        self.informers = informers
        self.seen = SeenReservation(informers)
        self._admission = AdmissionCheck(client)
        self._stuck = StuckReplacements()
        self._writes = ReservationWrites(client, informers.options, self.seen)

    def is_known(self, hole: NodeReservation, outcome: Outcome) -> bool:
        """Whether the admission policy is in effect for the record as it is."""
        item = self.seen.item()
        if item is None:
            return False
        try:
            return self._admission.knows(item)
        except ApiError as error:
            outcome.failures.append(Failure("hold", ", ".join(hole.whose), "", error))
            return False

    def keep(self, hole: NodeReservation, outcome: Outcome) -> bool:
        """Write a record and do what it says; False where the record could not be written, and nothing was done."""
        try:
            self._admission.require_bound()
            self._writes.write_record(hole)
        except ApiError as error:
            outcome.failures.append(Failure("hold", ", ".join(hole.whose), "", error))
            return False
        for node in hole.nodes:
            self._attempt("hold", node, partial(self._writes.taint, node, hole.id), outcome)
        for pod in self.seen.pods(hole.pods):
            if not reservations.tolerates(pod.task.spec, hole.id):
                self._attempt("hold", pod.name, partial(self._writes.tolerate, pod, hole.id), outcome)
        return True

    def release(self, hole: NodeReservation, outcome: Outcome, *, landing: bool) -> None:
        """Take the taints off, and the record away: what is still ``landing`` is kept in it, for nobody to be moved."""
        names = [node.name for node in self.seen.tainted()]
        left = [n for n in names if not self._attempt("release", n, partial(self._writes.taint, n, None), outcome)]
        if left:
            return  # the record stays until all is undone
        if landing:
            kept = msgspec.structs.replace(hole, nodes=(), pods=(), released=True)
            if kept != hole:
                self._attempt("release", hole.id, partial(self._writes.write_record, kept), outcome)
        else:
            self._attempt("release", hole.id, self._writes.drop_record, outcome)

    def tidy(self, hole: NodeReservation | None, outcome: Outcome, now: int) -> None:
        """Take off taints that no record names, and let replacements be made anew that are kept off nodes in vain."""
        for node in list(self.seen.tainted()):
            if hole is None or node.name not in hole.nodes or not reservations.is_tainted(node, hole.id):
                self._attempt("release", node.name, partial(self._writes.taint, node.name, None), outcome)
        guided = set() if hole is None or hole.released else {m.controller for m in hole.moves}
        for pod in self._stuck.among(self.seen.records(), guided, now):
            self._attempt("release", pod.name, partial(self._writes.make_anew, pod), outcome)

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
