"""Traces: reading them, cutting a part out, and changing their load."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tenure.simulator.traces.records import SECOND, ReadOptions, Trace, TraceJob
from tenure.simulator.traces.registry import open_trace

__all__ = ["Trace", "TraceJob", "read_trace", "scale_load", "slice_trace"]


def read_trace(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  the option's own name
    processors: int | None = None,
    nodes_file: str | Path | None = None,
    start_s: float | None = None,
    end_s: float | None = None,
) -> Trace:
    """Read a trace file, gzipped or not.

    Parameters
    ----------
    path
        The file.
    format
        ``swf``, ``openb``, ``philly`` or ``tenure``; recognised by name and header when not given.
    processors
        CPUs of the machine, instead of ``MaxProcs`` of an swf header.
    nodes_file
        openb's node list.
    start_s, end_s
        Jobs submitted before or from then on, in seconds of the trace's own time, need not be kept; `slice_trace` cuts.

    Raises
    ------
    InvalidInputError
        The file cannot be read, is of no known format, or has malformed lines; all are reported with their numbers.
    """
    options = ReadOptions(
        processors=processors,
        nodes_file=None if nodes_file is None else Path(nodes_file),
        start=None if start_s is None else round(start_s * SECOND),
        end=None if end_s is None else round(end_s * SECOND),
    )
    return open_trace(Path(path), format, options)


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
