"""A document of a file: plain values, with the line of each on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tenure.model.values.problems import InputProblem, InvalidInputError
from tenure.model.values.report import MAX_PROBLEMS, Path, ProblemReport, path_text

Lines = Mapping[Path, int]
Locate = Callable[[Iterable[Path]], Lines]
LocateAll = Callable[[Mapping[int, Iterable[Path]]], Mapping[int, Lines]]


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a file. ``locate`` finds the lines of paths; it reads the text again, so ask once for all.

    Of several documents in one file each has its ``number``, and ``locate_all`` finds paths of all of them at once.
    """

    file: str
    value: Any
    locate: Locate = field(repr=False)
    number: int = 0
    locate_all: LocateAll | None = field(default=None, repr=False)

    def problems(self, found: Iterable[tuple[Path, str]]) -> tuple[InputProblem, ...]:
        """Turn paths and messages into problems with lines, in the order of the file."""
        listed = list(dict.fromkeys(found))
        lines = self.locate({path for path, _ in listed}) if listed else {}
        made = [InputProblem(self.file, lines.get(path, 0), path_text(path), message) for path, message in listed]
        return tuple(sorted(made, key=lambda problem: problem.line))

    def warnings(self, report: ProblemReport) -> tuple[InputProblem, ...]:
        """Give what deserves a look, and how much more of it there is."""
        told = self.problems(report.warnings)
        if report.suppressed_warnings:
            told += (InputProblem(self.file, 0, "", f"{report.suppressed_warnings} further warnings are not shown"),)
        return told

    def require_clean(self, report: ProblemReport) -> None:
        """Raise what the report holds, if it holds problems."""
        if not report.problems:
            return
        problems = self.problems(report.problems)
        if report.suppressed:
            problems += (InputProblem(self.file, 0, "", f"{report.suppressed} further problems are not shown"),)
        raise InvalidInputError(problems)


def problems_of(found: Sequence[tuple[Document, ProblemReport]]) -> tuple[InputProblem, ...]:
    """Give what is wrong with the documents of one file: as many as are told of one, and how many more there are."""
    left, more = MAX_PROBLEMS, 0
    kept: list[tuple[Document, list[tuple[Path, str]]]] = []
    for document, report in found:
        shown = report.problems[:left]
        more += len(report.problems) - len(shown) + report.suppressed
        left -= len(shown)
        if shown:
            kept.append((document, shown))
    if not kept:
        return ()
    first = kept[0][0]
    if len(kept) == 1 or first.locate_all is None:
        problems = [problem for document, shown in kept for problem in document.problems(shown)]
    else:
        lines = first.locate_all({document.number: [path for path, _ in shown] for document, shown in kept})
        problems = []
        for document, shown in kept:
            located = replace(document, locate=partial(_known, lines[document.number]))
            problems += located.problems(shown)
    if more:
        problems.append(InputProblem(first.file, 0, "", f"{more} further problems are not shown"))
    return tuple(problems)


def _known(lines: Lines, _paths: Iterable[Path]) -> Lines:
    return lines
