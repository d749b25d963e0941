"""Constraints that depend on what else is placed: pod affinity and anti-affinity, topology spread, host ports.

Each distinct term has a row of counts by node, kept up to date as tasks come and go, in the same two views as room:
*now*, with what terminates and without what is nominated, and *then*, the other way round. Semantics are those of
Kubernetes 1.37.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenure.engine.devices.claimed_devices import DeviceTable
from tenure.engine.devices.counts import BOTH, LATER
from tenure.engine.devices.served_nodes import DeviceTerm
from tenure.engine.journal import Journal
from tenure.engine.room.labels import selects
from tenure.engine.room.nodes import NOW, THEN, Ints, NodeTable
from tenure.engine.state.term_index import TermIndex
from tenure.engine.storage.volumes import MountTerms, VolumeTable
from tenure.model.mounts import ClaimMount
from tenure.model.selectors import (
    HostPort,
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
    Requirement,
    SpreadConstraint,
)
from tenure.model.values.resources import Labels, Pairs
from tenure.model.workload import TaskSpec

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
Counts = NDArray[np.int32]
"""Tasks by node: of a term there is a number for each node, and nowhere are there so many tasks as 32 bits can say."""

ANY_ADDRESS = HostPort(port=1).ip
MOST_PREFERENCE = 30_000.0
_FEW: Final = 16
"""Rows up to which counting one after the other takes less time than all at once."""

_WHATEVER: Final = ""
"""Address of the row that counts a port on every address."""

NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""Label by which every namespace has its own name."""

_NO_LABELS: Final[Labels] = {}
_EVERYTHING: Final = LabelSelector()
"""Of what a spread constraint with this selector means, kube-scheduler counts nothing."""


class Meant(NamedTuple):
    """Tasks that ``selector`` matches, in ``namespaces`` and in those whose labels ``among`` matches."""

    selector: LabelSelector | None
    namespaces: frozenset[str]
    among: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """Tasks that are ``meant``, counted by value of the node label ``key``.

    Of several required affinities only a task that all of them mean counts for any; so there may be more of ``meant``.
    """

    meant: tuple[Meant, ...]
    key: str

    @property
    def selector(self) -> LabelSelector | None:
        """The selector of the term itself."""
        return self.meant[0].selector


class AskedTerms(NamedTuple):
    """The terms that a spec asks for. Each spread constraint has one, what is only preferred has its weight."""

    affinity: tuple[Term, ...] = ()
    anti: tuple[Term, ...] = ()
    spread: tuple[Term, ...] = ()
    preferred: tuple[tuple[float, Term], ...] = ()

    def all(self) -> Iterator[Term]:
        """Give all of them."""
        yield from (*self.affinity, *self.anti, *self.spread, *(term for _, term in self.preferred))


@dataclass
class TaskTerms:
    """The terms of a task, as rows. ``matches`` are the rows whose terms its own labels match, ``matched``
    the same as an array, and ``meant_by`` a digest of them.

    ``eligible`` has for each spread constraint the nodes that it counts, ``attached`` is what it mounts whose volumes
    count against a limit of the node. Most tasks have one kind of terms alone, and
    what they do not have takes neither time nor room where it is left to the class.
    """

    matches: tuple[int, ...] = ()
    matched: Ints | None = None
    meant_by: bytes = b""
    affinity: tuple[int, ...] = ()
    anti: tuple[int, ...] = ()
    spread: tuple[tuple[SpreadConstraint, int], ...] = ()
    eligible: tuple[Mask, ...] = ()
    preferred: tuple[tuple[float, int], ...] = ()
    ports: tuple[int, ...] = ()
    barred: tuple[int, ...] = ()
    holds: tuple[int, ...] = ()
    attached: tuple[ClaimMount, ...] = ()
    mounts: MountTerms | None = None
    devices: tuple[DeviceTerm, ...] = ()

    @property
    def constrained(self) -> bool:
        """Whether anything of it restricts or ranks nodes, its own labels apart."""
        among = self.affinity or self.anti or self.spread or self.preferred or self.ports
        return bool(among or self.attached or self.mounts or self.devices)

    @property
    def profile(self) -> Hashable:
        """What tasks of one class have in common that other tasks keep off, let in and attract alike.

        None for what mounts volumes or uses devices that other tasks may hold: of these each has its own.
        """
        if self.attached or self.mounts is not None or self.devices:
            return None
        return self.meant_by, self.affinity, self.anti, tuple(row for _, row in self.spread), self.preferred

    @property
    def only_kept_off(self) -> bool:
        """Whether other tasks that are placed keep it off nodes, and never let it in."""
        return not (self.affinity or self.spread)


class TermTable:
    """The table of all terms of a session, with their counts.

    ``match`` and ``hold`` are ``int32[2, terms, nodes]``: tasks that match the term, and tasks that have it as a
    required anti-affinity; ``held`` is ``int32[2, terms, 1]``, the sums of ``hold``; ``port`` is
    ``int16[2, ports, nodes]``, of which there may be very many. ``leaving`` is the part of ``match`` that
    terminates: spread does not count it. ``namespaces`` are the labels of namespaces, by name.
    """

    def __init__(self, nodes: NodeTable, journal: Journal, namespaces: Mapping[str, Labels] | None = None) -> None:
        self.nodes = nodes
        self.journal = journal
        self.namespaces = namespaces or {}
        self.volumes = VolumeTable(nodes, journal)
        self.devices = DeviceTable(nodes, journal)
        self.terms: list[Term] = []
        self._row: dict[Term, int] = {}
        self._port_row: dict[tuple[int, str, str], int] = {}
        self._eligible: dict[object, Mask] = {}
        self._domains: dict[tuple[str, int], Ints] = {}
        self._index = TermIndex(lambda row, namespace: all(self._looks_at(m, namespace) for m in self.terms[row].meant))
        self._matching: dict[tuple[Pairs, str], tuple[int, ...]] = {}
        self._arrays: dict[tuple[Pairs, str], tuple[Ints, bytes]] = {}
        count = len(nodes)
        self.match = np.zeros((2, 0, count), np.int32)
        self.leaving = np.zeros((2, 0, count), np.int32)
        self.hold = np.zeros((2, 0, count), np.int32)
        self.held = np.zeros((2, 0, 1), np.int32)
        self.port = np.zeros((2, 0, count), np.int16)

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
            if _has_terms(spec) and (known := (id(spec), namespace)) not in seen:
                seen.add(known)
                self._resolve(spec, namespace)
        if len(self.terms) > first or len(self._port_row) > ports:
            self._grow()
            self._matching.clear()
            self._arrays.clear()
        return list(range(first, len(self.terms)))

    def of(self, spec: TaskSpec, namespace: str) -> TaskTerms | None:
        """Resolve the terms of a task; None if no constraint of this kind touches it."""
        attached, mounts = self.volumes.of(spec.mounts) if spec.mounts else ((), None)
        devices = self.devices.of(spec.device_uses) if spec.device_uses else ()
        if not (self.terms or self._port_row):
            return _held(attached, mounts, devices) if attached or mounts is not None or devices else None
        terms = self._resolve(spec, namespace) if _has_terms(spec) else TaskTerms()
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
                mask &= labels.tolerated(spec.tolerations)
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

    def _grow(self) -> None:
        """Make the arrays long enough; by half as much again, so that many small steps do not copy them each time.

        Rows in which nothing is counted are not copied: what is never written to takes no memory.
        """

        def grown(array: Any, rows: int) -> Any:
            there = array.shape[1]
            if rows <= there:
                return array
            longer = np.zeros((2, max(rows, there + there // 2), array.shape[2]), array.dtype)
            counted = np.flatnonzero(array.any(axis=(0, 2)))
            longer[:, counted] = array[:, counted]
            return longer

        self.match = grown(self.match, len(self.terms))
        self.leaving = grown(self.leaving, len(self.terms))
        self.hold = grown(self.hold, len(self.terms))
        self.held = grown(self.held, len(self.terms))
        self.port = grown(self.port, len(self._port_row))

    def count(self, terms: TaskTerms, node: int, *, now: bool, then: bool, sign: int) -> None:
        """Count a task with these terms in (``sign`` 1) or out (-1) on a node, in one or both views."""
        if terms.matches or terms.holds or terms.ports:
            self._count_rows(terms, node, now=now, then=then, sign=sign)
        if terms.attached:
            self.volumes.attached.count(terms.attached, node, now=sign * now, then=sign * then)
        if terms.mounts is not None:
            self.volumes.count(terms.mounts, node, now=now, then=then, sign=sign)
        if terms.devices:
            self.devices.count(terms.devices, node, now=now, then=then, sign=sign)

    def _count_rows(self, terms: TaskTerms, node: int, *, now: bool, then: bool, sign: int) -> None:
        more = sign * now, sign * then
        self._add_matching(self.match, terms, node, more)
        self._add(self.hold, terms.holds, node, more)
        self._add(self.held, terms.holds, 0, more)
        self._add(self.port, terms.ports, node, more)

    def _add(self, array: Any, rows: tuple[int, ...], node: int, more: tuple[int, int]) -> None:
        """Count in some rows, of which several may be one."""
        if rows:
            self.journal.keep(array, (slice(None), list(rows), node))
            for row in rows:
                array[NOW, row, node] += more[NOW]
                array[THEN, row, node] += more[THEN]

    def _add_matching(self, array: Counts, terms: TaskTerms, node: int, more: tuple[int, int]) -> None:
        """Count in the rows that a task's own labels match; of many at once, which takes less time then."""
        if terms.matched is None or len(terms.matches) <= _FEW:
            self._add(array, terms.matches, node, more)
            return
        self.journal.keep(array, (slice(None), terms.matched, node))
        for view in (NOW, THEN):
            array[view, terms.matched, node] += more[view]

    def count_leaving(self, terms: TaskTerms, node: int, *, now: bool, then: bool, sign: int) -> None:
        """Count a task that terminates on a node in or out, in one or both views."""
        self._add_matching(self.leaving, terms, node, (sign * now, sign * then))

    def restricts(self, terms: TaskTerms, node: int) -> bool:
        """Whether anything of a task's terms may keep it off this node, or rank nodes, as things stand."""
        if terms.matches or terms.affinity or terms.anti or terms.spread or terms.preferred or terms.ports:
            return True
        if terms.devices or terms.mounts is not None:
            return True
        return bool(terms.attached) and not self.volumes.attached.has_room_for(terms.attached, node)

    def masks(self, terms: TaskTerms) -> tuple[Mask, Mask]:
        """Which nodes admit the task now, and which then.

        What keeps it away has to let it in both now and then, for it stays. What it has to be near has to be there when
        it is placed: one that terminates counts for a binding until it is gone, and for a promise it does not.
        """
        then = self._mask(terms, THEN)
        now = then & self._mask(terms, NOW)
        if terms.attached or terms.mounts is not None:
            mountable_now, mountable_then = self.volumes.masks(terms.attached, terms.mounts)
            now &= mountable_now
            then &= mountable_then
        if not terms.affinity:
            return now, then
        return now & self._affine(terms, NOW), then & self._affine(terms, THEN)

    def admits(self, terms: TaskTerms, node: int, view: int) -> bool:
        """Whether one node admits the task now or then, as `masks` tells it for all."""
        if terms.profile is None or not terms.only_kept_off:
            return bool(self.masks(terms)[view][node])
        return not (self.keeps_off(terms, node, THEN) or (view == NOW and self.keeps_off(terms, node, NOW)))

    def keeps_off(self, terms: TaskTerms, node: int, view: int) -> bool:
        """Whether a task that is placed, in the domain of a node or on it, keeps this one off the node."""
        domain = self.nodes.labels.domain_of
        if any(self.match[view, row, domain(self.terms[row].key, node)].any() for row in terms.anti):
            return True
        if any(self.hold[view, row, domain(self.terms[row].key, node)].any() for row in self._kept_away(terms, view)):
            return True
        return bool(terms.barred) and bool(self.port[view, list(terms.barred), node].any())

    def _mask(self, terms: TaskTerms, view: int) -> Mask:
        """Which nodes nothing keeps the task away from."""
        mask = np.ones(len(self.nodes), bool)
        for row in terms.anti:
            mask &= ~self._present(self.match[view, row], self.terms[row].key)
        away: dict[str, Mask] = {}
        for row in self._kept_away(terms, view):
            key, there = self.terms[row].key, self.hold[view, row] > 0
            away[key] = away[key] | there if key in away else there
        for key, there in away.items():  # a look by domain takes far longer than to add a row
            mask &= ~self._present(there, key)
        if terms.barred:
            mask &= ~self.port[view, list(terms.barred)].any(axis=0)
        for (constraint, row), eligible in zip(terms.spread, terms.eligible, strict=True):
            if constraint.when_unsatisfiable == "DoNotSchedule":
                mask &= self._evenly(terms, constraint, row, eligible, view)
        if terms.devices:
            mask &= self.devices.mask(terms.devices, LATER if view == THEN else BOTH)
        return mask

    def _kept_away(self, terms: TaskTerms, view: int) -> list[int]:
        """Give the terms by which a placed task keeps this one away."""
        rows = terms.matched
        if rows is None or not len(rows):
            return []
        found: list[int] = rows[self.held[view, rows, 0] > 0].tolist()
        return found

    def _present(self, counts: Counts | Mask, key: str) -> Mask:
        """Nodes in whose domain of ``key`` anything is counted."""
        ids, values = self.nodes.labels.domains(key)
        found = np.zeros(len(values) + 1, bool)
        found[ids[np.flatnonzero(counts)]] = True
        found[-1] = False
        mask: Mask = found[ids]
        return mask

    def _in_domain(self, counts: Counts, key: str) -> Ints:
        """For each node the sum of ``counts`` over its domain; 0 for nodes without the label."""
        ids, values = self.nodes.labels.domains(key)
        sums = _summed(counts, ids, len(values))
        sums[-1] = 0
        found: Ints = sums[ids]
        return found

    def _affine(self, terms: TaskTerms, view: int) -> Mask:
        having = np.ones(len(self.nodes), bool)
        mask = np.ones(len(self.nodes), bool)
        anywhere = False
        for row in terms.affinity:
            key = self.terms[row].key
            having &= self.nodes.labels.having(key)
            near = self._present(self.match[view, row], key)
            mask &= near
            anywhere |= bool(near.any())
        if not anywhere and set(terms.affinity) <= set(terms.matches):
            return having  # the first of a group that wants to be together
        return mask & having

    def _evenly(self, terms: TaskTerms, constraint: SpreadConstraint, row: int, eligible: Mask, view: int) -> Mask:
        if self.terms[row].selector == _EVERYTHING:
            return eligible
        ids, values = self.nodes.labels.domains(constraint.topology_key)
        present = self._counted_in(constraint.topology_key, ids, eligible)
        if not len(present):
            return np.zeros(len(self.nodes), bool)
        sums = _summed((self.match[view, row] - self.leaving[view, row]) * eligible, ids, len(values))
        least = 0 if len(present) < (constraint.min_domains or 1) else int(sums[present].min())
        mask: Mask = eligible & (sums[ids] + _is_in(row, terms.matches) - least <= constraint.max_skew)
        return mask

    def _counted_in(self, key: str, ids: Ints, eligible: Mask) -> Ints:
        """Give the domains of the nodes that a constraint counts."""
        known = self._domains.get((key, id(eligible)))  # these masks are kept, so that no other has its id
        if known is None:
            known = self._domains[key, id(eligible)] = np.unique(ids[eligible])
        return known

    def preference(self, terms: TaskTerms) -> Floats | None:
        """Points by node for what is only preferred; None if nothing is."""
        points = np.zeros(len(self.nodes))
        for weight, row in terms.preferred:
            points += weight * self._in_domain(self.match[THEN, row], self.terms[row].key)
        for constraint, row in terms.spread:
            if constraint.when_unsatisfiable == "ScheduleAnyway" and self.terms[row].selector != _EVERYTHING:
                points -= self._in_domain(self.match[THEN, row], constraint.topology_key)
        return np.clip(points, -MOST_PREFERENCE, MOST_PREFERENCE) if points.any() else None


def terms_of(spec: TaskSpec, namespace: str) -> AskedTerms:
    """Give the terms that a spec asks for, of a task in a namespace."""
    labels, affinity = dict(spec.labels), spec.affinity
    pod = affinity.pod if affinity and affinity.pod else PodAffinity()
    anti = affinity.pod_anti if affinity and affinity.pod_anti else PodAffinity()
    weighted = [(float(p.weight), p.term) for p in pod.preferred] + [(-float(p.weight), p.term) for p in anti.preferred]
    return AskedTerms(
        _together([_term(t, namespace, labels) for t in pod.required]),
        tuple(_term(t, namespace, labels) for t in anti.required),
        tuple(_spread_term(c, namespace, labels) for c in spec.spread),
        tuple((weight, _term(t, namespace, labels)) for weight, t in weighted),
    )


def _together(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Give required affinities so that each counts only tasks that all of them mean."""
    meant = [t.meant[0] for t in terms]
    return tuple(
        Term((m, *meant[:i], *meant[i + 1 :]), t.key) for i, (m, t) in enumerate(zip(meant, terms, strict=True))
    )


def _term(term: PodAffinityTerm, namespace: str, labels: dict[str, str]) -> Term:
    own = () if term.namespace_selector is not None else (namespace,)
    selector = _narrowed(term.selector, term.match_label_keys, labels, term.mismatch_label_keys)
    meant = Meant(selector, frozenset(term.namespaces or own), term.namespace_selector)
    return Term((meant,), term.topology_key)


def _spread_term(constraint: SpreadConstraint, namespace: str, labels: dict[str, str]) -> Term:
    selector = _narrowed(constraint.selector, constraint.match_label_keys, labels)
    return Term((Meant(selector, frozenset((namespace,))),), constraint.topology_key)


def _summed(counts: Counts, ids: Ints, domains: int) -> Ints:
    """Give the sum of counts by domain, and last that of the nodes that are in none; most nodes count nothing."""
    sums = np.zeros(domains + 1, np.int64)
    places = np.flatnonzero(counts)
    np.add.at(sums, ids[places], counts[places])
    return sums


def _held(attached: tuple[ClaimMount, ...], mounts: MountTerms | None, devices: tuple[DeviceTerm, ...]) -> TaskTerms:
    """Give the terms of a task that mounts or claims something and looks at no other task; many pods are like that."""
    terms = TaskTerms.__new__(TaskTerms)
    terms.attached, terms.mounts, terms.devices = attached, mounts, devices
    return terms


def _narrowed(
    selector: LabelSelector | None, keys: tuple[str, ...], labels: dict[str, str], unlike: tuple[str, ...] = ()
) -> LabelSelector | None:
    """Add to a selector that tasks are like the one with these labels in ``keys``, and not in ``unlike``."""
    if selector is None or not (keys or unlike):
        return selector
    same = tuple((k, labels[k]) for k in keys if k in labels)
    other = tuple(Requirement(key=k, operator="NotIn", values=(labels[k],)) for k in unlike if k in labels)
    return LabelSelector(
        match_labels=tuple(sorted({*selector.match_labels, *same})),
        match_expressions=(*selector.match_expressions, *other),
    )


def _is_in(row: int, rows: tuple[int, ...]) -> bool:
    """Whether a row is among some that are in order."""
    at = bisect_left(rows, row)
    return at < len(rows) and rows[at] == row


def _has_terms(spec: TaskSpec) -> bool:
    return spec.affinity is not None or bool(spec.spread or spec.host_ports)
