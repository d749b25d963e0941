"""The terms of a task as rows of the table, and what of its volumes and devices restricts nodes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenure.engine.devices.served_nodes import DeviceTerm
from tenure.engine.room.nodes import Ints
from tenure.engine.storage.volumes import MountTerms
from tenure.model.mounts import ClaimMount
from tenure.model.selectors import SpreadConstraint

Mask = NDArray[np.bool_]


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


def held_terms(
    attached: tuple[ClaimMount, ...], mounts: MountTerms | None, devices: tuple[DeviceTerm, ...]
) -> TaskTerms:
    """Give the terms of a task that mounts or claims something and looks at no other task; many pods are like that."""
    terms = TaskTerms.__new__(TaskTerms)
    terms.attached, terms.mounts, terms.devices = attached, mounts, devices
    return terms
