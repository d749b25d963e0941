"""The tasks that may be moved, node by node: what all bounds of a problem read, laid out once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tenure.rescheduler.problem.definition import Ints, MoveProblem

_CHUNK = 1 << 20
"""Places for tasks up to which nodes are laid out together."""


class NodeTasks:
    """The tasks of a problem by node, and its resources, of which those that are asked for alike count as one.

    Where every shape asks for as much of one resource as of another, as it is with GPUs and free devices, only that of
    which less is free decides on a node.

    ``ask`` is ``int64[shapes, kinds]``, ``free`` and ``emptied`` are ``int64[kinds, nodes]``: what is free as things
    are, and once all has left. ``takes`` is ``int64[tasks, kinds]``, ``count`` ``int64[nodes]``.
    """

    def __init__(self, problem: MoveProblem) -> None:
        self.ask, kind = np.unique(problem.ask, axis=1, return_inverse=True)
        self.free = np.full((self.ask.shape[1], problem.size), np.iinfo(np.int64).max)
        np.minimum.at(self.free, kind.reshape(-1), problem.free)
        self.takes: Ints = self.ask[problem.shape]
        self.count = np.bincount(problem.node, minlength=problem.size)
        self._order = np.argsort(problem.node, kind="stable")
        self._end = np.cumsum(self.count)
        sums = np.zeros((problem.tasks + 1, self.ask.shape[1]), np.int64)
        np.cumsum(self.takes[self._order], axis=0, out=sums[1:])
        self.emptied = self.free + (sums[self._end] - sums[self._end - self.count]).T

    def rows(self, nodes: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Lay nodes out as rows: some of them, and ``int64[nodes, tasks]`` with their tasks in order, -1 behind them.

        Nodes with many tasks are not put beside those with few.
        """
        by_size = nodes[np.argsort(self.count[nodes], kind="stable")]
        doubled = np.ceil(np.log2(np.maximum(self.count[by_size], 1))).astype(np.int64)
        for alike in np.split(by_size, np.flatnonzero(np.diff(doubled)) + 1):
            width = int(self.count[alike].max(initial=0))
            step = max(1, _CHUNK // max(1, width))
            for first in range(0, len(alike), step):
                part = alike[first : first + step]
                yield part, self._row(part, width)

    def _row(self, nodes: Ints, width: int) -> Ints:
        place = np.arange(width)
        begin = self._end[nodes] - self.count[nodes]
        there = place < self.count[nodes][:, None]
        found = np.full(there.shape, -1)
        found[there] = self._order[(begin[:, None] + place)[there]]
        return found
