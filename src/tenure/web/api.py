"""The JSON API: what each address answers, and what may be asked of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tenure.model.values.duration import format_time
from tenure.model.values.resources import plain_amounts
from tenure.web import pages, views
from tenure.web.access.asked import AskedError, RequestParameters
from tenure.web.views.look import MOST_PER_PAGE, Looked, moment
from tenure.web.views.plans import narrowed

LONGEST_WAIT: Final = 30.0
"""Seconds that an answer may wait for what has to be played."""

LARGEST: Final = 2**20
"""Bytes of a request's body."""

MOST_OVERRIDES: Final = 100
MOST_ADDITIONS: Final = 1000
MOST_POINTS: Final = 2000

Answer = Callable[[Looked, Mapping[str, str]], Any]


class TooLargeError(Exception):
    """A request's body is too large."""

    def __str__(self) -> str:
        """Say how large it may be."""
        return f"the body is larger than {LARGEST:,} bytes"


class WrongKindError(Exception):
    """A request's body is of another kind."""

    def __str__(self) -> str:
        """Say what would do."""
        return "the body has to be JSON (Content-Type: application/json)"


def overview(look: Looked, given: Mapping[str, str]) -> Any:
    """Everything at a glance."""
    RequestParameters(given, {"at", "wait"})
    return views.overview.page(look)


def queues(look: Looked, given: Mapping[str, str]) -> Any:
    """Queues."""
    asked = RequestParameters(given, {"at", "limit", "offset", "wait"})
    return views.queues.page(look, limit=_limit(asked), offset=_offset(asked))


def workloads(look: Looked, given: Mapping[str, str]) -> Any:
    """Workloads."""
    asked = RequestParameters(given, {"at", "limit", "offset", "state", "queue", "q", "sort"})
    return views.workloads.page(look, pages.workload_query(asked, _limit(asked)))


def workload(look: Looked, given: Mapping[str, str], key: str) -> Any:
    """One workload; None where there is none of that name."""
    RequestParameters(given, {"at", "wait"})
    return views.workloads.one(look, key)


def nodes(look: Looked, given: Mapping[str, str]) -> Any:
    """Nodes."""
    asked = RequestParameters(given, {"at", "limit", "offset", "state", "q", "sort"})
    return views.nodes.page(look, pages.node_query(asked, _limit(asked)))


def node(look: Looked, given: Mapping[str, str], name: str) -> Any:
    """One node, device by device; None where there is none of that name."""
    RequestParameters(given, {"at"})
    return views.nodes.one(look, name)


def moves(look: Looked, given: Mapping[str, str]) -> Any:
    """What emptying a node, or making room, would move; None where there is no such node."""
    asked = RequestParameters(given, {"at", "drain", "wait"})
    return views.plans.moves(look, asked.text("drain") or None)


def evictions(look: Looked, given: Mapping[str, str]) -> Any:
    """Evictions."""
    asked = RequestParameters(
        given,
        {"at", "limit", "offset", "cause", "queue", "beneficiary", "workload", "paid", "how", "sort", "order", "since",
         "until"},
    )  # fmt: skip
    return views.evictions.page(look, pages.eviction_query(asked, _limit(asked)))


def series(look: Looked, given: Mapping[str, str]) -> Any:
    """Use over time, by queue."""
    asked = RequestParameters(given, {"at", "points"})
    found = look.console.source.series(asked.number("points", 500, MOST_POINTS, 2))
    if found is None:
        return {**moment(look), "resource": look.picture.main, "capacity": {}, "moments": [], "queues": {},
                "waiting": [], "evictions": []}  # fmt: skip
    found = found.as_of(look.at)
    return {
        **moment(look), "resource": found.resource, "capacity": plain_amounts({found.resource: found.capacity}),
        "moments": [format_time(at) for at in found.moments],
        "queues": {name: list(values) for name, values in found.queues.items()},
        "waiting": list(found.waiting), "evictions": list(found.evictions),
    }  # fmt: skip


ANSWERS: Final[dict[str, Answer]] = {
    "overview": overview, "queues": queues, "workloads": workloads, "nodes": nodes, "evictions": evictions,
    "series": series, "moves": moves,
}  # fmt: skip


def _limit(asked: RequestParameters) -> int:
    return asked.number("limit", 100, MOST_PER_PAGE, 1)


def _offset(asked: RequestParameters) -> int:
    return asked.number("offset", 0, 10_000_000)


class PlanAsked(NamedTuple):
    """What a plan is to be played with."""

    overrides: list[str]
    additions: list[Any]


def plan_asked(kind: str, body: bytes) -> PlanAsked:
    """Read what a plan is to be played with: ``{"set": [...], "add": [...]}``.

    Raises
    ------
    AskedError, WrongKindError
        It is something else.
    """
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise WrongKindError
    try:
        read = json.loads(body.decode() or "{}", parse_constant=_not_finite)
    except (ValueError, RecursionError):
        raise AskedError('the body is no JSON; {"set": [], "add": []} would do') from None
    if not isinstance(read, dict) or read.keys() - {"set", "add"}:
        raise AskedError('the body has to be an object with "set" and "add", and nothing else')
    overrides, additions = read.get("set", []), read.get("add", [])
    if not isinstance(overrides, list) or not all(isinstance(one, str) for one in overrides):
        raise AskedError('"set" has to be a list of texts, such as "queue.a.max.cpu=2"')
    if not isinstance(additions, list) or not all(isinstance(one, dict) for one in additions):
        raise AskedError('"add" has to be a list of objects: workloads as in a cluster file, or manifests')
    if len(overrides) > MOST_OVERRIDES or len(additions) > MOST_ADDITIONS:
        raise AskedError(f"at most {MOST_OVERRIDES} changes and {MOST_ADDITIONS:,} additions are played at once")
    return PlanAsked(overrides, additions)


def _not_finite(text: str) -> Any:
    raise ValueError(text)


def patience(given: Mapping[str, str]) -> float | None:
    """Read for how many seconds whoever asks would wait; None where they do not say."""
    asked = RequestParameters({"wait": given.get("wait", "")}, {"wait"})
    return float(asked.number("wait", 0, int(LONGEST_WAIT))) if asked.text("wait") else None


__all__ = ["ANSWERS", "LARGEST", "LONGEST_WAIT", "narrowed", "node", "patience", "plan_asked", "workload"]
