"""What the loop needs of a cluster: to observe it, to carry plans out on it, and to tell it things."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from tenure.engine.plan import Plan
from tenure.model.cluster import Cluster
from tenure.model.settings import Settings


class ObjectNote(NamedTuple):
    """A note on a workload, a queue or the node pool (``kind``): a reason from a fixed set, and a sentence."""

    kind: str
    name: str
    reason: str
    message: str


class WaitingReason(NamedTuple):
    """The reason why a workload waits, for its pods' condition."""

    workload: str
    reason: str
    message: str


class ObservedCluster(Protocol):
    """A cluster as it was observed."""

    @property
    def cluster(self) -> Cluster:
        """Give the cluster as the engine decides about it."""

    @property
    def identities(self) -> dict[tuple[str, int], str]:
        """Give by workload and number of a task what tells its pod from any other."""


class ExternalTurn(Protocol):
    """The outcome of one turn on an external scheduler: what to report, and when to look again, in µs."""

    notes: list[ObjectNote]
    wake: int | None


class ExternalPort(Protocol):
    """The port to an external scheduler, whose pods are moved."""

    def begin(self) -> None:
        """Lead anew."""

    def cycle(self, observed: Any, settings: Settings, plan: Plan) -> ExternalTurn | None:
        """Go one step on, after a plan for Tenure's own pods; None where there is nothing to do."""


class LiveCluster(Protocol):
    """A cluster that changes by itself."""

    @property
    def has_more_to_explain(self) -> bool:
        """Tell whether some that do not say why they wait were not taken yet."""

    @property
    def fenced(self) -> type[Exception]:
        """Give what is raised where this process may write no more."""

    def ready(self) -> bool:
        """Whether everything that a decision depends on is known."""

    def wait(self, seconds: float) -> bool:
        """Wait until something may have changed, or so many seconds; gives whether something may have."""

    def wake(self) -> None:
        """Let nobody wait any longer."""

    def observe(self, now: int) -> Any:
        """Give what is there now."""

    def stands(self, plan: Plan) -> bool:
        """Whether what a plan counts on was not refused since it was observed; else it is to be made anew."""

    def carry_out(self, plan: Plan, view: Any) -> Any:
        """Carry a plan out."""

    def unexplained(self, view: Any, most: int) -> Iterable[str]:
        """Give workloads of which is to be told why they wait, at most so many; what is not taken keeps its place."""

    def tell(self, notes: Sequence[ObjectNote], waiting: Sequence[WaitingReason], view: Any) -> None:
        """Tell what was decided, as far as there is time for it."""
