"""Results in one form: a figure beside its anchor and its goal, and how fast the machine was in that minute."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

KEPT: Final = Path(__file__).resolve().with_name("results.json")
"""The file with the results that docs/benchmarks.md shows."""

WHERE: Final = "TENURE_BENCH_RESULTS"
"""The environment variable that names the file into which a benchmark writes its results, if it is set."""

REFERENCE: Final = 0.25
"""Seconds that a bare loop takes on the machine to which scaled rates refer."""

REACHED: Final = {True: "reached", False: "**not reached**", None: ""}


@dataclass(frozen=True, slots=True)
class Result:
    """A figure of a benchmark. ``machine``: seconds of the processor that `machine_speed` took beside it.

    ``file`` is the benchmark's file without its ending. Where ``more`` is true, higher figures are better.
    """

    file: str
    benchmark: str
    case: str
    figure: float
    unit: str
    anchor: float | None
    against: str
    goal: float | None
    more: bool
    machine: float
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """The figure divided by its anchor."""
        return self.figure / self.anchor if self.anchor else None

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        if self.goal is None:
            return None
        return self.figure >= self.goal if self.more else self.figure <= self.goal


class Results:
    """The results of one run of a benchmark, written where `WHERE` says."""

    def __init__(self, benchmark: str) -> None:
        self.benchmark = benchmark
        self.file = Path(sys.argv[0]).stem
        self.rows: list[Result] = []

    def add(  # noqa: PLR0913  each of them is a column
        self, case: str, figure: float, unit: str, *, anchor: float | None = None, against: str = "",
        at_most: float | None = None, at_least: float | None = None, machine: float | None = None, note: str = "",
    ) -> None:  # fmt: skip
        """Add a figure; ``at_most`` or ``at_least`` is its goal."""
        more = at_least is not None
        goal = at_least if more else at_most
        speed = machine_speed() if machine is None else machine
        self.rows.append(
            Result(
                self.file,
                self.benchmark,
                case,
                rounded(figure),
                unit,
                anchor,
                against,
                goal,
                more,
                rounded(speed),
                note,
            )
        )

    def write(self) -> None:
        """Write them if somebody asked for them."""
        if path := os.environ.get(WHERE):
            write(Path(path), self.rows)


def machine_speed() -> float:
    """Measure the machine: seconds of the processor for `sum(range(10**7))`, the better of two."""
    return min(_loop(), _loop())


def _loop() -> float:
    began = time.process_time()
    sum(range(10**7))
    return time.process_time() - began


def rounded(figure: float) -> float:
    """Give a figure with four digits that count; all digits of whole numbers."""
    return figure if isinstance(figure, int) else float(f"{figure:.4g}")


def read(path: Path) -> list[Result]:
    """Read results; ratio and whether the goal is reached are worked out anew."""
    if not path.exists():
        return []
    fields = Result.__dataclass_fields__
    return [Result(**{k: v for k, v in row.items() if k in fields}) for row in json.loads(path.read_text())]


def write(path: Path, rows: Iterable[Result]) -> None:
    """Write results, one row a line, so that a change of one is a change of one line."""
    lines = [json.dumps({**asdict(r), "ratio": shortened(r.ratio), "reached": r.reached}) for r in rows]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def shortened(ratio: float | None) -> float | None:
    """Give a ratio with four digits."""
    return None if ratio is None else rounded(ratio)


def merged(old: Sequence[Result], new: Sequence[Result], *, whole: str = "") -> list[Result]:
    """Replace rows by new ones of the same file, benchmark and case, each in its place; the others stay.

    ``whole`` names a file that has run as a whole: what it no longer reports goes. Benchmarks stand by their numbers.
    """
    fresh = {_key(row): row for row in new}
    kept = [fresh.pop(_key(row), row) for row in old if row.file != whole or _key(row) in fresh]
    return sorted([*kept, *fresh.values()], key=lambda row: (int(row.benchmark[1:]), row.file))


def _key(row: Result) -> tuple[str, str, str]:
    return row.file, row.benchmark, row.case


HEAD: Final = ("", "what", "figure", "anchor", "ratio", "goal", "", "machine")
"""The columns of a table of results."""


def cells(row: Result) -> tuple[str, ...]:
    """Give a row of a table of results as text."""
    anchor = f"{row.against} {number(row.anchor)}".strip() if row.anchor is not None else row.against
    goal = "" if row.goal is None else f"{'≥' if row.more else '≤'} {number(row.goal)}"
    note = f" ({row.note})" if row.note else ""
    return (
        row.benchmark, row.case, f"{number(row.figure)} {row.unit}{note}", anchor,
        "" if row.ratio is None else number(row.ratio), goal, REACHED[row.reached], f"{row.machine:.3f}",
    )  # fmt: skip


def number(value: float) -> str:
    """Write a number with as many digits as tell something."""
    if isinstance(value, int) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}".rstrip("0").rstrip(".") if value >= 1 else f"{value:.3g}"
