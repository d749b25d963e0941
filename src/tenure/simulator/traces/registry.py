"""The known trace formats. A new one is one file and one line in `FORMATS`."""

from __future__ import annotations

from pathlib import Path

from tenure.model.collector import collector_paused
from tenure.model.problems import InputProblem, InvalidInputError
from tenure.simulator.traces import openb, philly, swf, tenure_csv
from tenure.simulator.traces.records import ReadOptions, Trace, TraceFormat
from tenure.simulator.traces.source import TraceSource, open_source

ALL = (swf.FORMAT, openb.FORMAT, philly.FORMAT, tenure_csv.FORMAT)
FORMATS: dict[str, TraceFormat] = {reader.name: reader for reader in ALL}
"""Readers by name; recognition asks them in this order."""

HEAD = 64 * 1024
"""Bytes of the file that recognition looks at."""


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
    reader = FORMATS[name] if name is not None else _recognise(source)
    _check_options(source, reader, options)
    with collector_paused():
        return reader.read(source, options)


def _check_options(source: TraceSource, reader: TraceFormat, options: ReadOptions) -> None:
    if options.processors is not None and reader is not swf.FORMAT:
        raise source.fail(f"the number of processors goes with an swf log; this is a trace of format {reader.name}")
    if options.nodes_file is not None and reader is not openb.FORMAT:
        raise source.fail(f"a node list goes with an openb list of pods; this is a trace of format {reader.name}")


def _recognise(source: TraceSource) -> TraceFormat:
    head = source.data[:HEAD].decode("utf-8-sig", errors="replace")
    for reader in FORMATS.values():
        if reader.recognises(source.path.name.lower(), head):
            return reader
    if openb.is_node_list(head):
        raise source.fail("this is openb's list of nodes, not of pods: pass it with --nodes beside a pod list")
    raise source.fail(f"no known trace format: name one of {', '.join(FORMATS)} with --trace-format")
