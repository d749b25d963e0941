"""The counts of terms and ports by node, kept up to date as tasks come and go."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tenure.engine.devices.claimed_devices import DeviceTable
from tenure.engine.journal import Journal
from tenure.engine.room.nodes import NOW, THEN
from tenure.engine.storage.volumes import VolumeTable
from tenure.engine.terms.task_terms import TaskTerms

Counts = NDArray[np.int32]
"""Tasks by node: of a term there is a number for each node, and nowhere are there so many tasks as 32 bits can say."""

_FEW: Final = 16
"""Rows up to which counting one after the other takes less time than all at once."""


class TermCounts:
    """The counts of all terms and ports; volumes and devices count what tasks take of them.

    ``match`` and ``hold`` are ``int32[2, terms, nodes]``: tasks that match the term, and tasks that have it as a
    required anti-affinity; ``held`` is ``int32[2, terms, 1]``, the sums of ``hold``; ``port`` is
    ``int16[2, ports, nodes]``, of which there may be very many. ``leaving`` is the part of ``match`` that
    terminates: spread does not count it.
    """

    def __init__(self, nodes: int, journal: Journal, volumes: VolumeTable, devices: DeviceTable) -> None:
        self.journal = journal
        self.volumes = volumes
        self.devices = devices
        self.match = np.zeros((2, 0, nodes), np.int32)
        self.leaving = np.zeros((2, 0, nodes), np.int32)
        self.hold = np.zeros((2, 0, nodes), np.int32)
        self.held = np.zeros((2, 0, 1), np.int32)
        self.port = np.zeros((2, 0, nodes), np.int16)

    def grow(self, terms: int, ports: int) -> None:
        """Make room for so many terms and ports; by half as much again, so that few of many steps copy them.

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

        self.match = grown(self.match, terms)
        self.leaving = grown(self.leaving, terms)
        self.hold = grown(self.hold, terms)
        self.held = grown(self.held, terms)
        self.port = grown(self.port, ports)

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
