"""What is said of an eviction that was refused, so that whoever reads it elsewhere knows what is left alone and why."""

from __future__ import annotations

import re
from typing import Final

from tenure.model.cluster import RefusedEviction
from tenure.model.values.duration import format_time, parse_time

REFUSED: Final = "EvictionRefused"
"""Reason of the event."""

_SAID: Final = re.compile(r"(\S+) is not evicted: (.*); it is tried again (\S+) at the earliest", re.DOTALL)


def note_of(refused: RefusedEviction) -> str:
    """Say of a task until when it is left alone, and why."""
    until = format_time(refused.until)
    return f"{refused.task} is not evicted: {refused.message}; it is tried again {until} at the earliest"


def read_note(workload: str, text: str) -> RefusedEviction | None:
    """Give what a note says of a task of a workload (namespace/name); None where it says nothing of the kind."""
    found = _SAID.fullmatch(text)
    if found is None:
        return None
    task, message, until = found.groups()
    try:
        return RefusedEviction(workload=workload, task=task, until=parse_time(until), message=message)
    except ValueError:
        return None
