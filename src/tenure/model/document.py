"""A document of a file: plain values, with the line of each on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tenure.model.problems import InputProblem, InvalidInputError
from tenure.model.report import Path, ProblemReport, path_text

Lines = Mapping[Path, int]
Locate = Callable[[Iterable[Path]], Lines]


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a file. ``locate`` finds the lines of paths; it reads the text again, so ask once for all."""

    file: str
    value: Any
    locate: Locate = field(repr=False)

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
