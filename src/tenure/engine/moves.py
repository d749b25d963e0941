"""What a plan says of moves: who moves where in which wave, and how good that is."""

from __future__ import annotations

from dataclasses import dataclass, field

NEVER = 1 << 50
"""A lower bound so high says that there is no plan at all."""


@dataclass(frozen=True, slots=True)
class MoveStep:
    """The move of one task between two nodes; ``mode`` is ``evict-first`` or ``reserve-first``."""

    workload: str
    task: str
    origin: str
    target: str
    mode: str


@dataclass(frozen=True, slots=True)
class MovePlan:
    """The moves for some workloads (namespace/name), by wave, with their certificate.

    ``trigger``: ``pending``, ``drain``, ``hot-node``, ``new-nodes`` or ``background``. ``cost`` is None where there is
    no plan; costs are in weighted resource-seconds. ``gain`` is what the layout gains, in weighted resources, ``net``
    what is left of it once the cost is paid at `minGain`, and ``bound`` the most that any plan could leave; None where
    moves are not made for the layout's sake. ``shadow``: it is a record of what would be done, and nothing is.
    ``nodes`` are those that are to be emptied or cooled, or that are new. ``leaving`` says how many of the waves leave
    now: the others are planned anew once those have landed; None: all of them leave.
    """

    beneficiaries: tuple[str, ...]
    trigger: str
    cost: float | None
    lower_bound: float
    gap: float | None
    method: str
    reason: str
    waves: tuple[tuple[MoveStep, ...], ...] = field(default=())
    shadow: bool = False
    gain: float | None = None
    net: float | None = None
    bound: float | None = None
    nodes: tuple[str, ...] = ()
    leaving: int | None = None

    @property
    def feasible(self) -> bool:
        """Whether there is a plan."""
        return self.cost is not None
