"""What a cycle found out about requeueing, as data: for the plan, for counters, for events and for the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tenure.model.values.duration import format_time
from tenure.model.values.readable import time_span


@dataclass(frozen=True, slots=True)
class Nominated:
    """A candidate, and the plugins that nominated it.

    ``since`` (µs since the epoch) is when it became eligible, ``runtime`` and ``expected`` (µs) how long it has run
    and was expected to; None where the plugins do not say. ``committed``: it is requeued by this plan.
    """

    workload: str
    by: tuple[str, ...]
    since: int | None = None
    runtime: int | None = None
    expected: int | None = None
    committed: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """A workload that a plugin did not nominate, and why; the reason is one of a fixed set."""

    workload: str
    plugin: str
    reason: str


class CounterIncrement(NamedTuple):
    """An increment of a counter. Label values come from fixed sets: never names of workloads, never times."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: int


class RequeueEvent(NamedTuple):
    """An event for the owner of a workload: ``reason`` is Nominated, Requeued or InvalidSetting."""

    workload: str
    reason: str
    message: str


@dataclass(slots=True)
class RequeueOutcome:
    """The outcome of requeue in one cycle.

    ``not_before`` (µs since the epoch, by workload) is to be written on the workloads before anything of them is
    evicted. ``beneficiaries`` says for which workload each of them is requeued. ``rolled_back`` counts candidates that
    were considered while a workload contended, and run on. ``reports``: by workload, settings of its owner that are
    wrong.
    """

    nominations: list[Nominated] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    committed: int = 0
    rolled_back: int = 0
    not_before: dict[str, int] = field(default_factory=dict)
    beneficiaries: dict[str, str] = field(default_factory=dict)
    reports: dict[str, list[str]] = field(default_factory=dict)

    def add(self, later: RequeueOutcome) -> None:
        """Add what a later cycle found out: counts add up, of what is listed the later is kept."""
        for mine, other in ((self.nominations, later.nominations), (self.skipped, later.skipped)):
            _keep_latest(mine, other)
        self.committed += later.committed
        self.rolled_back += later.rolled_back
        self.not_before |= later.not_before
        self.beneficiaries |= later.beneficiaries
        self.reports |= later.reports

    def take_back(self, key: str) -> None:
        """A workload that was to be requeued runs on after all: it was considered, and is not barred."""
        if self.not_before.pop(key, None) is None:
            return
        del self.beneficiaries[key]
        self.committed, self.rolled_back = self.committed - 1, self.rolled_back + 1
        self.nominations = [replace(n, committed=False) if n.workload == key else n for n in self.nominations]

    def counts(self) -> list[CounterIncrement]:
        """Give the increments of all counters, in a fixed order."""
        by_plugin = Counter(plugin for n in self.nominations for plugin in n.by)
        by_reason = Counter((s.plugin, s.reason) for s in self.skipped)
        found = [
            CounterIncrement("tenure_requeue_nominations_total", (("plugin", plugin),), number)
            for plugin, number in sorted(by_plugin.items())
        ]
        found += [
            CounterIncrement(
                "tenure_requeue_nomination_skipped_total", (("plugin", plugin), ("reason", reason)), number
            )
            for (plugin, reason), number in sorted(by_reason.items())
        ]
        for result, number in (("committed", self.committed), ("rolled_back", self.rolled_back)):
            if number:
                found.append(CounterIncrement("tenure_requeue_transactions_total", (("result", result),), number))
        return found

    def events(self) -> list[RequeueEvent]:
        """Give events on workloads, by name."""
        found = [RequeueEvent(n.workload, "Nominated", _told(n)) for n in self.nominations]
        for key, until in self.not_before.items():
            text = f"it gives way to {self.beneficiaries[key]}; not requeued again before {format_time(until)}"
            found.append(RequeueEvent(key, "Requeued", text))
        found += [
            RequeueEvent(key, "InvalidSetting", t) for key, texts in self.reports.items() for t in dict.fromkeys(texts)
        ]
        return sorted(found, key=lambda event: event.workload)

    def log_lines(self) -> list[str]:
        """Give what belongs into the log: who was skipped by which plugin, and why."""
        return [f"requeue: {s.plugin} skips {s.workload}: {s.reason}" for s in self.skipped]


def _told(nominated: Nominated) -> str:
    whom = f"nominated by {', '.join(nominated.by)}"
    if nominated.runtime is None or nominated.expected is None:
        return whom
    ran, expected = time_span(nominated.runtime), time_span(nominated.expected)
    return f"it has run for {ran} and was expected to run for {expected}; {whom}"


def _keep_latest(mine: list[Any], later: Sequence[Any]) -> None:
    """Replace what is said of a workload by what is said of it later."""
    renewed = {entry.workload for entry in later}
    mine[:] = [entry for entry in mine if entry.workload not in renewed] + list(later)
