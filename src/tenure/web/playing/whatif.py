"""The changes that the what-if page plays: they stand in its address, so that it can be passed on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from tenure.web.access.asked import AskedError

MOST_CHANGES: Final = 20
LONGEST_CHANGE: Final = 2000
"""Letters of one change."""

CHANGES: Final = ("set", "add")
"""Parameters of which each is one change."""

_FIELDS: Final = {
    "quota": ("queue", "which", "resource", "amount"),
    "runtime": ("queue", "which", "amount"),
    "set": ("text",),
    "add": ("name", "queue", "tasks", "gpu", "cpu", "memory", "priority"),
}
_WHICH: Final = {"quota": ("max", "guaranteed"), "runtime": ("reclaimMinRuntime", "preemptMinRuntime")}


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One change: ``set`` with a path and a value, or ``add`` with a workload as a cluster file writes it."""

    kind: str
    written: str
    workload: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """Say it as one would write it."""
        if self.workload is None:
            return self.written
        asked = ", ".join(f"{amount} {name}" for name, amount in self.workload.get("requests", {}).items())
        tasks = self.workload.get("replicas", 1)
        queue = self.workload.get("queue", "default")
        return f"add {self.workload.get('name', '')}: {tasks} of ({asked}) in queue {queue}"


def changes_of(pairs: list[tuple[str, str]]) -> list[Change]:
    """Read the changes in an address.

    Raises
    ------
    AskedError
        One does not do, or there are too many.
    """
    found = []
    for name, value in pairs:
        if name not in CHANGES:
            if name != "at":
                raise AskedError(f"there is no parameter {name[:40]!r} here; there are set, add and at")
            continue
        if len(value) > LONGEST_CHANGE:
            raise AskedError(f"{name} has {len(value):,} letters; {LONGEST_CHANGE:,} is the most")
        found.append(Change(name, value, _workload(value) if name == "add" else None))
    if len(found) > MOST_CHANGES:
        raise AskedError(f"there are {len(found)} changes; {MOST_CHANGES} are the most")
    return found


def _workload(text: str) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise AskedError('add is no JSON object; write a workload as in a cluster file, such as {"name": "x"}')
    return read


def canonical(pairs: list[tuple[str, str]]) -> str | None:
    """Give the address that a filled form stands for; None where none was filled."""
    given = dict(pairs)
    form = given.get("do", "")
    if "do" not in given:
        return None
    if form not in _FIELDS:
        raise AskedError(f"do is {form[:40]!r}; {', '.join(_FIELDS)} would do")
    values = {name: given.get(name, "").strip() for name in _FIELDS[form]}
    kept = [(name, value) for name, value in pairs if name in ("at", "set", "add") and value]
    which = _WHICH.get(form)
    if which and values["which"] not in which:
        raise AskedError(f"which is {values['which'][:40]!r}; {' or '.join(which)} would do")
    kept.append(_pair(form, values))
    return f"/whatif?{urlencode(kept)}"


def _pair(form: str, values: dict[str, str]) -> tuple[str, str]:
    match form:
        case "quota":
            return "set", f"queue.{values['queue']}.{values['which']}.{values['resource']}={values['amount']}"
        case "runtime":
            return "set", f"queue.{values['queue']}.{values['which']}={values['amount']}"
        case "set":
            return "set", values["text"]
        case _:
            return "add", json.dumps(_described(values), ensure_ascii=False)


def _described(values: dict[str, str]) -> dict[str, Any]:
    requests = {"nvidia.com/gpu": values["gpu"], "cpu": values["cpu"], "memory": values["memory"]}
    asked: dict[str, Any] = {"name": values["name"] or "what-if", "requests": {k: v for k, v in requests.items() if v}}
    if values["queue"]:
        asked["queue"] = values["queue"]
    for field, key in (("tasks", "replicas"), ("priority", "priority")):
        text = values[field]
        if text:
            asked[key] = int(text) if text.removeprefix("-").isdecimal() and len(text) < 12 else text  # noqa: PLR2004  what it is not is told when it is read
    return asked
