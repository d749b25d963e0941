"""What belongs to a story beside its records: who took the room of a workload, and what its wait would have taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenure.explanation.explain import Story
from tenure.history.reading.takers import TAKER_WAYS, Taker
from tenure.history.reading.waits import StoryWait
from tenure.model.values.duration import format_time
from tenure.model.values.readable import time_span
from tenure.model.values.resources import plain_amounts
from tenure.report.tables import TableColumn, Terminal, table, wrap

BULLET = "  - "


def wait_text(wait: StoryWait, last: int, told: Story, where: Terminal) -> str:
    """Say how long a workload waited, why, and what it would have taken; ``last`` is the end of the records."""
    until = "it still waits" if wait.until is None else f"until {format_time(wait.until)}"
    waited = f"it waited {time_span(wait.length(last))}, from {format_time(wait.since)}, {until}"
    lines = wrap(waited, where.width, cut=False)
    if told.state == "starts":
        at_once = "by what is recorded it would have started at once; constraints on nodes are not recorded"
        lines += wrap(at_once, where.width, cut=False)
    lines += _items("why it waited", [f"{reason.code}: {reason.message}" for reason in told.reasons], where)
    lines += _items("what it would have taken", told.helps, where)
    return "".join(f"{line}\n" for line in lines)


def _items(heading: str, texts: Sequence[str], where: Terminal) -> list[str]:
    """Set a list below its heading."""
    if not texts:
        return []
    lines = [wrap(text, max(1, where.width - len(BULLET)), cut=False) for text in texts]
    blank = " " * len(BULLET)
    items = [f"{blank if number else BULLET}{line}" for text in lines for number, line in enumerate(text)]
    return [f"{where.bold(heading)}:", *items]


def takers_text(takers: Sequence[Taker], where: Terminal) -> str:
    """List who took a workload's room, the most telling first."""
    if not takers:
        return f"{where.bold('who took its room')}: no workload that is known of\n"
    heads = ("who took its room", "queue", "how", "started", "until")
    rows = [
        [taker.workload, taker.queue, TAKER_WAYS[taker.how] + (f" ({taker.cause})" if taker.cause else ""),
         *("" if time is None else format_time(time) for time in (taker.started_at, taker.until))]
        for taker in takers
    ]  # fmt: skip
    return table([TableColumn(head, wrap=head in heads[:3]) for head in heads], rows, where)


def wait_json(wait: StoryWait, last: int, told: Story | None) -> dict[str, Any]:
    """Give a wait as plain data; reasons and what it would have taken are null where they were not worked out."""
    return {
        "from": format_time(wait.since), "to": None if wait.until is None else format_time(wait.until),
        "waited_s": wait.length(last) / 1e6,
        "summary": None if told is None else told.headline,
        "reasons": None if told is None else told.plain()["reasons"],
        "whatItWouldHaveTaken": None if told is None else list(told.helps),
    }  # fmt: skip


def taker_json(taker: Taker) -> dict[str, Any]:
    """Give who took a workload's room as plain data."""
    times = {"createdAt": taker.created_at or None, "startedAt": taker.started_at, "until": taker.until}
    return {
        "workload": taker.workload, "queue": taker.queue, "how": taker.how, "cause": taker.cause or None,
        **{name: None if time is None else format_time(time) for name, time in times.items()},
        "allocated": plain_amounts(dict(taker.held)),
    }  # fmt: skip
