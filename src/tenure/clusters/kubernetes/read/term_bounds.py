"""How many terms towards other pods a namespace may have: each distinct one costs a count for every node.

Affinity, anti-affinity and spread look at pods by terms. A term that many pods share is counted once; one that looks at
the pods of other namespaces is held against those as well, when they come and go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from tenure.clusters.kubernetes.cache.handlers import GroupKey
from tenure.clusters.kubernetes.read.workloads import PLACED, ObservedWorkload
from tenure.engine.terms import Term, terms_of
from tenure.model.workload import Task, TaskSpec, Workload

MOST_COUNTS: Final = 1 << 23
"""Counts of nodes by term that one namespace may have: 24 bytes each at the most, 200 MB in all."""

FEWEST_TERMS: Final = 1024
"""So many terms a namespace may have however many nodes there are."""

MOST_OUTWARD: Final = 1024
"""So many terms of a namespace may look at pods of others."""

Terms = dict[Term, bool]
"""Terms, and whether each looks at pods of other namespaces."""


class TermBounds:
    """The terms of each namespace, and what is left out of those that have too many.

    What runs comes first, then what was there first; what asks for nothing beyond the terms of these is not left out.
    """

    def __init__(self) -> None:
        self._most = FEWEST_TERMS
        self._of: dict[GroupKey, tuple[str, frozenset[int]]] = {}
        self._by_key: dict[str, frozenset[int]] = {}
        self._numbers: dict[str, dict[Term, int]] = {}
        self._asked: dict[str, Counter[int]] = {}
        self._outward: set[int] = set()
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
            is_over = self._is_over(self._asked.get(namespace, ()))
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
            if kept.setdefault(own.namespace, _Kept(self._most, self._outward)).takes(terms):
                continue
            before = left_out.get(own.key)
            reduced = before[1] if before is not None and before[0] is one else _without_terms(one, self._told())
            self._left_out[own.key] = one, reduced
            result[number] = reduced
        return result

    def _is_over(self, terms: Collection[int]) -> bool:
        return len(terms) > self._most or len(self._outward.intersection(terms)) > MOST_OUTWARD

    def _told(self) -> str:
        return (
            f"terms towards pods beyond the {self._most} that a namespace may have here, "
            f"and the {MOST_OUTWARD} that may look at other namespaces"
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
        if not asked:
            del self._asked[group[0]], self._numbers[group[0]], self._groups[group[0]]
        elif len(self._numbers[group[0]]) > 2 * len(asked) + FEWEST_TERMS:
            self._numbers[group[0]] = {t: n for t, n in self._numbers[group[0]].items() if n in asked}

    def _enter(self, group: GroupKey, workload: Workload) -> None:
        found = _terms_of(workload)
        if not found:
            return
        numbers = self._numbers.setdefault(group[0], {})
        for term, is_outward in found.items():
            if term not in numbers:
                numbers[term] = self._count
                self._count += 1
            if is_outward:
                self._outward.add(numbers[term])
        terms = frozenset(numbers[term] for term in found)
        self._of[group], self._by_key[workload.key] = (workload.key, terms), terms
        self._groups.setdefault(group[0], set()).add(group)
        self._asked.setdefault(group[0], Counter()).update(terms)


class _Kept:
    """The terms of one namespace that are kept."""

    def __init__(self, most: int, outward: AbstractSet[int]) -> None:
        self._most = most
        self._outward = outward
        self._known: set[int] = set()
        self._known_outward = 0

    def takes(self, terms: AbstractSet[int]) -> bool:
        """Whether these are not too many beside them; then they are kept as well."""
        more = terms - self._known
        outward = self._known_outward + len(more & self._outward)
        if more and (len(self._known) + len(more) > self._most or outward > MOST_OUTWARD):
            return False
        self._known |= more
        self._known_outward = outward
        return True


def _terms_of(workload: Workload) -> Terms:
    """Give the terms of a workload; tasks whose specs differ in labels alone ask for the same as a rule."""
    specs: dict[object, TaskSpec] = {}
    for task in workload.tasks:
        spec = task.spec
        if spec.affinity is not None or spec.spread:
            specs.setdefault((id(spec.affinity), id(spec.spread), _is_narrowed(spec) and spec.labels), spec)
    own = frozenset((workload.namespace,))
    return {
        term: any(meant.among is not None or meant.namespaces != own for meant in term.meant)
        for spec in specs.values()
        for term in terms_of(spec, workload.namespace).all()
    }


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
    if affinity is None and not spec.spread:
        return task
    node_alone = None if affinity is None else replace(affinity, pod=None, pod_anti=None)
    return replace(task, spec=replace(spec, affinity=node_alone, spread=(), unsupported=(*spec.unsupported, told)))
