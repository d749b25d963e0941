"""What all benchmarks share: time as a median, peak memory, tables, and where the traces are."""

from __future__ import annotations

import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

COMPILED = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""The environment of an ordinary installation, in which modules are compiled once."""


class Seconds(NamedTuple):
    """Time that something took: on the clock, and of the processor, which other programs disturb less."""

    wall: float
    cpu: float


def measure(work: Callable[[], object]) -> Seconds:
    """Time one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu)


def median(times: Sequence[Seconds]) -> Seconds:
    """Give the median of each of the two."""
    return Seconds(statistics.median(t.wall for t in times), statistics.median(t.cpu for t in times))


def rate(count: int, took: Seconds) -> str:
    """Give a count per second on the clock, and per second of the processor in brackets."""
    return f"{count / took.wall:,.0f} ({count / took.cpu:,.0f})"


def peak_memory() -> float:
    """Give the most memory that this process has held so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def print_memory() -> None:
    """Print the most memory that this process has held so far."""
    print(f"peak memory: {peak_memory():,.0f} MiB")


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns as wide as they need to be, the first flush left."""
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    print(f"\n{title}")
    for row in cells:
        first, *rest = (
            cell.ljust(w) if not i else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join([first, *rest]), flush=True)


def traces_or_skip(folder: str) -> Path:
    """Give the folder of traces, ``TENURE_TRACES`` or beside the checkout; end the program where it is not there."""
    root = Path(os.environ.get("TENURE_TRACES") or ROOT.parent / "shared" / "traces")
    if not (root / folder).is_dir():
        print(f"SKIPPED: there is no {root / folder}; say with TENURE_TRACES where the traces are")
        sys.exit(0)
    return root / folder
