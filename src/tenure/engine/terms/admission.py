"""Which nodes admit a task, by what is counted of its terms there; and which it prefers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tenure.engine.devices.counts import BOTH, LATER
from tenure.engine.room.domains import NodeDomains
from tenure.engine.room.nodes import NOW, THEN, Ints, NodeTable
from tenure.engine.terms.asked import Term
from tenure.engine.terms.counts import Counts, TermCounts
from tenure.engine.terms.task_terms import Mask, TaskTerms
from tenure.model.selectors import LabelSelector, SpreadConstraint

Floats = NDArray[np.float64]

MOST_PREFERENCE: Final = 30_000.0
_EVERYTHING: Final = LabelSelector()
"""Of what a spread constraint with this selector means, kube-scheduler counts nothing."""


class TermAdmission:
    """The nodes that admit tasks; ``terms`` are those of the rows that are counted."""

    def __init__(self, nodes: NodeTable, terms: Sequence[Term], counts: TermCounts) -> None:
        self.nodes = nodes
        self.terms = terms
        self.counts = counts
        self._domains: dict[tuple[str, int], Ints] = {}

    def restricts(self, terms: TaskTerms, node: int) -> bool:
        """Whether anything of a task's terms may keep it off this node, or rank nodes, as things stand."""
        if terms.matches or terms.affinity or terms.anti or terms.spread or terms.preferred or terms.ports:
            return True
        if terms.devices or terms.mounts is not None:
            return True
        return bool(terms.attached) and not self.counts.volumes.attached.has_room_for(terms.attached, node)

    def masks(self, terms: TaskTerms) -> tuple[Mask, Mask]:
        """Which nodes admit the task now, and which then.

        What keeps it away has to let it in both now and then, for it stays. What it has to be near has to be there when
        it is placed: one that terminates counts for a binding until it is gone, and for a promise it does not.
        """
        then = self._mask(terms, THEN)
        now = then & self._mask(terms, NOW)
        if terms.attached or terms.mounts is not None:
            mountable_now, mountable_then = self.counts.volumes.masks(terms.attached, terms.mounts)
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
        domain = self.nodes.domains.around
        if any(self.counts.match[view, row, domain(self.terms[row].key, node)].any() for row in terms.anti):
            return True
        if any(
            self.counts.hold[view, row, domain(self.terms[row].key, node)].any() for row in self._kept_away(terms, view)
        ):
            return True
        return bool(terms.barred) and bool(self.counts.port[view, list(terms.barred), node].any())

    def _mask(self, terms: TaskTerms, view: int) -> Mask:
        """Which nodes nothing keeps the task away from."""
        mask = np.ones(len(self.nodes), bool)
        for row in terms.anti:
            mask &= ~_present(self.nodes.domains, self.counts.match[view, row], self.terms[row].key)
        away: dict[str, Mask] = {}
        for row in self._kept_away(terms, view):
            key, there = self.terms[row].key, self.counts.hold[view, row] > 0
            away[key] = away[key] | there if key in away else there
        for key, there in away.items():  # a look by domain takes far longer than to add a row
            mask &= ~_present(self.nodes.domains, there, key)
        if terms.barred:
            mask &= ~self.counts.port[view, list(terms.barred)].any(axis=0)
        for (constraint, row), eligible in zip(terms.spread, terms.eligible, strict=True):
            if constraint.when_unsatisfiable == "DoNotSchedule":
                mask &= self._evenly(terms, constraint, row, eligible, view)
        if terms.devices:
            mask &= self.counts.devices.mask(terms.devices, LATER if view == THEN else BOTH)
        return mask

    def _kept_away(self, terms: TaskTerms, view: int) -> list[int]:
        """Give the terms by which a placed task keeps this one away."""
        rows = terms.matched
        if rows is None or not len(rows):
            return []
        found: list[int] = rows[self.counts.held[view, rows, 0] > 0].tolist()
        return found

    def _affine(self, terms: TaskTerms, view: int) -> Mask:
        having = np.ones(len(self.nodes), bool)
        mask = np.ones(len(self.nodes), bool)
        anywhere = False
        for row in terms.affinity:
            key = self.terms[row].key
            having &= self.nodes.labels.having(key)
            near = _present(self.nodes.domains, self.counts.match[view, row], key)
            mask &= near
            anywhere |= bool(near.any())
        if not anywhere and set(terms.affinity) <= set(terms.matches):
            return having  # the first of a group that wants to be together
        return mask & having

    def _evenly(self, terms: TaskTerms, constraint: SpreadConstraint, row: int, eligible: Mask, view: int) -> Mask:
        if self.terms[row].selector == _EVERYTHING:
            return eligible
        ids, values = self.nodes.domains.of(constraint.topology_key)
        present = self._counted_in(constraint.topology_key, ids, eligible)
        if not len(present):
            return np.zeros(len(self.nodes), bool)
        sums = _summed((self.counts.match[view, row] - self.counts.leaving[view, row]) * eligible, ids, len(values))
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
            points += weight * _in_domain(self.nodes.domains, self.counts.match[THEN, row], self.terms[row].key)
        for constraint, row in terms.spread:
            if constraint.when_unsatisfiable == "ScheduleAnyway" and self.terms[row].selector != _EVERYTHING:
                points -= _in_domain(self.nodes.domains, self.counts.match[THEN, row], constraint.topology_key)
        return np.clip(points, -MOST_PREFERENCE, MOST_PREFERENCE) if points.any() else None


def _present(domains: NodeDomains, counts: Counts | Mask, key: str) -> Mask:
    """Nodes in whose domain of ``key`` anything is counted."""
    ids, values = domains.of(key)
    found = np.zeros(len(values) + 1, bool)
    found[ids[np.flatnonzero(counts)]] = True
    found[-1] = False
    mask: Mask = found[ids]
    return mask


def _in_domain(domains: NodeDomains, counts: Counts, key: str) -> Ints:
    """For each node the sum of ``counts`` over its domain; 0 for nodes without the label."""
    ids, values = domains.of(key)
    sums = _summed(counts, ids, len(values))
    sums[-1] = 0
    found: Ints = sums[ids]
    return found


def _summed(counts: Counts, ids: Ints, domains: int) -> Ints:
    """Give the sum of counts by domain, and last that of the nodes that are in none; most nodes count nothing."""
    sums = np.zeros(domains + 1, np.int64)
    places = np.flatnonzero(counts)
    np.add.at(sums, ids[places], counts[places])
    return sums


def _is_in(row: int, rows: tuple[int, ...]) -> bool:
    """Whether a row is among some that are in order."""
    at = bisect_left(rows, row)
    return at < len(rows) and rows[at] == row
