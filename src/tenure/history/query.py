"""Which records are asked for, and where a page of them ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, FromClause, and_, or_

from tenure.history.record import HistoryRecord
from tenure.model.values.problems import InputProblem, InvalidInputError


@dataclass(frozen=True, slots=True)
class Query:
    """What records have to be like; what is left empty does not matter.

    ``since`` and ``until`` in µs since the epoch, ``until`` left out. ``text`` is found in names of workloads, of which
    ``workloads`` lists some.
    """

    kinds: tuple[str, ...] = ()
    workload: str | None = None
    queue: str | None = None
    cause: str | None = None
    beneficiary: str | None = None
    since: int | None = None
    until: int | None = None
    text: str | None = None
    workloads: tuple[str, ...] = ()


EVERYTHING: Final = Query()
"""All records."""


class Page(NamedTuple):
    """Some records, and where to go on; None where there are no more."""

    records: list[HistoryRecord]
    next: str | None


def token(found: tuple[HistoryRecord, tuple[int, int]]) -> str:
    """Give the end of a page as text."""
    at, number = found[1]
    return f"{at}.{number}"


def position(text: str) -> tuple[int, int]:
    """Read the end of a page.

    Raises
    ------
    InvalidInputError
        It is none.
    """
    at, _, number = text.partition(".")
    if not (at.lstrip("-").isdecimal() and number.isdecimal() and len(text) < 50):  # noqa: PLR2004  two numbers
        raise InvalidInputError([InputProblem("after", 0, "", "is no end of a page; take it as the last page gave it")])
    return int(at), int(number)


def conditions(
    table: FromClause, query: Query, begin: tuple[int, int] | None, *, newest: bool
) -> list[ColumnElement[bool]]:
    """Give the conditions of a question on one month."""
    c = table.c
    found: list[ColumnElement[bool]] = []
    if query.kinds:
        found.append(c.kind.in_(query.kinds))
    if query.workloads:
        found.append(c.workload.in_(query.workloads))
    for column, value in (
        (c.workload, query.workload), (c.queue, query.queue), (c.cause, query.cause),
        (c.beneficiary, query.beneficiary),
    ):  # fmt: skip
        if value is not None:
            found.append(column == value)
    if query.since is not None:
        found.append(c.at >= query.since)
    if query.until is not None:
        found.append(c.at < query.until)
    if query.text:
        found.append(c.workload.contains(query.text, autoescape=True))
    if begin is not None:
        at, number = begin
        later = c.at < at if newest else c.at > at
        beyond = c.id < number if newest else c.id > number
        found.append(or_(later, and_(c.at == at, beyond)))
    return found
