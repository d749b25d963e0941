"""What the console's views need, wherever it comes from: one cluster at moments, and what happened to it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, Protocol, Self

from tenure.history.reading.takers import Taker
from tenure.web.access.viewer import ANOTHER, EVERYTHING, Viewer
from tenure.web.sources.picture import Picture

Sorted = Literal["at", "lost", "gained", "cost", "workload", "cause"]

SORTS: Final[tuple[Sorted, ...]] = ("at", "lost", "gained", "cost", "workload", "cause")
PAID: Final = ("yes", "no", "unknown")
HOW: Final = ("done", "planned", "shadow")


class EvictionLine(NamedTuple):
    """An eviction: its victim, its cause, its beneficiary, and whether it paid. ``at`` in µs since the epoch.

    ``how`` is ``done``, ``planned`` (the next cycle would make it) or ``shadow`` (it was only recorded). ``cost`` is in
    weighted resource-seconds; ``lost`` and ``gained`` in resource-seconds by resource, GPUs in whole ones, None where
    that is not known.
    """

    at: int
    workload: str
    queue: str
    task: str
    cause: str
    beneficiary: str | None
    beneficiary_queue: str | None
    node: str | None = None
    to: str | None = None
    cost: float | None = None
    lost: Mapping[str, float] | None = None
    gained: Mapping[str, float] | None = None
    paid: bool | None = None
    how: str = "done"
    reason: str = ""
    settled_at: int | None = None
    """When it was known what came of it, in µs since the epoch."""

    def as_of(self, at: int | None) -> Self:
        """Give it as it was known at a moment: what came of it later was not."""
        if at is None or self.settled_at is None or self.settled_at <= at:
            return self
        return self._replace(gained=None, paid=None, settled_at=None)


@dataclass(frozen=True, slots=True)
class EvictionQuery:
    """Which evictions are asked for, and in which order. Times in µs since the epoch, ``until`` excluded.

    ``at``: only what was known at that moment.
    """

    since: int | None = None
    until: int | None = None
    cause: str = ""
    queue: str = ""
    beneficiary: str = ""
    workload: str = ""
    paid: str = ""
    how: str = ""
    sort: Sorted = "at"
    descending: bool = True
    limit: int = 100
    offset: int = 0
    at: int | None = None

    def takes(self, line: EvictionLine) -> bool:
        """Whether an eviction is meant."""
        paid = {True: "yes", False: "no", None: "unknown"}[line.paid]
        return (
            (self.since is None or line.at >= self.since)
            and (self.until is None or line.at < self.until)
            and (self.at is None or line.at <= self.at)
            and self.cause in ("", line.cause)
            and self.queue in ("", line.queue)
            and self.workload in ("", line.workload)
            and self.beneficiary in ("", line.beneficiary)
            and self.paid in ("", paid)
            and self.how in ("", line.how)
        )


@dataclass(frozen=True, slots=True)
class CauseSum:
    """What evictions of one cause come to; ``lost`` and ``gained`` in resource-seconds by resource."""

    cause: str
    count: int = 0
    paid: int = 0
    unpaid: int = 0
    lost: Mapping[str, float] = field(default_factory=dict)
    gained: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EvictionPage:
    """A page of evictions, how many there are in all, and their sums by cause."""

    lines: Sequence[EvictionLine]
    total: int
    sums: Sequence[CauseSum] = ()


class StoryLine(NamedTuple):
    """Something that happened to a workload. ``whom`` is the other workload."""

    at: int
    kind: str
    message: str
    cause: str = ""
    whom: str | None = None


class WaitLine(NamedTuple):
    """How long a workload waited, or has waited. Times in µs since the epoch, ``waited`` in µs."""

    workload: str
    queue: str
    created_at: int
    started_at: int | None
    waited: int


@dataclass(frozen=True, slots=True)
class UseSeries:
    """What queues held over time: moments in µs since the epoch, values by queue in the unit of ``resource``.

    ``waiting`` counts workloads that wait, ``evictions`` those since the moment before. ``step``: values are means over
    so many µs from their moment on; 0: they are of the moment.
    """

    resource: str
    capacity: int
    moments: Sequence[int]
    queues: Mapping[str, Sequence[float]]
    waiting: Sequence[float] = ()
    evictions: Sequence[float] = ()
    step: int = 0

    def as_of(self, at: int | None) -> Self:
        """Give what was over by a moment."""
        if at is None:
            return self
        count = bisect_right(self.moments, at - self.step)
        queues = {name: values[:count] for name, values in self.queues.items()}
        return replace(self, moments=self.moments[:count], queues=queues, waiting=self.waiting[:count],
                       evictions=self.evictions[:count])  # fmt: skip


class Trouble(NamedTuple):
    """A problem that needs attention: how bad it is (``bad`` or ``odd``), and a sentence."""

    mood: str
    message: str


class ConsoleSource(Protocol):
    """Where the console's data come from. Safe to use from several threads; whatever it gives is bounded.

    Where a moment ``at`` (µs since the epoch) is given, nothing of a later time is told.

    ``version`` changes whenever `picture` without a moment, or what happened, may be another.
    """

    name: str
    kind: str
    is_live: bool

    @property
    def note(self) -> str:
        """Say in a sentence what is known, and what is not."""

    @property
    def version(self) -> int:
        """Number of the present state."""

    def picture(self, at: int | None = None) -> Picture:
        """Give the cluster at a moment (µs since the epoch), the newest that is known where none is given."""

    def span(self) -> tuple[int, int]:
        """Give the first and the last moment that are known, in µs since the epoch."""

    def namespaces(self) -> set[str]:
        """Give the namespaces of all workloads that are there, or of which the past tells."""

    def log(self) -> Iterable[EvictionLine]:
        """Give the evictions that are known, of very many the newest; `evictions_of` says which a viewer may see."""

    def story(self, key: str, limit: int, at: int | None = None, viewer: Viewer = EVERYTHING) -> list[StoryLine]:
        """Give what happened to a workload, in order; of more than ``limit`` the last.

        Tasks and nodes that the viewer does not see are not named in it.
        """

    def takers(self, key: str, limit: int, at: int | None = None) -> list[Taker]:
        """Give who took or holds the room that a workload waits or waited for, the most telling first."""

    def waits(self, viewer: Viewer, limit: int, at: int | None = None) -> list[WaitLine]:
        """Give those that wait or waited longest, the longest first."""

    def series(self, points: int) -> UseSeries | None:
        """Give what queues held over the whole span, at so many moments at most; None where nothing is known."""

    def troubles(self, at: int | None = None) -> list[Trouble]:
        """Say what is wrong with where the data come from; of a moment, with what is known of it."""

    def close(self) -> None:
        """Let go of what is held."""


def evictions_of(source: ConsoleSource, query: EvictionQuery, viewer: Viewer) -> EvictionPage:
    """Give evictions of which a viewer may see the victim or the beneficiary."""
    return chosen(shown_to(viewer, source.log()), query)


def shown_to(viewer: Viewer, lines: Iterable[EvictionLine]) -> Iterator[EvictionLine]:
    """Give those of which a viewer sees the victim or the beneficiary; the other one is not named.

    What they do not see is taken away before anything is sorted, so that no order tells of it.
    """
    if viewer.sees_all:
        yield from lines
        return
    for line in lines:
        victim, winner = viewer.sees(line.workload), viewer.sees(line.beneficiary)
        if victim and winner:
            yield line
        elif victim:
            yield line._replace(beneficiary=ANOTHER)
        elif winner and line.beneficiary is not None:
            yield line._replace(workload=ANOTHER, task="")


def chosen(lines: Iterable[EvictionLine], query: EvictionQuery) -> EvictionPage:
    """Select, sort and sum evictions that are all in memory."""
    found = [line for line in (line.as_of(query.at) for line in lines) if query.takes(line)]
    found.sort(key=lambda line: (line.at, line.workload, line.task))
    found.sort(key=lambda line: _sort_key(line, query.sort), reverse=query.descending)
    return EvictionPage(found[query.offset : query.offset + query.limit], len(found), sums_of(found))


def _sort_key(line: EvictionLine, sort: str) -> tuple[float, str]:
    match sort:
        case "lost":
            return sum((line.lost or {}).values()), ""
        case "gained":
            return sum((line.gained or {}).values()), ""
        case "cost":
            return line.cost or 0.0, ""
        case "workload":
            return 0.0, line.workload
        case "cause":
            return 0.0, line.cause
        case _:
            return float(line.at), ""


def sums_of(lines: Iterable[EvictionLine]) -> list[CauseSum]:
    """Add evictions up by cause, those by which most was lost first."""
    counts: dict[str, list[int]] = {}
    lost: dict[str, dict[str, float]] = {}
    gained: dict[str, dict[str, float]] = {}
    for line in lines:
        count = counts.setdefault(line.cause, [0, 0, 0])
        count[0] += 1
        count[1] += line.paid is True
        count[2] += line.paid is False
        _add(lost.setdefault(line.cause, {}), line.lost)
        _add(gained.setdefault(line.cause, {}), line.gained)
    found = [
        CauseSum(cause, count, paid, unpaid, lost[cause], gained[cause])
        for cause, (count, paid, unpaid) in counts.items()
    ]
    return sorted(found, key=lambda one: (-sum(one.lost.values()), -one.count, one.cause))


def _add(sums: dict[str, float], more: Mapping[str, float] | None) -> None:
    for name, amount in (more or {}).items():
        sums[name] = sums.get(name, 0.0) + amount
