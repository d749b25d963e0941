"""Which column of a file is which field of a trace, where a user says so, and what becomes of the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as default

from tenure.model.fields.kinds import LONGEST_NAME
from tenure.simulator.traces.source import TraceSource

MOST_LABELS = 20
"""Further columns that are kept as labels of each workload."""

MOST_LETTERS = LONGEST_NAME
"""Letters of a label that are kept."""

MOST_LISTED = 50
"""Columns that a message lists."""


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """Fields by columns, as pairs of a column of the file and a field of the format.

    ``keeps_labels`` says that columns which are no field become labels; those in ``wanted`` come before others.
    """

    pairs: tuple[tuple[str, str], ...] = ()
    keeps_labels: bool = False
    wanted: tuple[str, ...] = ()

    def in_lower_case(self) -> ColumnMapping:
        """Give the same for a table whose column names are read in lower case."""
        pairs = tuple((name.lower(), field.lower()) for name, field in self.pairs)
        return ColumnMapping(pairs, self.keeps_labels, tuple(name.lower() for name in self.wanted))


NO_MAPPING = ColumnMapping()


def parse_columns(text: str) -> tuple[tuple[str, str], ...]:
    """Read ``a=b,c=d`` as pairs of a column and a field.

    Raises
    ------
    ValueError
        A part has no ``=``, or lacks a side of it, or a field stands twice.
    """
    pairs: list[tuple[str, str]] = []
    for part in text.split(","):
        name, equals, wanted = (piece.strip() for piece in part.rpartition("="))
        if not equals or not name or not wanted:
            raise ValueError(f"{part!r} is not COLUMN=FIELD; write such as id=job,submitted=submit_s")
        if any(wanted == other for _, other in pairs):
            raise ValueError(f"the field {wanted!r} is given by two columns; leave one out")
        pairs.append((name, wanted))
    return tuple(pairs)


def mapped(
    source: TraceSource, header: Sequence[str], known: Sequence[str], mapping: ColumnMapping
) -> tuple[dict[str, int], set[int]]:
    """Give the place of each field that the mapping names, and the places that are taken by it.

    Raises
    ------
    InvalidInputError
        The mapping names a column that is not there, or a field that the format does not have.
    """
    places = {name: place for place, name in reversed(list(enumerate(header)))}
    missing = list(dict.fromkeys(name for name, _ in mapping.pairs if name not in places))
    if missing:
        raise source.fail(
            f"--columns names {quoted(missing)}, which the file does not have; there are {listed(header)}", 1
        )
    strange = [wanted for _, wanted in mapping.pairs if wanted not in known]
    if strange:
        raise source.fail(f"--columns names {quoted(strange)}, which is no field here; fields are {listed(known)}", 1)
    fields = {wanted: places[name] for name, wanted in mapping.pairs}
    return fields, set(fields.values())


def quoted(names: Sequence[str]) -> str:
    """Give names in quotes, separated by commas."""
    return ", ".join(map(repr, names[:MOST_LISTED]))


def listed(names: Sequence[str]) -> str:
    """Give names as they are, separated by commas, not more than fit a message."""
    more = len(names) - MOST_LISTED
    shown = ", ".join(repr(name)[1:-1] for name in names[:MOST_LISTED])
    return f"{shown} and {more} more" if more > 0 else shown


@dataclass(slots=True)
class FurtherColumns:
    """Columns that are no field and become labels: their places, and what was left out of them."""

    places: Mapping[str, int]
    left_out: tuple[str, ...] = ()
    shortened: int = 0
    shared: dict[tuple[str, ...], dict[str, str]] = default(default_factory=dict)

    def labels(self, cells: Sequence[str]) -> dict[str, str]:
        """Give the labels of a row, one object for all rows that have the same; empty cells give none."""
        key = tuple([cells[place].strip() for place in self.places.values()])
        labels = self.shared.get(key)
        if labels is None:
            labels = {name: self._short(value) for name, value in zip(self.places, key, strict=True) if value}
            if len(self.shared) < MAX_SHARED:
                self.shared[key] = labels
        return labels

    def _short(self, value: str) -> str:
        if len(value) <= MOST_LETTERS and value.isprintable():
            return value
        self.shortened += 1
        return "".join(letter if letter.isprintable() else "?" for letter in value[:MOST_LETTERS])

    def notes(self) -> list[str]:
        """Say what was left out, a sentence each."""
        told = []
        if self.left_out:
            told.append(f"{MOST_LABELS} further columns are kept as labels; left out: {listed(self.left_out)}")
        if self.shortened:
            told.append(f"{self.shortened:,} labels were cut to {MOST_LETTERS} letters, or held what cannot be printed")
        return told


MAX_SHARED = 100_000
"""Sets of labels that are remembered, so that equal ones are one object."""


def further_columns(header: Sequence[str], taken: set[int], mapping: ColumnMapping) -> FurtherColumns:
    """Choose the columns that become labels: those that the mapping wants first, then in the file's order."""
    if not mapping.keeps_labels:
        return FurtherColumns({})
    fit = [
        (name, place)
        for place, name in enumerate(header)
        if place not in taken and name and len(name) <= LONGEST_NAME and name.isprintable()
    ]
    fit.sort(key=lambda pair: pair[0] not in mapping.wanted)
    kept = sorted(fit[:MOST_LABELS], key=lambda pair: pair[1])
    return FurtherColumns(dict(kept), tuple(name for name, _ in fit[MOST_LABELS:]))
