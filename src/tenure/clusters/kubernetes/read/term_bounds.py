"""How many terms towards other pods a namespace may have: each distinct one costs a count for every node.

Affinity, anti-affinity and spread look at pods by terms. A term that many pods share is counted once; one that looks at
the pods of other namespaces is held against those as well, when they come and go. Host ports, each with its address,
are counted by node too, in a third of the room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from operator import add, le
from typing import Final

from tenure.clusters.kubernetes.cache.handlers import GroupKey
from tenure.clusters.kubernetes.read.workloads import PLACED, ObservedWorkload
from tenure.engine.terms.asked import Term, terms_of
from tenure.model.selectors import HostPort
from tenure.model.workload import Task, TaskSpec, Workload

MOST_COUNTS: Final = 1 << 23
"""Counts of nodes by term that one namespace may have: 24 bytes each at the most, 200 MB in all."""

FEWEST_TERMS: Final = 1024
"""So many terms a namespace may have however many nodes there are."""

MOST_OUTWARD: Final = 1024
"""So many terms of a namespace may look at pods of others."""

PORTS_FOR_A_TERM: Final = 3
"""So many host ports take the room of one term."""

Asked = Term | HostPort


class TermBounds:
    """The terms of each namespace, and what is left out of those that have too many.

    What runs comes first, then what was there first; what asks for nothing beyond the terms of these is not left out.
    """

    def __init__(self) -> None:
        self._most = FEWEST_TERMS
        self._of: dict[GroupKey, tuple[str, frozenset[int]]] = {}
        self._by_key: dict[str, frozenset[int]] = {}
        self._numbers: dict[str, dict[Asked, int]] = {}
        self._asked: dict[str, Counter[int]] = {}
        self._outward: set[int] = set()
        self._ports: set[int] = set()
        self._count = 0
        self._groups: dict[str, set[GroupKey]] = {}
        self._over: set[str] = set()
        self._left_out: dict[str, tuple[ObservedWorkload, ObservedWorkload]] = {}

    def renew(
        self, named: Mapping[GroupKey, ObservedWorkload], changed: Iterable[GroupKey], nodes: int
    ) -> set[GroupKey]:
        """Take what was made anew, or is no more, of some groups; ``nodes`` is how many nodes there are.

        Gives the groups of the namespaces that have too many terms from now on, or have no longer.
        """
        most = max(FEWEST_TERMS, MOST_COUNTS // max(1, nodes))
        spaces = set(self._asked) if most != self._most else set()
        self._most = most
        for group in changed:
            self._leave(group)
            if group in named:
                self._enter(group, named[group].workload)
            spaces.add(group[0])
        affected: set[GroupKey] = set()
        for namespace in spaces:
            is_over = not self.allows(self.counts(self._asked.get(namespace, ())))
            if is_over != (namespace in self._over):
                (self._over.add if is_over else self._over.discard)(namespace)
                affected |= self._groups.get(namespace, set())
        return affected

    def is_looked_at(self, workload: Workload) -> bool:
        """Whether a workload has terms, and its namespace has too many."""
        return workload.namespace in self._over and workload.key in self._by_key

    def within(self, found: list[ObservedWorkload]) -> list[ObservedWorkload]:
        """Give workloads without the terms that are too many; what waits with such is not placed, and says why."""
        if not self._over:
            self._left_out.clear()
            return found
        asking = [(n, one) for n, one in enumerate(found) if self.is_looked_at(one.workload)]
        kept: dict[str, _Kept] = {}
        result, left_out = list(found), self._left_out
        self._left_out = {}
        for number, one in sorted(asking, key=lambda entry: _order(entry[1])):
            own, terms = one.workload, self._by_key[one.workload.key]
            if kept.setdefault(own.namespace, _Kept(self)).takes(terms):
                continue
            before = left_out.get(own.key)
            reduced = before[1] if before is not None and before[0] is one else _without_terms(one, self._told())
            self._left_out[own.key] = one, reduced
            result[number] = reduced
        return result

    def counts(self, terms: Collection[int]) -> tuple[int, int, int]:
        """Give how many of some are terms, terms that look at other namespaces, and host ports."""
        ports = len(self._ports.intersection(terms))
        return len(terms) - ports, len(self._outward.intersection(terms)), ports

    def allows(self, counts: Iterable[int]) -> bool:
        """Whether a namespace may have so many of each."""
        return all(map(le, counts, (self._most, MOST_OUTWARD, PORTS_FOR_A_TERM * self._most)))

    def _told(self) -> str:
        return (
            f"terms beyond the {self._most} towards pods that a namespace may have here "
            f"({MOST_OUTWARD} towards other namespaces), or the {PORTS_FOR_A_TERM * self._most} host ports"
        )

    def _leave(self, group: GroupKey) -> None:
        key, terms = self._of.pop(group, ("", frozenset[int]()))
        if not terms:
            return
        self._by_key.pop(key, None)
        self._groups[group[0]].discard(group)
        asked = self._asked[group[0]]
        asked.subtract(terms)
        gone = {number for number in terms if not asked[number]}
        for number in gone:
            del asked[number]
        self._outward -= gone
        self._ports -= gone
        if not asked:
            del self._asked[group[0]], self._numbers[group[0]], self._groups[group[0]]
        elif len(self._numbers[group[0]]) > 2 * len(asked) + FEWEST_TERMS:
            self._numbers[group[0]] = {t: n for t, n in self._numbers[group[0]].items() if n in asked}

    def _enter(self, group: GroupKey, workload: Workload) -> None:
        found = _terms_of(workload)
        if not found:
            return
        numbers = self._numbers.setdefault(group[0], {})
        own = frozenset((workload.namespace,))
        for term in found:
            if term not in numbers:
                numbers[term] = self._count
                self._count += 1
            if isinstance(term, HostPort):
                self._ports.add(numbers[term])
            elif any(meant.among is not None or meant.namespaces != own for meant in term.meant):
                self._outward.add(numbers[term])
        terms = frozenset(numbers[term] for term in found)
        self._of[group], self._by_key[workload.key] = (workload.key, terms), terms
        self._groups.setdefault(group[0], set()).add(group)
        self._asked.setdefault(group[0], Counter()).update(terms)


class _Kept:
    """The terms of one namespace that are kept."""

    def __init__(self, bounds: TermBounds) -> None:
        self._bounds = bounds
        self._known: set[int] = set()
        self._counts = (0, 0, 0)

    def takes(self, terms: AbstractSet[int]) -> bool:
        """Whether these are not too many beside them; then they are kept as well."""
        more = terms - self._known
        terms_too, outward, ports = map(add, self._counts, self._bounds.counts(more))
        if more and not self._bounds.allows((terms_too, outward, ports)):
            return False
        self._known |= more
        self._counts = terms_too, outward, ports
        return True


def _terms_of(workload: Workload) -> set[Asked]:
    """Give the terms of a workload; tasks whose specs differ in labels alone ask for the same as a rule."""
    specs: dict[object, TaskSpec] = {}
    for task in workload.tasks:
        spec = task.spec
        if spec.affinity is not None or spec.spread or spec.host_ports:
            known = id(spec.affinity), id(spec.spread), id(spec.host_ports), _is_narrowed(spec) and spec.labels
            specs.setdefault(known, spec)
    found: set[Asked] = set()
    for spec in specs.values():
        found.update(terms_of(spec, workload.namespace).all(), spec.host_ports)
    return found


def _is_narrowed(spec: TaskSpec) -> bool:
    """Whether the labels of a task decide about what its terms mean."""
    affinity = spec.affinity
    sides = (affinity.pod, affinity.pod_anti) if affinity is not None else ()
    terms = [t for side in sides if side is not None for t in (*side.required, *(p.term for p in side.preferred))]
    return any(t.match_label_keys or t.mismatch_label_keys for t in terms) or any(
        c.match_label_keys for c in spec.spread
    )


def _order(one: ObservedWorkload) -> tuple[bool, int, str]:
    own = one.workload
    return all(task.phase not in PLACED for task in own.tasks), own.created_at, own.key


def _without_terms(one: ObservedWorkload, told: str) -> ObservedWorkload:
    """Give a workload whose tasks have no terms; they are not placed for having asked for them."""
    return replace(
        one, workload=replace(one.workload, tasks=tuple(_reduced(task, told) for task in one.workload.tasks))
    )


def _reduced(task: Task, told: str) -> Task:
    spec, affinity = task.spec, task.spec.affinity
    if affinity is None and not spec.spread and not spec.host_ports:
        return task
    node_alone = None if affinity is None else replace(affinity, pod=None, pod_anti=None)
    told_too = (*spec.unsupported, told)
    return replace(task, spec=replace(spec, affinity=node_alone, spread=(), host_ports=(), unsupported=told_too))
