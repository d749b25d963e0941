"""Traces: reading them, cutting a part out, and changing their load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tenure.simulator.traces.mapping import ColumnMapping, parse_columns
from tenure.simulator.traces.queue_from import names_in, with_queues
from tenure.simulator.traces.records import SECOND, ReadOptions, Trace, TraceJob
from tenure.simulator.traces.registry import open_trace

__all__ = ["Trace", "TraceJob", "read_trace", "scale_load", "slice_trace"]


def read_trace(  # noqa: PLR0913  one parameter for each option
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  the option's own name
    processors: int | None = None,
    nodes_file: str | Path | None = None,
    start_s: float | None = None,
    end_s: float | None = None,
    columns: str | None = None,
    queue_from: str | None = None,
    beside: Sequence[str | Path] = (),
) -> Trace:
    """Read a trace file, gzipped or not.

    Parameters
    ----------
    path
        The file.
    format
        A name of `FORMATS`; recognised by name and header when not given.
    processors
        CPUs of the machine, instead of ``MaxProcs`` of an swf header.
    nodes_file
        openb's node list.
    start_s, end_s
        Jobs submitted before or from then on, in seconds of the trace's own time, need not be kept; `slice_trace` cuts.
    columns
        ``COLUMN=FIELD,…``: which column of the file is which field. Columns that are no field become labels.
    queue_from
        A column, or a text with columns in braces, that says the queue of each job.
    beside
        Further tables of the same trace.

    Raises
    ------
    ValueError
        ``columns`` or ``queue_from`` is malformed.
    InvalidInputError
        The file cannot be read, is of no known format, or has malformed lines; all are reported with their numbers.
    """
    options = ReadOptions(
        processors=processors,
        nodes_file=None if nodes_file is None else Path(nodes_file),
        start=None if start_s is None else round(start_s * SECOND),
        end=None if end_s is None else round(end_s * SECOND),
        mapping=ColumnMapping(
            () if columns is None else parse_columns(columns),
            keeps_labels=columns is not None or queue_from is not None,
            wanted=() if queue_from is None else names_in(queue_from),
        ),
        beside=tuple(map(Path, beside)),
    )
    trace = open_trace(Path(path), format, options)
    return trace if queue_from is None else with_queues(trace, queue_from, str(path))


def slice_trace(trace: Trace, start_s: float | None = None, end_s: float | None = None) -> Trace:
    """Keep the jobs submitted at or after ``start_s`` and before ``end_s``, in seconds of the trace's own time.

    Times are not moved. ``None`` leaves that side open.
    """
    low = None if start_s is None else round(start_s * SECOND)
    high = None if end_s is None else round(end_s * SECOND)
    jobs = tuple(
        job
        for job in trace.jobs
        if (low is None or job.workload.created_at >= low) and (high is None or job.workload.created_at < high)
    )
    return replace(trace, jobs=jobs)


def scale_load(trace: Trace, factor: float) -> Trace:
    """Divide the times between arrivals by ``factor``: 1.2 is 20% more load. The first submit time stays.

    Raises
    ------
    ValueError
        ``factor`` is not a positive finite number.
    """
    if not 0 < factor < float("inf"):
        raise ValueError(f"the load factor must be a positive number, not {factor}")
    if not trace.jobs or factor == 1:
        return trace
    first = trace.jobs[0].workload.created_at
    return replace(trace, jobs=tuple(_moved(job, first, factor) for job in trace.jobs))


def _moved(job: TraceJob, first: int, factor: float) -> TraceJob:
    at = first + round((job.workload.created_at - first) / factor)
    return replace(job, workload=replace(job.workload, created_at=at))
