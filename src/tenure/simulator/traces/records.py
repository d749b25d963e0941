"""What every trace reader produces, and what it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tenure.model.node import Node
from tenure.model.workload import Workload
from tenure.simulator.traces.columns import TraceTable
from tenure.simulator.traces.mapping import NO_MAPPING, ColumnMapping
from tenure.simulator.traces.source import TraceSource

SECOND = 1_000_000
"""µs."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a trace.

    ``workload.created_at`` is the submit time in µs on the trace's own time axis (the trace's second *s* is
    ``s * 1_000_000``), ``runtime`` the µs from start to end (``None``: it never ends), ``record`` the trace's own
    number or name.
    """

    workload: Workload
    runtime: int | None
    record: str


@dataclass(frozen=True, slots=True)
class Trace:
    """A workload over time.

    ``jobs`` are sorted by submit time, then record; ``records`` counts what the file holds, of which ``dropped``
    became no job, for the reasons counted in ``drop_reasons``. ``nodes`` is the machine as far as the trace itself
    implies it. ``notes`` are sentences about what was read otherwise than it stands there. ``present`` says of
    workloads that are there before, by name, how long they need (µs), where that is not what they are expected to.
    """

    format: str
    jobs: tuple[TraceJob, ...] = ()
    dropped: int = 0
    drop_reasons: dict[str, int] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()
    records: int = 0
    notes: tuple[str, ...] = ()
    present: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a trace reader: the machine's size, instead of a header's, and where a list of nodes is.

    ``mapping`` says which column is which field; ``beside`` are further tables of the same trace.
    Jobs submitted before ``start`` and at ``end`` or later (µs of the trace's own time) need not be kept.
    """

    processors: int | None = None
    nodes_file: Path | None = None
    start: int | None = None
    end: int | None = None
    mapping: ColumnMapping = NO_MAPPING
    beside: tuple[Path, ...] = ()

    def holds(self, submitted: int) -> bool:
        """Tell whether a job submitted then is wanted."""
        return (self.start is None or submitted >= self.start) and (self.end is None or submitted < self.end)


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """A trace format: its name, how it is recognised, its reader, and what there is to know about it.

    ``recognises`` is given the file's name in lower case and the beginning of its content as text. ``origin`` says in
    a sentence what it is, ``tables`` which columns its files have, ``told`` what else becomes of them, a sentence each.
    ``maps`` says that its columns have names, so that a mapping can give them others; ``joins`` that a trace may be of
    several tables.
    """

    name: str
    recognises: Callable[[str, str], bool]
    read: Callable[[TraceSource, ReadOptions], Trace]
    origin: str
    tables: tuple[TraceTable, ...]
    told: tuple[str, ...] = ()
    maps: bool = True
    joins: bool = False
