"""Claims that get their volume where the first task that mounts them is placed: what each of them will be bound to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenure.engine.journal import Journal
from tenure.engine.plan import ClaimedVolume
from tenure.engine.room.labels import reached
from tenure.engine.room.nodes import NodeTable
from tenure.model.mounts import AvailableVolume, OpenClaim

Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]


class VolumeChoice(NamedTuple):
    """The choice for an open claim: the node of its first task, and the volume (None: one is made for that node)."""

    node: int
    volume: str | None


class _Candidate(NamedTuple):
    name: str
    nodes: Indices


@dataclass(frozen=True, slots=True)
class OpenTerm:
    """An open claim of a task. ``provided`` are the nodes for which a volume would be made, ``selected`` the one for
    which it is being made (-1: none yet).
    """

    claim: str
    row: int
    provisioner: str
    candidates: tuple[_Candidate, ...]
    provided: Mask
    selected: int


class OpenClaimTable:
    """The table of open claims, with the choice for each that a placed task mounts; no volume is chosen twice."""

    def __init__(self, nodes: NodeTable, journal: Journal) -> None:
        self.nodes = nodes
        self.journal = journal
        self._rows: dict[str, int] = {}
        self._waiting: list[int] = []
        self._choice: list[VolumeChoice | None] = []
        self._taker: dict[str, str] = {}
        self._pools: dict[int, tuple[Any, tuple[_Candidate, ...]]] = {}

    def term(self, claim: str, asked: OpenClaim) -> OpenTerm:
        """Resolve an open claim of a task."""
        row = self._rows.setdefault(claim, len(self._choice))
        if row == len(self._choice):
            self._choice.append(None)
            self._waiting.append(0)
        labels = self.nodes.labels
        provided = reached(labels, asked.nodes) if asked.provisioner else np.zeros(len(self.nodes), bool)
        refused = [self.nodes.index[name] for name in asked.refused if name in self.nodes.index]
        if refused and provided.sum() > len(refused):
            provided = provided.copy()
            provided[refused] = False
        selected = self.nodes.index.get(asked.selected, len(self.nodes)) if asked.selected else -1
        return OpenTerm(claim, row, asked.provisioner, self._candidates(asked.available), provided, selected)

    def _candidates(self, available: tuple[AvailableVolume, ...]) -> tuple[_Candidate, ...]:
        """Give the volumes that would do, with the nodes that reach each; claims that ask alike share them."""
        known = self._pools.get(id(available))
        if known is None:
            labels = self.nodes.labels
            found = tuple(_Candidate(v.name, np.flatnonzero(reached(labels, v.nodes))) for v in available)
            known = self._pools[id(available)] = available, found
            for volume in available:
                self._taker.setdefault(volume.name, "")
        return known[1]

    def count(self, term: OpenTerm, node: int, sign: int) -> None:
        """A claim is decided about with its first task, and open again without its last one."""
        journal, row = self.journal, term.row
        journal.put(self._waiting, row, self._waiting[row] + sign)
        choice = self._choice[row]
        if sign > 0 and choice is None:
            volume = None if term.selected >= 0 else self._smallest(term, node)
            journal.put(self._choice, row, VolumeChoice(node, volume))
            if volume is not None:
                journal.put(self._taker, volume, term.claim)
        elif sign < 0 and not self._waiting[row] and choice is not None:
            journal.put(self._choice, row, None)
            if choice.volume is not None:
                journal.put(self._taker, choice.volume, "")

    def _smallest(self, term: OpenTerm, node: int) -> str | None:
        for name, nodes in term.candidates:
            at = int(np.searchsorted(nodes, node))
            if not self._taker[name] and at < len(nodes) and nodes[at] == node:
                return name
        return None

    def chosen(self, terms: tuple[OpenTerm, ...]) -> tuple[ClaimedVolume, ...]:
        """Give what the open claims of a placed task will be bound to."""
        found = ((term.claim, self._choice[term.row]) for term in terms)
        names = self.nodes.names
        return tuple(ClaimedVolume(c, choice.volume or "", names[choice.node]) for c, choice in found if choice)

    def obtainable(self, opened: tuple[OpenTerm, ...]) -> Mask:
        """Nodes on which each open claim finds a volume or gets one; no volume serves two of them."""
        mask = np.ones(len(self.nodes), bool)
        taken: list[Indices] = []
        names: dict[str, int] = {}
        for term in opened:
            choice = self._choice[term.row]
            if choice is not None:
                mask &= self._beside(term, choice)
            elif term.selected >= 0:
                mask &= term.provided & (np.arange(len(self.nodes)) == term.selected)
            else:
                found = self._matched(term, taken, names)
                taken.append(found)
                mask &= (found >= 0) | term.provided
        return mask

    def _matched(self, term: OpenTerm, taken: list[Indices], names: dict[str, int]) -> Indices:
        """Give the number of the smallest volume that each node reaches and no claim before it took there; else -1."""
        found = np.full(len(self.nodes), -1, np.int64)
        for name, nodes in reversed(term.candidates):
            if not self._taker[name]:
                number = names.setdefault(name, len(names))
                there = nodes
                for other in taken:
                    there = there[other[there] != number]
                found[there] = number
        return found

    def _beside(self, term: OpenTerm, choice: VolumeChoice) -> Mask:
        """Nodes that reach what a claim will be bound to, because another task that mounts it was placed."""
        mask = np.zeros(len(self.nodes), bool)
        if choice.volume is not None:
            mask[next(nodes for name, nodes in term.candidates if name == choice.volume)] = True
            return mask
        keys = next(
            (d.topology_keys for d in self.nodes.nodes[choice.node].drivers if d.name == term.provisioner), None
        )
        if keys is None:
            mask[choice.node] = True
            return mask
        mask[:] = True
        for key in keys:
            ids, _ = self.nodes.domains.of(key)
            mask &= ids == ids[choice.node]
        return mask
