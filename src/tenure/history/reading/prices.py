"""Price lists: what a whole unit of a resource costs for an hour."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from tenure.model.documents.source import read_document
from tenure.model.fields.kinds import is_number
from tenure.model.values.problems import InputProblem, InvalidInputError, NearestNames, shorten
from tenure.model.values.report import MAX_PROBLEMS, ProblemReport


def load_prices(path: str) -> dict[str, float]:
    """Read a file of resources and prices, ``nvidia.com/gpu: 2.5``; YAML or JSON.

    Raises
    ------
    InvalidInputError
        It cannot be read, or holds something else.
    """
    document = read_document(path, "nvidia.com/gpu: 2.5")
    if not isinstance(document.value, dict) or not document.value:
        what = "is no price list; write a resource and its price for an hour on each line, such as nvidia.com/gpu: 2.5"
        raise InvalidInputError([InputProblem(path, 0, "", what)])
    report = ProblemReport()
    for name, value in document.value.items():
        if not is_number(value) or not math.isfinite(value) or value < 0:
            report.add((None, str(name)), f"{shorten(value)} is no price; write a number of 0 or more")
    document.require_clean(report)
    return {str(name): float(value) for name, value in document.value.items()}


def unused_prices(path: str, prices: Iterable[str], known: Collection[str]) -> list[InputProblem]:
    """Say of which resources a file has a price though they are not ``known``, and what may have been meant."""
    nearest, unused = NearestNames(known), [name for name in prices if name not in known]
    told = [
        InputProblem(path, 0, "", f"{shorten(name)} has a price, but there was none of it{nearest.hint(name)}")
        for name in unused[:MAX_PROBLEMS]
    ]
    if more := len(unused) - len(told):
        told.append(InputProblem(path, 0, "", f"{more} further resources have a price, and there was none of them"))
    return told
