"""``tenure compare``: summaries of simulations side by side."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

import click

from tenure.model.documents.interruptible import read_interruptibly
from tenure.model.values.problems import IS_FOLDER, InputProblem, InvalidInputError
from tenure.report.comparison import comparison_json, comparison_text, measures
from tenure.report.tables import terminal

MARKS = frozenset({"jobs", "wait_s", "boundedSlowdown"})
"""By these fields a summary is recognised."""

MAPPINGS = frozenset({"utilization", "goodput", "allocated", "lost", "evictions"})
"""Fields of a summary that hold a figure for each resource or cause."""

MAX_BYTES = 100_000_000
"""A summary has a few kilobytes; what is larger than this is something else."""

MOST_FIGURES = 10_000
"""Figures of one field, each for a resource or a cause, that are compared."""


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="A.json B.json …", type=click.Path())
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the output.",
)
def compare(files: tuple[str, ...], form: str) -> None:
    """Put summaries of 'tenure simulate --format json' side by side.

    Changes are relative to the first one; the best value of each row is marked.
    """
    summaries: list[dict[str, Any]] = []
    problems: list[InputProblem] = []
    for file in files:
        try:
            summaries.append(_read(file))
        except InvalidInputError as error:
            problems += error.problems
    if problems:
        raise InvalidInputError(problems)
    names = _names(files)
    found = measures(summaries)
    if form == "json":
        click.echo(json.dumps(comparison_json(names, found), indent=2, ensure_ascii=False))
    else:
        click.echo(comparison_text(names, found, terminal()), nl=False)


def _read(file: str) -> dict[str, Any]:
    try:
        value = json.loads(_read_bytes(file))
    except json.JSONDecodeError as error:
        message = f"is no JSON: {error.msg.lower()}; write it with tenure simulate --format json"
        raise InvalidInputError([InputProblem(file, error.lineno, "", message)]) from None
    except (UnicodeDecodeError, RecursionError):
        message = "is no JSON; write it with tenure simulate --format json"
        raise InvalidInputError([InputProblem(file, 0, "", message)]) from None
    except FileNotFoundError:
        raise InvalidInputError([InputProblem(file, 0, "", "there is no such file")]) from None
    except IsADirectoryError:
        raise InvalidInputError([InputProblem(file, 0, "", IS_FOLDER)]) from None
    except OSError as error:
        raise InvalidInputError([InputProblem(file, 0, "", (error.strerror or "cannot be read").lower())]) from None
    missing = sorted(MARKS - value.keys()) if isinstance(value, dict) else sorted(MARKS)
    if missing:
        message = (
            f"is no summary of a simulation (it has no {', '.join(missing)}); tenure simulate --format json writes one"
        )
        raise InvalidInputError([InputProblem(file, 0, "", message)])
    wrong = [field for field in sorted(MARKS | MAPPINGS) if field != "jobs" and not _is_mapping(value.get(field))]
    if wrong:
        message = "is no mapping, as it is in a summary of a simulation; write it with tenure simulate --format json"
        raise InvalidInputError([InputProblem(file, 0, field, message) for field in wrong])
    long = [field for field in sorted(MAPPINGS) if len(value.get(field) or ()) > MOST_FIGURES]
    if long:
        message = f"has more than {MOST_FIGURES:,} figures: this is no summary that tenure simulate has written"
        raise InvalidInputError([InputProblem(file, 0, field, message) for field in long])
    return dict(value)


def _read_bytes(file: str) -> bytes:
    with Path(file).open("rb") as stream:
        data = read_interruptibly(stream, MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InvalidInputError([InputProblem(file, 0, "", "is too large for a summary of a simulation")])
    return data


def _is_mapping(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _names(files: Sequence[str]) -> list[str]:
    """Name summaries by their files, as short as they can still be told apart."""
    stems = [PurePath(file).stem for file in files]
    twice = {stem for stem, times in Counter(stems).items() if times > 1}
    return [file if stem in twice else stem for file, stem in zip(files, stems, strict=True)]
