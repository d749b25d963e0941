"""The known trace formats. A new one is one file and one line in `FORMATS`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tenure.model.documents.collector import collector_paused
from tenure.model.values.problems import InputProblem, InvalidInputError
from tenure.simulator.traces import azure, google, helios, openb, pai, philly, philly_json, sacct, swf, tenure_csv
from tenure.simulator.traces.mapping import listed
from tenure.simulator.traces.records import ReadOptions, Trace, TraceFormat
from tenure.simulator.traces.source import TraceSource, open_source
from tenure.simulator.traces.swf import NO_SUBMIT
from tenure.simulator.traces.table import first_line

ALL = (
    swf.FORMAT, openb.FORMAT, philly.FORMAT, philly_json.FORMAT, helios.FORMAT, pai.FORMAT, sacct.FORMAT, google.FORMAT,
    azure.FORMAT, tenure_csv.FORMAT,
)  # fmt: skip
FORMATS: dict[str, TraceFormat] = {reader.name: reader for reader in ALL}
"""Readers by name; recognition asks them in this order."""


def open_trace(path: Path, name: str | None, options: ReadOptions) -> Trace:
    """Read a trace in the named format, or in the one that its content and file name show.

    Raises
    ------
    InvalidInputError
        The file cannot be read, the format is unknown, or lines are malformed.
    """
    if name is not None and name not in FORMATS:
        message = f"unknown trace format {name!r}: known are {', '.join(FORMATS)}"
        raise InvalidInputError([InputProblem(str(path), 0, "", message)])
    source = open_source(path)
    reader = FORMATS[name] if name is not None else _recognise(source, options)
    _check_options(source, reader, options)
    with collector_paused():
        return _without_early(reader.read(source, options))


def _without_early(trace: Trace) -> Trace:
    """Leave out jobs that were submitted before the time axis begins, and count them as dropped."""
    jobs = tuple(job for job in trace.jobs if job.workload.created_at >= 0)
    early = len(trace.jobs) - len(jobs)
    if not early:
        return trace
    reasons = dict(sorted({**trace.drop_reasons, NO_SUBMIT: trace.drop_reasons.get(NO_SUBMIT, 0) + early}.items()))
    return replace(trace, jobs=jobs, dropped=trace.dropped + early, drop_reasons=reasons)


def _check_options(source: TraceSource, reader: TraceFormat, options: ReadOptions) -> None:
    if options.processors is not None and reader is not swf.FORMAT:
        raise source.fail(f"the number of processors goes with an swf log; this is a trace of format {reader.name}")
    if options.nodes_file is not None and reader is not openb.FORMAT:
        raise source.fail(f"a node list goes with an openb list of pods; this is a trace of format {reader.name}")
    if options.mapping.pairs and not reader.maps:
        raise source.fail(
            f"--columns goes with a table that names its columns; this is a trace of format {reader.name}"
        )
    if options.beside and not reader.joins:
        with_tables = " or ".join(known.name for known in ALL if known.joins)
        raise source.fail(f"--beside goes with a trace of format {with_tables}; this is one of format {reader.name}")


def _recognise(source: TraceSource, options: ReadOptions) -> TraceFormat:
    if options.mapping.pairs:
        return tenure_csv.FORMAT
    head = source.head
    for reader in FORMATS.values():
        if reader.recognises(source.path.name.lower(), head):
            return reader
    if openb.is_node_list(head):
        raise source.fail("this is openb's list of nodes, not of pods: pass it with --nodes beside a pod list")
    message = f"no known trace format: name one of {', '.join(FORMATS)} with --trace-format"
    columns = first_line(head)
    if len(columns) > 1 and all(map(str.isprintable, columns)):
        needed = " and ".join(tenure_csv.JOBS.needed)
        message += f", or say with --columns COLUMN=FIELD,… which columns are {needed}; there are {listed(columns)}"
    raise source.fail(message)
