"""What a nominator is told, and what it gives back.

A nominator looks at a session and names candidates; it changes nothing and evicts nothing. The requeue action decides
which candidates are evicted. Source: spec, expected runtime and requeue, "Nomination".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.nominators.contention import Contention

SkipReason = Literal[
    "not_running",
    "not_preemptible",
    "invalid_duration",
    "missing_start",
    "clock_skew",
    "cooldown",
    "minruntime_protected",
]
REASONS: tuple[SkipReason, ...] = get_args(SkipReason)
"""Every reason for a skip, in the order in which the checks are made."""


@dataclass(frozen=True, slots=True)
class RequeueNomination:
    """A candidate of one nominator. ``since`` (µs since the epoch) is when it became eligible, if that is known.

    ``runtime`` and ``expected`` are in µs, for the plugins that compare them.
    """

    workload: str
    since: int | None = None
    runtime: int | None = None
    expected: int | None = None


@dataclass(frozen=True, slots=True)
class NominationSkip:
    """A workload that is none of a plugin's candidates, and the reason."""

    workload: str
    plugin: str
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class NominationContext:
    """The state that nominators look at, none of which they may change.

    ``due`` are the running workloads that may have reached their expected runtime, and perhaps others; ``everyone`` are
    all workloads. Where skips are not asked for, both are only those that can matter.
    """

    session: Session
    shares: CurrentShares
    contention: Contention
    due: Iterable[WorkloadState]
    everyone: Iterable[WorkloadState]


@dataclass(slots=True)
class NominatorFindings:
    """The findings of one nominator. ``reports`` are settings that are wrong: workload and sentence."""

    nominations: list[RequeueNomination] = field(default_factory=list)
    skips: list[NominationSkip] = field(default_factory=list)
    reports: list[tuple[str, str]] = field(default_factory=list)


class Nominator(Protocol):
    """A plugin."""

    @property
    def name(self) -> str:
        """Name of the plugin; it stands in counters, so it is fixed."""

    def nominate(self, scene: NominationContext) -> NominatorFindings:
        """Name candidates; without side effects."""


def held_back(scene: NominationContext, workload: WorkloadState) -> SkipReason | None:
    """Give the first reason why a workload that some plugin has in mind is no candidate, whatever the plugin."""
    if not workload.occupied():
        return "not_running"
    if workload.fixed:
        return "not_preemptible"
    return cooling(scene, workload)


def cooling(scene: NominationContext, workload: WorkloadState) -> SkipReason | None:
    """Give the reason why a running workload has to be left alone for the time being."""
    if workload.not_before is not None and scene.session.now < workload.not_before:
        return "cooldown"
    if scene.contention.protected(workload):
        return "minruntime_protected"
    return None
