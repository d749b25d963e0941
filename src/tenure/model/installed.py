"""Plugins that other packages bring along, by the group of their entry points."""

from __future__ import annotations

import importlib.metadata
import sys
from functools import cache
from importlib.metadata import EntryPoint


def entry_points(*, group: str) -> tuple[EntryPoint, ...]:
    """Give the entry points of a group by name; files are looked at again only where packages are sought elsewhere."""
    return _found(group, tuple(sys.path))


@cache
def _found(group: str, _path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    return tuple(sorted(importlib.metadata.entry_points(group=group), key=lambda point: point.name))
