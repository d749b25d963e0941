"""The domains of nodes: those with the same value of a label are in one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tenure.model.node import Node


class NodeDomains:
    """The domains of ``nodes`` by label, found when they are first asked for; ``keys`` are the labels that there are.

    Labels of nodes stay, and so do these.
    """

    def __init__(self, nodes: list[Node]) -> None:
        self.keys = frozenset[str]().union(*(node.labels for node in nodes))
        self._nodes = nodes
        self._found: dict[str, tuple[NDArray[np.int64], list[str]]] = {}
        self._together: dict[tuple[str, int], NDArray[np.int64]] = {}
        self._in_none = np.full(len(nodes), -1, np.int64), list[str]()

    def of(self, key: str) -> tuple[NDArray[np.int64], list[str]]:
        """For each node the index of its value of ``key`` in the sorted list of values, -1 without the label."""
        if key not in self.keys:
            return self._in_none
        found = self._found.get(key)
        if found is None:
            values = sorted({n.labels[key] for n in self._nodes if key in n.labels})
            index = {value: i for i, value in enumerate(values)}
            ids = np.fromiter((index.get(n.labels.get(key, ""), -1) if key in n.labels else -1 for n in self._nodes),
                              np.int64, len(self._nodes))  # fmt: skip
            found = self._found[key] = (ids, values)
        return found

    def places(self, node: int) -> tuple[int, ...]:
        """Give the domains in which a node stands, of all labels by which domains were asked for."""
        return tuple(int(ids[node]) for ids, _ in self._found.values())

    def around(self, key: str, node: int) -> NDArray[np.int64]:
        """Give the nodes with a node's own value of ``key``; none where it has not the label."""
        ids, _ = self.of(key)
        place = key, int(ids[node])
        found = self._together.get(place)
        if found is None:
            found = self._together[place] = np.flatnonzero(ids == ids[node]) if ids[node] >= 0 else ids[:0]
        return found
