"""Constraints that depend on what else is placed: pod affinity and anti-affinity, topology spread, host ports.

Each distinct term has a row of counts by node, kept up to date as tasks come and go, in the same two views as room:
*now*, with what terminates and without what is nominated, and *then*, the other way round. Semantics are those of
Kubernetes 1.37.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final

import numpy as np

from tenure.engine.devices.claimed_devices import DeviceTable
from tenure.engine.journal import Journal
from tenure.engine.plan import ClaimedDevices, ClaimedVolume
from tenure.engine.room.labels import selects
from tenure.engine.room.nodes import Ints, NodeTable
from tenure.engine.storage.volumes import VolumeTable
from tenure.engine.terms.admission import TermAdmission
from tenure.engine.terms.asked import Meant, Term, has_terms, terms_of
from tenure.engine.terms.counts import TermCounts
from tenure.engine.terms.index import TermIndex
from tenure.engine.terms.task_terms import Mask, TaskTerms, held_terms
from tenure.model.selectors import HostPort, SpreadConstraint
from tenure.model.values.resources import Labels, Pairs
from tenure.model.workload import TaskSpec

ANY_ADDRESS = HostPort(port=1).ip
_WHATEVER: Final = ""
"""Address of the row that counts a port on every address."""

NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""Label by which every namespace has its own name."""

_NO_LABELS: Final[Labels] = {}


class TermTable:
    """The rows of all terms and ports of a session, with their ``counts`` and the ``admission`` that these lead to.

    ``namespaces`` are the labels of namespaces, by name.
    """

    def __init__(self, nodes: NodeTable, journal: Journal, namespaces: Mapping[str, Labels] | None = None) -> None:
        self.nodes = nodes
        self.namespaces = namespaces or {}
        self.volumes = VolumeTable(nodes, journal)
        self.devices = DeviceTable(nodes, journal)
        self.terms: list[Term] = []
        self.counts = TermCounts(len(nodes), journal, self.volumes, self.devices)
        self.admission = TermAdmission(nodes, self.terms, self.counts)
        self._row: dict[Term, int] = {}
        self._port_row: dict[tuple[int, str, str], int] = {}
        self._eligible: dict[object, Mask] = {}
        self._index = TermIndex(lambda row, namespace: all(self._looks_at(m, namespace) for m in self.terms[row].meant))
        self._matching: dict[tuple[Pairs, str], tuple[int, ...]] = {}
        self._arrays: dict[tuple[Pairs, str], tuple[Ints, bytes]] = {}

    @property
    def used(self) -> bool:
        """Whether there is any term or port at all."""
        return bool(self.terms or self._port_row)

    @property
    def size(self) -> int:
        """How many terms, ports and distinct labels are kept."""
        return len(self.terms) + len(self._port_row) + len(self._matching)

    def register(self, asked: Iterable[tuple[TaskSpec, str]]) -> list[int]:
        """Make rows for all terms of specs, each with the namespace of its task.

        Gives the new rows; what is there already still has to be counted in them.
        """
        first, ports = len(self.terms), len(self._port_row)
        seen: set[tuple[int, str]] = set()
        for spec, namespace in asked:
            if has_terms(spec) and (known := (id(spec), namespace)) not in seen:
                seen.add(known)
                self._resolve(spec, namespace)
        if len(self.terms) > first or len(self._port_row) > ports:
            self.counts.grow(len(self.terms), len(self._port_row))
            self._matching.clear()
            self._arrays.clear()
        return list(range(first, len(self.terms)))

    def of(self, spec: TaskSpec, namespace: str) -> TaskTerms | None:
        """Resolve the terms of a task; None if no constraint of this kind touches it."""
        attached, mounts = self.volumes.of(spec.mounts) if spec.mounts else ((), None)
        devices = self.devices.of(spec.device_uses) if spec.device_uses else ()
        if not (self.terms or self._port_row):
            return held_terms(attached, mounts, devices) if attached or mounts is not None or devices else None
        terms = self._resolve(spec, namespace) if has_terms(spec) else TaskTerms()
        terms.matches = self.rows_for(spec.labels, namespace)
        terms.matched, terms.meant_by = self._arrays[spec.labels, namespace]
        terms.attached, terms.mounts, terms.devices = attached, mounts, devices
        return terms if terms.matches or terms.constrained else None

    def rows_for(self, pairs: Pairs, namespace: str) -> tuple[int, ...]:
        """Give the rows whose terms mean tasks with these labels; tasks with equal labels are looked at once."""
        found = self._matching.get((pairs, namespace))
        if found is None:
            found = self._matching[pairs, namespace] = self._index.matching(pairs, namespace)
            rows = np.array(found, np.int64)
            self._arrays[pairs, namespace] = rows, blake2b(rows.tobytes(), digest_size=16).digest()
        return found

    def _looks_at(self, meant: Meant, namespace: str) -> bool:
        if namespace in meant.namespaces:
            return True
        if meant.among is None:
            return False
        labels = self.namespaces.get(namespace, _NO_LABELS)
        return selects(meant.among, {NAMESPACE_NAME: namespace, **labels})

    def _resolve(self, spec: TaskSpec, namespace: str) -> TaskTerms:
        asked = terms_of(spec, namespace)
        ports, barred = self._held_ports(spec.host_ports)
        required_anti = self._rows(asked.anti)
        return TaskTerms(
            affinity=self._rows(asked.affinity), anti=required_anti, holds=required_anti,
            spread=tuple(zip(spec.spread, self._rows(asked.spread), strict=True)),
            eligible=tuple(self._counted(c, spec) for c in spec.spread),
            preferred=tuple((w, self._find_row(term)) for w, term in asked.preferred), ports=ports, barred=barred,
        )  # fmt: skip

    def _rows(self, terms: Iterable[Term]) -> tuple[int, ...]:
        return tuple(map(self._find_row, terms))

    def _counted(self, constraint: SpreadConstraint, spec: TaskSpec) -> Mask:
        """Nodes that a spread constraint counts: those with all keys that are asked for, as its policies say."""
        affinity = spec.affinity.node if spec.affinity else None
        honors = (constraint.node_affinity_policy == "Honor", constraint.node_taints_policy == "Honor")
        keys = tuple(c.topology_key for c in spec.spread if c.when_unsatisfiable == "DoNotSchedule")
        known = (keys, *honors, spec.node_selector, affinity, spec.tolerations)
        mask = self._eligible.get(known)
        if mask is None:
            labels = self.nodes.labels
            mask = np.ones(len(self.nodes), bool)
            for key in keys:
                mask &= labels.having(key)
            if honors[0]:
                mask &= labels.selected(spec.node_selector) & labels.affine(affinity)
            if honors[1]:
                mask &= self.nodes.taints.tolerated(spec.tolerations)
            self._eligible[known] = mask
        return mask

    def _find_row(self, term: Term) -> int:
        row = self._row.get(term)
        if row is None:
            row = self._row[term] = len(self.terms)
            self.terms.append(term)
            self._index.add([meant.selector for meant in term.meant])
        return row

    def _held_ports(self, ports: Iterable[HostPort]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Give the rows in which a task with some ports is counted, and those where nothing may be counted for it.

        Beside the row of each port there is one of its number on whatever address, so that the others need no look.
        """
        held, barred, rows = [], [], self._port_row
        for port in ports:
            own, whole = (port.port, port.protocol, port.ip), (port.port, port.protocol, _WHATEVER)
            anywhere = port.port, port.protocol, ANY_ADDRESS
            held += [rows.setdefault(one, len(rows)) for one in (own, whole)]
            barred += [rows.setdefault(one, len(rows)) for one in ((whole,) if own == anywhere else (own, anywhere))]
        return tuple(held), tuple(barred)


def claims_of(
    table: TermTable, terms: TaskTerms | None
) -> tuple[tuple[ClaimedVolume, ...], tuple[ClaimedDevices, ...]]:
    """Give what the claims of a placed task that are not bound yet will be bound to, and the devices of its claims."""
    if terms is None:
        return (), ()
    volumes = () if terms.mounts is None else table.volumes.chosen(terms.mounts)
    return volumes, table.devices.chosen(terms.devices) if terms.devices else ()
