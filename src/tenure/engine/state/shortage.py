"""How many tasks a gang lacks of those that it starts with, and in which of its subgroups."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tenure.engine.state.workloads import SubgroupState, TaskState

MOST_NAMED = 4
"""Subgroups that are named."""


class TaskShortage(NamedTuple):
    """So many tasks are ``there`` of the number ``needed``; ``where`` names the subgroups that lack some, if any do."""

    there: int
    needed: int
    where: str


def shortage(root: SubgroupState, counts: Callable[[TaskState], bool]) -> TaskShortage:
    """Compare the tasks that count with those that a gang needs.

    Where fewer subgroups than there are do, the smallest are needed, and those count that lack the fewest tasks.
    """
    needed = root.size
    lacking = [leaf for leaf in root.leaves() if _missing(leaf, counts)] if root.children else []
    named = [f"subgroup {g.name} has {sum(map(counts, g.tasks))} of {g.minimum}" for g in lacking[:MOST_NAMED]]
    if len(lacking) > MOST_NAMED:
        named.append(f"and {len(lacking) - MOST_NAMED} more")
    return TaskShortage(max(0, needed - _missing(root, counts)), needed, ", ".join(named))


def running_of_needed(root: SubgroupState) -> str:
    """Say of a gang that runs how many of the tasks that it needs run, or are promised a place."""
    there, needed, where = shortage(root, lambda t: t.active or t.nominated >= 0)
    return f"runs {there} of the {needed} tasks that it needs" + (f" ({where})" if where else "")


def _missing(group: SubgroupState, counts: Callable[[TaskState], bool]) -> int:
    """Give how many more tasks a group needs at the least."""
    if not group.children:
        return max(0, group.minimum - sum(map(counts, group.tasks)))
    return sum(sorted(_missing(child, counts) for child in group.children)[: group.minimum])
