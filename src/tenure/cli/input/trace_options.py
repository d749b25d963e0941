"""The options by which every command that takes a trace reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])

FORMAT_NAMES: Final = (
    "swf", "openb", "philly", "philly-json", "helios", "pai", "sacct", "google", "azure", "tenure",
)  # fmt: skip
"""Formats by name; here as well, so that a command need not load the readers to say which there are."""

HEAD: Final = 64 * 1024


def trace_options(command: F) -> F:
    """Give a command the options that say how traces are read, and which part of them."""
    for add in reversed(OPTIONS):
        command = add(command)
    return command


def _columns_of(ctx: click.Context) -> list[str]:
    """Give the column names of the trace that is named on the command line, as far as it is a plain table."""
    named = ctx.params.get("trace") or ctx.params.get("traces") or ctx.args  # the last while its line is unfinished
    path = named if isinstance(named, str) else named[0] if named else ""
    try:
        with Path(path).open("rb") as stream:
            head = stream.read(HEAD).split(b"\n", 1)[0].decode("utf-8-sig")
    except (OSError, ValueError):
        return []
    separator = next((sign for sign in ",\t;|" if sign in head), ",")
    return [name.strip() for name in head.split(separator) if name.strip() and name.isprintable()]


def _complete_queue(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in _columns_of(ctx) if name.startswith(incomplete)]


def _complete_columns(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete what comes after the last comma: a column of the file, and after ``=`` a field."""
    from tenure.simulator.traces.tenure_csv import COLUMNS  # noqa: PLC0415  only to complete

    done, comma, part = incomplete.rpartition(",")
    name, equals, begun = part.partition("=")
    if equals:
        return [CompletionItem(f"{done}{comma}{name}={one}") for one in COLUMNS if one.startswith(begun)]
    return [CompletionItem(f"{done}{comma}{one}=") for one in _columns_of(ctx) if one.startswith(name)]


OPTIONS: Final = (
    click.option("--trace-format", type=click.Choice(FORMAT_NAMES),
                 help="Format of the trace; recognised by name and header when not given."),
    click.option("--columns", metavar="COLUMN=FIELD,…", shell_complete=_complete_columns,
                 help="Which column of a table (CSV or Parquet) is which field of Tenure's format, or of the one named "
                 "by --trace-format; columns that are no field become labels."),
    click.option("--queue-from", metavar="COLUMN", shell_complete=_complete_queue,
                 help="Queue of each job: a column or label, or a text with several, such as {group}-{user}."),
    click.option("--beside", multiple=True, metavar="FILE", type=click.Path(),
                 help="Another table of the same trace (pai, google). Any number of times."),
    click.option("--nodes", metavar="FILE", type=click.Path(),
                 help="The list of nodes that goes with an openb list of pods."),
    click.option("--processors", type=click.IntRange(1), metavar="N", help="CPUs of the machine of an swf log."),
    click.option("--from", "start", metavar="T", help="Leave out jobs submitted before T (trace seconds, or as 30d)."),
    click.option("--to", "end", metavar="T", help="Leave out jobs submitted at T or later."),
)  # fmt: skip
