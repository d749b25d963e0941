"""Reading what stands in an object with the model's own readers: what is wrong is told of the object it stands in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tenure.clusters.kubernetes.api import Meta
from tenure.model import rules as _rules  # noqa: F401  registers the checks of single values
from tenure.model.fields.kinds import ValueKind
from tenure.model.values.report import BAD, Path, ProblemReport, path_text

T = TypeVar("T")

Complain = Callable[[str, Meta, str], None]
"""Told of kind and metadata of an object, and of what is wrong with it."""


def read(record: ValueKind, plain: Any, top: str = "spec") -> tuple[Any, list[str]]:
    """Read a value; gives `BAD` if anything about it is wrong, and what that is."""
    report = ProblemReport()
    made = record.decode(plain, (None, top), report)
    if report.problems:
        return BAD, texts(report.problems)
    return made, texts(report.warnings)


def texts(found: list[tuple[Path, str]]) -> list[str]:
    """Write findings as lines."""
    return [f"{path_text(path)}: {message}" for path, message in found]


def without(plain: Any, *names: str) -> dict[str, Any]:
    """Give a mapping without some of its keys; an empty one for what is none."""
    return {k: v for k, v in plain.items() if k not in names} if isinstance(plain, Mapping) else {}
