"""A question to the planner, and its answer, as plain arrays: neither knows a session or a cluster.

Model: removal and inflow. Tasks that ask for the same form a *class*; what counts is how many of a class leave a node
and how many come in, not which. A class that can be laid out on a node in several ways (on either of two sockets, say)
has several *shapes*; usually it has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveBound:
    """The sum of ``weights`` over the tasks that are moved is at most ``limit``.

    ``concurrent``: it bounds what is down at one time, so that several waves may obey it where one cannot.
    """

    name: str
    weights: Mapping[int, int]
    limit: int
    concurrent: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingMembers:
    """Members of a pending group that ask for the same: ``count`` of the class ``cls``."""

    group: int
    cls: int
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class DomainFamily:
    """Groups whose members all land under one number of ``domain`` (``int64[nodes]``, -1 where none may)."""

    groups: tuple[int, ...]
    domain: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MoveProblem:
    """Nodes, tasks that may be moved, and groups that wait.

    Parameters
    ----------
    free
        ``int64[resources, nodes]``: room, with everything that may be moved where it is.
    ask
        ``int64[shapes, resources]``: what one task takes in each shape.
    allowed
        ``bool[shapes, nodes]``: where a task may land in that shape.
    shapes
        For each class the numbers of its shapes.
    cls, shape, node
        ``int64[tasks]``: class, present shape and node of each task that may be moved.
    cost
        ``int64[tasks]``, at least 1: what moving it costs.
    unit
        ``int64[tasks]``: cores, of which one task moves alone or all do; -1 for tasks that are free to go singly.
    asks
        What waits. A group is placed whole or not at all.
    domain
        ``int64[groups, nodes]``: all members of a group land under one number; -1 where none may.
    families
        Groups that land under one number together.
    bounds
        Budgets.
    resources, nodes
        Names, for reasons.
    units, real
        How much of each resource one unit of the arrays is, and the room in its own units, for reasons; 1 and ``free``
        where none are given.
    in_place
        Whether a task may move to another shape on its own node.
    """

    free: Ints
    ask: Ints
    allowed: Mask
    shapes: tuple[tuple[int, ...], ...]
    cls: Ints
    shape: Ints
    node: Ints
    cost: Ints
    unit: Ints
    asks: tuple[PendingMembers, ...] = ()
    domain: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    families: tuple[DomainFamily, ...] = ()
    bounds: tuple[MoveBound, ...] = ()
    resources: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    units: tuple[int, ...] = ()
    real: Ints | None = None
    in_place: bool = True

    def together(self) -> list[tuple[frozenset[int], Ints]]:
        """Groups and families: sets of groups that land under one number, and the numbers of the nodes."""
        single = [(frozenset((group,)), self.domain[group]) for group in sorted({a.group for a in self.asks})]
        return single + [(frozenset(f.groups), f.domain) for f in self.families]

    @property
    def tasks(self) -> int:
        """Number of tasks that may be moved."""
        return len(self.cls)

    @property
    def size(self) -> int:
        """Number of nodes."""
        return int(self.free.shape[1])

    def takes(self) -> Ints:
        """What each task takes where it is: ``int64[tasks, resources]``."""
        taken: Ints = self.ask[self.shape]
        return taken


@dataclass(frozen=True, slots=True)
class TaskMove:
    """A task moves from one node to another, where it takes a shape. ``origin == target``: it restarts in place."""

    task: int
    origin: int
    target: int
    shape: int


@dataclass(frozen=True, slots=True)
class MemberLanding:
    """A member of a pending group lands. ``ask`` is the number of the entry of `Problem.asks`."""

    ask: int
    node: int
    shape: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A statement of how good a plan is, and how that is known.

    ``cost`` is None where there is no plan. ``method`` is one of ``exact`` (proven by branch and bound), ``cover``
    (proven by the cover bound), ``greedy`` (not proven: ``gap`` says how far from the bound), ``decomposed`` (the
    same, but parts of the cluster were solved exactly), ``impossible`` (proven that there is none) and ``unknown``
    (none was found, and none was ruled out).
    """

    cost: float | None
    lower_bound: float
    method: str
    reason: str = ""

    @property
    def gap(self) -> float | None:
        """How far the cost may be above the least, as a share of the cost."""
        if self.cost is None:
            return None
        return (self.cost - self.lower_bound) / self.cost if self.cost else 0.0


@dataclass(frozen=True, slots=True)
class MoveAnswer:
    """The answer to a move problem: moves and landings, none where there is no plan, and the certificate.

    The certificate is in the units of the problem. ``prices`` are what its tasks cost in millionths of a weighted
    resource-second, ``unit`` how many of these are one in the problem; without prices its unit is a resource-second.
    """

    moves: tuple[TaskMove, ...]
    landings: tuple[MemberLanding, ...]
    certificate: Certificate
    prices: tuple[int, ...] = ()
    unit: int = 1

    @property
    def feasible(self) -> bool:
        """Whether there is a plan."""
        return self.certificate.cost is not None
