"""The claims that pods mount: from which nodes their volumes can be reached, or why their pods have to wait.

A claim that is bound restricts its pods to the nodes that its volume's node affinity allows, and, where the volume is
labelled with a zone or region, to the nodes there. Semantics are those of Kubernetes 1.37 (plugins VolumeBinding and
VolumeZone).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.bounded import total
from tenure.clusters.kubernetes.cache.handlers import GroupKey, ObjectStore
from tenure.clusters.kubernetes.cache.owners import Key
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.model.records import record_of
from tenure.model.report import BAD, ProblemReport
from tenure.model.selectors import NodeSelector, NodeSelectorTerm, Requirement

MOST_CLAIMS: Final = 32
"""Claims of one pod: each is held against every node."""

MOST_TERMS: Final = 64
MOST_VALUES: Final = 1024
"""Terms of a volume's node affinity, and values in them."""

_ZONES: Final = {
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels of volumes and nodes, and what they are called today."""

_BETWEEN_VALUES: Final = "__"
_ONE_POD: Final = "ReadWriteOncePod"


@dataclass(frozen=True, slots=True)
class ClaimState:
    """The state of a claim: the nodes that its volume binds its pods to, or why it has to be waited for.

    ``unsupported`` is what of it Tenure does not evaluate.
    """

    nodes: tuple[NodeSelector, ...] = ()
    awaits: str = ""
    unsupported: str = ""


class ClaimReader:
    """The reader of what pods mount; ``store`` gives the objects of a watch by its name.

    It keeps in mind which groups of pods mount which claims, so that those can be made anew of which one changed.
    """

    def __init__(self, store: Callable[[str], ObjectStore]) -> None:
        self._store = store
        self._mounted: dict[Key, set[GroupKey]] = {}
        self._of_group: dict[GroupKey, frozenset[Key]] = {}
        self._states: dict[Key, ClaimState] = {}
        self._seen: tuple[int, ...] = ()
        self._limited: frozenset[str] = frozenset()

    def changed(self) -> Iterator[GroupKey]:
        """Give the groups of which a claim is in another state than when they were last asked for."""
        seen = tuple(self._store(name).version for name in ("claims", "volumes", "csinodes"))
        if seen == self._seen:
            return
        self._seen = seen
        self._limited = frozenset(_limited(self._store("csinodes").items.copy().values()))
        for key, groups in self._mounted.items():
            if self._states.get(key) != (state := self._read(key)):
                self._states[key] = state
                yield from groups

    def mounting(self, group: GroupKey, records: Iterable[PodRecord]) -> list[PodRecord]:
        """Give a group's pods with what their claims make of their placement."""
        listed = list(records)
        keys_of = {r.key: [(r.namespace, name) for name in (*r.claims, *r.own_claims)] for r in listed}
        self._note(group, frozenset(key for found in keys_of.values() for key in found))
        return [self._with(r, keys_of[r.key]) if keys_of[r.key] else r for r in listed]

    def _note(self, group: GroupKey, claims: frozenset[Key]) -> None:
        before = self._of_group.pop(group, frozenset())
        for key in before - claims:
            groups = self._mounted[key]
            groups.discard(group)
            if not groups:
                del self._mounted[key]
                self._states.pop(key, None)
        for key in claims - before:
            self._mounted.setdefault(key, set()).add(group)
        if claims:
            self._of_group[group] = claims

    def _with(self, record: PodRecord, claims: list[Key]) -> PodRecord:
        if len(claims) > MOST_CLAIMS:
            told = f"{len(claims)} claims ({MOST_CLAIMS} at the most)"
            return _told(record, ClaimState(unsupported=told))
        states = [self._state(key) for key in claims]
        for name in record.own_claims:
            item = self._claim((record.namespace, name))
            if item is not None and all(o.uid != record.uid for o in item.metadata.owner_references or ()):
                states.append(ClaimState(awaits=f"claim {name}, which was not made for this pod"))
        for state in states:
            record = _told(record, state)
        return record

    def _state(self, key: Key) -> ClaimState:
        known = self._states.get(key)
        if known is None:
            known = self._states[key] = self._read(key)
        return known

    def _read(self, key: Key) -> ClaimState:
        name, claim = key[1], self._claim(key)
        awaited = _awaited(claim)
        if awaited:
            return ClaimState(awaits=f"claim {name}, {awaited}")
        if _ONE_POD in (claim.spec.access_modes or ()):
            return ClaimState(unsupported=f"claim {name} ({_ONE_POD})")
        volume: Any = self._store("volumes").items.get(("", claim.spec.volume_name))
        if volume is None:
            return ClaimState(awaits=f"volume {claim.spec.volume_name} of claim {name}, which is not there")
        driver = _limiting(volume.spec, self._limited)
        if driver:
            return ClaimState(unsupported=f"claim {name} (nodes limit how many volumes of {driver} they attach)")
        unread = ClaimState(unsupported=f"claim {name} (a node affinity that cannot be read)")
        return total(lambda: _reaching(volume) or unread, unread, lambda _: None)

    def _claim(self, key: Key) -> Any:
        return self._store("claims").items.get(key)


def _told(record: PodRecord, state: ClaimState) -> PodRecord:
    if state == _ANYWHERE:
        return record
    spec = record.task.spec
    told = replace(
        spec,
        volume_nodes=tuple(dict.fromkeys((*spec.volume_nodes, *state.nodes))),
        awaits=(*spec.awaits, state.awaits) if state.awaits else spec.awaits,
        unsupported=(*spec.unsupported, state.unsupported) if state.unsupported else spec.unsupported,
    )
    return replace(record, task=replace(record.task, spec=told))


_ANYWHERE = ClaimState()


def _awaited(claim: api.ApiClaim | None) -> str:
    """Say why a claim has no volume that can be mounted; nothing where it has one."""
    if claim is None:
        return "which is not there"
    if claim.metadata.deletion_timestamp:
        return "which is being deleted"
    if claim.status.phase == "Lost":
        return "which has lost its volume"
    bound = claim.spec.volume_name and keys.BIND_COMPLETED in (claim.metadata.annotations or {})
    return "" if bound else "which is not bound to a volume"


def _limited(csi_nodes: Iterable[Any]) -> Iterator[str]:
    """Give the drivers of which a node says how many volumes it attaches."""
    for item in csi_nodes:
        drivers = item.spec.get("drivers") if isinstance(item.spec, dict) else None
        for driver in drivers or ():
            if (driver.get("allocatable") or {}).get("count") is not None:
                yield str(driver.get("name", ""))


def _limiting(spec: api.VolumeSpec, limited: frozenset[str]) -> str:
    """Give the driver of a volume whose nodes limit how many they attach."""
    if spec.csi is not None:
        return spec.csi.driver if spec.csi.driver in limited else ""
    of_old = {
        "pd.csi.storage.gke.io": spec.gce_disk, "ebs.csi.aws.com": spec.aws_disk, "disk.csi.azure.com": spec.azure_disk,
        "cinder.csi.openstack.org": spec.cinder, "csi.vsphere.vmware.com": spec.vsphere,
    }  # fmt: skip
    return next((driver for driver, source in of_old.items() if source is not None and driver in limited), "")


def _reaching(volume: api.ApiVolume) -> ClaimState | None:
    """Give what a volume binds its pods to; None where that cannot be read."""
    found = []
    required = (volume.spec.node_affinity or {}).get("required")
    if required is not None:
        report = ProblemReport()
        selector = record_of(NodeSelector).decode(required, (None, "nodeAffinity"), report)
        if selector is BAD or report.problems or not _is_bounded(selector):
            return None
        found.append(selector)
    zones = _zones(volume.metadata.labels or {})
    if zones is not None:
        found.append(zones)
    return ClaimState(nodes=tuple(found)) if found else _ANYWHERE


def _is_bounded(selector: NodeSelector) -> bool:
    terms = selector.terms
    values = sum(1 + len(r.values) for t in terms for r in (*t.match_expressions, *t.match_fields))
    return len(terms) <= MOST_TERMS and values <= MOST_VALUES


def _zones(labels: Mapping[str, str]) -> NodeSelector | None:
    """Give the nodes in the zone and region that a volume is labelled with, and those that say of neither."""
    stated = {_ZONES[key]: text for key, text in sorted(labels.items(), reverse=True) if key in _ZONES}
    if not stated:
        return None
    there = tuple(
        Requirement(key=key, operator="In", values=tuple(sorted(set(text.split(_BETWEEN_VALUES)))))
        for key, text in sorted(stated.items())
    )
    nowhere = tuple(Requirement(key=key, operator="DoesNotExist") for key in sorted(_ZONES))
    return NodeSelector(terms=(NodeSelectorTerm(match_expressions=there), NodeSelectorTerm(match_expressions=nowhere)))
