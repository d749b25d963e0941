"""Evictions that were refused lately, as the scheduler's events say: for those who look on from another process.

Nothing is decided by this; it tells what the scheduler that leads keeps in mind.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.decoding import decode
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.write.events import CONTROLLER
from tenure.clusters.refusals import REFUSED, read_note
from tenure.model.cluster import RefusedEviction

MOST: Final = 1_000
"""Events that are looked at."""

_MAY_NOT: Final = frozenset({401, 403, 404})


class _Regarding(msgspec.Struct):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Event(msgspec.Struct, rename="camel"):
    regarding: _Regarding = msgspec.field(default_factory=_Regarding)
    reporting_controller: str = ""
    note: str = ""


class _Events(msgspec.Struct):
    items: list[_Event] = []


def refused_evictions(client: Client, observed: Observed) -> tuple[RefusedEviction, ...]:
    """Give what is left alone at present because its eviction was refused; nothing where events may not be read.

    Raises
    ------
    ApiError
        The API server cannot be asked.
    """
    try:
        answer = client.get("/apis/events.k8s.io/v1/events", fieldSelector=f"reason={REFUSED}", limit=MOST)
    except ApiError as error:
        if error.status not in _MAY_NOT:
            raise
        return ()
    said = [event for event in decode(answer, _Events).items if event.reporting_controller == CONTROLLER]
    if not said:
        return ()
    about = {}
    for key in observed.pods:
        subject = observed.subject(key)
        if subject is not None:
            about[subject.kind, subject.namespace, subject.name, subject.uid] = key
    found: dict[tuple[str, str], RefusedEviction] = {}
    for event in said:
        regarding = event.regarding
        workload = about.get((regarding.kind, regarding.namespace, regarding.name, regarding.uid))
        refused = None if workload is None else read_note(workload, event.note)
        if refused is None or refused.until <= observed.cluster.now:
            continue
        known = found.get((refused.workload, refused.task))
        if known is None or known.until < refused.until:
            found[refused.workload, refused.task] = refused
    return tuple(refused for _, refused in sorted(found.items()))
