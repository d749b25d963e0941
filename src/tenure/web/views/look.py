"""What a view is made for: one look, at one moment, by one viewer, and what of it is common to all views.

Amounts are integers in the model's units (millicores, bytes, whole GPUs with what is beyond in milli-GPU), times are
texts in UTC, waits are in seconds. Whatever the viewer does not see is left out or not named.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tenure.model.values.duration import format_time
from tenure.model.values.resources import GPU, MILLI
from tenure.web.access.viewer import Viewer
from tenure.web.console import Console
from tenure.web.playing.own_changes import own_changes
from tenure.web.playing.player import FailedError
from tenure.web.sources.picture import Held, Picture
from tenure.web.sources.source import EvictionPage, EvictionQuery, evictions_of

MOST_PER_PAGE: Final = 1000
"""Entries that one answer may have."""

Plain = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Looked:
    """One look: the console, the picture of the moment that is asked for, and who looks."""

    console: Console
    picture: Picture
    viewer: Viewer
    at: int | None = None
    wait: float | None = None
    late: list[str] = field(default_factory=list)
    """What was not there in time."""
    failed: list[str] = field(default_factory=list)
    """Why something could not be played, as far as the viewer may know."""

    @property
    def is_settled(self) -> bool:
        """Whether all that was asked for is there, so that it would look the same again."""
        return not (self.late or self.failed)

    def told(self, text: str) -> str:
        """Give a sentence in which nothing is named that the viewer does not see."""
        return self.viewer.told(text, self.picture.nodes.lines)

    def evictions(self, query: EvictionQuery) -> EvictionPage:
        """Give evictions as they were known at the moment."""
        return evictions_of(self.console.source, replace(query, at=self.at), self.viewer)

    def played(self, task: str, *arguments: Any) -> Any | None:
        """Give what is played of the picture's cluster; None where that takes too long, or failed."""
        try:
            found = self.console.ask(self.picture, task, *arguments, wait=self.wait)
        except FailedError as error:
            self.failed.append(str(error) if self.viewer.sees_everything else error.kind)
            return error.last
        if found is None:
            self.late.append(task)
        return found

    def plan(self, overrides: Sequence[str], additions: Sequence[Any]) -> Any | None:
        """Give what the next cycle of a changed copy would do; None where that takes too long, or failed.

        Raises
        ------
        WrongError
            What was asked for cannot be, or is not the viewer's to ask.
        """
        return self.played("plan", *own_changes(self.viewer, self.picture.lines, overrides, additions))


def moment(look: Looked) -> Plain:
    """Say which moment is shown, and of what."""
    source = look.console.source
    begin, end = source.span()
    return {
        "now": format_time(look.picture.now), "source": source.name, "kind": source.kind, "live": source.is_live,
        "from": format_time(begin), "to": format_time(end), "note": source.note,
        "failed": "; ".join(dict.fromkeys(look.failed)) or None,
    }  # fmt: skip


def redacted(reason: Plain, look: Looked) -> Plain:
    """Give an obstacle; its numbers name others only to those who see everything."""
    if look.viewer.sees_everything:
        return reason
    kept = {key: value for key, value in reason.items() if isinstance(value, int | float)}
    return {"code": reason["code"], "message": look.told(reason["message"]), **kept}


def summed(held: Iterable[Mapping[str, int]]) -> Held:
    """Give the sum of amounts, without pods."""
    total: Held = {}
    for one in held:
        for name, amount in one.items():
            if name != "pods":
                total[name] = total.get(name, 0) + amount
    return total


def without_pods(held: Mapping[str, int]) -> dict[str, int]:
    """Give amounts of something, without pods."""
    return {name: amount for name, amount in held.items() if name != "pods" and amount}


def milli(held: Mapping[str, int], resource: str) -> int:
    """Give an amount of JSON in the model's units, GPUs in milli-GPU."""
    if resource == GPU:
        return held.get(GPU, 0) * MILLI + held.get("milliGpu", 0)
    return held.get(resource, 0)


def folded(text: str) -> str:
    """Give a text as it is searched: letters of one size, composed."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
