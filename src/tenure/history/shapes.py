"""What the fields of payloads look like, by name: whatever comes from a file that somebody else wrote is held to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tenure.model.file.expand import MAX_TASKS

LATEST: Final = 253_402_300_799_000_000
"""The end of the year 9999, in µs since the epoch."""

EARLIEST: Final = -LATEST // 5

_LARGEST: Final = 1 << 100
"""More than all memory of the largest cluster times all µs of a century."""

Shape = tuple[Callable[[Any], bool], str]
"""Says whether a value is right, and what is wrong with one that is not."""


def _is_number(value: Any, low: int = -_LARGEST, high: int = _LARGEST) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_time(value: Any) -> bool:
    return _is_number(value, EARLIEST, LATEST)


def _is_count(value: Any) -> bool:
    return _is_number(value, 0, MAX_TASKS)


def _is_sums(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _is_level(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(level, list) and all(map(_is_number, level)) for level in value.values()
    )


def _is_place(value: Any) -> bool:
    """Whether something is a task with its node and devices."""
    if not (isinstance(value, list) and len(value) == 3):  # noqa: PLR2004  as the docstring says
        return False
    task, node, devices = value
    are_texts = isinstance(task, str) and isinstance(node, str)
    return are_texts and isinstance(devices, list) and all(map(_is_count, devices))


def _is_places(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_place, value))


def _is_spec(value: Any) -> bool:
    """Whether something says of how many tasks it is and what each asks for, and perhaps what part of how many GPUs."""
    if not (isinstance(value, list) and len(value) in {2, 4}):
        return False
    number, asked, *shared = value
    return _is_count(number) and _is_sums(asked) and all(_is_number(part, 1, MAX_TASKS) for part in shared)


def _is_specs(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_spec, value)) and sum(spec[0] for spec in value) <= MAX_TASKS


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)  # noqa: PLR2004
        for pair in value
    )


def _is_checkpoint(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and all(map(_is_time, value.values())))


_AMOUNTS: Final = "does not give whole numbers by resource"
_TIME: Final = "is no time in µs since the epoch"

_SHAPES: Final[Mapping[str, Shape]] = {
    **dict.fromkeys(("lost", "saved", "held", "gained", "within", "ask", "capacity"), (_is_sums, _AMOUNTS)),
    **dict.fromkeys(("deadline", "evictedAt", "start", "until", "since"), (_is_time, _TIME)),
    **dict.fromkeys(
        ("expected", "grace", "notice", "requeueDelay", "preemptionDelay", "stalenessGrace"),
        (lambda value: _is_number(value, 0, LATEST), "is no duration in µs"),
    ),
    **dict.fromkeys(("priority",), (lambda value: _is_number(value, -(1 << 31), 1 << 31), "is no priority")),
    **dict.fromkeys(("minMember", "more", "others"), (_is_count, "is no number")),
    **dict.fromkeys(
        ("task", "node", "to", "reason", "error", "state", "shield", "victim", "how", "identity", "message", "user",
         "forUser", "team", "forTeam", "forQueue"),
        (lambda value: value is None or isinstance(value, str), "is no text"),
    ),
    "estimated": (lambda value: value is None or _is_time(value), _TIME),
    "preemptible": (lambda value: isinstance(value, bool), "is neither true nor false"),
    "level": (_is_level, _AMOUNTS),
    "specs": (_is_specs, f"does not say what so many tasks ask for: [[number, amounts]], {MAX_TASKS:,} at most"),
    "considered": (_is_pairs, "is no list of pairs of texts"),
    "checkpoint": (_is_checkpoint, "is no checkpoint"),
}  # fmt: skip
"""By name of a field."""

_OWN: Final[Mapping[str, Mapping[str, Shape]]] = {
    "setting": dict.fromkeys(("to",), (lambda _: True, "")),
    "origin": dict.fromkeys(("cluster",), (lambda value: isinstance(value, dict), "is no cluster")),
}
"""By kind: fields that are something else there."""

_NEEDED: Final = {"outcome": ("evictedAt", "start"), "gap": ("since", "until"), "usage": ("level",)}
"""By kind: fields that have to be there."""

_PLACED: Final = frozenset({"started", "placed", "nominated"})
"""Kinds whose ``tasks`` are places; with others they are a number."""


def wrong_field(kind: str, payload: Mapping[str, Any]) -> tuple[str, str] | None:
    """Name the first field of a payload that is not what records of its kind have, and say what is wrong."""
    for name in _NEEDED.get(kind, ()):
        if name not in payload:
            return name, f"is missing; every {kind} record has it"
    own = _OWN.get(kind, {})
    for name, value in payload.items():
        shape = own.get(name) or _SHAPES.get(name)
        if name == "tasks":
            shape = (
                (_is_places, "is no list of [task, node, [device]]") if kind in _PLACED else (_is_count, "is no number")
            )
        if shape is not None and not shape[0](value):
            return name, shape[1]
    return None
