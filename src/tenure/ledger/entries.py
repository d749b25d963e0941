"""What the ledger knows of evictions and pods: plain data, without a session."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from tenure.model.settings import SECOND

Labels = Mapping[str, str]

BUDGET: Final = "budget"
REFUSED: Final = "eviction-refused"
"""Kinds of what bounds evictions: budgets, and the API server, which refused one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionRequest:
    """An eviction that is asked for, or was carried out.

    Parameters
    ----------
    workload, task
        Whose, as namespace/name, and which.
    cause
        Why.
    labels
        The pod's labels.
    queues, for_queues
        Queues of the victim and of the beneficiary, each from the leaf upward. ``None``: unknown, which counts as any
        queue, so that no bound is ever broken for want of knowledge.
    lost
        What it destroys, in resource-µs by resource.
    growth
        What it destroys more with each second that it comes later, where nothing is saved meanwhile, likewise.
    up
        Whether the pod is up now: one that is down already makes nothing worse.
    forced
        It comes from a drain or a stale gang, which only a rule that names the cause refuses.
    pending
        The pod has a node and has not started: Kubernetes asks no PodDisruptionBudget before it goes.
    patience
        For how long, in µs, a PodDisruptionBudget that allows nothing spares it.
    outlasted
        So long ago it started: a PodDisruptionBudget that can never allow anything spares it no longer.
    """

    workload: str
    task: str
    cause: str
    labels: Labels = field(default_factory=dict)
    queues: tuple[str, ...] | None = ()
    for_queues: tuple[str, ...] | None = ()
    lost: Mapping[str, int] = field(default_factory=dict)
    growth: Mapping[str, int] = field(default_factory=dict)
    up: bool = True
    forced: bool = False
    pending: bool = False
    patience: int | None = None
    outlasted: bool = False

    @property
    def namespace(self) -> str:
        """Namespace of the workload."""
        return self.workload.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """An eviction that was carried out ``at`` (µs since the epoch)."""

    at: int
    ask: EvictionRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPod:
    """A pod that there ought to be. ``up``: it runs and is ready, and does not terminate.

    ``started``: it, or its workload, has been up before. Rules of our own count none that has not; a
    PodDisruptionBudget counts all.
    """

    workload: str
    task: str
    labels: Labels = field(default_factory=dict)
    queues: tuple[str, ...] = ()
    up: bool = True
    started: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearBound:
    """A linear bound on a set of evictions: the sum of ``weights`` over those carried out is at most ``bound``.

    ``weights`` maps the number of an ask to what it counts ``now``, ``growth`` to what it counts more a second later.
    ``later`` says, in the order of time, from when on the bound will be how large by itself; None: it is none then.
    Times are in µs since the epoch. ``concurrent``: it bounds what is down at one time, and not what is evicted in all.
    ``message`` says what is bounded. ``shield`` is the rule's kind: a budget, or something else that stands in the way
    of single evictions.
    """

    rule: str
    weights: Mapping[int, int]
    bound: int
    now: int = 0
    later: tuple[tuple[int, int | None], ...] = ()
    growth: Mapping[int, int] = field(default_factory=dict)
    concurrent: bool = False
    message: str = ""
    shield: str = BUDGET

    def allows_from(self, asks: Collection[int]) -> int | None:
        """When it will allow some asks together, in µs since the epoch; None where time alone does not do it."""
        wanted = sum(self.weights.get(i, 0) for i in asks)
        growth = sum(self.growth.get(i, 0) for i in asks)
        now = self.now
        times = (t for t, bound in self.later if bound is None or bound >= wanted + growth * (t - now) // SECOND)
        return next(times, None)

    @property
    def refusal(self) -> str:
        """Say in a sentence that it does not allow something."""
        return f"budget {self.rule} does not allow it: {self.message}" if self.shield == BUDGET else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleAccount:
    """The account of a budget rule at one time, for people.

    ``in_force``: its schedule's window is open, or it has none. ``evictions`` were charged in the current window,
    ``allowed`` (None: any number) are allowed beside them now; ``down`` pods are down (None: it does not count them).
    ``lost`` is what was destroyed in the window, in resource-µs by resource. ``next_at`` is when it allows more by
    itself, in µs since the epoch, where it allows none now. Of a rule that is applied to each workload singly, all of
    this is that of the workload for which it allows least.
    """

    in_force: bool
    evictions: int = 0
    allowed: int | None = None
    down: int | None = None
    lost: Mapping[str, int] = field(default_factory=dict)
    next_at: int | None = None
